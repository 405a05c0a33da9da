"""Vector clocks: for each known thread, warp or block the epoch below which it is complete.

The entries have numbers. Few are stored in a dict and many in an array by their numbers, so that
joining is cheap even if hundreds of threads have entries for hundreds. No clock is ever changed, so
that many threads may share one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

SparseClock = dict[int, int]
DenseClock = NDArray[np.int32]
VectorClock = SparseClock | DenseClock

EMPTY: Final[VectorClock] = {}
_MOST_SPARSE: Final = 48  # entries of a dict
_SPARSE: Final = 16  # elements of an array for each entry, at most


def joined(one: VectorClock, other: VectorClock) -> VectorClock:
    """Return the least clock that includes both clocks."""
    if one is other or other is EMPTY:
        return one
    if one is EMPTY:
        return other
    if isinstance(one, dict):
        return _with_few(other, one) if isinstance(other, np.ndarray) else _of_both(one, other)
    return _with_few(one, other) if isinstance(other, dict) else _of_arrays(one, other)


def joined_all(every: Iterable[VectorClock]) -> VectorClock:
    """Return the least clock that includes all clocks."""
    return reduce(joined, every, EMPTY)


def epoch_of(known: VectorClock, number: int) -> int:
    """Return the epoch below which an entry is complete; 0 if it is unknown."""
    if isinstance(known, dict):
        return known.get(number, 0)
    return int(known[number]) if number < len(known) else 0


def _of_arrays(one: DenseClock, other: DenseClock) -> DenseClock:
    if len(one) < len(other):
        one, other = other, one
    both = one.copy()
    np.maximum(both[: len(other)], other, out=both[: len(other)])
    return both


def _of_both(one: SparseClock, other: SparseClock) -> VectorClock:
    more = {number: epoch for number, epoch in other.items() if one.get(number, 0) < epoch}
    if not more:
        return one
    both = one | more
    size = max(both) + 1
    if len(both) <= _MOST_SPARSE or size > _SPARSE * len(both):
        return both
    many = np.zeros(size, dtype=np.int32)
    many[list(both)] = list(both.values())
    return many


def _with_few(many: DenseClock, few: SparseClock) -> VectorClock:
    size = max(few, default=0) + 1
    if size > 2 * len(many):  # that may be too much for the number of entries
        there = np.flatnonzero(many)
        every = dict(zip(there.tolist(), many[there].tolist(), strict=True))
        return _of_both(every, few)
    if size > len(many):
        both = np.zeros(size, dtype=np.int32)
        both[: len(many)] = many
    else:
        both = many.copy()
    for number, epoch in few.items():
        if both[number] < epoch:
            both[number] = epoch
    return both
