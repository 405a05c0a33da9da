"""One access of several threads by one instruction. Its units and stamps are made when needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.stamps import Bools, Stamps
from ptx.emulate.model.addresses import Addresses, Index, Varying

Units = Index | slice
"""Units of a memory; a slice where they are contiguous."""


class Moment:
    """The stamps of all threads of a chunk at one time, without a site.

    Args:
        stamps: of each thread.
        increment: is added to all of them.
        chunk: identifies the chunk; -1 if the stamps are not those of a chunk's threads.
    """

    def __init__(self, stamps: Stamps, increment: int = 0, chunk: int = -1) -> None:
        self.chunk: int = chunk
        self._stamps = stamps
        self._more = increment

    @cached_property
    def stamps(self) -> Stamps:
        """The stamps, an array that is never changed."""
        return self._stamps + self._more if self._more else self._stamps


class AccessStep:
    """Threads that access memory by one instruction.

    Attributes:
        low, high: the bytes of the memory, or of each block's, that the accesses are within.
        count: how many threads there are.
        site: the number of the site.
        moment: the time; it must not change once the stamps are known.
        number: counts up from one listed step to the next.
        is_write: whether it is listed as a write.
    """

    def __init__(
        self,
        now: Moment,
        lanes: Index | None,
        site: int,
        addresses: Addresses,
        offset: int,
        count: int,
        nbytes: int,
        unit_shift: int,
        starts: Index | None = None,
    ) -> None:
        """Describe the access.

        Args:
            now: the time.
            lanes: the threads; None for all of the chunk.
            site: the number of the site.
            addresses, offset: from the memory's beginning, or that of each block's part.
            count: how many threads there are.
            nbytes: how much each of them accesses.
            unit_shift: turns the number of a byte into that of its unit.
            starts: where each thread's part begins, in bytes.
        """
        self.moment: Moment = now
        self._lanes = lanes
        self.site = site
        self._addresses = addresses
        self._offset = offset
        self._nbytes = nbytes
        self._units_per_access = max(nbytes >> unit_shift, 1)
        self._unit_shift = unit_shift
        self._starts = starts
        self.count = count
        self.low: int = addresses.lowest() + offset
        self.high: int = addresses.highest() + offset + nbytes
        self.is_uniform: bool = addresses.varying is None
        self.number: int = 0
        self.is_write: bool = False

    @cached_property
    def first_of_run(self) -> int:
        """The first unit, where each thread accesses the unit after the one before; else -1."""
        varying = self._addresses.varying
        if self._starts is not None or varying is None or self._units_per_access != 1:
            return -1
        line = varying.line()
        if line is None or line[1] != 1 << self._unit_shift:
            return -1
        start = self._addresses.base + self._offset + line[0]
        return -1 if start & (line[1] - 1) else start >> self._unit_shift

    def share(self, shared: Callable[[Addresses], Addresses]) -> None:
        """Replace the array of addresses by one that equal accesses share."""
        if self.first_of_run < 0 and self._starts is None:
            self._addresses = shared(self._addresses)

    @cached_property
    def is_apart(self) -> bool:
        """True if each thread accesses a location of its own."""
        if self.first_of_run >= 0:
            return True
        varying, starts, nbytes = self._addresses.varying, self._starts, self._nbytes
        if varying is not None:
            return varying.is_apart(nbytes, starts)
        if starts is not None:
            return bool((starts[1:] - starts[:-1] >= nbytes).all())
        return self.count == 1

    def slim(self, *, is_compared: bool = True) -> int:
        """Drop data that the list does not need; return the bytes that only this access retains.

        That is 0 if the first unit determines all others. Without `is_compared` the indices that
        were made of the array go, too, so that `is_at` does not recognise it any more.
        """
        if self.first_of_run >= 0:
            self._addresses = _NOWHERE
        varying = self._addresses.varying
        if varying is None:
            return 0
        varying.users += 1
        if varying.cached:
            return 0
        if varying.users > 1:
            return _OF_STEP
        if not is_compared:
            self._addresses = Addresses(self._addresses.base, Varying(varying.array))
        return varying.array.nbytes

    def is_at(self, other: AccessStep) -> bool:
        """Return whether the same threads access the same places, each its own; a quick test."""
        return (
            self.moment.chunk == other.moment.chunk >= 0
            and self.low == other.low
            and self.high == other.high
            and self._lanes is other._lanes
            and self._starts is other._starts
            and (
                self._addresses.varying is other._addresses.varying
                or self.first_of_run == other.first_of_run >= 0
            )
            and self._unit_shift == other._unit_shift
            and self.is_apart
        )

    @cached_property
    def units(self) -> Units:
        """The units, those of a thread together."""
        return self.find_units()

    def find_units(self) -> Units:
        """Return the units, without caching them."""
        first = self.first_of_run
        if first >= 0:
            return slice(first, first + self.count)
        units: Index = self._addresses.moved(self._offset).every(self.count)
        if self._starts is not None:
            units += self._starts
        units >>= self._unit_shift
        if self._units_per_access > 1:
            units = (units[:, None] + np.arange(self._units_per_access)).reshape(-1)
        return units

    @property
    def stretches(self) -> tuple[Index, Index] | None:
        """The bounds of contiguous stretches of units, where accesses share the array.

        None where the stretches are not much fewer than the units.
        """
        varying = self._addresses.varying
        if varying is None or varying.users < _SHARED or self._starts is not None:
            return None
        bounds = varying.stretches(self._nbytes)
        if bounds is None:
            return None
        addresses = self._addresses.moved(self._offset)
        starts, ends = map(addresses.above, bounds)
        return starts >> self._unit_shift, ends >> self._unit_shift

    @property
    def places(self) -> Units | int:
        """The units, or the one that all threads access."""
        units = self.units
        if self.is_uniform and self._starts is None and self._units_per_access == 1:
            assert not isinstance(units, slice)
            return int(units[0])
        return units

    @property
    def first_units(self) -> Index:
        """(count,) the first unit of each thread."""
        units = self.units
        if isinstance(units, slice):
            return np.arange(units.start, units.stop)
        firsts: Index = units[:: self._units_per_access]
        return firsts

    @cached_property
    def threads(self) -> Index:
        """(count,) the threads, by their numbers in the chunk."""
        return np.arange(self.count) if self._lanes is None else self._lanes

    @cached_property
    def lanes(self) -> Index:
        """The thread of each unit, by its number in the chunk."""
        return (
            np.repeat(self.threads, self._units_per_access)
            if self._units_per_access > 1
            else self.threads
        )

    def numbered(self, first: int) -> NDArray[np.int32]:
        """Return the thread of each unit, by numbers from `first` on, without caching them."""
        if self._lanes is None:
            threads = np.arange(first, first + self.count, dtype=np.int32)
        else:
            threads = (self._lanes + first).astype(np.int32)
        return np.repeat(threads, self._units_per_access) if self._units_per_access > 1 else threads

    @property
    def unit_count(self) -> int:
        """Number of units; a unit that several threads access counts once for each."""
        return self.count * self._units_per_access

    @cached_property
    def stamps(self) -> Stamps:
        """The stamp for each unit."""
        now = self.moment.stamps
        stamps = now if self._lanes is None else now[self._lanes]
        stamps = stamps | self.site
        return np.repeat(stamps, self._units_per_access) if self._units_per_access > 1 else stamps

    def spread(self, of_threads: Bools) -> Bools:
        """Return for each unit what its thread has."""
        return (
            np.repeat(of_threads, self._units_per_access)
            if self._units_per_access > 1
            else of_threads
        )

    def by(self, stamps: Stamps) -> AccessStep:
        """Return the same access by other threads, with these stamps without a site."""
        return self._changed(
            count=self.count, first_of_run=self.first_of_run, moment=Moment(stamps), _lanes=None
        )

    def ends(self) -> AccessStep:
        """Return the access of the first and the last thread, of each block where it is shared.

        Of threads that read one place, these two are enough where barriers alone order them.
        """
        outermost = np.array([0, self.count - 1])
        starts = self._starts
        if starts is not None:
            last = np.flatnonzero(starts[1:] != starts[:-1])
            outermost = np.unique(np.concatenate([outermost, last, last + 1]))
        return self._changed(
            count=len(outermost),
            _lanes=self.lanes[:: self._units_per_access][outermost],
            _starts=None if starts is None else starts[outermost],
        )

    def _changed(self, **changed: object) -> AccessStep:
        """Return a copy with these attributes, without cached values."""
        step = AccessStep.__new__(AccessStep)
        step.__dict__.update({name: self.__dict__[name] for name in _COPIED}, **changed)
        return step

    def byte(self, position: int) -> int:
        """Return the first byte that the thread of this number accesses."""
        return self.unit(position * self._units_per_access) << self._unit_shift

    def unit(self, position: int) -> int:
        """Return the number of one unit."""
        units = self.units
        return units.start + position if isinstance(units, slice) else int(units[position])

    def position_of_thread(self, position: int) -> int:
        """Return the number of the thread of one unit, among those of the step."""
        return position // self._units_per_access


_SHARED: Final = 2  # listed accesses with one array
_OF_STEP: Final = 256  # bytes of a listed access without its array
_NOWHERE = Addresses(0, None)
_COPIED = (
    "moment", "site", "_addresses", "_offset", "_nbytes", "_units_per_access", "_unit_shift",
    "_starts", "low", "high", "is_uniform", "number", "is_write",
)  # fmt: skip


def chosen(units: Units, indices: Index) -> Index:
    """Return some of the units."""
    if isinstance(units, slice):
        chosen_units: Index = indices + units.start
        return chosen_units
    return units[indices]
