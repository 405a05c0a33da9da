"""What the threads of a chunk know of each other: through barriers, fences and memory."""

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

_Known = tuple[tuple[int, int], ...]
_NOTHING_TOLD: Final[list[_Known]] = [()]


class ChunkHandovers:
    """What the threads of the blocks from number `first` on hand over to each other.

    The epochs of the threads go on at once; all else is put off until somebody asks.

    Attributes:
        fences: of each level, what threads hand over since their last one; once all is settled.
        has_fences: whether there was any.
    """

    def __init__(
        self, launch: RaceCheck, geometry: Geometry, first: int, clocks: BarrierClocks
    ) -> None:
        self.fences: list[FenceClocks] = [
            FenceClocks(geometry.threads) for _ in range(launch.levels)
        ]
        self.has_fences: bool = False
        self._clocks = clocks
        self._launch = launch
        self._known = launch.handovers
        self._first = first
        # The epoch below which all of a block had been before a fence of each, at its last barrier.
        self._fenced = np.zeros(geometry.blocks, dtype=np.int64)
        self._unit_type = np.int32 if launch.memory.nbytes < 1 << 31 else np.int64
        # Those who may have told, since their epoch began, of their strong accesses in it.
        self._has_told = np.zeros(geometry.threads, dtype=np.bool_)
        self._last_known = clocks.block_known, clocks.warp_known
        self._last_lanes: tuple[Index, Small] | None = None
        self._polls: dict[tuple[int, int], SpinReads] = {}  # by sites and levels
        # Numbers of four bytes that are not counted yet, at first the chunk's fences and stamps.
        self._uncounted = geometry.threads * (6 * launch.levels + 2)

    # What is noted.

    @property
    def hands_over(self) -> bool:
        """Whether anything was handed over, or may have been."""
        return bool(self._launch.deferred) or self._known.anything

    def _soon(self, work: Callable[[], None], numbers: int) -> None:
        """Do this before anything is asked; at once where nothing was handed over so far."""
        if self.hands_over:
            self._launch.deferred.put_off(work, numbers)
        else:
            work()

    def _small(self, lanes: Index) -> Small:
        """The same numbers to be kept: an array for a fence and the access behind it."""
        last = self._last_lanes
        if last is None or not _same(last[0], lanes):
            last = self._last_lanes = lanes, lanes.astype(np.int32)
            self._uncounted += len(lanes)
        return last[1]

    def _new_numbers(self) -> int:
        """How much memory is kept that what was put off last did not, beside its own numbers."""
        known, count = (self._clocks.block_known, self._clocks.warp_known), self._uncounted
        last, self._last_known, self._uncounted = self._last_known, known, 0
        each = zip(known, last, strict=True)
        return count + sum(2 * len(new) for new, old in each if new is not old)

    def fence(self, lanes: Index, scope: str) -> None:
        """These threads execute a fence."""
        self._begin_epoch(lanes, self._launch.level_of(scope), takes=True)

    def _begin_epoch(self, lanes: Index, level: int, *, takes: bool) -> None:
        """What these threads did so far is handed over by what they write from now on."""
        self.has_fences = True
        block, warp = self._clocks.block_known, self._clocks.warp_known
        ended = self._clocks.advance(lanes).astype(np.int32)
        self._has_told[lanes] = False
        work = partial(self._fence_now, self._small(lanes), ended, block, warp, level, takes)
        self._soon(work, len(lanes) + self._new_numbers())

    def pass_on(self, space: str, step: AccessStep, role: AccessRole, wrote: Value | None) -> None:
        """What these threads take over at a place and hand over there, one after the other.

        `wrote`: which of them did so; None for all, if it is a write.
        """
        if not (self.has_fences or role.releases or self.hands_over):
            return
        self._part(step)
        lanes, top = step.lanes, self._launch.level_of(role.scope)
        writers = lanes if role.writes else lanes[:0]
        if wrote is not None:
            wrote = step.spread(wrote)
            writers = lanes[wrote]
        if role.releases and len(writers):
            self._begin_epoch(writers, top, takes=False)
        if not self.hands_over and not self._any_fenced(writers, top):
            return
        places = step.places
        if isinstance(places, np.ndarray):
            places = places.astype(self._unit_type)
        epochs: Small | None = None
        if len(writers):
            epochs = epochs_of(self._clocks.now[lanes]).astype(np.int32)
            if wrote is not None:
                epochs[~wrote] = -1
        work = partial(self._pass_on_now, space, self._small(lanes), places, epochs, step.site)
        self._has_told[writers] = True
        kept = isinstance(places, np.ndarray) + (epochs is not None)
        self._launch.deferred.put_off(work, len(lanes) * kept + self._new_numbers())

    def _part(self, step: AccessStep) -> None:
        """Begin an epoch for a strong access behind what a thread told of its others so far."""
        told = step.threads[self._has_told[step.threads]]
        if len(told):
            self._clocks.advance(told)
            self._has_told[told] = False
            step.moment = self._clocks.moment

    def meet_before_barrier(self, lanes: Index) -> None:
        """These threads, all that their blocks have, come to a barrier."""
        if self.has_fences:
            self._soon(partial(self._note_fenced, self._small(lanes)), self._new_numbers())

    def meet_blocks(self, slots: Index) -> None:
        """All threads of these blocks have passed a barrier."""
        if self.hands_over:
            self._soon(partial(self._meet_blocks_now, slots.tolist()), 2 * len(slots))

    def meet_all_warps(self) -> None:
        """All threads of the chunk meet those of their warps."""
        if self.hands_over:
            self._soon(self._meet_all_warps_now, 1)

    def meet(self, keys: Stamps, lanes: Index) -> None:
        """Those of these threads meet that have the same key."""
        if self.hands_over:
            threads = self._clocks.threads[lanes]
            self._soon(partial(self._meet_now, keys, threads), 4 * len(lanes))

    def _any_fenced(self, lanes: Index, top: int) -> bool:
        return any((each.ended[lanes] >= 0).any() for each in self.fences[: top + 1])

    # What is done late.

    def _fence_now(
        self, lanes: Small, ended: Small, block: Stamps, warp: Stamps, level: int, takes: bool
    ) -> None:
        for fences in self.fences[: level + 1]:
            self._clocks.end(fences, lanes, ended, block, warp)
        if takes and self._known.anything:
            self._known.fence_all(self._clocks.threads[lanes].tolist(), level)

    def _pass_on_now(
        self, space: str, lanes: Small, places: Units | int, epochs: Small | None, site: int
    ) -> None:
        """What `pass_on` says; `epochs`: those of threads that write."""
        role = self._launch.role(site)
        threads = self._clocks.threads[lanes].tolist()
        for level in range(self._launch.level_of(role.scope), self._launch.lowest_level - 1, -1):
            if epochs is None:
                told = _NOTHING_TOLD * len(threads)
            else:
                told = self._told(self.fences[level], lanes, threads, epochs)
            if not any(told):
                if role.reads and self._known.anything:
                    self._read_now(space, lanes, places, site, level)
                continue
            for thread, unit, known in zip(threads, _numbers(places, lanes), told, strict=True):
                place = self._place(space, unit, thread, level)
                if role.reads:
                    self._known.read(place, thread, level, at_once=role.acquires)
                if known:
                    self._known.write(place, thread, known, level, at_once=role.releases)

    def _read_now(
        self, space: str, lanes: Small, places: Units | int, site: int, level: int
    ) -> None:
        """These threads read and hand over nothing; those that poll one place do so together."""
        threads, at_once = self._clocks.threads[lanes], self._launch.role(site).acquires
        if level == self._launch.levels - 1 and isinstance(places, int):
            place = self._place(space, places, 0, level)
            self._known.read_together(place, threads.tolist(), level, at_once=at_once)
            return
        units = np.asarray(_numbers(places, lanes))
        if not at_once:
            self._read_each(space, threads, units, level, at_once=False)
            return
        polls = self._polls.get((site, level))
        if polls is None:
            polls = self._polls[site, level] = SpinReads(len(self._clocks.threads))
        new = polls.new(lanes, units, self._known.lengths.every)
        numbers = self._read_each(space, threads[new], units[new], level, at_once=True)
        polls.note(lanes[new], units[new], numbers, self._known.lengths.every)

    def _read_each(
        self, space: str, threads: Stamps, units: Index, level: int, *, at_once: bool
    ) -> list[int]:
        """The numbers of the chains that these threads read."""
        return [
            self._known.read(self._place(space, unit, thread, level), thread, level,
                             at_once=at_once)
            for thread, unit in zip(threads.tolist(), units.tolist(), strict=True)
        ]  # fmt: skip

    def _told(
        self, fences: FenceClocks, lanes: Small, threads: list[int], epochs: Small
    ) -> list[_Known]:
        """What each of these threads hands over by a write in these epochs, if it had a fence.

        Epoch -1 is of one that does not write.
        """
        shift, ended = self._clocks.shift, fences.ended[lanes]
        if not (ended >= 0).any():
            return _NOTHING_TOLD * len(threads)
        columns = (ended, fences.warp[lanes], fences.block[lanes], epochs,
                   self._fenced[self._clocks.slots(lanes)])  # fmt: skip
        return [
            (
                (key_of_thread(thread), epoch + 1),
                (key_of_warp(thread), warp),
                (key_of_block(thread, shift), block),
                # Its atomic and volatile writes are seen by who sees its last one.
                (key_of_strong(thread), strong + 1),
                (key_of_fenced(thread, shift), fenced),
            )
            if epoch >= 0 and strong >= 0
            else ()
            for thread, epoch, warp, block, strong, fenced in zip(
                threads, *(each.tolist() for each in columns), strict=True
            )
        ]

    def _meet_blocks_now(self, slots: list[int]) -> None:
        for slot in slots:
            self._known.meet_block(self._first + slot)

    def _note_fenced(self, lanes: Small) -> None:
        """Threads that meet at a barrier of their blocks may all have had a fence before it."""
        slots = self._clocks.slots(lanes)
        least = np.full(len(self._fenced), np.iinfo(np.int64).max)
        np.minimum.at(least, slots, self.fences[-1].ended[lanes])
        here = np.unique(slots)
        self._fenced[here] = least[here] + 1

    def _meet_all_warps_now(self) -> None:
        threads = self._clocks.threads
        self._meet_now(threads >> WARP_SHIFT, threads)

    def _meet_now(self, keys: Stamps, threads: Stamps) -> None:
        if self._known.anything:
            for key in np.unique(keys).tolist():
                self._known.meet_threads(threads[keys == key].tolist())

    def ended(self, fences: FenceClocks, lane: int) -> tuple[tuple[int, int], ...]:
        """What a thread hands over: up to where it, its warp and its block are over for it."""
        thread = int(self._clocks.threads[lane])
        return (
            (key_of_thread(thread), int(fences.ended[lane]) + 1),
            (key_of_warp(thread), int(fences.warp[lane])),
            (key_of_block(thread, self._clocks.shift), int(fences.block[lane])),
        )

    def _place(self, space: str, unit: int, thread: int, level: int) -> Location:
        # What is handed over within blocks has a place of its own in each, and so in clusters.
        name = space if space == "global" else f"shared {self._first}"
        if level == self._launch.levels - 1:
            return name, unit
        block = thread >> self._clocks.shift
        if level:
            return f"{name} in cluster {block // self._launch.cluster_blocks}", unit
        return f"{name} in {block}", unit


