"""Memory resources: where new memory comes from, and where it goes."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

import cudadrv
from cudadrv import using_memory
from cudadrv.driver._api import CUdeviceptr
from cudadrv.driver.driver_selection import current
from cudadrv.errors import ArgumentError, ArgumentTypeError, StreamCaptureUnsupportedError
from cudadrv.memory import (
    ArenaMemory,
    CountedMemory,
    DriverMemory,
    MemoryResource,
    MemoryStatistics,
)
from cudadrv.memory.resource import MemoryStream
from tests.patience import wait_until


def in_use(memory: CountedMemory) -> int:
    return memory.statistics().in_use_bytes


def test_every_kind_of_new_memory_comes_from_the_resource_of_the_block(
    stream: cudadrv.Stream,
) -> None:
    memory = CountedMemory()
    with using_memory(memory):
        made = [stream.empty(3, "i4"), stream.zeros(3, "i4"), stream.alloc(7)]
        made.append(stream.to_device(np.arange(5, dtype="i8")))
    outside = stream.empty(100, "i4")
    assert memory.statistics() == MemoryStatistics(71, 71, 71, 4, 0)
    last = made[-1]
    assert isinstance(last, cudadrv.DeviceArray)
    assert stream.to_host(last).tolist() == [0, 1, 2, 3, 4]
    for each in made:
        each.close()
    outside.close()
    assert memory.statistics() == MemoryStatistics(0, 71, 71, 4, 4)


def test_dropped_memory_goes_back_to_its_resource_with_its_last_view(
    stream: cudadrv.Stream,
) -> None:
    memory = CountedMemory()
    with using_memory(memory):
        array = stream.zeros(8, "i4")
    view = array[2:4]
    del array
    assert in_use(memory) == 32
    assert stream.to_host(view).tolist() == [0, 0]
    del view
    assert in_use(memory) == 0


def test_a_block_counts_before_the_stream_and_that_before_its_context() -> None:
    of_block, of_stream, of_context = (CountedMemory() for _ in range(3))
    with cudadrv.Context.create(0) as context:
        context.use_memory(of_context)
        stream, other = context.new_stream(), context.new_stream()
        stream.use_memory(of_stream)
        first, second = stream.alloc(1), other.alloc(2)
        with using_memory(of_block):
            third = stream.alloc(4)
            with using_memory(DriverMemory()):
                fourth = stream.alloc(8)
        assert [in_use(each) for each in (of_block, of_stream, of_context)] == [4, 1, 2]
        stream.use_memory(None)
        fifth = stream.alloc(16)
        context.use_memory(None)
        sixth = stream.alloc(32)
        assert [in_use(each) for each in (of_block, of_stream, of_context)] == [4, 1, 18]
        assert not any(each.closed for each in (first, second, third, fourth, fifth, sixth))
    assert [in_use(each) for each in (of_block, of_stream, of_context)] == [0, 0, 0]


def test_a_block_is_of_its_thread_alone(stream: cudadrv.Stream) -> None:
    memory = CountedMemory()
    made: list[cudadrv.DeviceBuffer] = []
    with using_memory(memory):
        thread = threading.Thread(target=lambda: made.append(stream.alloc(64)))
        thread.start()
        thread.join()
    assert len(made) == 1
    # Threads of free-threaded Python begin with the context variables of the thread that starts
    # them, unless Python is told otherwise.
    inherits = getattr(sys.flags, "thread_inherit_context", 0)
    assert in_use(memory) == (64 if inherits else 0)


def test_an_arena_reuses_memory(stream: cudadrv.Stream) -> None:
    memory = ArenaMemory()
    addresses = set()
    with using_memory(memory):
        for value in range(4):
            with stream.empty(100, "i4") as array:
                stream.fill(array, value)
                assert stream.to_host(array).tolist() == [value] * 100
                addresses.add(array.ptr)
    assert len(addresses) == 1
    assert memory.arena.statistics().hits == 3
    assert memory.arena.statistics().cached_bytes == 512
    memory.arena.close()


def test_memory_of_an_arena_is_used_on_other_streams_in_order(context: cudadrv.Context) -> None:
    memory = CountedMemory(ArenaMemory())
    with context.new_stream() as a, context.new_stream() as b, using_memory(memory):
        kept = b.empty(1000, "i4")
        for value in range(20):
            array = a.empty(1000, "i4")
            a.fill(array, value)
            b.copy(kept, array)
            array.close()
            with b.empty(1000, "i4") as again:
                b.fill(again, -1)
            assert b.to_host(kept).tolist() == [value] * 1000
        kept.close()
        assert in_use(memory) == 0


def test_memory_of_an_arena_goes_with_its_context() -> None:
    memory = ArenaMemory()
    with cudadrv.Context.create(0) as context:
        context.use_memory(memory)
        array = context.new_stream().zeros(10, "i4")
    assert array.closed
    assert memory.arena.statistics().held_bytes == 0


def test_a_capture_rejects_memory_of_a_resource(stream: cudadrv.Stream) -> None:
    memory = CountedMemory()
    with using_memory(memory), stream.capture():
        with pytest.raises(StreamCaptureUnsupportedError, match="CountedMemory on a stream that"):
            stream.alloc(64)
        with using_memory(DriverMemory()):
            stream.alloc(64).close()
    assert memory.statistics().allocations == 0


def test_memory_that_is_dropped_in_a_capture_goes_back_after_it(stream: cudadrv.Stream) -> None:
    memory = CountedMemory()
    with using_memory(memory):
        array = stream.zeros(4, "i4")
    with stream.capture():
        array.close()
        assert in_use(memory) == 16
    stream.synchronize()
    assert in_use(memory) == 0


def test_memory_of_a_resource_is_the_graphs_until_its_last_replay(stream: cudadrv.Stream) -> None:
    memory = CountedMemory()
    with using_memory(memory):
        array = stream.zeros(4, "i4")
    with stream.capture() as graph:
        stream.fill(array, 7)
    executable = graph.instantiate()
    graph.close()
    del array
    executable.launch(stream)
    assert in_use(memory) == 16
    executable.close()
    del executable

    # The driver says in a thread of its own that the graph needs it no more.
    def is_unused() -> bool:
        stream.context.synchronize()
        return in_use(memory) == 0

    wait_until(is_unused)


class Wrong:
    """Gives what is no address."""

    def __init__(self, address: object) -> None:
        self.address = address

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        return self.address  # type: ignore[return-value]  # on purpose

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        raise ValueError(f"nothing was taken at {address}")


@pytest.mark.parametrize("address", [None, 0, -8, 1.5, "x", 2**64])
def test_what_is_no_address_is_rejected(stream: cudadrv.Stream, address: object) -> None:
    with (
        using_memory(Wrong(address)),
        pytest.raises(ArgumentTypeError, match="what Wrong.allocate gave is .* give an address"),
    ):
        stream.alloc(8)


@pytest.mark.parametrize(
    "resource",
    [
        DriverMemory(),
        cudadrv.memory.CountedMemory(),
        cudadrv.memory.HookedMemory(),
        ArenaMemory(),
        cudadrv.memory.UnpooledMemory(),
    ],
    ids=lambda resource: type(resource).__name__,
)
def test_what_resources_are_given_is_checked(
    stream: cudadrv.Stream, resource: MemoryResource
) -> None:
    places: list[MemoryStream] = []
    keeping = cudadrv.memory.HookedMemory(allocated=lambda *given: places.append(given[2]))
    with using_memory(keeping):
        stream.alloc(8)
    (place,) = places
    wrong: Any
    for wrong in (-1, "x", 1.5, stream.alloc(8)):
        with pytest.raises(ArgumentError, match=r"allocate: nbytes is"):
            resource.allocate(wrong, place)
        with pytest.raises(ArgumentError, match=r"deallocate: address is"):
            resource.deallocate(wrong, 8, place)
        with pytest.raises(ArgumentError, match=r"deallocate: nbytes is"):
            resource.deallocate(1, wrong, place)


def test_what_is_no_resource_is_rejected(stream: cudadrv.Stream) -> None:
    wrong: cudadrv.memory.MemoryResource = 3  # type: ignore[assignment]  # on purpose
    with (
        pytest.raises(ArgumentTypeError, match="resource is 3, .* allocate and deallocate"),
        using_memory(wrong),
    ):
        pass
    with pytest.raises(ArgumentTypeError, match=r"Stream\.use_memory: resource is 3"):
        stream.use_memory(wrong)
    with pytest.raises(ArgumentTypeError, match=r"Context\.use_memory: resource is 3"):
        stream.context.use_memory(wrong)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_releasing_raises_reaches_the_hook(
    stream: cudadrv.Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: told.append(str(args.exc_value)))
    with using_memory(Wrong(4096)):
        stream.alloc(8).close()
    assert told == ["nothing was taken at 4096"]


def test_no_bytes_use_no_resource(stream: cudadrv.Stream) -> None:
    with using_memory(Wrong(None)):
        assert stream.empty(0, "f4").ptr == 0


class Scribbling(DriverMemory):
    """Writes over what is given back, in the order of its stream, and keeps it."""

    def __init__(self) -> None:
        self.kept: list[int] = []

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        self.kept.append(address)
        current().api.cuMemsetD8Async(CUdeviceptr(address), 0xFF, nbytes, stream.handle)


def test_memory_goes_back_after_every_stream_that_used_it() -> None:
    with cudadrv.emulator.session(order="late"):
        context = cudadrv.cuda_context_for(0)
        a, b = context.new_stream(), context.new_stream()
        scribbling = Scribbling()
        with using_memory(scribbling):
            array = a.to_device(np.arange(8))
        seen = b.empty(8, np.int64)
        a.synchronize()
        b.copy(seen, array)
        array.close()
        assert len(scribbling.kept) == 1
        a.synchronize()
        assert b.to_host(seen).tolist() == list(range(8))
