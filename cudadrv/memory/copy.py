"""Copies between host arrays and device memory, on one device and between devices."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import numpy as np

from .._api import CUdeviceptr, CUmemorytype, CUpointer_attribute, CUresult, DriverApi
from .._driver import failure
from ..errors import CopyError, CudadrvError, WrongDeviceError
from .array import AnyArray, AnyDeviceArray, DeviceArray
from .buffer import DeviceBuffer
from .staging import LEAST_STAGED_BYTES, ring_of
from .transfer import transfer

if TYPE_CHECKING:
    from ..stream import Stream

HostArray: TypeAlias = AnyArray
DeviceMemory: TypeAlias = AnyDeviceArray | DeviceBuffer
_PINNED: Final = int(CUmemorytype.CU_MEMORYTYPE_HOST)
# What the driver takes into its queue before it returns.
_SMALL_BYTES: Final = 32 << 10


def copy(
    stream: Stream,
    dst: DeviceMemory | HostArray,
    src: DeviceMemory | HostArray,
    *,
    wait: bool = True,
) -> None:
    """Copy `src` to `dst` in the order of `stream`; see `Stream.copy`, and `wait` below."""
    _check_match(dst, src)
    if isinstance(src, np.ndarray):
        if isinstance(dst, np.ndarray):
            raise CopyError("both sides are host arrays: NumPy copies those")
        upload(stream, dst, src, wait=wait)
    elif isinstance(dst, np.ndarray):
        download(stream, dst, src, wait=wait)
    else:
        _device_to_device(stream, dst, src)


def upload(stream: Stream, dst: DeviceMemory, src: HostArray, *, wait: bool = True) -> None:
    """Copy a host array of any strides to device memory of the same size.

    Small arrays are handed over at once, large ones that are not pinned go through the staging
    ring of the context, strided ones are gathered on the way.

    Args:
        stream: a stream of the memory's context.
        dst: the device memory.
        src: the host array.
        wait: whether a pinned array is waited for, so that it may be changed on return. Others
            may be changed in any case.
    """
    if dst.context is not stream.context:
        raise _wrong_context(stream, dst)
    nbytes = dst.nbytes
    if nbytes == 0:
        return
    if dst.stream is not stream:
        stream.follow(dst)
    if stream.capturing:
        _upload_in_capture(stream, dst, src)
    elif nbytes <= _SMALL_BYTES:
        _upload_small(stream, dst.ptr, src.tobytes())
    elif nbytes < LEAST_STAGED_BYTES:
        _upload_directly(stream, dst.ptr, np.ascontiguousarray(src), wait)
    else:
        pinned = src.flags.c_contiguous and _is_pinned(stream.api, src)
        ring = None if pinned else ring_of(stream.context)
        if ring is None:
            _upload_directly(stream, dst.ptr, np.ascontiguousarray(src), wait)
        else:
            ring.upload(stream, dst.ptr, src)


def download(stream: Stream, dst: HostArray, src: DeviceMemory, *, wait: bool = True) -> None:
    """Copy device memory to a host array of the same size and any strides.

    Args:
        stream: a stream of the memory's context.
        dst: the host array.
        src: the device memory.
        wait: whether to wait for what arrives in a pinned C-contiguous array; without it the array
            has its values once the stream is synchronised. Others are always waited for.

    Raises:
        CopyError: the host array is read-only.
    """
    if src.context is not stream.context:
        raise _wrong_context(stream, src)
    nbytes = src.nbytes
    if nbytes == 0:
        return
    flags = dst.flags
    if not flags.writeable:
        raise CopyError("the host array to copy to is read-only")
    if src.stream is not stream:
        stream.follow(src)
    contiguous = flags.c_contiguous
    staged = nbytes >= LEAST_STAGED_BYTES and not stream.capturing
    if staged and not (contiguous and _is_pinned(stream.api, dst)):
        ring = ring_of(stream.context)
        if ring is not None:
            ring.download(stream, dst, src.ptr)
            return
    target = dst if contiguous else np.empty(dst.shape, dst.dtype)
    api = stream.api
    code = transfer(
        stream, api.cuMemcpyDtoHAsync, _address(target), CUdeviceptr(src.ptr), nbytes, stream.handle
    )
    if code:
        doing = f"copying {nbytes} bytes from device {src.context.ordinal} to the host"
        raise failure(api, code, "cuMemcpyDtoHAsync", doing)
    if contiguous and not wait and _is_pinned(stream.api, dst):
        return
    stream.synchronize()
    if not contiguous:
        dst[...] = target


def _upload_small(stream: Stream, pointer: int, data: bytes) -> None:
    """Copy bytes that the driver takes over before its call returns.

    They are put in pageable memory of ours first: whether the caller's array is pinned, and so
    still read after the return, costs more to ask than to copy it.
    """
    try:
        scratch = _scratches.pop()
    except IndexError:
        scratch = _Scratch()
    scratch.memory[: len(data)] = data
    to = CUdeviceptr(pointer)
    code = transfer(
        stream, stream.api.cuMemcpyHtoDAsync, to, scratch.address, len(data), stream.handle
    )
    _scratches.append(scratch)
    if code:
        raise _upload_failure(stream, code, len(data))


def _upload_directly(stream: Stream, pointer: int, source: HostArray, wait: bool) -> None:
    to, of = CUdeviceptr(pointer), _address(source)
    code = transfer(stream, stream.api.cuMemcpyHtoDAsync, to, of, source.nbytes, stream.handle)
    if code:
        raise _upload_failure(stream, code, source.nbytes)
    # From pageable memory the call returns when the bytes are staged; from pinned memory it
    # returns at once, and the caller might change them too early.
    if wait and _is_pinned(stream.api, source):
        stream.synchronize()


def _upload_in_capture(stream: Stream, dst: DeviceMemory, src: HostArray) -> None:
    """Record a copy; each replay reads the array anew."""
    if not src.flags.c_contiguous:
        raise CopyError("a copy of a strided array cannot be captured: make it contiguous first")
    _upload_directly(stream, dst.ptr, src, wait=False)


def _upload_failure(stream: Stream, code: CUresult, nbytes: int) -> CudadrvError:
    doing = f"copying {nbytes} bytes from the host to device {stream.context.ordinal}"
    return failure(stream.api, code, "cuMemcpyHtoDAsync", doing)


class _Scratch:
    """Pageable memory whose address is known, for one small copy at a time."""

    __slots__ = ("address", "memory")

    def __init__(self) -> None:
        self.memory = bytearray(_SMALL_BYTES)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))


# One for each thread that copied at the same time as others.
_scratches: Final[list[_Scratch]] = []


def _address(array: HostArray) -> int:
    """The address of a C-contiguous array's first byte."""
    try:
        # Four times as fast as `array.ctypes.data`.
        # An array is a buffer; before Python 3.12 the type checker cannot know.
        return ctypes.addressof(ctypes.c_char.from_buffer(cast(bytearray, array)))
    except (TypeError, ValueError, BufferError):
        # Read-only arrays, and dtypes that the buffer protocol has no word for.
        return array.ctypes.data


