"""A launch whose blocks, warps and lanes run in an order that is late, or drawn by a seed."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.exec.kernel_code import KernelCode
from ptx.emulate.exec.launch import Launch
from ptx.emulate.exec.order.division import Chunk, chunks_of
from ptx.emulate.exec.order.ordered_blocks import OrderedBlocks
from ptx.emulate.exec.order.ordered_scheduler import OrderedScheduler
from ptx.emulate.model.clock import CountedClock
from ptx.emulate.model.geometry import Dim3, geometry
from ptx.emulate.model.order import Decisions, LaunchOrder
from ptx.emulate.threads.device_model import DeviceModel
from ptx.emulate.threads.limits import Limits

_LONG_TURN: Final = 16384  # basic blocks, for blocks that do not wait for others
_LATE_TURN: Final = 512
_LONGEST_TURN: Final = 12  # up to 2**12, where it is drawn
_LATE_FILL: Final = 0xFF  # bytes of shared memory that nothing has written
Turns = Generator[bool, None, None]
"""A launch that runs as it is asked to. After each turn but the last: whether the blocks are not at
their end, as they may wait for what others write."""


class OrderedLaunch(Launch):
    """A launch in progress in an order of its own.

    Attributes:
        decisions: the draws that choose it.
    """

    def __init__(
        self,
        code: KernelCode,
        device: DeviceModel,
        grid: Dim3,
        block: Dim3,
        params: bytes,
        dynamic_shared: int,
        limits: Limits,
        cluster: Dim3,
        reserved_shared: int,
        order: LaunchOrder,
    ) -> None:
        super().__init__(
            code, device, grid, block, params, dynamic_shared, limits, cluster, reserved_shared
        )
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
            blocks, threads, self.cluster.blocks, self._chunk_blocks(threads, blocks),
            self.code.may_be_late.stores, self.decisions,
        )  # fmt: skip
        with ExitStack() as after:
            after.callback(self.output.flush)
            if cooperative:
                self._make_workspace(after)
            yield from self._run_chunks(chunks)
        self.tell_accesses()

    def shared_memory(self, nbytes: int) -> NDArray[np.uint8]:
        """Shared memory for the next chunk: a pattern, and zeros where the system has variables."""
        if len(self._shared) < nbytes:
            self._shared = np.empty(nbytes, dtype=np.uint8)
        found = self._shared[:nbytes]
        found[:] = self._fill
        if self.shared_bytes > self.reserved_start:
            found.reshape(-1, self.shared_stride)[:, self.reserved_start :] = 0
        return found

    def _run_chunks(self, chunks: list[Chunk]) -> Turns:
        """Every chunk begins, and those that are not at their end go on in turn.

        The device need not hold all blocks at once: some programs wait for blocks of lower numbers,
        which a GPU happens to start first.
        """
        unfinished: list[OrderedScheduler] = []
        begun: list[OrderedScheduler] = []
        ahead = iter(chunks)
        coming = next(ahead, None)
        while coming is not None or unfinished:
            at = self._choice(len(unfinished), coming is not None)
            if at < 0:
                assert coming is not None
                scheduler = self._begun(coming)
                if self.code.may_be_late.stores:
                    begun.append(scheduler)
                coming = next(ahead, None)
            else:
                scheduler = unfinished.pop(at)
            if self.extents is not None:  # another launch may have run, whose arrays sites know
                self.memory.version += 1
            with np.errstate(all="ignore"):
                ended = scheduler.run(self._turn())
            dependency = self.limits.dependency
            if ended and dependency is not None:
                blocks = scheduler.blocks
                numbers = range(blocks.first, blocks.first + blocks.geometry.blocks)
                dependency.let_go(numbers, prod(self.grid))
            if not ended:
                unfinished.append(scheduler)
                self._shared = np.empty(0, dtype=np.uint8)  # its blocks need their own
            if coming is not None or unfinished:
                yield not ended
        for scheduler in begun:
            scheduler.show_stores()

    def _choice(self, unfinished: int, more: bool) -> int:
        """Which of the unfinished chunks goes on; -1 where another one begins."""
        if self.decisions.late or not unfinished:
            return -1 if more else 0
        return self.decisions.below(unfinished + more) - more

    def _turn(self) -> int:
        """How many basic blocks a chunk executes before another one may go on."""
        if not self.code.may_be_late.stores:
            return _LONG_TURN
        if self.decisions.late:
            return _LATE_TURN
        return 16 << self.decisions.below(_LONGEST_TURN - 3)

    def _begun(self, chunk: Chunk) -> OrderedScheduler:
        shape = geometry(self.block, chunk.blocks)
        blocks = OrderedBlocks(self, shape, chunk.first, self.decisions)
        return OrderedScheduler(blocks, self.code, chunk.groups)
