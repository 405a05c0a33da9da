"""Streams and events, as the emulator keeps them.

Every operation runs at its call, which is one of the orders that streams allow; so a stream keeps
no queue, and an event is complete once it is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .capture import Capture, Tip
    from .contexts import Context

NON_BLOCKING = 1
LEGACY_HANDLE = 1


@dataclass(eq=False, slots=True)
class Stream:
    """A stream; `capture` is the capture it takes part in, and `tip` where it stands there."""

    handle: int
    context: Context
    flags: int
    priority: int
    capture: Capture | None = None
    tip: Tip = frozenset()

    @property
    def is_legacy(self) -> bool:
        """Whether it is its context's legacy default stream."""
        return self.handle == LEGACY_HANDLE

    @property
    def is_blocking(self) -> bool:
        """Whether it and the legacy stream wait for each other."""
        return not self.flags & NON_BLOCKING


@dataclass(eq=False, slots=True)
class Event:
    """An event.

    Attributes:
        time_ns: host clock when it was last recorded; None if it never was.
        capture: the capture in which it was last recorded, and `tip` the place there.
    """

    handle: int
    context: Context
    flags: int
    time_ns: int | None = None
    capture: Capture | None = None
    tip: Tip = frozenset()
