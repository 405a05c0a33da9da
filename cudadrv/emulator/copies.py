"""Copies of bytes and boxes: finding and checking their sides, and running them.

CUDA Driver API: "Memory Management", cuMemcpy3DAsync. With unified addressing, a device pointer may
replace a host pointer, and pinned host memory a device pointer. Ranges are checked against their
allocation. The checks of boxes were measured with driver 580 on an H100.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..driver._api import (
    CUDA_MEMCPY3D,
    CUDA_MEMCPY3D_PEER,
    CUarray,
    CUdeviceptr,
    CUmemorytype,
    CUstream,
)
from .arrays import Array
from .call_error import invalid_value
from .caller_memory import mapped, whole_range
from .device_state import DeviceState
from .driver_state import DriverState
from .host_memory import HostRange
from .node_kind import NodeKind
from .streams import LEGACY_HANDLE, Stream

if TYPE_CHECKING:
    from .unwritten_copies import CopyCheck, UnwrittenElements

Ranges = tuple[DeviceState | None, list[tuple[int, int]]]
"""Addresses and sizes, on a device or the host."""
End = tuple[DeviceState | None, int, int]
"""One end of a copy: its device, or None for the host, its address, and its size in bytes."""
Staged = ctypes.Array[ctypes.c_char]
"""The bytes that the driver has copied from pageable memory."""
_HOST, _DEVICE = 1, 2  # CUmemorytype
_COPY: Final = struct.Struct("<4Qi4x6Q4Qi4x6Q3Q")  # CUDA_MEMCPY3D
BoxCopy: TypeAlias = CUDA_MEMCPY3D | CUDA_MEMCPY3D_PEER
_COPY_BYTES: Final = 200  # sizeof(CUDA_MEMCPY3D), and of CUDA_MEMCPY3D_PEER
_CONTEXTS: Final = (64, 152)  # of contexts in the latter, where the former has nothing
Box: TypeAlias = tuple[int, int, int]
"""Bytes of a row, rows, slices."""


class Memory(Enum):
    """What one side of a copy counts as, where the host's wait is decided."""

    DEVICE = "of a device, or managed"
    PAGE_LOCKED = "page-locked"
    PAGEABLE = "unknown to the driver"
    MANAGED_AS_HOST = "managed, where a function takes memory of the host"


class HostSide(NamedTuple):
    """One side of a copy.

    Attributes:
        range: the host's memory; None for memory of a device.
        memory: what it counts as.
    """

    range: HostRange | None
    memory: Memory


_ON_DEVICE: Final = HostSide(None, Memory.DEVICE)


class ReadyCopy(NamedTuple):
    """A copy that is ready to run.

    Attributes:
        host_addresses: rejects impossible copies, and returns the host addresses of source and
            target; its argument is whether that happens later than the call. Locks are held.
        run: copies, from the staged bytes if the source was staged.
        source, target: the two sides.
        takes_host: whether the source, and the target, are the host's side of a function or of a
            description that names one side so.
    """

    host_addresses: Callable[[bool], tuple[int, int]]
    run: Callable[[bool, Staged | None], None]
    source: End
    target: End
    takes_host: tuple[bool, bool] = (False, False)


class BoxSide(NamedTuple):
    """One side of a copy: the start of its box, and the steps to the next row and slice in bytes.

    Attributes:
        array: the array that it lies in; a copy fails if that was destroyed.
        any_host: whether ordinary memory of the host is allowed.
        takes_host: whether it is described as memory of the host (CU_MEMORYTYPE_HOST).
    """

    address: int
    row: int
    slice: int
    array: Array | None = None
    any_host: bool = False
    takes_host: bool = False

    def span(self, box: Box) -> int:
        """Return the bytes from the first to the last of the box."""
        width, height, depth = box
        return (depth - 1) * self.slice + (height - 1) * self.row + width

    def ranges(self, box: Box) -> list[tuple[int, int]]:
        """Return addresses and sizes of the rows; one range if they are contiguous."""
        width, height, depth = box
        if self.span(box) == width * height * depth:
            return [(self.address, self.span(box))]
        return [
            (self.address + z * self.slice + y * self.row, width)
            for z in range(depth)
            for y in range(height)
        ]

    def address_in(self, box: Box) -> Callable[[int], int]:
        """Return a function that returns the address of a byte of the box by its position."""
        width, height, _ = box

        def address_of(position: int) -> int:
            row, x = divmod(position, width)
            z, y = divmod(row, height)
            return self.address + z * self.slice + y * self.row + x

        return address_of

    def rows(self, memory: memoryview, box: Box) -> NDArray[np.uint8]:
        """Return the bytes of the box as (depth, height, width); `memory` begins at its start."""
        width, height, depth = box
        return np.ndarray((depth, height, width), np.uint8, memory, 0, (self.slice, self.row, 1))


