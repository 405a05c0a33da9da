"""The driver's log gives an error its reason, and never hides the error."""

from __future__ import annotations

import ctypes
import pickle
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.driver import loading
from cudadrv.driver._api import CUresult
from cudadrv.driver.driver_api import DriverApi
from cudadrv.driver.driver_log import DriverLog
from cudadrv.driver.driver_selection import current, failure
from cudadrv.driver.loading import load_cuda
from cudadrv.errors import CudaError, InvalidValueError
from tests.patience import SECONDS

INVALID = CUresult.CUDA_ERROR_INVALID_VALUE
TOO_LARGE = "One or more of block dimensions of (4096,1,1) exceeds (1024,1024,64)"


class Log:
    """A driver with a log: an iterator is the number of the first line to dump."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.reads = 0

    def write(self, *messages: str, thread: int | None = None) -> None:
        number = threading.get_ident() if thread is None else thread
        self.lines += [f"[12:46:23.854][{number}][CUDA][E] {message}" for message in messages]

    def fail(self, reason: str, call: str = "cuLaunchKernelEx") -> None:
        self.write(reason, f"Returning 1 (CUDA_ERROR_INVALID_VALUE) from {call}")

    def current(self, flags: int) -> tuple[CUresult, int]:
        assert flags == 0
        return CUresult.CUDA_SUCCESS, len(self.lines)

    def dump(self, first: int | None, buffer: bytes, size: int, flags: int) -> tuple[Any, ...]:
        assert len(buffer) == size == 25600
        assert flags == 0
        self.reads += 1
        text = "\n".join(self.lines[first or 0 :]).encode()
        ctypes.memmove(cast(Any, buffer), text, len(text))  # as the binding's `char*`
        return CUresult.CUDA_SUCCESS, first, len(text)


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def api(log: Log) -> DriverApi:
    driver_log = DriverLog(log.current, log.dump)
    fake = SimpleNamespace(driver_log=driver_log, cuGetErrorString=lambda code: (0, b"invalid"))
    return cast(DriverApi, fake)


def error_of(api: DriverApi, call: str = "cuLaunchKernelEx") -> CudaError:
    error = failure(api, INVALID, call, "launching k")
    assert isinstance(error, InvalidValueError)
    return error


def test_the_drivers_reason_is_a_line_of_the_error(api: DriverApi, log: Log) -> None:
    log.fail(TOO_LARGE)
    error = error_of(api)
    assert error.reason == TOO_LARGE
    assert str(error).splitlines()[1:3] == ["  invalid", f"  driver: {TOO_LARGE}"]
    assert pickle.loads(pickle.dumps(error)).reason == TOO_LARGE


def test_a_reason_of_two_lines_is_one_line(api: DriverApi, log: Log) -> None:
    log.write("first", "second")
    log.write("Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuLaunchKernelEx")
    assert error_of(api).reason == "first; second"


def test_lines_that_were_read_before_are_not_shown_again(api: DriverApi, log: Log) -> None:
    log.fail(TOO_LARGE)
    error_of(api)
    error = error_of(api)
    assert error.reason == ""
    assert "driver:" not in str(error)
    log.fail("another")
    assert error_of(api).reason == "another"


def test_the_reason_of_an_earlier_failed_call_is_not_shown(api: DriverApi, log: Log) -> None:
    log.fail("handled before", "cuCtxEnablePeerAccess")
    assert error_of(api).reason == ""
    log.fail("handled before", "cuCtxEnablePeerAccess")
    log.fail(TOO_LARGE)
    assert error_of(api).reason == TOO_LARGE


def test_the_reason_of_another_result_is_not_shown(api: DriverApi, log: Log) -> None:
    log.write("no memory", "Returning 2 (CUDA_ERROR_OUT_OF_MEMORY) from cuLaunchKernelEx")
    assert error_of(api).reason == ""


def test_a_version_of_the_function_is_the_function(api: DriverApi, log: Log) -> None:
    log.fail("a null context", "cuCtxPushCurrent_v2")
    assert error_of(api, "cuCtxPushCurrent").reason == "a null context"


def test_a_thread_sees_its_own_lines_alone(api: DriverApi, log: Log) -> None:
    written, read = threading.Event(), threading.Event()
    found: list[str] = []

    def other() -> None:
        log.fail("of the other thread")
        written.set()
        read.wait(SECONDS)
        found.append(error_of(api).reason)

    thread = threading.Thread(target=other)
    thread.start()
    written.wait(SECONDS)
    log.fail("of this thread")
    assert error_of(api).reason == "of this thread"
    assert error_of(api).reason == ""
    read.set()
    thread.join()
    assert found == ["of the other thread"]


def test_lines_without_a_thread_are_not_shown(api: DriverApi, log: Log) -> None:
    log.lines += ["", "the log was truncated", "[12:46:23.854][7][CUDA][E] of thread 7", "[[]"]
    assert error_of(api).reason == ""


@pytest.mark.parametrize("fault", ["dump raises", "dump fails", "current raises", "current fails"])
def test_a_failing_log_hides_no_error(log: Log, fault: str) -> None:
    def broken(*_: object) -> tuple[Any, ...]:
        if fault.endswith("raises"):
            raise RuntimeError('Function "cuLogsDumpToMemory" not found')
        return (INVALID, None, None)[: 3 if fault.startswith("dump") else 2]

    log.fail(TOO_LARGE)
    dumps = fault.startswith("dump")
    driver_log = DriverLog(log.current if dumps else broken, broken if dumps else log.dump)
    fake = SimpleNamespace(driver_log=driver_log, cuGetErrorString=lambda code: (0, b"invalid"))
    error = error_of(cast(DriverApi, fake))
    assert error.text == "invalid"
    assert error.reason == (TOO_LARGE if fault == "current fails" else "")


@pytest.mark.parametrize("has_log", [True, False])
def test_a_binding_without_the_functions_has_no_log(
    monkeypatch: pytest.MonkeyPatch, log: Log, has_log: bool
) -> None:
    fake = SimpleNamespace(CUDA_VERSION=13000, cuGetErrorString=lambda code: (0, b"invalid"))
    if has_log:
        fake.cuLogsCurrent, fake.cuLogsDumpToMemory = log.current, log.dump
    monkeypatch.setattr(loading, "bindings", fake)
    log.fail(TOO_LARGE)
    api = load_cuda()
    assert log.reads == 0
    assert error_of(api).reason == (TOO_LARGE if has_log else "")


def test_the_emulator_gives_its_reason_once() -> None:
    with emulator.session():
        stream = cudadrv.cuda_context_for(0).new_stream()
        api = current().api
        (code,) = api.cuMemsetD8Async(cast(Any, 64), 0, 8, stream.handle)
        error = failure(api, code, "cuMemsetD8Async", "filling")
    assert isinstance(error, CudaError)
    assert error.reason == ""
    assert error.text
    assert str(error).count(error.text) == 1
