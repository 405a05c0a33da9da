"""A shadow memory that lists accesses, and stores stamps only where another thread may conflict.

Most memory is only read, or each element is accessed by one thread alone. The list stores an access
as its step, in far less time and memory. No verdict depends on it (`accelerations.py`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.accelerations import ALL, Accelerations
from ptx.emulate.check.access_step import AccessStep
from ptx.emulate.check.shadow_memory import ShadowMemory
from ptx.emulate.check.stamps import Bools, Stamps
from ptx.emulate.model.addresses import Addresses, Varying

FEWEST_LISTED: Final = 1 << 21
"""Bytes of addresses that are listed of a memory at least, before stamps are stored."""
_FEWEST_LANES: Final = 256  # for fewer, an array costs less than the search
_MOST_ADDRESSES: Final = 1 << 18  # that are cached for later accesses
_FARTHEST: Final = 1 << 30  # bytes, so that differences fit into 32 bits
_Key = tuple[int, int, int, int]
_Users = NDArray[np.int32]
_SEVERAL: Final = np.int32(2**31 - 1)
_MOST_IN_CHUNK: Final = 1 << 24  # threads
# A failed attempt wastes the time that so many successful ones save.
_COST_OF_FAILURE: Final = 4
_MOST_CREDIT: Final = 32


class AddressPatterns:
    """Arrays of addresses that several accesses share, up to a constant that each access adds.

    The blocks of the next chunk access the next rows of a matrix, and the next instruction accesses
    the next element. The list stores one array for all of them.
    """

    def __init__(self) -> None:
        # Relative to their first address, by some of their elements.
        self._known: dict[_Key, Varying] = {}
        self._count = 0

    def share(self, addresses: Addresses) -> Addresses:
        """Return the same addresses with an array that equal accesses share."""
        varying = addresses.varying
        if varying is None or varying.cached or len(varying.array) < _FEWEST_LANES:
            return addresses
        if varying.pattern is None:
            varying.pattern = self._find(varying)
        if varying.pattern is None:
            return addresses
        first, pattern = varying.pattern
        return Addresses(addresses.base + first, pattern)

    def _find(self, varying: Varying) -> tuple[int, Varying] | None:
        """Return the first address and the array relative to it, if the array can be shared."""
        array = varying.array
        count, first = len(array), int(array[0])
        key = count, int(array[1]) - first, int(array[count // 3]) - first, int(array[-1]) - first
        shared = self._known.get(key)
        if shared is not None:
            is_same = bool((np.subtract(array, first, dtype=np.int64) == shared.array).all())
            return (first, shared) if is_same else None
        least, greatest, _ = varying.bounds()
        if greatest - least >= _FARTHEST:
            return None
        if self._count + count > _MOST_ADDRESSES:
            self._known.clear()
            self._count = 0
        self._count += count
        relative = np.subtract(array, first, dtype=np.int64).astype(np.int32)
        pattern = self._known[key] = Varying(relative)
        return first, pattern


class SoleUsers:
    """The thread that alone has accessed each unit.

    Threads that read and write locations of their own need no comparison.

    Args:
        units: how many there are.
        reserve: makes an array of so many zeros, of eight bytes each.
        shift: turns the number of a block into that of its first thread.
        is_used: whether to record anything at all.

    Attributes:
        every: (units,) 0 without an access, the number of the only thread that has read the unit,
            less than 0 if that thread has written it, and _SEVERAL if several have only read it.
            None before the first access.
    """

    def __init__(
        self, units: int, reserve: Callable[[int], Stamps], shift: int, *, is_used: bool
    ) -> None:
        self._make: Callable[[], Stamps] = lambda: reserve(-(-units // 2))
        self._shift = shift
        self.every: _Users | None = None
        self._credit = _MOST_CREDIT if is_used else 0

    @property
    def is_worthwhile(self) -> bool:
        """True if most attempts have succeeded; else another one wastes time."""
        return self._credit > 0

    def read(self, step: AccessStep) -> bool:
        """Record reads; return False if another thread has written one of the units."""
        users, units, known_users = self._users(step), step.find_units(), self._place()
        if users is None:
            return self._fail()
        earlier_users = known_users[units]
        if earlier_users.any():
            if ((earlier_users < 0) & (earlier_users != -users)).any():
                return self._fail()
            is_own = abs(earlier_users) == users
            users = np.where(earlier_users == 0, users, np.where(is_own, earlier_users, _SEVERAL))
        known_users[units] = users
        if not step.is_apart:
            assert not isinstance(units, slice)
            shared_units = np.flatnonzero(known_users[units] != users)
            known_users[units[shared_units]] = _SEVERAL
        return self._succeed()

    def write(self, step: AccessStep) -> bool:
        """Record writes to places apart; return False if another thread has accessed a unit."""
        users, units, known_users = self._users(step), step.find_units(), self._place()
        if users is None:
            return self._fail()
        earlier_users = known_users[units]
        if earlier_users.any() and ((earlier_users != 0) & (abs(earlier_users) != users)).any():
            return self._fail()
        known_users[units] = -users
        return self._succeed()

    def reset(self) -> None:
        """Forget all accesses."""
        if self.every is not None:
            self.every[:] = 0

    def _place(self) -> _Users:
        if self.every is None:
            self.every = self._make().view(np.int32)
        return self.every

    def _users(self, step: AccessStep) -> _Users | None:
        """Return the user of each unit; None where its number takes more than 32 bits.

        Reads by virtual threads count as those of several threads.
        """
        if step.moment.chunk < 0:
            return np.full(step.unit_count, _SEVERAL)
        first = (step.moment.chunk << self._shift) + 1
        return step.numbered(first) if first < _SEVERAL - _MOST_IN_CHUNK else None

    def _fail(self) -> bool:
        self._credit -= _COST_OF_FAILURE
        return False

    def _succeed(self) -> bool:
        self._credit = min(self._credit + 1, _MOST_CREDIT)
        return True


class _Listed:
    """Listed steps that access bytes from `low` to below `high`.

    `nbytes`: what their addresses take.
    `was_read`, `was_combined`: reads, or atomic writes, are stored already, and nothing else.
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


