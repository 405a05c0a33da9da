"""Memory that the library keeps and lends out again, as it tells an emulator that checks bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .emulated_device import DeviceState


class LentMemory:
    """The allocations that are in use, and those that are kept for later, of some devices.

    What is taken back is known at once, though queued work may still use it; so it serves only
    where operations run at their call.
    """

    def __init__(self, devices: Sequence[DeviceState]) -> None:
        self._devices = devices

    def lend(self, address: int, nbytes: int) -> None:
        """These bytes are in use: an allocation, or a part of one that is an array of its own."""
        for device in self._devices:
            if device.holds(address):
                memory = device.memory
                memory.given_back.pop(address, None)
                if memory.at(address) is None:
                    with device.lock:
                        allocation = memory.find(address)
                    if allocation is not None:
                        memory.parts[address] = allocation, nbytes

    def take_back(self, address: int) -> None:
        """What was lent at an address is not in use any more, though nothing is freed.

        It may come from a finalizer, and takes no lock.
        """
        for device in self._devices:
            if device.holds(address):
                allocation = device.memory.at(address)
                if allocation is not None:
                    device.memory.given_back[address] = allocation