def copy_bytes(
    driver: DriverState,
    dst: int,
    src: int,
    nbytes: int,
    h_stream: CUstream,
    *,
    to_host: bool = False,
    from_host: bool = False,
) -> None:
    """Copy bytes in the order of a stream, or record the copy."""
    stream = driver.handles.stream(h_stream)
    if nbytes > 0:
        move = copy_of_bytes(driver, dst, src, nbytes, to_host=to_host, from_host=from_host)
        others = _default_streams_elsewhere(driver, stream, move)
        for other in others:
            driver.operations.follow(stream, other)
        _submit_ready(driver, stream, move)
        for other in others:
            driver.operations.follow(other, stream)
        if stream.capture is not None:
            _record_copy_parameters(stream, _flat(move))


def _default_streams_elsewhere(
    driver: DriverState, stream: Stream, copy: ReadyCopy
) -> list[Stream]:
    """Return the other contexts' default streams that a copy between devices is in order with.

    A copy in a legacy default stream is in order with the work of both contexts: `cuMemcpyPeer`,
    CUDA Driver API. Measured with driver 580: it is so for every copy in that stream, and in order
    with the legacy default stream of the other context.
    """
    (source, source_address, _), (target, target_address, _) = copy.source, copy.target
    if source is target or source is None or target is None:
        return []
    if not stream.is_legacy or stream.capture is not None or driver.captures.active:
        return []
    streams = []
    for device, address in ((source, source_address), (target, target_address)):
        piece = device.piece_at(address)
        owner = None if piece is None else driver.handles.contexts.get(piece.context)
        # Memory of a pool belongs to no context.
        context = owner or driver.handles.primaries.get(device.ordinal)
        if device is not stream.context.device and context is not None and not context.destroyed:
            streams.append(driver.handles.default_stream(context, LEGACY_HANDLE))
    return streams


def _record_copy_parameters(stream: Stream, copy: bytes) -> None:
    """Store the recorded parameters: a CUDA_MEMCPY_NODE_PARAMS with this CUDA_MEMCPY3D."""
    if stream.capture is not None:
        stream.capture.set_params(stream, struct.pack("<8xQ", stream.context.handle) + copy)


def copy_of_bytes(
    driver: DriverState, dst: int, src: int, nbytes: int, *, to_host: bool, from_host: bool
) -> ReadyCopy:
    """Return a copy of bytes; `to_host` and `from_host` allow any memory of the host."""
    dst_device, src_device = driver.devices.holding(dst), driver.devices.holding(src)

    if not from_host:
        _reject_host_pool(driver, src_device, src)
    if not to_host:
        _reject_host_pool(driver, dst_device, dst)

    def host_addresses(later: bool) -> tuple[int, int]:
        return (
            host_address_of(driver, src_device, src, nbytes, from_host, later),
            host_address_of(driver, dst_device, dst, nbytes, to_host, later, is_written=True),
        )

    check = None if dst_device is not None else _check_of(driver, src_device, src, nbytes)

    def run(later: bool, staged: Staged | None) -> None:
        unwritten = None
        first, second = locks_of(dst_device, src_device)
        with first, second:
            source_address, target_address = host_addresses(later)
            ctypes.memmove(target_address, source_address if staged is None else staged, nbytes)
            if dst_device is not None:
                flags = _flags_of(driver, src_device, src, nbytes)
                _copy_flags(dst_device, dst, flags, nbytes)
            elif check is not None:
                unwritten = _look_at_bytes(driver, check, src_device, src, nbytes)
        if check is not None and unwritten is not None:
            check.report(unwritten)
        record_copy(driver, (src_device, [(src, nbytes)]), (dst_device, [(dst, nbytes)]))

    takes_host = (from_host and not to_host, to_host and not from_host)
    source, target = (src_device, src, nbytes), (dst_device, dst, nbytes)
    return ReadyCopy(host_addresses, run, source, target, takes_host)