def _meet(earlier: AccessStep, step: AccessStep) -> bool:
    """Return whether other threads may access the same bytes in two steps."""
    return earlier.low < step.high and step.low < earlier.high and not earlier.is_at(step)


class LazyShadowMemory(ShadowMemory):
    """A shadow memory with a list of accesses, by at least `fewest` bytes of their addresses."""

    def __init__(
        self,
        units: int,
        reserve: Callable[[int], Stamps],
        shift: int,
        fewest: int = FEWEST_LISTED,
        accelerations: Accelerations = ALL,
    ) -> None:
        super().__init__(units, reserve, shift)
        self._groups: list[_Listed] = []  # apart from each other, by their bytes
        self._patterns = AddressPatterns() if accelerations.shares_addresses else None
        self._users = SoleUsers(units, reserve, shift, is_used=accelerations.finds_sole_users)
        self._last_number = 0
        self._nbytes = 0  # of addresses in the list
        self._fewest = self._most = fewest

    def lists_read(self, step: AccessStep) -> bool:
        """List a read, unless other threads have written some of it."""
        if self._is_stored(step):
            return False
        self._share(step)
        group = self._group(step)
        if group.was_combined or group.atomics:
            return False
        if (group.has_users or any(_meet(write, step) for write in group.writes)) and not (
            self._finds_users(group) and self._users.read(step)
        ):
            return False
        self._put(group.reads, step)
        self._bound(group, step.slim())
        return True

    def lists_atomic(self, step: AccessStep) -> bool:
        """List an atomic write, if only such writes have accessed the bytes."""
        if self._is_stored(step):
            return False
        self._share(step)
        group = self._group(step)
        if group.was_read or group.writes or group.reads:
            return False
        group.atomics.append(step)
        self._bound(group, step.slim(is_compared=False))
        return True

    def lists_write(self, step: AccessStep) -> bool:
        """List a write of each thread to a place of its own, if no other thread has accessed it."""
        if self._is_stored(step):
            return False
        self._share(step)
        if not step.is_apart:
            return False
        group = self._group(step)
        if group.was_read or group.was_combined or group.atomics:
            return False
        if (
            group.has_users
            or any(_meet(listed, step) for listed in group.writes)
            or any(_meet(listed, step) for listed in group.reads)
        ) and not (self._finds_users(group) and self._users.write(step)):
            return False
        if group.reads and group.reads[-1].is_at(step):
            group.reads.pop()  # the same thread writes later
        step.is_write = True
        self._put(group.writes, step)
        self._bound(group, step.slim())
        return True

    def listed(self) -> Iterator[tuple[bool, list[AccessStep]]]:
        """Yield listed accesses: whether they are writes, and steps near each other."""
        for group in self._groups:
            yield False, group.reads
            yield True, group.writes
            yield True, group.atomics

    def settle(self, step: AccessStep) -> None:
        """Store all accesses to the bytes of a step, before it is compared."""
        nearby = self._around(step.low, step.high)
        groups = self._groups[nearby]
        del self._groups[nearby]
        for group in groups:
            self._store(group)
        self._add_range(step.low, step.high)

    def has_writes(self, step: AccessStep) -> bool:
        """Return whether anything may have written bytes near those of a step."""
        nearby = self._groups[self._around(step.low, step.high)]
        return self._is_stored(step) or any(group.writes or group.atomics for group in nearby)

    def written_within(self, low: int, high: int, shift: int) -> Bools | None:
        """Return which units of some bytes were written; None if none was."""
        nearby = self._around(low, high)
        groups = self._groups[nearby]
        if any(listed.writes or listed.atomics for listed in groups):
            del self._groups[nearby]
            for group in groups:
                self._store(group)
        return super().written_within(low, high, shift)

    def reset(self) -> None:
        """Forget all accesses: every later access is ordered after them."""
        self._groups.clear()
        self._nbytes = 0
        self._users.reset()
        super().reset()

    def parts_in_use(self, shift: int) -> Iterator[NDArray[np.integer[Any]]]:
        """Yield the parts of arrays whose pages may take memory."""
        yield from super().parts_in_use(shift)
        every = self._users.every
        if every is not None:
            for low, high in [*self._stored, *((group.low, group.high) for group in self._groups)]:
                yield every[low >> shift : -(-high >> shift)]

    def _ranges(self) -> list[tuple[int, int]]:
        """The bytes between which units may have stamps."""
        groups = [group for group in self._groups if group.was_read or group.was_combined]
        return [*self._stored, *[(group.low, group.high) for group in groups]]

    def _share(self, step: AccessStep) -> None:
        if self._patterns is not None:
            step.share(self._patterns.share)

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
                self._users.write(access) if access.is_write else self._users.read(access)
                for access in group.in_order()
            )
        return group.has_users

    def _bound(self, group: _Listed, nbytes: int) -> None:
        """Count new bytes of addresses; store groups where the list takes too much memory.

        The list may take as much as the memory itself.
        """
        group.nbytes += nbytes
        self._nbytes += nbytes
        if self._nbytes <= self._most:
            return
        self._most = max(self._fewest, sum(listed.high - listed.low for listed in self._groups))
        if self._nbytes <= self._most:
            return
        retained, least = [], self._nbytes // (2 * len(self._groups))
        for listed in self._groups:
            if listed.nbytes < least:
                retained.append(listed)  # these take less than half of all bytes together
            elif listed.writes:
                self._store(listed)
            else:
                self._add_all(listed)
                listed.was_read |= bool(listed.reads)
                listed.was_combined |= bool(listed.atomics)
                listed.reads.clear()
                listed.atomics.clear()
                listed.nbytes = 0
                retained.append(listed)
        self._groups = retained
        self._nbytes = sum(listed.nbytes for listed in retained)

    def _around(self, low: int, high: int) -> slice:
        """Return where the groups of some bytes stand in the list."""
        start = bisect_right(self._groups, low, key=_high)
        return slice(start, max(start, bisect_left(self._groups, high, key=_low)))

    def _group(self, step: AccessStep) -> _Listed:
        """Return one group for all listed accesses to the bytes of a step."""
        around = self._around(step.low, step.high)
        nearby = self._groups[around]
        group = nearby[0] if nearby else _Listed(step.low, step.high)
        group.low, group.high = min(group.low, step.low), max(group.high, step.high)
        if any(listed.has_users for listed in nearby[1:]) or (group.has_users and len(nearby) > 1):
            group.has_users = all(self._finds_users(listed) for listed in nearby)
        for listed in nearby[1:]:
            group.high = max(group.high, listed.high)
            group.reads += listed.reads
            group.writes += listed.writes
            group.atomics += listed.atomics
            group.nbytes += listed.nbytes
            group.was_read |= listed.was_read
            group.was_combined |= listed.was_combined
        self._groups[around] = [group]
        return group

    def _store(self, group: _Listed) -> None:
        self._nbytes -= group.nbytes
        self._add_range(group.low, group.high)
        for step in group.in_order():
            if step.is_write:
                self.write(step)
            else:
                self.reads.add(step.units, step.stamps)
        self._add_atomics(group)

    def _add_all(self, group: _Listed) -> None:
        """Store the accesses of a group that has no writes."""
        self._has_stamps = True
        for step in group.reads:
            self.reads.add(step.units, step.stamps)
        self._add_atomics(group)

    def _add_atomics(self, group: _Listed) -> None:
        for step in group.atomics:
            self.atomics.add(step.units, step.stamps)
