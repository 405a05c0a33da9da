"""What threads learn of each other through memory, against a slow model that keeps every write."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from ptx.emulate.check.stamps import key_of_thread
from ptx.emulate.check.synchronizes_with import MemoryOrder, Synchronization
from tests.rows import all_rows
from tests.short_cases import few

PLACES = [("global", unit) for unit in range(5)]
Writes = set["Write"]


@dataclass(frozen=True, eq=False, slots=True)
class Write:
    """One writer at a place, what it says of its own time, and what it knew of others."""

    thread: int
    epoch: int
    knew: frozenset[Write]


@dataclass
class Model:
    """Everything as sets of writes: who reads a place learns of all before and what they knew."""

    shift: int
    blocks: int
    at: dict[tuple[str, int], list[Write]] = field(default_factory=dict)
    complete: dict[tuple[str, int], int] = field(default_factory=dict)
    knows: list[Writes] = field(init=False)
    read: list[Writes] = field(init=False)
    fenced: list[frozenset[Write]] = field(init=False)
    heard: list[Writes] = field(init=False)

    def __post_init__(self) -> None:
        self.knows = [set() for _ in self.threads]
        self.read = [set() for _ in self.threads]
        self.fenced = [frozenset() for _ in self.threads]
        self.heard = [set() for _ in range(self.blocks)]

    @property
    def threads(self) -> range:
        return range(self.blocks << self.shift)

    def of_block(self, block: int) -> list[int]:
        return [each for each in self.threads if each >> self.shift == block]

    def fence(self, thread: int) -> None:
        self.knows[thread] |= self.read[thread] | self.heard[thread >> self.shift]
        self.read[thread] = set()
        self.fenced[thread] = frozenset(self.knows[thread])

    def write(self, place: tuple[str, int], thread: int, epoch: int, at_once: bool) -> None:
        knew = frozenset(self.knows[thread]) if at_once else self.fenced[thread]
        self.at.setdefault(place, []).append(Write(thread, epoch, knew))

    def write_of_block(self, place: tuple[str, int], block: int, epoch: int) -> None:
        threads = self.of_block(block)
        knew: Writes = set().union(*(self.knows[each] for each in threads))
        self.at.setdefault(place, []).append(Write(threads[0], epoch, frozenset(knew)))

    def learned(self, place: tuple[str, int]) -> Writes:
        found = self.at.get(place, [])
        found = found[: self.complete.get(place, len(found))]
        return set(found).union(*(each.knew for each in found))

    def reads(self, place: tuple[str, int], thread: int, at_once: bool) -> None:
        (self.knows if at_once else self.read)[thread] |= self.learned(place)

    def read_by_block(self, place: tuple[str, int], block: int) -> None:
        for each in self.of_block(block):
            self.knows[each] |= self.learned(place)

    def is_complete(self, place: tuple[str, int]) -> None:
        self.complete[place] = len(self.at.get(place, []))

    def meet(self, threads: list[int]) -> None:
        together: Writes = set().union(*(self.knows[each] for each in threads))
        for each in threads:
            self.knows[each] = set(together)

    def meet_block(self, block: int) -> None:
        threads = self.of_block(block)
        self.meet(threads)
        for each in threads:
            self.heard[block] |= self.read[each]
            self.read[each] = set()

    def order(self, thread: int, epoch: int, for_thread: int) -> MemoryOrder:
        for known, order in (
            (self.knows[for_thread], MemoryOrder.HAPPENS_BEFORE),
            (self.heard[for_thread >> self.shift], MemoryOrder.WITHOUT_ACQUIRE),
        ):
            if any(each.thread == thread and each.epoch > epoch for each in known):
                return order
        return MemoryOrder.NONE


ACTS = {
    "write": 6, "read": 6, "fence": 5, "warp": 1, "block": 1, "write of block": 0.3,
    "read by block": 0.2, "complete": 1.5, "read together": 0.5, "fence together": 1,
}  # fmt: skip


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize(("shift", "steps"), [(2, 250), (5, 1500)], ids=["few", "many"])
@pytest.mark.parametrize("seed", few(range(8), 3))
def test_what_is_reported_is_the_same_as_if_every_write_was_stored(
    seed: int, shift: int, steps: int
) -> None:
    draw, model, given = random.Random(seed), Model(shift, 3), Synchronization(shift, 2)
    seen = set()
    for epoch in range(1, steps):
        thread, place = draw.choice(model.threads), draw.choice(PLACES)
        act = draw.choices(list(ACTS), list(ACTS.values()))[0]
        _do(act, model, given, thread, place, epoch, at_once=draw.random() < 0.3)
        for _ in range(3):
            thread, other = draw.choice(model.threads), draw.choice(model.threads)
            since = draw.randrange(epoch)
            found = given.order(thread, since, other, strong=False, as_strong=False)
            assert found is model.order(thread, since, other)
            seen.add(found)
    assert {MemoryOrder.NONE, MemoryOrder.HAPPENS_BEFORE} <= seen


def _do(
    act: str,
    model: Model,
    given: Synchronization,
    thread: int,
    place: tuple[str, int],
    epoch: int,
    *,
    at_once: bool,
) -> None:
    block = thread >> model.shift
    if act == "write":
        model.write(place, thread, epoch, at_once)
        given.release(place, thread, [(key_of_thread(thread), epoch)], 1, at_once=at_once)
    elif act == "write of block":
        model.write_of_block(place, block, epoch)
        given.release_by_block(place, block, (key_of_thread(block << model.shift), epoch))
    elif act == "read":
        model.reads(place, thread, at_once)
        given.read(place, thread, 1, at_once=at_once)
    elif act == "read together":
        for each in model.of_block(block):
            model.reads(place, each, at_once)
        given.read_together(place, model.of_block(block), 1, at_once=at_once)
    elif act == "fence together":
        for each in model.of_block(block):
            model.fence(each)
        given.fence_all(model.of_block(block), 1)
    elif act == "read by block":
        model.read_by_block(place, block)
        given.read_by_block(place, block)
    elif act == "complete":
        model.is_complete(place)
        given.complete(place)
    elif act == "fence":
        model.fence(thread)
        given.fence(thread, 1)
    elif act == "warp":
        model.meet([thread, thread ^ 1])
        given.meet_threads([thread, thread ^ 1])
    else:
        model.meet_block(block)
        given.meet_block(block)


@pytest.mark.parametrize(
    "way", ["acquire", "read", "together", "warp", "block", "barrier", "heard"]
)
def test_a_fence_of_many_publishes_what_each_has_observed_since_its_last_one(way: str) -> None:
    given, (first, second, *_) = Synchronization(2, 2), PLACES
    given.release(first, 0, [(key_of_thread(0), 5)], 1, at_once=True)
    given.fence_all([4, 5], 1)
    if way in ("acquire", "read"):
        given.read(first, 4, 1, at_once=way == "acquire")
    elif way == "together":
        given.read_together(first, [4, 5], 1, at_once=True)
    elif way == "block":
        given.read_by_block(first, 1)
    else:
        given.read(first, 5, 1, at_once=way != "heard")
        if way == "warp":
            given.meet_threads([4, 5])
        else:
            given.meet_block(1)
    given.fence_all([4, 5], 1)
    given.release(second, 4, [(key_of_thread(4), 9)], 1, at_once=False)
    given.read(second, 8, 1, at_once=True)
    assert given.order(0, 4, 8, strong=False, as_strong=False) is MemoryOrder.HAPPENS_BEFORE


def test_a_thread_that_waits_again_is_ordered_after_the_later_phase() -> None:
    given, place = Synchronization(2, 2), PLACES[0]
    known = []
    for epoch in (1, 2):
        given.release(place, 0, [(key_of_thread(0), epoch)], 1, at_once=True)
        for _ in range(2):
            given.read(place, 4, 1, at_once=True)
            order = given.order(0, epoch - 1, 4, strong=False, as_strong=False)
            known.append(order is MemoryOrder.HAPPENS_BEFORE)
            given.complete(place)
    assert known == [True, True, False, True]
