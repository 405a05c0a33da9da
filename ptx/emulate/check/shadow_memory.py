"""The last accesses to each unit of a memory, as stamps.

One write is enough: an earlier one is before it, or was reported with it. Of reads, of strong
reads, and of atomic writes, two are kept, of different blocks or else warps or else threads where
there are such: who comes after both comes after all. A strong read does not stand for an ordinary
one of the same thread, as it may meet an atomic write and that may not; nor does a guess that a
swap checks, as it may be meant so.

What nothing else has touched is only listed; most of what a kernel reads is never written.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.access_step import AccessStep, Units, chosen
from ptx.emulate.check.patterns import AddressPatterns, SoleUsers
from ptx.emulate.check.stamps import THREAD_SHIFT, WARP_SHIFT, Bools, Stamps, sites_of, threads_of
from ptx.emulate.model.addresses import Index

_TWO: Final = 2
_FARTHEST: Final = 2


class AccessPair:
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


FEWEST_LISTED: Final = 1 << 21
"""Bytes of addresses that are listed of a memory at least, before they are written down."""


class _Listed:
    """Steps that access bytes from `low` to below `high`, and are not written down yet.

    `nbytes`: what their addresses take.
    `was_read`, `was_combined`: reads, or atomic writes, are written down already, and nothing else.
    `has_users`: the users of all units are recorded.
    """

    def __init__(self, low: int, high: int) -> None:
        self.low = low
        self.high = high
        self.nbytes = 0
        self.was_read = False
        self.was_combined = False
        self.has_users = False
        self.reads: list[AccessStep] = []
        self.writes: list[AccessStep] = []
        self.atomics: list[AccessStep] = []

    def in_order(self) -> list[AccessStep]:
        """The reads and the writes, in the order of their execution."""
        if not self.writes:
            return self.reads
        return sorted(self.reads + self.writes, key=attrgetter("number"))


_low, _high = attrgetter("low"), attrgetter("high")


def _meet(one: AccessStep, step: AccessStep) -> bool:
    """Whether threads may access what other ones do in another step."""
    return one.low < step.high and step.low < one.high and not one.is_at(step)


class ShadowMemory:
    """The accesses to a memory of `units` units, which `reserve` makes arrays of zeros for.

    At least `fewest` bytes of addresses are listed before they are written down.

    Attributes:
        reads: ordinary reads.
        strong_reads: volatile reads and others that may meet atomic writes.
        atomics: atomic and other strong writes.
    """

    def __init__(
        self, units: int, reserve: Callable[[int], Stamps], shift: int, fewest: int = FEWEST_LISTED
    ) -> None:
        self._make: Callable[[], Stamps] = partial(reserve, units)
        self._writes: Stamps | None = None
        self.reads: AccessPair = AccessPair(self._make, shift)
        self.strong_reads: AccessPair = AccessPair(self._make, shift)
        self.atomics: AccessPair = AccessPair(self._make, shift)
        self._listed: list[_Listed] = []  # apart from each other, by their bytes
        self._patterns = AddressPatterns()
        self._users = SoleUsers(units, reserve, shift)
        self._last_number = 0
        self._nbytes = 0  # of addresses in the list
        self._fewest = self._most = fewest
        self._written_down = False  # anything
        # Between which bytes accesses are written down; apart from each other, in order.
        self._touched: list[tuple[int, int]] = []

    def lists_read(self, step: AccessStep) -> bool:
        """List a read, unless others have written some of it; whether that is so."""
        if self._is_touched(step):
            return False
        step.share(self._patterns.share)
        group = self._group(step)
        if group.was_combined or group.atomics:
            return False
        if (group.has_users or any(_meet(each, step) for each in group.writes)) and not (
            self._finds_users(group) and self._users.read(step)
        ):
            return False
        self._put(group.reads, step)
        self._bound(group, step.slim())
        return True

    def lists_atomic(self, step: AccessStep) -> bool:
        """List an atomic write to what only such have accessed."""
        if self._is_touched(step):
            return False
        step.share(self._patterns.share)
        group = self._group(step)
        if group.was_read or group.writes or group.reads:
            return False
        group.atomics.append(step)
        self._bound(group, step.slim(is_compared=False))
        return True

    def has_writes(self, step: AccessStep) -> bool:
        """Whether anything may have written bytes near those of a step."""
        around = self._listed[self._around(step)]
        return self._is_touched(step) or any(each.writes or each.atomics for each in around)

    def written_within(self, low: int, high: int, shift: int) -> Bools | None:
        """Which units of some bytes were written; None if none was.

        `shift` makes a unit of a byte.
        """
        start = bisect_right(self._listed, low, key=_high)
        around = slice(start, max(start, bisect_left(self._listed, high, key=_low)))
        groups = self._listed[around]
        units = slice(low >> shift, -(-high >> shift))
        found: Bools = np.zeros(units.stop - units.start, dtype=np.bool_)
        if any(each.writes or each.atomics for each in groups):
            del self._listed[around]
            for group in groups:
                self._write_down(group)
        for stamps in (self._writes, self.atomics.last):
            if stamps is not None:
                found |= stamps[units] != 0
        return found if found.any() else None

    def lists_write(self, step: AccessStep) -> bool:
        """List a write of each thread to a place of its own, which no other has accessed."""
        if self._is_touched(step):
            return False
        step.share(self._patterns.share)
        if not step.is_apart:
            return False
        group = self._group(step)
        if group.was_read or group.was_combined or group.atomics:
            return False
        if (
            group.has_users
            or any(_meet(each, step) for each in group.writes)
            or any(_meet(each, step) for each in group.reads)
        ) and not (self._finds_users(group) and self._users.write(step)):
            return False
        if group.reads and group.reads[-1].is_at(step):
            group.reads.pop()  # the same thread writes later
        step.is_write = True
        self._put(group.writes, step)
        self._bound(group, step.slim())
        return True

    def _put(self, steps: list[AccessStep], step: AccessStep) -> None:
        """List a step, instead of the last one if the same threads accessed the same places."""
        self._last_number += 1
        step.number = self._last_number
        if steps and steps[-1].is_at(step):
            steps[-1] = step
        else:
            steps.append(step)

    def _finds_users(self, group: _Listed) -> bool:
        """Record the users of a group's units; return whether no two threads conflict."""
        if not group.has_users and self._users.is_worthwhile:
            group.has_users = all(
                self._users.write(each) if each.is_write else self._users.read(each)
                for each in group.in_order()
            )
        return group.has_users

    def _bound(self, group: _Listed, nbytes: int) -> None:
        """Count new bytes of addresses; write groups down where the list takes too much memory.

        The list may take as much as the memory itself.
        """
        group.nbytes += nbytes
        self._nbytes += nbytes
        if self._nbytes <= self._most:
            return
        self._most = max(self._fewest, sum(each.high - each.low for each in self._listed))
        if self._nbytes <= self._most:
            return
        rest, least = [], self._nbytes // (2 * len(self._listed))
        for each in self._listed:
            if each.nbytes < least:
                rest.append(each)  # these take less than half of all bytes together
            elif each.writes:
                self._write_down(each)
            else:
                self._add_all(each)
                each.was_read |= bool(each.reads)
                each.was_combined |= bool(each.atomics)
                each.reads.clear()
                each.atomics.clear()
                each.nbytes = 0
                rest.append(each)
        self._listed = rest
        self._nbytes = sum(each.nbytes for each in rest)

    def read(self, step: AccessStep, guesses: Sequence[int]) -> None:
        """These threads read these units; the sites `guesses` read what a swap checks.

        A guess may be meant so, so it gives way to any other read, whoever comes first.
        """
        units, stamps = step.units, step.stamps
        if step.site in guesses and self.reads.last is not None:
            last = self.reads.last[units]
            free = np.flatnonzero((last == 0) | np.isin(sites_of(last), guesses))
            units, stamps = chosen(units, free), stamps[free]
        elif guesses:
            self.reads.clear_of(units, guesses)
        self.reads.add(units, stamps)

    def settle(self, step: AccessStep) -> None:
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
        found = copied(self._writes, units)
        return [found] if found.any() else []

    def write(self, step: AccessStep) -> Bools | None:
        """These threads write these units; whose write was another's in the same step, or None."""
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
        """Take these stamps as the last writes of some units of a step."""
        self.settle(step)
        if self._writes is None:
            self._writes = self._make()
        self._writes[units] = stamps

    def reset(self) -> None:
        """Forget all accesses: everything that comes is after them."""
        self._listed.clear()
        self._nbytes = 0
        self._users.reset()
        if not self._written_down:
            return
        self._written_down = False
        self._touched.clear()
        if self._writes is not None:
            self._writes[:] = 0
        self.reads.reset()
        self.strong_reads.reset()
        self.atomics.reset()

    def written_down(self, shift: int) -> Iterator[tuple[bool, int, Stamps]]:
        """What is written down: whether it was written, the first unit, and the stamps from there.

        `shift` makes a unit of a byte.
        """
        reads, strong, atomics = self.reads, self.strong_reads, self.atomics
        groups = [each for each in self._listed if each.was_read or each.was_combined]
        for low, high in [*self._touched, *((each.low, each.high) for each in groups)]:
            first, end = low >> shift, -(-high >> shift)
            for writes, stamps in (
                (True, self._writes), (True, atomics.last), (True, atomics.other),
                (False, reads.last), (False, reads.other),
                (False, strong.last), (False, strong.other),
            ):  # fmt: skip
                if stamps is not None:
                    yield writes, first, stamps[first:end]

    def listed(self) -> Iterator[tuple[bool, list[AccessStep]]]:
        """What is not written down yet: whether it was written, and steps near each other."""
        for group in self._listed:
            yield False, group.reads
            yield True, group.writes
            yield True, group.atomics

    def users(self, shift: int) -> Iterator[NDArray[np.int32]]:
        """The users of the units that any access may have; `shift` makes a unit of a byte."""
        every = self._users.every
        if every is not None:
            for low, high in [*self._touched, *((each.low, each.high) for each in self._listed)]:
                yield every[low >> shift : -(-high >> shift)]

    def _is_touched(self, step: AccessStep) -> bool:
        at = bisect_right(self._touched, step.low, key=itemgetter(1))
        return at < len(self._touched) and self._touched[at][0] < step.high

    def _touch(self, low: int, high: int) -> None:
        self._written_down = True
        start = bisect_left(self._touched, low, key=itemgetter(1))
        end = bisect_right(self._touched, high, key=itemgetter(0))
        if start < end:
            low, high = min(low, self._touched[start][0]), max(high, self._touched[end - 1][1])
        self._touched[start:end] = [(low, high)]

    def _around(self, step: AccessStep) -> slice:
        """Where what is listed of the bytes of a step stands."""
        start = bisect_right(self._listed, step.low, key=_high)
        return slice(start, max(start, bisect_left(self._listed, step.high, key=_low)))

    def _group(self, step: AccessStep) -> _Listed:
        """What is listed of the bytes of a step, as one."""
        where = self._around(step)
        around = self._listed[where]
        group = around[0] if around else _Listed(step.low, step.high)
        group.low, group.high = min(group.low, step.low), max(group.high, step.high)
        if any(each.has_users for each in around[1:]) or (group.has_users and len(around) > 1):
            group.has_users = all(self._finds_users(each) for each in around)
        for each in around[1:]:
            group.high = max(group.high, each.high)
            group.reads += each.reads
            group.writes += each.writes
            group.atomics += each.atomics
            group.nbytes += each.nbytes
            group.was_read |= each.was_read
            group.was_combined |= each.was_combined
        self._listed[where] = [group]
        return group

    def _write_down(self, group: _Listed) -> None:
        self._nbytes -= group.nbytes
        self._touch(group.low, group.high)
        for step in group.in_order():
            if step.is_write:
                self.write(step)
            else:
                self.reads.add(step.units, step.stamps)
        self._add_atomics(group)

    def _add_all(self, group: _Listed) -> None:
        """Write down what a group lists that has no writes."""
        self._written_down = True
        for step in group.reads:
            self.reads.add(step.units, step.stamps)
        self._add_atomics(group)

    def _add_atomics(self, group: _Listed) -> None:
        for step in group.atomics:
            self.atomics.add(step.units, step.stamps)


def in_memory(units: int) -> Stamps:
    """Nobody has accessed any of so many units."""
    return np.zeros(units, dtype=np.int64)
