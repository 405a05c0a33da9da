"""How many threads of each block a barrier counts. PTX ISA, "barrier".

Barriers count whole warps, so the last thread of a block also counts for the lanes that its warp
does not have.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.geometry import WARP

if TYPE_CHECKING:
    from ptx.emulate.model.geometry import Geometry
    from ptx.emulate.threads.fibre import Fibre

Bools = NDArray[np.bool_]
Counts = NDArray[np.int64]  # (blocks of the chunk,)
Lanes = NDArray[np.intp]


class ThreadCounts:
    """Counts threads of the blocks of one chunk."""

    def __init__(self, geometry: Geometry) -> None:
        self._geometry = geometry

    def none(self) -> Counts:
        """No thread of any block."""
        return np.zeros(self._geometry.blocks, dtype=np.int64)

    def of(self, fibre: Fibre, *, padded: bool = True) -> Counts:
        """For how many threads of each block a fibre stands, lanes that are not there included."""
        return self.among(np.broadcast_to(np.asarray(fibre.place("lane")), (fibre.n,)), padded)

    def among(self, lanes: Lanes, padded: bool = True) -> Counts:
        """The same for the threads of these numbers."""
        geometry = self._geometry
        threads = geometry.threads_per_block
        slots = lanes // threads if geometry.blocks > 1 else np.zeros(len(lanes), dtype=np.intp)
        counts = np.bincount(slots, minlength=geometry.blocks)
        padding = geometry.warps_per_block * WARP - threads
        if padding and padded:
            last = slots[lanes - slots * threads == threads - 1]
            counts += padding * np.bincount(last, minlength=geometry.blocks)
        return counts

    def last_to_come(self, arrivals: list[Lanes], extra: Counts) -> Bools:
        """(threads,) who came last, as many of each block as there are too many; whole warps."""
        geometry = self._geometry
        late = np.zeros(geometry.threads, dtype=np.bool_)
        left = extra.copy()
        for lanes in reversed(arrivals):
            warps = geometry.index("warp_slot").take(lanes) // WARP
            for warp in np.unique(warps)[::-1]:
                warp_lanes = lanes[warps == warp]
                weights = self.among(warp_lanes)
                if (weights <= left).all():
                    left -= weights
                    late[warp_lanes] = True
        return late

    def exited_beside(self, waiting: Iterable[Lanes], exited: Iterable[Lanes]) -> Counts:
        """(blocks,) the exited threads of those warps that have waiting threads."""
        geometry = self._geometry
        warps: Lanes = geometry.index("warp_slot") // WARP
        here = np.zeros(geometry.warps_per_block * geometry.blocks, dtype=np.bool_)
        for lanes in waiting:
            here[warps.take(lanes)] = True
        counts = self.none()
        for lanes in exited:
            counts += self.among(lanes[here.take(warps.take(lanes))])
        return counts
