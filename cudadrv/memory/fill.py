"""Filling device memory with one value."""

from __future__ import annotations

import numpy as np

from .. import errors
from ..driver._api import CUdeviceptr
from ..driver.in_use import failure
from ..driver.stream_box import StreamBox
from ..driver.stream_core import StreamCore
from .array import DeviceArray
from .copy import DeviceMemory, ready
from .transfer import transfer


def fill(stream: StreamCore, dst: DeviceMemory, value: object) -> None:
    """Set every element of an array, or every byte of a buffer, to `value`."""
    memory = ready(stream, dst, writes=True)
    if dst.nbytes == 0:
        return
    pattern, box, address = _pattern(dst, value), stream._box, dst._address
    for width in (1, 2, 4):
        if address % width:  # a view may begin anywhere, and the driver sets whole words
            break
        if len(pattern) % width == 0 and pattern == pattern[:width] * (len(pattern) // width):
            word = int.from_bytes(pattern[:width], "little")
            _memset(box, address, word, width, dst.nbytes // width)
            return
    _fill_by_doubling(box, address, dst.nbytes, pattern)
    del memory  # held until here, whoever closes the array meanwhile


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


def _memset(box: StreamBox, pointer: int, value: int, width: int, count: int) -> None:
    """Set `count` elements of 1, 2 or 4 bytes."""
    api, to = box.api, CUdeviceptr(pointer)
    if width == 1:
        call, (code,) = "cuMemsetD8Async", api.cuMemsetD8Async(to, value, count, box.raw)
    elif width == 2:
        call, (code,) = "cuMemsetD16Async", api.cuMemsetD16Async(to, value, count, box.raw)
    else:
        call, (code,) = "cuMemsetD32Async", api.cuMemsetD32Async(to, value, count, box.raw)
    if code:
        raise failure(api, code, call, f"filling {count * width} bytes")


def _fill_by_doubling(box: StreamBox, address: int, nbytes: int, pattern: bytes) -> None:
    """Write the pattern once, then copy what is there behind itself; log2(n) copies.

    The pattern is written by fills of a word each: a graph would read host memory at each replay.
    """
    width = 4 if len(pattern) % 4 == 0 and address % 4 == 0 else 1
    for offset in range(0, len(pattern), width):
        word = int.from_bytes(pattern[offset : offset + width], "little")
        _memset(box, address + offset, word, width, 1)
    api, done = box.api, len(pattern)
    of = CUdeviceptr(address)
    while done < nbytes:
        step = min(done, nbytes - done)
        to = CUdeviceptr(address + done)
        code = transfer(box, api.cuMemcpyDtoDAsync, to, of, step, box.raw)
        if code:
            raise failure(api, code, "cuMemcpyDtoDAsync", f"filling {nbytes} bytes")
        done += step
