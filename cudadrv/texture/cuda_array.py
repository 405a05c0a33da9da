"""`CudaArray`: texels in the driver's own order, which textures read and surfaces write.

Copies use cuMemcpy3DAsync. From pageable memory the call returns once the driver has read the
bytes, to pageable memory once they have arrived.

cuArrayDestroy and cuMipmappedArrayDestroy wait for the work of the context (measured with driver
580 on an H100). So running kernels never lose an array that they use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

import numpy as np

from ptx.read_only import ReadOnly

from .. import border
from ..driver._api import (
    CUDA_MEMCPY3D,
    CUarray,
    CUdeviceptr,
    CUmemorytype,
    CUmipmappedArray,
)
from ..driver.context import BaseContext, require_context
from ..driver.driver_selection import checked
from ..driver.handle import Closeable, check
from ..driver.stream import BaseStream, require_stream
from ..errors import CopyError, TextureError, WrongDeviceError
from ..memory.array import AnyDeviceArray, DeviceArray
from ..memory.copy import contiguous, copy_on_device, temporary
from ..memory.dtypes import AnyArray, TypedDType
from ..memory.host_copy import host_address, is_reachable, require_plain
from ..memory.layout import Shape, checked_shape
from ..memory.order import AnyMemory, Memory, order_access
from .array_layout import ArrayExtents, Texel, creation_error, descriptor_of

if TYPE_CHECKING:
    import numpy.typing as npt

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
# For a class method, to which the class's own variable does not apply.
_HostT = TypeVar("_HostT", bound=np.generic)


class ArrayMemory(Memory[CUarray]):
    """Owning handle of a CUDA array."""

    __slots__ = ()

    def _destroy(self) -> None:
        (code,) = self.context.call(self.api.cuArrayDestroy, self.raw)
        check(self, code, "cuArrayDestroy", f"destroying an array of device {self.context.ordinal}")


class MipmapMemory(Memory[CUmipmappedArray]):
    """Owning handle of a mipmapped array; its levels share it."""

    __slots__ = ()

    def _destroy(self) -> None:
        (code,) = self.context.call(self.api.cuMipmappedArrayDestroy, self.raw)
        doing = f"destroying a mipmapped array of device {self.context.ordinal}"
        check(self, code, "cuMipmappedArrayDestroy", doing)


class Texels(Closeable, Generic[_ScalarT]):
    """The properties that a CUDA array and a mipmapped one share.

    Attributes:
        context: the context.
        extents: the width, height and depth of level 0, and the layers.
        texel: the dtype and the channels.
    """

    __slots__ = ("_context", "_extents", "_texel")

    _context: BaseContext
    context: ReadOnly[BaseContext] = ReadOnly("_context")
    _extents: ArrayExtents
    extents: ReadOnly[ArrayExtents] = ReadOnly("_extents")
    _texel: Texel
    texel: ReadOnly[Texel] = ReadOnly("_texel")

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, of level 0 where there are several, in texels."""
        return self._extents.shape

    @property
    def dtype(self) -> np.dtype[_ScalarT]:
        """The dtype of a channel."""
        return self._texel.dtype

    @property
    def channels(self) -> int:
        """Numbers in a texel."""
        return self._texel.channels


