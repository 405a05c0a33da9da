"""Copies between host arrays and device memory, on one device and between devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .._api import CUdeviceptr, CUmemorytype, CUpointer_attribute, DriverApi
from .._driver import failure
from ..errors import CopyError, WrongDeviceError
from .array import AnyArray, AnyDeviceArray, DeviceArray, checked_dtype
from .buffer import DeviceBuffer

if TYPE_CHECKING:
    from ..stream import Stream

HostArray: TypeAlias = AnyArray
DeviceMemory: TypeAlias = AnyDeviceArray | DeviceBuffer
_PINNED = int(CUmemorytype.CU_MEMORYTYPE_HOST)


def copy(stream: Stream, dst: DeviceMemory | HostArray, src: DeviceMemory | HostArray) -> None:
    """Copy `src` to `dst` in the order of `stream`; see `Stream.copy`."""
    _check_match(dst, src)
    if isinstance(src, np.ndarray):
        if isinstance(dst, np.ndarray):
            raise CopyError("both sides are host arrays: NumPy copies those")
        upload(stream, dst, src)
    elif isinstance(dst, np.ndarray):
        download(stream, dst, src)
    else:
        _device_to_device(stream, dst, src)


def upload(stream: Stream, dst: DeviceMemory, src: HostArray, *, wait: bool = True) -> None:
    """Copy a host array of any strides to device memory of the same size."""
    _check_context(stream, dst)
    if dst.nbytes == 0:
        return
    source = np.ascontiguousarray(src)
    stream.follow(dst)
    (code,) = stream.api.cuMemcpyHtoDAsync(
        CUdeviceptr(dst.ptr), source.ctypes.data, dst.nbytes, stream.handle
    )
    if code:
        doing = f"copying {dst.nbytes} bytes from the host to device {dst.context.ordinal}"
        raise failure(stream.api, code, "cuMemcpyHtoDAsync", doing)
    # From pageable memory the call returns when the bytes are staged; from pinned memory it
    # returns at once, and the caller might change them too early.
    if wait and _is_pinned(stream.api, source):
        stream.synchronize()


def download(stream: Stream, dst: HostArray, src: DeviceMemory) -> None:
    """Copy device memory to a host array of the same size and any strides, and wait for it."""
    _check_context(stream, src)
    if src.nbytes == 0:
        return
    if not dst.flags.writeable:
        raise CopyError("the host array to copy to is read-only")
    target = dst if dst.flags.c_contiguous else np.empty(dst.shape, dst.dtype)
    stream.follow(src)
    (code,) = stream.api.cuMemcpyDtoHAsync(
        target.ctypes.data, CUdeviceptr(src.ptr), src.nbytes, stream.handle
    )
    if code:
        doing = f"copying {src.nbytes} bytes from device {src.context.ordinal} to the host"
        raise failure(stream.api, code, "cuMemcpyDtoHAsync", doing)
    stream.synchronize()
    if target is not dst:
        dst[...] = target


def fill(stream: Stream, dst: DeviceMemory, value: object) -> None:
    """Set every element of `dst` to `value`; a buffer's elements are bytes."""
    _check_context(stream, dst)
    if dst.nbytes == 0:
        return
    dtype = dst.dtype if isinstance(dst, DeviceArray) else np.dtype(np.uint8)
    pattern = np.full((), value, dtype).tobytes()
    stream.follow(dst)
    for width in (1, 2, 4):
        if len(pattern) % width == 0 and pattern == pattern[:width] * (len(pattern) // width):
            _memset(stream, dst, int.from_bytes(pattern[:width], "little"), width)
            return
    _fill_by_doubling(stream, dst, pattern)


def _memset(stream: Stream, dst: DeviceMemory, value: int, width: int) -> None:
    api = stream.api
    pointer, count = CUdeviceptr(dst.ptr), dst.nbytes // width
    if width == 1:
        call, (code,) = "cuMemsetD8Async", api.cuMemsetD8Async(pointer, value, count, stream.handle)
    elif width == 2:
        call = "cuMemsetD16Async"
        (code,) = api.cuMemsetD16Async(pointer, value, count, stream.handle)
    else:
        call = "cuMemsetD32Async"
        (code,) = api.cuMemsetD32Async(pointer, value, count, stream.handle)
    if code:
        raise failure(api, code, call, f"filling {dst.nbytes} bytes")


def _fill_by_doubling(stream: Stream, dst: DeviceMemory, pattern: bytes) -> None:
    """Write the pattern once, then copy what is there behind itself; log2(n) copies."""
    api = stream.api
    seed = np.frombuffer(pattern, np.uint8)
    (code,) = api.cuMemcpyHtoDAsync(
        CUdeviceptr(dst.ptr), seed.ctypes.data, seed.nbytes, stream.handle
    )
    done = seed.nbytes
    while not code and done < dst.nbytes:
        step = min(done, dst.nbytes - done)
        (code,) = api.cuMemcpyDtoDAsync(
            CUdeviceptr(dst.ptr + done), CUdeviceptr(dst.ptr), step, stream.handle
        )
        done += step
    if code:
        raise failure(api, code, "cuMemcpyDtoDAsync", f"filling {dst.nbytes} bytes")


def _device_to_device(stream: Stream, dst: DeviceMemory, src: DeviceMemory) -> None:
    if stream.context not in (dst.context, src.context):
        raise WrongDeviceError(
            f"{stream!r} copies from {src!r} to {dst!r}: use a stream of one of the two devices"
        )
    if dst.nbytes == 0:
        return
    api, nbytes = stream.api, dst.nbytes
    stream.follow(src)
    stream.follow(dst)
    to, of = CUdeviceptr(dst.ptr), CUdeviceptr(src.ptr)
    if dst.context is src.context:
        call = "cuMemcpyDtoDAsync"
        (code,) = api.cuMemcpyDtoDAsync(to, of, nbytes, stream.handle)
    else:
        call = "cuMemcpyPeerAsync"
        (code,) = api.cuMemcpyPeerAsync(
            to, dst.context.handle, of, src.context.handle, nbytes, stream.handle
        )
    if code:
        doing = f"copying {nbytes} bytes from device {src.context.ordinal} to {dst.context.ordinal}"
        raise failure(api, code, call, doing)
    _buffer(src).record_use(stream)
    _buffer(dst).record_use(stream)


def _buffer(memory: DeviceMemory) -> DeviceBuffer:
    return memory.buffer if isinstance(memory, DeviceArray) else memory


def _check_context(stream: Stream, memory: DeviceMemory) -> None:
    if memory.context is not stream.context:
        raise WrongDeviceError(
            f"{memory!r} is used on {stream!r}: use a stream of its own context, or copy it there"
        )


def _check_match(dst: DeviceMemory | HostArray, src: DeviceMemory | HostArray) -> None:
    """Raise `CopyError` unless both sides have one shape and dtype, or for buffers one size."""
    if isinstance(dst, DeviceBuffer) or isinstance(src, DeviceBuffer):
        if dst.nbytes != src.nbytes:
            raise CopyError(f"the sides have {dst.nbytes} and {src.nbytes} bytes")
        return
    for side in (dst, src):
        checked_dtype(side.dtype)
    if dst.shape != src.shape or dst.dtype != src.dtype:
        raise CopyError(
            f"the destination is {dst.shape} {dst.dtype}, the source {src.shape} {src.dtype}: "
            "both must have one shape and dtype"
        )


def _is_pinned(api: DriverApi, array: HostArray) -> bool:
    """Whether the driver knows the host memory; it answers INVALID_VALUE for what it does not."""
    code, kind = api.cuPointerGetAttribute(
        CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, array.ctypes.data
    )
    return not code and isinstance(kind, int) and int(kind) == _PINNED
