"""Copies between devices, or on one, of elements that do not lie one after the other.

CUDA Driver API: cuMemcpy3DAsync, cuMemcpy3DPeerAsync. A kernel replaces many such calls.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from ..driver._api import (
    CUDA_MEMCPY3D,
    CUDA_MEMCPY3D_BATCH_OP,
    CUDA_MEMCPY3D_PEER,
    CUdeviceptr,
    CUmemcpy3DOperandType,
    CUmemorytype,
    CUresult,
)
from ..driver.context import BaseContext
from ..driver.context_handle import ContextHandle
from ..driver.driver_selection import failure
from ..driver.stream_handle import StreamHandle
from .array import AnyDeviceArray
from .copy_kernel import COPY_KERNEL, THREADS, CopyKernel, copy_kernel
from .host_copy import transfer

# CU_DEVICE_ATTRIBUTE_MAX_PITCH of every device so far.
_MOST_PITCH: Final = 2**31 - 1


class CopyAxis(NamedTuple):
    """An axis of a copy.

    Attributes:
        extent: the number of steps.
        target: bytes of a step at the destination, above 0.
        source: bytes of a step at the source.
    """

    extent: int
    target: int
    source: int


class Side(NamedTuple):
    """The position of the elements of one side of a copy."""

    address: int
    strides: tuple[int, ...]


Offsets: TypeAlias = tuple[int, int]
"""Bytes from the first element of the destination, and from that of the source."""


class Plan(NamedTuple):
    """The parts of a copy: runs of bytes along some axes.

    Attributes:
        nbytes: the size of a run, which is contiguous on both sides.
        axes: the axes of the runs, the innermost last.
        target: the address of the lowest run at the destination.
        source: its address at the source.
    """

    nbytes: int
    axes: tuple[CopyAxis, ...]
    target: int
    source: int

    @classmethod
    def of_elements(cls, shape: Sequence[int], itemsize: int, target: Side, source: Side) -> Plan:
        """Return the plan of a copy of one element or more.

        The destination's elements do not overlap.
        """
        target_start, source_start = target.address, source.address
        axes = []
        for extent, target_step, source_step in zip(
            shape, target.strides, source.strides, strict=True
        ):
            if extent == 1:
                continue
            if target_step < 0:  # reversed, as no copy runs backwards
                target_start += target_step * (extent - 1)
                source_start += source_step * (extent - 1)
                target_step, source_step = -target_step, -source_step
            axes.append(CopyAxis(extent, target_step, source_step))
        axes.sort(key=lambda axis: -axis.target)
        nbytes = itemsize
        while axes and axes[-1].target == axes[-1].source == nbytes:
            nbytes *= axes.pop().extent
        return cls(nbytes, _joined(axes), target_start, source_start)

    @property
    def runs(self) -> int:
        """The number of runs."""
        return math.prod(axis.extent for axis in self.axes)

    def boxes(self) -> CopyBoxes:
        """Return the fewest boxes that the runs make up."""
        best: tuple[CopyAxis | None, CopyAxis | None] = None, None
        most_runs = 1
        for row in (axis for axis in self.axes if _is_pitch(axis, self.nbytes)):
            if row.extent > most_runs:
                best, most_runs = (row, None), row.extent
            for slice_ in self.axes:
                runs = row.extent * slice_.extent
                if runs > most_runs and slice_ is not row and _is_slice(slice_, row):
                    best, most_runs = (row, slice_), runs
        other_axes = tuple(
            axis for axis in self.axes if axis is not best[0] and axis is not best[1]
        )
        return CopyBoxes(self.nbytes, *best, other_axes)


class CopyBoxes(NamedTuple):
    """Boxes of one size, each of rows and slices of runs, as cuMemcpy3DAsync copies.

    Attributes:
        nbytes: the size of a run.
        row: the axis of rows; None for a single one.
        slice: the axis of slices; None for a single one.
        others: the axes of the boxes.
    """

    nbytes: int
    row: CopyAxis | None
    slice: CopyAxis | None
    others: tuple[CopyAxis, ...]

    @property
    def copies(self) -> int:
        """The number of copies."""
        return math.prod(axis.extent for axis in self.others)

    def rows_and_slices(self) -> tuple[CopyAxis, CopyAxis]:
        """Return the axes of rows and slices, of extent 1 where there is none."""
        row = self.row or CopyAxis(1, self.nbytes, self.nbytes)
        return row, self.slice or CopyAxis(1, row.extent * row.target, row.extent * row.source)

    def offsets(self) -> Iterator[Offsets]:
        """Yield the offsets of the boxes."""
        return offsets_along(self.others)


def offsets_along(axes: Sequence[CopyAxis]) -> Iterator[Offsets]:
    """Yield the offsets along axes."""
    for steps in itertools.product(*(range(axis.extent) for axis in axes)):
        yield (
            sum(step * axis.target for step, axis in zip(steps, axes, strict=True)),
            sum(step * axis.source for step, axis in zip(steps, axes, strict=True)),
        )


def _joined(axes: list[CopyAxis]) -> tuple[CopyAxis, ...]:
    """Return the axes, joined where two follow each other on both sides."""
    joined: list[CopyAxis] = []
    for axis in axes:
        extent, target_stride, source_stride = axis
        if (
            joined
            and joined[-1].target == extent * target_stride
            and joined[-1].source == extent * source_stride
        ):
            axis = CopyAxis(joined.pop().extent * extent, target_stride, source_stride)
        joined.append(axis)
    return tuple(joined)


def _is_pitch(axis: CopyAxis, nbytes: int) -> bool:
    """Return whether runs along an axis are rows: each begins after the end of the one before."""
    return nbytes <= axis.target <= _MOST_PITCH and nbytes <= axis.source <= _MOST_PITCH


def _is_slice(axis: CopyAxis, row: CopyAxis) -> bool:
    """Return whether a step of an axis is a multiple of the rows' step, and at least all rows."""
    return all(
        step % pitch == 0 and step // pitch >= row.extent
        for step, pitch in ((axis.target, row.target), (axis.source, row.source))
    )


