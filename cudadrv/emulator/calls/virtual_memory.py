"""Reserved ranges of addresses, and memory that is mapped into them.

CUDA Driver API: "Virtual Memory Management". On the emulator a range belongs to one device, that of
the current context. Memory can be mapped there once, and for that device alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ptx.emulate.memory.device_memory import Reservation
from ptx.emulate.model.errors import OutOfMemory

from ...driver._api import (
    CUdeviceptr,
    CUmemAccess_flags,
    CUmemAccessDesc,
    CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType,
    CUmemAllocationProp,
    CUmemAllocationType,
    CUmemGenericAllocationHandle,
    CUmemLocationType,
    CUresult,
)
from ..call_error import OK, SUCCESS, CallError, invalid_value
from ..call_rules import CallRules
from ..device_state import DeviceState, PhysicalMemory
from ..shared_file import DESCRIPTORS, SharedFile, new_shared_file
from .call import call

_GRANULARITY: Final = 2 << 20  # of every device so far
_PINNED: Final = int(CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED)
_NO_HANDLES: Final = int(CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE)
_NONE: Final = int(CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE)
_READ_AND_WRITE: Final = int(CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE)


class VirtualMemoryCalls(CallRules):
    """Reserved ranges, and memory that is mapped into them."""

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
        device = self._current().device
        with device.lock:
            try:
                found = Reservation(device.memory, size, max(alignment, _GRANULARITY))
            except OutOfMemory as error:
                raise CallError(
                    CUresult.CUDA_ERROR_OUT_OF_MEMORY,
                    f"out of memory: a range lies within an emulated device's memory: {error}",
                ) from error
            device.reservations[found.address] = found
        return SUCCESS, CUdeviceptr(found.address)

    @call
    def cuMemAddressFree(self, ptr: CUdeviceptr, size: int, /) -> tuple[CUresult]:
        """Free a range without mappings."""
        device, found = self._reservation(int(ptr), size)
        if found.address != int(ptr) or found.nbytes != size or found.pieces:
            raise invalid_value(f"{size} bytes at {int(ptr):#x} are no range that is unmapped")
        with device.lock:
            del device.reservations[found.address]
            found.free()
        return OK

    @call
    def cuMemCreate(
        self, size: int, prop: CUmemAllocationProp | None, flags: int, /
    ) -> tuple[CUresult, CUmemGenericAllocationHandle]:
        """Allocate memory without an address."""
        device = self._device_of_properties(prop)
        if size <= 0 or size % _GRANULARITY or flags:
            raise invalid_value(f"memory of {size} bytes, no multiple of {_GRANULARITY}")
        with device.lock:
            if size > device.account.free_bytes:
                raise CallError(
                    CUresult.CUDA_ERROR_OUT_OF_MEMORY,
                    f"out of memory: {size} bytes asked for, {device.account.free_bytes} are free",
                )
            file = None
            if prop is not None and int(prop.requestedHandleTypes) == DESCRIPTORS:
                file = new_shared_file("mapped", device.uuid, size)
            device.memory.used_bytes += size
            handle = next(self._handles)
            device.physical[handle] = PhysicalMemory(size, file=file)
        return SUCCESS, CUmemGenericAllocationHandle(handle)

    @call
    def cuMemExportToShareableHandle(
        self,
        handle: CUmemGenericAllocationHandle,
        handle_type: CUmemAllocationHandleType,
        flags: int,
        /,
    ) -> tuple[CUresult, int]:
        """Return a descriptor of the memory's file, which the caller owns."""
        _, found = self._physical(handle)
        if flags or int(handle_type) != DESCRIPTORS or found.file is None:
            raise invalid_value("the memory was not made to be shared by file descriptors")
        return SUCCESS, found.file.duplicate()

    @call
    def cuMemImportFromShareableHandle(
        self, os_handle: int, sh_handle_type: CUmemAllocationHandleType, /
    ) -> tuple[CUresult, CUmemGenericAllocationHandle]:
        """Open memory of another process by a descriptor, which the caller still owns."""
        file = None
        if int(sh_handle_type) == DESCRIPTORS:
            file = SharedFile.of_descriptor(os_handle, "mapped")
        if file is None:
            raise invalid_value(f"descriptor {os_handle} is of no memory to be mapped")
        device = self._device_named(file.name.device)
        with device.lock:
            handle = next(self._handles)
            device.physical[handle] = PhysicalMemory(file.nbytes, file=file, is_foreign=True)
        return SUCCESS, CUmemGenericAllocationHandle(handle)

    @call
    def cuMemRelease(self, handle: CUmemGenericAllocationHandle, /) -> tuple[CUresult]:
        """Release a handle; the memory stays as long as it is mapped."""
        device, found = self._physical(handle)
        with device.lock:
            found.references -= 1
            if found.settle(device.memory):
                del device.physical[int(handle)]
        return OK

    @call
    def cuMemRetainAllocationHandle(
        self, addr: CUdeviceptr, /
    ) -> tuple[CUresult, CUmemGenericAllocationHandle]:
        """Return the handle of the memory mapped at an address, with one more reference."""
        for device in self._devices:
            with device.lock:
                for handle, found in device.physical.items():
                    at = found.mapped_at
                    if at and at <= int(addr) < at + found.nbytes:
                        found.references += 1
                        return SUCCESS, CUmemGenericAllocationHandle(handle)
        raise invalid_value(f"nothing is mapped at {int(addr):#x}")

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
        device, memory = self._physical(handle)
        owner, found = self._reservation(int(ptr), size)
        if offset or flags or size != memory.nbytes:
            raise invalid_value(f"mapping {size} of {memory.nbytes} bytes from {offset} on")
        if owner is not device or memory.mapped_at:
            raise CallError(
                CUresult.CUDA_ERROR_NOT_SUPPORTED,
                "the emulator maps memory once, into a range of its own device",
            )
        with device.lock:
            if int(ptr) % _GRANULARITY or not found.map(int(ptr), size):
                raise invalid_value(f"something is mapped at {int(ptr):#x} already")
            if memory.file is not None:
                device.shared.show(int(ptr), size, memory.file, 0)
                device.memory.mark_written(int(ptr), size)  # possibly written by others
            memory.map(device.memory, int(ptr))
        return OK

    @call
    def cuMemSetAccess(
        self, ptr: CUdeviceptr, size: int, desc: Sequence[CUmemAccessDesc], count: int, /
    ) -> tuple[CUresult]:
        """Set whether a device may read and write mapped memory."""
        device, found = self._reservation(int(ptr), size)
        if not 0 < count <= len(desc):
            raise invalid_value(f"{count} descriptors of access, of which {len(desc)} were given")
        for each in desc[:count]:
            where, flags = each.location, int(each.flags)
            if where.type != CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE or (
                self._device_at(where.id) is not device
            ):
                raise CallError(
                    CUresult.CUDA_ERROR_NOT_SUPPORTED,
                    "the emulator gives access to mapped memory to its own device alone",
                )
            if flags not in (_NONE, _READ_AND_WRITE):
                raise invalid_value(f"access is none or to read and write, not {flags}")
            with device.lock:
                pieces = found.within(int(ptr), size)
                if pieces is None:
                    raise invalid_value(f"{size} bytes at {int(ptr):#x} are not all mapped")
                found.open(pieces, is_open=flags == _READ_AND_WRITE)
        return OK

    @call
    def cuMemUnmap(self, ptr: CUdeviceptr, size: int, /) -> tuple[CUresult]:
        """Remove whole mappings; the caller has waited for their uses."""
        device, found = self._reservation(int(ptr), size)
        with device.lock:
            pieces = found.within(int(ptr), size)
            if not pieces:
                raise invalid_value(f"{size} bytes at {int(ptr):#x} are no whole mappings")
            found.unmap(pieces)
            for handle, memory in device.physical.copy().items():
                if memory.mapped_at in pieces:
                    if memory.file is not None:
                        device.shared.hide(memory.mapped_at, memory.nbytes)
                    memory.unmap(device.memory)
                    if memory.settle(device.memory):
                        del device.physical[handle]
        return OK

    def _device_of_properties(self, prop: CUmemAllocationProp | None) -> DeviceState:
        if prop is None or int(prop.type) != _PINNED:
            raise invalid_value("memory to be mapped is of type CU_MEM_ALLOCATION_TYPE_PINNED")
        if int(prop.requestedHandleTypes) not in (_NO_HANDLES, DESCRIPTORS):
            raise CallError(
                CUresult.CUDA_ERROR_NOT_SUPPORTED,
                "the emulator shares memory by POSIX file descriptors alone",
            )
        if prop.location.type != CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
            raise CallError(CUresult.CUDA_ERROR_NOT_SUPPORTED, "memory to be mapped is of a device")
        return self._device_at(prop.location.id)

    def _reservation(self, address: int, nbytes: int) -> tuple[DeviceState, Reservation]:
        for device in self._devices:
            for found in list(device.reservations.values()):
                if nbytes > 0 and found.holds(address, nbytes):
                    return device, found
        raise invalid_value(f"{nbytes} bytes at {address:#x} are in no reserved range")

    def _physical(self, handle: CUmemGenericAllocationHandle) -> tuple[DeviceState, PhysicalMemory]:
        for device in self._devices:
            found = device.physical.get(int(handle))
            if found is not None and found.references:
                return device, found
        raise invalid_value(f"{int(handle):#x} is no handle of memory")