def _submit_ready(driver: DriverState, stream: Stream, copy: ReadyCopy) -> None:
    """Copy bytes in the order of a stream, and wait as the driver does."""
    _, run, source, target, takes_host = copy
    recording = stream.capture is not None
    if driver.operations.timeline is None and not recording:
        operation = driver.operations.submit(stream, NodeKind.COPY, lambda: run(False, None))
        if operation is not None:  # another thread's nested call has just queued work
            driver.operations.wait_for([operation], stream.context)
        first, second = takes_host
        if _is_waited_for(memory_of(driver, source, first), memory_of(driver, target, second)):
            driver.operations.host_has_waited(stream)
        return
    look_at(copy, later=recording)
    source_side = host_side(driver, *source, is_written=False, takes_host=takes_host[0])
    target_side = host_side(driver, *target, is_written=True, takes_host=takes_host[1])
    staged = None
    if not recording and source_side.memory is Memory.PAGEABLE:
        staged = ctypes.create_string_buffer(ctypes.string_at(*source[1:]))
    _submit_copy(driver, stream, lambda: run(True, staged), source_side, target_side)


def memory_of(driver: DriverState, end: End, takes_host: bool) -> Memory:
    """Return what one end of a copy counts as."""
    device, address, _ = end
    piece = driver.memory.host.find(address) if device is None else None
    if piece is None:
        return Memory.PAGEABLE if device is None else Memory.DEVICE
    if piece.managed:
        return Memory.MANAGED_AS_HOST if takes_host else Memory.DEVICE
    return Memory.PAGE_LOCKED


def _is_waited_for(source: Memory, target: Memory) -> bool:
    """Return whether an asynchronous copy returns once it is complete.

    CUDA Driver API, "API synchronization behavior"; measured with driver 580 where that leaves
    managed memory open.
    """
    within_host = {source, target} <= {Memory.PAGE_LOCKED, Memory.PAGEABLE}
    is_named = Memory.MANAGED_AS_HOST in (source, target)
    return target is Memory.PAGEABLE or within_host or is_named


def record_copy(driver: DriverState, read: Ranges, written: Ranges) -> None:
    """Record the accesses of a copy or a fill, if accesses are compared."""
    if driver.operations.accesses is None:
        return
    known_ranges = [
        [r for r in ranges if device is not None or driver.memory.host.find(r[0]) is not None]
        for device, ranges in (read, written)
    ]
    driver.operations.accesses.moved(*known_ranges)


def host_side(
    driver: DriverState,
    device: DeviceState | None,
    address: int,
    nbytes: int,
    *,
    is_written: bool,
    takes_host: bool = False,
) -> HostSide:
    """Return the host memory that a copy uses, and what it counts as.

    If races are checked, the race check reports the host's changes of memory that the driver knows.
    """
    if device is not None:
        return _ON_DEVICE
    piece = driver.memory.host.find(address)
    is_watched = piece is None or driver.operations.accesses is None
    memory = memory_of(driver, (device, address, nbytes), takes_host)
    return HostSide(HostRange(address, nbytes, is_written, piece, is_watched), memory)


def _flags_of(
    driver: DriverState, device: DeviceState | None, address: int, nbytes: int
) -> NDArray[np.uint8] | None:
    """Return which bytes of a copy's source were written; None if all count as written."""
    if device is not None:
        return device.flags(address, nbytes)
    piece = driver.memory.host.find(address)
    if piece is None or piece.written is None:
        return None
    return piece.written.settled(address - piece.address, nbytes)


