"""Proxy fences: which writes of ordinary instructions another proxy sees.

PTX ISA, "Memory Consistency Model", "Proxies", "Causality Order", and "membar, fence": an
asynchronous bulk copy or a product of tensor cores reads through the async proxy. It sees an
ordinary write if the write happens before a proxy fence, and that happens before the read. The
writing thread may execute the fence, or the reading one, or a third one.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

from ptx.emulate.check.accelerations import DeferredWork
from ptx.emulate.check.barrier_clocks import BarrierClocks, FenceClocks, Small
from ptx.emulate.check.stamps import (
    EPOCH_SHIFT,
    THREAD_SHIFT,
    WARP_SHIFT,
    Bools,
    Stamps,
    epochs_of,
    threads_of,
)
from ptx.emulate.check.synchronizes_with import Synchronization, ThreadClocks
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import WARP

_MOST_FENCES: Final = 256  # of a launch that are stored; with more, every write counts as fenced


class ProxyFence:
    """One fence of several threads, and the knowledge of each thread when it executes the fence.

    Attributes:
        threads: their numbers in the launch, ascending; ended: the epoch that the fence ends.
        block, warp: the epochs below which the block and the warp of each are complete for it.
        lanes: (threads, 32) the same for the lanes of its warp; None where no part of one has met.
        clocks_of_threads: the knowledge of each through memory; empty without a release.
    """

    __slots__ = ("block", "clocks_of_threads", "ended", "lanes", "threads", "warp")

    def __init__(
        self,
        threads: Stamps,
        ended: Stamps,
        clocks: BarrierClocks,
        lanes: Index,
        clocks_of_threads: list[ThreadClocks],
    ) -> None:
        self.threads: Stamps = threads
        self.ended: Stamps = ended
        block, warp, by_lane = clocks.known(lanes)
        self.block: Stamps = block
        self.warp: Stamps = warp
        self.lanes: Small | None = by_lane
        self.clocks_of_threads: list[ThreadClocks] = clocks_of_threads


class ProxyFenceLog:
    """The proxy fences of one kind in a launch, the latest `_MOST_FENCES` of them.

    `forgot`: whether there were more.
    """

    def __init__(self) -> None:
        self.fences: deque[ProxyFence] = deque(maxlen=_MOST_FENCES)
        self.forgot: bool = False

    def add(self, fence: ProxyFence) -> None:
        """Add a fence."""
        self.forgot |= len(self.fences) == _MOST_FENCES
        self.fences.append(fence)


_MOST_SEEN: Final = 4096  # stored writes for a reader


class ProxyFences:
    """The proxy fences of one kind, for the threads of a chunk."""

    def __init__(
        self,
        synchronization: Synchronization,
        deferred: DeferredWork,
        clocks: BarrierClocks,
        log: ProxyFenceLog,
        threads: int,
    ) -> None:
        self._known = synchronization
        self._deferred = deferred
        self._clocks = clocks
        self._log = log
        self._last = FenceClocks(threads)
        self._seen: dict[int, set[int]] = {}  # by readers, the writes that they see

    def add(self, lanes: Index) -> None:
        """Record that these threads execute a fence."""
        clocks, synchronization = self._clocks, self._known
        self._deferred.settle()
        threads = clocks.threads[lanes]
        clocks_of_threads = (
            [synchronization.clocks_of(thread) for thread in threads.tolist()]
            if synchronization.has_releases
            else []
        )
        before = clocks.block_known, clocks.warp_known
        ended = clocks.advance(lanes)
        clocks.end(self._last, lanes, ended, *before)
        self._log.add(ProxyFence(threads, ended, clocks, lanes, clocks_of_threads))

    def unseen(self, old: Stamps, lanes: Index) -> Bools:
        """Return which writes have no fence between them and the reader beside them."""
        unseen = ~self._by_last(old, lanes)
        for lane in np.unique(lanes[unseen]).tolist():
            selected = np.flatnonzero(unseen & (lanes == lane))
            writes, of = np.unique(old[selected], return_inverse=True)
            unseen[selected] = self._unseen_by(writes, lane)[of]
        return unseen

    def _by_last(self, old: Stamps, lanes: Index) -> Bools:
        """Return which writes the last fence of the writer, or of the reader, makes visible.

        This quick test finds most; `_unseen_by` tries all fences.
        """
        clocks, last = self._clocks, self._last
        writers, epochs = threads_of(old), epochs_of(old)
        own_threads = clocks.threads[lanes]
        is_visible: Bools = (writers == own_threads) & (epochs <= last.ended[lanes])
        same_block = writers >> clocks.shift == own_threads >> clocks.shift
        same_warp = writers >> WARP_SHIFT == own_threads >> WARP_SHIFT
        is_visible |= same_block & (epochs < last.block[lanes])
        is_visible |= same_warp & (epochs < last.warp[lanes])
        unseen = np.flatnonzero(same_block & ~is_visible)
        if len(unseen):
            by = lanes[unseen] + (
                writers[unseen] - own_threads[unseen]
            )  # threads of a block stand together
            ended = last.ended[by]
            fences = (writers[unseen] + 1) << THREAD_SHIFT | np.maximum(ended, 0) << EPOCH_SHIFT
            is_visible[unseen] = (epochs[unseen] <= ended) & clocks.over(fences, lanes[unseen])
        return is_visible

    def _unseen_by(self, old: Stamps, lane: int) -> Bools:
        """Return which writes no fence makes visible to one reader."""
        seen_stamps = self._seen.setdefault(lane, set())
        unseen = np.array([stamp not in seen_stamps for stamp in old.tolist()])
        writers, epochs = threads_of(old), epochs_of(old)
        for covered in (self._covered_by_own, self._covered_by_others):
            for fence in reversed(self._log.fences):
                indices = np.flatnonzero(unseen)
                if not len(indices):
                    break
                unseen[indices] = ~covered(fence, lane, writers[indices], epochs[indices])
        if self._log.forgot:
            unseen[:] = False
        if len(seen_stamps) > _MOST_SEEN:
            seen_stamps.clear()
        seen_stamps.update(old[~unseen].tolist())
        return unseen

    def _is_over(self, fence: ProxyFence, chosen: Index, lane: int) -> Bools:
        """Return the threads whose part of a fence is complete for a thread."""
        clocks = self._clocks
        threads, ended = fence.threads[chosen], fence.ended[chosen]
        stamps = (threads + 1) << THREAD_SHIFT | ended << EPOCH_SHIFT
        is_complete = clocks.over(stamps, np.full(len(stamps), lane))
        synchronization, unknown = self._known, np.flatnonzero(~is_complete)
        if len(unknown) and synchronization.has_releases:
            own_thread = int(clocks.threads[lane])
            is_complete[unknown] = synchronization.thread_knows(
                own_thread, threads[unknown].tolist(), ended[unknown].tolist()
            )
        return is_complete

    def _covered_by_own(
        self, fence: ProxyFence, lane: int, writers: Stamps, epochs: Stamps
    ) -> Bools:
        """Return which writes a fence of the writing threads makes visible to a thread."""
        fence_index = np.minimum(np.searchsorted(fence.threads, writers), len(fence.threads) - 1)
        covered: Bools = (fence.threads[fence_index] == writers) & (
            epochs <= fence.ended[fence_index]
        )
        candidates = np.flatnonzero(covered)
        covered[candidates] = self._is_over(fence, fence_index[candidates], lane)
        return covered

    def _covered_by_others(
        self, fence: ProxyFence, lane: int, writers: Stamps, epochs: Stamps
    ) -> Bools:
        """Return which writes a fence of other threads makes visible to a thread."""
        is_complete = self._is_over(fence, np.arange(len(fence.threads)), lane)
        if not is_complete.any():
            return np.zeros(len(writers), dtype=np.bool_)
        shift = self._clocks.shift
        threads = fence.threads[is_complete]
        covered: Bools = epochs < _value_by_key(
            threads >> shift, fence.block[is_complete], writers >> shift
        )
        warps, warp = threads >> WARP_SHIFT, writers >> WARP_SHIFT
        covered |= epochs < _value_by_key(warps, fence.warp[is_complete], warp)
        if fence.lanes is not None:
            for fence_warp, of_lanes in zip(warps.tolist(), fence.lanes[is_complete], strict=True):
                covered |= (warp == fence_warp) & (epochs < of_lanes[writers & WARP - 1])
        if fence.clocks_of_threads:
            pairs = [
                fence.clocks_of_threads[index] for index in np.flatnonzero(is_complete).tolist()
            ]
            different = {(id(one), id(other)): (one, other) for one, other in pairs}.values()
            for index in np.flatnonzero(~covered).tolist():
                thread, epoch = int(writers[index]), int(epochs[index])
                clocks_know = self._known.clocks_know
                covered[index] = any(clocks_know(pair, thread, epoch) for pair in different)
        return covered


def _value_by_key(keys: Stamps, values: Stamps, searched: Stamps) -> Stamps:
    """Return the value of each wanted key, -1 where there is none; `keys` are ascending."""
    key_index = np.minimum(np.searchsorted(keys, searched), len(keys) - 1)
    matched: Stamps = np.where(keys[key_index] == searched, values[key_index], -1)
    return matched
