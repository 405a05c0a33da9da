"""What threads began on tensor memory, each thread's in its order: `tcgen05.mma`, `tcgen05.cp`.

PTX ISA, "Pipelined tcgen05 Instructions". It is done when an mbarrier object is waited for that the
thread told of it by `tcgen05.commit`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ptx.emulate.model.order import Decisions
    from ptx.emulate.threads.fibre import Fibre

Work = Callable[[], None]
_EARLY: Final = 4  # one time in so many something is done before it must


class TensorWork:
    """The work of every thread of a chunk."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions
        self._waiting: dict[int, deque[Work]] = {}
        self._done: dict[int, int] = {}

    def add(self, fibre: Fibre, works: list[Work]) -> None:
        """Begin one piece of work of each thread."""
        for lane, work in zip(fibre.lane_numbers().tolist(), works, strict=True):
            self._waiting.setdefault(lane, deque()).append(work)
        if self._decisions.early(_EARLY):
            lanes = [lane for lane, works in self._waiting.items() if works]
            self._finish_one(lanes[self._decisions.below(len(lanes))])

    def committed(self, fibre: Fibre) -> Work:
        """What finishes all that these threads have begun until now."""
        ends = {
            lane: self._done.get(lane, 0) + len(self._waiting.get(lane, ()))
            for lane in fibre.lane_numbers().tolist()
        }

        def finish() -> None:
            for lane, end in ends.items():
                while self._done.get(lane, 0) < end:
                    self._finish_one(lane)

        return finish

    def finish(self) -> None:
        """Finish all work of all threads."""
        for lane, works in self._waiting.items():
            while works:
                self._finish_one(lane)

    def _finish_one(self, lane: int) -> None:
        self._done[lane] = self._done.get(lane, 0) + 1
        self._waiting[lane].popleft()()
