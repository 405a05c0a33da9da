"""`GrowingBuffer`: device memory that grows in place, in a reserved range of addresses.

CUDA Driver API, "Virtual Memory Management".
"""

from __future__ import annotations

import os
import secrets
from typing import Any

from ptx.read_only import ReadOnly

from .. import border
from ..driver._api import CUmemAllocationHandleType, CUresult
from ..driver.context import BaseContext
from ..driver.driver_selection import failure
from ..driver.pickling import Reduced, register_reduction, require_descriptors, unshared
from ..driver.stream import BaseStream, require_stream
from ..errors import InvalidValueError, NotPermittedError
from ..ipc import BY_DESCRIPTOR, SharedMemory, finish, register_memory_reductions, stream_for
from .address_range import ReservedRange, device_memory, granularity
from .buffer import DeviceBuffer
from .driver_pool import out_of_memory


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
        granularity: the bytes of the pieces in which it grows.
    """

    __slots__ = ("_capacity", "_granularity")

    _remedy = "make it with shareable=True, and give it to multiprocessing"
    _nbytes: int
    nbytes: ReadOnly[int] = ReadOnly("_nbytes")
    _capacity: int
    capacity: ReadOnly[int] = ReadOnly("_capacity")
    _granularity: int
    granularity: ReadOnly[int] = ReadOnly("_granularity")

    def __init__(
        self, stream: BaseStream, capacity: int, nbytes: int = 0, *, shareable: bool = False
    ) -> None:
        require_stream("GrowingBuffer: stream", stream)
        capacity = border.int_in_range("GrowingBuffer: capacity", capacity, 1)
        nbytes = border.int_in_range("GrowingBuffer: nbytes", nbytes)
        if shareable:
            require_descriptors("GrowingBuffer: shareable")
        context = stream._handle.context
        properties = device_memory(context.ordinal, _handle_types(shareable))
        self._granularity = unit = granularity(context, properties)
        self._capacity = -(-capacity // unit) * unit
        identity = secrets.token_bytes(16) if shareable else b""
        reserved = ReservedRange.reserved(stream._handle, self._capacity, identity)
        self._hold(stream, reserved, int(reserved.raw), 0)
        if shareable:
            with context.driver.lock:
                SharedMemory.of(context.driver, context.ordinal).ranges[identity] = reserved
            _register_reductions()
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
        location = "closed" if self.closed else f"at {self._address:#x}"
        size = f"{self._nbytes} of {self._capacity} bytes"
        return f"<GrowingBuffer {size} {location} on device {self.context.ordinal}>"

    def grow(self, nbytes: int) -> None:
        """Grow to `nbytes` or more, rounded up to the granularity of the device; never shrink.

        Work that uses the buffer may go on meanwhile.

        Raises:
            InvalidValueError: that is more than the capacity.
            OutOfMemoryError: the device has not enough memory.
            NotPermittedError: the buffer belongs to another process.
        """
        nbytes = border.int_in_range("GrowingBuffer.grow: nbytes", nbytes)
        if nbytes > self._capacity:
            raise InvalidValueError(f"{self!r} cannot grow to {nbytes} bytes: reserve more")
        reserved = self._range
        self._nbytes = sum(reserved.mapped)
        growth = -(-(nbytes - self._nbytes) // self._granularity) * self._granularity
        if growth <= 0:
            return
        if reserved.is_foreign:
            raise NotPermittedError(f"growing {self!r}: only the process that made it can")
        properties = device_memory(reserved.context.ordinal, _handle_types(bool(reserved.identity)))
        code, call = reserved.map_new(growth, properties)
        if code == CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            raise out_of_memory(self.context, growth, call)
        if code:
            raise failure(reserved.api, code, call, f"growing {self!r} to {nbytes} bytes")
        self._nbytes = sum(reserved.mapped)


def _handle_types(shareable: bool) -> CUmemAllocationHandleType:
    return BY_DESCRIPTOR if shareable else CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE


def _register_reductions() -> None:
    """Register growing buffers, and arrays over them, with multiprocessing."""
    register_reduction(GrowingBuffer, _reduced)
    register_memory_reductions()


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
    identification = (
        context.device.uuid.bytes,
        reserved.identity,
        buffer.capacity,
        buffer.granularity,
    )
    return _received, (type(context), identification, pieces)


# The result of `DupFd` has no public type; it has `detach`.
def _received(
    kind: type[BaseContext],
    identification: tuple[bytes, bytes, int, int],
    pieces: list[tuple[int, Any]],
) -> GrowingBuffer:
    """Return a buffer received by multiprocessing: the existing one, grown, or a new one."""
    numbers = [(size, piece.detach()) for size, piece in pieces]
    uuid, identity, capacity, unit = identification
    try:
        stream = stream_for(kind, uuid)
        context = stream._handle.context
        with context.driver.lock:
            ranges = SharedMemory.of(context.driver, context.ordinal).ranges
            existing = ranges.get(identity)
            assert existing is None or isinstance(existing, ReservedRange)
            reserved = existing or ReservedRange.reserved(
                stream._handle, capacity, identity, is_foreign=True
            )
            ranges[identity] = reserved
            if reserved.is_foreign:
                _map_more(reserved, numbers)
    finally:
        for _, number in numbers:
            os.close(number)
    _register_reductions()
    buffer = GrowingBuffer.__new__(GrowingBuffer)
    buffer._capacity, buffer._granularity = capacity, unit
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
