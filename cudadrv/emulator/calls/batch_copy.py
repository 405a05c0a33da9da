"""Batches of copies, and copies that say when their source may be read.

CUDA Driver API: cuMemcpyBatchAsync, cuMemcpy3DBatchAsync. The copies of a batch have no order among
each other, so they are queued last first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Final

from ...driver._api import (
    CUDA_MEMCPY3D_BATCH_OP,
    CUdeviceptr,
    CUmemcpy3DOperand,
    CUmemcpyAttributes,
    CUresult,
    CUstream,
)
from ..node_kind import NodeKind
from ..refusal import OK, Refusal, invalid_value
from ..streams import LEGACY_HANDLE, Stream
from .call import call
from .copy import Move, look_at
from .copy_box import Box, BoxCopyCalls, BoxSide

_IN_STREAM, _DURING_CALL, _ANY_TIME = 1, 2, 3  # CUmemcpySrcAccessOrder
_POINTER, _ARRAY = 1, 2  # CUmemcpy3DOperandType
_FLAGS: Final = 1  # CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE


class BatchCopyCalls(BoxCopyCalls):
    """Batches of copies."""

    @call()
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
        starts = first_ones("attrsIdxs", attrs_idxs, attrs or (), num_attrs, count)
        orders = [0] * count
        for (start, end), each in zip(pairwise((*starts, count)), attrs or (), strict=False):
            orders[start:end] = [_order_of(each)] * (end - start)
        if min(sizes[:count]) <= 0:
            raise invalid_value(f"copy {sizes.index(min(sizes[:count]))} of a batch has no bytes")
        moves = [
            (self._move(int(dst), int(src), size, to_host=True, from_host=True), order)
            for dst, src, size, order in zip(dsts, srcs, sizes, orders, strict=False)
        ]
        self._submit_batch(stream, moves)
        return OK

    @call()
    def cuMemcpyWithAttributesAsync(
        self, dst: CUdeviceptr, src: CUdeviceptr, size: int, attr: CUmemcpyAttributes | None,
        h_stream: CUstream, /,
    ) -> tuple[CUresult]:  # fmt: skip
        """Copy one range, whose attributes say when the source may be read."""
        stream = self._stream_of_batch(h_stream)
        if attr is None:
            raise invalid_value("the attributes of the copy are null")
        order = _order_of(attr)
        if size > 0:
            move = self._move(int(dst), int(src), size, to_host=True, from_host=True)
            self._submit_ordered(stream, move, order)
        return OK

    @call()
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
        moves = [(self._box_of(each), _order_of(each)) for each in op_list[:num_ops]]
        self._submit_batch(stream, moves)
        return OK

    @call()
    def cuMemcpy3DWithAttributesAsync(
        self, op: CUDA_MEMCPY3D_BATCH_OP | None, flags: int, h_stream: CUstream, /
    ) -> tuple[CUresult]:
        """Copy one box, with what says when the source may be read."""
        stream = self._stream_of_batch(h_stream)
        if op is None or flags:
            raise invalid_value("the copy is null" if op is None else f"flags {flags:#x}")
        self._submit_ordered(stream, self._box_of(op), _order_of(op))
        return OK

    def _stream_of_batch(self, handle: CUstream) -> Stream:
        if int(handle) in (0, LEGACY_HANDLE):
            raise invalid_value("such a copy needs a stream other than the legacy one")
        stream = self._stream(handle)
        if stream.capture is not None:
            self._refuse_if_invalid(stream.capture)
            raise Refusal(
                CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "a graph takes no such copy; the capture goes on, as with driver 580",
            )
        return stream

    def _submit_batch(self, stream: Stream, moves: Sequence[tuple[Move, int]]) -> None:
        for move, _ in moves:
            look_at(move, later=False)
        for move, order in reversed(moves):
            self._submit_ordered(stream, move, order)

    def _submit_ordered(self, stream: Stream, move: Move, order: int) -> None:
        """Queue a copy whose source may be read as `order` says, and wait for nothing.

        What may be read before its stream gets there is read at the call, so that a missing wait is
        found; but of the host's memory that is promised to stay as it is, which is watched.
        """
        if self._timeline is None:
            self._submit(stream, NodeKind.COPY, partial(move.run, False, None))
            return
        of = self._host_side(*move.source, is_written=False)
        to = self._host_side(*move.target, is_written=True)
        address, _ = look_at(move, later=False)
        staged = None
        if order == _DURING_CALL or (order == _ANY_TIME and of.range is None):
            nbytes = move.source[2]
            staged = ctypes.create_string_buffer(ctypes.string_at(address, nbytes), nbytes)
        read = None if staged is not None else of.range
        used = tuple(each for each in (read, to.range) if each is not None)
        self._submit(stream, NodeKind.COPY, partial(move.run, True, staged), used)

    def _box_of(self, op: CUDA_MEMCPY3D_BATCH_OP) -> Move:
        """A copy of a box, whose extents are elements: of an array's size, else bytes."""
        extent = int(op.extent.width), int(op.extent.height), int(op.extent.depth)
        if 0 in extent:
            raise invalid_value(f"a copy of {extent} (width, height, depth) elements")
        sizes = {self._element_bytes(side) for side in (op.src, op.dst)} - {0}
        if len(sizes) > 1:
            raise invalid_value(f"arrays of elements of {sizes} bytes are not copied to each other")
        nbytes = sizes.pop() if sizes else 1
        box = extent[0] * nbytes, extent[1], extent[2]
        source, target = (self._side_of(side, nbytes, box) for side in (op.src, op.dst))
        return self._move_box(source, target, box)

    def _element_bytes(self, side: CUmemcpy3DOperand) -> int:
        """Of the array that it is; 0 of a pointer."""
        if _kind_of(side) != _ARRAY:
            return 0
        array = self._arrays.get(int(side.op.array.array))
        return 0 if array is None else array.layout.texel_bytes

    def _side_of(self, side: CUmemcpy3DOperand, nbytes: int, box: Box) -> BoxSide:
        if _kind_of(side) == _ARRAY:
            within = side.op.array
            at = int(within.offset.x) * nbytes, int(within.offset.y), int(within.offset.z)
            return self._in_array(within.array, 0, at, box)
        given = side.op.ptr
        width, height, _ = box
        row = int(given.rowLength) * nbytes or width
        rows = int(given.layerHeight) or height
        address = int(given.ptr)
        if not address or row < width or rows < height:
            raise invalid_value(
                f"rows of {row} bytes and layers of {rows} rows at {address:#x} do not hold a box "
                f"of {box} (bytes, rows, slices)"
            )
        return BoxSide(address, row, row * rows, any_host=True)


