"""One launch of a kernel, executed chunk by chunk."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import numpy as np

from ptx.emulate.exec.collection import collection_paused
from ptx.emulate.exec.kernel_code import KernelCode
from ptx.emulate.exec.scheduler import Scheduler
from ptx.emulate.memory.chunk_accesses import AccessesOfChunks, ChunkAccesses, ChunksDepend
from ptx.emulate.model.geometry import geometry
from ptx.emulate.threads.fibre import ENDLESS
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

        If a GPU would hold the whole grid at once, chunks take turns. Chunks that do not depend on
        each other run in several threads (`Limits.threads`).

        Raises:
            EmulationFault: what the kernel did wrong.
        """
        threads = self.block[0] * self.block[1] * self.block[2]
        blocks = self.grid[0] * self.grid[1] * self.grid[2]
        size = blocks if cooperative else self._whole_rows(self._chunk_blocks(threads, blocks))
        takes_turns = size < blocks <= self.device.resident_blocks(threads, self.shared_stride)
        firsts = range(0, blocks, size)
        with np.errstate(all="ignore"), ExitStack() as after:
            after.callback(self.output.flush)
            if cooperative:
                self._make_workspace(after)
            if len(firsts) > 1 and self._can_run_in_threads():
                turn = _FIRST_TURN if takes_turns else ENDLESS
                if self._run_in_threads(firsts, turn):
                    return
            schedulers = (self._scheduler(first, size) for first in firsts)
            if takes_turns:
                self._take_turns(schedulers)
                return
            for scheduler in schedulers:
                scheduler.run()

    def _scheduler(self, first: int, size: int, accesses: ChunkAccesses | None = None) -> Scheduler:
        """Return the scheduler of the `size` blocks from number `first` on, or of those left."""
        blocks = self.grid[0] * self.grid[1] * self.grid[2]
        shape = geometry(self.block, min(size, blocks - first))
        return Scheduler(ResidentBlocks(self, shape, first, accesses), self.code)

    def _can_run_in_threads(self) -> bool:
        code = self.code
        if code.needs_order or code.calls_by_address or code.reads_clock:
            return False
        return not (code.chunks.were_dependent or self.cluster.blocks > 1 or self.is_observed)

    def _run_in_threads(self, firsts: range, turn: int) -> bool:
        """Execute chunks in several threads; return whether the results are those of one thread.

        Otherwise memory is as before, and the launch is to be repeated in one thread. Then chunks
        depend on each other, or one raised an error, after which no chunk may run.
        """
        count = min(self.limits.threads or processors_at_once(), len(firsts))
        if count < 2:
            return False
        from concurrent.futures import ThreadPoolExecutor  # saves 10 ms of other launches

        accesses = AccessesOfChunks(self.memory, firsts)
        self.memory.version += 1  # code for single threads must record its accesses, too
        try:
            # A finalizer of another object would wait for the device, which runs this launch.
            with collection_paused(), ThreadPoolExecutor(count - 1, "emulated-blocks") as pool:
                try:
                    plans = [self.for_thread() for _ in range(count)]
                    futures = [
                        pool.submit(plan.run_some, firsts.step, turn, accesses)
                        for plan in plans[1:]
                    ]
                    plans[0].run_some(firsts.step, turn, accesses)
                    for future in futures:
                        future.result()
                except BaseException as error:
                    accesses.stop(error)
                    raise
        except Exception:
            self.code.chunks.were_dependent = isinstance(accesses.stopped_by, ChunksDepend)
            accesses.put_back()
            return False
        return True

    def run_some(self, size: int, turn: int, accesses: AccessesOfChunks) -> None:
        """Execute chunks of `size` blocks until none is left, in one of several threads.

        Raises:
            ChunksDepend: the launch is to be repeated.
            EmulationFault: what the kernel did wrong.
        """
        try:
            with np.errstate(all="ignore"):
                while (first := accesses.next_chunk()) is not None:
                    chunk = ChunkAccesses(accesses)
                    scheduler = self._scheduler(first, size, chunk)
                    while not scheduler.run(turn):
                        self._shared = np.empty(0, dtype=np.uint8)  # as in `_take_turns`
                    accesses.end_chunk(chunk)
        except BaseException as error:
            accesses.stop(error)
            raise

    def _chunk_blocks(self, threads: int, blocks: int) -> int:
        """The most blocks of a chunk: whole clusters."""
        size = min(blocks, max(1, self.limits.chunk_threads // threads))
        fitting = _CHUNK_BYTES // max(self.shared_stride + threads * self.local_stride, 1)
        size = max(1, min(size, fitting))
        return max(size // self.cluster.blocks, 1) * self.cluster.blocks

    def _whole_rows(self, blocks: int) -> int:
        """The most blocks of a chunk, whole rows of the grid where blocks may run in threads.

        The rows of a matrix that a chunk writes are then not those of other chunks.
        """
        row = self.grid[0]
        return blocks if self.code.needs_order or row > blocks else blocks - blocks % row

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
        Turns become shorter, except where chunks may also run in several threads: the turns of one
        must not depend on the others then.
        """
        turn = _FIRST_TURN
        least = _LEAST_TURN if self.code.needs_order else _FIRST_TURN
        unfinished: deque[Scheduler] = deque()
        for scheduler in schedulers:
            if not scheduler.run(turn):
                unfinished.append(scheduler)
                turn = max(turn // 2, least)
                self._shared = np.empty(0, dtype=np.uint8)  # its blocks need their own
        while unfinished:
            scheduler = unfinished.popleft()
            scheduler.are_alone = not unfinished
            if not scheduler.run(
                ENDLESS if scheduler.are_alone and self.code.needs_order else turn
            ):
                unfinished.append(scheduler)
            turn = max(turn // 2, least)


def processors_at_once() -> int:
    """Return how many threads the interpreter runs at once: one where it has a lock."""
    has_lock: Callable[[], bool] | None = getattr(sys, "_is_gil_enabled", None)  # from 3.13 on
    if has_lock is None or has_lock():
        return 1
    count: Callable[[], int | None] = os.process_cpu_count  # type: ignore[attr-defined]  # 3.13
    return count() or 1
