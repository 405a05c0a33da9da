"""The scheduler of the fibres of thread blocks that are executed together.

The fibre with the smallest place (the blocks of its open calls, then its own block) runs; fibres at
the same place merge. A fibre that waited too long runs for a while regardless of its place, so that
the thread awaited by a spin loop makes progress.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.exec.kernel_code import BlockFunctions, KernelCode
from ptx.emulate.exec.lane.lane_runner import LaneRunner, lane_runner
from ptx.emulate.exec.merge import merge
from ptx.emulate.exec.sync.skipped_barriers import SkippedBarriers
from ptx.emulate.exec.sync.timed_waits import TimedWaits
from ptx.emulate.exec.sync.waiting import WaitingFibres
from ptx.emulate.model.errors import EndlessLoop, ObserverExhausted, Runaway
from ptx.emulate.threads.fibre import ENDLESS, GONE, Fibre, Key, RunQueue
from ptx.emulate.threads.resident_blocks import ResidentBlocks

_MOST_BYTES = 64 << 20  # of memory in use; to look at more takes longer than a step
_MOST_COMPARED = 1 << 30  # bytes of memory that `Progress` copies
_Words: TypeAlias = "NDArray[np.uint64] | NDArray[np.uint8]"
_LOOKS = 64  # how often one state is compared with what follows


class Livelock:
    """Compares the threads of a chunk with their state some time ago.

    Threads that have the same registers and memory again loop for ever. A thread's next steps
    depend on its place, its registers and memory alone, unless it reads a clock, or memory that
    others write meanwhile: then nothing is reported.
    """

    def __init__(self, queue: RunQueue, timed_waits: TimedWaits) -> None:
        self._queue = queue
        self._timed_waits = timed_waits
        self._alive = 0
        self._places: list[tuple[Key, int]] = []
        self._registers: dict[tuple[Key, bytes], list[object]] = {}
        self._memory: tuple[int, ...] = ()
        self._looks = 0
        self._since = 0

    def is_here(self, fibre: Fibre, block: int) -> bool:
        """Return whether the state is as it was, though threads have run; `fibre` runs next."""
        blocks, waits = self._queue.blocks, self._timed_waits
        code, memory = blocks.code, blocks.launch.memory
        if code.reads_clock or memory.used_bytes > _MOST_BYTES or waits.waits or waits.counts:
            return False
        fibres, alive = self._fibres(fibre, block), self._queue.alive
        # Threads that are elsewhere are not as they were: most looks end here.
        counts = sorted((key, waiting_fibre.count) for key, waiting_fibre in fibres)
        is_near = bool(fibres) and counts == self._places and alive == self._alive
        if is_near and self._are_same(fibres):
            return self._is_memory_same()
        self._looks = (self._looks + 1) % _LOOKS
        if self._looks == 1:
            self._alive, self._places = alive, counts
            self._registers = {
                (key, waiting_fibre.lane_numbers().tobytes()): list(
                    _registers(waiting_fibre, code.live[key[-1]])
                )
                for key, waiting_fibre in fibres
            }
            self._memory, self._since = (), self._queue.steps
        return False

    def _is_memory_same(self) -> bool:
        """Return whether memory is as it was with these registers; store it the first time."""
        # A fibre that has not run since may be the one that the others wait for.
        if any(waiting_fibre.tick <= self._since for _, waiting_fibre in self._queue.runnable):
            return False
        # Memory elsewhere has other writers. Checked late, because code may have thousands of
        # sites.
        if any(site.is_elsewhere for site in self._queue.blocks.code.find_sites()):
            return False
        before, self._memory = self._memory, self._sums()
        self._since = self._queue.steps
        if before and before != self._memory:
            self._places = []  # they change memory: wait for the next state, as sums take long
        return before == self._memory

    def _fibres(self, fibre: Fibre, block: int) -> list[tuple[Key, Fibre]]:
        """Return the fibres with their places; none where callers' registers are not at hand."""
        fibres = [((*fibre.prefix, block), fibre), *self._queue.runnable]
        return [] if any(waiting_fibre.calls for _, waiting_fibre in fibres) else fibres

    def _are_same(self, fibres: list[tuple[Key, Fibre]]) -> bool:
        """Return whether all registers are as they were; the first change ends the comparison."""
        live = self._queue.blocks.code.live
        for key, waiting_fibre in fibres:
            before = self._registers.get((key, waiting_fibre.lane_numbers().tobytes()))
            if before is None:
                return False
            now = _registers(waiting_fibre, live[key[-1]])
            if any(old != new for old, new in zip(before, now, strict=True)):
                return False
        return True

    def _sums(self) -> tuple[int, ...]:
        blocks = self._queue.blocks
        memory = blocks.launch.memory
        starts, ends = memory.bounds()
        sums = [zlib.crc32(blocks.shared.data), zlib.crc32(blocks.local.data)]
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            part = memory.data[start - memory.base : end - memory.base]
            sums.append(zlib.crc32(part.data))
        return memory.version, *sums


