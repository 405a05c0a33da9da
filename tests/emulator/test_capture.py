"""Stream capture: what is recorded, what is refused, and what makes a capture invalid.

The codes were measured on an H100 and an H200 with driver 580; where the driver may be asked, the
tests hold for it too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from ctypes import c_uint8, c_uint32, c_uint64

import numpy as np
import pytest

from cudadrv.driver._api import (
    CUcontext,
    CUdevice,
    CUdeviceptr,
    CUevent,
    CUfunction,
    CUgraph,
    CUmodule,
    CUresult,
    CUstream,
    CUstreamCaptureMode,
    CUstreamCaptureStatus,
)
from cudadrv.emulator import Emulator
from tests.rows import all_rows

from .calls import LEGACY, OpenApi, Parameters, code, download, functions, launch, load, ok
from .kernels import EMPTY, INCREMENT

GLOBAL, THREAD_LOCAL, RELAXED = (CUstreamCaptureMode(mode) for mode in range(3))
NONE, ACTIVE, INVALIDATED = (CUstreamCaptureStatus(status) for status in range(3))
MODES = pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED], ids=lambda m: m.name[23:])


def begin(api: OpenApi, stream: CUstream, mode: CUstreamCaptureMode = GLOBAL) -> None:
    ok(api.cuStreamBeginCapture(stream, mode))


def end(api: OpenApi, stream: CUstream) -> CUgraph:
    return ok(api.cuStreamEndCapture(stream))


def node_count(api: OpenApi, graph: CUgraph) -> int:
    return ok(api.cuGraphGetNodes(graph, 0))[1]


def another(api: OpenApi) -> CUstream:
    return ok(api.cuStreamCreateWithPriority(1, 0))


def test_a_captured_launch_does_not_run(api: OpenApi, stream: CUstream, module: CUmodule) -> None:
    (increment,) = functions(api, module, "increment")
    memory = ok(api.cuMemAlloc(4))
    ok(api.cuMemsetD32Async(memory, 5, 1, LEGACY))
    ok(api.cuStreamSynchronize(LEGACY))
    begin(api, stream)
    ok(launch(api, increment, Parameters(c_uint64(int(memory))), stream=stream))
    graph = end(api, stream)
    assert node_count(api, graph) == 1
    assert download(api, memory, 1).tolist() == [5]
    executable = ok(api.cuGraphInstantiate(graph, 0))
    for _ in range(3):
        ok(api.cuGraphLaunch(executable, stream))
    ok(api.cuStreamSynchronize(stream))
    assert download(api, memory, 1).tolist() == [8]


def test_a_captured_launch_keeps_its_parameters(
    api: OpenApi, stream: CUstream, module: CUmodule
) -> None:
    (fill,) = functions(api, module, "fill")
    memory = ok(api.cuMemAlloc(4))
    value = c_uint32(11)
    parameters = Parameters(c_uint64(int(memory)), value, c_uint8(0))
    begin(api, stream)
    ok(launch(api, fill, parameters, stream=stream))
    value.value = 99
    executable = ok(api.cuGraphInstantiate(end(api, stream), 0))
    ok(api.cuGraphLaunch(executable, stream))
    ok(api.cuStreamSynchronize(stream))
    assert download(api, memory, 1).tolist() == [11]


def test_status_goes_with_the_capture(api: OpenApi, stream: CUstream) -> None:
    assert ok(api.cuStreamIsCapturing(stream)) == NONE
    begin(api, stream)
    assert ok(api.cuStreamIsCapturing(stream)) == ACTIVE
    assert code(api.cuStreamBeginCapture(stream, GLOBAL)) == 401
    assert ok(api.cuStreamIsCapturing(stream)) == ACTIVE
    end(api, stream)
    assert ok(api.cuStreamIsCapturing(stream)) == NONE
    assert code(api.cuStreamEndCapture(stream)) == 401


def test_the_legacy_stream_cannot_be_captured_the_per_thread_one_can(
    api: OpenApi, context: CUcontext
) -> None:
    for number in (0, 1):
        assert code(api.cuStreamBeginCapture(CUstream(number), GLOBAL)) == 900
        assert code(api.cuStreamEndCapture(CUstream(number))) == 401
    begin(api, CUstream(2))
    end(api, CUstream(2))


@MODES
def test_synchronising_a_capturing_stream_invalidates_it(
    api: OpenApi, stream: CUstream, module: CUmodule, mode: CUstreamCaptureMode
) -> None:
    (empty,) = functions(api, module, "empty")
    for wait in (api.cuStreamSynchronize, api.cuStreamQuery):
        begin(api, stream, mode)
        assert code(wait(stream)) == 900
        assert ok(api.cuStreamIsCapturing(stream)) == INVALIDATED
        assert code(launch(api, empty, stream=stream)) == 901
        assert code(api.cuStreamEndCapture(stream)) == 901
        assert ok(api.cuStreamIsCapturing(stream)) == NONE
        assert code(launch(api, empty, stream=stream)) == 0


@MODES
def test_synchronising_the_context_is_rejected_in_every_mode(
    api: OpenApi, stream: CUstream, mode: CUstreamCaptureMode
) -> None:
    begin(api, stream, mode)
    assert code(api.cuCtxSynchronize()) == 900
    assert code(api.cuStreamEndCapture(stream)) == 901


_Prepared = Callable[[OpenApi], Callable[[], tuple[CUresult, *tuple[object, ...]]]]


def _with_memory(api: OpenApi) -> Callable[[], tuple[CUresult]]:
    memory = ok(api.cuMemAlloc(64))
    return lambda: api.cuMemFree(memory)


def _with_module(api: OpenApi) -> Callable[[], tuple[CUresult]]:
    module = load(api, EMPTY)
    return lambda: api.cuModuleUnload(module)


def _with_host(api: OpenApi) -> Callable[[], tuple[CUresult]]:
    host = ok(api.cuMemHostAlloc(64, 0))
    return lambda: api.cuMemFreeHost(host)


def _with_stream(
    use: Callable[[OpenApi, CUstream], tuple[CUresult, *tuple[object, ...]]],
) -> _Prepared:
    def prepare(api: OpenApi) -> Callable[[], tuple[CUresult, *tuple[object, ...]]]:
        other = another(api)
        return lambda: use(api, other)

    return prepare


def _with_event(use: Callable[[OpenApi, CUevent], tuple[CUresult]]) -> _Prepared:
    def prepare(api: OpenApi) -> Callable[[], tuple[CUresult]]:
        event = ok(api.cuEventCreate(0))
        ok(api.cuEventRecord(event, another(api)))
        ok(api.cuEventSynchronize(event))
        return lambda: use(api, event)

    return prepare


def _with_graph(api: OpenApi) -> Callable[[], tuple[CUresult, *tuple[object, ...]]]:
    other = another(api)
    begin(api, other)
    graph = end(api, other)
    return lambda: api.cuGraphInstantiate(graph, 0)


def _trim(api: OpenApi) -> Callable[[], tuple[CUresult]]:
    pool = ok(api.cuDeviceGetDefaultMemPool(ok(api.cuCtxGetDevice())))
    return lambda: api.cuMemPoolTrimTo(pool, 0)


UNSAFE: dict[str, _Prepared] = {
    "cuMemAlloc": lambda api: lambda: api.cuMemAlloc(64),
    "cuMemFree": _with_memory,
    "cuMemHostAlloc": lambda api: lambda: api.cuMemHostAlloc(64, 0),
    "cuMemFreeHost": _with_host,
    "cuModuleUnload": _with_module,
    "cuStreamSynchronize": _with_stream(lambda api, s: api.cuStreamSynchronize(s)),
    "cuStreamQuery": _with_stream(lambda api, s: api.cuStreamQuery(s)),
    "cuMemAllocAsync": _with_stream(lambda api, s: api.cuMemAllocAsync(64, s)),
    "cuEventQuery": _with_event(lambda api, e: api.cuEventQuery(e)),
    "cuEventSynchronize": _with_event(lambda api, e: api.cuEventSynchronize(e)),
    "cuGraphInstantiate": _with_graph,
    "cuMemPoolTrimTo": _trim,
    "legacy cuStreamSynchronize": lambda api: lambda: api.cuStreamSynchronize(LEGACY),
}


@all_rows
@MODES
@pytest.mark.parametrize("prepare", UNSAFE.values(), ids=UNSAFE)
def test_a_call_that_may_synchronise_is_for_relaxed_captures_only(
    api: OpenApi, stream: CUstream, mode: CUstreamCaptureMode, prepare: _Prepared
) -> None:
    call = prepare(api)
    begin(api, stream, mode)
    found = int(call()[0])
    if mode == RELAXED:
        assert found == 0
        end(api, stream)
    else:
        assert found == 900
        assert code(api.cuStreamEndCapture(stream)) == 901


def test_what_does_not_synchronise_is_allowed(
    api: OpenApi, context: CUcontext, stream: CUstream, module: CUmodule
) -> None:
    (empty,) = functions(api, module, "empty")
    event, other = ok(api.cuEventCreate(0)), another(api)
    host = np.zeros(16, np.uint8)
    memory = ok(api.cuMemAlloc(16))
    begin(api, stream)
    ok(launch(api, empty, stream=other))
    ok(launch(api, empty))
    ok(api.cuMemGetInfo())
    ok(api.cuEventRecord(event, other))
    ok(api.cuEventDestroy(event))
    ok(api.cuStreamDestroy(another(api)))
    ok(api.cuModuleGetFunction(module, b"fill"))
    ok(api.cuModuleLoadData(b".version 7.8\n.target sm_70\n.address_size 64\n" + EMPTY.encode()))
    ok(api.cuMemcpyHtoDAsync(memory, host.ctypes.data, 16, LEGACY))
    ok(api.cuCtxPushCurrent(context))
    ok(api.cuCtxPopCurrent())
    assert node_count(api, end(api, stream)) == 0


def test_a_rejected_launch_invalidates_a_rejected_copy_does_not(
    api: OpenApi, stream: CUstream, module: CUmodule
) -> None:
    (empty,) = functions(api, module, "empty")
    host, nowhere = np.zeros(8, np.uint8), CUdeviceptr(0x1000)
    begin(api, stream)
    assert code(api.cuMemcpyHtoDAsync(nowhere, host.ctypes.data, 8, stream)) == 1
    assert code(api.cuMemAllocAsync(1 << 46, stream)) == 2
    assert code(api.cuMemFreeAsync(nowhere, stream)) == 1
    assert ok(api.cuStreamIsCapturing(stream)) == ACTIVE
    assert code(launch(api, empty, grid=(0, 1, 1), stream=stream)) == 1
    assert code(api.cuStreamEndCapture(stream)) == 901


def test_nothing_is_recorded_for_no_bytes(api: OpenApi, stream: CUstream) -> None:
    memory = ok(api.cuMemAlloc(16))
    begin(api, stream)
    ok(api.cuMemcpyDtoDAsync(memory, memory, 0, stream))
    ok(api.cuMemsetD8Async(memory, 0, 0, stream))
    assert node_count(api, end(api, stream)) == 0


def fork_and_join(api: OpenApi, stream: CUstream, empty: CUfunction) -> CUstream:
    """Begin a capture in which another stream runs a kernel and is joined; gives that stream."""
    other, fork, join = another(api), ok(api.cuEventCreate(0)), ok(api.cuEventCreate(0))
    begin(api, stream)
    ok(launch(api, empty, stream=stream))
    ok(api.cuEventRecord(fork, stream))
    ok(api.cuStreamWaitEvent(other, fork, 0))
    assert ok(api.cuStreamIsCapturing(other)) == ACTIVE
    ok(launch(api, empty, stream=other))
    ok(api.cuEventRecord(join, other))
    ok(api.cuStreamWaitEvent(stream, join, 0))
    return other


def test_streams_fork_and_join_by_events(api: OpenApi, stream: CUstream, module: CUmodule) -> None:
    (empty,) = functions(api, module, "empty")
    other = fork_and_join(api, stream, empty)
    ok(launch(api, empty, stream=stream))
    assert node_count(api, end(api, stream)) == 3
    assert ok(api.cuStreamIsCapturing(other)) == NONE


def test_work_after_the_join_is_unjoined(api: OpenApi, stream: CUstream, module: CUmodule) -> None:
    (empty,) = functions(api, module, "empty")
    other = fork_and_join(api, stream, empty)
    ok(launch(api, empty, stream=other))
    assert code(api.cuStreamEndCapture(stream)) == 904
    assert ok(api.cuStreamIsCapturing(stream)) == NONE
    assert ok(api.cuStreamIsCapturing(other)) == NONE


def test_a_fork_without_work_needs_no_join(
    api: OpenApi, stream: CUstream, module: CUmodule
) -> None:
    (empty,) = functions(api, module, "empty")
    other, fork = another(api), ok(api.cuEventCreate(0))
    begin(api, stream)
    ok(launch(api, empty, stream=stream))
    ok(api.cuEventRecord(fork, stream))
    ok(api.cuStreamWaitEvent(other, fork, 0))
    assert node_count(api, end(api, stream)) == 1


def test_a_capture_ends_where_it_began(api: OpenApi, stream: CUstream, module: CUmodule) -> None:
    other, fork = another(api), ok(api.cuEventCreate(0))
    begin(api, stream)
    ok(api.cuEventRecord(fork, stream))
    ok(api.cuStreamWaitEvent(other, fork, 0))
    assert code(api.cuStreamEndCapture(other)) == 903
    assert ok(api.cuStreamIsCapturing(stream)) == INVALIDATED
    assert code(api.cuStreamEndCapture(stream)) == 901


def test_waiting_for_outside_work_is_isolation_broken(api: OpenApi, stream: CUstream) -> None:
    outside, never = ok(api.cuEventCreate(0)), ok(api.cuEventCreate(0))
    ok(api.cuEventRecord(outside, another(api)))
    begin(api, stream)
    assert code(api.cuStreamWaitEvent(stream, never, 0)) == 0
    assert code(api.cuStreamWaitEvent(stream, outside, 0)) == 905
    assert code(api.cuStreamEndCapture(stream)) == 901
    begin(api, stream)
    assert code(api.cuStreamWaitEvent(stream, outside, 1)) == 0
    assert node_count(api, end(api, stream)) == 1


def test_captures_do_not_merge(api: OpenApi, stream: CUstream) -> None:
    other, event = another(api), ok(api.cuEventCreate(0))
    begin(api, stream)
    ok(api.cuEventRecord(event, stream))
    begin(api, other)
    assert code(api.cuStreamWaitEvent(other, event, 0)) == 902
    assert code(api.cuStreamEndCapture(stream)) == 901
    assert code(api.cuStreamEndCapture(other)) == 901


def test_an_event_of_a_capture_cannot_be_looked_at(api: OpenApi, stream: CUstream) -> None:
    for look in (api.cuEventQuery, api.cuEventSynchronize):
        event = ok(api.cuEventCreate(0))
        begin(api, stream)
        ok(api.cuEventRecord(event, stream))
        assert code(api.cuEventElapsedTime(event, event)) == 907
        assert ok(api.cuStreamIsCapturing(stream)) == ACTIVE
        assert code(look(event)) == 907
        assert code(api.cuStreamEndCapture(stream)) == 901


def test_an_event_of_an_ended_capture_is_an_invalid_value_until_recorded_again(
    api: OpenApi, stream: CUstream
) -> None:
    event = ok(api.cuEventCreate(0))
    begin(api, stream)
    ok(api.cuEventRecord(event, stream))
    end(api, stream)
    assert code(api.cuEventQuery(event)) == 1
    assert code(api.cuEventSynchronize(event)) == 1
    assert code(api.cuEventElapsedTime(event, event)) == 1
    assert code(api.cuStreamWaitEvent(another(api), event, 0)) == 1
    ok(api.cuEventRecord(event, stream))
    assert code(api.cuEventSynchronize(event)) == 0


@MODES
def test_the_legacy_stream_breaks_the_capture_of_a_stream_that_blocks_with_it(
    api: OpenApi, context: CUcontext, module: CUmodule, mode: CUstreamCaptureMode
) -> None:
    (empty,) = functions(api, module, "empty")
    blocking = ok(api.cuStreamCreateWithPriority(0, 0))
    begin(api, blocking, mode)
    assert code(launch(api, empty)) == 906
    assert code(api.cuStreamIsCapturing(LEGACY)) == 906
    assert code(api.cuStreamSynchronize(LEGACY)) == 906
    assert code(api.cuStreamEndCapture(blocking)) == 901
    assert code(launch(api, empty)) == 0


@MODES
def test_asking_the_legacy_stream_leaves_the_capture_of_a_blocking_stream_as_it_is(
    api: OpenApi, context: CUcontext, module: CUmodule, mode: CUstreamCaptureMode
) -> None:
    (empty,) = functions(api, module, "empty")
    blocking = ok(api.cuStreamCreateWithPriority(0, 0))
    begin(api, blocking, mode)
    assert code(api.cuStreamIsCapturing(LEGACY)) == 906
    assert ok(api.cuStreamIsCapturing(blocking)) == ACTIVE
    ok(launch(api, empty, stream=blocking))
    ok(api.cuGraphDestroy(ok(api.cuStreamEndCapture(blocking))))


def test_the_legacy_stream_does_not_join_a_capture(api: OpenApi, stream: CUstream) -> None:
    event = ok(api.cuEventCreate(0))
    begin(api, stream)
    ok(api.cuEventRecord(event, stream))
    assert code(api.cuStreamWaitEvent(LEGACY, event, 0)) == 906
    assert code(api.cuStreamEndCapture(stream)) == 901


def test_a_capturing_stream_does_not_take_a_graph(api: OpenApi, stream: CUstream) -> None:
    begin(api, stream)
    executable = ok(api.cuGraphInstantiate(end(api, stream), 0))
    begin(api, stream)
    assert code(api.cuGraphLaunch(executable, stream)) == 900
    assert code(api.cuStreamEndCapture(stream)) == 901


def test_a_destroyed_stream_gives_its_capture_up(api: OpenApi, context: CUcontext) -> None:
    stream = another(api)
    begin(api, stream)
    assert code(api.cuStreamDestroy(stream)) == 0
    assert code(api.cuMemAlloc(64)) == 0


def test_a_forked_stream_that_is_destroyed_leaves_its_work_in_the_capture(
    api: OpenApi, stream: CUstream, module: CUmodule
) -> None:
    (empty,) = functions(api, module, "empty")
    other = fork_and_join(api, stream, empty)
    assert code(api.cuStreamDestroy(other)) == 0
    assert ok(api.cuStreamIsCapturing(stream)) == ACTIVE
    ok(launch(api, empty, stream=stream))
    assert node_count(api, end(api, stream)) == 3


def test_the_work_of_a_destroyed_stream_must_be_joined(
    api: OpenApi, stream: CUstream, module: CUmodule
) -> None:
    (empty,) = functions(api, module, "empty")
    other = fork_and_join(api, stream, empty)
    ok(launch(api, empty, stream=other))
    assert code(api.cuStreamDestroy(other)) == 0
    assert code(api.cuStreamEndCapture(stream)) == 904


def in_thread(api: OpenApi, context: CUcontext, work: Callable[[], None]) -> None:
    """Run `work` in another thread with a current context; its failure is this test's."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            ok(api.cuCtxSetCurrent(context))
            work()
        except BaseException as error:  # told below
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize(("mode", "allocates"), [(GLOBAL, 900), (THREAD_LOCAL, 0), (RELAXED, 0)])
def test_other_threads_are_bound_by_global_captures_alone(
    api: OpenApi,
    context: CUcontext,
    stream: CUstream,
    mode: CUstreamCaptureMode,
    allocates: int,
) -> None:
    begin(api, stream, mode)

    def work() -> None:
        assert code(api.cuMemAlloc(64)) == allocates

    in_thread(api, context, work)
    assert code(api.cuStreamEndCapture(stream)) == (901 if allocates else 0)