class CudaArray(Texels[_ScalarT]):
    """Texels of one to three dimensions, or layers of them, in a device's memory.

    Kernels read it through a `Texture` and write it through a `Surface`; it has no address. It is
    made at once and not initialised. Streams that use it wait for each other as for any memory.
    When it is freed, the driver waits for the work of its context, so that no kernel loses it.

    Args:
        context: where it is.
        shape: ``([[depth,] height,] width)``, with layers or faces before the extents of each.
        dtype: of a channel: an integer of 8, 16 or 32 bits, float16 or float32.
        channels: numbers in a texel: 1, 2 or 4.
        layered: the first extent counts layers.
        cubemap: the first extent counts the 6 faces, or with `layered` the faces of all layers.
        surface: kernels may write it, through a `Surface`.
        gather: kernels may use tex2Dgather.

    Attributes:
        context: the context.
        shape: the extents, in texels.
        channels: numbers in a texel.
        dtype: of a channel.
        nbytes: size of the texels; the driver takes more.
        handle: the CUarray; reading it after `close` raises `ClosedError`.
        closed: True once it was closed.

    Raises:
        TextureError: there is no such array on the device.
        DTypeError: there are no such channels.
        OutOfMemoryError: with the request and the free and total bytes.

    Source: CUDA Driver API, cuArray3DCreate.
    """

    __slots__ = ("_array",)

    # A level shares the handle of its mipmapped array, or of the mapping of its OpenGL image.
    _handle: AnyMemory
    _array: CUarray

    # Added to the error of a kernel argument.
    argument_hint = "kernels read it through a Texture over it, and write it through a Surface"

    @overload
    def __init__(
        self,
        context: BaseContext,
        shape: Shape,
        dtype: TypedDType[_ScalarT],
        *,
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
        surface: bool = False,
        gather: bool = False,
    ) -> None: ...
    # A type checker learns nothing from a dtype given as text.
    @overload
    def __init__(
        self: CudaArray[Any],
        context: BaseContext,
        shape: Shape,
        dtype: npt.DTypeLike,
        *,
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
        surface: bool = False,
        gather: bool = False,
    ) -> None: ...
    def __init__(
        self,
        context: BaseContext,
        shape: Shape,
        dtype: npt.DTypeLike,
        *,
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
        surface: bool = False,
        gather: bool = False,
    ) -> None:
        texel = Texel.of(dtype, channels)
        extents = ArrayExtents(checked_shape(shape), layered, cubemap, surface, gather)
        extents.check()
        box = require_context("CudaArray: context", context)._handle
        memory = ArrayMemory(box, None, None)
        code = memory.make(box.api.cuArray3DCreate, descriptor_of(extents, texel))
        if code:
            raise creation_error(context, extents, texel, code, "cuArray3DCreate")
        self._stand(context, extents, texel, memory.raw, memory)
        memory.public = self._key

    @classmethod
    def of_level(
        cls,
        context: BaseContext,
        extents: ArrayExtents,
        texel: Texel,
        handle: CUarray,
        memory: AnyMemory,
    ) -> CudaArray[Any]:
        """Return a level of a mipmapped array or of an OpenGL image, and keep all of it."""
        self = cls.__new__(cls)
        self._stand(context, extents, texel, handle, memory)
        return self

    def _stand(
        self,
        context: BaseContext,
        extents: ArrayExtents,
        texel: Texel,
        handle: CUarray,
        memory: AnyMemory,
    ) -> None:
        self._context = context
        self._extents = extents
        self._texel = texel
        self._array = handle
        self._own(memory)
        context._adopt(self)

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<CudaArray {self.shape} {self.texel} on device {self.context.ordinal}{state}>"

    @property
    def _closed_text(self) -> str:
        return f"the CUDA array of shape {self.shape} {self.texel} was closed"

    @property
    def handle(self) -> CUarray:
        """The CUarray.

        Raises:
            ClosedError: it was closed.
        """
        self._handle.raw  # noqa: B018  # raises once it is closed
        return self._array

    @property
    def nbytes(self) -> int:
        """Size of the texels."""
        return self.extents.size * self.texel.nbytes

    @property
    def host_shape(self) -> tuple[int, ...]:
        """The shape of a host or device array of the same content, with the channels last."""
        return (*self.shape, *self.texel.axes)

    @classmethod
    def from_host(
        cls,
        stream: BaseStream,
        array: npt.NDArray[_HostT],
        *,
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
        surface: bool = False,
        gather: bool = False,
    ) -> CudaArray[_HostT]:
        """Return an array of a host array's texels; the keywords are those of `CudaArray`.

        Args:
            stream: the stream of the copy; it must not be capturing.
            array: of any strides; several channels are its last axis.
            channels, layered, cubemap, surface, gather: as of `CudaArray`.
        """
        require_stream("CudaArray.from_host: stream", stream)
        border.instance_of("CudaArray.from_host: array", array, np.ndarray)
        channels = border.integer("CudaArray.from_host: channels", channels)
        shape = array.shape
        if channels > 1:
            if array.shape[-1:] != (channels,):
                raise TextureError(
                    f"a host array of shape {array.shape} for {channels} channels: its last extent "
                    "counts the channels"
                )
            shape = array.shape[:-1]
        result: CudaArray[_HostT] = CudaArray(
            stream.context,
            shape,
            array.dtype,
            channels=channels,
            layered=layered,
            cubemap=cubemap,
            surface=surface,
            gather=gather,
        )
        result.copy_from(stream, array)
        return result

    def copy_from(
        self,
        stream: BaseStream,
        source: AnyArray | AnyDeviceArray | CudaArray[Any],
        *,
        origin: Sequence[int] | None = None,
        wait: bool = True,
    ) -> None:
        """Fill the array, or a box of it, in a stream's order.

        Args:
            stream: a stream of the array's context.
            source: a host array of any strides, a device array, or a CUDA array of the same texels;
                its shape is that of the box, with several channels as the last axis.
            origin: the place of the box's first texel, an index an axis; the beginning if left out.
            wait: True to wait for a pinned host array, so that it may be changed on return.
                Others may be changed in any case.

        Raises:
            CopyError: the source has another dtype or number of axes, or goes beyond the array.
            WrongDeviceError: stream, source and array are not of one context.
        """
        require_stream("CudaArray.copy_from: stream", stream)
        border.instance_of(
            "CudaArray.copy_from: source", source, (np.ndarray, DeviceArray, CudaArray)
        )
        _copy_in(stream, self, source, origin, wait=wait)

    @overload
    def copy_to(
        self,
        stream: BaseStream,
        out: None = None,
        *,
        origin: Sequence[int] | None = None,
        wait: bool = True,
    ) -> npt.NDArray[_ScalarT]: ...
    @overload
    def copy_to(
        self,
        stream: BaseStream,
        out: npt.NDArray[_ScalarT],
        *,
        origin: Sequence[int] | None = None,
        wait: bool = True,
    ) -> npt.NDArray[_ScalarT]: ...
    @overload
    def copy_to(
        self,
        stream: BaseStream,
        out: DeviceArray[_ScalarT],
        *,
        origin: Sequence[int] | None = None,
        wait: bool = True,
    ) -> DeviceArray[_ScalarT]: ...
    def copy_to(
        self,
        stream: BaseStream,
        out: npt.NDArray[_ScalarT] | DeviceArray[_ScalarT] | None = None,
        *,
        origin: Sequence[int] | None = None,
        wait: bool = True,
    ) -> npt.NDArray[_ScalarT] | DeviceArray[_ScalarT]:
        """Copy the array, or a box of it, to `out` or to a new host array.

        A capture waits for nothing: each replay fills `out`.

        Args:
            stream: of the array's context.
            out: a host or device array of the box's shape and of the array's dtype.
            origin: where the box begins, an index for each axis; by default the first element.
            wait: whether to wait for a pinned, C-contiguous host array. The call always waits for
                other host arrays.

        Raises:
            CopyError: `out` has another dtype or number of axes, is read-only, or is larger
                than the array.
            WrongDeviceError: stream, `out` and array are not of one context.
        """
        require_stream("CudaArray.copy_to: stream", stream)
        border.optional("CudaArray.copy_to: out", out, (np.ndarray, DeviceArray))
        origin = _checked_origin(origin)
        if out is None:
            shape = self.shape
            if origin is not None:
                shape = tuple(
                    max(n - max(start_at, 0), 0) for n, start_at in zip(shape, origin, strict=False)
                )
            out = np.empty((*shape, *self.texel.axes), self.dtype)
        _copy_out(stream, self, out, origin, wait=wait)
        return out

    def close(self) -> None:
        """Free the texels, and the textures and surfaces over them. Idempotent.

        When the driver frees them, it waits for the work of the context. Texels that a texture or a
        graph uses stay until that is gone; those of a mipmap level stay with its mipmapped array.
        """
        super().close()


