"""Barrier clocks: the knowledge that threads of a chunk have of each other through barriers.

PTX ISA, "Memory Synchronization": a barrier synchronizes with all threads that take part in it.

Each thread has an epoch. At a barrier all threads of it advance to the same later epoch. One number
for each block and each warp is therefore enough. Accesses of an epoch below that number are
complete for all of its threads. Parts of warps that meet have one number for each lane.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.access_step import Moment
from ptx.emulate.check.stamps import (
    EPOCH_SHIFT,
    MOST_EPOCHS,
    THREAD_SHIFT,
    WARP_SHIFT,
    Bools,
    EpochsExhausted,
    Stamps,
    block_shift,
    epochs_of,
    threads_of,
)
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import WARP, Geometry

Words = NDArray[np.uint32]
Small = NDArray[np.int32]
"""Epochs or numbers of a chunk's threads, in half the memory."""

_FULL = np.uint32(0xFFFFFFFF)


class FenceClocks:
    """The epochs that each thread of a chunk may release since its last fence.

    Attributes:
        ended: (threads,) the epoch that the fence ended, -1 without one.
        block, warp: the epoch below which its block and its warp were over for it then.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads

    def end(self, lanes: Index | Small, ended: Stamps | Small, block: Stamps, warp: Stamps) -> None:
        """Set the epochs that some threads release from now on."""
        self.ended[lanes] = ended
        self.block[lanes] = block
        self.warp[lanes] = warp

    @cached_property
    def ended(self) -> Stamps:
        """Made when first needed, because most kernels have no fences."""
        return np.full(self._threads, -1, dtype=np.int64)

    @cached_property
    def block(self) -> Stamps:
        """Likewise."""
        return np.zeros(self._threads, dtype=np.int64)

    @cached_property
    def warp(self) -> Stamps:
        """Likewise."""
        return np.zeros(self._threads, dtype=np.int64)


class BarrierClocks:
    """The epochs of the threads of a chunk whose first block has the number `first` in the grid.

    Attributes:
        shift: turns the number of a thread into that of its block.
        moment: the epochs of all threads; another object after each change.
        block_known, warp_known: the epoch below which everything is complete for all of a block, or
            of a warp; other arrays after each change.
    """

    def __init__(self, geometry: Geometry, first: int) -> None:
        self._geometry = geometry
        self._first = first
        self.shift: int = block_shift(geometry.threads_per_block)
        self._slot = geometry.index("slot")
        self._first_chunk: Stamps = geometry.remembered("stamps", self._numbers)
        self._start = first << self.shift + THREAD_SHIFT
        self.moment: Moment = Moment(self._first_chunk, self._start, first)
        self._common: int | None = 0  # the epoch, where all threads are in the same one
        self.block_known: Stamps = np.zeros(geometry.blocks, dtype=np.int64)
        self.warp_known: Stamps = np.zeros(
            geometry.blocks * geometry.warps_per_block, dtype=np.int64
        )
        # (threads, 32): the epoch of each lane known to each thread, once parts of warps have met.
        self._lane_known: NDArray[np.int32] | None = None

    def _numbers(self) -> Stamps:
        """Return the threads' stamps in epoch 0, as if the chunk were the first one."""
        numbers = (self._slot.astype(np.int64) << self.shift) + self._geometry.index("thread")
        return (numbers + 1) << THREAD_SHIFT

    @cached_property
    def threads(self) -> Stamps:
        """(threads,) their numbers in the launch."""
        return threads_of(self._threads)

    @cached_property
    def _threads(self) -> Stamps:
        """The stamps of the chunk's threads in epoch 0."""
        return self._first_chunk + self._start

    @cached_property
    def _warp(self) -> Index:
        return self._geometry.index("warp_slot") // WARP

    @cached_property
    def _lane(self) -> Index:
        return self._geometry.index("thread") % WARP

    @property
    def tells_lanes(self) -> bool:
        """True if parts of warps have met."""
        return self._lane_known is not None

    @property
    def now(self) -> Stamps:
        """(threads,) each thread's stamp, without a site; another array after each change."""
        return self.moment.stamps

    def over(self, old: Stamps, lanes: Index) -> Bools:
        """Return whether each access is complete for the lane beside it, by barriers alone."""
        thread, epoch = threads_of(old), epochs_of(old)
        own_threads = threads_of(self.now[lanes])
        same_block = thread >> self.shift == own_threads >> self.shift
        is_complete: Bools = (thread == own_threads) | (
            same_block & (epoch < self.block_known[self._slot[lanes]])
        )
        same_warp = thread >> WARP_SHIFT == own_threads >> WARP_SHIFT
        is_complete |= same_warp & (epoch < self.warp_known[self._warp[lanes]])
        if self._lane_known is not None:
            is_complete |= same_warp & (epoch < self._lane_known[lanes, thread & (WARP - 1)])
        return is_complete

    def known(self, lanes: Index) -> tuple[Stamps, Stamps, Small | None]:
        """Return the epochs below which block, warp, and each lane are complete for each thread."""
        by_lane = None if self._lane_known is None else self._lane_known[lanes]
        return self.block_known[self._slot[lanes]], self.warp_known[self._warp[lanes]], by_lane

    def slots(self, lanes: Index | Small) -> Index:
        """Return the blocks of these threads, by their places in the chunk."""
        return self._slot[lanes]

    def whole_blocks(self, lanes: Index, numbers: Index) -> Bools:
        """Return which of these threads stand for their whole block, all with one number."""
        slots = self._slot[lanes]
        blocks, most = self._geometry.blocks, self._geometry.threads_per_block
        if len(lanes) < most:
            return np.zeros(len(lanes), dtype=np.bool_)
        number = np.zeros(blocks, dtype=np.int64)
        number[slots] = numbers
        count = np.bincount(slots[number[slots] == numbers], minlength=blocks)
        are_whole: Bools = count[slots] == most
        return are_whole

    def advance_blocks(self, lanes: Index) -> list[tuple[int, int]]:
        """End an epoch of all threads of these blocks; return each block's place and that epoch."""
        slots = self._slot[lanes]
        latest = np.zeros(self._geometry.blocks, dtype=np.int64)
        np.maximum.at(latest, slots, epochs_of(self.now[lanes]))
        self._set(lanes, latest[slots] + 1)
        blocks_here = np.unique(slots)
        return list(zip(blocks_here.tolist(), latest[blocks_here].tolist(), strict=True))

    def pass_block(self, lanes: Index) -> Index:
        """Synchronise these threads, all live ones of their blocks; return the blocks."""
        self.block_known, groups_here = self._meet(lanes, self._slot[lanes], self.block_known)
        return groups_here

    def pass_blocks(self) -> None:
        """Synchronise all threads of the chunk within their blocks."""
        self.block_known = np.full_like(self.block_known, self._meet_all())

    def pass_warps(self) -> None:
        """Synchronise all threads of the chunk within their warps."""
        self.warp_known = np.full_like(self.warp_known, self._meet_all())

    def _meet_all(self) -> int:
        """Advance all threads to one epoch, and return it."""
        latest = self._common
        if latest is None:
            latest = int(np.max(epochs_of(self.now)))
        if latest + 1 >= MOST_EPOCHS:
            raise EpochsExhausted
        self._common = latest + 1
        epoch_start = self._start + (self._common << EPOCH_SHIFT)
        self.moment = Moment(self._first_chunk, epoch_start, self._first)
        return latest + 1

    def pass_warp(self, lanes: Index, masks: Words, are_whole: Bools) -> None:
        """Synchronise these threads with those of their warps that their masks name.

        Args:
            lanes: all threads that meet.
            masks: the lanes that each one meets.
            are_whole: whether those are all that its warp still has.
        """
        if are_whole.any():
            lanes_of_whole = lanes[are_whole]
            self.warp_known, _ = self._meet(
                lanes_of_whole, self._warp[lanes_of_whole], self.warp_known
            )
        if not are_whole.all():
            self._pass_parts(lanes[~are_whole], masks[~are_whole])

    def advance(self, lanes: Index) -> Stamps:
        """End the epochs of these threads, and return them."""
        ended = epochs_of(self.now[lanes])
        self._set(lanes, ended + 1)
        return ended

    def end(
        self,
        fences: FenceClocks,
        lanes: Index | Small,
        ended: Stamps | Small,
        block: Stamps,
        warp: Stamps,
    ) -> None:
        """Have these threads release their work so far from now on.

        Args:
            fences: where that is stored.
            lanes: the threads.
            ended: their epochs.
            block, warp: what `block_known` and `warp_known` were then.
        """
        fences.end(lanes, ended, block[self._slot[lanes]], warp[self._warp[lanes]])

    def _meet(self, lanes: Index, groups: Index, group_epochs: Stamps) -> tuple[Stamps, Index]:
        """Advance threads to one epoch a group; return the epochs of all groups, and the groups."""
        latest = np.zeros(len(group_epochs), dtype=np.int64)
        np.maximum.at(latest, groups, epochs_of(self.now[lanes]))
        distinct = np.unique(groups)
        group_epochs = group_epochs.copy()
        group_epochs[distinct] = latest[distinct] + 1
        self._set(lanes, group_epochs[groups])
        return group_epochs, distinct

    def _pass_parts(self, lanes: Index, masks: Words) -> None:
        lane_epochs = self._lane_known
        if lane_epochs is None:
            lane_epochs = np.zeros((self._geometry.threads, WARP), dtype=np.int32)
            self._lane_known = lane_epochs
        keys = (self._warp[lanes].astype(np.int64) << 32) | masks
        order = np.argsort(keys, kind="stable")
        lanes, keys = lanes[order], keys[order]
        starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
        group = np.repeat(np.arange(len(starts)), np.diff(np.r_[starts, len(keys)]))
        together = np.maximum.reduceat(lane_epochs[lanes], starts, axis=0)
        after = epochs_of(self.now[lanes]) + 1
        np.maximum.at(together, (group, self._lane[lanes]), after.astype(np.int32))
        lane_epochs[lanes] = together[group]
        self._set(lanes, after)

    def _set(self, lanes: Index, epochs: Stamps) -> None:
        if len(epochs) and np.max(epochs) >= MOST_EPOCHS:
            raise EpochsExhausted
        now = self.now.copy()  # stored steps have the former array
        now[lanes] = self._threads[lanes] | epochs << EPOCH_SHIFT
        self.moment, self._common = Moment(now, 0, self._first), None
