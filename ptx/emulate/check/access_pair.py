"""Two accesses of each unit of a memory, of threads as far apart as there were."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ptx.emulate.check.stamps import WARP_SHIFT, Bools, Stamps, sites_of, threads_of
from ptx.emulate.check.step import Units, chosen
from ptx.emulate.model.addresses import Index


class Pair:
    """Two accesses of each unit, of threads as far apart as there were."""

    def __init__(self, make: Callable[[], Stamps], shift: int) -> None:
        self._make = make
        self._shift = shift
        self.last: Stamps | None = None
        self.other: Stamps | None = None

    def found(self, units: Units) -> list[Stamps]:
        """What is known of these units, where anything is."""
        if self.last is None or self.other is None:
            return []
        last = self.last[units]
        if not last.any():
            return []
        other = self.other[units]
        return [last.copy(), other.copy()] if other.any() else [last.copy()]

    def found_by_others(self, units: Units, stamps: Stamps) -> list[Stamps]:
        """The same, without what is before the last one where that is the very thread's."""
        found = self.found(units)
        if not found:
            return []
        own = threads_of(found[0]) == threads_of(stamps)
        return [np.where(own, 0, each) for each in found]

    def latest(self, units: Units) -> Stamps:
        """The last of these units' accesses, 0 where there is none."""
        if self.last is not None:
            return self.last[units].copy()
        count = units.stop - units.start if isinstance(units, slice) else len(units)
        return np.zeros(count, dtype=np.int64)

    def add(self, units: Units, stamps: Stamps) -> None:
        """These threads access these units; several may access the same one."""
        if self.last is None or self.other is None:
            self.last, self.other = self._make(), self._make()
        before = self.last[units]
        if before.any():
            self._put_aside(units, stamps, before.copy())
        self.last[units] = stamps
        if isinstance(units, slice):
            return
        winners = self.last[units]
        if (winners != stamps).any():
            for distance in (0, WARP_SHIFT, self._shift):  # the farthest last, so that it stays
                apart = threads_of(winners) >> distance != threads_of(stamps) >> distance
                self.other[units[apart]] = stamps[apart]

    def change(self, units: Index, old: Stamps, new: Stamps) -> None:
        """What had these stamps has new ones, where it is still there."""
        for each in (self.last, self.other):
            if each is not None:
                same = each[units] == old
                each[units[same]] = new[same]

    def clear_of(self, units: Units, sites: Sequence[int]) -> None:
        """Forget what these sites did."""
        for each in (self.last, self.other):
            if each is not None:
                kept = each[units]
                each[units] = np.where(np.isin(sites_of(kept), sites), 0, kept)

    def clear(self, units: Units) -> None:
        """Forget the accesses to these units."""
        if self.last is not None and self.other is not None and self.last[units].any():
            self.last[units] = 0
            self.other[units] = 0

    def reset(self) -> None:
        """Forget all accesses."""
        if self.last is not None and self.other is not None:
            self.last[:] = 0
            self.other[:] = 0

    def _put_aside(self, units: Units, stamps: Stamps, before: Stamps) -> None:
        assert self.other is not None
        mine, theirs = threads_of(stamps), threads_of(before)
        changed = (before != 0) & (mine != theirs)
        if not changed.any():
            return
        kept = self.other[units]
        held = threads_of(kept)
        nearer = np.flatnonzero(changed & ((kept == 0) | self._is_farther(theirs, held, mine)))
        self.other[chosen(units, nearer)] = before[nearer]

    def _is_farther(self, one: Stamps, than: Stamps, mine: Stamps) -> Bools:
        """Whether one thread is at least as far from mine as another one is."""
        block, warp = self._shift, WARP_SHIFT
        far = (one >> block != mine >> block) * 2 + (one >> warp != mine >> warp)
        known = (than >> block != mine >> block) * 2 + (than >> warp != mine >> warp)
        farther: Bools = (far >= known) | (than == mine)
        return farther
