"""Thread blocks of a launch in another order, and their work that is not done yet.

- `LateGroups`: a thread begins work and later waits for it by groups. The work runs at that wait.
  PTX ISA, "cp.async.commit_group", "cp.async.wait_group", and the same for bulk copies and `wgmma`.

- `TensorWork`: each thread's work on tensor memory, in its order: `tcgen05.mma`, `tcgen05.cp`. It
  runs at a wait for an mbarrier object that a `tcgen05.commit` named. PTX ISA, "Pipelined tcgen05
  Instructions".

- `LateCopies`: all asynchronous work of a chunk. Copies that signal an mbarrier object land when a
  thread waits for its phase and cannot continue otherwise. PTX ISA, "Asynchronous Operations".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.exec.sync.bulk_copy import Pointer
from ptx.emulate.exec.sync.mbarrier import mbarriers_of
from ptx.emulate.exec.sync.timed_waits import TimedWait
from ptx.emulate.memory.late_stores import LateStores
from ptx.emulate.model.addresses import Addresses, Index, addresses_in
from ptx.emulate.model.geometry import Geometry, Value
from ptx.emulate.model.order import Decisions
from ptx.emulate.threads.fibre import Fibre
from ptx.emulate.threads.launch_plan import LaunchPlan
from ptx.emulate.threads.resident_blocks import ResidentBlocks

Work = Callable[[], None]
# The next stage of work, for threads at these positions among all that began it (None: all). It
# returns the stage after it, None if it was the last.
Stage = Callable[[Fibre, Index | None], "Stage | None"]
_WARP_GROUP: Final = 128  # threads
_EARLY: Final = 4  # one time in so many something lands before it must


@dataclass(slots=True)
class _Pending:
    """Work of some threads, and the number of the group that it is in for each of them."""

    fibre: Fibre
    groups: NDArray[np.int64]
    stage: Stage
    is_read: bool = False

    def part(self, positions: Index) -> Fibre:
        """Some of the threads."""
        return self.fibre.subset(positions, ())


def without_registers(fibre: Fibre) -> Fibre:
    """Return the same threads, for their later work."""
    return Fibre(fibre.scheduler, [], fibre.lanes, fibre.n)


def chosen(value: Value, positions: Index | None) -> Value:
    """The values of some threads."""
    return value if positions is None or not value.ndim else value[positions]


def chosen_addresses(addresses: Addresses, count: int, positions: Index | None) -> Addresses:
    """The addresses of some of `count` threads."""
    return addresses if positions is None else addresses_in(addresses.every(count)[positions])


class LateGroups:
    """The groups of every thread of a chunk, of one kind of work."""

    def __init__(self, threads: int, decisions: Decisions) -> None:
        self._decisions = decisions
        self._open = np.zeros(threads, dtype=np.int64)
        self._pending: list[_Pending] = []

    def add(self, fibre: Fibre, stage: Stage) -> None:
        """Begin work; it belongs to the group that each thread commits next."""
        groups = self._open[fibre.lane_numbers()]
        self._pending.append(_Pending(without_registers(fibre), groups, stage))
        if self._decisions.early(_EARLY):
            index = self._decisions.below(len(self._pending))
            self._finish(self._pending.pop(index))

    def commit(self, fibre: Fibre) -> None:
        """`commit_group`: each thread's next work is in another group."""
        self._open[fibre.lane_numbers()] += 1

    def wait(self, fibre: Fibre, newest: int, *, read: bool = False) -> None:
        """`wait_group`: finish all groups of these threads but so many of the newest.

        `read`: only what reads is to be done.
        """
        self._finish_before(fibre, self._open[fibre.lane_numbers()] - newest, read)

    def wait_for_warp_groups(self, fibre: Fibre, newest: int) -> None:
        """`wgmma.wait_group`: what one warp of a warp group waits for is done for all of them."""
        if self._pending:
            index = fibre.blocks.geometry.index
            first = index("lane") - index("thread") % _WARP_GROUP
            lanes = fibre.lane_numbers()
            ends = np.zeros(len(self._open), dtype=np.int64)
            np.maximum.at(ends, first[lanes], self._open[lanes] - newest)
            self._finish_all_before(ends[first], read=False)

    def wait_all(self, fibre: Fibre) -> None:
        """`wait_all`: finish the threads' work, committed or not."""
        self._finish_before(fibre, self._open[fibre.lane_numbers()] + 1, False)

    def finish(self) -> None:
        """Finish all work of all threads."""
        pending, self._pending = self._pending, []
        for group in pending:
            self._finish(group)

    def _finish_before(self, fibre: Fibre, ends: NDArray[np.int64], read: bool) -> None:
        if not self._pending:
            return
        end_of = np.zeros(len(self._open), dtype=np.int64)
        end_of[fibre.lane_numbers()] = ends
        self._finish_all_before(end_of, read=read)

    def _finish_all_before(self, end_of: NDArray[np.int64], *, read: bool) -> None:
        """Finish the groups of each thread below a number."""
        pending, self._pending = self._pending, []
        due: list[_Pending] = []
        for group in pending:
            is_due = group.groups < end_of[group.fibre.lane_numbers()]
            if not is_due.any() or (read and group.is_read):
                self._pending.append(group)
            elif is_due.all() or group.is_read:
                due.append(group)
            else:
                due.append(self._divided(group, is_due.nonzero()[0]))
                self._pending.append(self._divided(group, (~is_due).nonzero()[0]))
        for group in due if self._decisions.late else self._decisions.shuffled(due):
            if read:
                self._read(group)
            else:
                self._finish(group)

    @staticmethod
    def _divided(group: _Pending, positions: Index) -> _Pending:
        """The work of some of its threads; nothing of it is done yet."""
        group_stage = group.stage

        def stage(fibre: Fibre, selected: Index | None) -> Stage | None:
            return group_stage(fibre, positions if selected is None else positions[selected])

        return _Pending(group.part(positions), group.groups[positions], stage)

    def _read(self, group: _Pending) -> None:
        """Do the first stage, which reads."""
        next_stage = group.stage(group.fibre, None)
        if next_stage is not None:
            self._pending.append(_Pending(group.fibre, group.groups, next_stage, is_read=True))

    @staticmethod
    def _finish(group: _Pending) -> None:
        stage: Stage | None = group.stage
        while stage is not None:
            stage = stage(group.fibre, None)


