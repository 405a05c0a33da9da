"""Copies between host arrays and device memory, on one device and between devices."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import numpy as np

from ..driver._api import CUdeviceptr, CUmemorytype, CUpointer_attribute, CUresult, DriverApi
from ..driver.in_use import failure
from ..errors import CopyError, CudadrvError, WrongDeviceError
from .array import AnyArray, AnyDeviceArray, DeviceArray
from .buffer import DeviceBuffer
from .transfer import transfer

if TYPE_CHECKING:
    from ..driver.context import Context
    from ..stream import Stream
    from .staging import StagingRing

HostArray: TypeAlias = AnyArray
DeviceMemory: TypeAlias = AnyDeviceArray | DeviceBuffer
_KNOWN: Final = (
    int(CUmemorytype.CU_MEMORYTYPE_HOST),
    int(CUmemorytype.CU_MEMORYTYPE_DEVICE),
    int(CUmemorytype.CU_MEMORYTYPE_UNIFIED),
)
_REFUSED: Final = int(CUresult.CUDA_ERROR_INVALID_VALUE)
# What the driver takes into its queue before it returns.
_SMALL_BYTES: Final = 32 << 10
# Where the content of a bytes object begins, from its address (CPython's PyBytesObject: the content
# ends the structure, of which one byte, the terminator's, is counted).
_BYTES_HEADER: Final = bytes.__basicsize__ - 1
_ndarray: Final = np.ndarray
_addressof: Final = ctypes.addressof
# An array is a buffer; before Python 3.12 the type checker cannot know.
_from_buffer: Final = cast("Callable[[AnyArray], ctypes.c_char]", ctypes.c_char.from_buffer)


def copy(
    stream: Stream,
    dst: DeviceMemory | HostArray,
    src: DeviceMemory | HostArray,
    *,
    wait: bool = True,
) -> None:
    """Copy between arrays of one shape and dtype, or buffers of one size: `Stream.copy`.

    Either side may be a host array, and the two may lie on different devices; the stream is of one
    of them. A copy to the host waits; others keep the order of the streams concerned.

    Args:
        stream: a stream of either side's context.
        dst: where to.
        src: where from.
        wait: whether to wait for a pinned host array, so that on return it may be changed or has
            its values. Other host arrays may be used on return in any case.

    Raises:
        CopyError: the two sides do not match.
        WrongDeviceError: the stream belongs to neither side's device.
    """
    # In an order of speed: an instance says so sooner than what is none, and most dtypes are one
    # object, which is faster to see than equality.
    if isinstance(src, _ndarray) and isinstance(dst, DeviceArray):
        if dst.shape != src.shape or dst.dtype is not src.dtype:
            _check_alike(dst, src)
        upload(stream, dst, src, wait)
    elif isinstance(dst, _ndarray) and isinstance(src, DeviceArray):
        if dst.shape != src.shape or dst.dtype is not src.dtype:
            _check_alike(dst, src)
        download(stream, dst, src, wait)
    else:
        _copy_others(stream, dst, src, wait)


def _copy_others(
    stream: Stream, dst: DeviceMemory | HostArray, src: DeviceMemory | HostArray, wait: bool
) -> None:
    """Copy from or to a buffer, or on the device."""
    _check_alike(dst, src)
    if isinstance(src, np.ndarray):
        if isinstance(dst, np.ndarray):
            raise CopyError("both sides are host arrays: NumPy copies those")
        upload(stream, dst, src, wait)
    elif isinstance(dst, np.ndarray):
        download(stream, dst, src, wait)
    else:
        _device_to_device(stream, dst, src)


def _check_alike(dst: DeviceMemory | HostArray, src: DeviceMemory | HostArray) -> None:
    if isinstance(dst, DeviceBuffer) or isinstance(src, DeviceBuffer):
        if dst.nbytes != src.nbytes:
            raise CopyError(f"the sides have {dst.nbytes} and {src.nbytes} bytes")
    elif dst.shape != src.shape or dst.dtype != src.dtype:
        raise CopyError(
            f"the destination is {dst.shape} {dst.dtype}, the source {src.shape} {src.dtype}: "
            "both must have one shape and dtype"
        )


def upload(stream: Stream, dst: DeviceMemory, src: HostArray, wait: bool = True) -> None:
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
        raise wrong_context(stream, dst)
    nbytes = dst.nbytes
    if nbytes == 0:
        return
    if dst.stream is not stream:
        stream.follow(dst)
    if stream.capturing:
        _upload_in_capture(stream, dst, src)
    elif nbytes <= _SMALL_BYTES:
        # The driver takes these bytes over before its call returns. They are a copy, since
        # whether the caller's array is pinned, and so still read after the return, costs more
        # to ask.
        data = src.tobytes()
        to, of = dst.driver_pointer or dst.make_driver_pointer(), id(data) + _BYTES_HEADER
        (code,) = stream.api.cuMemcpyHtoDAsync(to, of, nbytes, stream.handle)
        if code:
            _upload_again(stream, code, to, of, nbytes)
    elif not _is_large(nbytes):
        _upload_directly(stream, dst.ptr, np.ascontiguousarray(src), wait)
    else:
        pinned = src.flags.c_contiguous and is_reachable(stream.api, src)
        ring = None if pinned else _ring_of(stream.context)
        if ring is None:
            _upload_directly(stream, dst.ptr, np.ascontiguousarray(src), wait)
        else:
            ring.upload(stream, dst.ptr, src)


def download(stream: Stream, dst: HostArray, src: DeviceMemory, wait: bool = True) -> None:
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
        raise wrong_context(stream, src)
    nbytes = src.nbytes
    if nbytes == 0:
        return
    if src.stream is not stream:
        stream.follow(src)
    if nbytes > _SMALL_BYTES and _download_staged(stream, dst, src):
        return
    try:
        # As `host_address` does. No array passes that is read-only or not C-contiguous: asking
        # for its flags would cost as much again.
        to = _addressof(_from_buffer(dst))
    except (TypeError, ValueError, BufferError):
        _download_indirectly(stream, dst, src, wait)
        return
    if stream.capture_memory is not None:
        stream.capture_memory.kept.append(dst)
    api, of = stream.api, src.driver_pointer or src.make_driver_pointer()
    (code,) = api.cuMemcpyDtoHAsync(to, of, nbytes, stream.handle)
    if code:
        _download_again(stream, code, to, of, nbytes)
    if wait or not is_reachable(api, dst):
        stream.synchronize()


def _download_indirectly(stream: Stream, dst: HostArray, src: DeviceMemory, wait: bool) -> None:
    """Copy to an array that is strided, or whose dtype the buffer protocol has no word for."""
    _require_writeable(dst)
    if dst.flags.c_contiguous:
        download(stream, dst.reshape(-1).view(np.uint8), src, wait)
    else:
        dense = np.empty(dst.shape, dst.dtype)
        download(stream, dense, src)
        dst[...] = dense


def _download_again(stream: Stream, code: CUresult, to: int, of: CUdeviceptr, nbytes: int) -> None:
    """After a first refusal: once more as `transfer` does, with the stream's context bound."""
    if code == _REFUSED:
        code = transfer(stream, stream.api.cuMemcpyDtoHAsync, to, of, nbytes, stream.handle)
    if code:
        doing = f"copying {nbytes} bytes from device {stream.context.ordinal} to the host"
        raise failure(stream.api, code, "cuMemcpyDtoHAsync", doing)


