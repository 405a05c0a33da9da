"""Filling device memory with one value."""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from .. import border, errors
from ..driver._api import CUdeviceptr
from ..driver.driver_selection import failure
from ..driver.stream import BaseStream
from ..driver.stream_handle import StreamHandle
from .array import AnyDeviceArray, DeviceArray, StridedArray, empty, view_of
from .buffer import DeviceBuffer
from .copy import require_apart
from .dtypes import AnyArray, AnyDType
from .host_copy import ArrayOrBuffer, foreign_hint, ready, require_plain, transfer
from .managed import on_device
from .resource import without_choices
from .strided_copy import MOST_BOXES, CopyAxis, CopyBoxes, Plan, Side, copy_strided, side_of

_BYTE: Final = np.dtype(np.uint8)
_EXACT: Final = 2**53  # integers up to it are exact as floats
# Packs a Python number as an element, in a fifth of NumPy's time.
_PACK_WHOLE: Final = {np.dtype(f"<{name}"): struct.Struct(f"<{code}").pack for name, code in (
    ("i1", "b"), ("u1", "B"), ("i2", "h"), ("u2", "H"), ("i4", "i"), ("u4", "I"), ("i8", "q"),
    ("u8", "Q"),
)}  # fmt: skip
_PACK_FLOAT: Final = {
    np.dtype(f"<{name}"): struct.Struct(f"<{code}").pack
    for name, code in (("f2", "e"), ("f4", "f"), ("f8", "d"))
}


def fill(stream: BaseStream, dst: ArrayOrBuffer | AnyArray, value: object) -> None:
    """Set every element of an array, or every byte of a buffer, to `value`.

    Host arrays in pinned, registered or managed memory are filled in place, and waited for.

    Raises:
        CopyError: the host array is in ordinary memory, or read-only.
        InvalidValueError: an element cannot hold the value unchanged, or shares some of its bytes
            with another one.
    """
    if isinstance(dst, np.ndarray):
        _fill_host(stream, dst, value)
        return
    if type(dst) is not DeviceArray:
        border.instance_of("Stream.fill: dst", dst, (DeviceArray, DeviceBuffer))
    memory = dst._handle
    if memory.ordered_on is not stream._handle:
        memory = ready(stream, dst, writes=True)
    if dst._nbytes == 0:
        return
    pattern = pattern_of(dst, value)
    if isinstance(dst, StridedArray) and dst._layout.overlaps_itself(dst.dtype.itemsize):
        dst = _without_repetition(dst)
    if isinstance(dst, StridedArray):
        fill_strided(stream, dst, pattern)
    else:
        fill_dense(stream._handle, dst._address, dst._nbytes, pattern)
    del memory  # held until here, whichever thread closes the array meanwhile


def _fill_host(stream: BaseStream, dst: AnyArray, value: object) -> None:
    """Fill a host array that the device can access, in the order of the stream, and wait."""
    require_plain(dst)
    if not dst.flags.writeable:
        raise errors.CopyError("the host array to fill is read-only")
    fill(stream, on_device(stream, dst), value)
    if not stream.capturing:
        stream.synchronize()


def _without_repetition(array: AnyDeviceArray) -> AnyDeviceArray:
    """Return a view that has each element once, of an array that repeats some.

    Raises:
        InvalidValueError: there is none, such as where elements overlap in part.
    """
    layout = array._layout
    first, _ = layout.bounds(array.dtype.itemsize)
    shape, strides = layout.each_once()
    distinct = view_of(array, array.ptr + first, shape, array.dtype, strides)
    require_apart(distinct)
    return distinct


def pattern_of(dst: ArrayOrBuffer, value: object) -> bytes:
    """Return the bytes of one element."""
    dtype = dst._dtype if isinstance(dst, DeviceArray) else _BYTE
    try:
        if type(value) is int:
            pack = _PACK_WHOLE.get(dtype)
            if pack is None and -_EXACT <= value <= _EXACT:
                pack = _PACK_FLOAT.get(dtype)
        else:
            pack = _PACK_FLOAT.get(dtype) if type(value) is float else None
        return _element(value, dtype).tobytes() if pack is None else pack(value)
    except Exception as error:  # the value's own conversion may raise anything
        problem = f"{border.shown(value)} is no value for {dst!r}"
        raise errors.InvalidValueError(f"{problem}: {error}{foreign_hint(value)}") from error


def _element(value: object, dtype: AnyDType) -> AnyArray:
    """Return the value as an array of no dimensions, unless that would change it.

    Raises:
        OverflowError: it is out of range.
        TypeError, ValueError: it is of another kind, or several.
    """
    if dtype.names:
        return _structure(value, dtype)
    source = np.asarray(value)
    if source.shape:
        raise ValueError(f"fill takes one value, not {source.shape}: use Stream.copy")
    if dtype.kind in "biu":
        return _integer_element(source, dtype)
    source_kind, target_kind = source.dtype.kind, dtype.kind
    if value is None or ((source_kind in "SU") != (target_kind in "SU") and target_kind in "fcSU"):
        raise TypeError(f"it is no {dtype}")
    if target_kind == "f" and source_kind == "c":
        raise TypeError("it is complex")
    with np.errstate(over="ignore"):
        element = np.array(value, dtype)
    if (
        target_kind in "fc"
        and source_kind in "iufc"
        and np.isfinite(source)
        and not np.isfinite(element)
    ):
        raise OverflowError("it is out of range")
    if target_kind in "SU" and len(source.item()) > len(
        np.array(b"x" * dtype.itemsize, dtype).item()
    ):
        raise OverflowError("it is too long")
    return element


