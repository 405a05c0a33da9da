"""Races in tensor memory: accesses of `tcgen05` that nothing orders.

Its unit is a column of 16 lanes: instructions reach all lanes of such a half, or none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.accesses import LastAccesses, in_memory
from ptx.emulate.check.comparison import Comparison
from ptx.emulate.check.stamps import Stamps, threads_of
from ptx.emulate.check.step import Step
from ptx.emulate.check.tensor_workers import TensorWorkers, WorkerKind
from ptx.emulate.memory.tensor_memory import COLUMNS, HALF, LANES
from ptx.emulate.model.addresses import Index, addresses_in

if TYPE_CHECKING:
    from ptx.emulate.check.clocks import Clocks
    from ptx.emulate.check.races import RaceCheck
    from ptx.emulate.memory.site import Site

UNITS: Final = LANES // HALF * COLUMNS  # of a block
Units = NDArray[np.intp]


class TensorRaces:
    """The accesses of a chunk's blocks to their tensor memory."""

    def __init__(
        self, launch: RaceCheck, clocks: Clocks, comparison: Comparison, workers: TensorWorkers,
        blocks: int,
    ) -> None:  # fmt: skip
        self._launch = launch
        self._clocks = clocks
        self._compare = comparison.compare
        self._workers = workers
        self._accesses = LastAccesses(blocks * UNITS, in_memory, launch.shift)

    def access(self, kind: WorkerKind, lanes: Index, units: Units, site: Site) -> None:
        """A worker of each thread begins to access units of its block, (n, …)."""
        launch, accesses = self._launch, self._accesses
        count = units[0].size if len(units) else 0
        if not count:
            return
        number = launch.number_of(site)
        of_threads = self._workers.stamps(kind, lanes, number)
        where = addresses_in(units.reshape(-1).astype(np.int64))
        lanes = np.repeat(lanes, count)
        step = Step(self._clocks.moment, lanes, number, where, 0, len(lanes), 1, 0)
        stamps = np.repeat(of_threads, count) | number
        accesses.settle(step)
        found = accesses.written(step.units)
        if site.writes:
            found += accesses.reads.found(step.units)
        for old in found:
            self._compare("tensor", _of_others(old, stamps), step)
        if site.writes:
            accesses.write(step)
            accesses.put(np.asarray(step.units), stamps, step)
        else:
            accesses.reads.add(step.units, stamps)


def _of_others(old: Stamps, stamps: Stamps) -> Stamps:
    """Without what the very workers did: that is done in order."""
    return np.where(threads_of(old) == threads_of(stamps), 0, old)
