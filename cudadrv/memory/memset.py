"""Filling bytes that lie together with the bytes of one element."""

from __future__ import annotations

from ..driver._api import CUdeviceptr
from ..driver.driver_selection import failure
from ..driver.stream_handle import StreamHandle
from .transfer import transfer


def fill_dense(box: StreamHandle, address: int, nbytes: int, pattern: bytes) -> None:
    """Queue a fill of memory that is ready."""
    for width in (1, 2, 4):
        if address % width:  # a view may begin anywhere, and the driver sets whole words
            break
        if len(pattern) % width == 0 and pattern == pattern[:width] * (len(pattern) // width):
            word = int.from_bytes(pattern[:width], "little")
            _memset(box, address, word, width, nbytes // width)
            return
    _fill_by_doubling(box, address, nbytes, pattern)


def _memset(box: StreamHandle, pointer: int, value: int, width: int, count: int) -> None:
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


def _fill_by_doubling(box: StreamHandle, address: int, nbytes: int, pattern: bytes) -> None:
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
