"""Copies between devices, or on one, of elements that do not lie one after the other.

CUDA Driver API: cuMemcpy3DAsync, cuMemcpy3DPeerAsync. A kernel replaces many such calls.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from ..driver._api import (
    CUDA_MEMCPY3D,
    CUDA_MEMCPY3D_PEER,
    CUdeviceptr,
    CUfunction,
    CUlaunchConfig,
    CUmemorytype,
    CUresult,
)
from ..driver.context import BaseContext
from ..driver.context_handle import ContextHandle, ModuleHandle
from ..driver.driver_selection import failure
from ..driver.stream_handle import StreamHandle
from .array import AnyDeviceArray
from .host_copy import transfer

# CU_DEVICE_ATTRIBUTE_MAX_PITCH of every device so far.
_MOST_PITCH: Final = 2**31 - 1


class CopyAxis(NamedTuple):
    """An axis of a copy.

    Attributes:
        extent: the number of steps.
        to: bytes of a step at the destination, above 0.
        of: bytes of a step at the source.
    """

    extent: int
    to: int
    of: int


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
        to: the address of the lowest run at the destination.
        of: the address of the same one at the source.
    """

    nbytes: int
    axes: tuple[CopyAxis, ...]
    to: int
    of: int

    @classmethod
    def of_elements(cls, shape: Sequence[int], itemsize: int, to: Side, of: Side) -> Plan:
        """Return the plan of a copy of one element or more.

        The destination's elements do not overlap.
        """
        start_to, start_of = to.address, of.address
        axes = []
        for extent, step_to, step_of in zip(shape, to.strides, of.strides, strict=True):
            if extent == 1:
                continue
            if step_to < 0:  # reversed, as no copy runs backwards
                start_to += step_to * (extent - 1)
                start_of += step_of * (extent - 1)
                step_to, step_of = -step_to, -step_of
            axes.append(CopyAxis(extent, step_to, step_of))
        axes.sort(key=lambda axis: -axis.to)
        nbytes = itemsize
        while axes and axes[-1].to == axes[-1].of == nbytes:
            nbytes *= axes.pop().extent
        return cls(nbytes, _joined(axes), start_to, start_of)

    @property
    def runs(self) -> int:
        """The number of runs."""
        return math.prod(axis.extent for axis in self.axes)

    def boxes(self) -> CopyBoxes:
        """Return the fewest boxes that the runs make up."""
        best: tuple[CopyAxis | None, CopyAxis | None] = None, None
        most = 1
        for row in (axis for axis in self.axes if _is_pitch(axis, self.nbytes)):
            if row.extent > most:
                best, most = (row, None), row.extent
            for slice_ in self.axes:
                runs = row.extent * slice_.extent
                if runs > most and slice_ is not row and _is_slice(slice_, row):
                    best, most = (row, slice_), runs
        others = tuple(axis for axis in self.axes if axis is not best[0] and axis is not best[1])
        return CopyBoxes(self.nbytes, *best, others)


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

    def offsets(self) -> Iterator[Offsets]:
        """Yield the offsets of the boxes."""
        return offsets_along(self.others)


def offsets_along(axes: Sequence[CopyAxis]) -> Iterator[Offsets]:
    """Yield the offsets along axes."""
    for steps in itertools.product(*(range(axis.extent) for axis in axes)):
        yield (
            sum(step * axis.to for step, axis in zip(steps, axes, strict=True)),
            sum(step * axis.of for step, axis in zip(steps, axes, strict=True)),
        )


def _joined(axes: list[CopyAxis]) -> tuple[CopyAxis, ...]:
    """Return the axes, joined where two follow each other on both sides."""
    joined: list[CopyAxis] = []
    for axis in axes:
        extent, to, of = axis
        if joined and joined[-1].to == extent * to and joined[-1].of == extent * of:
            axis = CopyAxis(joined.pop().extent * extent, to, of)
        joined.append(axis)
    return tuple(joined)


def _is_pitch(axis: CopyAxis, nbytes: int) -> bool:
    """Return whether runs along an axis are rows: each begins after the end of the one before."""
    return nbytes <= axis.to <= _MOST_PITCH and nbytes <= axis.of <= _MOST_PITCH


def _is_slice(axis: CopyAxis, row: CopyAxis) -> bool:
    """Return whether a step of an axis is a multiple of the rows' step, and at least all rows."""
    return all(
        step % pitch == 0 and step // pitch >= row.extent
        for step, pitch in ((axis.to, row.to), (axis.of, row.of))
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
    box: StreamHandle,
    shape: tuple[int, ...],
    itemsize: int,
    to: Side,
    of: Side,
) -> None:
    """Queue a copy of elements within one context; the memory is ready."""
    plan = Plan.of_elements(shape, itemsize, to, of)
    boxes = plan.boxes()
    if boxes.copies > MOST_BOXES:
        copy_elements(context, box, plan)
        return
    for offsets in boxes.offsets():
        copy = CUDA_MEMCPY3D()
        _describe(copy, plan, boxes, offsets)
        code = transfer(box, box.api.cuMemcpy3DAsync, copy, box.raw)
        if code:
            raise _failure(box, code, "cuMemcpy3DAsync", plan)


