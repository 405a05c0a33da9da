"""Copies between host arrays and device memory whose elements lie in C order."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVarTuple, Unpack, cast

import numpy as np

from .. import border
from ..driver._api import CUdeviceptr, CUresult
from ..driver.context_handle import known_at
from ..driver.deferred_release import run_deferred
from ..driver.driver_selection import failure
from ..driver.stream import BaseStream
from ..driver.stream_handle import StreamHandle
from ..errors import ArgumentTypeError, CopyError, CudadrvError, WrongDeviceError
from .array import AnyDeviceArray
from .buffer import DeviceBuffer
from .dtypes import AnyArray
from .order import AnyMemory, order_access
from .staging import LEAST_STAGED_BYTES, copy_staged

if TYPE_CHECKING:
    import numpy.typing as npt

HostArray: TypeAlias = AnyArray
ArrayOrBuffer: TypeAlias = AnyDeviceArray | DeviceBuffer
# The driver copies up to this size into its queue before it returns.
_SMALL_BYTES: Final = 32 << 10
# The offset of a bytes object's content from its address (CPython's PyBytesObject: the content ends
# the structure, which counts one byte of it, the terminator's).
_BYTES_HEADER: Final = bytes.__basicsize__ - 1
_addressof: Final = ctypes.addressof
_STRIDED_IN_CAPTURE: Final = (
    "a copy of a strided array cannot be captured: make it contiguous first"
)
# An array is a buffer; before Python 3.12 the type checker cannot see that.
_from_buffer: Final = cast("Callable[[AnyArray], ctypes.c_char]", ctypes.c_char.from_buffer)


def upload(stream: BaseStream, dst: ArrayOrBuffer, src: HostArray, wait: bool = True) -> None:
    """Copy a host array of any strides to device memory of the same size.

    The driver copies small arrays at once. Large ones that are not pinned use the staging ring of
    the context. Strided ones are gathered on the way.

    Args:
        stream: a stream of the memory's context.
        dst: the device memory.
        src: the host array.
        wait: whether to wait for a pinned array, so that it may be changed on return. Others may be
            changed in any case.
    """
    queue = stream._handle
    memory = dst._handle
    nbytes = dst._nbytes
    if memory.ordered_on is not queue:
        memory = ready(stream, dst, writes=True)
    if nbytes == 0:
        return
    if queue.capture is not None:
        _upload_in_capture(queue, dst, src)
    elif nbytes <= _SMALL_BYTES:
        # The driver copies these bytes before its call returns. They are a copy themselves: a
        # pinned caller's array is still read after the return, and querying that costs more.
        data = src.tobytes()
        target, source = dst._pointer or dst._make_pointer(), id(data) + _BYTES_HEADER
        driver = queue.context._driver
        if driver.host_accesses is not None:
            driver.host_accesses.host_reads(src)
        function = driver.api.cuMemcpyHtoDAsync
        code = transfer(queue, function, target, source, nbytes, queue.raw)
        if code:
            raise _upload_failure(queue, code, nbytes)
    else:
        _upload_large(stream, dst, src, wait)
    del memory  # held until here, whichever thread closes the array meanwhile


def download(stream: BaseStream, dst: HostArray, src: ArrayOrBuffer, wait: bool = True) -> None:
    """Copy device memory to a host array of the same size and any strides.

    Args:
        stream: a stream of the memory's context.
        dst: the host array.
        src: the device memory.
        wait: whether to wait for values that arrive in a pinned C-contiguous array. Without it the
            array has its values once the stream is synchronised. Other arrays are always waited
            for. A capture cannot wait: without it the copy is recorded, and each replay writes the
            array.

    Raises:
        CopyError: the host array is read-only, or strided in a capture.
    """
    queue = stream._handle
    memory = src._handle
    if memory.ordered_on is not queue:
        memory = ready(stream, src, writes=False)
    nbytes = src._nbytes
    if nbytes == 0:
        _require_writeable(dst)
        return
    if nbytes > _SMALL_BYTES and _download_staged(stream, dst, src):
        return
    try:
        # As `host_address` does. Read-only arrays and arrays that are not C-contiguous fail here:
        # reading their flags would cost as much again.
        target = _addressof(_from_buffer(dst))
    except (TypeError, ValueError, BufferError):
        target = 0
    if not target:
        _require_writeable(dst)
        _download_indirectly(stream, dst, src, wait)
        return
    if queue.capture is not None:
        queue.capture.keeps.append(dst)
    api, source = queue.context._driver.api, src._pointer or src._make_pointer()
    try:
        code = transfer(queue, api.cuMemcpyDtoHAsync, target, source, nbytes, queue.raw)
        if code:
            raise _download_failure(queue, code, nbytes)
        if wait or (queue.capture is None and not is_reachable(queue, dst)):
            (code,) = queue.wait_for_work()
            if code:
                raise _wait_failure(queue, code, stream)
            run_deferred()
    except BaseException:
        if queue.capture is None:
            queue.wait_for_work()  # nothing goes on writing the caller's array
        raise
    del memory  # held until here, whichever thread closes the array meanwhile


def _download_failure(queue: StreamHandle, code: CUresult, nbytes: int) -> CudadrvError:
    doing = f"copying {nbytes} bytes from device {queue.context.ordinal} to the host"
    return failure(queue.api, code, "cuMemcpyDtoHAsync", doing)


def _wait_failure(queue: StreamHandle, code: CUresult, stream: BaseStream) -> CudadrvError:
    doing = f"waiting for {stream!r}"
    if queue.capture is not None:
        doing = "waiting for a copy that is captured (wait=False only records it)"
    return failure(queue.api, code, "cuStreamSynchronize", doing)


def ready(stream: BaseStream, memory: ArrayOrBuffer, *, writes: bool) -> AnyMemory:
    """Return the handle of open memory of the stream's context, ordered for use on the stream.

    Raises:
        ArgumentValueError: the operation writes, and the memory is read-only.
        ClosedError: the stream or the memory was closed.
        WrongDeviceError: the memory is of another context.
    """
    queue, handle = stream._handle, memory._memory
    if writes:
        memory._require_writable()
    if memory.context is not stream._context:
        raise wrong_context(stream, memory)
    if memory._nbytes:
        order_access(handle, opened(queue), writes=writes)
    return handle


def opened(queue: StreamHandle) -> StreamHandle:
    """Return the stream's handle.

    Raises:
        ClosedError: it was closed.
    """
    queue.raw  # noqa: B018  # raises once the stream is closed
    return queue


def _download_indirectly(
    stream: BaseStream, dst: HostArray, src: ArrayOrBuffer, wait: bool
) -> None:
    """Copy to an array that is strided, or whose dtype the buffer protocol does not support."""
    if dst.flags.c_contiguous:
        download(stream, dst.reshape(-1).view(np.uint8), src, wait)
    elif stream._handle.capture is not None:
        raise CopyError(_STRIDED_IN_CAPTURE)
    else:
        dense = np.empty(dst.shape, dst.dtype)
        download(stream, dense, src)
        dst[...] = dense


def _require_writeable(dst: HostArray) -> None:
    if not dst.flags.writeable:
        raise CopyError("the host array to copy to is read-only")


def _download_staged(stream: BaseStream, dst: HostArray, src: ArrayOrBuffer) -> bool:
    """Copy large memory that is not pinned by staging; return whether it was copied."""
    _require_writeable(dst)
    queue = stream._handle
    if queue.capture is not None or src.nbytes < LEAST_STAGED_BYTES:
        return False
    if dst.flags.c_contiguous and is_reachable(queue, dst):
        return False
    return copy_staged(stream, src._address, dst, to_device=False)


def _upload_large(stream: BaseStream, dst: ArrayOrBuffer, src: HostArray, wait: bool) -> None:
    """Copy an array that is too large for the driver to copy into its queue."""
    queue, is_dense = stream._handle, src.flags.c_contiguous
    accesses = queue.context._driver.host_accesses
    if accesses is not None and not is_dense:
        accesses.host_reads(src)
    if src.nbytes >= LEAST_STAGED_BYTES:
        is_known = is_dense and known_at(queue.context, src.ctypes.data) is not None
        if not is_known and copy_staged(stream, dst._address, src, to_device=True):
            return
    _upload_directly(queue, dst._address, np.ascontiguousarray(src), wait)


def _upload_directly(queue: StreamHandle, pointer: int, source: HostArray, wait: bool) -> None:
    target, source_address, api = CUdeviceptr(pointer), host_address(source), queue.api
    try:
        code = transfer(
            queue, api.cuMemcpyHtoDAsync, target, source_address, source.nbytes, queue.raw
        )
        if code:
            raise _upload_failure(queue, code, source.nbytes)
        # From pageable memory the call returns when the bytes are staged; from pinned memory it
        # returns at once, and the caller might change them too early.
        if wait and is_reachable(queue, source):
            (code,) = queue.wait_for_work()
            if code:
                doing = f"waiting for {source.nbytes} bytes from pinned memory"
                raise failure(api, code, "cuStreamSynchronize", doing)
    except BaseException:
        if queue.capture is None:
            queue.wait_for_work()  # nothing goes on reading the caller's array
        raise


def _upload_in_capture(queue: StreamHandle, dst: ArrayOrBuffer, src: HostArray) -> None:
    """Record a copy; each replay reads the array again, so the graph keeps it alive."""
    if not src.flags.c_contiguous:
        raise CopyError(_STRIDED_IN_CAPTURE)
    assert queue.capture is not None
    queue.capture.keeps.append(src)
    _upload_directly(queue, dst._address, src, wait=False)


def _upload_failure(queue: StreamHandle, code: CUresult, nbytes: int) -> CudadrvError:
    doing = f"copying {nbytes} bytes from the host to device {queue.context.ordinal}"
    return failure(queue.api, code, "cuMemcpyHtoDAsync", doing)


def host_address(array: HostArray) -> int:
    """Return the address of a C-contiguous array's first byte."""
    try:
        # Four times as fast as `array.ctypes.data`.
        return _addressof(_from_buffer(array))
    except (TypeError, ValueError, BufferError):
        # Read-only arrays, and dtypes that the buffer protocol does not support.
        return array.ctypes.data


