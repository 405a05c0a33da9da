"""What a search for devices finds where there are none, and what a caller makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from .. import border
from ..errors import GpuError


class GpuPolicy(Enum):
    """What a caller makes of a machine without a device."""

    AUTO = "auto"
    """Take the devices if there are any."""
    OFF = "off"
    """Take none, and do not even look."""
    REQUIRED = "required"
    """Without a device there is nothing to do: raise."""


class AbsenceReason(Enum):
    """Why there is no device."""

    UNSUPPORTED_PLATFORM = "unsupported platform"
    NO_DRIVER = "no driver"
    NO_DEVICE = "no device"


@dataclass(frozen=True, slots=True)
class GpuAbsent:
    """There is no device, and nothing is wrong.

    Attributes:
        reason: why.
        detail: what was found, in words.
    """

    reason: AbsenceReason
    detail: str

    def __post_init__(self) -> None:
        border.instance("GpuAbsent: reason", self.reason, AbsenceReason)


@dataclass(frozen=True, slots=True)
class GpuBroken:
    """The driver or a device answers with an error; this is never reported as absence.

    Attributes:
        error: what failed; `raise_again` raises it.
    """

    error: GpuError

    def __post_init__(self) -> None:
        border.instance("GpuBroken: error", self.error, GpuError)

    def raise_again(self, prefix: str = "") -> NoReturn:
        """Raise the failure as a fresh exception, so that tracebacks do not pile up on one.

        Raises:
            GpuError: always; of the failure's class, its cause the same, its reason prefixed.
        """
        border.instance("GpuBroken.raise_again: prefix", prefix, str)
        raise type(self.error)(prefix + self.error.reason) from self.error.__cause__
