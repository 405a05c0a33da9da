"""Events, as the emulator keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .contexts import Context
    from .graphs import Tip
    from .shared_file import SharedFile
    from .streams import StreamCapture
    from .timeline.queues import QueuedOperation
    from .timeline.timestamp import Clock


@dataclass(eq=False, slots=True)
class Event:
    """An event.

    Attributes:
        time_ns: host clock when it was last recorded; None if it never was, or that was queued.
        operation: its last record, if that was queued.
        clock: what is over when its last record is reached, where accesses are compared.
        capture: the capture in which it was last recorded, and `tip` the place there.
        file: what says to other processes that it lives, once they may open it.
        is_shared: whether another process has it too, or may open it.
    """

    handle: int
    context: Context
    flags: int
    time_ns: int | None = None
    operation: QueuedOperation | None = None
    clock: Clock | None = None
    capture: StreamCapture | None = None
    tip: Tip = frozenset()
    file: SharedFile | None = None
    is_shared: bool = False

    @property
    def reached_ns(self) -> int | None:
        """Host clock when the last record was reached; None if there was none."""
        return self.time_ns if self.operation is None else self.operation.ended_ns