def _registers(fibre: Fibre, numbers: Iterable[int]) -> Iterator[object]:
    for number in numbers:
        value = fibre.register(number)
        yield value.shape, value.tobytes()


class Progress:
    """Compares memory at the ends of long stretches of work: words that change for the first time.

    A loop without an end changes few words again and again; a long kernel writes others, or its
    threads exit. Memory is finite, so a launch cannot make progress for ever.
    """

    def __init__(self, queue: RunQueue) -> None:
        self._queue = queue
        self._alive = -1
        # By the address: the words at the first comparison, and which of them have changed since.
        self._words: dict[tuple[str, int, int], tuple[_Words, NDArray[np.bool_]]] = {}

    def is_made(self) -> bool:
        """Return whether there was progress since the last call; True the first time."""
        before, self._alive = self._alive, self._queue.alive
        has_progress = before != self._alive
        for key, words in self._parts():
            if key not in self._words:
                self._words[key] = words.copy(), np.zeros(words.size, np.bool_)
                has_progress = True
                continue
            first, changed = self._words[key]
            new = (words != first) & ~changed
            changed |= new
            has_progress = has_progress or bool(new.any())
        return has_progress

    def _parts(self) -> Iterator[tuple[tuple[str, int, int], _Words]]:
        """Yield the memories of the threads as words, small ones first."""
        blocks = self._queue.blocks
        memory = blocks.launch.memory
        for name, data in (("shared", blocks.shared), ("local", blocks.local)):
            yield (name, 0, data.size), _words(data)
        bytes_left = _MOST_COMPARED
        starts, ends = memory.bounds()
        sizes = ends - starts
        for index in np.argsort(sizes, kind="stable").tolist():
            bytes_left -= int(sizes[index])
            if bytes_left < 0:
                return
            start, end = int(starts[index]), int(ends[index])
            part = memory.data[start - memory.base : end - memory.base]
            yield ("global", start, end), _words(part)


def _words(data: NDArray[np.uint8]) -> _Words:
    flat = data.reshape(-1)
    return flat if flat.size % 8 else flat.view(np.uint64)


_PATIENCE = 2048  # steps that a waiting fibre is passed over, at first
_LEAST_PATIENCE = 8
_WIDTH = 1024  # threads whose block takes about as long as that of one
_STEPS_OF_A_BYTE = 4  # basic blocks of a loop, some of whose threads may be idle
_CHANGE = 8  # blocks that take about as long as going from one fibre to another
_APART = 8  # blocks that a fibre executes between two changes where threads diverge
_PLACES_APART = 8  # at which others of them wait meanwhile
_LEAST_RUN = 64  # steps that a fibre runs on for when it has waited for too long
_LONG = 65536  # work after which threads may be going round for ever


