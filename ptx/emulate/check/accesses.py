"""The last accesses to each unit of a memory, as stamps.

One write is enough: an earlier one is before it, or was reported with it. Of reads, and of atomic
writes, two are kept, of different blocks or else warps or else threads where there are such: who
comes after both comes after all.

What nothing else has touched is only listed; most of what a kernel reads is never written.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter, itemgetter
from typing import Final

import numpy as np

from ptx.emulate.check.stamps import WARP_SHIFT, Bools, Stamps, threads_of
from ptx.emulate.check.step import Step, Units, chosen
from ptx.emulate.model.addresses import Index

_MOST_LISTED: Final = 1 << 23  # units that are listed before they are written down


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


class _Listed:
    """Steps that access bytes from `low` to below `high`, and are not written down yet."""

    def __init__(self, low: int, high: int) -> None:
        self.low = low
        self.high = high
        self.reads: list[Step] = []
        self.writes: list[Step] = []
        self.atomics: list[Step] = []


_low, _high = attrgetter("low"), attrgetter("high")


class LastAccesses:
    """The accesses to a memory of `units` units, which `reserve` makes arrays of zeros for.

    Attributes:
        reads: ordinary and other reads.
        atomics: atomic and other strong writes.
    """

    def __init__(self, units: int, reserve: Callable[[int], Stamps], shift: int) -> None:
        self._make: Callable[[], Stamps] = partial(reserve, units)
        self._writes: Stamps | None = None
        self.reads: Pair = Pair(self._make, shift)
        self.atomics: Pair = Pair(self._make, shift)
        self._listed: list[_Listed] = []  # apart from each other, by their bytes
        self._count = 0
        # Between which bytes accesses are written down; apart from each other, in order.
        self._touched: list[tuple[int, int]] = []

    def lists_read(self, step: Step) -> bool:
        """List a read of what nothing has written yet; whether that is so."""
        if self._is_touched(step):
            return False
        group = self._group(step)
        if group.writes or group.atomics:
            return False
        group.reads.append(step)
        self._bound(step)
        return True

    def lists_atomic(self, step: Step) -> bool:
        """List an atomic write to what only such have accessed."""
        if self._is_touched(step):
            return False
        group = self._group(step)
        if group.writes or group.reads:
            return False
        group.atomics.append(step)
        self._bound(step)
        return True

    def lists_write(self, step: Step) -> bool:
        """List a write of each thread to a unit of its own, which nothing has accessed yet."""
        if step.first_of_run < 0 or self._is_touched(step):
            return False
        group = self._group(step)
        if (
            group.reads
            or group.atomics
            or any(each.low < step.high and step.low < each.high for each in group.writes)
        ):
            return False
        group.writes.append(step)
        return True

    def _bound(self, step: Step) -> None:
        """Write everything down where the list takes too much memory."""
        self._count += 0 if step.first_of_run >= 0 or step.is_uniform else step.count
        if self._count > _MOST_LISTED:
            for each in self._listed:
                self._write_down(each)
            self._listed.clear()
            self._count = 0

    def settle(self, step: Step) -> None:
        """Write down what is listed of the bytes of a step."""
        around = self._around(step)
        groups = self._listed[around]
        del self._listed[around]
        for group in groups:
            self._write_down(group)
        self._touch(step.low, step.high)

    def written(self, units: Units) -> list[Stamps]:
        """The last ordinary writes of these units, where there was any."""
        if self._writes is None:
            return []
        found = self._writes[units]
        return [found.copy()] if found.any() else []

    def write(self, step: Step) -> Bools | None:
        """These threads write these units; whose write was another's in the same step, or None."""
        if self._writes is None:
            self._writes = self._make()
        units = step.units
        self._writes[units] = step.stamps
        self.reads.clear(units)
        self.atomics.clear(units)
        if isinstance(units, slice):
            return None
        lost: Bools = self._writes[units] != step.stamps
        return lost if lost.any() else None

    def put(self, units: Index, stamps: Stamps, step: Step) -> None:
        """Take these stamps as the last writes of some units of a step."""
        self.settle(step)
        if self._writes is None:
            self._writes = self._make()
        self._writes[units] = stamps

    def reset(self) -> None:
        """Forget all accesses: everything that comes is after them."""
        self._listed.clear()
        self._count = 0
        if not self._touched:
            return
        self._touched.clear()
        if self._writes is not None:
            self._writes[:] = 0
        self.reads.reset()
        self.atomics.reset()

    def written_down(self, shift: int) -> Iterator[tuple[bool, int, Stamps]]:
        """What is written down: whether it was written, the first unit, and the stamps from there.

        `shift` makes a unit of a byte.
        """
        reads, atomics = self.reads, self.atomics
        for low, high in self._touched:
            first, end = low >> shift, -(-high >> shift)
            for writes, stamps in (
                (True, self._writes), (True, atomics.last), (True, atomics.other),
                (False, reads.last), (False, reads.other),
            ):  # fmt: skip
                if stamps is not None:
                    yield writes, first, stamps[first:end]

    def listed(self) -> Iterator[tuple[bool, list[Step]]]:
        """What is not written down yet: whether it was written, and steps near each other."""
        for group in self._listed:
            yield False, group.reads
            yield True, group.writes
            yield True, group.atomics

    def _is_touched(self, step: Step) -> bool:
        at = bisect_right(self._touched, step.low, key=itemgetter(1))
        return at < len(self._touched) and self._touched[at][0] < step.high

    def _touch(self, low: int, high: int) -> None:
        start = bisect_left(self._touched, low, key=itemgetter(1))
        end = bisect_right(self._touched, high, key=itemgetter(0))
        if start < end:
            low, high = min(low, self._touched[start][0]), max(high, self._touched[end - 1][1])
        self._touched[start:end] = [(low, high)]

    def _around(self, step: Step) -> slice:
        """Where what is listed of the bytes of a step stands."""
        start = bisect_right(self._listed, step.low, key=_high)
        return slice(start, max(start, bisect_left(self._listed, step.high, key=_low)))

    def _group(self, step: Step) -> _Listed:
        """What is listed of the bytes of a step, as one."""
        where = self._around(step)
        around = self._listed[where]
        group = around[0] if around else _Listed(step.low, step.high)
        group.low, group.high = min(group.low, step.low), max(group.high, step.high)
        for each in around[1:]:
            group.high = max(group.high, each.high)
            group.reads += each.reads
            group.writes += each.writes
            group.atomics += each.atomics
        self._listed[where] = [group]
        return group

    def _write_down(self, group: _Listed) -> None:
        self._touch(group.low, group.high)
        for step in group.writes:
            self.write(step)
        for step in group.reads:
            self.reads.add(step.units, step.stamps)
        for step in group.atomics:
            self.atomics.add(step.units, step.stamps)


def in_memory(units: int) -> Stamps:
    """Nobody has accessed any of so many units."""
    return np.zeros(units, dtype=np.int64)