def copy_to_peer(
    box: StreamHandle,
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
        (code,) = box.api.cuMemcpy3DPeerAsync(copy, box.raw)
        if code:
            raise _failure(box, code, "cuMemcpy3DPeerAsync", plan)


def _describe(copy: _BoxCopy, plan: Plan, boxes: CopyBoxes, offsets: Offsets) -> None:
    row = boxes.row or CopyAxis(1, plan.nbytes, plan.nbytes)
    slice_ = boxes.slice or CopyAxis(1, row.extent * row.to, row.extent * row.of)
    copy.dstMemoryType = copy.srcMemoryType = _DEVICE
    copy.dstDevice = CUdeviceptr(plan.to + offsets[0])
    copy.srcDevice = CUdeviceptr(plan.of + offsets[1])
    copy.WidthInBytes, copy.Height, copy.Depth = plan.nbytes, row.extent, slice_.extent
    copy.dstPitch, copy.dstHeight = row.to, slice_.to // row.to
    copy.srcPitch, copy.srcHeight = row.of, slice_.of // row.of


def _failure(box: StreamHandle, code: CUresult, call: str, plan: Plan) -> Exception:
    return failure(box.api, code, call, f"copying {plan.runs} runs of {plan.nbytes} bytes")


# The emulator's check for unwritten reads recognises it (`ptx.emulate.check.unwritten_reads`).
_NAME: Final = "cudadrv_copy_elements"
_THREADS: Final = 256
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


class _Code(NamedTuple):
    """A kernel, and the module that has it."""

    box: ModuleHandle
    function: CUfunction


class _Codes:
    """The kernels of a context, by the width of elements and the number of axes."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, int], _Code] = {}


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
    code = _code(context, stream.context, width, len(axes) - first)
    if stream.capture is not None:
        stream.capture.keeps.append(code.box)
    for to, of in offsets_along(axes[:first]):
        _launch(stream, code, plan.to + to, plan.of + of, axes[first:])


def _fits(plan: Plan, width: int) -> bool:
    """Return whether all addresses and sizes are multiples of a width."""
    steps = (step for axis in plan.axes for step in axis[1:])
    return not any(number % width for number in (plan.nbytes, plan.to, plan.of, *steps))


def _launch(
    stream: StreamHandle, code: _Code, to: int, of: int, axes: tuple[CopyAxis, ...]
) -> None:
    count = math.prod(axis.extent for axis in axes)
    # Eight bytes for each parameter, and after them their addresses.
    values = [struct.pack("=QQ", to, of), struct.pack("=Q", count)]
    values += [struct.pack("=Qqq", *axis) for axis in axes]
    packed = b"".join(values)
    block = ctypes.create_string_buffer(packed, 2 * len(packed))
    base = ctypes.addressof(block)
    places = (base + offset for offset in range(0, len(packed), 8))
    struct.pack_into(f"={len(packed) // 8}Q", block, len(packed), *places)
    config = CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = -(-count // _THREADS), 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = _THREADS, 1, 1
    config.sharedMemBytes, config.hStream = 0, stream.raw
    (result,) = stream.api.cuLaunchKernelEx(config, code.function, base + len(packed), 0)
    if result:
        doing = f"copying {count} elements of any strides"
        raise failure(stream.api, result, "cuLaunchKernelEx", doing)


def _code(context: BaseContext, box: ContextHandle, width: int, axes: int) -> _Code:
    made = context._keep(_Codes, _Codes).made
    code = made.get((width, axes))
    if code is None:
        code = made.setdefault((width, axes), _loaded(box, width, axes))
    return code


def _loaded(context: ContextHandle, width: int, axes: int) -> _Code:
    box, api = ModuleHandle(context), context.api
    doing = f"loading the copy of elements of {width} bytes along {axes} axes"
    result = box.make(api.cuModuleLoadData, _text(width, axes))
    if result:
        raise failure(api, result, "cuModuleLoadData", doing)
    result, function = context.call(api.cuModuleGetFunction, box.raw, _NAME.encode())
    if result:
        raise failure(api, result, "cuModuleGetFunction", doing)
    return _Code(box, function)


@cache  # one of few
def _text(width: int, axes: int) -> bytes:
    """Return the PTX, as the driver takes it."""
    names = (f".u32 extent{n}, .param .u64 to{n}, .param .u64 of{n}" for n in range(axes))
    register, kind, value = _MOVE[width]
    text = _TEXT.format(
        name=_NAME,
        parameters="".join(f",\n    .param {each}" for each in names),
        register=register,
        axes="".join(_AXIS.format(n=n) for n in reversed(range(axes))),
        type=kind,
        value=value,
    )
    return text.encode() + b"\0"
