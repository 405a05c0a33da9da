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
        told: the knowledge of each through memory; empty without a release.
    """

    __slots__ = ("block", "ended", "lanes", "threads", "told", "warp")

    def __init__(
        self,
        threads: Stamps,
        ended: Stamps,
        clocks: BarrierClocks,
        lanes: Index,
        told: list[ThreadClocks],
    ) -> None:
        self.threads: Stamps = threads
        self.ended: Stamps = ended
        block, warp, by_lane = clocks.known(lanes)
        self.block: Stamps = block
        self.warp: Stamps = warp
        self.lanes: Small | None = by_lane
        self.told: list[ThreadClocks] = told


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
        known: Synchronization,
        deferred: DeferredWork,
        clocks: BarrierClocks,
        log: ProxyFenceLog,
        threads: int,
    ) -> None:
        self._known = known
        self._deferred = deferred
        self._clocks = clocks
        self._log = log
        self._last = FenceClocks(threads)
        self._seen: dict[int, set[int]] = {}  # by readers, the writes that they see

    def add(self, lanes: Index) -> None:
        """Record that these threads execute a fence."""
        clocks, known = self._clocks, self._known
        self._deferred.settle()
        threads = clocks.threads[lanes]
        told = [known.clocks_of(each) for each in threads.tolist()] if known.has_releases else []
        before = clocks.block_known, clocks.warp_known
        ended = clocks.advance(lanes)
        clocks.end(self._last, lanes, ended, *before)
        self._log.add(ProxyFence(threads, ended, clocks, lanes, told))

    def unseen(self, old: Stamps, lanes: Index) -> Bools:
        """Return which writes have no fence between them and the reader beside them."""
        unseen = ~self._by_last(old, lanes)
        for lane in np.unique(lanes[unseen]).tolist():
            at = np.flatnonzero(unseen & (lanes == lane))
            writes, of = np.unique(old[at], return_inverse=True)
            unseen[at] = self._unseen_by(writes, lane)[of]
        return unseen

    def _by_last(self, old: Stamps, lanes: Index) -> Bools:
        """Return which writes the last fence of the writer, or of the reader, makes visible.

        This quick test finds most; `_unseen_by` tries all fences.
        """
        clocks, last = self._clocks, self._last
        writers, epochs = threads_of(old), epochs_of(old)
        mine = clocks.threads[lanes]
        seen: Bools = (writers == mine) & (epochs <= last.ended[lanes])
        same_block = writers >> clocks.shift == mine >> clocks.shift
        same_warp = writers >> WARP_SHIFT == mine >> WARP_SHIFT
        seen |= same_block & (epochs < last.block[lanes])
        seen |= same_warp & (epochs < last.warp[lanes])
        rest = np.flatnonzero(same_block & ~seen)
        if len(rest):
            by = lanes[rest] + (writers[rest] - mine[rest])  # threads of a block stand together
            ended = last.ended[by]
            fences = (writers[rest] + 1) << THREAD_SHIFT | np.maximum(ended, 0) << EPOCH_SHIFT
            seen[rest] = (epochs[rest] <= ended) & clocks.over(fences, lanes[rest])
        return seen

    def _unseen_by(self, old: Stamps, lane: int) -> Bools:
        """Return which writes no fence makes visible to one reader."""
        known = self._seen.setdefault(lane, set())
        unseen = np.array([each not in known for each in old.tolist()])
        writers, epochs = threads_of(old), epochs_of(old)
        for covered in (self._covered_by_own, self._covered_by_others):
            for fence in reversed(self._log.fences):
                at = np.flatnonzero(unseen)
                if not len(at):
                    break
                unseen[at] = ~covered(fence, lane, writers[at], epochs[at])
        if self._log.forgot:
            unseen[:] = False
        if len(known) > _MOST_SEEN:
            known.clear()
        known.update(old[~unseen].tolist())
        return unseen

    def _is_over(self, fence: ProxyFence, chosen: Index, lane: int) -> Bools:
        """Return the threads whose part of a fence is complete for a thread."""
        clocks = self._clocks
        threads, ended = fence.threads[chosen], fence.ended[chosen]
        stamps = (threads + 1) << THREAD_SHIFT | ended << EPOCH_SHIFT
        known = clocks.over(stamps, np.full(len(stamps), lane))
        synchronization, rest = self._known, np.flatnonzero(~known)
        if len(rest) and synchronization.has_releases:
            mine = int(clocks.threads[lane])
            known[rest] = synchronization.thread_knows(
                mine, threads[rest].tolist(), ended[rest].tolist()
            )
        return known

    def _covered_by_own(
        self, fence: ProxyFence, lane: int, writers: Stamps, epochs: Stamps
    ) -> Bools:
        """Return which writes a fence of the writing threads makes visible to a thread."""
        at = np.minimum(np.searchsorted(fence.threads, writers), len(fence.threads) - 1)
        covered: Bools = (fence.threads[at] == writers) & (epochs <= fence.ended[at])
        some = np.flatnonzero(covered)
        covered[some] = self._is_over(fence, at[some], lane)
        return covered

    def _covered_by_others(
        self, fence: ProxyFence, lane: int, writers: Stamps, epochs: Stamps
    ) -> Bools:
        """Return which writes a fence of other threads makes visible to a thread."""
        known = self._is_over(fence, np.arange(len(fence.threads)), lane)
        if not known.any():
            return np.zeros(len(writers), dtype=np.bool_)
        shift = self._clocks.shift
        threads = fence.threads[known]
        covered: Bools = epochs < _found(threads >> shift, fence.block[known], writers >> shift)
        warps, warp = threads >> WARP_SHIFT, writers >> WARP_SHIFT
        covered |= epochs < _found(warps, fence.warp[known], warp)
        if fence.lanes is not None:
            for one, of_lanes in zip(warps.tolist(), fence.lanes[known], strict=True):
                covered |= (warp == one) & (epochs < of_lanes[writers & WARP - 1])
        if fence.told:
            told = [fence.told[at] for at in np.flatnonzero(known).tolist()]
            different = {(id(one), id(other)): (one, other) for one, other in told}.values()
            for at in np.flatnonzero(~covered).tolist():
                thread, epoch = int(writers[at]), int(epochs[at])
                tells = self._known.clocks_know
                covered[at] = any(tells(each, thread, epoch) for each in different)
        return covered


def _found(keys: Stamps, values: Stamps, wanted: Stamps) -> Stamps:
    """Return the value of each wanted key, -1 where there is none; `keys` are ascending."""
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    found: Stamps = np.where(keys[at] == wanted, values[at], -1)
    return found
