"""Memory of cuMemCreate, which has no address until it is mapped, and multicast objects.

CUDA Driver API: "Virtual Memory Management", "Multicast Object Management". The bytes of memory lie
where it is mapped. Memory that is mapped at several addresses lies in a file, whose pages are shown
at each of them.
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..driver._api import CUmemAllocationHandleType, CUmemLocationType, CUresult
from .call_error import CallError, invalid_value
from .device_state import DeviceState
from .shared_file import DESCRIPTORS, SharedFile, new_shared_file

FABRIC: Final = int(CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_FABRIC)
HOST_UUID: Final = bytes(16)
"""Stands for the host in the names of files."""
_FABRIC_FORM: Final = struct.Struct("<8sqq16s")
_FABRIC_MARK: Final = b"cudadrv\0"
FABRIC_BYTES: Final = 64


@dataclass(eq=False, repr=False, slots=True)
class PhysicalMemory:
    """Physical memory, as cuMemCreate makes it.

    Attributes:
        device: whose memory it uses; None for memory of the host.
        handle_types: how other processes may open it, a CUmemAllocationHandleType.
        mapped: the devices in whose ranges it is mapped, by address.
        references: how many handles refer to it; at 0 it is freed once it is mapped nowhere.
        bound: how many bindings of multicast objects refer to it.
        content: its bytes while it is unmapped after a mapping; a file holds them itself.
        file: its file, if it has several addresses or other processes may open it.
        is_foreign: whether it belongs to another process, and uses none of this device's memory.
    """

    nbytes: int
    device: DeviceState | None
    handle_types: int = 0
    mapped: dict[int, DeviceState] = field(default_factory=dict)
    references: int = 1
    bound: int = 0
    content: NDArray[np.uint8] | None = None
    file: SharedFile | None = None
    is_foreign: bool = False

    @property
    def location(self) -> tuple[int, int]:
        """Its CUmemLocationType, and the number of the device or of the NUMA node."""
        if self.device is None:
            return int(CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA), 0
        return int(CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE), self.device.ordinal

    def make_file(self) -> SharedFile:
        """Return the file with its bytes, made now if there is none."""
        if self.file is None:
            uuid = HOST_UUID if self.device is None else self.device.uuid
            self.file = new_shared_file("mapped", uuid, self.nbytes)
            self._move_to(self.file)
        return self.file

    def _move_to(self, file: SharedFile) -> None:
        content = self.content
        for address, device in self.mapped.items():
            content = _bytes_at(device, address, self.nbytes)
        if content is not None:
            with mmap.mmap(file.number, self.nbytes) as pages:
                shared_bytes = np.frombuffer(pages, np.uint8)
                shared_bytes[:] = content
                del shared_bytes  # before the pages
        self.content = None
        for address, device in self.mapped.items():
            with device.lock:
                _show(file, device, address, self.nbytes)

    def map(self, device: DeviceState, address: int) -> None:
        """Map it at an address in the memory of a device."""
        if self.mapped:
            self.make_file()
        with device.lock:
            if self.file is not None:
                _show(self.file, device, address, self.nbytes)
            elif self.content is not None:
                _bytes_at(device, address, self.nbytes)[:] = self.content
                device.memory.mark_written(address, self.nbytes)
                self.content = None
        self.mapped[address] = device

    def unmap(self, address: int) -> None:
        """Unmap it there."""
        device = self.mapped.pop(address)
        if self.file is not None:
            with device.lock:
                device.shared.hide(address, self.nbytes)
        elif self.references or self.bound:
            self.content = _bytes_at(device, address, self.nbytes).copy()

    def settle(self) -> bool:
        """Free it if nothing refers to it; return whether it was freed."""
        if self.references or self.bound or self.mapped:
            return False
        if self.device is not None and not self.is_foreign:
            with self.device.lock:
                self.device.memory.bytes_elsewhere -= self.nbytes
        if self.file is not None:
            self.file.close()
        return True

    def export(self, handle_type: int) -> int | bytes:
        """Return a descriptor, which the caller owns, or the bytes of a fabric handle.

        Raises:
            CallError: the memory was not made for handles of this type.
        """
        if handle_type not in (DESCRIPTORS, FABRIC) or not handle_type & self.handle_types:
            raise invalid_value(f"the memory was not made for handles of type {handle_type}")
        file = self.make_file()
        if handle_type == DESCRIPTORS:
            return file.duplicate()
        form = _FABRIC_FORM.pack(_FABRIC_MARK, os.getpid(), file.number, file.name.token)
        return form.ljust(FABRIC_BYTES, b"\0")


def opened_file(handle_type: int, handle: int | bytes) -> SharedFile:
    """Return the file of memory that was exported by `PhysicalMemory.export`.

    Raises:
        CallError: the handle refers to no such memory.
    """
    file = None
    if handle_type == DESCRIPTORS and isinstance(handle, int):
        file = SharedFile.of_descriptor(handle, "mapped")
    elif handle_type == FABRIC and isinstance(handle, bytes) and len(handle) == FABRIC_BYTES:
        mark, process, number, token = _FABRIC_FORM.unpack_from(handle)
        if mark == _FABRIC_MARK:
            file = SharedFile.of_process(process, number, "mapped", token)
    if file is None:
        raise invalid_value(f"a handle of type {handle_type} that refers to no exported memory")
    return file


def _bytes_at(device: DeviceState, address: int, nbytes: int) -> NDArray[np.uint8]:
    return device.memory.data[address - device.memory.base :][:nbytes]


def _show(file: SharedFile, device: DeviceState, address: int, nbytes: int) -> None:
    device.shared.show(address, nbytes, file, 0)
    device.memory.mark_written(address, nbytes)  # possibly written at other addresses


class Binding(NamedTuple):
    """Memory that a device has in a multicast object.

    Attributes:
        start, nbytes: the part of the object.
        memory: the memory.
        offset: where the part begins in the memory.
    """

    device: DeviceState
    start: int
    nbytes: int
    memory: PhysicalMemory
    offset: int


@dataclass(eq=False, repr=False, slots=True)
class MulticastObject:
    """A multicast object: one address for memory of each device of a team.

    Attributes:
        size: how many devices the team gets.
        devices: the devices of the team.
        bindings: the memory of each device.
        mapped: the devices in whose ranges it is mapped, by address.
        references: how many handles refer to it.
    """

    nbytes: int
    size: int
    devices: list[DeviceState] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    mapped: dict[int, DeviceState] = field(default_factory=dict)
    references: int = 1

    def add(self, device: DeviceState) -> None:
        """Add a device to the team."""
        if device in self.devices or len(self.devices) == self.size:
            raise invalid_value(
                f"device {device.ordinal} for a team of {self.size} devices, which has devices "
                f"{[member.ordinal for member in self.devices]}"
            )
        self.devices.append(device)

    def require_team(self) -> None:
        """Reject a use before the team is complete.

        Raises:
            CallError: CUDA_ERROR_ILLEGAL_STATE. The driver would wait for other processes.
        """
        if len(self.devices) < self.size:
            raise CallError(
                CUresult.CUDA_ERROR_ILLEGAL_STATE,
                f"the multicast object has {len(self.devices)} of {self.size} devices: the driver "
                "waits until other processes have added theirs, and the emulator has one process",
            )

    def bind(self, binding: Binding) -> None:
        """Give a device memory in the object."""
        self.require_team()
        end = binding.start + binding.nbytes
        if binding.device not in self.devices:
            raise invalid_value(f"device {binding.device.ordinal} is not in the team")
        if not 0 <= binding.start < end <= self.nbytes:
            raise invalid_value(f"bytes {binding.start} to {end} of {self.nbytes}")
        if not 0 <= binding.offset <= binding.memory.nbytes - binding.nbytes:
            raise invalid_value(f"{binding.nbytes} bytes from {binding.offset} of the memory on")
        for existing in self.bindings:
            overlaps = existing.start < end and binding.start < existing.start + existing.nbytes
            if existing.device is binding.device and overlaps:
                raise invalid_value(
                    f"device {existing.device.ordinal} has memory bound there already"
                )
        binding.memory.bound += 1
        self.bindings.append(binding)
        for device in self.devices:
            device.teams.update(self.devices)

    def unbind(self, device: DeviceState, start: int, nbytes: int) -> list[Binding]:
        """Remove the bindings of a device that lie in a part of the object; return them."""
        bindings = [
            binding
            for binding in self.bindings
            if binding.device is device
            and start <= binding.start
            and binding.start + binding.nbytes <= start + nbytes
        ]
        if not bindings:
            raise invalid_value(
                f"device {device.ordinal} has no binding within {nbytes} bytes at {start}"
            )
        for binding in bindings:
            self.bindings.remove(binding)
            binding.memory.bound -= 1
        return bindings

    def members(self, start: int, nbytes: int) -> list[int] | None:
        """Return the addresses of bytes in the memory of each device.

        None if a device has not bound memory for all of them, or has mapped it nowhere.
        """
        addresses: list[int] = []
        for device in self.devices:
            for binding in self.bindings:
                within = start - binding.start
                if binding.device is device and 0 <= within <= binding.nbytes - nbytes:
                    mapped_at = list(binding.memory.mapped)[:1]
                    addresses += [address + binding.offset + within for address in mapped_at]
        return addresses if len(addresses) == len(self.devices) else None