def _integer_element(source: AnyArray, dtype: AnyDType) -> AnyArray:
    """Return an integer or a truth value as an element of its dtype."""
    number = source.item()
    if source.dtype.kind not in "biufO" or int(number) != number:
        raise ValueError("it is not an integer")
    if dtype.kind == "b" and number not in (0, 1):
        raise OverflowError("it is neither true nor false")
    # NumPy 1 wraps out-of-range integers, and so do NumPy's own integers in any version.
    int(number).to_bytes(dtype.itemsize, "little", signed=dtype.kind == "i")
    return np.array(int(number), dtype)


def _structure(value: object, dtype: AnyDType) -> AnyArray:
    """Return a structure, of values that its fields hold unchanged."""
    element = np.array(value, dtype)
    if element.shape:
        raise ValueError(f"fill takes one value, not {element.shape}: use Stream.copy")
    names = dtype.names or ()
    if not isinstance(value, (np.void, np.ndarray)):
        values = value if isinstance(value, tuple) else (value,) * len(names)
        for name, field_value in zip(names, values, strict=True):
            if not dtype[name].shape:
                _element(field_value, dtype[name])
    return element


def fill_strided(stream: BaseStream, dst: AnyDeviceArray, pattern: bytes) -> None:
    """Queue a fill of elements with the bytes of one; the memory is ready."""
    queue, target = stream._handle, side_of(dst)
    plan = Plan.of_elements(dst.shape, dst.dtype.itemsize, target, target)
    boxes = plan.boxes()
    width = _word(plan, pattern)
    if width and boxes.slice is None and boxes.copies <= MOST_BOXES:
        for offset, _ in boxes.offsets():
            _set_rows(queue, plan.target + offset, boxes, width, pattern[:width])
        return
    with without_choices():
        element = empty(stream, 1, dst.dtype)
    fill_dense(queue, element._address, element.nbytes, pattern)
    source = Side(element.ptr, (0,) * dst.ndim)
    copy_strided(stream.context, queue, dst.shape, dst.dtype.itemsize, target, source)


def _word(plan: Plan, pattern: bytes) -> int:
    """Return the width of the equal words that make up an element; 0 if there is none."""
    steps = (step for axis in plan.axes for step in axis[1:])
    numbers = (plan.target, plan.nbytes, *steps)
    for width in (4, 2, 1):
        is_word = pattern == pattern[:width] * (len(pattern) // width)
        if is_word and not any(number % width for number in numbers):
            return width
    return 0


def _set_rows(queue: StreamHandle, address: int, boxes: CopyBoxes, width: int, word: bytes) -> None:
    row = boxes.row or CopyAxis(1, boxes.nbytes, boxes.nbytes)
    api, name = queue.api, f"cuMemsetD2D{8 * width}Async"
    function = {1: api.cuMemsetD2D8Async, 2: api.cuMemsetD2D16Async, 4: api.cuMemsetD2D32Async}
    (code,) = queue.submit(
        function[width],
        CUdeviceptr(address),
        row.target,
        int.from_bytes(word, "little"),
        boxes.nbytes // width,
        row.extent,
        queue.raw,
    )
    if code:
        raise failure(api, code, name, f"filling {row.extent} rows of {boxes.nbytes} bytes")


def fill_dense(queue: StreamHandle, address: int, nbytes: int, pattern: bytes) -> None:
    """Queue a fill of memory that is ready."""
    for width in (1, 2, 4):
        if address % width:  # a view may begin anywhere, and the driver sets whole words
            break
        if len(pattern) % width == 0 and pattern == pattern[:width] * (len(pattern) // width):
            word = int.from_bytes(pattern[:width], "little")
            _memset(queue, address, word, width, nbytes // width)
            return
    _fill_by_doubling(queue, address, nbytes, pattern)


def _memset(queue: StreamHandle, pointer: int, value: int, width: int, count: int) -> None:
    """Set `count` elements of 1, 2 or 4 bytes."""
    api, destination = queue.api, CUdeviceptr(pointer)
    if width == 1:
        function = api.cuMemsetD8Async
    else:
        function = api.cuMemsetD16Async if width == 2 else api.cuMemsetD32Async
    (code,) = queue.submit(function, destination, value, count, queue.raw)
    if code:
        call = f"cuMemsetD{8 * width}Async"
        raise failure(api, code, call, f"filling {count * width} bytes")


def _fill_by_doubling(queue: StreamHandle, address: int, nbytes: int, pattern: bytes) -> None:
    """Write the pattern once, then copy the written part after itself; log2(n) copies.

    The pattern is written by fills of one word each: a graph would read host memory at each replay.
    """
    width = 4 if len(pattern) % 4 == 0 and address % 4 == 0 else 1
    for offset in range(0, len(pattern), width):
        word = int.from_bytes(pattern[offset : offset + width], "little")
        _memset(queue, address + offset, word, width, 1)
    api, filled = queue.api, len(pattern)
    source = CUdeviceptr(address)
    while filled < nbytes:
        step = min(filled, nbytes - filled)
        destination = CUdeviceptr(address + filled)
        code = transfer(queue, api.cuMemcpyDtoDAsync, destination, source, step, queue.raw)
        if code:
            raise failure(api, code, "cuMemcpyDtoDAsync", f"filling {nbytes} bytes")
        filled += step
