"""Reserved ranges of addresses, and the handles of memory that is mapped into them.

CUDA Driver API, "Virtual Memory Management".
"""

from __future__ import annotations

import os
from typing import Final

from ..driver._api import (
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
from ..driver.context_handle import ChildHandle, ContextHandle
from ..driver.driver_selection import failure
from ..driver.handle import check
from ..driver.stream_handle import StreamHandle
from ..ipc import BY_DESCRIPTOR
from .buffer import first_stream
from .order import Memory
from .pinned import wait_for_contexts

_MINIMUM: Final = CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
_ACCESS: Final = {
    True: CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    False: CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE,
}


class AllocationHandle(ChildHandle[CUmemGenericAllocationHandle]):
    """Owns a handle of memory that may be mapped; a mapping keeps the memory without it."""

    __slots__ = ()

    def _destroy(self) -> None:
        (code,) = self.api.cuMemRelease(self.raw)
        check(self, code, "cuMemRelease", "giving back a handle of device memory")


class _Mapping(ChildHandle[CUdeviceptr]):
    """Frees a range with the memory mapped there, for its `ReservedRange`.

    Unmapping waits for nothing; so the work of all contexts is waited for first.

    Attributes:
        nbytes: the size of the range.
        waits: whether it waits for that work; else the owner of the range has waited.
        mapped: sizes of the mapped pieces, from the beginning of the range on.
        descriptors: the file descriptors of the mapped memory, where it is shared.
        held: handles that are destroyed after the mapping, such as those of multicast objects.
    """

    __slots__ = ("descriptors", "held", "mapped", "nbytes", "waits")

    def __init__(self, context: ContextHandle, nbytes: int) -> None:
        super().__init__(context)
        self.nbytes: int = nbytes
        self.waits: bool = True
        self.mapped: list[int] = []
        self.descriptors: list[int] = []
        self.held: list[AllocationHandle] = []

    def _destroy(self) -> None:
        if self.waits:
            wait_for_contexts(self.driver)
        address, device = int(self.raw), f"device {self.context.ordinal}"
        doing = f"giving back a range of {self.nbytes} bytes at {address:#x} of {device}"
        while self.descriptors:
            os.close(self.descriptors.pop())
        while self.mapped:
            mapped_at = CUdeviceptr(address + sum(self.mapped[:-1]))
            (code,) = self.context.call(self.api.cuMemUnmap, mapped_at, self.mapped.pop())
            check(self, code, "cuMemUnmap", doing)
        (code,) = self.context.call(self.api.cuMemAddressFree, self.raw, self.nbytes)
        check(self, code, "cuMemAddressFree", doing)


class ReservedRange(Memory[CUdeviceptr]):
    """A reserved range with the memory mapped there, freed together.

    Attributes:
        nbytes: the size of the range.
        mapped: sizes of the mapped pieces, from the beginning of the range on.
        identity: the name of the range among processes; none where it is not shared.
        descriptors: the file descriptors of the mapped memory, where it is shared.
        is_foreign: whether another process allocated the mapped memory.
        others: the ordinals of other devices that may use the memory.
    """

    __slots__ = ("descriptors", "destroyer", "identity", "is_foreign", "mapped", "nbytes", "others")

    raw: CUdeviceptr
    others: frozenset[int]

    def __init__(
        self, stream: StreamHandle, nbytes: int, identity: bytes = b"", *, is_foreign: bool = False
    ) -> None:
        super().__init__(stream.context, None, first_stream(stream))
        self.nbytes: int = nbytes
        self.destroyer: _Mapping = _Mapping(stream.context, nbytes)
        self.mapped: list[int] = self.destroyer.mapped
        self.identity: bytes = identity
        self.descriptors: list[int] = self.destroyer.descriptors
        self.is_foreign: bool = is_foreign
        self.others = frozenset()

    @classmethod
    def reserved(
        cls, stream: StreamHandle, nbytes: int, identity: bytes = b"", *, is_foreign: bool = False
    ) -> ReservedRange:
        """Reserve a range of addresses.

        Raises:
            CudaError: the driver reported an error.
        """
        stream.context.mind_ranges()
        reserved = cls(stream, nbytes, identity, is_foreign=is_foreign)
        code = reserved.reserve()
        if code:
            doing = f"reserving a range of {nbytes} bytes"
            raise failure(stream.api, code, "cuMemAddressReserve", doing)
        return reserved

    @property
    def open_devices(self) -> frozenset[int]:
        """The ordinals of other devices whose kernels may use it."""
        return self.others

    def reserve(self) -> CUresult:
        """Let the driver reserve the addresses; return its result."""
        code = self.destroyer.make(self.api.cuMemAddressReserve, self.nbytes, 0, 0, 0)
        self.raw = self.destroyer.raw
        return code

    def map_new(self, nbytes: int, properties: CUmemAllocationProp) -> tuple[CUresult, str]:
        """Map more memory after the mapped pieces; return the last result and its call."""
        memory = AllocationHandle(self.context)
        code = memory.make(self.api.cuMemCreate, nbytes, properties, 0)
        if code:
            return code, "cuMemCreate"
        if not self.identity:
            return self.map(memory, nbytes)
        code, number = self.api.cuMemExportToShareableHandle(memory.raw, BY_DESCRIPTOR, 0)
        if code:
            return code, "cuMemExportToShareableHandle"
        assert isinstance(number, int)
        return self.map(memory, nbytes, number)

    def map_shared(self, nbytes: int, descriptor: int) -> tuple[CUresult, str]:
        """Map memory of another process; the range owns the descriptor, or it is closed."""
        memory = AllocationHandle(self.context)
        code = memory.make(self.api.cuMemImportFromShareableHandle, descriptor, BY_DESCRIPTOR)
        if code:
            os.close(descriptor)
            return code, "cuMemImportFromShareableHandle"
        return self.map(memory, nbytes, descriptor)

    def map(
        self, memory: AllocationHandle, nbytes: int, descriptor: int = -1
    ) -> tuple[CUresult, str]:
        """Map memory after the mapped pieces, and let the devices of the range use it.

        Return the last result and its call. The range owns the descriptor, or it is closed.
        """
        api = self.api
        address = CUdeviceptr(int(self.raw) + sum(self.mapped))
        (code,) = self.context.call(api.cuMemMap, address, nbytes, 0, memory.raw, 0)
        call = "cuMemMap"
        if not code:
            access = [_access(ordinal) for ordinal in (self.context.ordinal, *sorted(self.others))]
            (code,) = self.context.call(api.cuMemSetAccess, address, nbytes, access, len(access))
            call = "cuMemSetAccess"
            if code:
                self.context.call(api.cuMemUnmap, address, nbytes)
        if code:
            if descriptor >= 0:
                os.close(descriptor)
            return code, call
        if descriptor >= 0:
            self.descriptors.append(descriptor)
        self.mapped.append(nbytes)
        return code, ""

    def set_access(self, device: int, *, is_open: bool) -> CUresult:
        """Let a device, given by its ordinal, use all memory of the range, or no longer."""
        access = [_access(device, is_open=is_open)]
        function = self.api.cuMemSetAccess
        (code,) = self.context.call(function, self.raw, sum(self.mapped), access, 1)
        if not code:
            other_devices = self.others - {device}
            self.others = other_devices | {device} if is_open else other_devices
        return code


def _access(device: int, *, is_open: bool = True) -> CUmemAccessDesc:
    access = CUmemAccessDesc()
    access.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = device
    access.flags = _ACCESS[is_open]
    return access


def device_memory(ordinal: int, handle_types: CUmemAllocationHandleType) -> CUmemAllocationProp:
    """Return the properties of memory of a device."""
    properties = CUmemAllocationProp()
    properties.type = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = ordinal
    properties.requestedHandleTypes = handle_types
    return properties


def granularity(context: ContextHandle, properties: CUmemAllocationProp) -> int:
    """Return the unit of sizes of memory.

    Raises:
        CudaError: the driver reported an error.
    """
    code, unit = context.call(context.api.cuMemGetAllocationGranularity, properties, _MINIMUM)
    if code:
        doing = f"querying the granularity of memory of device {context.ordinal}"
        raise failure(context.api, code, "cuMemGetAllocationGranularity", doing)
    return unit
