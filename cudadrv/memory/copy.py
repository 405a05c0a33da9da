"""Copies between arrays of the host and of devices, with any strides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import numpy as np

from .. import border
from ..driver.context_handle import known_at
from ..driver.driver_selection import failure
from ..driver.stream import BaseStream
from ..driver.stream_handle import StreamHandle
from ..errors import CopyError, InvalidValueError, WrongDeviceError
from .array import AnyDeviceArray, DeviceArray, StridedArray, empty
from .buffer import DeviceBuffer, PoolMemory, alloc
from .driver_pool import open_pool
from .dtypes import bytes_written_together
from .host_copy import (
    ArrayOrBuffer,
    HostArray,
    download,
    opened,
    ready,
    require_plain,
    transfer,
    upload,
)
from .layout import Layout
from .managed import is_managed, on_device
from .order import order_access
from .resource import without_choices
from .strided_copy import copy_strided, copy_to_peer, side_of

_SIDES: Final = (DeviceArray, DeviceBuffer, np.ndarray)
_ndarray: Final = np.ndarray


def copy(
    self: BaseStream,
    dst: ArrayOrBuffer | HostArray,
    src: ArrayOrBuffer | HostArray,
    *,
    wait: bool = True,
) -> None:
    """Copy between arrays of one shape and dtype, or buffers of one size: `Stream.copy`.

    Either side may be a host array, and the two may lie on different devices; the stream belongs to
    one of them. A copy to the host waits; others keep the order of the streams concerned. Both may
    be host arrays if one of them is pinned, registered or managed: the copy comes after the earlier
    work of the stream on it.

    Args:
        dst: the destination.
        src: the source.
        wait: whether to wait for a pinned, registered or managed host array, so that on return it
            may be changed or has its values. Other host arrays may be used on return in any case.

    Raises:
        CopyError: the two sides do not match, or are ordinary host arrays.
        WrongDeviceError: the stream belongs to neither side's device.
    """
    # Ordered by speed: `isinstance` is faster when it succeeds, and most dtypes are one object, for
    # which identity is faster than equality. Subclasses of arrays may have masks.
    if type(src) is _ndarray and isinstance(dst, DeviceArray):
        if dst._shape != src.shape or dst._dtype is not src.dtype:
            check_alike(dst, src)
        if src.base is not None and is_managed(src):
            copy_of_host(self, dst, src, wait)
        elif dst.__class__ is StridedArray:
            _upload_strided(self, dst, src, wait)
        else:
            upload(self, dst, src, wait)
    elif type(dst) is _ndarray and isinstance(src, DeviceArray):
        if dst.shape != src._shape or dst.dtype is not src._dtype:
            check_alike(dst, src)
        download_any(self, dst, src, wait)
    elif isinstance(src, DeviceArray) and isinstance(dst, DeviceArray):
        if dst._shape != src._shape or dst._dtype is not src._dtype:
            check_alike(dst, src)
        copy_on_device(self, dst, src)
    else:
        _copy_others(self, dst, src, wait)


def _copy_others(
    stream: BaseStream, dst: ArrayOrBuffer | HostArray, src: ArrayOrBuffer | HostArray, wait: bool
) -> None:
    """Copy from or to a buffer, a subclass of NumPy's array, or on the device."""
    try:
        check_alike(dst, src)
        if isinstance(src, np.ndarray):
            require_plain(src)
            if isinstance(dst, np.ndarray) or is_managed(src):
                copy_of_host(stream, dst, src, wait)
            elif isinstance(dst, StridedArray):
                _upload_strided(stream, dst, src, wait)
            else:
                upload(stream, dst, src, wait)
        elif isinstance(dst, np.ndarray):
            require_plain(dst)
            download_any(stream, dst, src, wait)
        else:
            copy_on_device(stream, dst, src)
    except AttributeError:
        border.instance_of("Stream.copy: dst", dst, _SIDES)
        border.instance_of("Stream.copy: src", src, _SIDES)
        raise


