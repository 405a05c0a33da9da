"""The limit of a process's addresses (`ulimit -v`), to which the memory of devices is fitted.

Batch systems and sandboxes set it. The memory of a device is reserved whole and committed where it
is written, so that a device of 16 GiB needs the addresses alone.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ptx.emulate import AddressSpaceExhausted

from .profiles import EmulatedDevice

# Of the free addresses, devices take one in so many. Checks have flags and stamps for each byte.
_SHARE: Final = 2
_SHARE_WITH_CHECKS: Final = 16
_LEAST: Final = 16 << 20
"""Bytes; a smaller device serves no program."""
_UNLIMITED: Final = 1 << 62


def fitted(devices: Sequence[EmulatedDevice], *, has_checks: bool) -> list[EmulatedDevice]:
    """Return the devices, with less memory where the process may not have as many addresses.

    A smaller size is a power of two, so that it depends little on what else the process has.

    Raises:
        AddressSpaceExhausted: so little is left that no program would run.
    """
    share = max(1, len(devices)) * (_SHARE_WITH_CHECKS if has_checks else _SHARE)
    most = _free_addresses() // share
    if any(device.total_memory > most for device in devices):
        gc.collect()  # unused devices may wait in reference cycles
        most = _free_addresses() // share
    if most < _LEAST:
        raise AddressSpaceExhausted(_LEAST * share)
    most = 1 << (most.bit_length() - 1)
    return [
        replace(device, total_memory=most) if device.total_memory > most else device
        for device in devices
    ]


def _free_addresses() -> int:
    """Return how many addresses the process may still reserve; very many without a limit."""
    try:
        import resource
    except ImportError:  # Windows
        return _UNLIMITED
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return _UNLIMITED
    try:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # a system without /proc
        used = 0
    return max(0, limit - used)
