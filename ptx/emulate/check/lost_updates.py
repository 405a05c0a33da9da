"""Updates by a volatile load and a volatile store, between which another thread writes.

The PTX memory model calls two volatile or relaxed accesses no race. What is told here is an update
that was lost in this very run: a thread stores what it made of a value that it had loaded before
another one wrote, and nothing orders that write before the store. It may be meant so, as where an
algorithm repeats until nothing changes. Threads that poll a flag and take turns lose none.
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.check.accesses import LastAccesses
from ptx.emulate.check.comparison import Comparison
from ptx.emulate.check.same_values import SameValues
from ptx.emulate.check.stamps import Stamps
from ptx.emulate.check.step import Step
from ptx.emulate.kernel_facts import Update
from ptx.emulate.model.addresses import Index


class LostUpdates:
    """The updates of the `threads` of a chunk that are between their load and their store."""

    def __init__(self, comparison: Comparison, threads: int) -> None:
        self._comparison = comparison
        self._threads = threads
        # For each place: the unit that a thread loaded, and who had written it last.
        self._loaded: dict[tuple[str, int], tuple[Index, Stamps]] = {}

    def load(self, space: str, accesses: LastAccesses, step: Step, update: Update) -> None:
        """These threads load what they update."""
        loaded = self._loaded.get((space, update.place))
        if loaded is None:
            loaded = np.full(self._threads, -1), np.zeros(self._threads, dtype=np.int64)
            self._loaded[space, update.place] = loaded
        units = step.first_units
        loaded[0][step.threads] = units
        loaded[1][step.threads] = accesses.atomics.latest(units)

    def store(
        self, space: str, accesses: LastAccesses, step: Step, update: Update, same: SameValues
    ) -> None:
        """These threads are about to store what they made of what they loaded."""
        loaded = self._loaded.get((space, update.place))
        if loaded is None:
            return
        written, threads = accesses.atomics.latest(step.units), step.threads
        each = len(written) // step.count
        is_old = (loaded[0][threads] == step.first_units) & (loaded[1][threads] != written[::each])
        old = np.where(np.repeat(is_old, each), written, 0)
        self._comparison.lost(space, old, step, update, same)
        self._comparison.lost_in_step(space, step, update, same)
