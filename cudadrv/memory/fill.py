"""Filling device memory with one value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import errors
from ..driver._api import CUdeviceptr
from ..driver.in_use import failure
from .array import DeviceArray
from .copy import DeviceMemory, wrong_context
from .transfer import transfer

if TYPE_CHECKING:
    from ..stream import Stream


def fill(stream: Stream, dst: DeviceMemory, value: object) -> None:
    """Set every element of an array, or every byte of a buffer, to `value`."""
    if dst.context is not stream.context:
        raise wrong_context(stream, dst)
    if dst.nbytes == 0:
        return
    pattern = _pattern(dst, value)
    stream.follow(dst)
    for width in (1, 2, 4):
        if dst.ptr % width:  # a view may begin anywhere, and the driver sets whole words
            break
        if len(pattern) % width == 0 and pattern == pattern[:width] * (len(pattern) // width):
            word = int.from_bytes(pattern[:width], "little")
            _memset(stream, dst.ptr, word, width, dst.nbytes // width)
            return
    _fill_by_doubling(stream, dst, pattern)


def _pattern(dst: DeviceMemory, value: object) -> bytes:
    """The bytes of one element."""
    dtype = dst.dtype if isinstance(dst, DeviceArray) else np.dtype(np.uint8)
    try:
        if isinstance(value, (int, np.integer)) and dtype.kind in "iu":
            # NumPy 1 wraps out-of-range numbers round, and so does either its own integers.
            int(value).to_bytes(dtype.itemsize, "little", signed=dtype.kind == "i")
        element = np.array(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise errors.InvalidValueError(f"{value!r} is no value for {dst!r}: {error}") from error
    if element.shape:
        raise errors.InvalidValueError(
            f"{value!r} is {element.shape} values for {dst!r}: fill takes one, Stream.copy many"
        )
    return element.tobytes()


def _memset(stream: Stream, pointer: int, value: int, width: int, count: int) -> None:
    """Set `count` elements of 1, 2 or 4 bytes."""
    api = stream.api
    to = CUdeviceptr(pointer)
    if width == 1:
        call, (code,) = "cuMemsetD8Async", api.cuMemsetD8Async(to, value, count, stream.handle)
    elif width == 2:
        call, (code,) = "cuMemsetD16Async", api.cuMemsetD16Async(to, value, count, stream.handle)
    else:
        call, (code,) = "cuMemsetD32Async", api.cuMemsetD32Async(to, value, count, stream.handle)
    if code:
        raise failure(api, code, call, f"filling {count * width} bytes")


def _fill_by_doubling(stream: Stream, dst: DeviceMemory, pattern: bytes) -> None:
    """Write the pattern once, then copy what is there behind itself; log2(n) copies.

    The pattern is written by fills of a word each: a graph would read host memory at each replay.
    """
    width = 4 if len(pattern) % 4 == 0 and dst.ptr % 4 == 0 else 1
    for offset in range(0, len(pattern), width):
        word = int.from_bytes(pattern[offset : offset + width], "little")
        _memset(stream, dst.ptr + offset, word, width, 1)
    api, done = stream.api, len(pattern)
    of = CUdeviceptr(dst.ptr)
    while done < dst.nbytes:
        step = min(done, dst.nbytes - done)
        to = CUdeviceptr(dst.ptr + done)
        code = transfer(stream, api.cuMemcpyDtoDAsync, to, of, step, stream.handle)
        if code:
            raise failure(api, code, "cuMemcpyDtoDAsync", f"filling {dst.nbytes} bytes")
        done += step
