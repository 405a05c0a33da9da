"""Arrays of addresses that several accesses share, up to a constant that each access adds.

The blocks of the next chunk access the next rows of a matrix, and the next instruction accesses the
next element. The list of accesses stores one array for all of them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ptx.emulate.model.addresses import Addresses, Varying

_FEWEST_LANES: Final = 256  # for fewer, an array costs less than the search
_MOST_ADDRESSES: Final = 1 << 18  # that are cached for later accesses
_FARTHEST: Final = 1 << 30  # bytes, so that differences fit into 32 bits
_Key = tuple[int, int, int, int]


class Patterns:
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
