"""Fibres that wait for a time: in `nanosleep`, or at most so long for an mbarrier object's phase.

PTX ISA, "nanosleep", "mbarrier.try_wait". A wait also ends when its phase is over. If every thread
of a chunk sleeps, the device's clock skips to the earliest wake-up time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ptx.emulate.exec.merge import merge
from ptx.emulate.exec.sync.mbarrier import Awaited, mbarriers_of
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.threads.fibre import GONE, Fibre, RunQueue
from ptx.isa.model import Instruction

_TEST_NS = 1_000  # `test_wait` does not block; it is delayed only to let others continue
_TRY_NS = 20_000_000  # "a system-dependent time limit"
_SLOWEST_TEST_NS = 1_000_000
_SLEEP_STEPS = 8  # count of a sleep towards `Limits.max_steps`: it takes as long
_MOST_ROUNDS = 10_000  # of waits that end by time, while no mbarrier object changes


@dataclass(slots=True)
class TimedWait:
    """A fibre that waits until a time, in nanoseconds; `awaited`: or until those phases are over.

    One that waited for phases executes `block` again.
    """

    fibre: Fibre
    block: int
    until: int
    instruction: Instruction | None
    awaited: Awaited | None = None


class TimedWaits:
    """The fibres of one chunk that wait for a time."""

    def __init__(self, queue: RunQueue) -> None:
        self._queue = queue
        self._blocks = queue.blocks
        self._clock = queue.blocks.launch.clock
        self._rounds = 0
        self._seen = (-1, -1)
        self.waits: list[TimedWait] = []

    # Called by generated code.

    def sleep(self, fibre: Fibre, nanoseconds: Value, block: int) -> int:
        """`nanosleep`: the fibre continues at `block` after the longest of its times."""
        until = self._clock.nanoseconds() + int(np.max(nanoseconds))
        instruction = self._blocks.code.last[block - 1]
        self._queue.steps += _SLEEP_STEPS
        self.waits.append(TimedWait(fibre, block, until, instruction))
        return GONE

    def wait(
        self,
        fibre: Fibre,
        addresses: Addresses,
        offset: int,
        site: Site,
        phase_operand: Value,
        parity: bool,
        limit: Value | None,
        block: int,
        *,
        acquires: bool = True,
    ) -> Value | None:
        """`mbarrier.test_wait` and `.try_wait`: whether the phases are over.

        None where the fibre waits; then `block` is executed again. `limit` is in nanoseconds; 0 is
        that of `test_wait`, None that of `try_wait`. It `acquires` unless it is `.relaxed`.
        """
        barriers = mbarriers_of(self._blocks)
        awaited = barriers.awaited(fibre, addresses, offset, site, phase_operand, parity)
        are_complete = barriers.has_passed(awaited)
        if are_complete.all() or fibre.released:
            barriers.take(fibre, awaited, are_complete, acquires=acquires)
        if are_complete.all():
            fibre.released = False
            return np.bool_(True)
        if fibre.released:
            fibre.released = False
            return are_complete if are_complete.any() else np.bool_(False)
        longest = _TRY_NS if limit is None else int(np.max(limit))
        until = self._clock.nanoseconds() + (longest or self._test_limit)
        wait = TimedWait(fibre, block, until, site.instruction, awaited)
        if are_complete.any():
            self._queue.wait(self._part(wait, are_complete.nonzero()[0]).fibre, block)
            wait = self._part(wait, (~are_complete).nonzero()[0])
        self.waits.append(wait)
        return None

    # Called by the scheduler.

    @property
    def phase_waits(self) -> list[TimedWait]:
        """Return the waits for a phase."""
        return [wait for wait in self.waits if wait.awaited is not None]

    @property
    def counts(self) -> bool:
        """True if waits have ended in vain, and are counted here."""
        return self._rounds > 0

    def resolve(self) -> bool:
        """Wake threads whose time or phase is over; return whether there were any."""
        if not self.waits:
            return False
        now = self._clock.nanoseconds()
        waits, self.waits = self.waits, []
        late: list[TimedWait] = []
        woken = False
        for wait in waits:
            unfinished = self._wake_passed(wait)
            woken |= unfinished is not wait
            if unfinished is None:
                continue
            if unfinished.until > now:
                self.waits.append(unfinished)
            elif unfinished.awaited is None:
                self._queue.wait(unfinished.fibre, unfinished.block)
                woken = True
            else:
                late.append(unfinished)
        if late and self._is_hopeless():
            self.waits += late
            return woken
        self._release(late)
        return woken or bool(late)

    def skip_time(self) -> bool:
        """Skip to the earliest time and wake that wait; False after too many vain ones."""
        if not self.waits:
            return False
        self._clock.skip_to(min(wait.until for wait in self.waits))
        return self.resolve()

    def _is_hopeless(self) -> bool:
        """Return whether only waits for phases are left, and they have ended in vain too often."""
        state = (mbarriers_of(self._blocks).version, self._queue.alive)
        if state != self._seen:
            self._seen, self._rounds = state, 0
        can_continue = self._queue.has_runnable or any(wait.awaited is None for wait in self.waits)
        return self._rounds > _MOST_ROUNDS and not can_continue

    @property
    def _test_limit(self) -> int:
        """The time limit of `test_wait` in nanoseconds, which grows while nothing changes."""
        return min(_TEST_NS << min(self._rounds, 20), _SLOWEST_TEST_NS)

    def _wake_passed(self, wait: TimedWait) -> TimedWait | None:
        """Release threads whose phase is over; return the rest of the wait."""
        awaited = wait.awaited
        if awaited is None:
            return wait
        barriers = mbarriers_of(self._blocks)
        is_released = barriers.has_passed(awaited) | barriers.is_gone(awaited)
        if not is_released.any():
            return wait
        if is_released.all():
            self._queue.wait(wait.fibre, wait.block)
            return None
        self._queue.wait(self._part(wait, is_released.nonzero()[0]).fibre, wait.block)
        return self._part(wait, (~is_released).nonzero()[0])

    def _part(self, wait: TimedWait, positions: Index) -> TimedWait:
        """The wait for some of its threads."""
        fibre = wait.fibre.subset(positions, self._blocks.code.live[wait.block])
        assert wait.awaited is not None
        awaited = wait.awaited.part(positions)
        return TimedWait(fibre, wait.block, wait.until, wait.instruction, awaited)

    def _release(self, late: list[TimedWait]) -> None:
        """End waits whose time is over before their phase; those of one place together."""
        if not late:
            return
        self._rounds += 1
        blocks = self._blocks
        for key in dict.fromkeys((*wait.fibre.prefix, wait.block) for wait in late):
            fibres = [wait.fibre for wait in late if (*wait.fibre.prefix, wait.block) == key]
            fibre = fibres[0] if len(fibres) == 1 else merge(fibres, blocks.code.live[key[-1]])
            fibre.released = True
            self._queue.released.append((fibre, key[-1]))
