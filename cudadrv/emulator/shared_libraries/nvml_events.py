"""Sets of NVML events: of an emulated device the faults of its kernels, as Xid errors.

NVML API Reference Guide, "Event Handling Methods".
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...driver._api import CUresult
from ..call_error import Failure
from ..device_state import DeviceState

XID: Final = 0x8  # nvmlEventTypeXidCriticalError
_BAD_ADDRESS, _OTHER = 31, 13  # Xid numbers; driver 580 has 31 for CUDA_ERROR_ILLEGAL_ADDRESS
_PAUSE_S: Final = 0.002


class Xid(NamedTuple):
    """A fault of a device."""

    device: DeviceState
    number: int


@dataclass(eq=False, repr=False, slots=True)
class _EventSet:
    # The devices, each with the fault that was known before.
    registered: dict[DeviceState, Failure | None] = field(default_factory=dict)


class EventSets:
    """The sets of a process, by their handles."""

    def __init__(self) -> None:
        self._sets: dict[int, _EventSet] = {}
        self._handles: Iterator[int] = itertools.count(0x2000, 0x10)

    def create(self) -> int:
        """Return the handle of a new set."""
        handle = next(self._handles)
        self._sets[handle] = _EventSet()
        return handle

    def free(self, handle: int) -> bool:
        """Remove a set; return whether there was one."""
        return self._sets.pop(handle, None) is not None

    def register(self, handle: int, device: DeviceState) -> bool:
        """Add the later faults of a device to a set; return whether there is such a set."""
        found = self._sets.get(handle)
        if found is not None:
            found.registered[device] = device.fault
        return found is not None

    def wait(self, handle: int, milliseconds: int) -> Xid | None:
        """Return the next fault of the set's devices, None after this time.

        Raises:
            KeyError: there is no such set.
        """
        registered = self._sets[handle].registered
        end = time.monotonic() + milliseconds / 1000
        while True:
            for device, known in list(registered.items()):
                fault = device.fault
                registered[device] = fault
                if fault is not None and fault is not known:
                    is_address = fault.code == CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
                    return Xid(device, _BAD_ADDRESS if is_address else _OTHER)
            if time.monotonic() >= end:
                return None
            time.sleep(_PAUSE_S)
