"""What the threads of a chunk know of each other: through barriers, fences and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ptx.emulate.check.access_role import AccessRole
from ptx.emulate.check.chunk_handovers import ChunkHandovers
from ptx.emulate.check.clocks import Clocks, Fences, Words
from ptx.emulate.check.handover import Order, Place
from ptx.emulate.check.keys import key_of_block
from ptx.emulate.check.proxy_fence_log import ProxyFenceLog
from ptx.emulate.check.proxy_fences import ProxyFences
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
    threads_of,
)
from ptx.emulate.check.step import Step
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Geometry, Value

if TYPE_CHECKING:
    from ptx.emulate.check.races import RaceCheck

_SLOT_BITS: Final = 18  # more than the blocks of a chunk


class ChunkOrder:
    """The order of what happens in the blocks from number `first` on, which are one chunk.

    Attributes:
        clocks: what barriers alone tell.
    """

    def __init__(self, launch: RaceCheck, geometry: Geometry, first: int) -> None:
        self.clocks: Clocks = Clocks(geometry, first)
        self._launch = launch
        self._known = launch.handovers
        self._first = first
        self._threads = geometry.threads
        self._handovers = ChunkHandovers(launch, geometry, first, self.clocks)
        self._meeting = Fences(geometry.threads)
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
        self._launch.handover_log.settle()
        return early & (not self._known.anything)

    def of(self, old: int, new: int) -> Order:
        """The order that memory gives two accesses, by their stamps."""
        launch = self._launch
        launch.handover_log.settle()
        if not self._known.anything:
            return Order.NONE
        one, other = (old >> THREAD_SHIFT) - 1, (new >> THREAD_SHIFT) - 1
        epoch = old >> EPOCH_SHIFT & MOST_EPOCHS
        if self._known.knows_thread(other, one, epoch):
            return Order.KNOWN
        strong, as_strong = (launch.role(each & MOST_SITES - 1).strong for each in (old, new))
        return self._known.order(one, epoch, other, strong=strong, as_strong=as_strong)

    def over_for_blocks(self, old: Stamps, lanes: Index) -> Bools:
        """Whether all of a lane's block knows that all of an old access's block has got so far."""
        self._launch.handover_log.settle()
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
        self._launch.handover_log.settle()
        return self._proxy_fences_of(kind).unseen(old, lanes)

    def _proxy_fences_of(self, kind: str) -> ProxyFences:
        found = self._proxy_fences.get(kind)
        if found is None:
            # Shared memory is that of this chunk alone.
            name = f"{kind} {self._first}" if kind == "shared" else kind
            log = self._launch.proxy_fences.setdefault(name, ProxyFenceLog())
            found = ProxyFences(self._launch, self.clocks, log, self._threads)
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
        self._launch.handover_log.settle()
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

    def _object(self, what: str, number: int, scope: str, block: int) -> Place:
        """The place of what is handed over at an object; within a block each has one of its own."""
        if scope and not self._launch.level_of(scope) and self._launch.cluster_blocks > 1:
            return f"{what} {self._first} in {block}", number
        return f"{what} {self._first}", number

    def complete(self, what: str, numbers: Index) -> None:
        """A phase of these objects is complete: who waits for it knows what came before."""
        self._launch.handover_log.settle()
        for number in numbers.tolist():
            place = f"{what} {self._first}", number
            self._launch.counted.complete(place, self._known)
            self._known.complete(place)

    def take(self, lanes: Index, what: str, numbers: Index, *, acquires: bool = True) -> None:
        """These threads have waited for all who arrived there."""
        self._launch.handover_log.settle()
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

    def pass_on(self, space: str, step: Step, role: AccessRole, wrote: Value | None = None) -> None:
        """What these threads take over at a place and hand over there, one after the other."""
        self._handovers.pass_on(space, step, role, wrote)
