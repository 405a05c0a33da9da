from __future__ import annotations

import gc
import os
import random
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cudadrv.errors import ClosedError, CudadrvError, InvalidValueError
from cudadrv.memory.reuse.arena import (
    ArenaStatistics,
    DeviceArena,
    Lease,
    SlabReleaseError,
    bucket_of,
)
from cudadrv.memory.reuse.free_lists import FreeList
from ptx.read_only import ReadOnly
from tests.several_threads import running

ITEM = 8
CAP = 3000
STRESS_SECONDS = float(os.environ.get("CUDADRV_STRESS_SECONDS", "0.5"))


@dataclass(eq=False)
class FakeStream:
    """A stream on which nothing happens."""

    device: int = 0
    capturing: bool = False
    closed: bool = False

    @property
    def _handle(self) -> FakeStream | None:
        return None if self.closed else self

    @property
    def capture(self) -> object:
        return self if self.capturing else None


class FakeSlab:
    """A slab without memory."""

    closed = False
    # As in `ArenaSlab`, whose users read the attributes.
    _arena: object
    arena: ReadOnly[object] = ReadOnly("_arena")
    _bucket: int
    bucket: ReadOnly[int] = ReadOnly("_bucket")
    _shelf: FreeList[Any]  # of FakeSlab: the arena's own type
    shelf: ReadOnly[FreeList[Any]] = ReadOnly("_shelf")

    _lease: Lease
    lease: ReadOnly[Lease] = ReadOnly("_lease")

    def __init__(self, lease: Lease) -> None:
        self._lease = lease


@dataclass
class Log:
    """What an arena asked to be done to memory."""

    made: list[bool] = field(default_factory=list)
    moves: list[tuple[FakeStream, FakeStream]] = field(default_factory=list)
    discarded: list[FakeSlab] = field(default_factory=list)

    @property
    def fresh(self) -> int:
        """The number of new slabs. Threads append to the list at once, and lose none."""
        return len(self.made)


# The fakes are no subclasses of the arena's own types, so they are given as Any.
class NumberArena(DeviceArena[Any]):
    """The accounts over slabs that have no memory."""

    def __init__(self, max_cached_bytes: int | None = None) -> None:
        super().__init__(f"i{ITEM}", max_cached_bytes=max_cached_bytes)
        self.log = Log()
        self.reject_moves = False

    def _fresh(self, stream: Any, bucket: int, lease: Lease, label: str) -> Any:
        self.log.made.append(True)
        return FakeSlab(lease)

    def _require_stream(self, stream: Any) -> None:
        pass

    def _may_move(self, former: Any, stream: Any) -> bool:
        return former.device == stream.device and not former.capturing

    def _move(self, slab: Any, former: Any, stream: Any) -> None:
        if self.reject_moves:
            raise CudadrvError("the wait failed")
        self.log.moves.append((former, stream))

    def _discard(self, slab: Any) -> None:
        self.log.discarded.append(slab)

    def alloc(self, stream: Any, elements: int, label: str = "") -> tuple[int, Any]:
        return super().alloc(stream, elements, label)

    def release(self, bucket: int, slab: Any) -> None:
        super().release(bucket, slab)


@given(st.integers(0, 1 << 70))
def test_a_bucket_is_the_next_power_of_two(elements: int) -> None:
    bucket = bucket_of(elements)
    assert bucket.bit_count() == 1
    assert bucket >= max(elements, 1)
    assert bucket == 1 or bucket // 2 < elements


def test_buckets_of_small_counts() -> None:
    assert [bucket_of(n) for n in range(10)] == [1, 1, 2, 4, 4, 8, 8, 8, 8, 16]
    with pytest.raises(InvalidValueError, match="a slab of -1 elements"):
        bucket_of(-1)


def pick(data: st.DataObject, among: list[FakeSlab]) -> FakeSlab:
    """One of what there is; by position, since addresses differ from run to run."""
    return among[data.draw(st.integers(0, len(among) - 1))]


