"""What memory holds where there is a timeline: no zeros, and no numbers that could be right."""

from __future__ import annotations

import ctypes
from typing import Final

FRESH: Final = 0xCD
"""Each byte of memory that nobody has written yet."""
FREED: Final = 0xDD
"""Each byte of memory that was freed."""
# Of one allocation; the host has that much less for each device.
_MOST_BYTES: Final = 64 << 20


def fill(address: int, nbytes: int, pattern: int) -> None:
    """Write a pattern over host memory, or over the start of much."""
    ctypes.memset(address, pattern, min(nbytes, _MOST_BYTES))