MOST_BOXES: Final = 4
"""A kernel costs about as much as this number of the driver's copies."""
_DEVICE: Final = CUmemorytype.CU_MEMORYTYPE_DEVICE
_BoxCopy: TypeAlias = CUDA_MEMCPY3D | CUDA_MEMCPY3D_PEER


def side_of(array: AnyDeviceArray) -> Side:
    """Return the position of an array's elements."""
    return Side(array.ptr, array.strides)


def copy_strided(
    context: BaseContext,
    queue: StreamHandle,
    shape: tuple[int, ...],
    itemsize: int,
    target: Side,
    source: Side,
) -> None:
    """Queue a copy of elements within one context; the memory is ready."""
    plan = Plan.of_elements(shape, itemsize, target, source)
    boxes = plan.boxes()
    if boxes.copies > MOST_BOXES:
        copy_elements(context, queue, plan)
        return
    for offsets in boxes.offsets():
        copy = CUDA_MEMCPY3D()
        _describe(copy, plan, boxes, offsets)
        code = transfer(queue, queue.api.cuMemcpy3DAsync, copy, queue.raw)
        if code:
            raise _failure(queue, code, "cuMemcpy3DAsync", plan)


def box_operations(
    shape: tuple[int, ...], itemsize: int, target: Side, source: Side
) -> Iterator[CUDA_MEMCPY3D_BATCH_OP]:
    """Yield the copies of a batch that copy elements; the caller sets their attributes."""
    plan = Plan.of_elements(shape, itemsize, target, source)
    boxes = plan.boxes()
    for target_offset, source_offset in boxes.offsets():
        row, slice_ = boxes.rows_and_slices()
        operation = CUDA_MEMCPY3D_BATCH_OP()
        extent = operation.extent
        extent.width, extent.height, extent.depth = plan.nbytes, row.extent, slice_.extent
        for operand, address, pitch, step in (
            (operation.dst, plan.target + target_offset, row.target, slice_.target),
            (operation.src, plan.source + source_offset, row.source, slice_.source),
        ):
            operand.type = CUmemcpy3DOperandType.CU_MEMCPY_OPERAND_TYPE_POINTER
            pointer = operand.op.ptr
            pointer.ptr = CUdeviceptr(address)
            pointer.rowLength, pointer.layerHeight = pitch, step // pitch
        yield operation


def copy_to_peer(
    queue: StreamHandle,
    array: AnyDeviceArray,
    source: AnyDeviceArray,
    contexts: tuple[ContextHandle, ContextHandle],
) -> None:
    """Queue a copy of elements from one context to another; the memory is ready."""
    plan = Plan.of_elements(array.shape, array.dtype.itemsize, side_of(array), side_of(source))
    boxes = plan.boxes()
    for offsets in boxes.offsets():
        copy = CUDA_MEMCPY3D_PEER()
        _describe(copy, plan, boxes, offsets)
        copy.dstContext, copy.srcContext = contexts[0].raw, contexts[1].raw
        (code,) = queue.submit(queue.api.cuMemcpy3DPeerAsync, copy, queue.raw)
        if code:
            raise _failure(queue, code, "cuMemcpy3DPeerAsync", plan)


