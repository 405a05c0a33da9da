"""The scheduler of a chunk whose threads run in parts, in an order that is drawn.

Fibres of two parts never become one: the number of its part stands in front of a fibre's place. So
a part runs as far as it may before the next one does, unless a draw lets another one go on.
"""

from __future__ import annotations

from typing import Final

from ptx.emulate.exec.kernel_code import KernelCode
from ptx.emulate.exec.order.division import parts_of
from ptx.emulate.exec.order.ordered_blocks import LateCopies, OrderedBlocks
from ptx.emulate.exec.scheduler import Scheduler
from ptx.emulate.exec.sync.passed_by import PassedBy
from ptx.emulate.exec.sync.waiting import WaitingFibres
from ptx.emulate.threads.fibre import ENDLESS, Fibre, RunQueue

_PASSED_OVER: Final = 4  # one time in so many the fibre whose turn it is is passed over
_MOST_HIDDEN_TURNS: Final = 32  # that stores are not seen: in the end every store is
_SHOWN: Final = 8  # one time in so many they are seen earlier
_LONGEST_RUN: Final = 5  # and another one runs for up to 2**5 basic blocks


class OrderedWaits(WaitingFibres):
    """The fibres of one chunk that wait; copies that they wait for land when nothing else runs."""

    def __init__(
        self, queue: RunQueue, passed_by: PassedBy | None, late_copies: LateCopies
    ) -> None:
        super().__init__(queue, passed_by)
        self._late_copies = late_copies

    def resolve(self) -> bool:
        """Release what is complete; whether anything was.

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

    def _waits(self, passed_by: PassedBy | None) -> WaitingFibres:
        return OrderedWaits(self, passed_by, self._late_copies)

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
        """The launch is over: all of it has been stored."""
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
            fibre = Fibre(self, list(self._code.zeros[0]), lanes, len(lanes))
            fibre.prefix = (number,)
            self.wait(fibre, 0)

    def _next(self) -> tuple[Fibre, int, int]:
        if not self._groups or not self._decisions.early(_PASSED_OVER):
            return super()._next()
        keys = sorted(self._runnable)
        key = keys[self._decisions.below(len(keys))]
        return (*self._taken(key), 1 << self._decisions.below(_LONGEST_RUN + 1))