class ArenaMachine(RuleBasedStateMachine):
    """One arena, three streams on two devices, against a model of sets."""

    def __init__(self) -> None:
        super().__init__()
        self.arena = NumberArena(CAP)
        self.streams = [FakeStream(0), FakeStream(0), FakeStream(1)]
        self.held: dict[FakeSlab, FakeStream] = {}
        # Free slabs by stream and bucket; the last released comes first.
        self.free: dict[tuple[FakeStream, int], list[FakeSlab]] = {}
        self.allocations = self.hits = self.high_water = 0

    def bytes_of(self, slabs: list[FakeSlab]) -> int:
        return sum(slab.bucket * ITEM for slab in slabs)

    def cached(self) -> list[FakeSlab]:
        return [slab for slabs in self.free.values() for slab in slabs]

    def evict(self, keep: int) -> list[FakeSlab]:
        evicted = []
        while self.bytes_of(self.cached()) > keep:
            most = max(slab.bucket for slab in self.cached())
            slab = next(s for s in self.arena.log.discarded if s in self.cached())
            assert slab.bucket == most
            for slabs in self.free.values():
                if slab in slabs:
                    assert slabs.pop(0) is slab
            evicted.append(slab)
        return evicted

    @rule(where=st.integers(0, 2), elements=st.integers(0, 300))
    def alloc(self, where: int, elements: int) -> None:
        stream = self.streams[where]
        fresh, moves = self.arena.log.fresh, len(self.arena.log.moves)
        bucket, slab = self.arena.alloc(stream, elements, "machine")
        assert bucket == slab.bucket == bucket_of(elements)
        assert slab not in self.held
        own = self.free.get((stream, bucket), [])
        others = [
            slabs
            for (other, size), slabs in self.free.items()
            if size == bucket and other.device == stream.device and slabs
        ]
        self.allocations += 1
        if own:
            assert own.pop() is slab
            self.hits += 1
        elif others:
            assert any(slabs and slabs[-1] is slab for slabs in others)
            next(slabs for slabs in others if slab in slabs).remove(slab)
            assert len(self.arena.log.moves) == moves + 1
            assert self.arena.log.moves[-1][1] is stream
            self.hits += 1
        else:
            assert self.arena.log.fresh == fresh + 1
        self.held[slab] = stream
        total = self.bytes_of([*self.held, *self.cached()])
        self.high_water = max(self.high_water, total)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        slab = pick(data, list(self.held))
        stream = self.held.pop(slab)
        del self.arena.log.discarded[:]
        self.arena.release(slab.bucket, slab)
        self.free.setdefault((stream, slab.bucket), []).append(slab)
        self.evict(CAP)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        slab = pick(data, list(self.held))
        del self.held[slab]

    @precondition(lambda self: self.cached())
    @rule(data=st.data())
    def release_twice(self, data: st.DataObject) -> None:
        slab = pick(data, self.cached())
        with pytest.raises(SlabReleaseError, match="released already"):
            self.arena.release(slab.bucket, slab)

    @rule(keep=st.integers(0, CAP))
    def trim(self, keep: int) -> None:
        del self.arena.log.discarded[:]
        given = self.arena.trim(keep)
        assert given == self.bytes_of(self.evict(keep))

    @invariant()
    def totals_are_true(self) -> None:
        now = self.arena.statistics()
        cached = self.bytes_of(self.cached())
        if now.in_use_bytes != self.bytes_of(list(self.held)):
            del self.arena.log.discarded[:]
            gc.collect()  # a dropped slab may wait for the collector
            now = self.arena.statistics()
        in_use = self.bytes_of(list(self.held))
        assert now == ArenaStatistics(
            held_bytes=in_use + cached,
            in_use_bytes=in_use,
            cached_bytes=cached,
            high_water_bytes=now.high_water_bytes,
            slabs=len(self.held) + len(self.cached()),
            allocations=self.allocations,
            hits=self.hits,
        )
        assert cached <= CAP
        assert now.high_water_bytes >= self.high_water


TestArenaMachine = ArenaMachine.TestCase
TestArenaMachine.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)


def test_a_slab_is_reused_on_its_own_stream_before_another_one_waits() -> None:
    arena, first, second = NumberArena(), FakeStream(), FakeStream()
    bucket, a = arena.alloc(first, 100)
    _, b = arena.alloc(second, 100)
    arena.release(bucket, a)
    arena.release(bucket, b)
    assert arena.alloc(second, 65) == (128, b)
    assert not arena.log.moves
    assert arena.alloc(second, 65) == (128, a)
    assert arena.log.moves == [(first, second)]
    arena.release(bucket, a)
    assert arena.alloc(second, 128)[1] is a  # it belongs to the second stream now
    assert len(arena.log.moves) == 1


