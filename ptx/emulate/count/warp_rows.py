"""The addresses that warps touch at once: a row of 32 places for each warp.

An absent thread's place holds -1. All accesses of one instruction have one size, and addresses are
multiples of it, so that two of them touch the same bytes or none in common.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.count.counts import GlobalTraffic, SharedTraffic

Rows = NDArray[np.int64]
_SECTOR_SHIFT: Final = 5
_SECTOR: Final = 1 << _SECTOR_SHIFT
_WORD: Final = 4
_BANKS: Final = 32
_ONE_TURN: Final = _BANKS * _WORD  # bytes that the banks give at once


def _firsts(rows: Rows) -> tuple[Rows, NDArray[np.bool_]]:
    """The rows in order, and which values are the first of their kind there."""
    ordered = np.sort(rows, axis=1)
    first = ordered >= 0
    first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return ordered, first


def distinct(rows: Rows) -> NDArray[np.intp]:
    """How many different values each row has."""
    return np.asarray(np.count_nonzero(_firsts(rows)[1], axis=1))


def global_traffic(rows: Rows, nbytes: int) -> GlobalTraffic:
    """The sectors of accesses of so many bytes to global memory."""
    sectors = int(distinct(rows >> _SECTOR_SHIFT).sum())
    least = int((-(-distinct(rows) * nbytes // _SECTOR)).sum())
    return GlobalTraffic(len(rows), sectors, least)


def sectors(rows: Rows) -> int:
    """How many sectors the rows touch."""
    return int(distinct(rows >> _SECTOR_SHIFT).sum())


def shared_traffic(rows: Rows, nbytes: int) -> SharedTraffic:
    """The turns of accesses of so many bytes to shared memory.

    Each bank gives one word of four bytes a turn, to all threads that ask for it. Threads that take
    two or four words are served by halves or quarters of the warp (CUDA Programming Guide, "Shared
    Memory", for each compute capability).
    """
    parts = max(nbytes // _WORD, 1)
    groups = rows.reshape(-1, _BANKS // parts)
    words = groups >> 2
    if parts > 1:
        each = words[:, :, None] + np.arange(parts)
        words = np.where(words[:, :, None] < 0, np.int64(-1), each).reshape(len(groups), -1)
    ordered, first = _firsts(words)
    turns = _fullest_bank(ordered, first)
    least = np.minimum(np.count_nonzero(first, axis=1), 1)
    return SharedTraffic(len(rows), int(turns.sum()), int(least.sum()))


def _fullest_bank(words: Rows, first: NDArray[np.bool_]) -> NDArray[np.intp]:
    """How many of the words that are the first of their kind the fullest bank of each row has."""
    row, column = first.nonzero()
    banks = words[row, column] & (_BANKS - 1)
    counted = np.bincount(row * _BANKS + banks, minlength=len(words) * _BANKS)
    return np.asarray(counted.reshape(len(words), _BANKS).max(axis=1))


def most_alike(rows: Rows) -> NDArray[Any]:
    """How many places of each row have the value that most of them have."""
    ordered = np.sort(rows, axis=1)
    most = np.zeros(len(rows), dtype=np.intp)
    run = np.zeros(len(rows), dtype=np.intp)
    for column in range(ordered.shape[1]):
        same = ordered[:, column] == ordered[:, column - 1] if column else False
        run = np.where(same, run + 1, 1) * (ordered[:, column] >= 0)
        np.maximum(most, run, out=most)
    return most
