"""Shadow memory: the last accesses to each unit of a memory, as stamps.

A unit is as wide as the narrowest element that the kernel accesses, at most 4 bytes. It has the
last ordinary write, and two accesses each of ordinary reads, of strong reads and of atomic writes.
One write is enough: an earlier one is ordered before it, or was reported with it. A strong read
does not replace an ordinary one of the same thread, because only the strong one may meet an atomic
write.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.access_step import AccessStep, Units, chosen
from ptx.emulate.check.stamps import THREAD_SHIFT, WARP_SHIFT, Bools, Stamps, sites_of, threads_of
from ptx.emulate.model.addresses import Index

_TWO: Final = 2
_FARTHEST: Final = 2
_end, _start = itemgetter(1), itemgetter(0)


class AccessPair:
    """Two accesses of each unit, by threads as far apart as possible.

    They are in different blocks if any two are, or else in different warps.

    An access that is ordered after both is usually ordered after every access. Limitation: a race
    with a third thread, as far away as these two, can be missed.
    """

    def __init__(self, make: Callable[[], Stamps], shift: int) -> None:
        self._make = make
        self._shift = shift
        self.last: Stamps | None = None
        self.other: Stamps | None = None

    def found(self, units: Units) -> list[Stamps]:
        """Return the accesses to these units; an empty list if there are none."""
        if self.last is None or self.other is None:
            return []
        last = copied(self.last, units)
        if not last.any():
            return []
        other = copied(self.other, units)
        return [last, other] if other.any() else [last]

    def found_by_others(self, units: Units, stamps: Stamps) -> list[Stamps]:
        """Return the same, without units whose last access is by the comparing thread itself."""
        stored = self.found(units)
        if not stored:
            return []
        is_own = threads_of(stored[0]) == threads_of(stamps)
        return [np.where(is_own, 0, old) for old in stored]

    def latest(self, units: Units) -> Stamps:
        """Return the last access to each of these units, 0 where there is none."""
        if self.last is not None:
            return copied(self.last, units)
        count = units.stop - units.start if isinstance(units, slice) else len(units)
        return np.zeros(count, dtype=np.int64)

    def add(self, units: Units, stamps: Stamps) -> None:
        """Record accesses; several threads may access one unit."""
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
        losers = np.flatnonzero(winners != stamps)
        if len(losers):
            self._put_aside(units[losers], winners[losers], stamps[losers])

    def _is_again(self, units: Units, stamps: Stamps) -> bool:
        """Record two threads that access one unit again; return whether it is so.

        Threads that poll a flag do that.
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
        """Replace these stamps by new ones, where they are still stored."""
        for array in (self.last, self.other):
            if array is not None:
                same = array[units] == old
                array[units[same]] = new[same]

    def clear_of(self, units: Units, sites: Sequence[int]) -> None:
        """Forget the accesses by these sites."""
        for array in (self.last, self.other):
            if array is not None:
                present = array[units]
                array[units] = np.where(np.isin(sites_of(present), sites), 0, present)

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
        """Store these accesses beside the last ones, unless the stored ones are farther away."""
        assert self.other is not None
        if not stamps.any():
            return
        numbers = _numbers(last)
        differences = numbers ^ _numbers(stamps)
        changed = (differences != 0) & (stamps != 0)
        if not changed.any():
            return
        stored, distances = self.other[units], self._distance(differences)
        if stored.any():
            apart_before = numbers ^ _numbers(stored)
            nearer = self._distance(apart_before) <= distances
            changed &= nearer | (apart_before == 0) | (stored == 0)
        for distance in range(_FARTHEST + 1):  # of one unit's, the farthest stays
            selected = np.flatnonzero(changed & (distances == distance))
            if len(selected):
                self.other[chosen(units, selected)] = stamps[selected]

    def _distance(self, differences: NDArray[np.int32]) -> NDArray[np.uint8]:
        """Return the distance of two threads: 0 in one warp, 1 in one block, 2 in different blocks.

        `differences`: the bits in which their numbers differ.
        """
        distances = (differences >= 1 << self._shift).view(np.uint8)
        distances += (differences >= 1 << WARP_SHIFT).view(np.uint8)
        return distances


def _numbers(stamps: Stamps) -> NDArray[np.int32]:
    """The numbers of the threads, in half the memory."""
    return threads_of(stamps).astype(np.int32)


def copied(stamps: Stamps, units: Units) -> Stamps:
    """The stamps of these units, in an array of their own."""
    taken_out: Stamps = stamps[units]
    return taken_out.copy() if isinstance(units, slice) else taken_out