def _check_of(
    driver: DriverState,
    source: DeviceState | None,
    address: int,
    nbytes: int,
    itemsize: int | None = None,
) -> CopyCheck | None:
    """Return the check of a copy to the host; None if such copies are not checked."""
    copies = driver.copy_watch
    if copies is None or (source is None and driver.memory.host.find(address) is None):
        return None
    return copies.check_of(address, nbytes, itemsize)


def _look_at_bytes(
    driver: DriverState, check: CopyCheck, source: DeviceState | None, address: int, nbytes: int
) -> UnwrittenElements | None:
    """Return the unwritten elements of an array of which these bytes are copied."""
    flags = _flags_of(driver, source, address, nbytes)
    if flags is None or flags.all():
        return None
    elements = check.elements
    flags = _flags_of(driver, source, elements.address, elements.nbytes)
    if flags is None:
        return None
    return check.look(flags.reshape(1, -1), lambda position: elements.address + position)


def _submit_copy(
    driver: DriverState, stream: Stream, run: Callable[[], None], source: HostSide, target: HostSide
) -> None:
    """Queue or record a copy.

    Bytes from pageable memory were staged, and are watched in a graph only.
    """
    recording = stream.capture is not None
    host_ranges = tuple(
        side.range._replace(
            is_watched=side.range.is_watched and (recording or side.memory is not Memory.PAGEABLE),
        )
        for side in (source, target)
        if side.range is not None
    )
    waits = not recording and _is_waited_for(source.memory, target.memory)
    if waits:
        driver.operations.queue.reject_to_wait(stream)
    operation = driver.operations.submit(stream, NodeKind.COPY, run, host_ranges)
    if operation is not None and waits:
        driver.operations.wait_for([operation], stream.context)
        driver.operations.host_has_waited(stream)


def host_address_of(
    driver: DriverState,
    device: DeviceState | None,
    address: int,
    nbytes: int,
    any_host: bool,
    later: bool,
    *,
    is_written: bool = False,
) -> int:
    """Return the host address of a range; locks are held.

    For later execution, or in a graph, the call has already checked whether a graph's memory is
    allocated. Each page of the range of a client in C is checked.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE, if the range does not lie in one allocation.
    """
    if device is not None:
        return device.place(address, nbytes, in_graph=later)
    piece = driver.memory.host.find(address)
    if piece is not None:
        if address + nbytes > piece.address + piece.nbytes:
            raise invalid_value(
                f"{nbytes} bytes at {address:#x} go beyond the pinned host memory of "
                f"{piece.nbytes} bytes at {piece.address:#x}"
            )
        return address
    if not any_host:
        raise invalid_value(f"{address:#x} is neither device memory nor pinned host memory")
    if not address:
        raise invalid_value("the host pointer is null")
    if driver.process.has_foreign_callers:
        return whole_range(address, nbytes, is_written=is_written)
    return mapped(address, nbytes)


def _flat(move: ReadyCopy) -> bytes:
    """Return a copy of bytes as a CUDA_MEMCPY3D of one row."""
    sides: list[int] = []
    for device, address, _ in (move.source, move.target):
        host, on_device = (address, 0) if device is None else (0, address)
        sides += (0, 0, 0, 0, _HOST if device is None else _DEVICE, host, on_device, 0, 0, 0, 0)
    return _COPY.pack(*sides, move.source[2], 1, 1)


def look_at(move: ReadyCopy, *, later: bool) -> tuple[int, int]:
    """Return the host addresses of source and target of a copy.

    Raises:
        CallError: the copy is impossible.
    """
    first, second = locks_of(move.source[0], move.target[0])
    with first, second:
        return move.host_addresses(later)


def _copy_flags(
    device: DeviceState, dst: int, flags: NDArray[np.uint8] | None, nbytes: int
) -> None:
    """Copy the unwritten flags of the source to the target."""
    written = device.memory.written
    if written is None:
        return
    if flags is None:
        written.mark(dst - device.memory.base, nbytes)
    else:
        written.put(dst - device.memory.base, flags)


