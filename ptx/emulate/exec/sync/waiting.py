"""Where threads of several fibres meet: block barriers, lanes of a warp, blocks of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ptx.emulate.exec.fibre import Fibre
from ptx.emulate.exec.sync.block_barrier import BlockBarriers
from ptx.emulate.exec.sync.cluster_barrier import ClusterBarriers, WaitingBlocks
from ptx.emulate.exec.sync.timed_waits import Sleepers
from ptx.emulate.exec.sync.warp_sync import WarpMeetings
from ptx.emulate.model.errors import BarrierDivergence, Deadlock
from ptx.emulate.model.geometry import Value
from ptx.isa.model import Instruction

if TYPE_CHECKING:
    from ptx.emulate.exec.scheduler import Scheduler

_SHOWN = 8  # groups of waiting threads that a report lists


class Rendezvous:
    """The threads of one chunk that wait for each other."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._blocks = scheduler.blocks
        self.blocks = BlockBarriers(scheduler)
        self.warps = WarpMeetings(scheduler)
        self._clusters: ClusterBarriers | None = None
        self.sleepers = Sleepers(scheduler)

    @property
    def clusters(self) -> ClusterBarriers:
        """The clusters' barriers, made when first used."""
        if self._clusters is None:
            self._clusters = ClusterBarriers(self._scheduler)
        return self._clusters

    @property
    def _at_clusters(self) -> list[WaitingBlocks]:
        return [] if self._clusters is None else self._clusters.waiting

    def meets(
        self, fibre: Fibre, mask: Value, block: int, key: str, values: dict[str, Value]
    ) -> bool:
        """Whether all lanes that `mask` names are here; otherwise the fibre is parked.

        Lanes that execute `key` at another place meet as well; after the release, what they
        brought is in `fibre.exchange`.
        """
        return self.warps.meets(fibre, mask, block, key, values)

    @property
    def anyone(self) -> bool:
        """Whether a fibre is parked here."""
        parked = self.warps.waiting or self.blocks.waiting or self._at_clusters
        return bool(parked or self.sleepers.asleep)

    def resolve(self) -> bool:
        """Release what is complete; whether anything was.

        Raises:
            Deadlock: threads wait and nothing is left that runs or is complete.
        """
        released = self.blocks.resolve() | self.warps.resolve() | self.sleepers.resolve()
        if self._clusters is not None:
            released |= self._clusters.resolve()
        if released or self._scheduler.has_runnable or not self.anyone:
            return released
        if self.sleepers.skip_time():
            return True
        if not self._blocks.launch.limits.strict_barriers and self.blocks.resolve(lenient=True):
            return True
        raise self._deadlock()

    def _deadlock(self) -> Deadlock:
        blocks = self._blocks
        for number, waiting in self.blocks.waiting.items():
            entry = waiting[0]
            count = sum(each.fibre.count for each in waiting)
            missing = self.blocks.missing(number)
            at = int(np.argmax(missing))
            block = blocks.block_of(at * blocks.geometry.threads_per_block)
            return BarrierDivergence(
                f"{count} threads wait at barrier {number} for threads that will never reach it"
                f" ({missing[at]} in block {block}):"
                f" {self._whereabouts()}",
                entry.fibre.where(0, entry.instruction),
            )
        for cluster in self._at_clusters:
            return BarrierDivergence(
                "threads wait at the cluster's barrier for threads that will never arrive:"
                f" {self._whereabouts()}",
                cluster.fibre.where(0, cluster.instruction),
            )
        for sleeper in self.sleepers.waiting:
            assert sleeper.awaited is not None
            return Deadlock(
                f"{sleeper.fibre.count} threads wait for a phase that is never completed, of"
                f" {blocks.mbarriers.described(int(sleeper.awaited.at[0]))}: {self._whereabouts()}",
                sleeper.fibre.where(0, sleeper.instruction),
            )
        lanes = self.warps.waiting[0]
        missing_lanes = self.warps.missing(lanes)
        at = int(np.argmax(missing_lanes != 0))
        return Deadlock(
            f"a warp instruction waits for lanes {int(missing_lanes[at]):#010x}, which will never"
            f" execute it with this membermask: {self._whereabouts()}",
            lanes.fibre.where(at, blocks.code.first[lanes.block]),
        )

    def _whereabouts(self) -> str:
        """How many threads wait where."""
        counts: dict[str, int] = {}
        for place, count in self._places():
            counts[place] = counts.get(place, 0) + count
        parts = [f"{count} {place}" for place, count in counts.items()]
        if len(parts) > _SHOWN:
            parts[_SHOWN:] = [f"and others at {len(parts) - _SHOWN} more places"]
        exited = sum(len(lanes) for lanes in self._scheduler.exited)
        return ", ".join([*parts, f"{exited} exited"])

    def _places(self) -> Iterator[tuple[str, int]]:
        for number, waiting in self.blocks.waiting.items():
            for entry in waiting:
                yield f"at barrier {number}{self._line(entry.instruction)}", entry.fibre.count
        for cluster in self._at_clusters:
            yield f"at the cluster's barrier{self._line(cluster.instruction)}", cluster.fibre.count
        for sleeper in self.sleepers.waiting:
            line = self._line(sleeper.instruction)
            yield f"at mbarrier objects{line}", sleeper.fibre.count
        for lanes in self.warps.waiting:
            line = self._line(self._blocks.code.first[lanes.block])
            yield f"at warp instructions ({lanes.key}{line})", lanes.fibre.count

    def _line(self, instruction: Instruction | None) -> str:
        if instruction is None:
            return ""
        location = instruction.location
        source = ""
        if location is not None:
            source = f", {self._blocks.code.files.get(location.file)}:{location.line}"
        return f" (PTX line {instruction.line}{source})"
