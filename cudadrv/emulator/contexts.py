"""Contexts: the devices' primary ones and those that are created."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .streams import Stream

if TYPE_CHECKING:
    from .emulated_device import DeviceState


@dataclass(eq=False, slots=True)
class Context:
    """A context.

    The primary context of a device has one handle for ever, and a new `Context` each time it
    becomes active.

    Attributes:
        retained: how often a primary context is retained.
        peers: ordinals of the devices whose memory its kernels may reach.
        legacy: the legacy default stream.
    """

    handle: int
    device: DeviceState
    flags: int
    primary: bool
    retained: int = 0
    destroyed: bool = False
    peers: set[int] = field(default_factory=set)
    legacy: Stream = field(init=False)
    _per_thread: dict[int, Stream] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.legacy = Stream(1, self, flags=0, priority=0)

    def per_thread_stream(self) -> Stream:
        """The per-thread default stream of the calling thread."""
        return self._per_thread.setdefault(
            threading.get_ident(), Stream(2, self, flags=0, priority=0)
        )
