"""Two accesses of each unit of a memory, of threads as far apart as there were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.stamps import THREAD_SHIFT, WARP_SHIFT, Stamps, sites_of, threads_of
from ptx.emulate.check.step import Units, chosen
from ptx.emulate.model.addresses import Index

_TWO: Final = 2
_FARTHEST: Final = 2


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
        last = copied(self.last, units)
        if not last.any():
            return []
        other = copied(self.other, units)
        return [last, other] if other.any() else [last]

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
            return copied(self.last, units)
        count = units.stop - units.start if isinstance(units, slice) else len(units)
        return np.zeros(count, dtype=np.int64)

    def add(self, units: Units, stamps: Stamps) -> None:
        """These threads access these units; several may access the same one."""
        if self.last is None or self.other is None:
            self.last, self.other = self._make(), self._make()
        if len(stamps) == _TWO and self._is_again(units, stamps):
            return
        before = copied(self.last, units)
        self.last[units] = stamps
        if isinstance(units, slice):
            self._put_aside(units, stamps, before)
            return
        winners = self.last[units]
        self._put_aside(units, winners, before)
        beside = np.flatnonzero(winners != stamps)
        if len(beside):
            self._put_aside(units[beside], winners[beside], stamps[beside])

    def _is_again(self, units: Units, stamps: Stamps) -> bool:
        """Whether the very two threads access one unit which did so last; they do it later now.

        So do threads that poll a place.
        """
        assert self.last is not None
        assert self.other is not None
        if isinstance(units, slice):
            return False
        unit, same = units.tolist()
        first, second = stamps.tolist()
        if (
            unit != same
            or second >> THREAD_SHIFT != int(self.last[unit]) >> THREAD_SHIFT
            or first >> THREAD_SHIFT != int(self.other[unit]) >> THREAD_SHIFT
        ):
            return False
        self.last[unit], self.other[unit] = second, first
        return True

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

    def _put_aside(self, units: Units, last: Stamps, stamps: Stamps) -> None:
        """Keep these accesses beside the last ones, unless what is kept is farther from them."""
        assert self.other is not None
        if not stamps.any():
            return
        mine = _numbers(last)
        apart = mine ^ _numbers(stamps)
        changed = (apart != 0) & (stamps != 0)
        if not changed.any():
            return
        kept, far = self.other[units], self._distance(apart)
        if kept.any():
            apart_before = mine ^ _numbers(kept)
            nearer = self._distance(apart_before) <= far
            changed &= nearer | (apart_before == 0) | (kept == 0)
        for distance in range(_FARTHEST + 1):  # of one unit's, the farthest stays
            there = np.flatnonzero(changed & (far == distance))
            if len(there):
                self.other[chosen(units, there)] = stamps[there]

    def _distance(self, apart: NDArray[np.int32]) -> NDArray[np.uint8]:
        """How far two threads are apart: 0 within a warp, then in the block, 2 in others.

        `apart`: the bits in which their numbers differ.
        """
        far = (apart >= 1 << self._shift).view(np.uint8)
        far += (apart >= 1 << WARP_SHIFT).view(np.uint8)
        return far


def _numbers(stamps: Stamps) -> NDArray[np.int32]:
    """The numbers of the threads, in half the memory."""
    return threads_of(stamps).astype(np.int32)


def copied(stamps: Stamps, units: Units) -> Stamps:
    """The stamps of these units, in an array of their own."""
    found: Stamps = stamps[units]
    return found.copy() if isinstance(units, slice) else found
