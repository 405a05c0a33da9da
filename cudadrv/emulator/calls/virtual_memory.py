"""Reserved ranges of addresses, memory that is mapped into them, and multicast objects.

CUDA Driver API: "Virtual Memory Management", "Multicast Object Management". On the emulator the
addresses of a range are those of one device, that of the current context. Kernels of that device
have access to all memory in the range that any device has access to.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from ptx.emulate import OutOfMemory
from ptx.emulate.memory.device_memory import MappedPiece, Reservation

from ...driver._api import (
    CUdevice,
    CUdeviceptr,
    CUmemAccess_flags,
    CUmemAccessDesc,
    CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType,
    CUmemAllocationProp,
    CUmemAllocationType,
    CUmemFabricHandle,
    CUmemGenericAllocationHandle,
    CUmemLocation,
    CUmemLocationType,
    CUmulticastGranularity_flags,
    CUmulticastObjectProp,
    CUresult,
)
from ..call_error import OK, SUCCESS, CallError, invalid_value, not_supported
from ..caller_memory import mapped
from ..device_state import DeviceState
from ..physical_memory import (
    FABRIC,
    FABRIC_BYTES,
    HOST_UUID,
    Binding,
    MulticastObject,
    PhysicalMemory,
    opened_file,
)
from ..pools import DEVICE, HOST, HOST_NUMA
from ..shared_file import DESCRIPTORS
from .call import DriverCalls, call

_GRANULARITY: Final = 2 << 20  # of every device so far
_PINNED: Final = int(CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED)
_NONE: Final = int(CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE)
_READ_AND_WRITE: Final = int(CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
_FIRST_MULTICAST: Final = (9, 0)  # compute capability


class VirtualMemoryCalls(DriverCalls):
    """Reserved ranges, memory that is mapped into them, and multicast objects."""

    @call
    def cuMemGetAllocationGranularity(
        self, prop: CUmemAllocationProp | None, option: CUmemAllocationGranularity_flags, /
    ) -> tuple[CUresult, int]:
        """Return the granularity of sizes and addresses."""
        self._device_of_properties(prop)
        return SUCCESS, _GRANULARITY

    @call
    def cuMemAddressReserve(
        self, size: int, alignment: int, addr: int, flags: int, /
    ) -> tuple[CUresult, CUdeviceptr]:
        """Reserve a range of addresses; a requested address is ignored."""
        if size <= 0 or size % _GRANULARITY or flags or alignment & (alignment - 1):
            raise invalid_value(f"a range of {size} bytes aligned to {alignment}, flags {flags:#x}")
        device = self._state.handles.current().device
        with device.lock:
            try:
                reservation = Reservation(device.memory, size, max(alignment, _GRANULARITY))
            except OutOfMemory as error:
                raise CallError(
                    CUresult.CUDA_ERROR_OUT_OF_MEMORY,
                    f"out of memory: a range lies within an emulated device's memory: {error}",
                ) from error
            device.reservations[reservation.address] = reservation
        return SUCCESS, CUdeviceptr(reservation.address)

    @call
    def cuMemAddressFree(self, ptr: CUdeviceptr, size: int, /) -> tuple[CUresult]:
        """Free a range without mappings."""
        device, reservation = self._reservation(int(ptr), size)
        if reservation.address != int(ptr) or reservation.nbytes != size or reservation.pieces:
            raise invalid_value(f"{size} bytes at {int(ptr):#x} are no range that is unmapped")
        with device.lock:
            del device.reservations[reservation.address]
            reservation.free()
        return OK

    @call
    def cuMemCreate(
        self, size: int, prop: CUmemAllocationProp | None, flags: int, /
    ) -> tuple[CUresult, CUmemGenericAllocationHandle]:
        """Allocate memory without an address."""
        device = self._device_of_properties(prop)
        if size <= 0 or size % _GRANULARITY or flags:
            raise invalid_value(f"memory of {size} bytes, no multiple of {_GRANULARITY}")
        assert prop is not None
        memory = PhysicalMemory(size, device, int(prop.requestedHandleTypes))
        if memory.handle_types:
            memory.make_file()
        if device is not None:
            with device.lock:
                if size > device.account.free_bytes:
                    raise CallError(
                        CUresult.CUDA_ERROR_OUT_OF_MEMORY,
                        f"out of memory: {size} bytes asked for, "
                        f"{device.account.free_bytes} are free",
                    )
                device.memory.bytes_elsewhere += size
        handle = self._state.handles.new()
        self._state.memory.physical[handle] = memory
        return SUCCESS, CUmemGenericAllocationHandle(handle)

    @call
    def cuMemGetAllocationPropertiesFromHandle(
        self, handle: CUmemGenericAllocationHandle, /
    ) -> tuple[CUresult, CUmemAllocationProp]:
        """Return the properties that memory was made with."""
        memory = self._memory_of(handle)
        prop = CUmemAllocationProp()
        prop.type = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        place, prop.location.id = memory.location
        prop.location.type = CUmemLocationType(place)
        kinds: CUmemAllocationHandleType | int = memory.handle_types
        with suppress(ValueError):  # several types are no member
            kinds = CUmemAllocationHandleType(kinds)
        prop.requestedHandleTypes = kinds  # type: ignore[assignment]  # an int, if several
        return SUCCESS, prop

    @call
    def cuMemExportToShareableHandle(
        self,
        handle: CUmemGenericAllocationHandle,
        handle_type: CUmemAllocationHandleType,
        flags: int,
        /,
    ) -> tuple[CUresult, int | CUmemFabricHandle]:
        """Return a descriptor, which the caller owns, or a fabric handle."""
        if int(handle) in self._state.memory.multicasts:
            raise not_supported("the emulator's multicast objects are of one process")
        memory = self._memory_of(handle)
        if flags:
            raise invalid_value(f"invalid flags of an export {flags:#x}")
        with self._state.memory.mapping_lock:
            shareable = memory.export(int(handle_type))
        if isinstance(shareable, int):
            return SUCCESS, shareable
        fabric = CUmemFabricHandle()
        fabric.data = shareable
        return SUCCESS, fabric

    @call
    def cuMemImportFromShareableHandle(
        self, os_handle: int, sh_handle_type: CUmemAllocationHandleType, /
    ) -> tuple[CUresult, CUmemGenericAllocationHandle]:
        """Open memory by a descriptor, which the caller owns, or a fabric handle's address."""
        kind = int(sh_handle_type)
        if kind == FABRIC and not os_handle:
            raise invalid_value("the handle is null")
        shareable: int | bytes = os_handle
        if kind == FABRIC:
            shareable = ctypes.string_at(mapped(os_handle, FABRIC_BYTES), FABRIC_BYTES)
        file = opened_file(kind, shareable)
        uuid = file.name.device
        device = None if uuid == HOST_UUID else self._state.devices.named(uuid)
        handle = self._state.handles.new()
        self._state.memory.physical[handle] = PhysicalMemory(
            file.nbytes, device, kind, file=file, is_foreign=True
        )
        return SUCCESS, CUmemGenericAllocationHandle(handle)

    @call
    def cuMemRelease(self, handle: CUmemGenericAllocationHandle, /) -> tuple[CUresult]:
        """Release a handle; the memory stays as long as it is mapped or bound."""
        with self._state.memory.mapping_lock:
            multicast = self._state.memory.multicasts.get(int(handle))
            if multicast is not None:
                multicast.references -= 1
                self._settle_multicast(int(handle), multicast)
                return OK
            memory = self._memory_of(handle)
            memory.references -= 1
            self._settle_memory(memory)
        return OK

    @call
    def cuMemRetainAllocationHandle(
        self, addr: CUdeviceptr, /
    ) -> tuple[CUresult, CUmemGenericAllocationHandle]:
        """Return the handle of the memory mapped at an address, with one more reference."""
        with self._state.memory.mapping_lock:
            memory, _ = self._mapped_at(int(addr))
            memory.references += 1
            handle = next(
                key for key, candidate in self._state.memory.physical.items() if candidate is memory
            )
        return SUCCESS, CUmemGenericAllocationHandle(handle)

    @call
    def cuMemMap(
        self,
        ptr: CUdeviceptr,
        size: int,
        offset: int,
        handle: CUmemGenericAllocationHandle,
        flags: int,
        /,
    ) -> tuple[CUresult]:
        """Map memory into a reserved range; cuMemSetAccess then permits accesses."""
        address = int(ptr)
        with self._state.memory.mapping_lock:
            multicast = self._state.memory.multicasts.get(int(handle))
            memory = self._memory_of(handle) if multicast is None else multicast
            device, reservation = self._reservation(address, size)
            if offset or flags or size != memory.nbytes:
                raise invalid_value(f"mapping {size} of {memory.nbytes} bytes from {offset} on")
            if multicast is not None:
                multicast.require_team()
            piece = MappedPiece(size, is_multicast=multicast is not None)
            with device.lock:
                if address % _GRANULARITY or not reservation.map(address, piece):
                    raise invalid_value(f"something is mapped at {address:#x} already")
            if isinstance(memory, MulticastObject):
                memory.mapped[address] = device
            else:
                memory.map(device, address)
        return OK

    @call
    def cuMemSetAccess(
        self, ptr: CUdeviceptr, size: int, desc: Sequence[CUmemAccessDesc], count: int, /
    ) -> tuple[CUresult]:
        """Set whether devices may read and write mapped memory."""
        if not 0 < count <= len(desc):
            raise invalid_value(f"{count} descriptors of access, of which {len(desc)} were given")
        with self._state.memory.mapping_lock:
            self._set_access(int(ptr), size, desc[:count])
        return OK

    def _set_access(self, address: int, size: int, desc: Sequence[CUmemAccessDesc]) -> None:
        device, reservation = self._reservation(address, size)
        pieces = reservation.within(address, size)
        if pieces is None:
            raise invalid_value(f"{size} bytes at {address:#x} are not all mapped")
        owners = [self._owner_at(start) for start in pieces]
        changes = [self._access_of(owners, description) for description in desc]
        with device.lock:
            for ordinal, is_open in changes:
                reservation.open(pieces, ordinal, is_open=is_open)
            peers_only = [
                start for start in pieces if reservation.pieces[start].devices - {device.ordinal}
            ]
            if any(device.ordinal not in reservation.pieces[start].devices for start in peers_only):
                for ordinal, _ in changes:
                    reservation.open(pieces, ordinal, is_open=False)
                raise not_supported(
                    f"access for other devices, and none for device {device.ordinal}: on the "
                    "emulator the device that was current when the range was reserved needs access"
                )

    def _access_of(
        self, owners: Sequence[DeviceState | None], description: CUmemAccessDesc
    ) -> tuple[int, bool]:
        """Return the ordinal of a device, and whether it gets access to memory of some owners."""
        location, flags = description.location, int(description.flags)
        if location.type != DEVICE:
            raise not_supported("the emulator gives access to mapped memory to devices alone")
        peer = self._state.devices.at(location.id)
        for owner in owners:
            if owner is not None and owner is not peer and not owner.can_be_reached_by(peer):
                raise CallError(
                    CUresult.CUDA_ERROR_INVALID_DEVICE,
                    f"device {peer.ordinal} has no peer access to device {owner.ordinal}",
                )
        if flags not in (_NONE, _READ_AND_WRITE):
            raise invalid_value(f"access is none or to read and write, not {flags}")
        return peer.ordinal, flags == _READ_AND_WRITE

    @call
    def cuMemGetAccess(
        self, location: CUmemLocation | None, ptr: CUdeviceptr, /
    ) -> tuple[CUresult, int]:
        """Return the access that a device has to mapped memory."""
        _, reservation = self._reservation(int(ptr), 1)
        piece = reservation.piece_at(int(ptr))
        if location is None or piece is None:
            raise invalid_value(f"nothing is mapped at {int(ptr):#x}")
        is_open = location.type == DEVICE and location.id in piece[1].devices
        return SUCCESS, _READ_AND_WRITE if is_open else _NONE

    @call
    def cuMemUnmap(self, ptr: CUdeviceptr, size: int, /) -> tuple[CUresult]:
        """Remove whole mappings; the caller has waited for their uses."""
        with self._state.memory.mapping_lock:
            device, reservation = self._reservation(int(ptr), size)
            with device.lock:
                pieces = reservation.within(int(ptr), size)
                if not pieces:
                    raise invalid_value(f"{size} bytes at {int(ptr):#x} are no whole mappings")
                reservation.unmap(pieces)
            for address in pieces:
                self._unmap(address)
        return OK

    def _unmap(self, address: int) -> None:
        for handle, multicast in list(self._state.memory.multicasts.items()):
            if multicast.mapped.pop(address, None) is not None:
                self._settle_multicast(handle, multicast)
                return
        memory, _ = self._mapped_at(address)
        memory.unmap(address)
        self._settle_memory(memory)

    def _device_of_properties(self, prop: CUmemAllocationProp | None) -> DeviceState | None:
        """Return the device that memory is of; None for memory of the host."""
        if prop is None or int(prop.type) != _PINNED:
            raise invalid_value("memory to be mapped is of type CU_MEM_ALLOCATION_TYPE_PINNED")
        kind, handles = int(prop.location.type), int(prop.requestedHandleTypes)
        if handles & ~(DESCRIPTORS | FABRIC):
            raise not_supported(
                "the emulator shares memory by POSIX file descriptors and fabric handles alone"
            )
        if kind == HOST_NUMA:
            if prop.location.id:
                number = prop.location.id
                raise invalid_value(f"the emulated host has NUMA node 0, and no node {number}")
            return None
        if kind == HOST:
            if handles:
                raise invalid_value("only memory of a NUMA node of the host is shared")
            return None
        if kind != DEVICE:
            raise not_supported("memory to be mapped is of a device or of the host")
        return self._state.devices.at(prop.location.id)

    def _reservation(self, address: int, nbytes: int) -> tuple[DeviceState, Reservation]:
        for device in self._state.devices.visible:
            for reservation in list(device.reservations.values()):
                if nbytes > 0 and reservation.holds(address, nbytes):
                    return device, reservation
        raise invalid_value(f"{nbytes} bytes at {address:#x} are in no reserved range")

    def _memory_of(self, handle: CUmemGenericAllocationHandle) -> PhysicalMemory:
        memory = self._state.memory.physical.get(int(handle))
        if memory is None or not memory.references:
            raise invalid_value(f"{int(handle):#x} is no handle of memory")
        return memory

    def _mapped_at(self, address: int) -> tuple[PhysicalMemory, int]:
        """Return the memory mapped at an address, and the offset there."""
        for memory in list(self._state.memory.physical.values()):
            for start in list(memory.mapped):
                if start <= address < start + memory.nbytes:
                    return memory, address - start
        raise invalid_value(f"nothing is mapped at {address:#x}")

    def _owner_at(self, address: int) -> DeviceState | None:
        """Return the device whose memory is mapped at an address; None for host or multicast."""
        if any(address in multicast.mapped for multicast in self._state.memory.multicasts.values()):
            return None
        return self._mapped_at(address)[0].device

    def _settle_memory(self, memory: PhysicalMemory) -> None:
        if memory.settle():
            for handle, candidate in list(self._state.memory.physical.items()):
                if candidate is memory:
                    del self._state.memory.physical[handle]

    def _settle_multicast(self, handle: int, multicast: MulticastObject) -> None:
        """Free a multicast object, with its bindings, if nothing refers to it."""
        if multicast.references > 0 or multicast.mapped:
            return
        self._state.memory.multicasts.pop(handle, None)
        for binding in list(multicast.bindings):
            multicast.unbind(binding.device, binding.start, binding.nbytes)
            self._settle_memory(binding.memory)

    @call
    def cuMulticastGetGranularity(
        self, prop: CUmulticastObjectProp | None, option: CUmulticastGranularity_flags, /
    ) -> tuple[CUresult, int]:
        """Return the granularity of sizes and offsets of a multicast object."""
        if prop is None:
            raise invalid_value("the properties of the multicast object are null")
        return SUCCESS, _GRANULARITY

    @call
    def cuMulticastCreate(
        self, prop: CUmulticastObjectProp | None, /
    ) -> tuple[CUresult, CUmemGenericAllocationHandle]:
        """Make a multicast object for a number of devices."""
        if (
            prop is None
            or prop.flags
            or not 0 < int(prop.numDevices) <= len(self._state.devices.visible)
        ):
            raise invalid_value(
                f"a multicast object of 1 to {len(self._state.devices.visible)} devices is made"
            )
        if int(prop.size) <= 0 or int(prop.size) % _GRANULARITY:
            raise invalid_value(f"a size of {int(prop.size)} bytes, no multiple of {_GRANULARITY}")
        handle = self._state.handles.new()
        self._state.memory.multicasts[handle] = MulticastObject(
            int(prop.size), int(prop.numDevices)
        )
        return SUCCESS, CUmemGenericAllocationHandle(handle)

    @call
    def cuMulticastAddDevice(
        self, mc_handle: CUmemGenericAllocationHandle, dev: CUdevice, /
    ) -> tuple[CUresult]:
        """Add a device to the team of a multicast object."""
        device = self._state.devices.of(dev)
        if device.profile.compute_capability < _FIRST_MULTICAST:
            raise not_supported(f"device {device.ordinal} has no multicast: it is older than 9.0")
        with self._state.memory.mapping_lock:
            self._multicast(mc_handle).add(device)
        return OK

    @call
    def cuMulticastBindMem(
        self,
        mc_handle: CUmemGenericAllocationHandle,
        mc_offset: int,
        mem_handle: CUmemGenericAllocationHandle,
        mem_offset: int,
        size: int,
        flags: int,
        /,
    ) -> tuple[CUresult]:
        """Bind memory of a device into a multicast object."""
        with self._state.memory.mapping_lock:
            self._bind(mc_handle, mc_offset, self._memory_of(mem_handle), mem_offset, size, flags)
        return OK

    @call
    def cuMulticastBindAddr(
        self,
        mc_handle: CUmemGenericAllocationHandle,
        mc_offset: int,
        memptr: CUdeviceptr,
        size: int,
        flags: int,
        /,
    ) -> tuple[CUresult]:
        """Bind the memory that is mapped at an address."""
        with self._state.memory.mapping_lock:
            memory, offset = self._mapped_at(int(memptr))
            self._bind(mc_handle, mc_offset, memory, offset, size, flags)
        return OK

    def _bind(
        self,
        handle: CUmemGenericAllocationHandle,
        start: int,
        memory: PhysicalMemory,
        offset: int,
        size: int,
        flags: int,
    ) -> None:
        if flags or (start | offset | size) % _GRANULARITY:
            raise invalid_value(
                f"binding {size} bytes at {start}, from {offset} of the memory on, flags {flags:#x}"
            )
        if memory.device is None:
            raise invalid_value("a multicast object binds memory of devices alone")
        self._multicast(handle).bind(Binding(memory.device, start, size, memory, offset))

    @call
    def cuMulticastUnbind(
        self, mc_handle: CUmemGenericAllocationHandle, dev: CUdevice, mc_offset: int, size: int, /
    ) -> tuple[CUresult]:
        """Remove the memory that a device has in a part of a multicast object."""
        with self._state.memory.mapping_lock:
            multicast = self._multicast(mc_handle)
            for binding in multicast.unbind(self._state.devices.of(dev), mc_offset, size):
                self._settle_memory(binding.memory)
        return OK

    def _multicast(self, handle: CUmemGenericAllocationHandle) -> MulticastObject:
        multicast = self._state.memory.multicasts.get(int(handle))
        if multicast is None or multicast.references <= 0:
            raise invalid_value(f"{int(handle):#x} is no handle of a multicast object")
        return multicast