def fill(stream: Stream, dst: DeviceMemory, value: object) -> None:
    """Set every element of `dst` to `value`; a buffer's elements are bytes."""
    if dst.context is not stream.context:
        raise _wrong_context(stream, dst)
    if dst.nbytes == 0:
        return
    dtype = dst.dtype if isinstance(dst, DeviceArray) else np.dtype(np.uint8)
    pattern = np.full((), value, dtype).tobytes()
    stream.follow(dst)
    for width in (1, 2, 4):
        if len(pattern) % width == 0 and pattern == pattern[:width] * (len(pattern) // width):
            word = int.from_bytes(pattern[:width], "little")
            _memset(stream, dst.ptr, word, width, dst.nbytes // width)
            return
    _fill_by_doubling(stream, dst, pattern)


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
    width = 4 if len(pattern) % 4 == 0 else 1
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
        code = transfer(stream, api.cuMemcpyDtoDAsync, to, of, nbytes, stream.handle)
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


def _wrong_context(stream: Stream, memory: DeviceMemory) -> WrongDeviceError:
    return WrongDeviceError(
        f"{memory!r} is used on {stream!r}: use a stream of its own context, or copy it there"
    )


def _check_match(dst: DeviceMemory | HostArray, src: DeviceMemory | HostArray) -> None:
    """Raise `CopyError` unless both sides have one shape and dtype, or for buffers one size."""
    if isinstance(dst, DeviceBuffer) or isinstance(src, DeviceBuffer):
        if dst.nbytes != src.nbytes:
            raise CopyError(f"the sides have {dst.nbytes} and {src.nbytes} bytes")
        return
    if dst.shape != src.shape or dst.dtype != src.dtype:
        raise CopyError(
            f"the destination is {dst.shape} {dst.dtype}, the source {src.shape} {src.dtype}: "
            "both must have one shape and dtype"
        )


def _is_pinned(api: DriverApi, array: HostArray) -> bool:
    """Whether the driver knows the host memory; it answers INVALID_VALUE for what it does not."""
    code, kind = api.cuPointerGetAttribute(
        CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, _address(array)
    )
    return not code and isinstance(kind, int) and int(kind) == _PINNED
