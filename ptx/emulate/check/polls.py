"""What threads that poll have read already, so that they are asked again only for more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.clocks import Small
from ptx.emulate.model.addresses import Index


class Polls:
    """What each of a chunk's threads has read last by one instruction, and taken over at once."""

    def __init__(self, threads: int) -> None:
        self._units = np.full(threads, -1, dtype=np.int64)
        self._numbers = np.zeros(threads, dtype=np.int32)
        self._lengths = np.zeros(threads, dtype=np.int64)

    def new(self, lanes: Index | Small, units: Index, lengths: NDArray[np.int64]) -> Index:
        """Which of these threads, by their positions, may learn something from these units."""
        same = self._units[lanes] == units
        same &= self._lengths[lanes] == lengths[self._numbers[lanes]]
        return np.flatnonzero(~same)

    def note(
        self, lanes: Index | Small, units: Index, numbers: list[int], lengths: NDArray[np.int64]
    ) -> None:
        """These threads have taken over all of the places with these numbers."""
        self._units[lanes] = units
        self._numbers[lanes] = numbers
        self._lengths[lanes] = lengths[numbers]