def _require_writeable(dst: HostArray) -> None:
    if not dst.flags.writeable:
        raise CopyError("the host array to copy to is read-only")


def _download_staged(stream: Stream, dst: HostArray, src: DeviceMemory) -> bool:
    """Copy what is large and not pinned through the staging ring; whether it was copied."""
    _require_writeable(dst)
    if stream.capturing or not _is_large(src.nbytes):
        return False
    if dst.flags.c_contiguous and is_reachable(stream.api, dst):
        return False
    ring = _ring_of(stream.context)
    if ring is None:
        return False
    ring.download(stream, dst, src.ptr)
    return True


# The staging module comes with the first copy that may need it; a start with small ones saves it.


def _is_large(nbytes: int) -> bool:
    if nbytes <= _SMALL_BYTES:
        return False
    from .staging import LEAST_STAGED_BYTES

    return nbytes >= LEAST_STAGED_BYTES


def _ring_of(context: Context) -> StagingRing | None:
    from .staging import ring_of

    return ring_of(context)


def _upload_again(stream: Stream, code: CUresult, to: CUdeviceptr, of: int, nbytes: int) -> None:
    """After a first refusal: once more as `transfer` does, with the stream's context bound."""
    if code == _REFUSED:
        code = transfer(stream, stream.api.cuMemcpyHtoDAsync, to, of, nbytes, stream.handle)
    if code:
        raise _upload_failure(stream, code, nbytes)


def _upload_directly(stream: Stream, pointer: int, source: HostArray, wait: bool) -> None:
    to, of = CUdeviceptr(pointer), host_address(source)
    code = transfer(stream, stream.api.cuMemcpyHtoDAsync, to, of, source.nbytes, stream.handle)
    if code:
        raise _upload_failure(stream, code, source.nbytes)
    # From pageable memory the call returns when the bytes are staged; from pinned memory it
    # returns at once, and the caller might change them too early.
    if wait and is_reachable(stream.api, source):
        stream.synchronize()


def _upload_in_capture(stream: Stream, dst: DeviceMemory, src: HostArray) -> None:
    """Record a copy; each replay reads the array anew, which the graph keeps alive for that."""
    if not src.flags.c_contiguous:
        raise CopyError("a copy of a strided array cannot be captured: make it contiguous first")
    if stream.capture_memory is not None:
        stream.capture_memory.kept.append(src)
    _upload_directly(stream, dst.ptr, src, wait=False)


def _upload_failure(stream: Stream, code: CUresult, nbytes: int) -> CudadrvError:
    doing = f"copying {nbytes} bytes from the host to device {stream.context.ordinal}"
    return failure(stream.api, code, "cuMemcpyHtoDAsync", doing)


def host_address(array: HostArray) -> int:
    """The address of a C-contiguous array's first byte."""
    try:
        # Four times as fast as `array.ctypes.data`.
        return _addressof(_from_buffer(array))
    except (TypeError, ValueError, BufferError):
        # Read-only arrays, and dtypes that the buffer protocol has no word for.
        return array.ctypes.data


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


def wrong_context(stream: Stream, memory: DeviceMemory) -> WrongDeviceError:
    """The error for memory of another context than the stream's."""
    return WrongDeviceError(
        f"{memory!r} is used on {stream!r}: use a stream of its own context, or copy it there"
    )


def is_reachable(api: DriverApi, array: HostArray) -> bool:
    """Whether the driver knows the host memory, and so the device may use it after a call's return.

    It answers INVALID_VALUE for what it does not know. Managed memory may count as the device's.
    """
    code, kind = api.cuPointerGetAttribute(
        CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, host_address(array)
    )
    return not code and isinstance(kind, int) and int(kind) in _KNOWN
