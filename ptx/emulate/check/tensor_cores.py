"""Asynchronous work of tensor cores: products of warp groups, and all of `tcgen05`.

PTX ISA, "Asynchronous Warpgroup Level Matrix", "TensorCore 5th Generation Family Instructions":
such work is done as if by another thread. Workers stand for these threads:

- A warp group has one for its `wgmma` products. After a wait for a group, all groups up to that one
  are complete for the waiting threads.
- A thread has one for its `tcgen05.mma` and `tcgen05.cp`, which are done in order. All earlier work
  is complete for a thread that waits on the mbarrier object of a commit.
- A warp has one for its `tcgen05.ld` and one for its `tcgen05.st`. Its threads wait for each.

A worker is a virtual thread (`async_copies.py`), whose epoch is the group that its work belongs to.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.access_step import AccessStep
from ptx.emulate.check.barrier_clocks import BarrierClocks
from ptx.emulate.check.data_races import DataRaces, MemoryAccess
from ptx.emulate.check.race_check import RaceCheck
from ptx.emulate.check.shadow_memory import ShadowMemory, in_memory
from ptx.emulate.check.stamps import (
    EPOCH_SHIFT,
    MOST_EPOCHS,
    THREAD_SHIFT,
    Stamps,
    key_of_thread,
    threads_of,
)
from ptx.emulate.kernel_facts import Action, PendingUse, WorkerKind
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Index, addresses_in
from ptx.emulate.model.geometry import WARP, Geometry
from ptx.emulate.model.threads import Threads
from ptx.emulate.threads.tensor_memory import COLUMNS, HALF, LANES

_THREADS_OF_ONE: Final = {"products": 4 * WARP, "work": 1, "loads": WARP, "stores": WARP}
_LATEST: Final = MOST_EPOCHS - 1


class TensorWorkers:
    """The workers of a chunk whose first block has the number `first`."""

    def __init__(
        self, launch: RaceCheck, geometry: Geometry, first: int, clocks: BarrierClocks
    ) -> None:
        self._launch = launch
        self._geometry = geometry
        self._first = first
        self._clocks = clocks
        # By kind, the group that each thread's next work belongs to.
        self._groups: defaultdict[WorkerKind, Stamps] = defaultdict(
            lambda: np.zeros(geometry.threads, dtype=np.int64)
        )
        # Likewise, below which group it has waited for all of its work.
        self._done: defaultdict[WorkerKind, Stamps] = defaultdict(
            lambda: np.zeros(geometry.threads, dtype=np.int64)
        )

    def group(self, kind: WorkerKind, lanes: Index) -> Stamps:
        """Return the group that each thread's next work belongs to."""
        return self._groups[kind][lanes]

    def done(self, kind: WorkerKind, lanes: Index) -> Stamps:
        """Return the group below which each thread has waited for its work."""
        return self._done[kind][lanes]

    def stamps(self, kind: WorkerKind, lanes: Index, site: int) -> Stamps:
        """Return the stamps, without a site, of work that begins for each of these threads."""
        masters, of = np.unique(self._masters(kind, lanes), return_inverse=True)
        groups = np.minimum(self.group(kind, lanes), _LATEST)
        workers = np.array([self._worker(kind, master) for master in masters.tolist()])[of]
        for worker, thread in zip(
            workers.tolist(), self._clocks.threads[lanes].tolist(), strict=True
        ):
            self._launch.virtual_threads.note_issuer(worker, site, thread)
        stamps: Stamps = (workers + 1) << THREAD_SHIFT | groups << EPOCH_SHIFT
        return stamps

    def commit(self, kind: WorkerKind, lanes: Index) -> None:
        """Make a group of the work that was begun for these threads."""
        self._groups[kind][lanes] += 1

    def wait(self, kind: WorkerKind, lanes: Index, pending: int = 0) -> None:
        """Record that these threads wait for all groups except so many of the newest."""
        self._launch.deferred.settle()
        masters = self._masters(kind, lanes)
        completed = self.group(kind, lanes) - pending
        self._done[kind][lanes] = np.maximum(self.done(kind, lanes), completed)
        threads = self._clocks.threads[lanes]
        for master in np.unique(masters).tolist():
            worker_number = self._launch.virtual_threads.find_number(self._place(kind, master))
            of_master = masters == master
            last_completed = int(completed[of_master].max())
            if worker_number is not None and last_completed > 0:
                self._launch.synchronization.learn(
                    threads[of_master].tolist(), key_of_thread(worker_number), last_completed
                )

    def hand_over(self, lanes: Index, objects: Index) -> None:
        """Let mbarrier objects release the work that each thread began: `tcgen05.commit`."""
        launch = self._launch
        launch.deferred.settle()
        self.commit("work", lanes)
        groups = self._groups["work"][lanes]
        for lane, group, number in zip(
            lanes.tolist(), groups.tolist(), objects.tolist(), strict=True
        ):
            worker = self._worker("work", lane)
            location = f"mbarrier {self._first}", number
            released = ((key_of_thread(worker), group),)
            launch.synchronization.release(location, worker, released, 0, at_once=True)

    def _masters(self, kind: WorkerKind, lanes: Index) -> Index:
        """Return the first of the threads with which each one shares a worker."""
        thread_in_block = self._geometry.index("thread")[lanes]
        masters: Index = lanes - thread_in_block % _THREADS_OF_ONE[kind]
        return masters

    def _place(self, kind: WorkerKind, master: int) -> tuple[str, int]:
        return f"{kind} {self._first}", master

    def _worker(self, kind: WorkerKind, master: int) -> int:
        block = self._first + int(self._geometry.index("slot")[master])
        return self._launch.virtual_threads.number_of(self._place(kind, master), block)


