"""Copies: of bytes, of boxes, between contexts, in batches.

CUDA Driver API: "Memory Management", "API synchronization behavior". Copies without a stream run in
the legacy stream. The copies of a batch have no order among each other, so they are queued last
first. The codes were measured with driver 580 on two devices and on one.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from ptx.emulate.memory.device_memory import MappedPiece

from ...driver._api import (
    CUDA_MEMCPY3D,
    CUDA_MEMCPY3D_BATCH_OP,
    CUDA_MEMCPY3D_PEER,
    CUcontext,
    CUdeviceptr,
    CUmemcpy3DOperand,
    CUmemcpyAttributes,
    CUresult,
    CUstream,
)
from ..call_error import OK, CallError, invalid_value
from ..copies import (
    Box,
    BoxCopy,
    BoxSide,
    Memory,
    ReadyCopy,
    copy_boxes,
    copy_bytes,
    copy_of_box,
    copy_of_bytes,
    host_side,
    look_at,
    memory_of,
    side_in_array,
)
from ..device_state import DeviceState
from ..driver_state import DriverState
from ..node_kind import NodeKind
from ..streams import LEGACY_HANDLE, Stream
from .call import DriverCalls, call

_IN_STREAM, _DURING_CALL, _ANY_TIME = 1, 2, 3  # CUmemcpySrcAccessOrder
_POINTER, _ARRAY = 1, 2  # CUmemcpy3DOperandType
_FLAGS: Final = 1  # CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE


class CopyCalls(DriverCalls):
    """Copies."""

    @call
    def cuMemcpyHtoDAsync(
        self, dst_device: CUdeviceptr, src_host: int, byte_count: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Copy from host to device."""
        self._reject_by_context(byte_count, int(dst_device))
        copy_bytes(self._state, int(dst_device), src_host, byte_count, h_stream, from_host=True)
        return OK

    @call
    def cuMemcpyDtoHAsync(
        self, dst_host: int, src_device: CUdeviceptr, byte_count: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Copy from device to host."""
        self._reject_by_context(byte_count, int(src_device))
        copy_bytes(self._state, dst_host, int(src_device), byte_count, h_stream, to_host=True)
        return OK

    @call
    def cuMemcpyDtoDAsync(
        self,
        dst_device: CUdeviceptr,
        src_device: CUdeviceptr,
        byte_count: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Copy from device to device, also between devices."""
        self._reject_by_context(byte_count, int(dst_device), int(src_device))
        copy_bytes(self._state, int(dst_device), int(src_device), byte_count, h_stream)
        return OK

    @call
    def cuMemcpyPeerAsync(
        self,
        dst_device: CUdeviceptr,
        dst_context: CUcontext,
        src_device: CUdeviceptr,
        src_context: CUcontext,
        byte_count: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Copy between contexts; the pointers select the devices, null contexts are allowed."""
        self._reject_dead(dst_context, src_context)
        copy_bytes(self._state, int(dst_device), int(src_device), byte_count, h_stream)
        return OK

    def _copy_in_default_stream(self, dst: int, src: int, byte_count: int) -> None:
        copy_bytes(self._state, dst, src, byte_count, self._state.thread.default_stream)
        self._state.operations.wait_if_synchronous(dst, src)

    def _reject_dead(self, *contexts: CUcontext) -> None:
        """Reject contexts that are destroyed or broken; null ones are allowed."""
        for context in contexts:
            if int(context):
                self._state.handles.usable(self._state.handles.context(context))

    @call
    def cuMemcpy3DAsync(self, copy: CUDA_MEMCPY3D | None, h_stream: CUstream, /) -> tuple[CUresult]:
        """Copy `WidthInBytes` of `Height` rows of `Depth` slices; an empty box copies nothing."""
        submit_box(self._state, copy, h_stream)
        return OK

    @call
    def cuMemcpy3DPeerAsync(
        self, copy: CUDA_MEMCPY3D_PEER | None, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Same between contexts; the pointers select the devices, null contexts are allowed."""
        if copy is not None:
            self._reject_dead(copy.dstContext, copy.srcContext)
        submit_box(self._state, copy, h_stream)
        return OK

    def _reject_by_context(self, nbytes: int, *addresses: int) -> None:
        """Reject memory that the driver does not accept in the current context.

        The stream does not matter. Memory of a pool, and memory mapped into a range, must be
        accessible from the current context's device. Without a context everything is accepted,
        except bytes across the border of two mappings: measured with driver 580 on two devices and
        on one.
        """
        stack = self._state.thread.stack
        current = stack[-1].device if stack else None
        for address in addresses:
            device = self._state.devices.holding(address)
            if device is None or device is current:
                continue
            with device.lock:
                mapped = _mapping_at(device, address)
                allocation = device.memory.find(address)
                piece = None if allocation is None else device.pieces.get(allocation.address)
            if current is None:
                if mapped is not None and address + nbytes > mapped[0] + mapped[1].nbytes:
                    raise invalid_value(
                        f"{nbytes} bytes at {address:#x} go over the border of two mappings, "
                        "while no context is current"
                    )
            elif (mapped and current.ordinal not in mapped[1].devices) or (
                piece and piece.pool and current.ordinal not in piece.pool.peers
            ):
                noun = "mapped memory" if mapped else "memory of a pool"
                raise invalid_value(
                    f"{noun} of device {device.ordinal} was given while a context of "
                    f"device {current.ordinal} is current, which cannot reach it"
                )

    @call
    def cuMemcpyHtoD(
        self, dst_device: CUdeviceptr, src_host: int, byte_count: int, /
    ) -> tuple[CUresult]:
        """Copy from host to device."""
        self._reject_by_context(byte_count, int(dst_device))
        self._copy_and_wait(int(dst_device), src_host, byte_count, from_host=True)
        return OK

    @call
    def cuMemcpyDtoH(
        self, dst_host: int, src_device: CUdeviceptr, byte_count: int, /
    ) -> tuple[CUresult]:
        """Copy from device to host."""
        self._reject_by_context(byte_count, int(src_device))
        self._copy_and_wait(dst_host, int(src_device), byte_count, to_host=True)
        return OK

    @call
    def cuMemcpyDtoD(
        self, dst_device: CUdeviceptr, src_device: CUdeviceptr, byte_count: int, /
    ) -> tuple[CUresult]:
        """Copy from device to device; the host does not wait, but for SYNC_MEMOPS."""
        self._reject_by_context(byte_count, int(dst_device), int(src_device))
        self._copy_in_default_stream(int(dst_device), int(src_device), byte_count)
        return OK

    @call
    def cuMemcpyPeer(
        self,
        dst_device: CUdeviceptr,
        dst_context: CUcontext,
        src_device: CUdeviceptr,
        src_context: CUcontext,
        byte_count: int,
        /,
    ) -> tuple[CUresult]:
        """Copy between contexts; the host does not wait."""
        self._reject_dead(dst_context, src_context)
        self._copy_in_default_stream(int(dst_device), int(src_device), byte_count)
        return OK

    @call
    def cuMemcpy3D(self, copy: CUDA_MEMCPY3D | None, /) -> tuple[CUresult]:
        """Copy a box of bytes."""
        self._state.operations.queue.reject_to_wait(
            self._state.handles.stream(self._state.thread.default_stream)
        )
        submit_box(self._state, copy, self._state.thread.default_stream)
        self._state.operations.wait_for_stream(
            self._state.handles.stream(self._state.thread.default_stream)
        )
        return OK

    @call
    def cuMemcpy3DPeer(self, copy: CUDA_MEMCPY3D_PEER | None, /) -> tuple[CUresult]:
        """Copy a box between contexts; the host does not wait."""
        if copy is not None:
            self._reject_dead(copy.dstContext, copy.srcContext)
        submit_box(self._state, copy, self._state.thread.default_stream)
        return OK

    @call
    def cuMemcpyAsync(
        self, dst: CUdeviceptr, src: CUdeviceptr, byte_count: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Copy between any two addresses."""
        self._reject_by_context(byte_count, int(dst), int(src))
        copy_bytes(
            self._state, int(dst), int(src), byte_count, h_stream, to_host=True, from_host=True
        )
        return OK

    @call
    def cuMemcpy(self, dst: CUdeviceptr, src: CUdeviceptr, byte_count: int, /) -> tuple[CUresult]:
        """Same, and the host waits."""
        self._reject_by_context(byte_count, int(dst), int(src))
        self._copy_and_wait(int(dst), int(src), byte_count, to_host=True, from_host=True)
        return OK

    def _copy_and_wait(
        self, dst: int, src: int, nbytes: int, *, to_host: bool = False, from_host: bool = False
    ) -> None:
        """Copy in the legacy stream, and wait for the copy."""
        if nbytes > 0:
            self._state.operations.queue.reject_to_wait(
                self._state.handles.stream(self._state.thread.default_stream)
            )
        copy_bytes(
            self._state,
            dst,
            src,
            nbytes,
            self._state.thread.default_stream,
            to_host=to_host,
            from_host=from_host,
        )
        if nbytes > 0:
            self._state.operations.wait_for_stream(
                self._state.handles.stream(self._state.thread.default_stream)
            )

    @call
    def cuMemcpyBatchAsync(
        self,
        dsts: Sequence[CUdeviceptr] | None,
        srcs: Sequence[CUdeviceptr] | None,
        sizes: Sequence[int],
        count: int,
        attrs: Sequence[CUmemcpyAttributes] | None,
        attrs_idxs: Sequence[int],
        num_attrs: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Copy several ranges; the attributes from `attrs_idxs[k]` on are `attrs[k]`."""
        stream = self._stream_of_batch(h_stream)
        if not dsts or not srcs or not 0 < count <= min(len(dsts), len(srcs), len(sizes)):
            raise invalid_value(f"a batch of {count} copies lacks targets, sources or sizes")
        starts = first_indices("attrsIdxs", attrs_idxs, attrs or (), num_attrs, count)
        orders = [0] * count
        for (start, end), attributes in zip(pairwise((*starts, count)), attrs or (), strict=False):
            orders[start:end] = [_order_of(attributes)] * (end - start)
        if min(sizes[:count]) <= 0:
            raise invalid_value(f"copy {sizes.index(min(sizes[:count]))} of a batch has no bytes")
        copies = [
            (
                copy_of_bytes(self._state, int(dst), int(src), size, to_host=True, from_host=True),
                order,
            )
            for dst, src, size, order in zip(dsts, srcs, sizes, orders, strict=False)
        ]
        self._submit_batch(stream, copies)
        return OK

    @call
    def cuMemcpyWithAttributesAsync(
        self,
        dst: CUdeviceptr,
        src: CUdeviceptr,
        size: int,
        attr: CUmemcpyAttributes | None,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Copy one range, with an attribute for when the source may be read."""
        stream = self._stream_of_batch(h_stream)
        if attr is None:
            raise invalid_value("the attributes of the copy are null")
        order = _order_of(attr)
        if size > 0:
            move = copy_of_bytes(
                self._state, int(dst), int(src), size, to_host=True, from_host=True
            )
            self._submit_batch(stream, [(move, order)])
        return OK

    @call
    def cuMemcpy3DBatchAsync(
        self,
        num_ops: int,
        op_list: Sequence[CUDA_MEMCPY3D_BATCH_OP] | None,
        flags: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]:
        """Copy several boxes of memory or of arrays."""
        stream = self._stream_of_batch(h_stream)
        if not op_list or not 0 < num_ops <= len(op_list) or flags:
            raise invalid_value(f"a batch of {num_ops} copies with flags {flags:#x}")
        copies = [
            (self._box_of(operation), _order_of(operation)) for operation in op_list[:num_ops]
        ]
        self._submit_batch(stream, copies)
        return OK

    @call
    def cuMemcpy3DWithAttributesAsync(
        self, op: CUDA_MEMCPY3D_BATCH_OP | None, flags: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Copy one box, with an attribute for when the source may be read."""
        stream = self._stream_of_batch(h_stream)
        if op is None or flags:
            raise invalid_value("the copy is null" if op is None else f"flags {flags:#x}")
        self._submit_batch(stream, [(self._box_of(op), _order_of(op))])
        return OK

    def _stream_of_batch(self, handle: CUstream) -> Stream:
        if int(handle) in (0, LEGACY_HANDLE):
            raise invalid_value("such a copy needs a stream other than the legacy one")
        if not self._state.thread.stack:  # as driver 580 says, though the stream has a context
            raise invalid_value("a batch of copies needs a current context")
        stream = self._state.handles.stream(handle)
        if stream.capture is not None:
            self._state.captures.reject_if_invalid(stream.capture)
            raise CallError(
                CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "a graph takes no such copy; the capture goes on, as with driver 580",
            )
        return stream

    def _submit_batch(self, stream: Stream, copies: Sequence[tuple[ReadyCopy, int]]) -> None:
        for copy, _ in copies:
            look_at(copy, later=False)
        waits = any(self._is_waited_for(copy, order) for copy, order in copies)
        if waits:
            self._state.operations.queue.reject_to_wait(stream)
        for copy, order in reversed(copies):
            self._submit_ordered(stream, copy, order)
        if waits:
            self._state.operations.wait_for_stream(stream)

    def _is_waited_for(self, copy: ReadyCopy, order: int) -> bool:
        """Return whether a batch with this copy returns once it is complete.

        Measured with driver 580, as no manual says it.
        """
        source = memory_of(self._state, copy.source, takes_host=False)
        target = memory_of(self._state, copy.target, takes_host=False)
        if order == _DURING_CALL:
            return source is Memory.DEVICE or (
                source is Memory.PAGE_LOCKED and target is not Memory.PAGEABLE
            )
        return order == _IN_STREAM and (source, target) == (Memory.PAGEABLE, Memory.DEVICE)

    def _submit_ordered(self, stream: Stream, copy: ReadyCopy, order: int) -> None:
        """Queue a copy whose source may be read by `order`.

        A source that may be read early is read at the call, so that a missing wait is found. Host
        memory that must stay unchanged is watched instead.
        """
        if self._state.operations.timeline is None:
            self._state.operations.submit(stream, NodeKind.COPY, partial(copy.run, False, None))
            return
        source = host_side(self._state, *copy.source, is_written=False)
        target = host_side(self._state, *copy.target, is_written=True)
        address, _ = look_at(copy, later=False)
        staged = None
        if order == _DURING_CALL or (order == _ANY_TIME and source.range is None):
            nbytes = copy.source[2]
            staged = ctypes.create_string_buffer(ctypes.string_at(address, nbytes), nbytes)
        read = None if staged is not None else source.range
        host_ranges = tuple(
            host_range for host_range in (read, target.range) if host_range is not None
        )
        self._state.operations.submit(
            stream, NodeKind.COPY, partial(copy.run, True, staged), host_ranges
        )

    def _box_of(self, op: CUDA_MEMCPY3D_BATCH_OP) -> ReadyCopy:
        """Return a copy of a box, whose extents are elements of an array's size, else bytes."""
        extent = int(op.extent.width), int(op.extent.height), int(op.extent.depth)
        if 0 in extent:
            raise invalid_value(f"a copy of {extent} (width, height, depth) elements")
        sizes = {self._element_bytes(side) for side in (op.src, op.dst)} - {0}
        if len(sizes) > 1:
            raise invalid_value(f"arrays of elements of {sizes} bytes are not copied to each other")
        nbytes = sizes.pop() if sizes else 1
        box = extent[0] * nbytes, extent[1], extent[2]
        source, target = (self._side_of(side, nbytes, box) for side in (op.src, op.dst))
        return copy_of_box(self._state, source, target, box)

    def _element_bytes(self, side: CUmemcpy3DOperand) -> int:
        """Return the element size of its array; 0 for a pointer."""
        if _kind_of(side) != _ARRAY:
            return 0
        array = self._state.handles.arrays.get(int(side.op.array.array))
        return 0 if array is None else array.layout.texel_bytes

    def _side_of(self, side: CUmemcpy3DOperand, nbytes: int, box: Box) -> BoxSide:
        if _kind_of(side) == _ARRAY:
            array = side.op.array
            corner = int(array.offset.x) * nbytes, int(array.offset.y), int(array.offset.z)
            return side_in_array(self._state, array.array, 0, corner, box)
        pointer = side.op.ptr
        width, height, _ = box
        row = int(pointer.rowLength) * nbytes or width
        rows = int(pointer.layerHeight) or height
        address = int(pointer.ptr)
        if not address or row < width or rows < height:
            raise invalid_value(
                f"rows of {row} bytes and layers of {rows} rows at {address:#x} do not hold a box "
                f"of {box} (bytes, rows, slices)"
            )
        return BoxSide(address, row, row * rows, any_host=True)


def submit_box(driver: DriverState, copy: BoxCopy | None, h_stream: CUstream) -> None:
    """Copy a box in the order of a stream, or record the copy."""
    if copy is None:
        raise invalid_value("the copy's parameters are null")
    copy_boxes(driver, copy, driver.handles.stream(h_stream))


def _mapping_at(device: DeviceState, address: int) -> tuple[int, MappedPiece] | None:
    """Return the address of the piece mapped there into a reserved range, and the piece."""
    for reservation in device.reservations.values():
        if reservation.holds(address, 1):
            return reservation.piece_at(address)
    return None


def _kind_of(side: CUmemcpy3DOperand) -> int:
    try:
        kind = int(side.type)
    except (TypeError, ValueError):  # older bindings have None for an unknown type
        kind = 0
    if kind not in (_POINTER, _ARRAY):
        raise invalid_value("a side of a copy is a pointer or an array")
    return kind


def _order_of(operation: CUmemcpyAttributes | CUDA_MEMCPY3D_BATCH_OP) -> int:
    """Return when the source may be read."""
    try:
        order = int(operation.srcAccessOrder)
    except (TypeError, ValueError):
        order = 0
    if order not in (_IN_STREAM, _DURING_CALL, _ANY_TIME):
        raise invalid_value(f"srcAccessOrder {order} says not when a source may be read: 1, 2 or 3")
    if int(operation.flags) & ~_FLAGS:
        raise invalid_value(f"invalid flags of a copy {int(operation.flags):#x}")
    return order


def first_indices(
    parameter: str, starts: Sequence[int], attributes: Sequence[object], number: int, count: int
) -> Sequence[int]:
    """Return where in a batch of `count` each of `number` attributes begins to apply.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE, if they do not begin with 0 and increase.
    """
    if not 0 < number <= min(len(attributes), len(starts), count):
        raise invalid_value(f"{number} attributes for a batch of {count}")
    firsts = starts[:number]
    grows = all(first < following for first, following in pairwise(firsts))
    if firsts[0] or not grows or firsts[-1] >= count:
        raise invalid_value(
            f"{parameter} is {list(firsts)}: it begins with 0, grows, and is below {count}"
        )
    return firsts