def _kind_of(side: CUmemcpy3DOperand) -> int:
    try:
        kind = int(side.type)
    except ValueError:
        kind = 0
    if kind not in (_POINTER, _ARRAY):
        raise invalid_value("a side of a copy is a pointer or an array")
    return kind


def _order_of(given: CUmemcpyAttributes | CUDA_MEMCPY3D_BATCH_OP) -> int:
    """When the source may be read."""
    try:
        order = int(given.srcAccessOrder)
    except ValueError:
        order = 0
    if order not in (_IN_STREAM, _DURING_CALL, _ANY_TIME):
        raise invalid_value(f"srcAccessOrder {order} says not when a source may be read: 1, 2 or 3")
    if int(given.flags) & ~_FLAGS:
        raise invalid_value(f"invalid flags of a copy {int(given.flags):#x}")
    return order


def first_ones(
    what: str, starts: Sequence[int], each: Sequence[object], number: int, count: int
) -> Sequence[int]:
    """Where in a batch of `count` each of `number` attributes begins to apply.

    Raises:
        Refusal: CUDA_ERROR_INVALID_VALUE, if they do not begin with 0 and grow.
    """
    if not 0 < number <= min(len(each), len(starts), count):
        raise invalid_value(f"{number} attributes for a batch of {count}")
    found = starts[:number]
    grows = all(one < next_one for one, next_one in pairwise(found))
    if found[0] or not grows or found[-1] >= count:
        raise invalid_value(
            f"{what} is {list(found)}: it begins with 0, grows, and is below {count}"
        )
    return found
