"""`GrowingBuffer`: device memory that grows in place, in a reserved range of addresses.

CUDA Driver API, "Virtual Memory Management".
"""

from __future__ import annotations

import os
import secrets
from typing import Any, Final

from .. import border
from ..driver._api import (
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
from ..driver.context import BaseContext
from ..driver.context_handle import ChildHandle, ContextHandle
from ..driver.driver_selection import failure
from ..driver.handle import check
from ..driver.pickling import Reduced, register_reduction, require_descriptors, unshared
from ..driver.stream import BaseStream, require_stream
from ..driver.stream_handle import StreamHandle
from ..errors import InvalidValueError, NotPermittedError
from .buffer import DeviceBuffer, first_stream
from .driver_pool import out_of_memory
from .ipc import BY_DESCRIPTOR, SharedMemory, finish, let_memory_go, stream_for
from .order import Memory
from .pinned import wait_for_contexts


class _Memory(ChildHandle[CUmemGenericAllocationHandle]):
    """Owns memory that is not mapped yet; a mapping keeps the memory without its handle."""

    __slots__ = ()

    def _destroy(self) -> None:
        (code,) = self.api.cuMemRelease(self.raw)
        check(self, code, "cuMemRelease", "giving back a handle of device memory")


class _Mapping(ChildHandle[CUdeviceptr]):
    """Frees a range with the memory mapped there, for its `ReservedRange`.

    Unmapping waits for nothing; so the work of all contexts is waited for first.

    Attributes:
        nbytes: the size of the range.
        mapped: sizes of the mapped pieces, from the beginning of the range on.
        descriptors: the file descriptors of the mapped memory, where it is shared.
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
    """A reserved range with the memory mapped there, freed together.

    Attributes:
        nbytes: the size of the range.
        mapped: sizes of the mapped pieces, from the beginning of the range on.
        identity: the name of the range among processes; none where it is not shared.
        descriptors: the file descriptors of the mapped memory, where it is shared.
        is_foreign: whether another process allocated the mapped memory.
    """

    __slots__ = ("descriptors", "destroyer", "identity", "is_foreign", "mapped", "nbytes")

    raw: CUdeviceptr

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

    def reserve(self) -> CUresult:
        """Let the driver reserve the addresses; return its result."""
        code = self.destroyer.make(self.api.cuMemAddressReserve, self.nbytes, 0, 0, 0)
        self.raw = self.destroyer.raw
        return code

    def map_new(self, nbytes: int, properties: CUmemAllocationProp) -> tuple[CUresult, str]:
        """Map more memory after the mapped pieces; return the last result and its call."""
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
        """Map memory of another process; the range owns the descriptor, or it is closed."""
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


_MINIMUM: Final = CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM


class GrowingBuffer(DeviceBuffer):
    """Device memory that grows in place: contents and address stay.

    A range of addresses is reserved, which costs no memory. Memory is mapped into it as it grows,
    in pieces of 2 MiB or more. Arrays over it are made as over any buffer: ``DeviceArray(buffer,
    shape, dtype)``; existing arrays stay valid when it grows. It is freed once all work of every
    context is done.

    Args:
        stream: the stream in whose order it is first used.
        capacity: the most bytes that it can have.
        nbytes: its size at first.
        shareable: whether other processes of the host may open it. It can be sent through
            multiprocessing, with arrays over it. Sent again after it has grown, it grows there too.

    Attributes:
        nbytes: its current size; in another process, its size when it was last sent there.
        capacity: the size of the range.
    """

    __slots__ = ("capacity", "granularity")

    _remedy = "make it with shareable=True, and give it to multiprocessing"
    nbytes: int
    capacity: int
    granularity: int

    def __init__(
        self, stream: BaseStream, capacity: int, nbytes: int = 0, *, shareable: bool = False
    ) -> None:
        require_stream("GrowingBuffer: stream", stream)
        capacity = border.whole("GrowingBuffer: capacity", capacity, 1)
        nbytes = border.whole("GrowingBuffer: nbytes", nbytes)
        if shareable:
            require_descriptors("GrowingBuffer: shareable")
        context = stream._handle.context
        properties = _properties(context, is_shared=shareable)
        code, unit = context.call(context.api.cuMemGetAllocationGranularity, properties, _MINIMUM)
        if code:
            doing = f"asking for the granularity of memory of {stream!r}"
            raise failure(context.api, code, "cuMemGetAllocationGranularity", doing)
        self.granularity = unit
        self.capacity = -(-capacity // unit) * unit
        identity = secrets.token_bytes(16) if shareable else b""
        reserved = _reserved(stream._handle, self.capacity, identity)
        self._hold(stream, reserved, int(reserved.raw), 0)
        if shareable:
            with context.driver.lock:
                SharedMemory.of(context.driver, context.ordinal).ranges[identity] = reserved
            _let_buffers_go()
        if nbytes:
            self.grow(nbytes)

    @property
    def _range(self) -> ReservedRange:
        reserved = self._memory
        assert isinstance(reserved, ReservedRange)
        return reserved

    @property
    def _is_sent_itself(self) -> bool:
        return bool(self._range.identity)

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"at {self._address:#x}"
        size = f"{self.nbytes} of {self.capacity} bytes"
        return f"<GrowingBuffer {size} {where} on device {self.context.ordinal}>"

    def grow(self, nbytes: int) -> None:
        """Grow to `nbytes` or more, rounded up to the granularity of the device; never shrink.

        Work that uses the buffer may go on meanwhile.

        Raises:
            InvalidValueError: that is more than the capacity.
            OutOfMemoryError: the device has not enough memory.
            NotPermittedError: the buffer belongs to another process.
        """
        nbytes = border.whole("GrowingBuffer.grow: nbytes", nbytes)
        if nbytes > self.capacity:
            raise InvalidValueError(f"{self!r} cannot grow to {nbytes} bytes: reserve more")
        reserved = self._range
        self.nbytes = sum(reserved.mapped)
        more = -(-(nbytes - self.nbytes) // self.granularity) * self.granularity
        if more <= 0:
            return
        if reserved.is_foreign:
            raise NotPermittedError(f"growing {self!r}: only the process that made it can")
        properties = _properties(reserved.context, is_shared=bool(reserved.identity))
        code, call = reserved.map_new(more, properties)
        if code == CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise out_of_memory(self.context, more, call)
        if code:
            raise failure(reserved.api, code, call, f"growing {self!r} to {nbytes} bytes")
        self.nbytes = sum(reserved.mapped)


def _reserved(
    stream: StreamHandle, capacity: int, identity: bytes, *, is_foreign: bool = False
) -> ReservedRange:
    """Reserve a range of addresses.

    Raises:
        CudaError: the driver reported an error.
    """
    stream.context.mind_ranges()
    reserved = ReservedRange(stream, capacity, identity, is_foreign=is_foreign)
    code = reserved.reserve()
    if code:
        doing = f"reserving a range of {capacity} bytes"
        raise failure(stream.api, code, "cuMemAddressReserve", doing)
    return reserved


def _let_buffers_go() -> None:
    """Register growing buffers, and arrays over them, with multiprocessing."""
    register_reduction(GrowingBuffer, _reduced)
    let_memory_go()


def _reduced(buffer: GrowingBuffer) -> Reduced:
    reserved = buffer._range
    if not reserved.identity:
        raise unshared(repr(buffer), "make it with shareable=True")
    # As multiprocessing requires: within the start of a process, or over a connection.
    from multiprocessing.reduction import DupFd

    finish(reserved)
    context = buffer.context
    pieces = [
        (size, DupFd(n)) for size, n in zip(reserved.mapped, reserved.descriptors, strict=True)
    ]
    named = (context.device.uuid.bytes, reserved.identity, buffer.capacity, buffer.granularity)
    return _received, (type(context), named, pieces)


# The result of `DupFd` has no public type; it has `detach`.
def _received(
    kind: type[BaseContext],
    named: tuple[bytes, bytes, int, int],
    pieces: list[tuple[int, Any]],
) -> GrowingBuffer:
    """Return a buffer received by multiprocessing: the existing one, grown, or a new one."""
    numbers = [(size, piece.detach()) for size, piece in pieces]
    uuid, identity, capacity, unit = named
    try:
        stream = stream_for(kind, uuid)
        context = stream._handle.context
        with context.driver.lock:
            ranges = SharedMemory.of(context.driver, context.ordinal).ranges
            found = ranges.get(identity)
            assert found is None or isinstance(found, ReservedRange)
            reserved = found or _reserved(stream._handle, capacity, identity, is_foreign=True)
            ranges[identity] = reserved
            if reserved.is_foreign:
                _map_more(reserved, numbers)
    finally:
        for _, number in numbers:
            os.close(number)
    _let_buffers_go()
    buffer = GrowingBuffer.__new__(GrowingBuffer)
    buffer.capacity, buffer.granularity = capacity, unit
    buffer._hold(stream, reserved, int(reserved.raw), sum(reserved.mapped))
    return buffer


def _map_more(reserved: ReservedRange, pieces: list[tuple[int, int]]) -> None:
    """Map the pieces that the other process has mapped since; remove used descriptors."""
    have = len(reserved.mapped)
    for _ in range(have, len(pieces)):
        size, number = pieces.pop(have)
        code, call = reserved.map_shared(size, number)
        if code:
            doing = f"mapping {size} bytes of another process"
            raise failure(reserved.api, code, call, doing)


def _properties(context: ContextHandle, *, is_shared: bool) -> CUmemAllocationProp:
    """Return the properties of memory of a context's device."""
    properties = CUmemAllocationProp()
    properties.type = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = context.ordinal
    if is_shared:
        properties.requestedHandleTypes = BY_DESCRIPTOR
    return properties