class ShadowMemory:
    """The accesses to a memory of `units` units, for which `reserve` makes arrays of zeros.

    This one stores each access at once. `LazyShadowMemory` lists accesses first.

    Attributes:
        reads: ordinary reads.
        strong_reads: volatile reads and others that may meet atomic writes.
        atomics: atomic and other strong writes.
    """

    def __init__(self, units: int, reserve: Callable[[int], Stamps], shift: int) -> None:
        self._make: Callable[[], Stamps] = partial(reserve, units)
        self._writes: Stamps | None = None
        self.reads: AccessPair = AccessPair(self._make, shift)
        self.strong_reads: AccessPair = AccessPair(self._make, shift)
        self.atomics: AccessPair = AccessPair(self._make, shift)
        self._has_stamps = False
        # Between which bytes units have stamps; apart from each other, in order.
        self._stored: list[tuple[int, int]] = []

    # Accesses that are listed instead.

    def lists_read(self, step: AccessStep) -> bool:
        """List a read; return False where it must be compared and stored."""
        return False

    def lists_write(self, step: AccessStep) -> bool:
        """List a write; return False where it must be compared and stored."""
        return False

    def lists_atomic(self, step: AccessStep) -> bool:
        """List an atomic write; return False where it must be compared and stored."""
        return False

    def listed(self) -> Iterator[tuple[bool, list[AccessStep]]]:
        """Yield listed accesses: whether they are writes, and steps near each other."""
        yield from ()

    def settle(self, step: AccessStep) -> None:
        """Store all accesses to the bytes of a step, before it is compared."""
        self._add_range(step.low, step.high)

    # Stored accesses.

    def read(self, step: AccessStep, guesses: Sequence[int]) -> None:
        """Store a read; the sites `guesses` read a value that a compare-and-swap checks.

        Such a read may be intentional, so any other read replaces it, whichever is earlier.
        """
        units, stamps = step.units, step.stamps
        if step.site in guesses and self.reads.last is not None:
            last = self.reads.last[units]
            free = np.flatnonzero((last == 0) | np.isin(sites_of(last), guesses))
            units, stamps = chosen(units, free), stamps[free]
        elif guesses:
            self.reads.clear_of(units, guesses)
        self.reads.add(units, stamps)

    def written(self, units: Units) -> list[Stamps]:
        """Return the last ordinary writes of these units; nothing where there are none."""
        if self._writes is None:
            return []
        stamps = copied(self._writes, units)
        return [stamps] if stamps.any() else []

    def write(self, step: AccessStep) -> Bools | None:
        """Store a write; return the units where another thread of the step wrote last, if any."""
        if self._writes is None:
            self._writes = self._make()
        units = step.units
        self._writes[units] = step.stamps
        self.reads.clear(units)
        self.strong_reads.clear(units)
        self.atomics.clear(units)
        if isinstance(units, slice):
            return None
        lost: Bools = self._writes[units] != step.stamps
        return lost if lost.any() else None

    def put(self, units: Index, stamps: Stamps, step: AccessStep) -> None:
        """Store these stamps as the last writes of some units of a step."""
        self.settle(step)
        if self._writes is None:
            self._writes = self._make()
        self._writes[units] = stamps

    def has_writes(self, step: AccessStep) -> bool:
        """Return whether anything may have written bytes near those of a step."""
        return self._is_stored(step)

    def written_within(self, low: int, high: int, shift: int) -> Bools | None:
        """Return which units of some bytes were written; None if none was.

        Args:
            low, high: the bytes.
            shift: turns the number of a byte into that of its unit.
        """
        units = slice(low >> shift, -(-high >> shift))
        are_written: Bools = np.zeros(units.stop - units.start, dtype=np.bool_)
        for stamps in (self._writes, self.atomics.last):
            if stamps is not None:
                are_written |= stamps[units] != 0
        return are_written if are_written.any() else None

    def reset(self) -> None:
        """Forget all accesses: every later access is ordered after them."""
        if not self._has_stamps:
            return
        self._has_stamps = False
        self._stored.clear()
        if self._writes is not None:
            self._writes[:] = 0
        self.reads.reset()
        self.strong_reads.reset()
        self.atomics.reset()

    def stored(self, shift: int) -> Iterator[tuple[bool, int, Stamps]]:
        """Yield stored accesses: whether they are writes, the first unit, and stamps from there on.

        `shift` turns the number of a byte into that of its unit.
        """
        reads, strong, atomics = self.reads, self.strong_reads, self.atomics
        for low, high in self._ranges():
            first, end = low >> shift, -(-high >> shift)
            for writes, stamps in (
                (True, self._writes), (True, atomics.last), (True, atomics.other),
                (False, reads.last), (False, reads.other),
                (False, strong.last), (False, strong.other),
            ):  # fmt: skip
                if stamps is not None:
                    yield writes, first, stamps[first:end]

    def parts_in_use(self, shift: int) -> Iterator[NDArray[np.integer[Any]]]:
        """Yield the parts of arrays whose pages may take memory."""
        for _, _, stamps in self.stored(shift):
            yield stamps

    def _ranges(self) -> list[tuple[int, int]]:
        """The bytes between which units may have stamps."""
        return self._stored

    def _is_stored(self, step: AccessStep) -> bool:
        index = bisect_right(self._stored, step.low, key=_end)
        return index < len(self._stored) and self._stored[index][0] < step.high

    def _add_range(self, low: int, high: int) -> None:
        self._has_stamps = True
        start = bisect_left(self._stored, low, key=_end)
        end = bisect_right(self._stored, high, key=_start)
        if start < end:
            low, high = min(low, self._stored[start][0]), max(high, self._stored[end - 1][1])
        self._stored[start:end] = [(low, high)]


def in_memory(units: int) -> Stamps:
    """Return the stamps of so many units that have no access."""
    return np.zeros(units, dtype=np.int64)
