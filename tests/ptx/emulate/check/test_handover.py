"""What threads learn of each other through memory, against a slow model that keeps every write."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from ptx.emulate.check.handover import Handovers, Order, key_of_thread

SHIFT, BLOCKS = 2, 3  # blocks of four threads
THREADS = range(BLOCKS << SHIFT)
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

    at: dict[tuple[str, int], list[Write]] = field(default_factory=dict)
    knows: list[Writes] = field(default_factory=lambda: [set() for _ in THREADS])
    read: list[Writes] = field(default_factory=lambda: [set() for _ in THREADS])
    fenced: list[frozenset[Write]] = field(default_factory=lambda: [frozenset() for _ in THREADS])
    heard: list[Writes] = field(default_factory=lambda: [set() for _ in range(BLOCKS)])

    def fence(self, thread: int) -> None:
        self.knows[thread] |= self.read[thread] | self.heard[thread >> SHIFT]
        self.read[thread] = set()
        self.fenced[thread] = frozenset(self.knows[thread])

    def write(self, place: tuple[str, int], thread: int, epoch: int, at_once: bool) -> None:
        knew = frozenset(self.knows[thread]) if at_once else self.fenced[thread]
        self.at.setdefault(place, []).append(Write(thread, epoch, knew))

    def reads(self, place: tuple[str, int], thread: int, at_once: bool) -> None:
        found = self.at.get(place, [])
        learned = set(found).union(*(each.knew for each in found))
        (self.knows if at_once else self.read)[thread] |= learned

    def meet(self, threads: list[int]) -> None:
        together: Writes = set().union(*(self.knows[each] for each in threads))
        for each in threads:
            self.knows[each] = set(together)

    def meet_block(self, block: int) -> None:
        threads = [each for each in THREADS if each >> SHIFT == block]
        self.meet(threads)
        for each in threads:
            self.heard[block] |= self.read[each]
            self.read[each] = set()

    def order(self, thread: int, epoch: int, for_thread: int) -> Order:
        for known, order in (
            (self.knows[for_thread], Order.KNOWN), (self.heard[for_thread >> SHIFT], Order.HEARD),
        ):  # fmt: skip
            if any(each.thread == thread and each.epoch > epoch for each in known):
                return order
        return Order.NONE


@pytest.mark.parametrize("seed", range(12))
def test_what_is_told_only_once_is_known_as_if_it_was_told_each_time(seed: int) -> None:
    draw, model, given = random.Random(seed), Model(), Handovers(SHIFT, 2)
    seen = set()
    for epoch in range(1, 250):
        thread, place, at_once = draw.choice(THREADS), draw.choice(PLACES), draw.random() < 0.3
        act = draw.choices(("write", "read", "fence", "warp", "block"), (6, 6, 5, 1, 1))[0]
        if act == "write":
            model.write(place, thread, epoch, at_once)
            given.write(place, thread, [(key_of_thread(thread), epoch)], 1, at_once=at_once)
        elif act == "read":
            model.reads(place, thread, at_once)
            given.read(place, thread, 1, at_once=at_once)
        elif act == "fence":
            model.fence(thread)
            given.fence(thread, 1)
        elif act == "warp":
            pair = [thread, thread ^ 1]
            model.meet(pair)
            given.meet_threads(pair)
        else:
            model.meet_block(thread >> SHIFT)
            given.meet_block(thread >> SHIFT)
        thread, since, other = draw.choice(THREADS), draw.randrange(epoch), draw.choice(THREADS)
        found = given.order(thread, since, other, strong=False, as_strong=False)
        assert found is model.order(thread, since, other)
        seen.add(found)
    assert {Order.NONE, Order.KNOWN} <= seen
