"""The cache that chunks of one launch share: block-invariant values, their addresses and branches.

A block-invariant value (`codegen/analysis/block_invariant.py`) is the same array in every chunk of
the same geometry. From it follow the same bounds and element indices of accesses, the same
divisions at branches, and the same parts of it behind them. All is found again by the identity of
the arrays, which are therefore held.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Addresses, Index, Varying, addresses_in

Bools = NDArray[np.bool_]
Array = NDArray[Any]
_MOST_BYTES = 64 << 20  # of all arrays that one launch keeps
_MOST_MISSES = 32  # at a branch, less two for each hit, before its masks are no longer stored


class Division:
    """A mask that a branch gave before, and the positions of its elements.

    `parts`: what was taken at these positions of arrays that are cached, by their identity;
    `places`: what a fibre of these threads remembers of their places.
    """

    __slots__ = ("mask", "parts", "places", "positions")

    def __init__(self, mask: Bools) -> None:
        self.mask: Bools = mask
        self.positions: Index = mask.nonzero()[0]
        self.parts: dict[int, Array] = {}
        self.places: dict[str, Any] = {}  # arrays of any type, as `Fibre.place` gives them


class LaunchCache:
    """The arrays that chunks of one geometry share.

    Attributes:
        fewest: threads of a chunk from which on it shares (`Limits.share_from`).
        values: block-invariant values by their slots.
        starts: where each lane's shared or local memory starts, by space and shift.
    """

    def __init__(self, fewest: int) -> None:
        self.fewest = fewest
        self.values: dict[int, Array] = {}
        self.starts: dict[tuple[str, int], Index] = {}
        self._addresses: dict[int, Addresses] = {}
        self._alive: list[Array] = []
        self._divisions: dict[tuple[int, int], Division] = {}
        self._misses: dict[int, int] = {}
        self._room = _MOST_BYTES

    def store(self, slot: int, value: Array) -> None:
        """Store a block-invariant value for all threads of a chunk."""
        if self._remember(value):
            self.values[slot] = value

    def addresses(self, value: Any) -> Addresses:  # an array or scalar of 32 or 64 bits
        """The addresses in a register; those of a cached array are found again."""
        found = self._addresses.get(id(value))
        return addresses_in(value) if found is None else found

    def division(self, block: int, mask: Bools, count: int) -> Division | None:
        """A mask of the chunk's threads that part at a branch to `block`, `count` of them there.

        None where such masks do not come again.
        """
        key = (block, count)
        known = self._divisions.get(key)
        misses = self._misses.get(block, 0)
        if misses > _MOST_MISSES or len(mask) < self.fewest:
            return None
        if known is not None and _equal(known.mask, mask):
            self._misses[block] = misses - 2
            return known
        self._misses[block] = misses + 1
        if self._room < 9 * len(mask):
            return None
        self._room -= 9 * len(mask)
        made = self._divisions[key] = Division(mask)
        return made

    def part(self, value: Array, division: Division) -> Array:
        """The value's elements at the positions of a division."""
        found = division.parts.get(id(value))
        if found is not None:
            return found
        taken: Array = value.take(division.positions, mode="clip")
        if id(value) in self._addresses and self._remember(taken):
            division.parts[id(value)] = taken
        return taken

    def _remember(self, value: Array) -> bool:
        """Keep an array alive, with room for the indices that its accesses will compute."""
        if id(value) in self._addresses:
            return True
        nbytes = value.nbytes + 16 * len(value)
        if self._room < nbytes:
            return False
        self._room -= nbytes
        self._alive.append(value)
        if value.dtype.itemsize in (4, 8) and value.dtype.kind in "iu":
            signed = value.view(np.int64 if value.dtype.itemsize == 8 else np.int32)
            self._addresses[id(value)] = Addresses(0, Varying(signed, cached=True))
        else:
            self._addresses[id(value)] = _NO_ADDRESSES
        return True


_NO_ADDRESSES = Addresses(0, None)


def _equal(a: Bools, b: Bools) -> bool:
    if len(a) != len(b):
        return False
    if len(a) % 8 == 0 and a.flags.c_contiguous and b.flags.c_contiguous:
        return bool((a.view(np.uint64) == b.view(np.uint64)).all())
    return bool((a == b).all())
