"""Optimisations of the race check, which change none of its results.

The rules stand in `memory_model.py` and the files that it names. They hold without everything here:
each switch of `Accelerations` takes the direct way instead, and
`tests/emulator/engine/check/test_accelerations.py` compares the findings. `lazy_shadow_memory.py`
has the list of accesses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.vector_clock import EMPTY, SparseClock, VectorClock, joined
from ptx.emulate.model.addresses import Index

_MOST_NUMBERS: Final = 1 << 22  # of four bytes each
_MOST_LATE: Final = 64  # releases that publish nothing else, or as many as the clock has entries
_MOST_PUBLISHING: Final = 8  # releases that publish their knowledge of others


@dataclass(frozen=True, slots=True)
class Accelerations:
    """Which accelerations a launch has; tests switch them off.

    Attributes:
        lists_accesses: store stamps only where another thread may conflict (`LazyShadowMemory`).
        finds_sole_users: list accesses to units that one thread alone accesses (`SoleUsers`).
        shares_addresses: list equal patterns of addresses once (`AddressPatterns`).
        resets_shared: forget all accesses to shared memory at a barrier of whole blocks.
        compares_ends: of threads that read one element together, compare the first and the last.
        defers: join clocks only when an order is queried (`DeferredWork`).
        skips_spins: read a location again only after another release there (`SpinReads`).
        acquires_once: skip threads that have acquired all of a release sequence.
        skips_fences: skip fences of threads that have learned nothing since their last one.
        merges_lazily: merge the clocks of a release sequence only when one is read (`LazyClock`).
        joins_blocks: let a block that arrives at a barrier as a whole release as one thread.
        checks_blocks: query the order of two blocks before that of two threads.
    """

    lists_accesses: bool = True
    finds_sole_users: bool = True
    shares_addresses: bool = True
    resets_shared: bool = True
    compares_ends: bool = True
    defers: bool = True
    skips_spins: bool = True
    acquires_once: bool = True
    skips_fences: bool = True
    merges_lazily: bool = True
    joins_blocks: bool = True
    checks_blocks: bool = True


ALL: Final = Accelerations()


class DeferredWork:
    """Synchronisation through memory that no query has needed yet, oldest first.

    A kernel whose threads communicate by atomic operations alone never needs it: those may
    conflict. So each step is only recorded, for all of its threads at once.
    """

    def __init__(self, most: int = _MOST_NUMBERS) -> None:
        self._late: list[Callable[[], None]] = []
        self._numbers = 0
        self._most = most

    def __bool__(self) -> bool:
        return bool(self._late)

    def add(self, work: Callable[[], None], numbers: int) -> None:
        """Do this before the next query; it retains so many numbers in memory."""
        self._late.append(work)
        self._numbers += numbers
        if self._numbers > self._most:
            self.settle()

    def settle(self) -> None:
        """Do all of it."""
        late, self._late, self._numbers = self._late, [], 0
        for work in late:
            work()


class SpinReads:
    """The last location that each of a chunk's threads has read by one instruction.

    A thread that spins on a flag acquires nothing new until there is another release.
    """

    def __init__(self, threads: int) -> None:
        self._units = np.full(threads, -1, dtype=np.int64)
        self._numbers = np.zeros(threads, dtype=np.int32)
        self._lengths = np.zeros(threads, dtype=np.int64)

    def new(
        self, lanes: Index | NDArray[np.int32], units: Index, lengths: NDArray[np.int64]
    ) -> Index:
        """Return the positions of threads that may acquire something from these units."""
        same = self._units[lanes] == units
        same &= self._lengths[lanes] == lengths[self._numbers[lanes]]
        return np.flatnonzero(~same)

    def add(
        self,
        lanes: Index | NDArray[np.int32],
        units: Index,
        numbers: list[int],
        lengths: NDArray[np.int64],
    ) -> None:
        """Record that these threads have acquired all of the release sequences `numbers`."""
        self._units[lanes] = units
        self._numbers[lanes] = numbers
        self._lengths[lanes] = lengths[numbers]


class LazyClock:
    """A lazily merged vector clock, published by the first releases of a sequence."""

    __slots__ = ("_before", "_clocks", "_known", "_late", "_own_epochs", "_size")

    def __init__(self) -> None:
        self._known: VectorClock | None = EMPTY
        self._before: LazyClock | None = None
        self._late = 0  # releases that are not merged yet, since so many entries were known
        self._size = 0
        self._own_epochs: SparseClock = {}
        self._clocks: tuple[VectorClock, ...] = ()

    def then(self, own_epochs: SparseClock, *clocks: VectorClock) -> LazyClock:
        """Return the clock after one more release.

        Args:
            own_epochs: the releasing thread's own epochs.
            clocks: its knowledge of others.
        """
        extended = LazyClock()
        extended._known, extended._before, extended._own_epochs = None, self, own_epochs
        extended._clocks = tuple([clock for clock in clocks if clock is not EMPTY])
        extended._size = self._size if self._known is None else len(self._known)
        most = max(_MOST_LATE, extended._size)
        # A thread's knowledge of others takes more memory than its knowledge of itself.
        extended._late = self._late + (most // _MOST_PUBLISHING if extended._clocks else 1)
        if extended._late >= most:
            extended.known()
        return extended

    def known(self) -> VectorClock:
        """Return the merged clock."""
        if self._known is None:
            late: list[LazyClock] = []
            node: LazyClock | None = self
            clock_before: VectorClock | None = None
            while node is not None and clock_before is None:
                late.append(node)
                node = node._before
                clock_before = None if node is None else node._known
            self._known = _merged(EMPTY if clock_before is None else clock_before, late)
            self._before, self._late, self._own_epochs, self._clocks = None, 0, {}, ()
        return self._known


def _merged(merged: VectorClock, late: list[LazyClock]) -> VectorClock:
    own_epochs: SparseClock = {}
    for release in late:
        for clock in release._clocks:
            merged = joined(merged, clock)
        for number, epoch in release._own_epochs.items():
            if own_epochs.get(number, 0) < epoch:
                own_epochs[number] = epoch
    return joined(merged, own_epochs)
