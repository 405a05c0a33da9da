"""The search for livelocks: threads that loop with the same registers and memory for ever.

A thread's next steps depend on its place, its registers and memory alone, unless it reads a clock,
or memory that others write meanwhile. There, nothing is reported.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from ptx.emulate.exec.sync.timed_waits import TimedWaits
from ptx.emulate.threads.fibre import Fibre, Key, RunQueue

_MOST_BYTES = 64 << 20  # of memory in use; to look at more takes longer than a step
_LOOKS = 64  # how often one state is compared with what follows


class Livelock:
    """Compares the threads of a chunk with their state some time ago."""

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
        places = sorted((place, each.count) for place, each in fibres)
        is_near = bool(fibres) and places == self._places and alive == self._alive
        if is_near and self._are_same(fibres):
            return self._is_memory_same()
        self._looks = (self._looks + 1) % _LOOKS
        if self._looks == 1:
            self._alive, self._places = alive, places
            self._registers = {
                (place, each.lane_numbers().tobytes()): list(_registers(each, code.live[place[-1]]))
                for place, each in fibres
            }
            self._memory, self._since = (), self._queue.steps
        return False

    def _is_memory_same(self) -> bool:
        """Return whether memory is as it was with these registers; store it the first time."""
        # Who has not run since may be the one that the others wait for.
        if any(each.tick <= self._since for _, each in self._queue.runnable):
            return False
        # Others write what is elsewhere. It is asked late, as code may have thousands of sites.
        if any(site.is_elsewhere for site in self._queue.blocks.code.sites):
            return False
        before, self._memory = self._memory, self._sums()
        self._since = self._queue.steps
        if before and before != self._memory:
            self._places = []  # they change memory: wait for the next state, as sums take long
        return before == self._memory

    def _fibres(self, fibre: Fibre, block: int) -> list[tuple[Key, Fibre]]:
        """Return the fibres with their places; none where callers' registers are not at hand."""
        fibres = [((*fibre.prefix, block), fibre), *self._queue.runnable]
        return [] if any(each.calls for _, each in fibres) else fibres

    def _are_same(self, fibres: list[tuple[Key, Fibre]]) -> bool:
        """Return whether all registers are as they were; the first change ends the comparison."""
        live = self._queue.blocks.code.live
        for place, each in fibres:
            before = self._registers.get((place, each.lane_numbers().tobytes()))
            if before is None:
                return False
            now = _registers(each, live[place[-1]])
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
