"""A launch whose blocks, warps and lanes run in a "late" order, or in a random one.

The grid is divided: blocks into chunks, threads of a chunk into parts. Threads that run together
can hide missing synchronisation: all of them write before any reads. Running every warp by itself
costs hundreds of times as much. So only some blocks are split, and the others run as usual.

Fibres of two parts never merge, because a fibre's place begins with the number of its part. A part
therefore runs as far as it can before the next one, unless a draw selects another one.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from math import prod
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.exec.kernel_code import KernelCode
from ptx.emulate.exec.launch import Launch
from ptx.emulate.exec.order.ordered_blocks import LateCopies, OrderedBlocks
from ptx.emulate.exec.scheduler import Scheduler
from ptx.emulate.exec.sync.skipped_barriers import SkippedBarriers
from ptx.emulate.exec.sync.waiting import WaitingFibres
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.clock import CountedClock
from ptx.emulate.model.geometry import WARP, Geometry, GridCall, geometry
from ptx.emulate.model.order import Decisions, LaunchOrder
from ptx.emulate.observer import Watcher
from ptx.emulate.threads.device_model import DeviceModel
from ptx.emulate.threads.fibre import ENDLESS, Fibre, RunQueue
from ptx.emulate.threads.limits import Limits

_SMALL_THREADS: Final = 8192  # of a grid of which many blocks run apart
_MOST_APART: Final = 8  # clusters that run as chunks of their own
_PIECES: Final = 6  # into which the rest of a grid with communicating blocks is divided
_MOST_GROUPS: Final = 4  # of warps in a block that runs apart
_FEW_GROUPS: Final = 2  # where the rest of the grid is one or a few chunks
_ALL_LANES: Final = 1 << WARP
# Lanes by the parity of their bits: of two lanes whose numbers differ by a power of two, as in a
# reduction, each is in another part. Halves, and every second lane.
_PARITY: Final = 0x96696996
_PATTERNS: Final = (_PARITY, 0xFFFF0000, 0xAAAAAAAA)


class OrderedChunk(NamedTuple):
    """`blocks` thread blocks from number `first` on.

    `groups`: their lanes run apart, and their warps in at most so many groups; 0: they do not.
    """

    first: int
    blocks: int
    groups: int


def chunks_of(
    blocks: int, threads: int, cluster: int, most: int, speak: bool, decisions: Decisions
) -> list[OrderedChunk]:
    """The chunks of a grid, in the order in which they begin.

    Blocks of `threads` threads and clusters of `cluster` blocks; `most`: blocks of a chunk.
    `speak`: blocks may wait for writes of others of the launch.
    """
    if blocks * threads == 1:
        return [OrderedChunk(0, 1, 0)]
    clusters = blocks // cluster
    many = speak or blocks * threads <= _SMALL_THREADS
    if speak:
        most = min(most, max(clusters // _PIECES, 1) * cluster)
    apart = {number * cluster for number in _apart(clusters, many, most // cluster, decisions)}
    edges = apart | {number + cluster for number in apart}
    cuts = sorted(edges | set(range(0, blocks, most)) | {blocks})
    groups = _MOST_GROUPS if many else _FEW_GROUPS
    chunks = [
        OrderedChunk(first, end - first, groups if first in apart else 0)
        for first, end in zip([0, *cuts], cuts, strict=False)
        if end > first
    ]
    return chunks[::-1] if decisions.late else decisions.shuffled(chunks)


def _apart(clusters: int, many: bool, most: int, decisions: Decisions) -> set[int]:
    """The clusters that run apart: many, or one at an edge of a chunk of `most`."""
    if many and clusters <= _MOST_APART:
        return set(range(clusters))
    if decisions.late:
        count = _MOST_APART if many else 1
        return {clusters - 1 - number * clusters // count for number in range(count)}
    if many:
        return {decisions.below(clusters) for _ in range(_MOST_APART)}
    chunk = decisions.below(-(-clusters // most)) * most
    return {min(chunk + most, clusters) - 1 if decisions.below(2) else chunk}


def parts_of(geometry: Geometry, groups: int, decisions: Decisions) -> list[Index]:
    """The lanes of each part of a chunk, in the order in which the parts run if none must wait.

    Its warps form at most so many groups.
    """
    warp_slot = geometry.index("warp_slot")
    warps = geometry.warps_per_block * geometry.blocks
    groups, mask = min(warps, groups), _PARITY
    if not decisions.late:
        groups = 1 + decisions.below(groups)
        kind = decisions.below(len(_PATTERNS) + 3)
        mask = decisions.below(_ALL_LANES) if kind == len(_PATTERNS) else 0
        mask = _PATTERNS[kind] if kind < len(_PATTERNS) else mask
    group = np.array([decisions.below(groups) for _ in range(warps)], dtype=np.intp)
    lane = (warp_slot % WARP).astype(np.uint64)
    part = group[warp_slot // WARP] * 2 + (np.uint64(mask) >> lane & np.uint64(1)).astype(np.intp)
    lanes_of_parts = [(part == number).nonzero()[0] for number in range(2 * groups)]
    lanes_of_parts = [lanes for lanes in lanes_of_parts if len(lanes)]
    return lanes_of_parts[::-1] if decisions.late else decisions.shuffled(lanes_of_parts)


_PASSED_OVER: Final = 4  # one time in so many the next fibre is passed over
_MOST_HIDDEN_TURNS: Final = 32  # that stores are not seen: in the end every store is
_SHOWN: Final = 8  # one time in so many they are seen earlier
_LONGEST_RUN: Final = 5  # and another one runs for up to 2**5 basic blocks


class OrderedWaits(WaitingFibres):
    """The fibres of one chunk that wait; copies that they wait for land when nothing else runs."""

    def __init__(
        self, queue: RunQueue, skipped: SkippedBarriers | None, late_copies: LateCopies
    ) -> None:
        super().__init__(queue, skipped)
        self._late_copies = late_copies

    def resolve(self) -> bool:
        """Release complete waits; return whether there were any.

        Raises:
            Deadlock: threads wait and nothing is left that runs, lands or is complete.
        """
        released = False
        if self.timed_waits.waits:
            released = self.block_barriers.resolve() | self.warp_sync.resolve()
            if not released:
                self._late_copies.land_awaited(self.timed_waits.phase_waits)
        return super().resolve() or released


class OrderedScheduler(Scheduler):
    """Runs the threads of `blocks`; in parts, with at most `groups` of warps, unless that is 0."""

    def __init__(self, blocks: OrderedBlocks, code: KernelCode, groups: int) -> None:
        self._decisions = blocks.decisions
        self._groups = groups
        self._late_copies = blocks.late_copies
        self._late_stores = blocks.late_stores
        super().__init__(blocks, code)

    def _waits(self, skipped: SkippedBarriers | None) -> WaitingFibres:
        return OrderedWaits(self, skipped, self._late_copies)

    def run(self, turn: int = ENDLESS) -> bool:
        """Execute all threads to their end, or for a turn; whether they ended.

        Raises:
            EmulationFault: what the kernel did wrong.
        """
        self._late_stores.show()
        ended = super().run(turn)
        if ended:
            self._late_copies.finish()
        if self._late_stores.hide() > _MOST_HIDDEN_TURNS or self._decisions.early(_SHOWN):
            self._late_stores.show()
            self._late_stores.publish()
        return ended

    def show_stores(self) -> None:
        """End the launch, after all of its stores."""
        self._late_stores.show()
        self._late_stores.publish()

    def _begin(self) -> None:
        if not self._groups:
            super()._begin()
            return
        self._patience = 1 << 3 + self._decisions.below(8)
        self._deadline = self._patience
        parts = parts_of(self.blocks.geometry, self._groups, self._decisions)
        for number, lanes in enumerate(parts):
            fibre = Fibre(self, list(self._code.functions[0].zeros), lanes, len(lanes))
            fibre.prefix = (number,)
            self.wait(fibre, 0)

    def _next(self) -> tuple[Fibre, int, int]:
        if not self._groups or not self._decisions.early(_PASSED_OVER):
            return super()._next()
        keys = sorted(self._runnable)
        key = keys[self._decisions.below(len(keys))]
        return (*self._taken(key), 1 << self._decisions.below(_LONGEST_RUN + 1))


_LONG_TURN: Final = 16384  # basic blocks, for blocks that do not wait for others
_LATE_TURN: Final = 512
_LONGEST_TURN: Final = 12  # up to 2**12, where it is drawn
_LATE_FILL: Final = 0xFF  # bytes of shared memory that nothing has written
Turns = Generator[bool, None, None]
"""A launch in progress; each turn but the last yields whether blocks are unfinished.