UNITS: Final = LANES // HALF * COLUMNS  # of a block
Units = NDArray[np.intp]


class TensorMemoryRaces:
    """The races in tensor memory: accesses of `tcgen05` that nothing orders.

    A unit is a column of 16 lanes: instructions access all lanes of such a half, or none of them.
    """

    def __init__(
        self,
        launch: RaceCheck,
        clocks: BarrierClocks,
        races: DataRaces,
        workers: TensorWorkers,
        blocks: int,
    ) -> None:
        self._launch = launch
        self._clocks = clocks
        self._races = races
        self._workers = workers
        self._shadow = ShadowMemory(blocks * UNITS, in_memory, launch.shift)

    def access(self, kind: WorkerKind, lanes: Index, units: Units, site: Site) -> None:
        """Check that a worker of each thread begins to access units of its block, (n, …)."""
        launch, shadow = self._launch, self._shadow
        count = units[0].size if len(units) else 0
        if not count:
            return
        number = launch.number_of(site)
        of_threads = self._workers.stamps(kind, lanes, number)
        addresses = addresses_in(units.reshape(-1).astype(np.int64))
        lanes = np.repeat(lanes, count)
        step = AccessStep(self._clocks.moment, lanes, number, addresses, 0, len(lanes), 1, 0)
        stamps = np.repeat(of_threads, count) | number
        access = MemoryAccess("tensor", shadow, step, launch.role(number))
        shadow.settle(step)
        earlier = shadow.written(step.units)
        if site.writes:
            earlier += shadow.reads.found(step.units)
        for old in earlier:
            self._races.compare(_of_others(old, stamps), access)
        if site.writes:
            shadow.write(step)
            shadow.put(np.asarray(step.units), stamps, step)
        else:
            shadow.reads.add(step.units, stamps)


def _of_others(old: Stamps, stamps: Stamps) -> Stamps:
    """Leave out accesses by the worker itself, which are done in order."""
    return np.where(threads_of(old) == threads_of(stamps), 0, old)


_Key = tuple[int, int, int]  # how many calls the thread is in, the function, and the register


