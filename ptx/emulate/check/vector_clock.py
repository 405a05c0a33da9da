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


def joined(first: VectorClock, second: VectorClock) -> VectorClock:
    """Return the least clock that includes both clocks."""
    if first is second or second is EMPTY:
        return first
    if first is EMPTY:
        return second
    if isinstance(first, dict):
        return (
            _with_few(second, first) if isinstance(second, np.ndarray) else _of_both(first, second)
        )
    return _with_few(first, second) if isinstance(second, dict) else _of_arrays(first, second)


def joined_all(every: Iterable[VectorClock]) -> VectorClock:
    """Return the least clock that includes all clocks."""
    return reduce(joined, every, EMPTY)


def epoch_of(clock: VectorClock, number: int) -> int:
    """Return the epoch below which an entry is complete; 0 if it is unknown."""
    if isinstance(clock, dict):
        return clock.get(number, 0)
    return int(clock[number]) if number < len(clock) else 0


def _of_arrays(larger: DenseClock, smaller: DenseClock) -> DenseClock:
    if len(larger) < len(smaller):
        larger, smaller = smaller, larger
    joined_clock = larger.copy()
    np.maximum(joined_clock[: len(smaller)], smaller, out=joined_clock[: len(smaller)])
    return joined_clock


def _of_both(first: SparseClock, second: SparseClock) -> VectorClock:
    newer = {number: epoch for number, epoch in second.items() if first.get(number, 0) < epoch}
    if not newer:
        return first
    joined_clock = first | newer
    size = max(joined_clock) + 1
    if len(joined_clock) <= _MOST_SPARSE or size > _SPARSE * len(joined_clock):
        return joined_clock
    dense = np.zeros(size, dtype=np.int32)
    dense[list(joined_clock)] = list(joined_clock.values())
    return dense


def _with_few(dense: DenseClock, sparse: SparseClock) -> VectorClock:
    size = max(sparse, default=0) + 1
    if size > 2 * len(dense):  # that may be too much for the number of entries
        numbers = np.flatnonzero(dense)
        every = dict(zip(numbers.tolist(), dense[numbers].tolist(), strict=True))
        return _of_both(every, sparse)
    if size > len(dense):
        joined_clock = np.zeros(size, dtype=np.int32)
        joined_clock[: len(dense)] = dense
    else:
        joined_clock = dense.copy()
    for number, epoch in sparse.items():
        if joined_clock[number] < epoch:
            joined_clock[number] = epoch
    return joined_clock
