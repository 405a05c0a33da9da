"""The barrier of a cluster's blocks. PTX ISA, "barrier.cluster".

Arriving and waiting are separate instructions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.errors import SynchronisationFault
from ptx.emulate.threads.fibre import GONE, Fibre, RunQueue
from ptx.isa.model import Instruction

_NEVER = -1


@dataclass(slots=True)
class ClusterWait:
    """A fibre that waits for the blocks of its clusters and continues at `block`."""

    fibre: Fibre
    block: int
    instruction: Instruction | None


class ClusterBarriers:
    """One barrier for each cluster of a chunk; it is passed in numbered phases."""

    def __init__(self, queue: RunQueue) -> None:
        blocks = queue.blocks
        geometry = blocks.geometry
        self._queue = queue
        self._blocks = blocks
        self._of_lane: Index = geometry.index("slot") // blocks.launch.cluster.blocks
        clusters = geometry.blocks // blocks.launch.cluster.blocks
        self._phase: NDArray[np.int64] = np.zeros(clusters, dtype=np.int64)
        self._awaited: NDArray[np.int64] = np.full(geometry.threads, _NEVER, dtype=np.int64)
        self._here: NDArray[np.bool_] = np.zeros(geometry.threads, dtype=np.bool_)
        self.waiting: list[ClusterWait] = []

    def arrive(self, fibre: Fibre, block: int, *, releases: bool) -> None:
        """`barrier.cluster.arrive` in `block`; it `releases` unless it is `.relaxed`.

        Raises:
            SynchronisationFault: a thread arrives again without having waited.
        """
        lanes = fibre.lane_numbers()
        is_repeated = self._awaited.take(lanes) != _NEVER
        if is_repeated.any():
            raise SynchronisationFault(
                "a thread arrives twice at the cluster's barrier without a wait in between",
                fibre.where(int(np.argmax(is_repeated)), self._blocks.code.first[block]),
            )
        for observer in self._blocks.order_observers:
            clusters = self._of_lane.take(lanes)
            observer.arrive(lanes, "cluster", clusters, "cluster", releases=releases)
        self._here[lanes] = True
        self._awaited[lanes] = self._phase.take(self._of_lane.take(lanes))
        self._complete()

    def wait(self, fibre: Fibre, block: int) -> int:
        """`barrier.cluster.wait`: `block` if all have arrived, GONE where the fibre waits.

        Raises:
            SynchronisationFault: a thread waits that has not arrived.
        """
        lanes = fibre.lane_numbers()
        instruction = self._blocks.code.last[block - 1]
        awaited = self._awaited.take(lanes)
        if (awaited == _NEVER).any():
            raise SynchronisationFault(
                "a thread waits at the cluster's barrier without having arrived",
                fibre.where(int(np.argmin(awaited)), instruction),
            )
        if (self._phase.take(self._of_lane.take(lanes)) > awaited).all():
            self._awaited[lanes] = _NEVER
            self._pass(lanes)
            return block
        self.waiting.append(ClusterWait(fibre, block, instruction))
        return GONE

    def resolve(self) -> bool:
        """Release the threads of clusters that are complete; whether there were any."""
        if not self.waiting:
            return False
        self._complete()
        entries, self.waiting = self.waiting, []
        released = False
        for entry in entries:
            lanes = entry.fibre.lane_numbers()
            is_released = self._phase.take(self._of_lane.take(lanes)) > self._awaited.take(lanes)
            for chosen, leaves in ((is_released, True), (~is_released, False)):
                positions = chosen.nonzero()[0]
                if not len(positions):
                    continue
                fibre = entry.fibre
                if len(positions) < fibre.n:
                    fibre = fibre.subset(positions, self._blocks.code.live[entry.block])
                if leaves:
                    released = True
                    self._awaited[lanes[positions]] = _NEVER
                    self._pass(lanes[positions])
                    self._queue.wait(fibre, entry.block)
                else:
                    self.waiting.append(ClusterWait(fibre, entry.block, entry.instruction))
        return released

    def _pass(self, lanes: Index) -> None:
        for observer in self._blocks.order_observers:
            observer.end_wait(lanes, "cluster", self._of_lane.take(lanes))

    def _complete(self) -> None:
        """Begin the next phase where all threads of a cluster have arrived or exited."""
        arrived = self._here
        if self._queue.exited:
            arrived = arrived.copy()
            arrived[np.concatenate(self._queue.exited)] = True
        full = arrived.reshape(len(self._phase), -1).all(axis=1)
        if full.any():
            self._phase[full] += 1
            for observer in self._blocks.order_observers:
                observer.complete("cluster", np.flatnonzero(full))
            self._here.reshape(len(self._phase), -1)[full] = False
