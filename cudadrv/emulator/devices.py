"""The devices of an emulator, by their ordinals, identifiers and addresses."""

from __future__ import annotations

from collections.abc import Sequence

from ..driver._api import CUdevice, CUresult
from .call_error import CallError
from .device_state import DeviceState


class Devices:
    """The devices that calls may use.

    Attributes:
        visible: by ordinal.
        all: also those that CUDA_VISIBLE_DEVICES hides.
    """

    __slots__ = ("all", "visible")

    def __init__(self, devices: tuple[DeviceState, ...]) -> None:
        self.all: tuple[DeviceState, ...] = devices
        self.visible: tuple[DeviceState, ...] = devices
        self._connect()

    def show(self, devices: Sequence[DeviceState]) -> None:
        """Make these the visible devices, and count their ordinals anew."""
        for ordinal, device in enumerate(devices):
            device.ordinal = ordinal
        self.visible = tuple(devices)
        self._connect()

    @property
    def any_broken(self) -> bool:
        """Whether a kernel's fault has broken a visible device."""
        return any(device.fault for device in self.visible)

    def _connect(self) -> None:
        for device in self.visible:
            device.others = tuple(other for other in self.visible if other is not device)

    def of(self, handle: CUdevice) -> DeviceState:
        """Return the device of a handle, which is its ordinal."""
        return self.at(int(handle))

    def at(self, ordinal: int) -> DeviceState:
        """Return the device of an ordinal."""
        if not 0 <= ordinal < len(self.visible):
            raise CallError(
                CUresult.CUDA_ERROR_INVALID_DEVICE,
                f"invalid device ordinal: {ordinal} of {len(self.visible)} devices",
            )
        return self.visible[ordinal]

    def named(self, uuid: bytes) -> DeviceState:
        """Return the device of an identifier."""
        for device in self.visible:
            if device.uuid == uuid:
                return device
        raise CallError(
            CUresult.CUDA_ERROR_INVALID_DEVICE, "it is of a device that is none of these"
        )

    def holding(self, address: int) -> DeviceState | None:
        """Return the device whose memory contains an address."""
        for device in self.visible:
            if device.holds(address):
                return device
        return None