Unfinished blocks may wait for writes of others.
"""


class OrderedLaunch(Launch):
    """A launch in progress in an order of its own.

    Attributes:
        decisions: the draws that choose it.
    """

    def __init__(
        self,
        code: KernelCode,
        device: DeviceModel,
        call: GridCall,
        limits: Limits,
        reserved_shared: int,
        watchers: tuple[Watcher, ...],
        order: LaunchOrder,
    ) -> None:
        super().__init__(code, device, call, limits, reserved_shared, watchers)
        self.decisions: Decisions = Decisions(order)
        decisions = self.decisions
        self.clock: CountedClock = device.counted_clock
        device.counted_clock.begin()
        self._fill = _LATE_FILL if decisions.late else decisions.below(256)

    def turns(self, *, cooperative: bool) -> Turns:
        """Execute the grid, chunk by chunk; chunks take turns.

        Raises:
            EmulationFault: what the kernel did wrong.
        """
        threads = self.block[0] * self.block[1] * self.block[2]
        blocks = self.grid[0] * self.grid[1] * self.grid[2]
        chunks = chunks_of(
            blocks,
            threads,
            self.cluster.blocks,
            self._chunk_blocks(threads, blocks),
            self.code.may_be_late.stores,
            self.decisions,
        )
        with ExitStack() as after:
            after.enter_context(self.ended())
            after.callback(self.output.flush)
            if cooperative:
                self._make_workspace(after)
            yield from self._run_chunks(chunks)

    def shared_memory(self, nbytes: int) -> NDArray[np.uint8]:
        """Shared memory for the next chunk: a pattern, and zeros where the system has variables."""
        if len(self._shared) < nbytes:
            self._shared = np.empty(nbytes, dtype=np.uint8)
        shared = self._shared[:nbytes]
        shared[:] = self._fill
        if self.shared_bytes > self.reserved_start:
            shared.reshape(-1, self.shared_stride)[:, self.reserved_start :] = 0
        return shared

    def _run_chunks(self, chunks: list[OrderedChunk]) -> Turns:
        """Begin every chunk, and continue unfinished ones in turn.

        The device need not hold all blocks at once: some programs wait for blocks of lower numbers,
        which a GPU happens to start first.
        """
        unfinished: list[OrderedScheduler] = []
        started: list[OrderedScheduler] = []
        remaining = iter(chunks)
        coming = next(remaining, None)
        while coming is not None or unfinished:
            choice = self._choice(len(unfinished), coming is not None)
            if choice < 0:
                assert coming is not None
                scheduler = self._begun(coming)
                if self.code.may_be_late.stores:
                    started.append(scheduler)
                coming = next(remaining, None)
            else:
                scheduler = unfinished.pop(choice)
            if self.bounding:  # sites may have cached another launch's arrays
                self.memory.version += 1
            with np.errstate(all="ignore"):
                ended = scheduler.run(self._turn())
            dependency = self.limits.dependency
            if ended and dependency is not None:
                blocks = scheduler.blocks
                numbers = range(blocks.first, blocks.first + blocks.geometry.blocks)
                dependency.release_dependents(numbers, prod(self.grid))
            if not ended:
                unfinished.append(scheduler)
                self._shared = np.empty(0, dtype=np.uint8)  # its blocks need their own
            if coming is not None or unfinished:
                yield not ended
        for scheduler in started:
            scheduler.show_stores()

    def _choice(self, unfinished: int, has_more: bool) -> int:
        """Return which of the unfinished chunks continues; -1 if a new one begins."""
        if self.decisions.late or not unfinished:
            return -1 if has_more else 0
        return self.decisions.below(unfinished + has_more) - has_more

    def _turn(self) -> int:
        """Return how many basic blocks a chunk executes before another one may continue."""
        if not self.code.may_be_late.stores:
            return _LONG_TURN
        if self.decisions.late:
            return _LATE_TURN
        return 16 << self.decisions.below(_LONGEST_TURN - 3)

    def _begun(self, chunk: OrderedChunk) -> OrderedScheduler:
        shape = geometry(self.block, chunk.blocks)
        blocks = OrderedBlocks(self, shape, chunk.first, self.decisions)
        return OrderedScheduler(blocks, self.code, chunk.groups)
