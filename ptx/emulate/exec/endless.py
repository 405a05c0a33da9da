"""Whether threads go round for ever: at the same places, with the same registers and memory.

What a thread does next depends on those alone, unless it reads a clock, or memory that others write
meanwhile: where there is such, nothing is said.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptx.emulate.exec.fibre import Fibre
from ptx.emulate.exec.lane.row_fibres import value_in

if TYPE_CHECKING:
    from ptx.emulate.exec.scheduler import Scheduler

_MOST_BYTES = 64 << 20  # of memory in use; to look at more takes longer than a step
_LOOKS = 64  # how often one state is compared with what follows

Place = tuple[int, ...]


class EndlessWait:
    """What the threads of a chunk were like some time ago."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._state: tuple[object, ...] = ()
        self._memory: tuple[int, ...] = ()
        self._looks = 0
        self._since = 0

    def is_here(self, fibre: Fibre, block: int) -> bool:
        """Whether all is as it was, though threads have run; `fibre` is about to run a block."""
        blocks, waits = self._scheduler.blocks, self._scheduler.waiting.timed_waits
        code, memory = blocks.code, blocks.launch.memory
        if (
            code.reads_clock
            or memory.used_bytes > _MOST_BYTES
            or waits.waits
            or waits.counts
            or any(site.is_elsewhere for site in code.sites)
        ):
            return False
        state = tuple(self._fibres(fibre, block))
        if self._looks and state == self._state:
            # Who has not run since may be the one that the others wait for.
            all_ran = all(each.tick > self._since for _, each in self._scheduler.runnable)
            return all_ran and bool(state) and self._sums() == self._memory
        self._looks = (self._looks + 1) % _LOOKS
        if self._looks == 1:
            self._state, self._memory = state, self._sums()
            self._since = self._scheduler.steps
        return False

    def _fibres(self, fibre: Fibre, block: int) -> Iterator[object]:
        """Who is where with which registers; nothing where a caller's registers are not at hand."""
        fibres = [((*fibre.prefix, block), fibre)]
        fibres += self._scheduler.runnable
        if any(each.calls for _, each in fibres):
            return
        live = self._scheduler.blocks.code.live
        yield self._scheduler.alive
        for place, each in sorted(fibres, key=lambda found: found[0]):
            yield place, each.count, each.lane_numbers().tobytes()
            for number in live[place[-1]]:
                value = value_in(each, number)
                yield value.shape, value.tobytes()

    def _sums(self) -> tuple[int, ...]:
        blocks = self._scheduler.blocks
        memory = blocks.launch.memory
        starts, ends = memory.bounds()
        sums = [zlib.crc32(blocks.shared.data), zlib.crc32(blocks.local.data)]
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            part = memory.data[start - memory.base : end - memory.base]
            sums.append(zlib.crc32(part.data))
        return memory.version, *sums