def copy_of_host(
    stream: BaseStream, dst: ArrayOrBuffer | HostArray, src: HostArray, wait: bool = True
) -> None:
    """Copy a host array in the order of the stream, where it or the destination is used in place.

    Raises:
        CopyError: neither is, or the destination is read-only.
    """
    context, sides = opened(stream._handle).context, [dst, src]
    for number, side in enumerate(sides):
        if isinstance(side, np.ndarray) and side.nbytes:
            require_plain(side)
            # Overlapping memory counts as far as it reaches.
            if known_at(context, _first_byte(side)) is not None:
                sides[number] = on_device(stream, side)
    if not src.nbytes:
        return
    if isinstance(sides[0], np.ndarray) and isinstance(sides[1], np.ndarray):
        raise CopyError("both sides are ordinary host arrays: NumPy copies those")
    if isinstance(dst, np.ndarray) and not dst.flags.writeable:
        raise CopyError("the host array to copy to is read-only")
    copy(stream, *sides, wait=wait)
    if wait and not stream.capturing:
        stream.synchronize()


def _first_byte(array: HostArray) -> int:
    return array.ctypes.data + Layout(0, array.shape, array.strides).bounds(array.itemsize)[0]


def check_alike(dst: ArrayOrBuffer | HostArray, src: ArrayOrBuffer | HostArray) -> None:
    """Raise `CopyError` unless both have the same shape and dtype, or the same size."""
    if isinstance(dst, DeviceBuffer) or isinstance(src, DeviceBuffer):
        if dst.nbytes != src.nbytes:
            raise CopyError(f"the sides have {dst.nbytes} and {src.nbytes} bytes")
    elif dst.shape != src.shape or dst.dtype != src.dtype:
        raise CopyError(
            f"the destination is {dst.shape} {dst.dtype}, the source {src.shape} {src.dtype}: "
            "both must have one shape and dtype"
        )


def download_any(stream: BaseStream, dst: HostArray, src: ArrayOrBuffer, wait: bool) -> None:
    """Copy device memory of any strides to a host array of the same size and any strides."""
    if isinstance(src, StridedArray):
        if dst.T.flags.c_contiguous and src.T.is_contiguous:
            dst, src = dst.T, src.T
        else:
            src = contiguous(stream, src)
    if stream._handle.context._driver.copy_watch is None:
        download(stream, dst, src, wait)
        return
    with watched_copies(stream._handle, [src]):
        download(stream, dst, src, wait)


@contextmanager
def watched_copies(queue: StreamHandle, sources: Iterable[ArrayOrBuffer]) -> Iterator[None]:
    """Report arrays that are copied to the host in a block, if the driver receives that."""
    watch = queue.context._driver.copy_watch
    with ExitStack() as stack:
        for source in sources:
            if watch is not None and isinstance(source, DeviceArray):
                unit = bytes_written_together(source.dtype)
                stack.enter_context(watch.copying(source.ptr, source.nbytes, unit))
        yield


def _upload_strided(stream: BaseStream, dst: AnyDeviceArray, src: HostArray, wait: bool) -> None:
    """Copy a host array, through contiguous memory if need be."""
    require_apart(dst)
    if src.T.flags.c_contiguous and dst.T.is_contiguous:
        upload(stream, dst.T, src.T, wait)
        return
    ready(stream, dst, writes=True)
    dense = temporary(stream, dst)
    upload(stream, dense, src, wait)
    copy_on_device(stream, dst, dense)


def contiguous(self: BaseStream, array: AnyDeviceArray) -> AnyDeviceArray:
    """Return a view of the array if its elements lie in C order, one after the other, else a copy.

    Raises:
        WrongDeviceError: the array is of another context.
    """
    border.instance_of("Stream.contiguous: array", array, DeviceArray)
    if array.is_contiguous:
        return array[...]
    ready(self, array, writes=False)
    dense = temporary(self, array)
    copy_on_device(self, dense, array)
    return dense


def temporary(stream: BaseStream, like: AnyDeviceArray) -> AnyDeviceArray:
    """Allocate memory of the driver's pool for an array's elements, in C order."""
    with without_choices():
        return empty(stream, like.shape, like.dtype)


