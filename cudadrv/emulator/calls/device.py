"""Initialisation, error texts and device queries.

CUDA Driver API: "Initialization", "Version Management", "Error Handling", "Device Management". CUDA
Programming Guide, "CUDA Environment Variables", and MIG User Guide, "CUDA Device Enumeration",
define which devices a process sees: of MIG instances only one. An emulated device is an instance if
its name is one of an instance.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Sequence
from typing import Final

from ...driver._api import CUdevice, CUdevice_attribute, CUresult, CUuuid
from ..call_error import OK, SUCCESS, CallError, invalid_value, result_text
from ..device_state import DeviceState
from .call import DriverCalls, call, pointer_to

_PCI_BUS_ID: Final = re.compile(
    r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-7]))?", re.IGNORECASE
)
"""Domain, bus, device and function, in hexadecimal digits."""
VISIBLE: Final = "CUDA_VISIBLE_DEVICES"


class DeviceCalls(DriverCalls):
    """Initialisation, error texts and device queries."""

    @call
    def cuInit(self, flags: int, /) -> tuple[CUresult]:
        """Initialise the driver; only flags 0 are valid, and a fork's child cannot (measured)."""
        if flags:
            raise invalid_value(f"cuInit takes flags 0, not {flags}")
        process, devices = self._state.process, self._state.devices
        process.reject_if_ended("cuInit")
        if process.pid not in (None, os.getpid()):
            raise CallError(
                CUresult.CUDA_ERROR_NOT_INITIALIZED,
                f"initialization error: the driver was initialised in process {process.pid} "
                "before the fork",
            )
        if process.follows_environment and not self._state.handles.contexts:
            devices.show(visible_devices(devices.all, os.environ.get(VISIBLE)))
        if not devices.visible:
            why = f"{VISIBLE} lets none be seen" if devices.all else "it was given none"
            raise CallError(CUresult.CUDA_ERROR_NO_DEVICE, f"the emulator has no devices: {why}")
        process.pid = os.getpid()
        return OK

    def follow_environment(self) -> None:
        """Let CUDA_VISIBLE_DEVICES select the devices, as with the driver.

        Each cuInit before the first context reads it. Ordinals count visible devices.
        """
        self._state.process.follows_environment = True

    @call
    def cuDriverGetVersion(self) -> tuple[CUresult, int]:
        """Return 1000 × major + 10 × minor."""
        major, minor = self._state.process.driver_version
        return SUCCESS, 1000 * major + 10 * minor

    def cuGetErrorString(self, error: CUresult, /) -> tuple[CUresult, bytes | None]:
        """Return the text of a result; after this thread's failed call with it, the reason."""
        failure = self._state.thread.failure
        if failure is not None and failure.code == error and failure.text:
            return SUCCESS, failure.text.encode()
        try:
            return SUCCESS, result_text(CUresult(int(error))).encode()
        except ValueError:
            return CUresult.CUDA_ERROR_INVALID_VALUE, None

    @call
    def cuDeviceGetCount(self) -> tuple[CUresult, int]:
        """Return how many devices there are."""
        return SUCCESS, len(self._state.devices.visible)

    @call
    def cuDeviceGet(self, ordinal: int, /) -> tuple[CUresult, CUdevice]:
        """Return the device of an ordinal."""
        return SUCCESS, CUdevice(self._state.devices.at(ordinal).ordinal)

    @call
    def cuDeviceGetName(self, length: int, dev: CUdevice, /) -> tuple[CUresult, bytes]:
        """Return `length` bytes: the name, cut to leave room for a NUL and padded with NULs."""
        name = self._state.devices.of(dev).profile.name.encode()
        if length < 1:
            raise invalid_value(f"a name needs room for its NUL, not {length} bytes")
        return SUCCESS, name[: length - 1].ljust(length, b"\0")

    @call
    def cuDeviceGetUuid(self, dev: CUdevice, /) -> tuple[CUresult, CUuuid]:
        """Return 16 bytes, the same in every run."""
        uuid = CUuuid()
        # cuda.bindings has no setter for the bytes, and its stub omits the address.
        ctypes.memmove(pointer_to(uuid), self._state.devices.of(dev).uuid, 16)
        return SUCCESS, uuid

    @call
    def cuDeviceGetPCIBusId(self, length: int, dev: CUdevice, /) -> tuple[CUresult, bytes]:
        """Return `length` bytes, which must have room for the whole address and its NUL."""
        text = self._state.devices.of(dev).pci_bus_id.encode()
        if length <= len(text):
            raise invalid_value(f"a PCI bus id needs {len(text) + 1} bytes, not {length}")
        return SUCCESS, text.ljust(length, b"\0")

    @call
    def cuDeviceGetByPCIBusId(self, pci_bus_id: bytes, /) -> tuple[CUresult, CUdevice]:
        """Return the device at a PCI address; its domain and its function may be left out."""
        text = pci_bus_id.decode("ascii", "replace")
        address = pci_address(text)
        if address is None:
            raise invalid_value(f"{text!r} is no PCI address, such as 0000:01:00.0")
        for device in self._state.devices.visible:
            if pci_address(device.pci_bus_id) == address:
                return SUCCESS, CUdevice(device.ordinal)
        raise CallError(CUresult.CUDA_ERROR_INVALID_DEVICE, f"no device has the address {text}")

    @call
    def cuDeviceComputeCapability(self, dev: CUdevice, /) -> tuple[CUresult, int, int]:
        """Return the major and the minor number."""
        major, minor = self._state.devices.of(dev).profile.compute_capability
        return SUCCESS, major, minor

    @call
    def cuDeviceTotalMem(self, dev: CUdevice, /) -> tuple[CUresult, int]:
        """Return the bytes of device memory."""
        return SUCCESS, self._state.devices.of(dev).profile.total_memory

    @call
    def cuDeviceGetAttribute(
        self, attrib: CUdevice_attribute, dev: CUdevice, /
    ) -> tuple[CUresult, int]:
        """Return any attribute; 0 for attributes without an equivalent in the emulator."""
        value = self._state.devices.of(dev).attributes.get(int(attrib))
        if value is None:
            raise invalid_value(f"there is no device attribute {int(attrib)}")
        return SUCCESS, value

    @call
    def cuDeviceCanAccessPeer(self, dev: CUdevice, peer_dev: CUdevice, /) -> tuple[CUresult, int]:
        """Return 1 if both devices have peer access and are not the same."""
        return SUCCESS, int(
            self._state.devices.of(peer_dev).can_be_reached_by(self._state.devices.of(dev))
        )


