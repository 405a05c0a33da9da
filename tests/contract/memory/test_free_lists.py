from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections import Counter
from functools import partial

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cudadrv.memory.reuse.free_lists import FreeList, FreeLists
from tests.several_threads import running

CAP, LIMIT = 1000, 3
SIZES = (10, 70, 300, 600, 2000)
STRESS_SECONDS = float(os.environ.get("CUDADRV_STRESS_SECONDS", "0.5"))


class CappedLists(RuleBasedStateMachine):
    """Blocks are (size, serial); the model is a plain dict of lists with the rules written out."""

    def __init__(self) -> None:
        super().__init__()
        self.lists: FreeLists[tuple[int, int]] = FreeLists(CAP, LIMIT)
        self.free: dict[int, FreeList[tuple[int, int]]] = {}
        self.model: dict[int, list[tuple[int, int]]] = {}
        self.serial = 0

    def model_bytes(self) -> int:
        return sum(size * len(blocks) for size, blocks in self.model.items())

    @rule(size=st.sampled_from(SIZES))
    def give(self, size: int) -> None:
        self.serial += 1
        block = size, self.serial
        if size not in self.free or self.free[size].retired:
            self.free[size] = self.lists.new_list(size)
        blocks = self.free[size]
        blocks.append(block)
        evicted = self.lists.overflowed(blocks) if len(blocks) > blocks.room else []

        expected = []
        own = self.model.setdefault(size, [])
        own.append(block)
        if len(own) > LIMIT:
            expected.append(own.pop(0))
        while self.model_bytes() > CAP:
            largest = max(size for size, blocks in self.model.items() if blocks)
            expected.append(self.model[largest].pop(0))
        assert evicted == expected

    @rule(size=st.sampled_from(SIZES))
    def take(self, size: int) -> None:
        expected = self.model[size].pop(0) if self.model.get(size) else None
        blocks = self.free.get(size)
        assert (blocks.popleft() if blocks else None) == expected

    @rule(keep=st.integers(0, CAP))
    def drain(self, keep: int) -> None:
        expected = []
        while self.model_bytes() > keep:
            largest = max(size for size, blocks in self.model.items() if blocks)
            expected.append(self.model[largest].pop(0))
        assert self.lists.drain(keep) == expected

    @rule()
    def retire(self) -> None:
        self.lists.retire_empty()
        assert len(self.lists) == sum(1 for blocks in self.model.values() if blocks)

    @invariant()
    def totals_are_true(self) -> None:
        assert self.lists.cached_bytes == self.model_bytes() <= CAP
        assert {s: list(b) for s, b in self.free.items() if b} == {
            size: blocks for size, blocks in self.model.items() if blocks
        }


TestCappedLists = CappedLists.TestCase
TestCappedLists.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_block_put_into_a_retired_list_comes_back_at_once() -> None:
    lists: FreeLists[str] = FreeLists(100, 4)
    blocks = lists.new_list(10)
    lists.retire_empty()
    blocks.append("late")
    assert len(blocks) > blocks.room
    assert lists.overflowed(blocks) == ["late"]
    assert lists.cached_bytes == 0


def test_lists_without_a_cap_never_overflow() -> None:
    lists: FreeLists[int] = FreeLists()
    blocks = lists.new_list(1 << 40)
    blocks.extend(range(10_000))
    assert len(blocks) <= blocks.room
    assert len(lists.drain()) == 10_000
    blocks.append(1)
    assert len(blocks) <= blocks.room


def test_threads_neither_lose_nor_double_blocks_and_the_cap_holds() -> None:
    lists: FreeLists[int] = FreeLists(64, 8)
    free = {size: lists.new_list(size) for size in (1, 2, 4, 8)}
    taken_out: list[int] = []
    faults: list[object] = []
    stop = threading.Event()

    def work(number: int) -> None:
        own = [number * 1000 + serial * 4 + size for serial in range(8) for size in range(4)]
        turn = number
        while not stop.is_set():
            turn += 1
            size = 1 << turn % 4
            if own and turn % 3:
                block = own.pop()
                size = 1 << block % 4
                blocks = free[size]
                blocks.append(block)
                if len(blocks) > blocks.room:
                    own += lists.overflowed(blocks)
            else:
                try:
                    own.append(free[size].popleft())
                except IndexError:
                    own += lists.drain(32) if turn % 64 == 0 else []
            if len(own) > len(set(own)):
                faults.append(own)
        taken_out.extend(own)

    with running([partial(work, number) for number in range(32)]):
        time.sleep(STRESS_SECONDS)
        stop.set()
    assert not faults
    assert lists.cached_bytes <= 64
    left = [block for blocks in free.values() for block in blocks]
    assert Counter(taken_out + left) == Counter(
        number * 1000 + serial * 4 + size
        for number in range(32)
        for serial in range(8)
        for size in range(4)
    )


def test_blocks_are_taken_out_while_threads_change_the_lists() -> None:
    lists: FreeLists[int] = FreeLists()
    blocks = lists.of_size(8)
    marked = set(range(-50, 0))
    blocks.extend([*marked, *range(1000)])
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            with contextlib.suppress(IndexError):
                blocks.append(blocks.popleft())

    found: list[int] = []
    with running([change] * 4):
        try:
            end = time.monotonic() + STRESS_SECONDS
            while time.monotonic() < end:
                found += lists.take_out(marked)
        finally:
            stop.set()
    found += lists.take_out(marked)
    assert sorted(found) == sorted(marked)
    assert sorted(blocks) == list(range(1000))


def test_a_size_has_one_list_for_all_threads() -> None:
    lists: FreeLists[int] = FreeLists(CAP)
    found: list[FreeList[int]] = []
    with running([lambda: found.append(lists.of_size(10))] * 8):
        pass
    assert len(found) == 8
    assert {id(each) for each in found} == {id(lists.of_size(10))}


def test_bytes_are_counted_while_threads_make_lists() -> None:
    lists: FreeLists[int] = FreeLists(CAP)
    stop = threading.Event()
    sizes = itertools.count(1)

    def make() -> None:
        while not stop.is_set():
            lists.of_size(next(sizes) % 5000 + 1)

    with running([make] * 4):
        try:
            end = time.monotonic() + STRESS_SECONDS / 2
            while time.monotonic() < end:
                assert lists.cached_bytes == 0
        finally:
            stop.set()
