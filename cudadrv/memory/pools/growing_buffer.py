"""`GrowingBuffer`: device memory that grows where it is, in a reserved range of addresses.

CUDA Driver API, "Virtual Memory Management".
"""

from __future__ import annotations

from typing import Final

from ... import border
from ...driver._api import (
    CUdeviceptr,
    CUmemAccess_flags,
    CUmemAccessDesc,
    CUmemAllocationGranularity_flags,
    CUmemAllocationProp,
    CUmemAllocationType,
    CUmemGenericAllocationHandle,
    CUmemLocationType,
    CUresult,
)
from ...driver.context_box import ContextBox, Part
from ...driver.handle import check
from ...driver.in_use import failure
from ...driver.stream_box import StreamBox
from ...driver.stream_core import StreamCore
from ...errors import InvalidValueError
from ..buffer import DeviceBuffer, first_home
from ..driver_pool import out_of_memory
from ..order import Memory
from ..pinned import wait_for_contexts

_MINIMUM: Final = CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM


class _Memory(Part[CUmemGenericAllocationHandle]):
    """Owns memory that is not mapped yet; a mapping keeps it without its handle."""

    __slots__ = ()

    def _destroy(self) -> None:
        (code,) = self.api.cuMemRelease(self.raw)
        check(self, code, "cuMemRelease", "giving back a handle of device memory")


class _RangeMemory(Memory[CUdeviceptr]):
    """Owns a reserved range with what is mapped there.

    Unmapping waits for nothing; so the work of all contexts is waited for before.

    Attributes:
        nbytes: the size of the range.
        mapped: sizes of what is mapped, from its beginning on.
    """

    __slots__ = ("mapped", "nbytes")

    def __init__(self, stream: StreamBox, nbytes: int) -> None:
        super().__init__(stream.context, None, first_home(stream))
        self.nbytes: int = nbytes
        self.mapped: list[int] = []

    def map(self, nbytes: int, properties: CUmemAllocationProp) -> tuple[CUresult, str]:
        """Map more memory behind what is there; gives the last result and its call."""
        api, memory = self.api, _Memory(self.context)
        address = CUdeviceptr(int(self.raw) + sum(self.mapped))
        code = memory.make(api.cuMemCreate, nbytes, properties, 0)
        if code:
            return code, "cuMemCreate"
        (code,) = self.context.call(api.cuMemMap, address, nbytes, 0, memory.raw, 0)
        if code:
            return code, "cuMemMap"
        access = CUmemAccessDesc()
        access.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        access.location.id = self.context.ordinal
        access.flags = CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        (code,) = self.context.call(api.cuMemSetAccess, address, nbytes, [access], 1)
        if code:
            self.context.call(api.cuMemUnmap, address, nbytes)
            return code, "cuMemSetAccess"
        self.mapped.append(nbytes)
        return code, ""

    def _destroy(self) -> None:
        wait_for_contexts(self.driver)
        address, device = int(self.raw), f"device {self.context.ordinal}"
        doing = f"giving back a range of {self.nbytes} bytes at {address:#x} of {device}"
        while self.mapped:
            at = CUdeviceptr(address + sum(self.mapped[:-1]))
            (code,) = self.context.call(self.api.cuMemUnmap, at, self.mapped.pop())
            check(self, code, "cuMemUnmap", doing)
        (code,) = self.context.call(self.api.cuMemAddressFree, self.raw, self.nbytes)
        check(self, code, "cuMemAddressFree", doing)


class GrowingBuffer(DeviceBuffer):
    """Device memory that grows where it is: what stands in it stays, at its address.

    A range of addresses is reserved, which costs no memory, and memory is mapped into it as it
    grows, in pieces of 2 MiB or more. Arrays over it are made as over any buffer:
    ``DeviceArray(buffer, shape, dtype)``; those from before it grew go on. It is given back once
    all work of every context is done.

    Args:
        stream: the stream in whose order it is first used.
        capacity: the most bytes that it can have.
        nbytes: how many it has at once.

    Attributes:
        nbytes: its size now.
        capacity: the size of the range.
    """

    __slots__ = ("capacity", "granularity")

    nbytes: int
    capacity: int
    granularity: int

    def __init__(self, stream: StreamCore, capacity: int, nbytes: int = 0) -> None:
        border.instance("GrowingBuffer: stream", stream, StreamCore)
        capacity = border.whole("GrowingBuffer: capacity", capacity, 1)
        nbytes = border.whole("GrowingBuffer: nbytes", nbytes)
        context = stream._box.context
        code, unit = context.call(
            context.api.cuMemGetAllocationGranularity, _properties(context), _MINIMUM
        )
        if code:
            doing = f"asking for the granularity of memory of {stream!r}"
            raise failure(context.api, code, "cuMemGetAllocationGranularity", doing)
        self.granularity = unit
        self.capacity = -(-capacity // unit) * unit
        reserved = _RangeMemory(stream._box, self.capacity)
        code = reserved.make(context.api.cuMemAddressReserve, self.capacity, 0, 0, 0)
        if code:
            doing = f"reserving a range of {self.capacity} bytes"
            raise failure(context.api, code, "cuMemAddressReserve", doing)
        self._hold(stream, reserved, int(reserved.raw), 0)
        if nbytes:
            self.grow(nbytes)

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"at {self._address:#x}"
        size = f"{self.nbytes} of {self.capacity} bytes"
        return f"<GrowingBuffer {size} {where} on device {self.context.ordinal}>"

    def grow(self, nbytes: int) -> None:
        """Have `nbytes` or more, rounded up to the granularity of the device; never less.

        Work that uses the buffer goes on meanwhile.

        Raises:
            InvalidValueError: that is beyond the capacity.
            OutOfMemoryError: the device has no room.
        """
        nbytes = border.whole("GrowingBuffer.grow: nbytes", nbytes)
        if nbytes > self.capacity:
            raise InvalidValueError(f"{self!r} cannot grow to {nbytes} bytes: reserve more")
        more = -(-(nbytes - self.nbytes) // self.granularity) * self.granularity
        if more <= 0:
            return
        reserved = self._memory
        assert isinstance(reserved, _RangeMemory)
        code, call = reserved.map(more, _properties(reserved.context))
        if code == CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise out_of_memory(self.context, more, call)
        if code:
            raise failure(reserved.api, code, call, f"growing {self!r} to {nbytes} bytes")
        self.nbytes = sum(reserved.mapped)


def _properties(context: ContextBox) -> CUmemAllocationProp:
    """Memory of a context's device."""
    properties = CUmemAllocationProp()
    properties.type = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = context.ordinal
    return properties