def _numbers(places: Units | int, lanes: Small) -> Sequence[int]:
    if isinstance(places, int):
        return [places] * len(lanes)
    return range(places.start, places.stop) if isinstance(places, slice) else places.tolist()


def _same(one: Index, other: Index) -> bool:
    return one is other or (len(one) == len(other) and bool((one == other).all()))


_SLOT_BITS: Final = 18  # more than the blocks of a chunk


class HappensBefore:
    """The order of what happens in the blocks from number `first` on, which are one chunk.

    Attributes:
        clocks: what barriers alone tell.
    """

    def __init__(self, launch: RaceCheck, geometry: Geometry, first: int) -> None:
        self.clocks: BarrierClocks = BarrierClocks(geometry, first)
        self._launch = launch
        self._known = launch.handovers
        self._first = first
        self._threads = geometry.threads
        self._handovers = ChunkHandovers(launch, geometry, first, self.clocks)
        self._meeting = FenceClocks(geometry.threads)
        self._begun = np.zeros(geometry.blocks, dtype=np.bool_)
        self._proxy_fences: dict[str, ProxyFences] = {}

    # What is asked.

    @property
    def is_uneven(self) -> bool:
        """Whether some threads may know less than the first and the last of them.

        Not where barriers of whole blocks and warps alone tell them of each other.
        """
        return self._handovers.hands_over or self.clocks.tells_lanes

    def may_not_have_begun(self, lanes: Index, slots: Index) -> Bools:
        """Which of these threads access another block of their cluster that may not have begun.

        It has behind any barrier of the cluster. What else may tell them is not looked at where
        anything is handed over by memory.
        """
        own = self.clocks.slots(lanes)
        early: Bools = (own != slots) & ~self._begun[own]
        self._launch.deferred.settle()
        return early & (not self._known.anything)

    def of(self, old: int, new: int) -> MemoryOrder:
        """The order that memory gives two accesses, by their stamps."""
        launch = self._launch
        launch.deferred.settle()
        if not self._known.anything:
            return MemoryOrder.NONE
        one, other = (old >> THREAD_SHIFT) - 1, (new >> THREAD_SHIFT) - 1
        epoch = old >> EPOCH_SHIFT & MOST_EPOCHS
        if self._known.knows_thread(other, one, epoch):
            return MemoryOrder.KNOWN
        strong, as_strong = (launch.role(each & MOST_SITES - 1).strong for each in (old, new))
        return self._known.order(one, epoch, other, strong=strong, as_strong=as_strong)

    def over_for_blocks(self, old: Stamps, lanes: Index) -> Bools:
        """Whether all of a lane's block knows that all of an old access's block has got so far."""
        self._launch.deferred.settle()
        if not self._known.anything:
            return np.zeros(len(old), dtype=np.bool_)
        slots = self.clocks.slots(lanes)
        keys = threads_of(old) >> self.clocks.shift << EPOCH_BITS | epochs_of(old)
        keys = keys << _SLOT_BITS | slots
        found, of = np.unique(keys, return_inverse=True)
        over = [
            self._known.is_over_for_block(
                key >> _SLOT_BITS + EPOCH_BITS,
                key >> _SLOT_BITS & (1 << EPOCH_BITS) - 1,
                self._first + (key & (1 << _SLOT_BITS) - 1),
            )
            for key in found.tolist()
        ]
        return np.array(over, dtype=np.bool_)[of]

    def reaches(self, old: Stamps, new: Stamps, level: int) -> Bools:
        """Whether a scope of this level that one of the threads names has the other one in it."""
        launch, shift = self._launch, self.clocks.shift
        if level == launch.levels - 1:
            return np.ones(len(old), dtype=np.bool_)
        one, two = (launch.counted.blocks(threads_of(each), shift) for each in (old, new))
        if level:
            one, two = one // launch.cluster_blocks, two // launch.cluster_blocks
        same: Bools = one == two
        return same

    def unseen(self, kind: str, old: Stamps, lanes: Index) -> Bools:
        """Which writes no proxy fence of a kind makes visible to the reader beside each."""
        self._launch.deferred.settle()
        return self._proxy_fences_of(kind).unseen(old, lanes)

    def _proxy_fences_of(self, kind: str) -> ProxyFences:
        found = self._proxy_fences.get(kind)
        if found is None:
            # Shared memory is that of this chunk alone.
            name = f"{kind} {self._first}" if kind == "shared" else kind
            log = self._launch.proxy_fences.setdefault(name, ProxyFenceLog())
            found = ProxyFences(self._known, self._launch.deferred, self.clocks, log, self._threads)
            self._proxy_fences[kind] = found
        return found

    # What barriers, fences and accesses tell.

    def pass_block(self, lanes: Index) -> bool:
        """These threads, all that their blocks have, pass a barrier; whether all threads do."""
        every = len(lanes) == self._threads
        self._handovers.meet_before_barrier(lanes)
        if every:
            self.clocks.pass_blocks()
            slots = np.arange(len(self.clocks.block_known))
        else:
            slots = self.clocks.pass_block(lanes)
        self._handovers.meet_blocks(slots)
        return every

    def pass_warps(self) -> None:
        """All threads of the chunk meet those of their warps."""
        self.clocks.pass_warps()
        self._handovers.meet_all_warps()

    def pass_warp(self, lanes: Index, masks: Words, whole: Bools) -> None:
        """These threads meet those of their warps that their masks name; `whole`: all of them."""
        self.clocks.pass_warp(lanes, masks, whole)
        warps = self.clocks.threads[lanes] >> WARP_SHIFT
        self._handovers.meet(warps << 32 | masks, lanes)

    def arrive(
        self, lanes: Index, what: str, numbers: Index, scope: str = "", *, releases: bool = True
    ) -> None:
        """These threads arrive where others wait: at the objects of these numbers of a kind.

        Without a scope all who wait are in it.
        """
        self._launch.deferred.settle()
        if not releases:
            self._arrive_relaxed(lanes, what, numbers, self._launch.level_of(scope))
            return
        whole = self.clocks.whole_blocks(lanes, numbers)
        if whole.any():
            objects = dict(zip(self.clocks.slots(lanes).tolist(), numbers.tolist(), strict=True))
            for slot, epoch in self.clocks.advance_blocks(lanes[whole]):
                block = self._first + slot
                key = key_of_block(block << self.clocks.shift, self.clocks.shift)
                place = self._object(what, objects[slot], scope, block)
                self._known.write_of_block(place, block, (key, epoch + 1))
            lanes, numbers = lanes[~whole], numbers[~whole]
        if not len(lanes):
            return
        before = self.clocks.block_known, self.clocks.warp_known
        self.clocks.end(self._meeting, lanes, self.clocks.advance(lanes), *before)
        threads = self.clocks.threads[lanes].tolist()
        for lane, thread, number in zip(lanes.tolist(), threads, numbers.tolist(), strict=True):
            known = self._handovers.ended(self._meeting, lane)
            place = self._object(what, number, scope, thread >> self.clocks.shift)
            self._known.write(place, thread, known, 0, at_once=True)

    def _arrive_relaxed(self, lanes: Index, what: str, numbers: Index, level: int) -> None:
        """Only what was before a fence of each thread is handed over."""
        fences = self._handovers.fences[level]
        threads = self.clocks.threads[lanes].tolist()
        fenced = fences.ended[lanes] >= 0
        for at in np.flatnonzero(fenced).tolist():
            known = self._handovers.ended(fences, int(lanes[at]))
            place = f"{what} {self._first}", int(numbers[at])
            self._known.write(place, threads[at], known, level, at_once=False)

    def _object(self, what: str, number: int, scope: str, block: int) -> Location:
        """The place of what is handed over at an object; within a block each has one of its own."""
        if scope and not self._launch.level_of(scope) and self._launch.cluster_blocks > 1:
            return f"{what} {self._first} in {block}", number
        return f"{what} {self._first}", number

    def complete(self, what: str, numbers: Index) -> None:
        """A phase of these objects is complete: who waits for it knows what came before."""
        self._launch.deferred.settle()
        for number in numbers.tolist():
            place = f"{what} {self._first}", number
            self._launch.counted.complete(place, self._known)
            self._known.complete(place)

    def take(self, lanes: Index, what: str, numbers: Index, *, acquires: bool = True) -> None:
        """These threads have waited for all who arrived there."""
        self._launch.deferred.settle()
        if what == "cluster":
            self._begun[self.clocks.slots(lanes)] = True
        shift, level = self.clocks.shift, self._launch.level_of("cluster")
        if acquires:
            whole = self.clocks.whole_blocks(lanes, numbers)
            slots = self.clocks.slots(lanes[whole]).tolist()
            for slot, number in set(zip(slots, numbers[whole].tolist(), strict=True)):
                block = self._first + slot
                for scope in ("", "cta"):
                    self._known.read_by_block(self._object(what, number, scope, block), block)
            lanes, numbers = lanes[~whole], numbers[~whole]
        threads = self.clocks.threads[lanes].tolist()
        for thread, number in zip(threads, numbers.tolist(), strict=True):
            for scope in ("", "cta"):
                place = self._object(what, number, scope, thread >> shift)
                self._known.read(place, thread, level, at_once=acquires)

    def fence(self, lanes: Index, scope: str) -> None:
        """These threads execute a fence."""
        self._handovers.fence(lanes, scope)

    def fence_proxy(self, lanes: Index, kind: str) -> None:
        """These threads execute a proxy fence."""
        self._proxy_fences_of(kind).add(lanes)

    def pass_on(
        self, space: str, step: AccessStep, role: AccessRole, wrote: Value | None = None
    ) -> None:
        """What these threads take over at a place and hand over there, one after the other."""
        self._handovers.pass_on(space, step, role, wrote)
