"""Memory resources whose own functions ask cudadrv for memory."""

from __future__ import annotations

import threading

import pytest

import cudadrv
from cudadrv import DeviceBuffer, using_memory
from cudadrv.errors import ArgumentValueError
from cudadrv.memory import CountedMemory, DriverMemory, HookedMemory
from cudadrv.memory.resource import MemoryStream
from tests.patience import SECONDS
from tests.several_threads import all_at_once

REMEDY = r"(?s)Circular\.allocate .* using_memory\(DriverMemory\(\)\)"


def taken(stream: MemoryStream, nbytes: int) -> DeviceBuffer:
    assert isinstance(stream.owner, cudadrv.Stream)
    return stream.owner.alloc(nbytes)


class Circular:
    """Gives memory that it has of cudadrv, under the choice that leads to itself."""

    def __init__(self, depth: int | None = None) -> None:
        self.depth = depth
        self.kept: dict[tuple[int, int], DeviceBuffer] = {}
        self.source = CountedMemory()

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        if self.depth == 0:
            return self.source.allocate(nbytes, stream)
        if self.depth is not None:
            self.depth -= 1
        buffer = taken(stream, nbytes + 8)
        self.kept[buffer.ptr, nbytes] = buffer
        return buffer.ptr

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        buffer = self.kept.pop((address, nbytes), None)
        if buffer is None:
            self.source.deallocate(address, nbytes, stream)
        else:
            buffer.close()


@pytest.mark.parametrize("choice", ["block", "stream"])
def test_a_resource_that_calls_itself_raises_with_the_remedy(
    context: cudadrv.Context, choice: str
) -> None:
    memory = Circular()
    with context.new_stream() as stream:
        for _ in range(3):
            with pytest.raises(ArgumentValueError, match=REMEDY):
                if choice == "block":
                    with using_memory(memory):
                        stream.empty(3, "f4")
                else:
                    stream.use_memory(memory)
                    stream.empty(3, "f4")
        assert memory.kept == {}
        stream.use_memory(None)
        assert stream.to_host(stream.zeros(3, "f4")).tolist() == [0, 0, 0]


def test_two_resources_that_call_each_other_raise(stream: cudadrv.Stream) -> None:
    class Other(Circular):
        def allocate(self, nbytes: int, stream: MemoryStream) -> int:
            with using_memory(one if self is other else other):
                return super().allocate(nbytes, stream)

    one, other = Other(), Other()
    with using_memory(other), pytest.raises(ArgumentValueError, match=r"DriverMemory\(\)"):
        stream.alloc(8)


def test_a_hook_that_allocates_is_reported(stream: cudadrv.Stream) -> None:
    hooked = HookedMemory(allocated=lambda address, nbytes, place: stream.alloc(8).close())
    with using_memory(hooked), pytest.raises(ArgumentValueError, match=r"HookedMemory\.allocate"):
        stream.alloc(8)


def test_a_resource_may_call_itself_for_larger_pieces(stream: cudadrv.Stream) -> None:
    memory = Circular(depth=3)
    with using_memory(memory):
        buffer = stream.alloc(100)
    assert memory.source.statistics().in_use_bytes == 124
    buffer.close()
    assert memory.source.statistics().in_use_bytes == 0


def test_a_resource_may_allocate_any_amount_from_the_driver(stream: cudadrv.Stream) -> None:
    class Wrapped(Circular):
        def allocate(self, nbytes: int, stream: MemoryStream) -> int:
            with using_memory(DriverMemory()):
                return super().allocate(nbytes, stream)

    memory = Wrapped()
    with using_memory(memory):
        made = [stream.alloc(8) for _ in range(100)]
    assert len(memory.kept) == 100
    del made
    assert memory.kept == {}


def test_threads_that_allocate_at_once_are_not_mistaken_for_one(context: cudadrv.Context) -> None:
    threads = 40
    met = threading.Barrier(threads)
    done: list[int] = []

    class Meeting(DriverMemory):
        def allocate(self, nbytes: int, stream: MemoryStream) -> int:
            met.wait(SECONDS)
            return super().allocate(nbytes, stream)

    def work() -> None:
        with context.new_stream() as stream, using_memory(Meeting()):
            done.append(stream.alloc(8).nbytes)

    all_at_once([work] * threads)
    assert done == [8] * threads


def test_what_failed_is_not_counted(stream: cudadrv.Stream) -> None:
    class Failing(DriverMemory):
        fails = True

        def allocate(self, nbytes: int, stream: MemoryStream) -> int:
            if self.fails:
                raise KeyboardInterrupt
            return super().allocate(nbytes, stream)

    memory = Failing()
    with using_memory(memory):
        for _ in range(100):
            with pytest.raises(KeyboardInterrupt):
                stream.alloc(8)
        memory.fails = False
        assert stream.alloc(8).nbytes == 8


def test_a_release_that_allocates_and_releases_ends(
    stream: cudadrv.Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[BaseException | None] = []
    monkeypatch.setattr("sys.unraisablehook", lambda args: told.append(args.exc_value))

    class Taking(DriverMemory):
        def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
            try:
                with using_memory(self):
                    taken(stream, nbytes).close()
            finally:
                super().deallocate(address, nbytes, stream)

    with using_memory(Taking()):
        stream.alloc(8).close()
    assert [type(each) for each in told] == [ArgumentValueError]
