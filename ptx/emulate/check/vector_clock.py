"""What somebody knows of others: for each that is known of, the epoch below which it is over.

Those who are known of have numbers. Few are kept in a dict, many in an array by their numbers, so
that to join two costs little where hundreds know of hundreds. None of them is ever changed, so that
many may have the same one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

Few = dict[int, int]
Many = NDArray[np.int32]
VectorClock = Few | Many

NOTHING: Final[VectorClock] = {}
_MOST_FEW: Final = 48
_SPARSE: Final = 16  # numbers of an array for each that is known, at most


def joined(one: VectorClock, other: VectorClock) -> VectorClock:
    """What either of them says."""
    if one is other or other is NOTHING:
        return one
    if one is NOTHING:
        return other
    if isinstance(one, dict):
        return _with_few(other, one) if isinstance(other, np.ndarray) else _of_both(one, other)
    return _with_few(one, other) if isinstance(other, dict) else _of_arrays(one, other)


def joined_all(every: Iterable[VectorClock]) -> VectorClock:
    """What any of them says."""
    return reduce(joined, every, NOTHING)


def epoch_of(known: VectorClock, number: int) -> int:
    """The epoch below which that one is over; 0 where nothing is known of it."""
    if isinstance(known, dict):
        return known.get(number, 0)
    return int(known[number]) if number < len(known) else 0


def _of_arrays(one: Many, other: Many) -> Many:
    if len(one) < len(other):
        one, other = other, one
    both = one.copy()
    np.maximum(both[: len(other)], other, out=both[: len(other)])
    return both


def _of_both(one: Few, other: Few) -> VectorClock:
    more = {number: epoch for number, epoch in other.items() if one.get(number, 0) < epoch}
    if not more:
        return one
    return _packed(one | more)


def _with_few(many: Many, few: Few) -> VectorClock:
    size = max(few, default=0) + 1
    if size > 2 * len(many):  # that may be too much for those who are known of
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


def _packed(few: Few) -> VectorClock:
    """The same as an array, if that is not mostly empty."""
    if len(few) <= _MOST_FEW:
        return few
    size = max(few) + 1
    if size > _SPARSE * len(few):
        return few
    many = np.zeros(size, dtype=np.int32)
    many[list(few)] = list(few.values())
    return many
