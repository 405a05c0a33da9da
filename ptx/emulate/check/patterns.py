"""Arrays of addresses that several accesses share, up to a constant that each access adds.

The blocks of the next chunk access the next rows of a matrix, and the next instruction accesses the
next element. The list of accesses stores one array for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.access_step import AccessStep
from ptx.emulate.check.stamps import Stamps
from ptx.emulate.model.addresses import Addresses, Varying

_FEWEST_LANES: Final = 256  # for fewer, an array costs less than the search
_MOST_ADDRESSES: Final = 1 << 18  # that are cached for later accesses
_FARTHEST: Final = 1 << 30  # bytes, so that differences fit into 32 bits
_Key = tuple[int, int, int, int]


class AddressPatterns:
    """The arrays in use, relative to their first address, by some of their elements."""

    def __init__(self) -> None:
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
        known = self._known.get(key)
        if known is not None:
            is_same = bool((np.subtract(array, first, dtype=np.int64) == known.array).all())
            return (first, known) if is_same else None
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


_Users = NDArray[np.int32]
_SEVERAL: Final = np.int32(2**31 - 1)
_MOST_IN_CHUNK: Final = 1 << 24  # threads
# A failed attempt wastes the time that so many successful ones save.
_COST_OF_FAILURE: Final = 4
_MOST_CREDIT: Final = 32


class SoleUsers:
    """The user of each unit.

    Args:
        units: how many there are.
        reserve: makes an array of so many zeros, of eight bytes each.
        shift: turns the number of a block into that of its first thread.

    Attributes:
        every: (units,) 0 without an access, the number of the only thread that has read the unit,
            less than 0 if that thread has written it, and _SEVERAL if several have only read it.
            None before the first access.
    """

    def __init__(self, units: int, reserve: Callable[[int], Stamps], shift: int) -> None:
        self._make: Callable[[], Stamps] = lambda: reserve(-(-units // 2))
        self._shift = shift
        self.every: _Users | None = None
        self._credit = _MOST_CREDIT

    @property
    def is_worthwhile(self) -> bool:
        """Whether most attempts have succeeded; else another one wastes time."""
        return self._credit > 0

    def read(self, step: AccessStep) -> bool:
        """Record reads; return False if another thread has written one of the units."""
        users, units, place = self._users(step), step.find_units(), self._place()
        if users is None:
            return self._fail()
        known = place[units]
        if known.any():
            if ((known < 0) & (known != -users)).any():
                return self._fail()
            own = abs(known) == users
            users = np.where(known == 0, users, np.where(own, known, _SEVERAL))
        place[units] = users
        if not step.is_apart:
            assert not isinstance(units, slice)
            others = np.flatnonzero(place[units] != users)
            place[units[others]] = _SEVERAL
        return self._succeed()

    def write(self, step: AccessStep) -> bool:
        """Record writes to places apart; return False if another thread has accessed a unit."""
        users, units, place = self._users(step), step.find_units(), self._place()
        if users is None:
            return self._fail()
        known = place[units]
        if known.any() and ((known != 0) & (abs(known) != users)).any():
            return self._fail()
        place[units] = -users
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
        """The user of each unit; None where its number takes more than 32 bits.

        Reads that are not those of a chunk's threads count as those of several.
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
