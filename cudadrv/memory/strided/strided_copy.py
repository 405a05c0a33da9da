"""Copies between devices, or on one, of elements that do not lie one behind the other.

CUDA Driver API: cuMemcpy3DAsync, cuMemcpy3DPeerAsync. A kernel does what would take many calls.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from ...driver._api import CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUdeviceptr, CUmemorytype, CUresult
from ...driver.context import BaseContext
from ...driver.context_handle import ContextHandle
from ...driver.driver_selection import failure
from ...driver.stream_handle import StreamHandle
from ..array import AnyDeviceArray
from ..transfer import transfer
from .element_kernel import copy_elements
from .plan import Axis, Boxes, Offsets, Plan, Side

MOST_BOXES: Final = 4
"""A kernel costs about as much as so many of the driver's copies."""
_DEVICE: Final = CUmemorytype.CU_MEMORYTYPE_DEVICE
_BoxCopy: TypeAlias = CUDA_MEMCPY3D | CUDA_MEMCPY3D_PEER


def side_of(array: AnyDeviceArray) -> Side:
    """Where the elements of an array lie."""
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


def _describe(copy: _BoxCopy, plan: Plan, boxes: Boxes, offsets: Offsets) -> None:
    row = boxes.row or Axis(1, plan.nbytes, plan.nbytes)
    slice_ = boxes.slice or Axis(1, row.extent * row.to, row.extent * row.of)
    copy.dstMemoryType = copy.srcMemoryType = _DEVICE
    copy.dstDevice = CUdeviceptr(plan.to + offsets[0])
    copy.srcDevice = CUdeviceptr(plan.of + offsets[1])
    copy.WidthInBytes, copy.Height, copy.Depth = plan.nbytes, row.extent, slice_.extent
    copy.dstPitch, copy.dstHeight = row.to, slice_.to // row.to
    copy.srcPitch, copy.srcHeight = row.of, slice_.of // row.of


def _failure(box: StreamHandle, code: CUresult, call: str, plan: Plan) -> Exception:
    return failure(box.api, code, call, f"copying {plan.runs} runs of {plan.nbytes} bytes")
