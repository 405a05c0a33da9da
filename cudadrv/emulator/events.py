"""Events of the emulator."""

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


@dataclass(eq=False, repr=False, slots=True)
class Event:
    """An event.

    Attributes:
        time_ns: host clock when it was last recorded; None if it never was, or the record is
            queued.
        operation: its last record, if that was queued.
        clock: the work that is over when its last record is reached, if accesses are compared.
        capture: the capture in which it was last recorded, and `tip` the position there.
        file: shows other processes that it exists, once they may open it.
        is_shared: whether another process has opened it, or may.
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
