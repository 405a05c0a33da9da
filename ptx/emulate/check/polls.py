"""What threads that poll have read already, so that they are asked again only for more."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.clocks import Small
from ptx.emulate.model.addresses import Index


class ChainLengths:
    """How many have written to each place where something was handed over, by their numbers.

    Number 0 stands for all others, where nothing was; it counts the places instead, so that who
    polls such a one looks again when there is another place.
    """

    def __init__(self) -> None:
        self._lengths: NDArray[np.int64] = np.zeros(16, dtype=np.int64)

    @property
    def every(self) -> NDArray[np.int64]:
        """By numbers; an array that changes."""
        return self._lengths

    def add(self) -> int:
        """The number of one more place."""
        lengths = self._lengths
        lengths[0] += 1
        number = int(lengths[0])
        if number == len(lengths):
            self._lengths = np.concatenate([lengths, np.zeros_like(lengths)])
        return number


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
