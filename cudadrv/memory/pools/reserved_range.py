"""`ReservedRange`: a range of addresses, and the device memory that is mapped into it.

CUDA Driver API, "Virtual Memory Management".
"""

from __future__ import annotations

import os

from ...driver._api import (
    CUdeviceptr,
    CUmemAccess_flags,
    CUmemAccessDesc,
    CUmemAllocationProp,
    CUmemGenericAllocationHandle,
    CUmemLocationType,
    CUresult,
)
from ...driver.context_handle import ChildHandle, ContextHandle
from ...driver.handle import check
from ...driver.stream_handle import StreamHandle
from ..buffer import first_home
from ..host.pinned import wait_for_contexts
from ..ipc.shared import BY_DESCRIPTOR
from ..order import Memory


class _Memory(ChildHandle[CUmemGenericAllocationHandle]):
    """Owns memory that is not mapped yet; a mapping keeps it without its handle."""

    __slots__ = ()

    def _destroy(self) -> None:
        (code,) = self.api.cuMemRelease(self.raw)
        check(self, code, "cuMemRelease", "giving back a handle of device memory")


class _Mapping(ChildHandle[CUdeviceptr]):
    """Gives a range back with what is mapped there, for its `ReservedRange`.

    Unmapping waits for nothing; so the work of all contexts is waited for before.

    Attributes:
        nbytes: the size of the range.
        mapped: sizes of what is mapped, from its beginning on.
        descriptors: the file descriptors of what is mapped, where it is shared.
    """

    __slots__ = ("descriptors", "mapped", "nbytes")

    def __init__(self, context: ContextHandle, nbytes: int) -> None:
        super().__init__(context)
        self.nbytes: int = nbytes
        self.mapped: list[int] = []
        self.descriptors: list[int] = []

    def _destroy(self) -> None:
        wait_for_contexts(self.driver)
        address, device = int(self.raw), f"device {self.context.ordinal}"
        doing = f"giving back a range of {self.nbytes} bytes at {address:#x} of {device}"
        while self.descriptors:
            os.close(self.descriptors.pop())
        while self.mapped:
            at = CUdeviceptr(address + sum(self.mapped[:-1]))
            (code,) = self.context.call(self.api.cuMemUnmap, at, self.mapped.pop())
            check(self, code, "cuMemUnmap", doing)
        (code,) = self.context.call(self.api.cuMemAddressFree, self.raw, self.nbytes)
        check(self, code, "cuMemAddressFree", doing)


class ReservedRange(Memory[CUdeviceptr]):
    """A reserved range with what is mapped there, given back with this.

    Attributes:
        nbytes: the size of the range.
        mapped: sizes of what is mapped, from its beginning on.
        identity: what names the range among processes; none where it is not shared.
        descriptors: the file descriptors of what is mapped, where it is shared.
        is_foreign: whether what is mapped is another process's.
    """

    __slots__ = ("descriptors", "destroyer", "identity", "is_foreign", "mapped", "nbytes")

    raw: CUdeviceptr

    def __init__(
        self, stream: StreamHandle, nbytes: int, identity: bytes = b"", *, is_foreign: bool = False
    ) -> None:
        super().__init__(stream.context, None, first_home(stream))
        self.nbytes: int = nbytes
        self.destroyer: _Mapping = _Mapping(stream.context, nbytes)
        self.mapped: list[int] = self.destroyer.mapped
        self.identity: bytes = identity
        self.descriptors: list[int] = self.destroyer.descriptors
        self.is_foreign: bool = is_foreign

    def reserve(self) -> CUresult:
        """Have the driver reserve the addresses; gives its result."""
        code = self.destroyer.make(self.api.cuMemAddressReserve, self.nbytes, 0, 0, 0)
        self.raw = self.destroyer.raw
        return code

    def map_new(self, nbytes: int, properties: CUmemAllocationProp) -> tuple[CUresult, str]:
        """Map more memory behind what is there; gives the last result and its call."""
        memory = _Memory(self.context)
        code = memory.make(self.api.cuMemCreate, nbytes, properties, 0)
        if code:
            return code, "cuMemCreate"
        if not self.identity:
            return self._map(memory, nbytes)
        code, number = self.api.cuMemExportToShareableHandle(memory.raw, BY_DESCRIPTOR, 0)
        if code:
            return code, "cuMemExportToShareableHandle"
        return self._map(memory, nbytes, number)

    def map_shared(self, nbytes: int, descriptor: int) -> tuple[CUresult, str]:
        """Map memory of another process; the descriptor is the range's, or closed."""
        memory = _Memory(self.context)
        code = memory.make(self.api.cuMemImportFromShareableHandle, descriptor, BY_DESCRIPTOR)
        if code:
            os.close(descriptor)
            return code, "cuMemImportFromShareableHandle"
        return self._map(memory, nbytes, descriptor)

    def _map(self, memory: _Memory, nbytes: int, descriptor: int = -1) -> tuple[CUresult, str]:
        api = self.api
        address = CUdeviceptr(int(self.raw) + sum(self.mapped))
        (code,) = self.context.call(api.cuMemMap, address, nbytes, 0, memory.raw, 0)
        call = "cuMemMap"
        if not code:
            access = CUmemAccessDesc()
            access.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
            access.location.id = self.context.ordinal
            access.flags = CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
            (code,) = self.context.call(api.cuMemSetAccess, address, nbytes, [access], 1)
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
