"""Fibres that time wakes: in `nanosleep`, and where they wait for a phase of an mbarrier object.

PTX ISA, "nanosleep", "mbarrier.try_wait". A wait also ends when its phase is over. Where every
thread of a chunk sleeps, the device's clock skips to the first one's time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ptx.emulate.exec.fibre import GONE, Fibre
from ptx.emulate.exec.merge import merge
from ptx.emulate.exec.sync.mbarrier_object import Awaited
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Index, Span
from ptx.emulate.model.geometry import Value

if TYPE_CHECKING:
    from ptx.emulate.exec.scheduler import Scheduler
    from ptx.isa.model import Instruction

_TEST_NS = 1_000  # `test_wait` does not block; it is late, where that lets others go on
_TRY_NS = 20_000_000  # "a system-dependent time limit"
_SLOWEST_TEST_NS = 1_000_000
_SLEEP_STEPS = 8  # what a sleep counts towards `Limits.max_steps`: it takes as long
_MOST_ROUNDS = 10_000  # of waits that end by time, while no mbarrier object changes


@dataclass(slots=True)
class Sleeper:
    """A fibre that sleeps until a time, in nanoseconds; `awaited`: or until those phases are over.

    One that waited executes `block` again.
    """

    fibre: Fibre
    block: int
    until: int
    instruction: Instruction | None
    awaited: Awaited | None = None


class Sleepers:
    """The sleeping fibres of one chunk."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._blocks = scheduler.blocks
        self._clock = scheduler.blocks.launch.device.clock
        self._rounds = 0
        self._seen = (-1, -1)
        self.asleep: list[Sleeper] = []

    # Called by generated code.

    def sleep(self, fibre: Fibre, nanoseconds: Value, block: int) -> int:
        """`nanosleep`: the fibre goes on at `block` when the longest of its times is over."""
        until = self._clock.nanoseconds() + int(np.max(nanoseconds))
        instruction = self._blocks.code.last[block - 1]
        self._scheduler.steps += _SLEEP_STEPS
        self.asleep.append(Sleeper(fibre, block, until, instruction))
        return GONE

    def wait(
        self, fibre: Fibre, where: Span, offset: int, site: Site, wanted: Value, parity: bool,
        limit: Value | None, block: int,
    ) -> Value | None:  # fmt: skip
        """`mbarrier.test_wait` and `.try_wait`: whether the phases are over.

        None where the fibre waits; then `block` is executed again. `limit` is in nanoseconds; 0 is
        that of `test_wait`, None that of `try_wait`.
        """
        barriers = self._blocks.mbarriers
        awaited = barriers.awaited(fibre, where, offset, site, wanted, parity)
        over = barriers.has_passed(awaited)
        if over.all():
            fibre.released = False
            return np.bool_(True)
        if fibre.released:
            fibre.released = False
            return over if over.any() else np.bool_(False)
        longest = _TRY_NS if limit is None else int(np.max(limit))
        until = self._clock.nanoseconds() + (longest or self._test_limit)
        sleeper = Sleeper(fibre, block, until, site.instruction, awaited)
        if over.any():
            self._scheduler.wait(self._part(sleeper, over.nonzero()[0]).fibre, block)
            sleeper = self._part(sleeper, (~over).nonzero()[0])
        self.asleep.append(sleeper)
        return None

    # Called by the scheduler.

    @property
    def waiting(self) -> list[Sleeper]:
        """Those that wait for a phase."""
        return [each for each in self.asleep if each.awaited is not None]

    def resolve(self) -> bool:
        """Wake those whose time or phase has come; whether there were any."""
        if not self.asleep:
            return False
        now = self._clock.nanoseconds()
        sleepers, self.asleep = self.asleep, []
        late: list[Sleeper] = []
        woken = False
        for sleeper in sleepers:
            rest = self._wake_passed(sleeper)
            woken |= rest is not sleeper
            if rest is None:
                continue
            if rest.until > now:
                self.asleep.append(rest)
            elif rest.awaited is None:
                self._scheduler.wait(rest.fibre, rest.block)
                woken = True
            else:
                late.append(rest)
        if late and self._is_hopeless():
            self.asleep += late
            return woken
        self._release(late)
        return woken or bool(late)

    def skip_time(self) -> bool:
        """Go on to the first sleeper's time and wake it; False where that is hopeless by now."""
        if not self.asleep:
            return False
        self._clock.skip_to(min(each.until for each in self.asleep))
        return self.resolve()

    def _is_hopeless(self) -> bool:
        """Whether all that is left are waits, which have ended in vain too often."""
        seen = (self._blocks.mbarriers.version, self._scheduler.alive)
        if seen != self._seen:
            self._seen, self._rounds = seen, 0
        others = self._scheduler.has_runnable or any(each.awaited is None for each in self.asleep)
        return self._rounds > _MOST_ROUNDS and not others

    @property
    def _test_limit(self) -> int:
        """The longer nothing has changed, the slower `test_wait` is."""
        return min(_TEST_NS << min(self._rounds, 20), _SLOWEST_TEST_NS)

    def _wake_passed(self, sleeper: Sleeper) -> Sleeper | None:
        """Let threads go whose phase is over; what is left of the sleeper."""
        awaited = sleeper.awaited
        if awaited is None:
            return sleeper
        barriers = self._blocks.mbarriers
        go = barriers.has_passed(awaited) | barriers.is_gone(awaited)
        if not go.any():
            return sleeper
        if go.all():
            self._scheduler.wait(sleeper.fibre, sleeper.block)
            return None
        self._scheduler.wait(self._part(sleeper, go.nonzero()[0]).fibre, sleeper.block)
        return self._part(sleeper, (~go).nonzero()[0])

    def _part(self, sleeper: Sleeper, positions: Index) -> Sleeper:
        """The sleeper for some of its threads."""
        fibre = sleeper.fibre.subset(positions, self._blocks.code.live[sleeper.block])
        assert sleeper.awaited is not None
        awaited = sleeper.awaited.part(positions)
        return Sleeper(fibre, sleeper.block, sleeper.until, sleeper.instruction, awaited)

    def _release(self, late: list[Sleeper]) -> None:
        """Let waits end in vain, those of one place together."""
        if not late:
            return
        self._rounds += 1
        blocks = self._blocks
        scheduler = self._scheduler
        for place in dict.fromkeys((*each.fibre.prefix, each.block) for each in late):
            fibres = [each.fibre for each in late if (*each.fibre.prefix, each.block) == place]
            fibre = fibres[0] if len(fibres) == 1 else merge(fibres, blocks.code.live[place[-1]])
            fibre.released = True
            scheduler.run_one(fibre, place[-1])