def wrong_context(stream: BaseStream, memory: ArrayOrBuffer) -> WrongDeviceError:
    """Return the error for memory of another context than the stream's."""
    return WrongDeviceError(
        f"{memory!r} is used on {stream!r}: use a stream of its own context, or copy it there"
    )


def is_reachable(stream: StreamHandle, array: HostArray) -> bool:
    """Return whether the driver knows the host memory, and so may access it after a call returns.

    Managed memory may count as device memory.

    Raises:
        CudaError: the driver's query failed.
    """
    return known_at(stream.context, host_address(array)) is not None


def as_array(array: npt.ArrayLike) -> AnyArray:
    """Convert a sequence, a number or an array of a subclass to a NumPy array.

    Raises:
        ArgumentTypeError: NumPy cannot convert it, or it is another library's device array.
        CopyError: it has masked elements.
    """
    try:
        source: AnyArray = np.asanyarray(array)
    except Exception as error:  # the object's own conversion may raise anything
        problem = f"{border.described(array)}, becomes no NumPy array"
        raise ArgumentTypeError(f"{problem}: {error}{foreign_hint(array)}") from error
    if source.dtype.hasobject and (hint := foreign_hint(array)):
        raise ArgumentTypeError(f"{border.described(array)}, is no host array{hint}")
    require_plain(source)
    return np.asarray(source)


