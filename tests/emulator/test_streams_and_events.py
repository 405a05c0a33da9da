from __future__ import annotations

import time

from cudadrv.driver._api import (
    CUcontext,
    CUdevice,
    CUevent,
    CUstream,
    CUstreamCaptureStatus,
)
from cudadrv.emulator import Emulator

from .calls import LEGACY, OpenApi, code, ok

PER_THREAD = CUstream(2)


def test_a_priority_is_clamped_and_flags_are_checked(api: OpenApi, context: CUcontext) -> None:
    for asked, given in ((0, 0), (-2, -2), (-99, -5), (99, 0)):
        stream = ok(api.cuStreamCreateWithPriority(1, asked))
        assert ok(api.cuStreamGetPriority(stream)) == given
    assert code(api.cuStreamCreateWithPriority(2, 0)) == 1


def test_default_streams_are_those_of_the_current_context(api: OpenApi, context: CUcontext) -> None:
    for number in (0, 1, 2):
        stream = CUstream(number)
        assert ok(api.cuStreamGetPriority(stream)) == 0
        assert code(api.cuStreamQuery(stream)) == 0
        assert code(api.cuStreamSynchronize(stream)) == 0
        assert ok(api.cuStreamIsCapturing(stream)) == (
            CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
        )
        assert code(api.cuStreamDestroy(stream)) == 400
    ok(api.cuCtxPopCurrent())
    assert code(api.cuStreamSynchronize(LEGACY)) == 201
    assert code(api.cuStreamQuery(PER_THREAD)) == 201
    assert code(api.cuStreamGetPriority(CUstream(1))) == 201


def test_a_stream_works_whatever_context_is_current(
    api: OpenApi, context: CUcontext, stream: CUstream
) -> None:
    ok(api.cuCtxPopCurrent())
    assert code(api.cuStreamQuery(stream)) == 0
    assert code(api.cuStreamSynchronize(stream)) == 0
    memory = ok(api.cuMemAllocAsync(8, stream))
    assert code(api.cuMemsetD8Async(memory, 1, 8, stream)) == 0
    assert code(api.cuMemFreeAsync(memory, stream)) == 0
    assert code(api.cuStreamDestroy(stream)) == 0


def test_a_destroyed_stream_is_an_invalid_handle(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    stream = ok(emulator.cuStreamCreateWithPriority(0, 0))
    event = ok(emulator.cuEventCreate(0))
    ok(emulator.cuStreamDestroy(stream))
    assert code(emulator.cuStreamDestroy(stream)) == 400
    assert code(emulator.cuStreamQuery(stream)) == 400
    assert code(emulator.cuStreamSynchronize(stream)) == 400
    assert code(emulator.cuMemAllocAsync(8, stream)) == 400
    assert code(emulator.cuEventRecord(event, stream)) == 400
    assert code(emulator.cuStreamWaitEvent(stream, event, 0)) == 400


def test_handles_of_another_emulator_are_rejected(emulator: Emulator) -> None:
    other = Emulator()
    ok(other.cuInit(0))
    for each in (emulator, other):
        ok(each.cuCtxCreate(None, 0, ok(each.cuDeviceGet(0))))
    stream = ok(other.cuStreamCreateWithPriority(0, 0))
    memory = ok(other.cuMemAlloc(8))
    assert code(emulator.cuStreamQuery(stream)) == 400
    assert code(emulator.cuMemFree(memory)) == 1


def test_event_flags_are_checked(api: OpenApi, context: CUcontext) -> None:
    assert code(api.cuEventCreate(16)) == 1
    assert code(api.cuEventCreate(4)) == 1
    assert code(api.cuEventCreate(6)) == 0
    assert code(api.cuEventCreate(3)) == 0


def test_an_event_that_was_not_recorded_is_done_but_has_no_time(
    api: OpenApi, context: CUcontext, stream: CUstream
) -> None:
    event, other = ok(api.cuEventCreate(0)), ok(api.cuEventCreate(0))
    assert code(api.cuEventQuery(event)) == 0
    assert code(api.cuEventSynchronize(event)) == 0
    assert code(api.cuStreamWaitEvent(stream, event, 0)) == 0
    assert code(api.cuStreamWaitEvent(stream, event, 7)) == 1
    assert code(api.cuEventElapsedTime(event, other)) == 400
    ok(api.cuEventRecord(event, stream))
    assert code(api.cuEventElapsedTime(event, other)) == 400


def test_elapsed_time_is_in_milliseconds_and_has_a_sign(
    api: OpenApi, context: CUcontext, stream: CUstream
) -> None:
    start, end = ok(api.cuEventCreate(0)), ok(api.cuEventCreate(0))
    begun = time.perf_counter()
    ok(api.cuEventRecord(start, stream))
    ok(api.cuEventRecord(end, stream))
    ok(api.cuEventSynchronize(end))
    host_ms = 1000 * (time.perf_counter() - begun)
    elapsed = ok(api.cuEventElapsedTime(start, end))
    assert 0 <= elapsed <= host_ms + 1
    assert ok(api.cuEventElapsedTime(end, start)) == -elapsed
    assert ok(api.cuEventElapsedTime(start, start)) == 0.0


def test_an_event_without_timing_has_no_time(
    api: OpenApi, context: CUcontext, stream: CUstream
) -> None:
    event = ok(api.cuEventCreate(2))
    ok(api.cuEventRecord(event, stream))
    ok(api.cuEventSynchronize(event))
    assert code(api.cuEventElapsedTime(event, event)) == 400


def test_an_event_belongs_to_its_context(
    api: OpenApi, device: CUdevice, context: CUcontext, stream: CUstream
) -> None:
    event = ok(api.cuEventCreate(0))
    ok(api.cuEventRecord(event, stream))
    other = ok(api.cuCtxCreate(None, 0, device))
    foreign = ok(api.cuStreamCreateWithPriority(1, 0))
    foreign_event = ok(api.cuEventCreate(0))
    assert code(api.cuEventRecord(event, foreign)) == 400
    assert code(api.cuEventRecord(event, LEGACY)) == 400
    assert code(api.cuStreamWaitEvent(foreign, event, 0)) == 0
    ok(api.cuEventRecord(foreign_event, foreign))
    ok(api.cuCtxSynchronize())
    assert code(api.cuEventElapsedTime(event, foreign_event)) == 400
    ok(api.cuCtxDestroy(other))


def test_null_and_destroyed_events_are_distinguished(
    api: OpenApi, context: CUcontext, stream: CUstream
) -> None:
    null = CUevent(0)
    assert code(api.cuEventRecord(null, stream)) == 400
    assert code(api.cuEventQuery(null)) == 400
    assert code(api.cuEventDestroy(null)) == 400
    assert code(api.cuStreamWaitEvent(stream, null, 0)) == 400
    event = ok(api.cuEventCreate(0))
    ok(api.cuEventDestroy(event))
    assert code(api.cuEventQuery(event)) == 709
    assert code(api.cuEventRecord(event, stream)) == 709
    assert code(api.cuStreamWaitEvent(stream, event, 0)) == 709
    assert code(api.cuEventDestroy(event)) == 709
