"""Streams of other libraries, and functions of the host in a stream's order."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from cuda.bindings.driver import CUstream

import cudadrv
from cudadrv import LaunchConfig
from cudadrv.driver.driver_selection import current
from cudadrv.errors import (
    ClosedError,
    CudaError,
    InvalidValueError,
    WrongDeviceError,
)
from tests.current_context import within

from .conftest import compile_module


class Theirs:
    """A stream as another library has it."""

    def __init__(self, stream: cudadrv.Stream) -> None:
        self._stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, int(self._stream.handle)


def test_a_stream_of_another_library_does_our_work(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    source = 'extern "C" __global__ void add(int* x, int n) { x[threadIdx.x] += n; }'
    add = compile_module(context, source).kernel("add")
    for form in (Theirs(stream), stream.handle, int(stream.handle)):
        with context.external_stream(form) as borrowed:
            assert borrowed.__cuda_stream__() == stream.__cuda_stream__()
            array = borrowed.to_device(np.arange(4, dtype="i4"))
            add.launch(borrowed, LaunchConfig(1, 4), array, 10)
            with borrowed.capture() as graph:
                add.launch(borrowed, LaunchConfig(1, 4), array, 100)
            graph.instantiate().launch(borrowed)
            event = borrowed.record()
            assert borrowed.to_host(array).tolist() == [110, 111, 112, 113]
            event.synchronize()
        assert borrowed.closed
        with pytest.raises(ClosedError):
            borrowed.synchronize()
        array.close()
    assert stream.to_host(stream.zeros(1, "i4")).tolist() == [0]  # theirs lives on


def test_a_borrowed_stream_keeps_its_owner(context: cudadrv.Context) -> None:
    theirs = Theirs(context.new_stream())
    alive = weakref.ref(theirs)
    borrowed = context.external_stream(theirs)
    del theirs
    gc.collect()
    assert alive() is not None
    assert borrowed.is_done() in (True, False)
    del borrowed
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("use", ["array", "graph"])
def test_memory_that_was_used_on_a_stream_outlives_it_once_that_is_closed(
    context: cudadrv.Context, stream: cudadrv.Stream, use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", errors.append)
    api = current().api
    with within(context):
        code, theirs = api.cuStreamCreateWithPriority(1, 0)
    assert not code
    needed: list[object] = []
    with context.external_stream(int(theirs)) as borrowed:
        array = borrowed.to_device(np.arange(1000, dtype="i4"))
        other = stream.to_device(np.arange(1000, dtype="i4"))
        borrowed.fill(other, 5)  # it belongs to another stream, and is in use on this one
        if use == "graph":
            with borrowed.capture() as graph:
                borrowed.fill(array, 7)
            executable = graph.instantiate()
            executable.launch(borrowed)
            needed += [graph, executable]
            del graph, executable
    assert api.cuStreamDestroy(theirs) == (0,)
    assert stream.to_host(array).tolist() == ([7] * 1000 if use == "graph" else list(range(1000)))
    assert stream.to_host(other).tolist() == [5] * 1000
    if use == "array":
        array.close()
    del array, other, needed[:]
    gc.collect()
    stream.synchronize()
    context.synchronize()
    assert errors == []


def test_the_default_and_the_legacy_stream_are_the_default_stream(
    context: cudadrv.Context,
) -> None:
    for legacy in (context.default_stream, 0, 1, CUstream(0)):
        assert context.external_stream(legacy) is context.default_stream
    with pytest.raises(InvalidValueError, match="per-thread default stream"):
        context.external_stream(2)


def test_what_is_no_stream_is_rejected(context: cudadrv.Context, stream: cudadrv.Stream) -> None:
    class Newer:
        def __cuda_stream__(self) -> tuple[int, int]:
            return 1, int(stream.handle)

    class Other:
        def __cuda_stream__(self) -> int:
            return int(stream.handle)

    with pytest.raises(
        TypeError, match="a str is not a stream: it is not an integer and has no __"
    ):
        context.external_stream("0")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match=r"the __cuda_stream__ of a Newer is \(1, "):
        context.external_stream(Newer())
    with pytest.raises(TypeError, match="the __cuda_stream__ of an? Other is"):
        context.external_stream(Other())  # type: ignore[arg-type]  # what is tested


def test_a_stream_of_another_context_is_rejected(
    context: cudadrv.Context, second_context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    with pytest.raises(WrongDeviceError, match="belongs to another context than"):
        second_context.external_stream(stream)
    with pytest.raises(WrongDeviceError, match="belongs to another context than"):
        second_context.external_stream(Theirs(stream))


def test_a_stream_waits_for_a_stream_of_another_library(context: cudadrv.Context) -> None:
    with context.new_stream() as first, context.new_stream() as second:
        for value in range(5):
            array = first.zeros(1 << 20, "i4")
            first.fill(array, value)
            target = second.empty(1 << 20, "i4")
            second.wait(Theirs(first))
            second.copy(target, array)
            assert (second.to_host(target) == value).all()


def test_a_stream_waits_for_the_legacy_stream(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    class Default:
        """PyTorch's usual current stream says 0."""

        def __init__(self, number: int) -> None:
            self._number = number

        def __cuda_stream__(self) -> tuple[int, int]:
            return 0, self._number

    for number in (0, 1, 2):
        stream.wait(Default(number))
    array = context.default_stream.zeros(1 << 20, "i4")
    context.default_stream.fill(array, 3)
    stream.wait(Default(0))
    assert (stream.to_host(array) == 3).all()


def test_a_function_is_called_in_the_order_of_the_stream(stream: cudadrv.Stream) -> None:
    seen: list[tuple[int, float]] = []
    pinned = cudadrv.pinned_empty(1, "f4")
    array = stream.zeros(1, "f4")
    for value in range(20):
        stream.fill(array, value)
        stream.to_host(array, pinned, wait=False)
        stream.call_on_host(lambda n: seen.append((n, float(pinned[0]))), value)
    stream.synchronize()
    assert seen == [(value, float(value)) for value in range(20)]


def test_what_a_function_raises_is_reported_and_the_stream_goes_on(
    stream: cudadrv.Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: reported.append(args.exc_value))
    failed = ZeroDivisionError("in a host function")
    done = threading.Event()

    def fail() -> None:
        raise failed

    stream.call_on_host(fail)
    stream.call_on_host(done.set)
    stream.synchronize()
    assert done.is_set()
    assert reported == [failed]
    assert stream.to_host(stream.zeros(1, "i4")).tolist() == [0]


def test_a_function_that_calls_the_driver_is_reported(stream: cudadrv.Stream) -> None:
    if not stream.context.device.is_emulated:
        pytest.skip("a driver may deadlock; the emulator refuses")
    raised: list[BaseException] = []

    def allocate() -> None:
        try:
            stream.alloc(4)
        except CudaError as error:
            raised.append(error)

    stream.call_on_host(allocate)
    stream.synchronize()
    assert "CUDA_ERROR_NOT_PERMITTED" in str(raised[0])
    assert "makes no CUDA calls" in str(raised[0])
