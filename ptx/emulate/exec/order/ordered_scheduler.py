"""The scheduler of a chunk whose threads run in parts, in an order that is drawn.

Fibres of two parts never become one: the number of its part stands in front of a fibre's place. So
a part runs as far as it may before the next one does, unless a draw lets another one go on.
"""

from __future__ import annotations

from heapq import heapify
from typing import TYPE_CHECKING, Final

from ptx.emulate.exec.fibre import Fibre
from ptx.emulate.exec.order.division import parts_of
from ptx.emulate.exec.scheduler import Scheduler

if TYPE_CHECKING:
    from ptx.emulate.exec.resident_blocks import ResidentBlocks
    from ptx.emulate.model.order import Decisions

_PASSED_OVER: Final = 4  # one time in so many the fibre whose turn it is is passed over
_LONGEST_RUN: Final = 5  # and another one runs for up to 2**5 basic blocks


class OrderedScheduler(Scheduler):
    """Runs the threads of `blocks`; in parts, with at most `groups` of warps, unless that is 0."""

    def __init__(self, blocks: ResidentBlocks, decisions: Decisions, groups: int) -> None:
        self._decisions = decisions
        self._groups = groups
        super().__init__(blocks)

    def give_way(self) -> None:
        """End the turn after this basic block."""
        self._deadline = self._turn_end = self.steps

    def _begin(self) -> None:
        if not self._groups:
            super()._begin()
            return
        self._patience = 1 << 3 + self._decisions.below(8)
        self._deadline = self._patience
        parts = parts_of(self.blocks.geometry, self._groups, self._decisions)
        for number, lanes in enumerate(parts):
            fibre = Fibre(self, list(self._code.zeros[0]), lanes, len(lanes))
            fibre.prefix = (number,)
            self.wait(fibre, 0)

    def _next(self) -> tuple[Fibre, int, int]:
        if not self._groups or not self._decisions.early(_PASSED_OVER):
            return super()._next()
        keys = sorted(self._runnable)
        key = keys[self._decisions.below(len(keys))]
        self._heap.remove(key)
        heapify(self._heap)
        quantum = 1 << self._decisions.below(_LONGEST_RUN + 1)
        return (*self._merged(key, self._runnable.pop(key)), quantum)