class _Begun:
    """A pending result, by threads: the instruction's number, and the group of its work.

    The number is 0 where there is no such result.
    """

    def __init__(self, threads: int) -> None:
        self.by = np.zeros(threads, dtype=np.int32)
        self.group = np.zeros(threads, dtype=np.int64)


class PendingRegisters:
    """The registers of a chunk's threads that results of `wgmma` or `tcgen05.ld` go to.

    PTX ISA, "wgmma.wait_group", "tcgen05.wait": reading one before the wait is reported.
    """

    def __init__(self, launch: RaceCheck, workers: TensorWorkers, threads: int) -> None:
        self._launch = launch
        self._workers = workers
        self._threads = threads
        self._begun: dict[_Key, _Begun] = {}
        self._uses: list[PendingUse] = []
        self._numbers: dict[int, int] = {}  # of uses, from 1, by their identity

    def before(self, threads: Threads, use: PendingUse) -> None:
        """Check an instruction that these threads are about to execute."""
        lanes = _present(threads)
        if use.action is Action.PASSES_ON:
            self._pass_on(threads, lanes, use)
            return
        for register, name in zip(use.reads, use.names, strict=True):
            pending = self._begun.get(self._key(threads, register))
            if pending is not None:
                self._check(threads, lanes, pending, use, name)
        if use.action is Action.READS:
            for register in use.writes:
                pending = self._begun.get(self._key(threads, register))
                if pending is not None:
                    pending.by[lanes] = 0

    def begin_pending(self, threads: Threads, use: PendingUse) -> None:
        """Record that threads began work with results in registers."""
        lanes = _present(threads)
        groups = self._workers.group(use.kind, lanes)
        number = self._numbers.setdefault(id(use), len(self._uses) + 1)
        if number > len(self._uses):
            self._uses.append(use)
        for register in use.writes:
            key = self._key(threads, register)
            registers_pending = self._begun.get(key)
            if registers_pending is None:
                registers_pending = self._begun[key] = _Begun(self._threads)
            registers_pending.by[lanes], registers_pending.group[lanes] = number, groups

    def _pass_on(self, threads: Threads, lanes: Index, use: PendingUse) -> None:
        """Mark copies of pending results as pending; of several operands the last one counts.

        Limitation: copies under a guard are not followed, as some threads keep their values.
        """
        if use.instruction.guard is not None:
            return
        sources = [self._begun.get(self._key(threads, operand)) for operand in use.reads]
        by = np.zeros(len(lanes), dtype=np.int32)
        group = np.zeros(len(lanes), dtype=np.int64)
        for source in sources:
            if source is not None:
                has = source.by[lanes] != 0
                by[has], group[has] = source.by[lanes][has], source.group[lanes][has]
        for register in use.writes:
            key = self._key(threads, register)
            pending = self._begun.get(key)
            if pending is None:
                if not by.any():
                    continue
                pending = self._begun[key] = _Begun(self._threads)
            pending.by[lanes], pending.group[lanes] = by, group

    def _check(
        self, threads: Threads, lanes: Index, pending: _Begun, use: PendingUse, name: str
    ) -> None:
        by = pending.by[lanes]
        for number in np.unique(by[by != 0]).tolist():
            producer = self._uses[number - 1]
            early = (by == number) & (
                pending.group[lanes] >= self._workers.done(producer.kind, lanes)
            )
            if early.any():
                lane = int(lanes[int(np.argmax(early))])
                position = int(np.argmax(threads.lane_numbers() == lane))
                sites = [threads.where(position, i.instruction) for i in (producer, use)]
                self._launch.report_pending(producer.instruction, sites[0], sites[1], name)

    @staticmethod
    def _key(threads: Threads, register: int) -> _Key:
        calls = threads.calls
        return len(calls), calls[-1].function if calls else 0, register


def _present(threads: Threads) -> Index:
    lanes = threads.lane_numbers()
    present: Index = lanes if threads.present is None else lanes[threads.present]
    return present