def pci_address(text: str) -> tuple[int, int, int, int] | None:
    """Return domain, bus, device and function of a PCI address; None if it is none."""
    match = _PCI_BUS_ID.fullmatch(text)
    if match is None:
        return None
    domain, bus, device, function = (int(part or "0", 16) for part in match.groups())
    return domain, bus, device, function


def visible_devices(devices: Sequence[DeviceState], text: str | None) -> Sequence[DeviceState]:
    """Return the devices that a text lists by number or by the beginning of their UUID, in order.

    A text that begins with the UUID of a MIG instance makes only that one visible.

    Entries after an unknown or ambiguous name are ignored. A device listed twice makes none
    visible. Without a text all are visible.
    """
    if text is None:
        return devices
    visible: list[DeviceState] = []
    for word in text.split(","):
        matches = [device for device in devices if _is_named(device, word.strip())]
        if len(matches) != 1:
            break
        if matches[0] in visible:
            return ()
        visible += matches
        if word.strip().startswith("MIG-"):
            break
    return visible


def _is_named(device: DeviceState, word: str) -> bool:
    if word.isascii() and word.isdecimal():
        return int(word) == device.number
    from uuid import UUID  # 2 ms: few programs choose devices by UUID

    kind, number = word[:4], f"{UUID(bytes=device.uuid)}"
    return kind in ("GPU-", "MIG-") and number.startswith(word[4:])
