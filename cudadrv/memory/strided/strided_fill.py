"""Fills of elements that do not lie one behind the other.

CUDA Driver API: cuMemsetD2D8Async and the like, and a kernel where those would take many calls.
"""

from __future__ import annotations

from ...driver._api import CUdeviceptr
from ...driver.driver_selection import failure
from ...driver.stream import BaseStream
from ...driver.stream_handle import StreamHandle
from ..array import AnyDeviceArray
from ..memset import fill_dense
from ..new_array import empty
from ..resource import without_choices
from .plan import Axis, Boxes, Plan, Side
from .strided_copy import MOST_BOXES, copy_strided, side_of


def fill_strided(stream: BaseStream, dst: AnyDeviceArray, pattern: bytes) -> None:
    """Queue a fill of elements with the bytes of one; the memory is ready."""
    box, to = stream._handle, side_of(dst)
    plan = Plan.of_elements(dst.shape, dst.dtype.itemsize, to, to)
    boxes = plan.boxes()
    width = _word(plan, pattern)
    if width and boxes.slice is None and boxes.copies <= MOST_BOXES:
        for offset, _ in boxes.offsets():
            _set_rows(box, plan.to + offset, boxes, width, pattern[:width])
        return
    with without_choices():
        element = empty(stream, 1, dst.dtype)
    fill_dense(box, element._address, element.nbytes, pattern)
    of = Side(element.ptr, (0,) * dst.ndim)
    copy_strided(stream.context, box, dst.shape, dst.dtype.itemsize, to, of)


def _word(plan: Plan, pattern: bytes) -> int:
    """The width of words, all the same, that an element is made of; 0 where there is none."""
    steps = (step for axis in plan.axes for step in axis[1:])
    numbers = (plan.to, plan.nbytes, *steps)
    for width in (4, 2, 1):
        is_word = pattern == pattern[:width] * (len(pattern) // width)
        if is_word and not any(number % width for number in numbers):
            return width
    return 0


def _set_rows(box: StreamHandle, address: int, boxes: Boxes, width: int, word: bytes) -> None:
    row = boxes.row or Axis(1, boxes.nbytes, boxes.nbytes)
    api, name = box.api, f"cuMemsetD2D{8 * width}Async"
    function = {1: api.cuMemsetD2D8Async, 2: api.cuMemsetD2D16Async, 4: api.cuMemsetD2D32Async}
    (code,) = function[width](
        CUdeviceptr(address),
        row.to,
        int.from_bytes(word, "little"),
        boxes.nbytes // width,
        row.extent,
        box.raw,
    )
    if code:
        raise failure(api, code, name, f"filling {row.extent} rows of {boxes.nbytes} bytes")