def foreign_hint(value: object) -> str:
    """Return a line on another library's device array where an array or a number was due, or ""."""
    with suppress(Exception):  # such as PyTorch's, for a tensor that requires a gradient
        if hasattr(value, "__cuda_array_interface__"):
            return "\n  it is another library's device array: give Stream.import_array(array)"
    return ""


def require_plain(array: AnyArray) -> None:
    """Raise for a host array with masked elements: device memory has no mask.

    Raises:
        CopyError: it has masked elements.
    """
    if type(array) is not np.ndarray and np.ma.is_masked(array):
        raise CopyError(
            "a host array with masked elements has no counterpart on a device: fill them with "
            "`array.filled(value)`"
        )


_Args = TypeVarTuple("_Args")


def transfer(
    stream: StreamHandle, function: Callable[[Unpack[_Args]], tuple[CUresult]], *args: *_Args
) -> CUresult:
    """Call a copy function of the driver for a stream and return its result.

    Driver 580 rejects copies of stream-ordered memory while a context of another device is current
    (CUDA_ERROR_INVALID_VALUE), although they name their stream. With no context current it accepts
    them, except across the border of two mappings of a reserved range.

    If there are several devices or such ranges, this queries the current context, and binds the
    stream's own for the call if need be. A capture always binds it: a rejected call would
    invalidate the capture, and be reported by tools that check a program's calls.
    """
    context, passes = stream.context, stream.gate.passes
    try:
        mine = passes.pop()  # as `submit` does, at half the cost
    except IndexError:
        mine, passes = stream.gate.enter(), stream.gate.passes
    try:
        if context.is_alone or (stream.capture is None and context.suits_copies()):
            (code,) = function(*args)
        else:
            (code,) = context.call(function, *args)
    finally:
        passes.append(mine)
    return code