def _describe(copy: _BoxCopy, plan: Plan, boxes: CopyBoxes, offsets: Offsets) -> None:
    row, slice_ = boxes.rows_and_slices()
    copy.dstMemoryType = copy.srcMemoryType = _DEVICE
    copy.dstDevice = CUdeviceptr(plan.target + offsets[0])
    copy.srcDevice = CUdeviceptr(plan.source + offsets[1])
    copy.WidthInBytes, copy.Height, copy.Depth = plan.nbytes, row.extent, slice_.extent
    copy.dstPitch, copy.dstHeight = row.target, slice_.target // row.target
    copy.srcPitch, copy.srcHeight = row.source, slice_.source // row.source


def _failure(queue: StreamHandle, code: CUresult, call: str, plan: Plan) -> Exception:
    return failure(queue.api, code, call, f"copying {plan.runs} runs of {plan.nbytes} bytes")


_MOST_ELEMENTS: Final = 2**31 - 1  # a launch counts them in 32 bits
_MOST_AXES: Final = 6
_WIDTHS: Final = (16, 8, 4, 2, 1)
_MOVE: Final = {
    1: ("b16", "u8", "%v0"),
    2: ("b16", "b16", "%v0"),
    4: ("b32", "b32", "%v0"),
    8: ("b64", "b64", "%v0"),
    16: ("b64", "v2.b64", "{%v0, %v1}"),
}
_TEXT: Final = """
.version 6.0
.target sm_50
.address_size 64

.visible .entry {name}(
    .param .u64 to, .param .u64 of, .param .u32 count{parameters}
)
{{
    .reg .pred %done;
    .reg .b32 %block, %threads, %thread, %rest, %count, %extent, %next, %whole, %place;
    .reg .b64 %to, %of, %step, %at;
    .reg .{register} %v<2>;

    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %rest, %block, %threads, %thread;
    ld.param.u32 %count, [count];
    setp.ge.u32 %done, %rest, %count;
    @%done bra END;
    ld.param.u64 %to, [to];
    ld.param.u64 %of, [of];
{axes}
    ld.global.{type} {value}, [%of];
    st.global.{type} [%to], {value};
END:
    ret;
}}
"""
_AXIS: Final = """
    ld.param.u32 %extent, [extent{n}];
    div.u32 %next, %rest, %extent;
    mul.lo.u32 %whole, %next, %extent;
    sub.u32 %place, %rest, %whole;
    mov.u32 %rest, %next;
    cvt.u64.u32 %at, %place;
    ld.param.u64 %step, [to{n}];
    mad.lo.s64 %to, %at, %step, %to;
    ld.param.u64 %step, [of{n}];
    mad.lo.s64 %of, %at, %step, %of;
"""


def copy_elements(context: BaseContext, stream: StreamHandle, plan: Plan) -> None:
    """Queue a copy of runs of any strides.

    Raises:
        CudaError: the driver rejected a launch, or the kernel.
    """
    width = next(width for width in _WIDTHS if _fits(plan, width))
    axes = plan.axes
    if plan.nbytes > width:
        axes = (*axes, CopyAxis(plan.nbytes // width, width, width))
    # Outer axes exceed one launch, or have too many elements.
    first = max(len(axes) - _MOST_AXES, 0)
    while math.prod(axis.extent for axis in axes[first:]) > _MOST_ELEMENTS:
        first += 1
    kernel = copy_kernel(context, stream.context, _text(width, len(axes) - first))
    for target_offset, source_offset in offsets_along(axes[:first]):
        _launch(
            stream, kernel, plan.target + target_offset, plan.source + source_offset, axes[first:]
        )


def _fits(plan: Plan, width: int) -> bool:
    """Return whether all addresses and sizes are multiples of a width."""
    steps = (step for axis in plan.axes for step in axis[1:])
    return not any(number % width for number in (plan.nbytes, plan.target, plan.source, *steps))


def _launch(
    stream: StreamHandle, kernel: CopyKernel, target: int, source: int, axes: tuple[CopyAxis, ...]
) -> None:
    count = math.prod(axis.extent for axis in axes)
    values = [struct.pack("=QQQ", target, source, count)]
    values += [struct.pack("=Qqq", *axis) for axis in axes]
    kernel.launch(stream, -(-count // THREADS), b"".join(values), 8)


@cache  # one of few
def _text(width: int, axes: int) -> bytes:
    """Return the PTX, as the driver takes it."""
    names = (f".u32 extent{n}, .param .u64 to{n}, .param .u64 of{n}" for n in range(axes))
    register, kind, value = _MOVE[width]
    text = _TEXT.format(
        name=COPY_KERNEL,
        parameters="".join(f",\n    .param {parameter}" for parameter in names),
        register=register,
        axes="".join(_AXIS.format(n=n) for n in reversed(range(axes))),
        type=kind,
        value=value,
    )
    return text.encode() + b"\0"