def locks_of(
    first: DeviceState | None, second: DeviceState | None
) -> tuple[AbstractContextManager[object], AbstractContextManager[object]]:
    """Return the locks of the devices, in the order of ordinals, for one `with`.

    It takes no lock itself, so that an exception between two lines cannot lose one.
    """
    if first is second:
        second = None
    if first is not None and second is not None and first.ordinal > second.ordinal:
        first, second = second, first
    return lock_of(first), lock_of(second)


def lock_of(device: DeviceState | None) -> AbstractContextManager[object]:
    """Return the lock of a device, or of the host, which needs none."""
    return nullcontext() if device is None else device.lock


def copy_boxes(driver: DriverState, copy: BoxCopy, stream: Stream) -> None:
    """Copy a box in the order of a stream, or record the copy."""
    box = int(copy.WidthInBytes), int(copy.Height), int(copy.Depth)
    if 0 in box:
        return
    source, target = _source_of(driver, copy, box), _target_of(driver, copy, box)
    _submit_ready(driver, stream, copy_of_box(driver, source, target, box))
    if stream.capture is not None:
        description = bytearray(ctypes.string_at(copy.getPtr(), _COPY_BYTES))
        for offset in _CONTEXTS:
            description[offset : offset + 8] = bytes(8)
        _record_copy_parameters(stream, bytes(description))


def copy_of_box(driver: DriverState, source: BoxSide, target: BoxSide, box: Box) -> ReadyCopy:
    """Return a copy of a box from one side to the other."""
    devices = driver.devices.holding(source.address), driver.devices.holding(target.address)

    def host_addresses(later: bool) -> tuple[int, int]:
        return (
            _host_address_of_side(driver, source, devices[0], box, later),
            _host_address_of_side(driver, target, devices[1], box, later, is_written=True),
        )

    span, check = source.span(box), None
    if devices[1] is None:
        texel = None if source.array is None else source.array.layout.texel_bytes
        check = _check_of(driver, devices[0], source.address, span, texel)

    def run(later: bool, staged: Staged | None) -> None:
        unwritten = None
        first, second = locks_of(*devices)
        with first, second:
            source_address, target_address = host_addresses(later)
            if staged is not None:
                source_address = ctypes.addressof(staged)
            _copy_box(source_address, source, target_address, target, box)
            flags = _flags_of(driver, devices[0], source.address, span)
            _copy_flags_of_box(flags, source, devices[1], target, box)
            if check is not None and flags is not None:
                unwritten = check.look(
                    source.rows(flags.data, box).reshape(-1, box[0]), source.address_in(box)
                )
        if check is not None and unwritten is not None:
            check.report(unwritten)
        record_copy(driver, (devices[0], source.ranges(box)), (devices[1], target.ranges(box)))

    source_span = devices[0], source.address, span
    target_span = devices[1], target.address, target.span(box)
    takes_host = (source.takes_host, target.takes_host)
    return ReadyCopy(host_addresses, run, source_span, target_span, takes_host)


def _source_of(driver: DriverState, copy: BoxCopy, box: Box) -> BoxSide:
    start = int(copy.srcXInBytes), int(copy.srcY), int(copy.srcZ)
    try:
        kind = copy.srcMemoryType
    except ValueError as error:
        raise invalid_value(f"the kind of the source: {error}") from None
    if kind == CUmemorytype.CU_MEMORYTYPE_ARRAY:
        return side_in_array(driver, copy.srcArray, int(copy.srcLOD), start, box)
    pitch, height = int(copy.srcPitch), int(copy.srcHeight)
    return _in_memory(kind, int(copy.srcHost), copy.srcDevice, pitch, height, start, box)


def _target_of(driver: DriverState, copy: BoxCopy, box: Box) -> BoxSide:
    start = int(copy.dstXInBytes), int(copy.dstY), int(copy.dstZ)
    try:
        kind = copy.dstMemoryType
    except ValueError as error:
        raise invalid_value(f"the kind of the destination: {error}") from None
    if kind == CUmemorytype.CU_MEMORYTYPE_ARRAY:
        return side_in_array(driver, copy.dstArray, int(copy.dstLOD), start, box)
    pitch, height = int(copy.dstPitch), int(copy.dstHeight)
    return _in_memory(kind, int(copy.dstHost), copy.dstDevice, pitch, height, start, box)


