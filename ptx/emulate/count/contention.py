"""Atomics an address: how many there were, over the chunks of a launch."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.count.counts import AtomicTraffic
from ptx.emulate.count.warp_rows import Rows, most_alike

_MOST_APART: Final = 1 << 20  # addresses that are held before they are put together


class Contention:
    """The atomics of one instruction to one space."""

    def __init__(self) -> None:
        self._requests = self._threads = self._turns = self._ways = 0
        self._addresses: list[NDArray[np.int64]] = []
        self._times: list[NDArray[np.int64]] = []
        self._held = 0

    def add(self, rows: Rows, places: Rows, turns: int) -> None:
        """Warps do an atomic, in so many turns: their addresses, and the places in memory."""
        self._requests += len(rows)
        self._threads += int(np.count_nonzero(rows >= 0))
        self._turns += turns
        self._ways += int(most_alike(places).sum())
        found, times = np.unique(places[places >= 0], return_counts=True)
        self._addresses.append(found)
        self._times.append(times.astype(np.int64))
        self._held += len(found)
        if self._held > _MOST_APART:
            self._put_together()
            self._held = 0

    def _put_together(self) -> None:
        every = np.concatenate(self._addresses)
        found, where = np.unique(every, return_inverse=True)
        times = np.zeros(len(found), dtype=np.int64)
        np.add.at(times, where, np.concatenate(self._times))
        self._addresses, self._times = [found], [times]

    @property
    def traffic(self) -> AtomicTraffic:
        """The numbers so far."""
        if not self._addresses:
            return AtomicTraffic()
        self._put_together()
        (times,) = self._times
        return AtomicTraffic(
            self._requests, self._threads, self._turns, self._ways, len(times), int(times.max())
        )
