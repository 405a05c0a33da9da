"""Contexts: the devices' primary ones and those that are created."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .emulated_device import DeviceState


@dataclass(eq=False, slots=True)
class Context:
    """A context.

    The primary context of a device has one handle for ever, and a new `Context` each time it
    becomes active.

    Attributes:
        retained: how often a primary context is retained.
    """

    handle: int
    device: DeviceState
    flags: int
    primary: bool
    retained: int = 0
    destroyed: bool = False
