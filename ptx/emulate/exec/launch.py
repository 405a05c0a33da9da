"""One launch of a kernel, executed chunk by chunk."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np

from ptx.emulate.exec.kernel_code import KernelCode
from ptx.emulate.exec.scheduler import Scheduler
from ptx.emulate.model.geometry import geometry
from ptx.emulate.threads.launch_plan import LaunchPlan
from ptx.emulate.threads.resident_blocks import ResidentBlocks

_WORKSPACE_BYTES = 64
_FIRST_TURN = 16384  # basic blocks that a chunk executes before another one may continue
_LEAST_TURN = 256
_CHUNK_BYTES = 256 << 20  # of shared and local memory; a chunk that needs more has fewer blocks


class Launch(LaunchPlan):
    """A launch with the code that executes it."""

    workspace: int
    code: KernelCode

    def run(self, *, cooperative: bool = False) -> None:
        """Execute the grid, chunk by chunk; all blocks in one chunk if `cooperative`.

        If a GPU would hold the whole grid at once, chunks take turns.

        Raises:
            EmulationFault: what the kernel did wrong.
        """
        threads = self.block[0] * self.block[1] * self.block[2]
        blocks = self.grid[0] * self.grid[1] * self.grid[2]
        size = blocks if cooperative else self._chunk_blocks(threads, blocks)
        with np.errstate(all="ignore"), ExitStack() as after:
            after.callback(self.output.flush)
            if cooperative:
                self._make_workspace(after)
            schedulers = (
                Scheduler(
                    ResidentBlocks(self, geometry(self.block, min(size, blocks - first)), first),
                    self.code,
                )
                for first in range(0, blocks, size)
            )
            if size < blocks <= self.device.resident_blocks(threads, self.shared_stride):
                self._take_turns(schedulers)
                return
            for scheduler in schedulers:
                scheduler.run()

    def _chunk_blocks(self, threads: int, blocks: int) -> int:
        """The most blocks of a chunk: whole clusters."""
        size = min(blocks, max(1, self.limits.chunk_threads // threads))
        room = _CHUNK_BYTES // max(self.shared_stride + threads * self.local_stride, 1)
        size = max(1, min(size, room))
        return max(size // self.cluster.blocks, 1) * self.cluster.blocks

    def _make_workspace(self, after: ExitStack) -> None:
        """Allocate the memory by which a cooperative grid synchronises, until the launch ends."""
        self.workspace = self.memory.allocate(_WORKSPACE_BYTES, origin="grid workspace")
        after.callback(self.memory.free, self.workspace)
        start = self.workspace - self.memory.base
        self.memory.mark_written(self.workspace, _WORKSPACE_BYTES)
        self.memory.data[start : start + _WORKSPACE_BYTES] = 0

    def _take_turns(self, schedulers: Iterator[Scheduler]) -> None:
        """Execute chunks whose blocks a GPU would hold all at once: they may wait for each other.

        A chunk that is unfinished at the end of its turn continues after the turns of the others.
        """
        turn = _FIRST_TURN
        unfinished: deque[Scheduler] = deque()
        for scheduler in schedulers:
            if not scheduler.run(turn):
                unfinished.append(scheduler)
                turn = max(turn // 2, _LEAST_TURN)
                self._shared = np.empty(0, dtype=np.uint8)  # its blocks need their own
        while len(unfinished) > 1:
            scheduler = unfinished.popleft()
            if not scheduler.run(turn):
                unfinished.append(scheduler)
            turn = max(turn // 2, _LEAST_TURN)
        for scheduler in unfinished:
            scheduler.run()
