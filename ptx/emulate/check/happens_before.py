"""The order of accesses in a chunk, by barriers, waits, fences and memory.

PTX ISA, "Memory Consistency Model", "Causality Order": an access happens before a later one of

- the same thread ("Program Order");
- a thread that has passed a barrier with it since (`barrier_clocks.py`);
- a thread that has acquired its later release, by a flag, a lock or an mbarrier object
  (`synchronizes_with.py`), or that has met such a thread;
- a reader through another proxy, if a proxy fence comes between, too (`proxy_fences.py`).

The epochs of threads advance at once. Synchronisation through memory is evaluated only when a query
needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np

from ptx.emulate.check.accelerations import SpinReads
from ptx.emulate.check.access_step import AccessStep, Units
from ptx.emulate.check.barrier_clocks import BarrierClocks, FenceClocks, Small, Words
from ptx.emulate.check.memory_model import AccessRole
from ptx.emulate.check.proxy_fences import ProxyFenceLog, ProxyFences
from ptx.emulate.check.race_check import RaceCheck
from ptx.emulate.check.stamps import (
    EPOCH_BITS,
    EPOCH_SHIFT,
    MOST_EPOCHS,
    MOST_SITES,
    THREAD_SHIFT,
    WARP_SHIFT,
    Bools,
    Stamps,
    epochs_of,
    key_of_block,
    key_of_fenced,
    key_of_strong,
    key_of_thread,
    key_of_warp,
    threads_of,
)
from ptx.emulate.check.synchronizes_with import Location, MemoryOrder
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Geometry, Value

_SLOT_BITS: Final = 18  # more than the blocks of a chunk
_Own = tuple[tuple[int, int], ...]
_NOTHING: Final[list[_Own]] = [()]


class HappensBefore:
    """The order among the blocks from number `first` on, which are one chunk, and before them.

    Attributes:
        clocks: what barriers alone order.
        fences: of each level of scopes, the last fence of each thread; once all is settled.
    """

    def __init__(self, launch: RaceCheck, geometry: Geometry, first: int) -> None:
        self.clocks: BarrierClocks = BarrierClocks(geometry, first)
        self.fences: list[FenceClocks] = []
        for _ in range(launch.levels):
            self.fences.append(FenceClocks(geometry.threads))
        self._launch = launch
        self._known = launch.synchronization
        self._deferred = launch.deferred
        self._first = first
        self._threads = geometry.threads
        self._blocks = geometry.blocks
        self._has_fences = False
        self._arrived = FenceClocks(geometry.threads)
        self._begun = np.zeros(geometry.blocks, dtype=np.bool_)
        self._proxy_fences: dict[str, ProxyFences] = {}
        # The epoch below which all of a block had been before a fence of each, at its last barrier.
        self._fenced = np.zeros(geometry.blocks, dtype=np.int64)
        self._unit_type = np.int32 if launch.memory.nbytes < 1 << 31 else np.int64
        # The threads that may have released their strong accesses in their epoch.
        self._has_released = np.zeros(geometry.threads, dtype=np.bool_)
        self._spins: dict[tuple[int, int], SpinReads] = {}  # by sites and levels
        # For DeferredWork: the numbers that the last work retained.
        self._last_known = self.clocks.block_known, self.clocks.warp_known
        self._last_lanes: tuple[Index, Small] | None = None
        # Numbers of four bytes that are not counted yet, at first the chunk's fences and stamps.
        self._uncounted = geometry.threads * (6 * launch.levels + 2)

    # Queries.

    @property
    def is_uneven(self) -> bool:
        """True if threads of a step may have acquired less than its first and last thread.

        That is not so where barriers of whole blocks and warps alone order them.
        """
        return self._may_synchronise or self.clocks.tells_lanes

    def order_of(self, old: int, new: int) -> MemoryOrder:
        """Return the order that memory gives two accesses, by their stamps."""
        self._deferred.settle()
        if not self._known.has_releases:
            return MemoryOrder.NONE
        first, second = (old >> THREAD_SHIFT) - 1, (new >> THREAD_SHIFT) - 1
        strong, as_strong = (
            self._launch.role(site_of & MOST_SITES - 1).strong for site_of in (old, new)
        )
        epoch = old >> EPOCH_SHIFT & MOST_EPOCHS
        return self._known.order(first, epoch, second, strong=strong, as_strong=as_strong)

    def over_for_blocks(self, old: Stamps, lanes: Index) -> Bools:
        """Return which accesses are complete for all of a lane's block, through memory.

        This saves `order_of` for each pair of threads.
        """
        self._deferred.settle()
        if not self._known.has_releases or not self._launch.accelerations.checks_blocks:
            return np.zeros(len(old), dtype=np.bool_)
        slots = self.clocks.slots(lanes)
        keys = threads_of(old) >> self.clocks.shift << EPOCH_BITS | epochs_of(old)
        keys = keys << _SLOT_BITS | slots
        distinct, of = np.unique(keys, return_inverse=True)
        are_complete = [
            self._known.block_knows(
                self._first + (key & (1 << _SLOT_BITS) - 1),
                key >> _SLOT_BITS + EPOCH_BITS,
                key >> _SLOT_BITS & (1 << EPOCH_BITS) - 1,
            )
            for key in distinct.tolist()
        ]
        return np.array(are_complete, dtype=np.bool_)[of]

    def reaches(self, old: Stamps, new: Stamps, level: int) -> Bools:
        """Return whether scopes of this level of two accesses include each other's threads."""
        launch, shift = self._launch, self.clocks.shift
        if level == launch.levels - 1:
            return np.ones(len(old), dtype=np.bool_)
        first, second = (
            launch.virtual_threads.blocks(threads_of(stamps), shift) for stamps in (old, new)
        )
        if level:
            first, second = first // launch.cluster_blocks, second // launch.cluster_blocks
        same: Bools = first == second
        return same

    def may_not_have_begun(self, lanes: Index, slots: Index) -> Bools:
        """Return which threads access another block of their cluster that may not have begun.

        A block has begun for threads that passed a barrier of the cluster. Limitation: nothing is
        reported where threads synchronise through memory, which may order the two as well.
        """
        own_slots = self.clocks.slots(lanes)
        early: Bools = (own_slots != slots) & ~self._begun[own_slots]
        self._deferred.settle()
        return early & (not self._known.has_releases)

    def unseen(self, kind: str, old: Stamps, lanes: Index) -> Bools:
        """Return which writes no proxy fence of a kind makes visible to the reader beside each."""
        self._deferred.settle()
        return self._proxy_fences_of(kind).unseen(old, lanes)

    # Barriers.

    def pass_block(self, lanes: Index) -> bool:
        """Record that these threads, all live ones of their blocks, pass a barrier.

        Returns:
            Whether those are all threads of the chunk.
        """
        if self._has_fences:
            work = partial(self._fence_blocks, self._small(lanes))
            self._do(work, self._new_numbers())
        every = len(lanes) == self._threads
        if every:
            self.clocks.pass_blocks()
            slots = list(range(self._blocks))
        else:
            slots = self.clocks.pass_block(lanes).tolist()
        if self._may_synchronise:
            self._do(partial(self._meet_blocks, slots), 2 * len(slots))
        return every

    def pass_warps(self) -> None:
        """Synchronise all threads of the chunk within their warps."""
        self.clocks.pass_warps()
        if self._may_synchronise:
            threads = self.clocks.threads
            self._do(partial(self._meet, None, threads), 1)

    def pass_warp(self, lanes: Index, masks: Words, are_whole: Bools) -> None:
        """Synchronise threads with those of their warps that their masks name; `whole`: all."""
        self.clocks.pass_warp(lanes, masks, are_whole)
        if self._may_synchronise:
            threads = self.clocks.threads[lanes]
            keys = threads >> WARP_SHIFT << 32 | masks
            self._do(partial(self._meet, keys, threads), 4 * len(lanes))

    # Barriers with arrivals and waits apart, and mbarrier objects.

    def arrive(
        self, lanes: Index, kind: str, numbers: Index, scope: str = "", *, releases: bool = True
    ) -> None:
        """Record that threads arrive at the objects of these numbers of a kind.

        Without a scope it includes all threads that may wait.
        """
        self._deferred.settle()
        if not releases:
            self._arrive_relaxed(lanes, kind, numbers, self._launch.level_of(scope))
            return
        are_whole = self._whole_blocks(lanes, numbers)
        if are_whole.any():
            objects = dict(zip(self.clocks.slots(lanes).tolist(), numbers.tolist(), strict=True))
            for slot, epoch in self.clocks.advance_blocks(lanes[are_whole]):
                block = self._first + slot
                key = key_of_block(block << self.clocks.shift, self.clocks.shift)
                location = self._object(kind, objects[slot], scope, block)
                self._known.release_by_block(location, block, (key, epoch + 1))
            lanes, numbers = lanes[~are_whole], numbers[~are_whole]
        if not len(lanes):
            return
        before = self.clocks.block_known, self.clocks.warp_known
        self.clocks.end(self._arrived, lanes, self.clocks.advance(lanes), *before)
        threads = self.clocks.threads[lanes].tolist()
        for lane, thread, number in zip(lanes.tolist(), threads, numbers.tolist(), strict=True):
            location = self._object(kind, number, scope, thread >> self.clocks.shift)
            published = self._published(self._arrived, lane)
            self._known.release(location, thread, published, 0, at_once=True)

    def _arrive_relaxed(self, lanes: Index, kind: str, numbers: Index, level: int) -> None:
        """Release only the work before a fence of each thread."""
        fences = self.fences[level]
        threads = self.clocks.threads[lanes].tolist()
        for position in np.flatnonzero(fences.ended[lanes] >= 0).tolist():
            published = self._published(fences, int(lanes[position]))
            location = f"{kind} {self._first}", int(numbers[position])
            self._known.release(location, threads[position], published, level, at_once=False)

    def complete(self, kind: str, numbers: Index) -> None:
        """Complete a phase of these objects: a thread that waits for it acquires the arrivals."""
        self._deferred.settle()
        for number in numbers.tolist():
            location = f"{kind} {self._first}", number
            self._launch.virtual_threads.complete(location, self._known)
            self._known.complete(location)

    def take(self, lanes: Index, kind: str, numbers: Index, *, acquires: bool = True) -> None:
        """End the wait of these threads for all that arrived there."""
        self._deferred.settle()
        if kind == "cluster":
            self._begun[self.clocks.slots(lanes)] = True
        shift, level = self.clocks.shift, self._launch.level_of("cluster")
        if acquires:
            are_whole = self._whole_blocks(lanes, numbers)
            slots = self.clocks.slots(lanes[are_whole]).tolist()
            for slot, number in set(zip(slots, numbers[are_whole].tolist(), strict=True)):
                block = self._first + slot
                for scope in ("", "cta"):
                    self._known.read_by_block(self._object(kind, number, scope, block), block)
            lanes, numbers = lanes[~are_whole], numbers[~are_whole]
        threads = self.clocks.threads[lanes].tolist()
        for thread, number in zip(threads, numbers.tolist(), strict=True):
            for scope in ("", "cta"):
                location = self._object(kind, number, scope, thread >> shift)
                self._known.read(location, thread, level, at_once=acquires)

    def _whole_blocks(self, lanes: Index, numbers: Index) -> Bools:
        if self._launch.accelerations.joins_blocks:
            return self.clocks.whole_blocks(lanes, numbers)
        return np.zeros(len(lanes), dtype=np.bool_)

    def _object(self, kind: str, number: int, scope: str, block: int) -> Location:
        """The location of an object's releases; each block has its own where the scope is one."""
        if scope and not self._launch.level_of(scope) and self._launch.cluster_blocks > 1:
            return f"{kind} {self._first} in {block}", number
        return f"{kind} {self._first}", number

    # Fences, and accesses that synchronise.

    def fence(self, lanes: Index, scope: str) -> None:
        """Record that these threads execute a fence."""
        self._begin_epoch(lanes, self._launch.level_of(scope), acquires=True)

    def fence_proxy(self, lanes: Index, kind: str) -> None:
        """Record that these threads execute a proxy fence."""
        self._proxy_fences_of(kind).add(lanes)

    def synchronise(
        self, space: str, step: AccessStep, role: AccessRole, wrote: Value | None = None
    ) -> None:
        """Let these threads acquire and release at a location, one after the other.

        `wrote`: which of them did write; None for all, if the access is a write.
        """
        if not (self._has_fences or role.releases or self._may_synchronise):
            return
        self._part(step)
        lanes, top = step.lanes, self._launch.level_of(role.scope)
        writers = lanes if role.writes else lanes[:0]
        if wrote is not None:
            wrote = step.spread(wrote)
            writers = lanes[wrote]
        if role.releases and len(writers):
            self._begin_epoch(writers, top, acquires=False)
        if not self._may_synchronise and not self._any_fenced(writers, top):
            return
        units = step.places
        if isinstance(units, np.ndarray):
            units = units.astype(self._unit_type)
        epochs: Small | None = None
        if len(writers):
            epochs = epochs_of(self.clocks.now[lanes]).astype(np.int32)
            if wrote is not None:
                epochs[~wrote] = -1
        work = partial(self._synchronise, space, self._small(lanes), units, epochs, step.site)
        self._has_released[writers] = True
        retained = isinstance(units, np.ndarray) + (epochs is not None)
        self._deferred.add(work, len(lanes) * retained + self._new_numbers())

    def _part(self, step: AccessStep) -> None:
        """Begin an epoch for a strong access after a thread released its others so far."""
        released = step.threads[self._has_released[step.threads]]
        if len(released):
            self.clocks.advance(released)
            self._has_released[released] = False
            step.moment = self.clocks.moment

    def _begin_epoch(self, lanes: Index, level: int, *, acquires: bool) -> None:
        """Have later writes of these threads release their work so far."""
        self._has_fences = True
        block, warp = self.clocks.block_known, self.clocks.warp_known
        ended = self.clocks.advance(lanes).astype(np.int32)
        self._has_released[lanes] = False
        work = partial(self._fence, self._small(lanes), ended, block, warp, level, acquires)
        self._do(work, len(lanes) + self._new_numbers())

    def _any_fenced(self, lanes: Index, top: int) -> bool:
        return any((fence.ended[lanes] >= 0).any() for fence in self.fences[: top + 1])

    def _proxy_fences_of(self, kind: str) -> ProxyFences:
        fences = self._proxy_fences.get(kind)
        if fences is None:
            # Shared memory is that of this chunk alone.
            name = f"{kind} {self._first}" if kind == "shared" else kind
            log = self._launch.proxy_fences.setdefault(name, ProxyFenceLog())
            fences = ProxyFences(self._known, self._deferred, self.clocks, log, self._threads)
            self._proxy_fences[kind] = fences
        return fences

    # Deferred work.

    @property
    def _may_synchronise(self) -> bool:
        """True if there was a release, or may have been one."""
        return bool(self._deferred) or self._known.has_releases

    def _do(self, work: Callable[[], None], numbers: int) -> None:
        """Do this before the next query; at once where there is no release before it."""
        if self._may_synchronise:
            self._deferred.add(work, numbers)
        else:
            work()

    def _small(self, lanes: Index) -> Small:
        """Return the lanes as retained numbers: one array for a fence and the access after it."""
        last = self._last_lanes
        if last is None or not _same(last[0], lanes):
            last = self._last_lanes = lanes, lanes.astype(np.int32)
            self._uncounted += len(lanes)
        return last[1]

    def _new_numbers(self) -> int:
        """Return how much more memory the next work retains than the last one."""
        barrier_epochs, count = (self.clocks.block_known, self.clocks.warp_known), self._uncounted
        last, self._last_known, self._uncounted = self._last_known, barrier_epochs, 0
        changes = zip(barrier_epochs, last, strict=True)
        return count + sum(2 * len(new) for new, old in changes if new is not old)

    def _fence(
        self, lanes: Small, ended: Small, block: Stamps, warp: Stamps, level: int, acquires: bool
    ) -> None:
        for fences in self.fences[: level + 1]:
            self.clocks.end(fences, lanes, ended, block, warp)
        if acquires and self._known.has_releases:
            self._known.fence_all(self.clocks.threads[lanes].tolist(), level)

    def _fence_blocks(self, lanes: Small) -> None:
        """Note up to where all threads that meet at a barrier had a fence before it."""
        slots = self.clocks.slots(lanes)
        least = np.full(self._blocks, np.iinfo(np.int64).max)
        np.minimum.at(least, slots, self.fences[-1].ended[lanes])
        slots_here = np.unique(slots)
        self._fenced[slots_here] = least[slots_here] + 1

    def _meet_blocks(self, slots: list[int]) -> None:
        for slot in slots:
            self._known.meet_block(self._first + slot)

    def _meet(self, keys: Stamps | None, threads: Stamps) -> None:
        """Synchronise threads that have the same key; without keys those of each warp."""
        if self._known.has_releases:
            keys = threads >> WARP_SHIFT if keys is None else keys
            for key in np.unique(keys).tolist():
                self._known.meet_threads(threads[keys == key].tolist())

    def _synchronise(
        self, space: str, lanes: Small, units: Units | int, epochs: Small | None, site: int
    ) -> None:
        """Carry out `synchronise`; `epochs`: those of threads that write."""
        role = self._launch.role(site)
        threads = self.clocks.threads[lanes].tolist()
        for level in range(self._launch.level_of(role.scope), self._launch.lowest_level - 1, -1):
            if epochs is None:
                every = _NOTHING * len(threads)
            else:
                every = self._released(self.fences[level], lanes, threads, epochs)
            if not any(every):
                if role.reads and self._known.has_releases:
                    self._read(space, lanes, units, site, level)
                continue
            for thread, unit, published in zip(threads, _numbers(units, lanes), every, strict=True):
                location = self._location(space, unit, thread, level)
                if role.reads:
                    self._known.read(location, thread, level, at_once=role.acquires)
                if published:
                    self._known.release(location, thread, published, level, at_once=role.releases)

    def _read(
        self, space: str, lanes: Small, units_read: Units | int, site: int, level: int
    ) -> None:
        """Record that these threads read locations where they release nothing."""
        threads, at_once = self.clocks.threads[lanes], self._launch.role(site).acquires
        if level == self._launch.levels - 1 and isinstance(units_read, int):
            location = self._location(space, units_read, 0, level)
            self._known.read_together(location, threads.tolist(), level, at_once=at_once)
            return
        units = np.asarray(_numbers(units_read, lanes))
        if not at_once or not self._launch.accelerations.skips_spins:
            self._read_each(space, threads, units, level, at_once=at_once)
            return
        spins = self._spins.get((site, level))
        if spins is None:
            spins = self._spins[site, level] = SpinReads(self._threads)
        new = spins.new(lanes, units, self._known.lengths)
        numbers = self._read_each(space, threads[new], units[new], level, at_once=True)
        spins.add(lanes[new], units[new], numbers, self._known.lengths)

    def _read_each(
        self, space: str, threads: Stamps, units: Index, level: int, *, at_once: bool
    ) -> list[int]:
        """Let each thread read its unit; return the numbers of the release sequences."""
        return [
            self._known.read(
                self._location(space, unit, thread, level), thread, level, at_once=at_once
            )
            for thread, unit in zip(threads.tolist(), units.tolist(), strict=True)
        ]

    def _released(
        self, fences: FenceClocks, lanes: Small, threads: list[int], epochs: Small
    ) -> list[_Own]:
        """Return the clocks that a write in these epochs publishes for each thread that had a
        fence.

        Epoch -1 is of a thread that does not write.
        """
        shift, ended = self.clocks.shift, fences.ended[lanes]
        if not (ended >= 0).any():
            return _NOTHING * len(threads)
        columns = (
            ended,
            fences.warp[lanes],
            fences.block[lanes],
            epochs,
            self._fenced[self.clocks.slots(lanes)],
        )
        return [
            (
                (key_of_thread(thread), epoch + 1),
                (key_of_warp(thread), warp),
                (key_of_block(thread, shift), block),
                # A thread that sees its last strong write sees the earlier ones.
                (key_of_strong(thread), strong + 1),
                (key_of_fenced(thread, shift), fenced),
            )
            if epoch >= 0 and strong >= 0
            else ()
            for thread, epoch, warp, block, strong, fenced in zip(
                threads, *(column.tolist() for column in columns), strict=True
            )
        ]

    def _published(self, fences: FenceClocks, lane: int) -> _Own:
        """Return the epochs that a thread publishes for itself, its warp and its block."""
        thread = int(self.clocks.threads[lane])
        return (
            (key_of_thread(thread), int(fences.ended[lane]) + 1),
            (key_of_warp(thread), int(fences.warp[lane])),
            (key_of_block(thread, self.clocks.shift), int(fences.block[lane])),
        )

    def _location(self, space: str, unit: int, thread: int, level: int) -> Location:
        """The location at one level of scopes; each block, or cluster, has its own."""
        name = space if space == "global" else f"shared {self._first}"
        if level == self._launch.levels - 1:
            return name, unit
        block = thread >> self.clocks.shift
        if level:
            return f"{name} in cluster {block // self._launch.cluster_blocks}", unit
        return f"{name} in {block}", unit


def _numbers(units: Units | int, lanes: Small) -> Sequence[int]:
    if isinstance(units, int):
        return [units] * len(lanes)
    return range(units.start, units.stop) if isinstance(units, slice) else units.tolist()


def _same(first: Index, second: Index) -> bool:
    return first is second or (len(first) == len(second) and bool((first == second).all()))
