"""The last accesses to each unit of a memory, as stamps.

One write is enough: an earlier one is before it, or was reported with it. Of reads, and of atomic
writes, two are kept, of different blocks or else warps or else threads where there are such: who
comes after both comes after all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ptx.emulate.check.stamps import WARP_SHIFT, Bools, Stamps, threads_of
from ptx.emulate.model.addresses import Index


class Pair:
    """Two accesses of each unit, of threads as far apart as there were."""

    def __init__(self, make: Callable[[], Stamps], shift: int) -> None:
        self._make = make
        self._shift = shift
        self.last: Stamps | None = None
        self.other: Stamps | None = None

    def found(self, units: Index) -> list[Stamps]:
        """What is known of these units, where anything is."""
        if self.last is None or self.other is None:
            return []
        return [each for each in (self.last[units], self.other[units]) if each.any()]

    def found_by_others(self, units: Index, stamps: Stamps) -> list[Stamps]:
        """The same, without what is before the last one where that is the very thread's."""
        if self.last is None:
            return []
        own = threads_of(self.last[units]) == threads_of(stamps)
        return [np.where(own, 0, each) for each in self.found(units)]

    def add(self, units: Index, stamps: Stamps) -> None:
        """These threads access these units; several may access the same one."""
        if self.last is None or self.other is None:
            self.last, self.other = self._make(), self._make()
        before = self.last[units]
        if before.any():
            self._put_aside(units, stamps, before)
        self.last[units] = stamps
        winners = self.last[units]
        if (winners != stamps).any():
            for distance in (0, WARP_SHIFT, self._shift):  # the farthest last, so that it stays
                apart = threads_of(winners) >> distance != threads_of(stamps) >> distance
                self.other[units[apart]] = stamps[apart]

    def clear(self, units: Index) -> None:
        """Forget the accesses to these units."""
        if self.last is not None and self.other is not None:
            self.last[units] = 0
            self.other[units] = 0

    def _put_aside(self, units: Index, stamps: Stamps, before: Stamps) -> None:
        assert self.other is not None
        mine, theirs = threads_of(stamps), threads_of(before)
        changed = (before != 0) & (mine != theirs)
        if not changed.any():
            return
        kept = self.other[units]
        held = threads_of(kept)
        nearer = changed & ((kept == 0) | self._is_farther(theirs, held, mine))
        self.other[units[nearer]] = before[nearer]

    def _is_farther(self, one: Stamps, than: Stamps, mine: Stamps) -> Bools:
        """Whether one thread is at least as far from mine as another one is."""
        block, warp = self._shift, WARP_SHIFT
        far = (one >> block != mine >> block) * 2 + (one >> warp != mine >> warp)
        known = (than >> block != mine >> block) * 2 + (than >> warp != mine >> warp)
        farther: Bools = (far >= known) | (than == mine)
        return farther


class LastAccesses:
    """The accesses to a memory of `units` units.

    Attributes:
        writes: (units,) the last ordinary write of each unit; None before the first.
        reads: ordinary and other reads.
        atomics: atomic and other strong writes.
    """

    def __init__(self, units: int, reserve: Callable[[int], Stamps], shift: int) -> None:
        self._make: Callable[[], Stamps] = partial(reserve, units)
        self.writes: Stamps | None = None
        self.reads = Pair(self._make, shift)
        self.atomics = Pair(self._make, shift)

    def written(self, units: Index) -> list[Stamps]:
        """The last ordinary writes of these units, where there was any."""
        if self.writes is None:
            return []
        found = self.writes[units]
        return [found] if found.any() else []

    def write(self, units: Index, stamps: Stamps) -> Bools | None:
        """These threads write these units; whose write was another's in the same step, or None."""
        if self.writes is None:
            self.writes = self._make()
        self.writes[units] = stamps
        lost: Bools = self.writes[units] != stamps
        self.reads.clear(units)
        self.atomics.clear(units)
        return lost if lost.any() else None


def in_memory(units: int) -> Stamps:
    """Nobody has accessed any of so many units."""
    return np.zeros(units, dtype=np.int64)
