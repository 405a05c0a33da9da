"""A failing call is told by its own name, and what it concerned is usable or gone afterwards."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import cudadrv
from cudadrv import Stream, emulator
from cudadrv.driver import deferred_release
from cudadrv.errors import CudaError, InvalidValueError, NotSupportedError, UnknownError
from tests.noted_calls import calls_of

INVALID, NOT_SUPPORTED = 1, 801


@pytest.fixture
def machine() -> Iterator[emulator.Emulator]:
    with emulator.session() as machine:
        yield machine


@pytest.fixture
def stream(machine: emulator.Emulator) -> Stream:
    return cudadrv.cuda_context_for(0).new_stream()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[CudaError]:
    """The errors that reach sys.unraisablehook."""
    errors: list[CudaError] = []

    def hook(args: sys.UnraisableHookArgs) -> None:
        assert isinstance(args.exc_value, CudaError)
        args.exc_value.__traceback__ = None  # its frames hold what is destroyed
        errors.append(args.exc_value)

    monkeypatch.setattr(sys, "unraisablehook", hook)
    return errors


class Foreign:
    """Memory of another library, with its stream."""

    def __init__(self, array: cudadrv.DeviceArray[np.uint32]) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__


def test_a_capture_that_rejects_to_end_is_ended(machine: emulator.Emulator, stream: Stream) -> None:
    array = stream.zeros(4, np.uint32)
    with (
        machine.fail("cuStreamEndCapture"),
        pytest.raises(UnknownError, match="ending the capture"),
        stream.capture(),
    ):
        stream.fill(array, 1)
    left = machine.live_objects()
    assert (left["capture"], left["graph"]) == (0, 0)
    with stream.capture() as graph:
        stream.fill(array, 2)
    graph.instantiate().launch(stream)
    assert stream.to_host(array).tolist() == [2] * 4


def test_a_capture_is_ended_once_however_it_is_lost(
    machine: emulator.Emulator, stream: Stream
) -> None:
    with calls_of("cuStreamEndCapture") as ends:
        with pytest.raises(CudaError, match="capturing"), stream.capture():
            stream.synchronize()
        with pytest.raises(ZeroDivisionError), stream.capture():
            raise ZeroDivisionError
        dropped = stream.capture()
        dropped.__enter__()
        del dropped
        gc.collect()
    assert [code for _, code in ends] == [901, 0, 0]


@pytest.mark.parametrize("function", ["cuEventRecord", "cuStreamWaitEvent"])
def test_waiting_for_another_library_names_the_call_that_failed(
    machine: emulator.Emulator, stream: Stream, function: str
) -> None:
    foreign = Foreign(stream.zeros(4, np.uint32))
    with (
        stream.context.new_stream() as other,
        machine.fail(function, with_=NOT_SUPPORTED),
        pytest.raises(NotSupportedError, match="ordering <Stream") as caught,
    ):
        other.import_array(foreign)
    assert caught.value.call == function


@pytest.mark.parametrize("function", ["cuStreamIsCapturing", "cuStreamSynchronize"])
def test_waiting_for_another_library_in_a_capture_names_the_call_that_failed(
    machine: emulator.Emulator, stream: Stream, function: str
) -> None:
    foreign = Foreign(stream.zeros(4, np.uint32))
    with (
        stream.context.new_stream() as other,
        machine.fail(function, with_=NOT_SUPPORTED),
        pytest.raises(NotSupportedError) as caught,
        other.capture(),
    ):
        other.import_array(foreign)
    assert caught.value.call == function


def test_work_whose_stream_a_trace_could_not_query_is_counted(
    machine: emulator.Emulator, stream: Stream, tmp_path: Path
) -> None:
    array = stream.zeros(4, np.uint32)
    path = tmp_path / "trace.json"
    with cudadrv.trace(path), machine.fail("cuStreamIsCapturing"):
        stream.fill(array, 1)
    untimed = json.loads(path.read_text())["otherData"]
    assert untimed == {"device 0": "1 calls queued work that could not be timed"}


def test_what_a_trace_cannot_destroy_is_reported(
    machine: emulator.Emulator, stream: Stream, told: list[CudaError], tmp_path: Path
) -> None:
    array, path = stream.zeros(4, np.uint32), tmp_path / "trace.json"
    with machine.fail("cuEventDestroy", with_=INVALID), cudadrv.trace(path):
        stream.fill(array, 1)
    assert [(error.call, error.code) for error in told] == [("cuEventDestroy", INVALID)]
    with (
        machine.fail("cuStreamDestroy", with_=INVALID),
        pytest.raises(InvalidValueError, match="destroying a stream of a trace"),
        cudadrv.trace(path),
    ):
        stream.fill(array, 1)
    assert len(told) == 1
    assert json.loads(path.read_text())["traceEvents"]
    assert machine.live_objects()["event"] == 1  # that of the first trace


def test_an_owner_stays_where_the_driver_does_not_say_whether_work_is_done(
    machine: emulator.Emulator, stream: Stream
) -> None:
    array = stream.import_array(Foreign(stream.zeros(4, np.uint32)))
    deferred_release.run_deferred()
    with machine.fail("cuStreamQuery", with_=NOT_SUPPORTED):
        del array
    assert deferred_release.waiting_count() == 1
    stream.synchronize()
    assert not deferred_release.waiting_count()


def test_an_error_of_a_release_keeps_no_stream(
    machine: emulator.Emulator, stream: Stream, told: list[CudaError]
) -> None:
    other = stream.context.new_stream()
    array = stream.zeros(4, np.uint32)
    other.to_host(array)
    with machine.fail("cuEventRecord", with_=INVALID) as fault:
        del array
    assert fault.hits == 1
    (error,) = told
    assert isinstance(error, InvalidValueError)
    stream.close()
    other.close()
    gc.collect()
    assert machine.live_objects()["stream"] == 0


def test_a_release_in_the_middle_of_another_call_is_reported_as_any(
    machine: emulator.Emulator, stream: Stream, told: list[CudaError]
) -> None:
    memory = [stream.zeros(4, np.uint32)]
    machine.on_call("cuMemAllocAsync", memory.clear)
    with machine.fail("cuMemFreeAsync", with_=INVALID):
        kept = stream.zeros(4, np.uint32)
    assert [(error.call, error.code) for error in told] == [("cuMemFreeAsync", INVALID)]
    assert stream.to_host(kept).tolist() == [0] * 4
