"""`CudaArray`: texels in the driver's own order, which textures read and surfaces write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from .. import border
from ..driver._api import CUarray
from ..driver.context import ContextCore
from ..driver.stream_core import StreamCore
from ..errors import TextureError
from ..memory.array import AnyDeviceArray, DeviceArray
from ..memory.dtypes import AnyArray, TypedDType
from ..memory.layout import Shape, checked_shape
from .copy import checked_origin, copy_in, copy_out
from .descriptor import descriptor_of, refused
from .extents import Extents
from .storage import ArrayMemory, MipmapMemory
from .texel import Texel
from .texel_array import TexelArray

if TYPE_CHECKING:
    import numpy.typing as npt


_ScalarT = TypeVar("_ScalarT", bound=np.generic)
# Of a class method, which the class's own variable says nothing of.
_HostT = TypeVar("_HostT", bound=np.generic)


class CudaArray(TexelArray[_ScalarT]):
    """Texels of one to three dimensions, or layers of them, in a device's memory.

    Kernels read it through a `Texture` and write it through a `Surface`; it has no address. It is
    made at once and not initialised. Streams that use it wait for each other as for any memory.
    When it goes, the driver waits for the work of its context, so that no kernel loses it.

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
        closed: whether it was closed.

    Raises:
        TextureError: there is no such array on the device.
        DTypeError: there are no such channels.
        OutOfMemoryError: with the request and the free and total bytes.

    Source: CUDA Driver API, cuArray3DCreate.
    """

    __slots__ = ()

    # What an argument's refusal adds.
    argument_hint = "kernels read it through a Texture over it, and write it through a Surface"

    @overload
    def __init__(
        self,
        context: ContextCore,
        shape: Shape,
        dtype: TypedDType[_ScalarT],
        *,
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
        surface: bool = False,
        gather: bool = False,
    ) -> None: ...
    # A dtype given as text says nothing to a type checker.
    @overload
    def __init__(
        self: CudaArray[Any],
        context: ContextCore,
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
        context: ContextCore,
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
        extents = Extents(checked_shape(shape), layered, cubemap, surface, gather)
        extents.check()
        box = border.instance("CudaArray: context", context, ContextCore)._box
        memory = ArrayMemory(box, None, None)
        code = memory.make(box.api.cuArray3DCreate, descriptor_of(extents, texel))
        if code:
            raise refused(context, extents, texel, code, "cuArray3DCreate")
        memory.public = id(self)
        self._stand(context, extents, texel, memory.raw, memory)

    @classmethod
    def of_level(
        cls,
        context: ContextCore,
        extents: Extents,
        texel: Texel,
        handle: CUarray,
        memory: MipmapMemory,
    ) -> CudaArray[Any]:
        """A level of a mipmapped array, which keeps all of it; `MipmappedArray.level` gives it."""
        self = cls.__new__(cls)
        self._stand(context, extents, texel, handle, memory)
        return self

    def _stand(
        self,
        context: ContextCore,
        extents: Extents,
        texel: Texel,
        handle: CUarray,
        memory: ArrayMemory | MipmapMemory,
    ) -> None:
        self.context = context
        self.extents = extents
        self.texel = texel
        self._array = handle
        self._own(memory)
        context._adopt(self)

    @classmethod
    def from_host(
        cls,
        stream: StreamCore,
        array: npt.NDArray[_HostT],
        *,
        channels: int = 1,
        layered: bool = False,
        cubemap: bool = False,
        surface: bool = False,
        gather: bool = False,
    ) -> CudaArray[_HostT]:
        """An array of a host array's texels; the keywords are those of `CudaArray`.

        Args:
            stream: what the copy is queued on; it must not be capturing.
            array: of any strides; several channels are its last axis.
            channels, layered, cubemap, surface, gather: as of `CudaArray`.
        """
        border.instance("CudaArray.from_host: stream", stream, StreamCore)
        border.instance("CudaArray.from_host: array", array, np.ndarray)
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
            stream.context, shape, array.dtype, channels=channels, layered=layered,
            cubemap=cubemap, surface=surface, gather=gather,
        )  # fmt: skip
        result.copy_from(stream, array)
        return result

    def copy_from(
        self,
        stream: StreamCore,
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
            wait: whether a pinned host array is waited for, so that it may be changed on return.
                Others may be changed in any case.

        Raises:
            CopyError: the source has another dtype or number of axes, or goes beyond the array.
            WrongDeviceError: stream, source and array are not of one context.
        """
        border.instance("CudaArray.copy_from: stream", stream, StreamCore)
        border.instance("CudaArray.copy_from: source", source, (np.ndarray, DeviceArray, CudaArray))
        copy_in(stream, self, source, origin, wait=wait)

    @overload
    def copy_to(
        self,
        stream: StreamCore,
        out: None = None,
        *,
        origin: Sequence[int] | None = None,
        wait: bool = True,
    ) -> npt.NDArray[_ScalarT]: ...
    @overload
    def copy_to(
        self,
        stream: StreamCore,
        out: npt.NDArray[_ScalarT],
        *,
        origin: Sequence[int] | None = None,
        wait: bool = True,
    ) -> npt.NDArray[_ScalarT]: ...
    @overload
    def copy_to(
        self,
        stream: StreamCore,
        out: DeviceArray[_ScalarT],
        *,
        origin: Sequence[int] | None = None,
        wait: bool = True,
    ) -> DeviceArray[_ScalarT]: ...
    def copy_to(
        self,
        stream: StreamCore,
        out: npt.NDArray[_ScalarT] | DeviceArray[_ScalarT] | None = None,
        *,
        origin: Sequence[int] | None = None,
        wait: bool = True,
    ) -> npt.NDArray[_ScalarT] | DeviceArray[_ScalarT]:
        """Read the array, or a box of it, into `out` or a new host array; the inverse of a fill.

        Host arrays are waited for, but for a pinned C-contiguous one without `wait`. In a capture
        nothing is waited for: each replay fills `out`.

        Raises:
            CopyError: `out` has another dtype or number of axes, is read-only, or asks for more
                than there is.
            WrongDeviceError: stream, `out` and array are not of one context.
        """
        border.instance("CudaArray.copy_to: stream", stream, StreamCore)
        border.optional("CudaArray.copy_to: out", out, (np.ndarray, DeviceArray))
        origin = checked_origin(origin)
        if out is None:
            shape = self.shape
            if origin is not None:
                shape = tuple(max(n - max(at, 0), 0) for n, at in zip(shape, origin, strict=False))
            out = np.empty((*shape, *self.texel.axes), self.dtype)
        copy_out(stream, self, out, origin, wait=wait)
        return out

    def close(self) -> None:
        """Give the texels up, and so the textures and surfaces over them. Idempotent.

        When they go, the driver waits for the work of the context. Texels that a texture or a graph
        has stay for it; those of a mipmap level for all of its array.
        """
        super().close()