# Copies take arrays of any dtype and check it at run time.
_AnyCudaArray: TypeAlias = CudaArray[Any]
_Side: TypeAlias = AnyArray | AnyDeviceArray | _AnyCudaArray


def _copy_in(
    stream: BaseStream,
    array: _AnyCudaArray,
    source: _Side,
    origin: Sequence[int] | None,
    *,
    wait: bool,
) -> None:
    """Implement `CudaArray.copy_from`."""
    _require(stream, array, source)
    box, position = _box(array, source, origin)
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
    copy.dstXInBytes, copy.dstY, copy.dstZ = position
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
    if host is not None and wait and not stream.capturing and is_reachable(stream._handle, host):
        stream.synchronize()


def _copy_out(
    stream: BaseStream,
    array: _AnyCudaArray,
    out: AnyArray | AnyDeviceArray,
    origin: Sequence[int] | None,
    *,
    wait: bool,
) -> None:
    """Implement `CudaArray.copy_to`."""
    _require(stream, array, out)
    if isinstance(out, DeviceArray):
        out._require_writable()
    box, position = _box(array, out, origin)
    if 0 in box:
        return
    if isinstance(out, DeviceArray) and not out.is_contiguous:
        dense = temporary(stream, out)
        _copy_out(stream, array, dense, origin, wait=wait)
        copy_on_device(stream, out, dense)
        return
    target = _dense(stream, out) if isinstance(out, np.ndarray) else out
    copy = _boxed(array, box)
    copy.srcMemoryType = CUmemorytype.CU_MEMORYTYPE_ARRAY
    copy.srcArray = array.handle
    copy.srcXInBytes, copy.srcY, copy.srcZ = position
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
        and (wait or target is not out or not is_reachable(stream._handle, target))
    ):
        stream.synchronize()
    if isinstance(out, np.ndarray) and target is not out:
        out[...] = target


