"""The asynchronous copies of a chunk that are under way: they land when a wait needs them.

Some are waited for by groups, others signal an mbarrier object; these land when a thread waits for
a phase of that object and nothing else lets it go on. PTX ISA, "Asynchronous Operations".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from ptx.emulate.exec.order.late_groups import LateGroups
from ptx.emulate.exec.order.tensor_work import TensorWork
from ptx.emulate.model.addresses import Index

if TYPE_CHECKING:
    from ptx.emulate.exec.sync.bulk_copy import Place
    from ptx.emulate.exec.sync.timed_waits import TimedWait
    from ptx.emulate.model.order import Decisions
    from ptx.emulate.threads.fibre import Fibre

_EARLY: Final = 4  # one time in so many a copy lands before it must


@dataclass(frozen=True, slots=True)
class _Signal:
    """A copy, and what it then tells the mbarrier objects `at` some places of shared memory."""

    at: Index
    copy: Callable[[], object]
    tell: Callable[[], object]


class LateCopies:
    """What is under way in one chunk.

    Attributes:
        copies: `cp.async`; bulk: bulk copies with groups; products: what `wgmma` reads.
        tensor_stores: `tcgen05.st`; tensor_work: `tcgen05.mma` and `tcgen05.cp`.
    """

    def __init__(self, threads: int, decisions: Decisions) -> None:
        self.copies: LateGroups = LateGroups(threads, decisions)
        self.bulk: LateGroups = LateGroups(threads, decisions)
        self.products: LateGroups = LateGroups(threads, decisions)
        self.tensor_stores: LateGroups = LateGroups(threads, decisions)
        self.tensor_work: TensorWork = TensorWork(decisions)
        self._decisions = decisions
        self._signals: list[_Signal] = []

    def add(
        self, fibre: Fibre, barrier: Place, copy: Callable[[], object], tell: Callable[[], object]
    ) -> None:
        """Begin a copy that an mbarrier object waits for."""
        at = fibre.blocks.mbarriers.places(fibre, barrier.where, barrier.offset, barrier.site)
        self._signals.append(_Signal(at, copy, tell))
        if self._decisions.early(_EARLY):
            self._land(self._signals.pop(self._decisions.below(len(self._signals))))

    def land_awaited(self, waits: list[TimedWait]) -> None:
        """Let a copy land that one of the threads waits for."""
        if not self._signals or not waits:
            return
        awaited = np.concatenate([each.awaited.at for each in waits if each.awaited is not None])
        found = [at for at, each in enumerate(self._signals) if np.isin(each.at, awaited).any()]
        if found:
            which = 0 if self._decisions.late else self._decisions.below(len(found))
            self._land(self._signals.pop(found[which]))

    def finish(self) -> None:
        """All threads have exited: finish the copies, and tell nobody."""
        signals, self._signals = self._signals, []
        for each in signals:
            each.copy()
        self.copies.finish()
        self.tensor_stores.finish()
        self.tensor_work.finish()
        self.bulk.finish()

    @staticmethod
    def _land(signal: _Signal) -> None:
        signal.copy()
        signal.tell()