def test_a_failed_wait_leaves_the_slab_where_it_was() -> None:
    arena, first, second = NumberArena(), FakeStream(), FakeStream()
    bucket, slab = arena.alloc(first, 10)
    arena.release(bucket, slab)
    arena.reject_moves = True
    with pytest.raises(CudadrvError, match="the wait failed"):
        arena.alloc(second, 10)
    assert arena.alloc(first, 10) == (bucket, slab)


def test_slabs_of_other_devices_and_of_captures_are_left_alone() -> None:
    arena, first = NumberArena(), FakeStream(0)
    bucket, slab = arena.alloc(first, 10)
    arena.release(bucket, slab)
    assert arena.alloc(FakeStream(1), 10)[1] is not slab
    first.capturing = True
    assert arena.alloc(FakeStream(0), 10)[1] is not slab
    with pytest.raises(CudadrvError, match="fit arena alloc on a stream that is capturing"):
        arena.alloc(first, 10, "fit")
    first.capturing = False
    assert arena.alloc(first, 10)[1] is slab


def test_numbers_of_numpy_count_as_numbers() -> None:
    arena, stream = NumberArena(), FakeStream()
    for _ in range(2):
        bucket, slab = arena.alloc(stream, np.int64(100))  # type: ignore[arg-type]  # on purpose
        assert bucket == 128
        assert isinstance(bucket, int)
        arena.release(bucket, slab)
    assert arena.statistics().hits == 1


def test_what_is_not_ours_is_rejected_with_the_reason() -> None:
    arena, other, stream = NumberArena(), NumberArena(), FakeStream()
    bucket, slab = arena.alloc(stream, 100)
    with pytest.raises(SlabReleaseError, match="belongs to another arena"):
        other.release(bucket, slab)
    with pytest.raises(SlabReleaseError, match="is of bucket 128, not 64"):
        arena.release(64, slab)
    with pytest.raises(SlabReleaseError, match="is no slab of an arena"):
        arena.release(128, object())
    arena.release(bucket, slab)
    with pytest.raises(SlabReleaseError, match="released already"):
        arena.release(bucket, slab)
    stream.closed = True
    with pytest.raises(ClosedError, match="fit arena alloc"):
        arena.alloc(stream, 5, "fit")


def test_slabs_of_closed_streams_are_used_elsewhere_and_the_stream_is_forgotten() -> None:
    arena = NumberArena()
    for _ in range(100):
        stream = FakeStream()
        bucket, slab = arena.alloc(stream, 100)
        arena.release(bucket, slab)
        stream.closed = True
    assert arena.log.fresh == 1
    assert arena.statistics().slabs == 1
    assert len(arena._shelves) <= 2


def test_threads_get_slabs_of_their_own_and_nothing_is_lost() -> None:
    arena = NumberArena(100_000)
    streams = [FakeStream() for _ in range(8)]
    faults: list[str] = []
    owners: dict[FakeSlab, int] = {}
    turns = [0] * 32
    stop = threading.Event()

    def work(number: int) -> None:
        own: list[FakeSlab] = []
        draw = random.Random(number)
        while not stop.is_set():
            turns[number] += 1
            _, slab = arena.alloc(streams[number % 8], draw.randrange(1, 500))
            if owners.setdefault(slab, number) != number:
                faults.append("one slab in two hands")
            own.append(slab)
            while len(own) > draw.randrange(8):
                slab = own.pop(draw.randrange(len(own)))
                del owners[slab]
                arena.release(slab.bucket, slab)
        for slab in own:
            del owners[slab]
            arena.release(slab.bucket, slab)

    with running([partial(work, number) for number in range(32)]):
        time.sleep(STRESS_SECONDS)
        stop.set()
    now = arena.statistics()
    assert not faults
    assert now.allocations == sum(turns)
    assert now.hits == sum(turns) - arena.log.fresh
    assert now.in_use_bytes == 0
    assert now.cached_bytes <= 100_000
    assert now.slabs == arena.log.fresh - len(arena.log.discarded)
