"""What the writers of a place told so far, worked out when somebody takes it over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.barrier_clocks import Small
from ptx.emulate.check.vector_clock import NOTHING, Few, VectorClock, joined
from ptx.emulate.model.addresses import Index

_MOST_LATE: Final = 64  # writers that know nothing, or as many as are known of
_MOST_TOLD: Final = 8  # writers that know anything


class LazyClock:
    """What a place's writers told up to one of them; who keeps it keeps little of its own."""

    __slots__ = ("_before", "_known", "_late", "_said", "_size", "_told")

    def __init__(self) -> None:
        self._known: VectorClock | None = NOTHING
        self._before: LazyClock | None = None
        self._late = 0  # how many writers are not worked out, since so many were known of
        self._size = 0
        self._said: Few = {}
        self._told: tuple[VectorClock, ...] = ()

    def then(self, said: Few, *told: VectorClock) -> LazyClock:
        """The same and one more writer, with what it says itself and what it knows."""
        more = LazyClock()
        more._known, more._before, more._said = None, self, said
        more._told = tuple(each for each in told if each is not NOTHING)
        more._size = self._size if self._known is None else len(self._known)
        most = max(_MOST_LATE, more._size)
        # What a writer knows takes more memory than what it says of itself.
        more._late = self._late + (most // _MOST_TOLD if more._told else 1)
        if more._late >= most:
            more.known()
        return more

    def known(self) -> VectorClock:
        """All that was told."""
        if self._known is None:
            late: list[LazyClock] = []
            node: LazyClock | None = self
            known: VectorClock | None = None
            while node is not None and known is None:
                late.append(node)
                node = node._before
                known = None if node is None else node._known
            self._known = _with_all(NOTHING if known is None else known, late)
            self._before, self._late, self._said, self._told = None, 0, {}, ()
        return self._known


def _with_all(known: VectorClock, late: list[LazyClock]) -> VectorClock:
    said: Few = {}
    for each in late:
        for told in each._told:
            known = joined(known, told)
        for number, epoch in each._said.items():
            if said.get(number, 0) < epoch:
                said[number] = epoch
    return joined(known, said)


_MOST_NUMBERS: Final = 1 << 22  # of four bytes each


class DeferredWork:
    """What the threads of a launch did, oldest first, and nobody has asked for yet."""

    def __init__(self) -> None:
        self._late: list[Callable[[], None]] = []
        self._numbers = 0

    def __bool__(self) -> bool:
        return bool(self._late)

    def put_off(self, work: Callable[[], None], numbers: int) -> None:
        """Do this before anything is asked; it keeps so many numbers in memory."""
        self._late.append(work)
        self._numbers += numbers
        if self._numbers > _MOST_NUMBERS:
            self.settle()

    def settle(self) -> None:
        """Do what was put off."""
        late, self._late, self._numbers = self._late, [], 0
        for work in late:
            work()


class SpinReads:
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