def side_in_array(
    driver: DriverState, handle: CUarray, level: int, start: Box, box: Box
) -> BoxSide:
    """Return the side of a copy that lies in an array."""
    array = driver.handles.arrays.get(int(handle))
    if array is None:
        raise invalid_value(f"{int(handle):#x} is no live array")
    if level:
        raise invalid_value(f"level {level} of an array that is not mipmapped")
    layout = array.layout
    row = layout.width * layout.texel_bytes
    extents = row, layout.rows, layout.slices
    if any(first + n > limit for first, n, limit in zip(start, box, extents, strict=True)):
        raise invalid_value(
            f"a box of {box} (bytes, rows, slices) at {start} goes beyond the array of {extents}"
        )
    x, y, z = start
    step = row * layout.rows
    return BoxSide(array.address + z * step + y * row + x, row, step, array)


def _host_address_of_side(
    driver: DriverState,
    side: BoxSide,
    device: DeviceState | None,
    box: Box,
    recording: bool,
    *,
    is_written: bool = False,
) -> int:
    if side.array is not None and side.array.destroyed:
        raise invalid_value("the array of the copy was destroyed")
    if not side.any_host:
        _reject_host_pool(driver, device, side.address)
    span, any_host = side.span(box), side.any_host
    return host_address_of(
        driver, device, side.address, span, any_host, recording, is_written=is_written
    )


def _in_memory(
    kind: CUmemorytype,
    host: int,
    device: CUdeviceptr,
    pitch: int,
    height: int,
    corner: Box,
    box: Box,
) -> BoxSide:
    (x, y, z), (width, rows, slices) = corner, box
    pitch = pitch or x + width
    height = height or y + rows
    if x + width > pitch or (y + rows > height and (slices > 1 or z)):
        raise invalid_value(
            f"a box of {box} (bytes, rows, slices) at {corner} goes beyond rows of {pitch} bytes "
            f"and slices of {height} rows"
        )
    is_host = kind == CUmemorytype.CU_MEMORYTYPE_HOST
    address = host if is_host else int(device)
    if not address:
        raise invalid_value("the pointer of one side of the copy is null")
    any_host = kind != CUmemorytype.CU_MEMORYTYPE_DEVICE
    start = address + z * pitch * height + y * pitch + x
    return BoxSide(start, pitch, pitch * height, any_host=any_host, takes_host=is_host)


def _copy_box(
    source_address: int, source: BoxSide, target_address: int, target: BoxSide, box: Box
) -> None:
    width, height, depth = box
    packed = width * height * depth
    if source.span(box) == target.span(box) == packed:
        ctypes.memmove(target_address, source_address, packed)
        return
    written, read = (
        side.rows(memoryview((ctypes.c_ubyte * side.span(box)).from_address(address)), box)
        for address, side in ((target_address, target), (source_address, source))
    )
    np.copyto(written, read)


def _copy_flags_of_box(
    read: NDArray[np.uint8] | None,
    source: BoxSide,
    device: DeviceState | None,
    target: BoxSide,
    box: Box,
) -> None:
    """Copy the unwritten flags of the source to the target."""
    if device is None or device.memory.written is None:
        return
    flags = device.memory.written.of(target.address - device.memory.base, target.span(box))
    target.rows(flags.data, box)[...] = 1 if read is None else source.rows(read.data, box)
    device.memory.written.version += 1


def _reject_host_pool(driver: DriverState, device: DeviceState | None, address: int) -> None:
    """Reject page-locked memory of a pool as the device's side of a copy.

    Driver 580 does so too, whichever device has access; it accepts a pool's managed memory.
    """
    piece = driver.memory.host.find(address) if device is None else None
    if piece is not None and piece.pool is not None and not piece.managed:
        raise invalid_value(
            f"{address:#x} is page-locked memory of a pool: copy with cuMemcpyAsync, or name "
            "it as the host's side of cuMemcpyHtoDAsync or cuMemcpyDtoHAsync"
        )