class TensorWork:
    """The work of every thread of a chunk."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions
        self._waiting: dict[int, deque[Work]] = {}
        self._done: dict[int, int] = {}

    def add(self, fibre: Fibre, works: list[Work]) -> None:
        """Begin one piece of work of each thread."""
        for lane, work in zip(fibre.lane_numbers().tolist(), works, strict=True):
            self._waiting.setdefault(lane, deque()).append(work)
        if self._decisions.early(_EARLY):
            lanes = [lane for lane, works in self._waiting.items() if works]
            self._finish_one(lanes[self._decisions.below(len(lanes))])

    def committed(self, fibre: Fibre) -> Work:
        """Return a function that finishes all work that these threads have begun until now."""
        ends = {
            lane: self._done.get(lane, 0) + len(self._waiting.get(lane, ()))
            for lane in fibre.lane_numbers().tolist()
        }

        def finish() -> None:
            for lane, end in ends.items():
                while self._done.get(lane, 0) < end:
                    self._finish_one(lane)

        return finish

    def finish(self) -> None:
        """Finish all work of all threads."""
        for lane, works in self._waiting.items():
            while works:
                self._finish_one(lane)

    def _finish_one(self, lane: int) -> None:
        self._done[lane] = self._done.get(lane, 0) + 1
        self._waiting[lane].popleft()()


@dataclass(frozen=True, slots=True)
class _Signal:
    """A copy, and its signal to the mbarrier objects `at` some locations of shared memory."""

    at: Index
    copy: Callable[[], object]
    deliver: Callable[[], object]


class LateCopies:
    """The asynchronous work of one chunk that is not done yet.

    Attributes:
        copies: `cp.async`; bulk: bulk copies with groups; products: what `wgmma` reads.
        tensor_stores: `tcgen05.st`; tensor_work: `tcgen05.mma` and `tcgen05.cp`.
    """

    def __init__(self, threads: int, decisions: Decisions) -> None:
        self.copies: LateGroups = LateGroups(threads, decisions)
        self.bulk: LateGroups = LateGroups(threads, decisions)
        self.products: LateGroups = LateGroups(threads, decisions)
        self.tensor_stores: LateGroups = LateGroups(threads, decisions)
        self.tensor_work: TensorWork = TensorWork(decisions)
        self._decisions = decisions
        self._signals: list[_Signal] = []

    def add(
        self,
        fibre: Fibre,
        barrier: Pointer,
        copy: Callable[[], object],
        deliver: Callable[[], object],
    ) -> None:
        """Begin a copy that an mbarrier object waits for."""
        objects = mbarriers_of(fibre.blocks).places(
            fibre, barrier.addresses, barrier.offset, barrier.site
        )
        self._signals.append(_Signal(objects, copy, deliver))
        if self._decisions.early(_EARLY):
            self._land(self._signals.pop(self._decisions.below(len(self._signals))))

    def land_awaited(self, waits: list[TimedWait]) -> None:
        """Land a copy that one of the threads waits for."""
        if not self._signals or not waits:
            return
        awaited = np.concatenate([entry.awaited.at for entry in waits if entry.awaited is not None])
        landing = [
            index for index, entry in enumerate(self._signals) if np.isin(entry.at, awaited).any()
        ]
        if landing:
            choice = 0 if self._decisions.late else self._decisions.below(len(landing))
            self._land(self._signals.pop(landing[choice]))

    def finish(self) -> None:
        """Finish the copies without signals, because all threads have exited."""
        signals, self._signals = self._signals, []
        for entry in signals:
            entry.copy()
        self.copies.finish()
        self.tensor_stores.finish()
        self.tensor_work.finish()
        self.bulk.finish()

    @staticmethod
    def _land(signal: _Signal) -> None:
        signal.copy()
        signal.deliver()


class OrderedBlocks(ResidentBlocks):
    """One chunk of a launch in another order.

    Attributes:
        late_copies: the asynchronous copies under way.
        late_stores: the stores that other chunks do not see yet.
        reads: how often global memory was read as others write it, since these blocks last stored.
        ways_given: how often its turn ended because others may see its stores.
    """

    def __init__(
        self, launch: LaunchPlan, geometry: Geometry, first: int, decisions: Decisions
    ) -> None:
        super().__init__(launch, geometry, first)
        self.decisions: Decisions = decisions
        self.late_copies: LateCopies = LateCopies(geometry.threads, decisions)
        self.late_stores: LateStores = LateStores()
        for observer in self.order_observers:
            observer.hide_stores(self.late_stores)
        self.reads = 0
        self.ways_given = 0


def ordered_blocks(fibre: Fibre) -> OrderedBlocks:
    """The fibre's blocks, which code for launches in another order runs in."""
    blocks = fibre.blocks
    assert isinstance(blocks, OrderedBlocks)
    return blocks
