"""After what a launch with another library's memory comes, with the emulator's work late."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from operator import attrgetter

import pytest
from cuda.bindings.driver import CUdeviceptr, CUstream

import cudadrv
import ptx
from cudadrv import LaunchConfig, emulator
from cudadrv.interop import Reader, register
from cudadrv.memory.array import AnyDeviceArray
from tests.current_context import within
from tests.noted_calls import failed_calls

SOURCE = 'extern "C" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }'


class Theirs:
    """An array of a library, and what that library's current stream is."""

    current = 0

    def __init__(self, array: AnyDeviceArray) -> None:
        self.pointer, self.place = array.ptr, array.context.ordinal


register(Theirs, Reader(attrgetter("pointer"), attrgetter("place"), lambda _: Theirs.current))


@pytest.fixture
def context() -> Iterator[cudadrv.Context]:
    with emulator.session(order="late"):
        yield cudadrv.cuda_context_for(0)


def launcher_on(stream: cudadrv.Stream) -> cudadrv.Launcher:
    context = stream.context
    assert isinstance(context, cudadrv.Context)
    image = ptx.compile(SOURCE, ptx.CompileOptions(target=context.target))
    launcher = context.load_module(image).kernel("twice").bind(stream, LaunchConfig(1, 4))
    array = stream.zeros(4, "f4")
    for _ in range(2):  # the code for such an argument is there then
        launcher(Theirs(array))
    stream.synchronize()
    return launcher


def fill_on_legacy(context: cudadrv.Context, array: AnyDeviceArray) -> None:
    """Let the legacy stream set all elements to 5."""
    fill = context.device.driver.api.cuMemsetD32Async
    five = int.from_bytes(struct.pack("<f", 5), "little")
    with within(context):
        assert fill(CUdeviceptr(array.ptr), five, array.size, CUstream(0)) == (0,)


@pytest.fixture
def producer(context: cudadrv.Context) -> Iterator[cudadrv.Stream]:
    producer = context.new_stream()
    yield producer
    producer.synchronize()
    Theirs.current = 0


def test_a_launch_comes_after_the_librarys_stream(
    context: cudadrv.Context, producer: cudadrv.Stream
) -> None:
    stream = context.new_stream()
    launcher = launcher_on(stream)
    array = producer.zeros(4, "f4")
    producer.fill(array, 5)
    Theirs.current = int(producer.handle)
    launcher(Theirs(array))
    stream.synchronize()
    producer.synchronize()
    assert producer.to_host(array).tolist() == [10.0] * 4


def test_a_launch_whose_user_orders_the_stream_waits_for_nothing(
    context: cudadrv.Context, producer: cudadrv.Stream
) -> None:
    stream = context.new_stream()
    launcher = launcher_on(stream)
    array = producer.zeros(4, "f4")
    producer.synchronize()
    producer.fill(array, 5)
    Theirs.current = int(producer.handle)
    with stream.unordered():
        launcher(Theirs(array))
    stream.synchronize()
    producer.synchronize()
    assert producer.to_host(array).tolist() == [5.0] * 4


@pytest.mark.parametrize("legacy", [0, 1])
@pytest.mark.parametrize("on_default", [True, False])
def test_the_legacy_stream_comes_first_on_every_stream(
    context: cudadrv.Context, legacy: int, on_default: bool
) -> None:
    stream = context.default_stream if on_default else context.new_stream()
    launcher = launcher_on(stream)
    array = stream.zeros(4, "f4")
    stream.synchronize()
    Theirs.current = legacy
    fill_on_legacy(context, array)
    launcher(Theirs(array))
    stream.synchronize()
    assert stream.to_host(array).tolist() == [10.0] * 4


@pytest.mark.parametrize("is_current", [True, False])
def test_a_context_of_ones_own_waits_for_the_legacy_stream_of_the_primary_one(
    context: cudadrv.Context, is_current: bool
) -> None:
    array = context.default_stream.zeros(4, "f4")
    context.default_stream.synchronize()
    with cudadrv.Context.create(0) as own:
        stream = own.default_stream
        launcher = launcher_on(stream)
        Theirs.current = 0
        fill_on_legacy(context, array)
        if is_current:  # then 0 is the legacy stream of this one
            own.bind()
        launcher(Theirs(array))
        context.bind()
        stream.synchronize()
        assert context.default_stream.to_host(array).tolist() == [10.0] * 4


def test_a_known_legacy_stream_is_the_one_of_the_primary_context_whichever_is_current(
    context: cudadrv.Context,
) -> None:
    stream = context.new_stream()
    launcher = launcher_on(stream)
    array = stream.zeros(4, "f4")
    stream.synchronize()
    with cudadrv.Context.create(0) as own:
        fill_on_legacy(context, array)
        own.bind()
        with failed_calls() as failed:
            launcher(Theirs(array))
        context.bind()
        stream.synchronize()
    assert stream.to_host(array).tolist() == [10.0] * 4
    assert failed == []


def test_a_wait_for_the_legacy_stream_waits_for_the_capture_of_another_thread(
    context: cudadrv.Context,
) -> None:
    stream, blocking = context.new_stream(), context.new_stream(blocking=True)
    launcher = launcher_on(stream)
    array, captured = stream.zeros(4, "f4"), blocking.zeros(4, "f4")
    context.synchronize()

    def launch() -> None:
        context.bind()
        launcher(Theirs(array))

    thread = threading.Thread(target=launch)
    with failed_calls() as failed, blocking.capture() as graph:
        thread.start()
        thread.join(0.02)
        is_waiting = thread.is_alive()
        blocking.fill(captured, 5)
    thread.join(60)
    assert (is_waiting, graph.node_count, failed) == (True, 1, [])


def test_a_capture_of_the_default_stream_comes_after_what_the_legacy_stream_held(
    context: cudadrv.Context,
) -> None:
    stream = context.default_stream
    launcher = launcher_on(stream)
    array = stream.zeros(4, "f4")
    stream.synchronize()
    fill_on_legacy(context, array)
    with stream.capture() as graph:
        launcher(Theirs(array))
    with context.new_stream() as other:
        graph.instantiate().launch(other)
        other.synchronize()
    assert stream.to_host(array).tolist() == [10.0] * 4
