"""Addresses of one access: a number common to all lanes plus, where they differ, an array.

The bounds, the low bits and the element index of an array are computed once and shared by every
access that adds another constant to it.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.intp]
_SHORTEST_RUN = 64
_FEWEST_IN_STRETCH = 8
_min: Any = np.minimum.reduce  # NumPy's stubs do not take its own arrays here
_max: Any = np.maximum.reduce
_or: Any = np.bitwise_or.reduce


class Varying:
    """The part of an address that differs from lane to lane: (n,) int64 or int32.

    `cached`: it lives as long as its launch; `sums`: with other such parts, by their identity;
    `pattern`: its first value and a shared array relative to it; `users`: how many listed accesses
    have it; `loaded`: elements that were loaded with others, for a later load, by its site.
    """

    __slots__ = (
        "_apart", "_bounds", "_distances", "_indices", "_line", "_placed", "_run", "_stretches",
        "array", "cached", "loaded", "pattern", "sums", "users",
    )  # fmt: skip

    def __init__(self, array: NDArray[Any], *, cached: bool = False) -> None:
        self.array: NDArray[Any] = array
        self.cached: bool = cached
        self.sums: dict[int, Varying] = {}
        self._bounds: tuple[int, int, int] | None = None
        self._line: tuple[int, int] | Literal[0] | None = 0  # 0: not looked for yet
        self._indices: dict[int, Index] = {}
        self._distances: dict[int, Index] = {}
        self._placed: dict[tuple[str, int], Index] = {}
        self._run: tuple[Index, int] | None = None
        self._apart: dict[tuple[int, bool], bool] = {}
        self._stretches: dict[int, tuple[Index, Index] | None] = {}
        self.pattern: tuple[int, Varying] | None = None
        self.users: int = 0
        self.loaded: dict[object, NDArray[Any]] = {}

    def bounds(self) -> tuple[int, int, int]:
        """Least value, greatest value, and the OR of all values, exact in its lowest set bit."""
        bounds = self._bounds
        if bounds is None:
            array = self.array
            line = self.line()
            if line is not None:
                first, step = line
                bounds = (first, first + step * (len(array) - 1), first | step)
            else:
                bounds = (int(_min(array)), int(_max(array)), int(_or(array)))
            self._bounds = bounds
        return bounds

    def line(self) -> tuple[int, int] | None:
        """The first value and the step if the values rise by a constant step, else None."""
        if self._line == 0:
            self._line = _line_of(self.array)
        return self._line

    def index(self, shift: int) -> Index:
        """The values divided by 2**shift."""
        indices = self._indices.get(shift)
        if indices is None:
            array = self.array >> shift if shift else self.array
            indices = self._indices[shift] = array.astype(np.intp, copy=False)
        return indices

    def distances(self, shift: int) -> Index:
        """The values less the least one, divided by 2**shift."""
        distances = self._distances.get(shift)
        if distances is None:
            distances = np.subtract(self.array, self.bounds()[0], dtype=np.intp)
            distances >>= shift
            self._distances[shift] = distances
        return distances

    def placed(self, space: str, shift: int, start: Index) -> Index:
        """The values divided by 2**shift, from each lane's own start in a space."""
        indices = self._placed.get((space, shift))
        if indices is None:
            if shift and shift not in self._indices:
                indices = (self.array >> shift).astype(np.intp, copy=False)
                indices += start  # a fresh array without other references
            else:
                indices = self.index(shift) + start
            self._placed[space, shift] = indices
        return indices

    def is_apart(self, nbytes: int, start: Index | None) -> bool:
        """Return whether any two values are at least so far apart, from each lane's own start."""
        key = nbytes, start is not None
        is_apart = self._apart.get(key)
        if is_apart is None:
            values = self.array if start is None else self.array + start
            is_apart = _rises(values, nbytes)
            if not is_apart and int(_max(values)) - int(_min(values)) >= nbytes * (len(values) - 1):
                is_apart = _rises(np.sort(values), nbytes)
            self._apart[key] = is_apart
        return is_apart

    def stretches(self, nbytes: int) -> tuple[Index, Index] | None:
        """Return the bounds of contiguous stretches, for accesses of so many bytes each.

        None where the stretches are not much fewer than the values.
        """
        if nbytes not in self._stretches:
            rises = _rises(self.array, 0)
            values = (self.array if rises else np.sort(self.array)).astype(np.int64)
            gaps = np.flatnonzero(values[1:] - values[:-1] > nbytes)
            stretches = None
            if len(gaps) * _FEWEST_IN_STRETCH < len(values):
                starts = np.concatenate([values[:1], values[gaps + 1]])
                stretches = starts, np.concatenate([values[gaps], values[-1:]]) + nbytes
            self._stretches[nbytes] = stretches
        return self._stretches[nbytes]

    def run(self, index: Index) -> int:
        """The first number of an index that counts up by one; -1 for any other."""
        cached_run = self._run
        if cached_run is not None and cached_run[0] is index:
            return cached_run[1]
        start, count = int(index[0]), len(index)
        is_run = count >= _SHORTEST_RUN and int(index[-1]) - start == count - 1
        if not (is_run and (index[1:] > index[:-1]).all()):
            start = -1
        self._run = (index, start)
        return start


