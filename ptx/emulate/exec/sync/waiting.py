"""Fibres that wait: at barriers of a block or a cluster, for lanes of a warp, for a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptx.emulate.exec.sync.block_barrier import BlockBarriers
from ptx.emulate.exec.sync.cluster_barrier import ClusterBarriers, ClusterWait
from ptx.emulate.exec.sync.mbarrier import mbarriers_of
from ptx.emulate.exec.sync.skipped_barriers import SkippedBarriers
from ptx.emulate.exec.sync.timed_waits import TimedWaits
from ptx.emulate.exec.sync.warp_sync import WarpSync
from ptx.emulate.model.errors import BarrierDivergence, Deadlock
from ptx.emulate.threads.fibre import RunQueue
from ptx.isa.model import Instruction, source_place

_SHOWN = 8  # groups of waiting threads that a report lists


class WaitingFibres:
    """The waiting fibres of one chunk, by the kind of wait."""

    def __init__(self, queue: RunQueue, skipped: SkippedBarriers | None) -> None:
        self._queue = queue
        self._blocks = queue.blocks
        self.block_barriers: BlockBarriers = BlockBarriers(queue, skipped)
        self.warp_sync: WarpSync = WarpSync(queue, skipped)
        self._cluster_barriers: ClusterBarriers | None = None
        self.timed_waits: TimedWaits = TimedWaits(queue)

    @property
    def cluster_barriers(self) -> ClusterBarriers:
        """The clusters' barriers, made when first used."""
        if self._cluster_barriers is None:
            self._cluster_barriers = ClusterBarriers(self._queue)
        return self._cluster_barriers

    @property
    def cluster_waits(self) -> list[ClusterWait]:
        """The fibres that wait at barriers of clusters."""
        return [] if self._cluster_barriers is None else self._cluster_barriers.waiting

    @property
    def anyone(self) -> bool:
        """True if a fibre waits."""
        for_others = self.warp_sync.waiting or self.block_barriers.waiting or self.cluster_waits
        return bool(for_others or self.timed_waits.waits)

    def resolve(self) -> bool:
        """Release complete waits; return whether there were any.

        Raises:
            Deadlock: threads wait and nothing is left that runs or is complete.
        """
        released = (
            self.block_barriers.resolve() | self.warp_sync.resolve() | self.timed_waits.resolve()
        )
        if self._cluster_barriers is not None:
            released |= self._cluster_barriers.resolve()
        if released or self._queue.has_runnable or not self.anyone:
            return released
        if self.timed_waits.skip_time():
            return True
        if not self._blocks.launch.limits.strict_barriers and self.block_barriers.resolve(
            lenient=True
        ):
            return True
        raise self._deadlock()

    def _deadlock(self) -> Deadlock:
        blocks = self._blocks
        for number, waiting in self.block_barriers.waiting.items():
            entry = waiting[0]
            count = sum(barrier_wait.fibre.count for barrier_wait in waiting)
            missing = self.block_barriers.missing(number)
            index = int(np.argmax(missing))
            block = blocks.block_of(index * blocks.geometry.threads_per_block)
            return BarrierDivergence(
                f"{count} threads wait at barrier {number} for threads that will never reach it"
                f" ({missing[index]} in block {block}):"
                f" {self._whereabouts()}",
                entry.fibre.where(0, entry.instruction),
            )
        for cluster in self.cluster_waits:
            return BarrierDivergence(
                "threads wait at the cluster's barrier for threads that will never arrive:"
                f" {self._whereabouts()}",
                cluster.fibre.where(0, cluster.instruction),
            )
        for phase in self.timed_waits.phase_waits:
            assert phase.awaited is not None
            object_ = mbarriers_of(blocks).described(int(phase.awaited.at[0]))
            return Deadlock(
                f"{phase.fibre.count} threads wait for a phase that is never completed, of"
                f" {object_}: {self._whereabouts()}",
                phase.fibre.where(0, phase.instruction),
            )
        lanes = self.warp_sync.waiting[0]
        missing_lanes = self.warp_sync.missing(lanes)
        index = int(np.argmax(missing_lanes != 0))
        partners = f"lanes {int(missing_lanes[index]):#010x}, which will never execute it with this"
        partners += " membermask"
        if not missing_lanes[index]:
            partners = "the other warps of its warp group, which will never execute it"
        return Deadlock(
            f"a warp instruction waits for {partners}: {self._whereabouts()}",
            lanes.fibre.where(index, blocks.code.first[lanes.block]),
        )

    def _whereabouts(self) -> str:
        """Return how many threads wait where."""
        counts: dict[str, int] = {}
        for description, count in self._places():
            counts[description] = counts.get(description, 0) + count
        parts = [f"{count} {description}" for description, count in counts.items()]
        if len(parts) > _SHOWN:
            parts[_SHOWN:] = [f"and others at {len(parts) - _SHOWN} more places"]
        exited = sum(len(lanes) for lanes in self._queue.exited)
        return ", ".join([*parts, f"{exited} exited"])

    def _places(self) -> Iterator[tuple[str, int]]:
        for number, waiting in self.block_barriers.waiting.items():
            for entry in waiting:
                yield f"at barrier {number}{self._line(entry.instruction)}", entry.fibre.count
        for cluster in self.cluster_waits:
            yield f"at the cluster's barrier{self._line(cluster.instruction)}", cluster.fibre.count
        for phase in self.timed_waits.phase_waits:
            line = self._line(phase.instruction)
            yield f"at mbarrier objects{line}", phase.fibre.count
        for lanes in self.warp_sync.waiting:
            line = self._line(self._blocks.code.first[lanes.block])
            yield f"at warp instructions ({lanes.key}{line})", lanes.fibre.count

    def _line(self, instruction: Instruction | None) -> str:
        if instruction is None:
            return ""
        file, line = source_place(instruction.location, self._blocks.code.files)
        source = "" if line is None else f", {file}:{line}"
        return f" (PTX line {instruction.line}{source})"