def _dense(stream: BaseStream, out: AnyArray) -> AnyArray:
    """Return a host array that the driver can write: `out`, or one to be copied to it."""
    if not out.flags.writeable:
        raise CopyError("the host array to copy to is read-only")
    if out.flags.c_contiguous:
        return out
    if stream.capturing:
        raise CopyError("a copy to a strided array cannot be captured: copy to a contiguous one")
    return np.empty(out.shape, out.dtype)


def _checked_origin(origin: Sequence[int] | None) -> tuple[int, ...] | None:
    """Return the index of a box's first texel as Python integers; None is the beginning."""
    if origin is None:
        return None
    places = border.sequence_of("the origin of a box", origin, object)
    return tuple(border.integer("the origin of a box", coordinate) for coordinate in places)


def _require(stream: BaseStream, array: _AnyCudaArray, other: _Side) -> None:
    """Raise unless all is of one context, and of one dtype."""
    if isinstance(other, np.ndarray):
        require_plain(other)
    if array.context is not stream.context:
        raise WrongDeviceError(f"{array!r} is copied on {stream!r}: use a stream of its context")
    if not isinstance(other, np.ndarray) and other.context is not stream.context:
        raise WrongDeviceError(
            f"{other!r} and {array!r} are of different contexts\n"
            "  copy through a DeviceArray, which Stream.copy copies between devices"
        )
    if other.dtype != array.dtype:
        raise CopyError(f"{_described(other)} is {other.dtype}, {array!r} of {array.dtype}")


def _box(
    array: _AnyCudaArray, other: _Side, origin: Sequence[int] | None
) -> tuple[tuple[int, ...], tuple[int, int, int]]:
    """Return the extents of a copy, and its position in bytes, rows and slices.

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
    start = _checked_origin(origin) or (0,) * len(shape)
    if len(start) != len(shape):
        raise CopyError(f"the origin {start} is not of {len(shape)} axes, as {array!r} is")
    if any(
        offset < 0 or offset + n > extent
        for offset, n, extent in zip(start, shape, array.shape, strict=True)
    ):
        shown_origin = "" if origin is None else f" at {start}"
        raise CopyError(f"{_described(other)}{shown_origin} does not fit {array!r}")
    x, y, z = array.extents.along(start, 0)
    return shape, (x * array.texel.nbytes, y, z)


def _boxed(array: _AnyCudaArray, shape: tuple[int, ...]) -> CUDA_MEMCPY3D:
    width, height, depth = array.extents.along(shape, 1)
    copy = CUDA_MEMCPY3D()
    copy.WidthInBytes, copy.Height, copy.Depth = width * array.texel.nbytes, height, depth
    return copy


def _run(
    stream: BaseStream,
    copy: CUDA_MEMCPY3D,
    doing: str,
    array: _AnyCudaArray,
    other: _Side,
    *,
    into_array: bool,
) -> None:
    box = require_stream("a copy of texels: stream", stream)._handle
    box.raw  # noqa: B018  # raises once the stream is closed
    memories: list[AnyMemory] = [array._handle]
    order_access(memories[0], box, writes=into_array)
    if not isinstance(other, np.ndarray):
        memories.append(other._memory if isinstance(other, DeviceArray) else other._handle)
        order_access(memories[1], box, writes=not into_array)
    elif box.capture is not None:
        box.capture.keeps.append(other)  # each replay copies anew
    result = box.submit(box.context.call, box.api.cuMemcpy3DAsync, copy, box.raw)
    checked(box.api, "cuMemcpy3DAsync", result, doing)


def _described(side: _Side) -> str:
    return f"a host array {side.shape}" if isinstance(side, np.ndarray) else repr(side)