class Scheduler(RunQueue):
    """Runs the threads of `blocks` to their end.

    Attributes:
        are_alone: whether all other threads of the launch have ended.
        waiting: fibres that wait for others, or for a time.
        lanes: runs fibres of few threads, where nothing needs to look at every access.
    """

    successor: Fibre | None
    steps: int
    work: int
    are_alone: bool

    def __init__(self, blocks: ResidentBlocks, code: KernelCode) -> None:
        super().__init__(blocks)
        self._code = code
        skipped = (
            SkippedBarriers(code, self.alive)
            if blocks.launch.limits.check_synchronisation
            else None
        )
        self._functions: SkippedBarriers | BlockFunctions = skipped or code.blocks
        self.lanes: LaneRunner | None = None if skipped else lane_runner(self, code)
        self._few = self.lanes.most if self.lanes is not None else 0
        self.waiting: WaitingFibres = self._waits(skipped)
        self._counted = 0
        self._changes = 0
        self._patience = _PATIENCE
        self._deadline = _PATIENCE
        self.are_alone = False
        self._endless = Livelock(self, self.waiting.timed_waits)
        self._progress = Progress(self)
        # Half of the limit is the stretch of work that must show progress.
        self._stretch = (blocks.launch.limits.max_steps + 1) // 2
        self._allowed = blocks.launch.limits.max_steps - self._stretch
        self._begin()

    def _waits(self, skipped: SkippedBarriers | None) -> WaitingFibres:
        return WaitingFibres(self, skipped)

    def _begin(self) -> None:
        """Make the first fibres."""
        self.wait(Fibre(self, list(self._code.functions[0].zeros), None, self.alive), 0)

    def run(self, turn: int = ENDLESS) -> bool:
        """Execute all threads to their end, or about `turn` basic blocks; whether they ended.

        Raises:
            EmulationFault: what the kernel did wrong.
        """
        try:
            return self._go_on(turn)
        except ObserverExhausted as error:
            where = self.blocks.where(None, self._code.first_of(self._place[-1]))
            raise Runaway(str(error), where) from None

    def _go_on(self, turn: int) -> bool:
        self._turn_end = self.steps + turn
        if self.steps and self._heap:  # a turn may be shorter than the patience
            self._resolve()
            self._run(*self._longest_waiting(), _LEAST_RUN)
            self._run_released()
        while self._heap or self._resolve():
            if self._heap:  # released fibres may have ended at once
                fibre, block, quantum = self._next()
                self._run(fibre, block, quantum)
                self._run_released()
                self._changes += 1
                if self.steps >= self._counted + _PATIENCE:
                    self._check_time(fibre, block)
            if self.steps >= self._turn_end:
                return False
        self.blocks.finish()
        return True

    def _resolve(self) -> bool:
        """Release the fibres whose wait is over; return whether there were any."""
        are_released = self.waiting.resolve()
        self._run_released()
        return are_released

    def _run_released(self) -> None:
        """Execute one block of each released fibre; it then waits for its turn."""
        while self.released:
            fibre, block = self.released.pop(0)
            fibre.written |= self._code.defined[block]
            following = self._step(fibre, block)
            if self.successor is not None:
                fibre, self.successor = self.successor, None
            if following != GONE:
                self.wait(fibre, following)

    def _step(self, fibre: Fibre, block: int) -> int:
        """Execute one block of a fibre."""
        if self.lanes is not None and (fibre.count <= self._few or fibre.rows is not None):
            return self.lanes.run(fibre, block, 0)
        return self._functions[block](fibre, fibre.regs)

    def _next(self) -> tuple[Fibre, int, int]:
        """The fibre with the smallest place, merged with all that wait there; its quantum."""
        key = heappop(self._heap)
        return (*self._merged(key, self._runnable.pop(key)), 0)

    def _merged(self, key: Key, fibres: list[Fibre]) -> tuple[Fibre, int]:
        block = key[-1]
        live = self._code.live[block]
        fibre = fibres[0] if len(fibres) == 1 else merge(fibres, live)
        fibre.tidy(block)
        return fibre, block

    def _run(self, fibre: Fibre, block: int, quantum: int) -> None:
        """Execute a fibre until it ends, waits, or another one has a smaller place.

        With a quantum, other fibres are not looked at for that many steps.
        """
        code = self._code
        functions, defined, pure, live = self._functions, code.defined, code.is_pure, code.live
        heap, few, lanes = self._heap, self._few, self.lanes
        budget = quantum
        while True:
            if fibre.present is not None and not pure[block]:
                fibre.compact(live[block])
            self.steps += 1
            self._place = (*fibre.prefix, block)
            fibre.written |= defined[block]
            is_partial = fibre.rest is not None
            if fibre.count <= few or fibre.rows is not None:
                assert lanes is not None  # there are no few else
                steps_left = 0 if budget else self._deadline - self.steps + 1
                following = lanes.run(fibre, block, steps_left)
            else:
                following = functions[block](fibre, fibre.regs)
            if self.successor is not None:
                fibre, self.successor = self.successor, None
            if following == GONE:
                return
            block = following
            if is_partial:  # it lacks registers, which it needs no more if it meets the others
                self.wait(fibre, block)
                return
            if self.steps >= self._deadline:
                self._deadline = self.steps + self._patience
                self._check_time(fibre, block)
                if self.steps >= self._turn_end:
                    self.wait(fibre, block)
                    return
                if heap or self.released or self.waiting.anyone:
                    starved = self._let_others(fibre, block)
                    if starved is None:
                        return
                    fibre, block = starved
                    budget = max(_LEAST_RUN, self._patience)
                    continue
            if budget:
                budget -= 1
                continue
            if heap and heap[0] <= (*fibre.prefix, block):
                self.wait(fibre, block)
                return

    def _let_others(self, fibre: Fibre, block: int) -> tuple[Fibre, int] | None:
        """After long patience: release what can be; gives the fibre that waited for too long."""
        self.wait(fibre, block)
        self._resolve()
        if min(fibres[0].tick for fibres in self._runnable.values()) > self.steps - self._patience:
            return None
        self._patience = max(_LEAST_PATIENCE, self._patience // 2)
        return self._longest_waiting()

    def _longest_waiting(self) -> tuple[Fibre, int]:
        """The fibre that has waited longest for its turn, merged with all at its place."""
        return self._taken(min(self._runnable, key=lambda key: self._runnable[key][0].tick))

    def _taken(self, key: Key) -> tuple[Fibre, int]:
        """The fibre at a place, whichever place has the smallest number."""
        self._heap.remove(key)
        heapify(self._heap)
        return self._merged(key, self._runnable.pop(key))

    def _check_time(self, fibre: Fibre, block: int) -> None:
        """Count the work since the last time, as if this fibre had done it all."""
        self.work += (self.steps - self._counted) * (1 + fibre.n // _WIDTH)
        self.work += self._changes * _CHANGE
        is_changing = self._changes * _APART > self.steps - self._counted
        if self.lanes is not None and is_changing and len(self._heap) >= _PLACES_APART:
            self.lanes.are_apart()
            self._few = self.lanes.most
        self._counted, self._changes = self.steps, 0
        if self.blocks.accesses is not None:
            # Progress shows in memory, where chunks of other threads write, too.
            self.blocks.accesses.require_going_on(may_go_on=self.work <= self._allowed)
        # At the end of a turn other threads may change what these wait for.
        is_long = self.work > _LONG and (self.are_alone or self._turn_end >= ENDLESS)
        if is_long and self._endless.is_here(fibre, block):
            raise EndlessLoop(
                f"{self.alive} threads go round for ever: no register and no memory of theirs"
                f" changes any more; {fibre.count} of them are here",
                fibre.where_of_block(block),
            )
        if self.work > self._allowed:
            memory = self._time_for_memory()
            if self._stretch < memory and self.work <= memory:
                self._stretch = self._allowed = memory
            elif not self._progress.is_made():
                raise Runaway(
                    f"no end after {self.work} steps, the last {self._stretch} without progress\n"
                    "  no thread exited, and no word of memory changed for the first time\n"
                    "  if the kernel is only long, raise the limit of"
                    f" {self.blocks.launch.limits.max_steps}: Limits(max_steps=...), "
                    "CUDADRV_EMULATOR_STEPS, or emulate --steps",
                    fibre.where_of_block(block),
                )
            else:
                self._allowed = self.work + self._stretch

    def _time_for_memory(self) -> int:
        """Return the work of a kernel whose threads read each byte of the device's memory."""
        starts, ends = self.blocks.launch.memory.bounds()
        return int((ends - starts).sum()) * _STEPS_OF_A_BYTE // _WIDTH
