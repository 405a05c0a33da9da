"""What the writers of one place hand over, in their order."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.knowledge import NOTHING, Few, Knowledge
from ptx.emulate.check.stamps import EPOCH_BITS
from ptx.emulate.check.told_so_far import ToldSoFar

_BITS: Final = EPOCH_BITS + 1
_EPOCH: Final = (1 << _BITS) - 1

Told = tuple[Knowledge, Knowledge]
"""What a thread may hand over: what all of its block know, and what it knows beyond that."""


class Chain:
    """What was handed over at one place; who has read `n` writers of it knows the first `n`.

    Attributes:
        number: of the chain, from 1.
        length: how many have written.
        told: what all of them said, and knew of others.
        taken: the threads that have taken over all of it.
    """

    __slots__ = ("_heard", "_said", "length", "number", "taken", "told")

    def __init__(self, number: int) -> None:
        self.number: int = number
        self.length: int = 0
        self.told: ToldSoFar = ToldSoFar()
        self.taken: set[int] = set()
        # For a thread, warp or block: positions, each with the epoch that is said from there on.
        self._said: dict[int, list[int]] = {}
        # What all of a block knew when it told so last.
        self._heard: dict[int, Knowledge] = {}

    def add(self, said: Few, block: int, told: Told) -> None:
        """One more writer, of a block, hands over what it says itself and what it knows."""
        if self.taken:
            self.taken = set()
        at = self.length << _BITS
        for number, epoch in said.items():
            epochs = self._said.get(number)
            if epochs is None:
                self._said[number] = [at | epoch]
            elif epoch > epochs[-1] & _EPOCH:
                epochs.append(at | epoch)
        together, own = told
        if self._heard.get(block, NOTHING) is together:
            together = NOTHING
        else:
            self._heard[block] = together
        self.told = self.told.then(said, together, own)
        self.length += 1

    def says(self, number: int, epoch: int, length: int) -> bool:
        """Whether the first `length` themselves say that an epoch of one of them is over."""
        epochs = self._said.get(number)
        if epochs is None:
            return False
        told = bisect_left(epochs, length << _BITS)
        return told > 0 and epochs[told - 1] & _EPOCH > epoch


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
