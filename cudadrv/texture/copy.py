"""Copies between CUDA arrays and host arrays, device arrays and other CUDA arrays.

CUDA Driver API, cuMemcpy3DAsync. From pageable memory it returns when the driver has taken the
bytes over, to pageable memory when they are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from .. import border
from ..driver._api import CUDA_MEMCPY3D, CUdeviceptr, CUmemorytype
from ..driver.in_use import failure
from ..driver.stream_core import StreamCore
from ..errors import CopyError, WrongDeviceError
from ..memory.array import AnyDeviceArray, DeviceArray
from ..memory.copy import contiguous, copy_on_device, temporary
from ..memory.dtypes import AnyArray
from ..memory.host_array import require_plain
from ..memory.host_copy import host_address, is_reachable
from ..memory.order import AnyMemory, use
from .texel_array import AnyTexelArray

Side: TypeAlias = AnyArray | AnyDeviceArray | AnyTexelArray


def copy_in(
    stream: StreamCore,
    array: AnyTexelArray,
    source: Side,
    origin: Sequence[int] | None,
    *,
    wait: bool,
) -> None:
    """What `CudaArray.copy_from` does."""
    _require(stream, array, source)
    box, place = _box(array, source, origin)
    if 0 in box:
        return
    if isinstance(source, DeviceArray):
        source = contiguous(stream, source)
    host = None
    if isinstance(source, np.ndarray):
        if stream.capturing and not source.flags.c_contiguous:
            raise CopyError(
                "a copy of a strided array cannot be captured: make it contiguous first"
            )
        host = source = np.ascontiguousarray(source)
    copy = _boxed(array, box)
    copy.dstMemoryType = CUmemorytype.CU_MEMORYTYPE_ARRAY
    copy.dstArray = array.handle
    copy.dstXInBytes, copy.dstY, copy.dstZ = place
    if isinstance(source, np.ndarray):
        copy.srcMemoryType = CUmemorytype.CU_MEMORYTYPE_HOST
        copy.srcHost = host_address(source)
    elif isinstance(source, DeviceArray):
        copy.srcMemoryType = CUmemorytype.CU_MEMORYTYPE_DEVICE
        copy.srcDevice = CUdeviceptr(source.ptr)
    else:
        copy.srcMemoryType = CUmemorytype.CU_MEMORYTYPE_ARRAY
        copy.srcArray = source.handle
    copy.srcPitch, copy.srcHeight = copy.WidthInBytes, copy.Height
    doing = f"copying {_described(source)} to {array!r}"
    _run(stream, copy, doing, array, source, into_array=True)
    if host is not None and wait and not stream.capturing and is_reachable(stream._box, host):
        stream.synchronize()


def copy_out(
    stream: StreamCore,
    array: AnyTexelArray,
    out: AnyArray | AnyDeviceArray,
    origin: Sequence[int] | None,
    *,
    wait: bool,
) -> None:
    """What `CudaArray.copy_to` does."""
    _require(stream, array, out)
    box, place = _box(array, out, origin)
    if 0 in box:
        return
    if isinstance(out, DeviceArray) and not out.is_contiguous:
        dense = temporary(stream, out)
        copy_out(stream, array, dense, origin, wait=wait)
        copy_on_device(stream, out, dense)
        return
    target = _dense(stream, out) if isinstance(out, np.ndarray) else out
    copy = _boxed(array, box)
    copy.srcMemoryType = CUmemorytype.CU_MEMORYTYPE_ARRAY
    copy.srcArray = array.handle
    copy.srcXInBytes, copy.srcY, copy.srcZ = place
    if isinstance(target, np.ndarray):
        copy.dstMemoryType = CUmemorytype.CU_MEMORYTYPE_HOST
        copy.dstHost = host_address(target)
    else:
        copy.dstMemoryType = CUmemorytype.CU_MEMORYTYPE_DEVICE
        copy.dstDevice = CUdeviceptr(target.ptr)
    copy.dstPitch, copy.dstHeight = copy.WidthInBytes, copy.Height
    doing = f"copying {array!r} to {_described(out)}"
    _run(stream, copy, doing, array, target, into_array=False)
    if (
        isinstance(target, np.ndarray)
        and not stream.capturing
        and (wait or target is not out or not is_reachable(stream._box, target))
    ):
        stream.synchronize()
    if isinstance(out, np.ndarray) and target is not out:
        out[...] = target


def _dense(stream: StreamCore, out: AnyArray) -> AnyArray:
    """A host array that the driver can write to: `out`, or what is copied to it afterwards."""
    if not out.flags.writeable:
        raise CopyError("the host array to copy to is read-only")
    if out.flags.c_contiguous:
        return out
    if stream.capturing:
        raise CopyError("a copy to a strided array cannot be captured: copy to a contiguous one")
    return np.empty(out.shape, out.dtype)


def checked_origin(origin: Sequence[int] | None) -> tuple[int, ...] | None:
    """The place of a box as Python integers; None is the beginning."""
    if origin is None:
        return None
    places = border.several("the origin of a box", origin, object)
    return tuple(border.integer("the origin of a box", place) for place in places)


def _require(stream: StreamCore, array: AnyTexelArray, other: Side) -> None:
    """Raise unless all is of one context, and of one dtype."""
    if isinstance(other, np.ndarray):
        require_plain(other)
    if array.context is not stream.context:
        raise WrongDeviceError(f"{array!r} is copied on {stream!r}: use a stream of its context")
    if not isinstance(other, np.ndarray) and other.context is not stream.context:
        raise WrongDeviceError(
            f"{other!r} and {array!r} are of different contexts: copy through a DeviceArray, which "
            "Stream.copy takes from one device to another"
        )
    if other.dtype != array.dtype:
        raise CopyError(f"{_described(other)} is {other.dtype}, {array!r} of {array.dtype}")


def _box(
    array: AnyTexelArray, other: Side, origin: Sequence[int] | None
) -> tuple[tuple[int, ...], tuple[int, int, int]]:
    """The extents of what is copied, and its place in bytes, rows and slices.

    Raises:
        CopyError: it is not within the array.
    """
    axes = array.texel.axes
    shape = other.shape
    if isinstance(other, (np.ndarray, DeviceArray)):
        if len(shape) != len(array.shape) + len(axes) or (axes and shape[-1:] != axes):
            raise CopyError(
                f"{_described(other)} does not have the axes of {array!r}, whose content is of "
                f"shape {array.host_shape}"
            )
        shape = shape[: len(array.shape)]
    elif other.channels != array.channels or len(shape) != len(array.shape):
        raise CopyError(f"{other!r} does not have the texels or the axes of {array!r}")
    start = checked_origin(origin) or (0,) * len(shape)
    if len(start) != len(shape):
        raise CopyError(f"the origin {start} is not of {len(shape)} axes, as {array!r} is")
    if any(
        at < 0 or at + n > whole for at, n, whole in zip(start, shape, array.shape, strict=True)
    ):
        at = "" if origin is None else f" at {start}"
        raise CopyError(f"{_described(other)}{at} does not fit {array!r}")
    x, y, z = array.extents.along(start, 0)
    return shape, (x * array.texel.nbytes, y, z)


def _boxed(array: AnyTexelArray, shape: tuple[int, ...]) -> CUDA_MEMCPY3D:
    width, height, depth = array.extents.along(shape, 1)
    copy = CUDA_MEMCPY3D()
    copy.WidthInBytes, copy.Height, copy.Depth = width * array.texel.nbytes, height, depth
    return copy


def _run(
    stream: StreamCore,
    copy: CUDA_MEMCPY3D,
    doing: str,
    array: AnyTexelArray,
    other: Side,
    *,
    into_array: bool,
) -> None:
    box = border.instance("a copy of texels: stream", stream, StreamCore)._box
    box.raw  # noqa: B018  # raises once the stream is closed
    held: list[AnyMemory] = [array._box]
    use(held[0], box, writes=into_array)
    if not isinstance(other, np.ndarray):
        held.append(other._memory if isinstance(other, DeviceArray) else other._box)
        use(held[1], box, writes=not into_array)
    elif box.capture is not None:
        box.capture.keeps.append(other)  # each replay copies anew
    (code,) = box.context.call(box.api.cuMemcpy3DAsync, copy, box.raw)
    if code:
        raise failure(box.api, code, "cuMemcpy3DAsync", doing)


def _described(side: Side) -> str:
    return f"a host array {side.shape}" if isinstance(side, np.ndarray) else repr(side)
