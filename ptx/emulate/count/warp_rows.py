"""The addresses that warps touch at once: a row of 32 places for each warp.

An absent thread's place holds -1. All accesses of one instruction have one size, and addresses are
multiples of it, so that two of them touch the same bytes or none in common.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.count.counts import GlobalTraffic, SharedTraffic
from ptx.emulate.model.geometry import WARP

Rows = NDArray[np.int64]
Bools = NDArray[np.bool_]
Places = NDArray[np.intp]
_SECTOR_SHIFT: Final = 5
_SECTOR: Final = 1 << _SECTOR_SHIFT
_WORD: Final = 4
_BANKS: Final = 32
_FARTHEST: Final = np.int64(2**62)  # above every address


def _ordered(rows: Rows) -> Rows:
    """Each row in ascending order, which most have already."""
    return rows if (rows[:, 1:] >= rows[:, :-1]).all() else np.sort(rows, axis=1)


def _firsts(ordered: Rows) -> Bools:
    """Which values of rows in order are the first of their kind."""
    first = ordered >= 0
    first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return first


def global_traffic(rows: Rows, nbytes: int) -> GlobalTraffic:
    """The sectors of accesses of so many bytes to global memory."""
    ordered = _ordered(rows)
    sectors = int(np.count_nonzero(_firsts(ordered >> _SECTOR_SHIFT)))
    distinct_counts = np.count_nonzero(_firsts(ordered), axis=1)
    return GlobalTraffic(len(rows), sectors, int((-(-distinct_counts * nbytes // _SECTOR)).sum()))


def shared_traffic(rows: Rows, nbytes: int, *, merges: bool) -> SharedTraffic:
    """Return the wavefronts of accesses of so many bytes to shared memory.

    In a wavefront each bank serves one word of four bytes to all threads that access it. Threads
    that access two or four words are served by halves or quarters of the warp. A load that `merges`
    serves two of these parts together if its threads access the same words in pairs
    (docs/counters.md).
    """
    words = max(nbytes // _WORD, 1)
    lanes = _BANKS // words
    together = _are_pairs(rows) if merges and words > 1 else np.zeros(len(rows), np.bool_)
    total = least = 0
    for group, width in ((rows[together], 2 * lanes), (rows[~together], lanes)):
        wavefronts = _wavefronts(group.reshape(-1, width), words)
        total += int(wavefronts.sum())
        least += int(np.count_nonzero(wavefronts))
    return SharedTraffic(len(rows), total, least)


def _are_pairs(rows: Rows) -> Bools:
    """Return whether all threads access the same as the next one, or all as the next but one.

    Threads with an inactive partner are ignored.
    """

    def alike(first: Rows, second: Rows) -> Bools:
        same = (first == second) | (first < 0) | (second < 0)
        return np.asarray(same.reshape(len(rows), WARP // 2).all(axis=1))

    fours = rows.reshape(-1, WARP // 4, 2, 2)
    return alike(rows[:, 0::2], rows[:, 1::2]) | alike(fours[:, :, 0], fours[:, :, 1])


def _wavefronts(groups: Rows, words: int) -> Places:
    """Return the wavefronts of each group of threads that are served together.

    Each thread accesses so many words.
    """
    first = groups >> 2
    present = first >= 0
    low = np.where(present, first, _FARTHEST).min(axis=1, initial=_FARTHEST)
    high = first.max(axis=1, initial=-1)
    wavefronts = (high >= 0).astype(np.intp)
    # Words within the width of one wavefront are in different banks.
    wide = high + words - low > _BANKS
    if wide.any():
        every = first[wide, :, None] + np.arange(words)
        word_numbers = np.where(present[wide, :, None], every, np.int64(-1))
        ordered = _ordered(word_numbers.reshape(len(word_numbers), word_numbers.shape[1] * words))
        wavefronts[wide] = _fullest_bank(ordered, _firsts(ordered))
    return np.asarray(wavefronts)


def _fullest_bank(words: Rows, chosen: Bools) -> Places:
    """Return how many of the chosen words the fullest bank of each row has."""
    row, column = chosen.nonzero()
    banks = words[row, column] & (_BANKS - 1)
    counted = np.bincount(row * _BANKS + banks, minlength=len(words) * _BANKS)
    return np.asarray(counted.reshape(len(words), _BANKS).max(axis=1))


def _runs(ordered: Rows) -> Places:
    """Return each value's count up to its position in its row; 0 for absent threads."""
    counts = np.zeros(ordered.shape, dtype=np.intp)
    for column in range(ordered.shape[1]):
        before = counts[:, column - 1] if column else np.intp(0)
        same = ordered[:, column] == ordered[:, column - 1] if column else False
        counts[:, column] = np.where(same, before + 1, 1)
    counts[ordered < 0] = 0
    return counts


def most_alike(rows: Rows) -> Places:
    """Return how many places of each row have the value that most of them have."""
    return np.asarray(_runs(_ordered(rows)).max(axis=1))


def global_atomic_transactions(rows: Rows) -> int:
    """Each sector as often as threads share the address in it that most share."""
    ordered = _ordered(rows)
    present = ordered >= 0
    touched = ordered >> _SECTOR_SHIFT
    first = present.copy()
    first[:, 1:] &= touched[:, 1:] != touched[:, :-1]
    # Rows are in order, so that the places of one sector stand together.
    starts = np.flatnonzero(first[present])
    return int(np.maximum.reduceat(_runs(ordered)[present], starts).sum())


def shared_atomic_wavefronts(rows: Rows, nbytes: int) -> int:
    """The threads of each row that use the fullest bank; no two of them are served at once."""
    groups = rows.reshape(-1, _BANKS // max(nbytes // _WORD, 1))
    return int(_fullest_bank(groups >> 2, groups >= 0).sum())


def traffic_of(
    rows: Rows, space: str, nbytes: int, *, is_atomic: bool, is_load: bool
) -> tuple[int, int]:
    """Return the sectors of global memory or wavefronts of shared memory, and the least possible.

    Atomic operations on shared memory have 1 as the least.
    """
    if space == "global":
        traffic = global_traffic(rows, nbytes)
        return traffic.sectors, traffic.least_sectors
    if is_atomic:
        return shared_atomic_wavefronts(rows, nbytes), 1
    shared = shared_traffic(rows, nbytes, merges=is_load)
    return shared.wavefronts, shared.least_wavefronts