@pytest.mark.parametrize(("mode", "ends"), [(GLOBAL, 908), (THREAD_LOCAL, 908), (RELAXED, 0)])
def test_only_a_relaxed_capture_is_ended_by_another_thread(
    api: OpenApi, context: CUcontext, stream: CUstream, mode: CUstreamCaptureMode, ends: int
) -> None:
    begin(api, stream, mode)

    def work() -> None:
        assert code(api.cuStreamEndCapture(stream)) == ends

    in_thread(api, context, work)
    assert ok(api.cuStreamIsCapturing(stream)) == NONE
    assert code(api.cuStreamEndCapture(stream)) == 401


def test_a_capture_reaches_over_contexts_of_a_device(
    api: OpenApi, device: CUdevice, context: CUcontext, stream: CUstream
) -> None:
    event = ok(api.cuEventCreate(0))
    other = ok(api.cuCtxCreate(None, 0, device))
    foreign = another(api)
    begin(api, stream)
    ok(api.cuEventRecord(event, stream))
    ok(api.cuStreamWaitEvent(foreign, event, 0))
    assert ok(api.cuStreamIsCapturing(foreign)) == ACTIVE
    assert code(api.cuCtxSynchronize()) == 900
    assert code(api.cuStreamEndCapture(stream)) == 901
    ok(api.cuCtxDestroy(other))


def test_a_fault_in_a_graph_is_reported_by_its_launch(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    (increment,) = functions(emulator, load(emulator, INCREMENT), "increment")
    stream = another(emulator)
    begin(emulator, stream)
    ok(launch(emulator, increment, Parameters(c_uint64(64)), stream=stream))
    executable = ok(emulator.cuGraphInstantiate(end(emulator, stream), 0))
    assert code(emulator.cuGraphLaunch(executable, stream)) == 700
    assert "increment" in str(emulator.last_fault)