class Scaled(Varying):
    """The part of an address that is 32-bit values times a power of two, such as an index times 4.

    Its bounds and element indices come from the values. The products are computed if need be.
    """

    __slots__ = ("_shift", "_values")

    def __init__(self, values: NDArray[Any], shift: int) -> None:
        super().__init__(values)
        self._values: NDArray[Any] = values
        self._shift: int = shift
        del self.array  # until something reads it

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name != "array":
            raise AttributeError(name)
        self.array: NDArray[Any] = self._values.astype(np.int64) << self._shift
        return self.array

    def bounds(self) -> tuple[int, int, int]:
        """As for products: least, greatest, and the OR of all, exact in its lowest set bit."""
        if self._bounds is None:
            values, line, shift = self._values, self.line(), self._shift
            if line is not None:
                first, step = line
                self._bounds = (first, first + step * (len(values) - 1), first | step)
            else:
                least, greatest, ored = int(_min(values)), int(_max(values)), int(_or(values))
                self._bounds = least << shift, greatest << shift, ored << shift
        return self._bounds

    def line(self) -> tuple[int, int] | None:
        """The first product and the step if the products rise by a constant step, else None."""
        if self._line == 0:
            line = _line_of(self._values)
            self._line = line and (line[0] << self._shift, line[1] << self._shift)
        return self._line

    def index(self, shift: int) -> Index:
        """The products divided by 2**shift."""
        if shift == self._shift and shift not in self._indices:
            self._indices[shift] = self._values.astype(np.intp)
        return super().index(shift)

    def distances(self, shift: int) -> Index:
        """The products less the least one, divided by 2**shift."""
        if shift == self._shift and shift not in self._distances:
            least = self.bounds()[0] >> shift
            self._distances[shift] = np.subtract(self._values, least, dtype=np.intp)
        return super().distances(shift)


def _rises(values: NDArray[Any], step: int) -> bool:
    return bool((values[1:] - values[:-1] >= step).all())


def _line_of(array: NDArray[Any]) -> tuple[int, int] | None:
    count = len(array)
    if count < _SHORTEST_RUN:
        return None
    first = int(array[0])
    step = int(array[1]) - first
    if step <= 0 or int(array[-1]) - first != step * (count - 1):
        return None
    middle = count >> 1
    if int(array[middle]) - first != step * middle or (array[1:] - array[:-1] != step).any():
        return None
    return first, step


def _sum(a: Varying, b: Varying) -> Varying:
    """The sum of two parts; that of cached ones is cached as well."""
    cached_sum = a.sums.get(id(b)) if a.cached and b.cached else None
    if cached_sum is not None:
        return cached_sum
    total: NDArray[Any] = a.array + b.array
    added = Varying(total, cached=a.cached and b.cached)
    if added.cached:
        a.sums[id(b)] = added
    return added


class Addresses:
    """Addresses `base + varying.array`, or just `base` for all lanes."""

    __slots__ = ("base", "varying")

    def __init__(self, base: int, varying: Varying | None) -> None:
        self.base: int = base
        self.varying: Varying | None = varying

    def plus(self, other: Addresses) -> Addresses:
        """The sum; it shares the array where only one of the two has one."""
        if other.varying is None:
            return Addresses(self.base + other.base, self.varying)
        if self.varying is None:
            return Addresses(self.base + other.base, other.varying)
        return Addresses(self.base + other.base, _sum(self.varying, other.varying))

    def moved(self, offset: int) -> Addresses:
        """Return the addresses plus `offset`."""
        return Addresses(self.base + offset, self.varying)

    def lowest(self) -> int:
        """The least address."""
        return self.base if self.varying is None else self.base + self.varying.bounds()[0]

    def highest(self) -> int:
        """The greatest address."""
        return self.base if self.varying is None else self.base + self.varying.bounds()[1]

    def every(self, count: int) -> NDArray[np.int64]:
        """(count,) int64: every lane's address."""
        if self.varying is None:
            return np.full(count, self._wrapped, dtype=np.int64)
        return self.above(self.varying.array)

    def above(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """Return the base plus each value, modulo 2**64."""
        addresses: NDArray[np.int64] = np.add(values, np.int64(self._wrapped), dtype=np.int64)
        return addresses

    @property
    def _wrapped(self) -> int:
        """The base modulo 2**64, as a signed number; sums of bases may exceed 64 bits."""
        return (self.base + 2**63) % 2**64 - 2**63


def addresses_in(value: Any) -> Addresses:  # a NumPy array or scalar of any 32- or 64-bit type
    """The addresses in a register of 32 or 64 bits.

    A 32-bit one names shared or local memory, far below 2**31: it is read as signed, so that sums
    with negative constants need no wrapping.
    """
    wide = value.dtype.itemsize == 8
    signed = value.view(np.int64 if wide else np.int32)
    return Addresses(int(signed), None) if value.ndim == 0 else Addresses(0, Varying(signed))


def scaled(values: Any, shift: int) -> Addresses:  # an array or scalar of s32 or u32
    """The addresses that are 32-bit values times 2**shift, in 64 bits."""
    if values.ndim == 0:
        return Addresses(int(values) << shift, None)
    return Addresses(0, Scaled(values, shift))


def same_address(address: int) -> Addresses:
    """Return addresses that are equal for all lanes."""
    return Addresses(address, None)