def copy_on_device(stream: BaseStream, dst: ArrayOrBuffer, src: ArrayOrBuffer) -> None:
    """Copy between arrays or buffers of one size, of one device or of two.

    Overlapping memory is copied as if all reads came before any write.
    """
    context = dst._stream._context
    is_of_one = context is src._stream._context
    if stream._context is not context and stream._context is not src._stream._context:
        raise WrongDeviceError(
            f"{stream!r} copies from {src!r} to {dst!r}: use a stream of one of the two devices"
        )
    target_memory, source_memory, nbytes = dst._memory, src._memory, dst._nbytes
    if target_memory.is_read_only:
        dst._require_writable()
    if nbytes == 0:
        return
    if dst.__class__ is StridedArray or src.__class__ is StridedArray:
        _copy_strided(stream, as_array(dst, src), as_array(src, dst))
        return
    target_address, source_address = dst._address, src._address
    if target_address < source_address + nbytes and source_address < target_address + nbytes:
        if target_address != source_address:
            _copy_overlapping(stream, dst, src)
        return
    queue = opened(stream._handle)
    if source_memory.ordered_on is not queue:
        order_access(source_memory, queue, writes=False)
    if target_memory.ordered_on is not queue:
        order_access(target_memory, queue)
    target, source = dst._pointer or dst._make_pointer(), src._pointer or src._make_pointer()
    if is_of_one:
        call = "cuMemcpyDtoDAsync"
        code = transfer(queue, queue.api.cuMemcpyDtoDAsync, target, source, nbytes, queue.raw)
    else:
        call = "cuMemcpyPeerAsync"
        if queue.capture is None:
            open_pools(dst, src)
        contexts = target_memory.context.raw, source_memory.context.raw
        (code,) = queue.submit(
            queue.api.cuMemcpyPeerAsync, target, contexts[0], source, contexts[1], nbytes, queue.raw
        )
    if code:
        doing = f"copying {nbytes} bytes from device {src.context.ordinal} to {dst.context.ordinal}"
        raise failure(queue.api, code, call, doing)


def _copy_strided(stream: BaseStream, dst: AnyDeviceArray, src: AnyDeviceArray) -> None:
    """Copy between arrays of one shape and dtype, at least one of them strided."""
    require_apart(dst)
    if do_overlap(dst, src):
        if dst.ptr != src.ptr or dst.strides != src.strides:
            _copy_overlapping(stream, dst, src)
        return
    queue, target_memory, source_memory = opened(stream._handle), dst._memory, src._memory
    order_access(source_memory, queue, writes=False)
    order_access(target_memory, queue)
    if dst.context is src.context:
        sides = side_of(dst), side_of(src)
        copy_strided(stream.context, queue, dst.shape, dst.dtype.itemsize, *sides)
    else:
        if queue.capture is None:
            open_pools(dst, src)
        copy_to_peer(queue, dst, src, (target_memory.context, source_memory.context))


def _copy_overlapping(stream: BaseStream, dst: ArrayOrBuffer, src: ArrayOrBuffer) -> None:
    """Copy through temporary memory, as the driver copies in no defined order."""
    with without_choices():
        if isinstance(src, DeviceBuffer):
            temporary: ArrayOrBuffer = alloc(stream, src.nbytes)
        else:
            temporary = empty(stream, src.shape, src.dtype)
    copy_on_device(stream, temporary, src)
    copy_on_device(stream, dst, temporary)


def as_array(side: ArrayOrBuffer, other: ArrayOrBuffer) -> AnyDeviceArray:
    """Return a side of a copy; a buffer as an array in C order with the other side's shape."""
    if isinstance(side, DeviceBuffer):
        assert isinstance(other, DeviceArray)
        return DeviceArray(side, other.shape, other.dtype)
    return side


def do_overlap(array: AnyDeviceArray, other: AnyDeviceArray) -> bool:
    """Return whether the extents of two arrays' memory overlap."""
    (low, high), (first, end) = _bounds(array), _bounds(other)
    return low < end and first < high


def _bounds(array: AnyDeviceArray) -> tuple[int, int]:
    low, high = array._layout.bounds(array.dtype.itemsize)
    return array.ptr + low, array.ptr + high


def require_apart(dst: AnyDeviceArray) -> None:
    """Raise if elements to be written share bytes, as the order of writes is undefined.

    Raises:
        InvalidValueError: they do.
    """
    if dst._layout.overlaps_itself(dst.dtype.itemsize):
        raise InvalidValueError(f"{dst!r} cannot be written: its elements overlap each other")


def open_pools(*sides: ArrayOrBuffer) -> None:
    """Let each of two devices access the other's pool, as far as the memory comes from there."""
    for side, other in (sides, reversed(sides)):
        if isinstance(side._memory, PoolMemory):
            open_pool(side.context.device, other.context.device)
