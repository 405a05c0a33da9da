"""The layout of a CUDA array: its texels, of 1, 2 or 4 numbers, and its extents.

CUDA Driver API, cuArray3DCreate: the table of valid extents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .. import border
from ..driver._api import CUDA_ARRAY3D_DESCRIPTOR, CUarray_format, CUresult
from ..driver.attributes import DeviceAttribute
from ..driver.context import BaseContext
from ..driver.device import Device
from ..driver.driver_selection import failure
from ..errors import CudadrvError, DTypeError, TextureError
from ..memory.driver_pool import out_of_memory
from ..memory.dtypes import as_dtype

if TYPE_CHECKING:
    import numpy.typing as npt


_FORMATS: Final = {
    "u1": CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8,
    "u2": CUarray_format.CU_AD_FORMAT_UNSIGNED_INT16,
    "u4": CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32,
    "i1": CUarray_format.CU_AD_FORMAT_SIGNED_INT8,
    "i2": CUarray_format.CU_AD_FORMAT_SIGNED_INT16,
    "i4": CUarray_format.CU_AD_FORMAT_SIGNED_INT32,
    "f2": CUarray_format.CU_AD_FORMAT_HALF,
    "f4": CUarray_format.CU_AD_FORMAT_FLOAT,
}


@dataclass(frozen=True, slots=True)
class Texel:
    """The type of a texel.

    Attributes:
        dtype: of a channel. Any, because the scalar type is the type argument of an array.
        channels: 1, 2 or 4.
    """

    dtype: np.dtype[Any]
    channels: int

    @classmethod
    def of(cls, dtype: npt.DTypeLike, channels: int) -> Texel:
        """Return the texel of these channels.

        Raises:
            DTypeError: CUDA has no channels of the dtype.
            TextureError: `channels` is not 1, 2 or 4.
        """
        kind = as_dtype(dtype)
        channels = border.integer("a texel's channels", channels)
        if not kind.isnative or f"{kind.kind}{kind.itemsize}" not in _FORMATS:
            raise DTypeError(
                f"texels of {kind}: CUDA has integers of 8, 16 and 32 bits, float16 and float32"
            )
        if channels not in (1, 2, 4):
            three = "; give colours of 3 a fourth channel" if channels == 3 else ""
            raise TextureError(f"texels of {channels} channels: CUDA has 1, 2 and 4{three}")
        return cls(kind, channels)

    @property
    def format(self) -> CUarray_format:
        """The driver's name of the dtype."""
        return _FORMATS[f"{self.dtype.kind}{self.dtype.itemsize}"]

    @property
    def nbytes(self) -> int:
        """Size of a texel."""
        return self.dtype.itemsize * self.channels

    @property
    def is_float(self) -> bool:
        """True if its channels are floats."""
        return self.dtype.kind == "f"

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes after the extents: the channels, if there are several."""
        return (self.channels,) if self.channels > 1 else ()

    def __str__(self) -> str:
        return str(self.dtype) if self.channels == 1 else f"{self.channels} × {self.dtype}"


# CUDA_ARRAY3D_*
_LAYERED: Final = 0x01
_SURFACE: Final = 0x02
_CUBEMAP: Final = 0x04
_GATHER: Final = 0x08
_MOST: Final = 2**31 - 1  # a device's limits are C ints


@dataclass(frozen=True, slots=True)
class ArrayExtents:
    """The shape of a CUDA array, and the uses that it allows.

    Attributes:
        shape: ``([[depth,] height,] width)``, or layers or faces before the extents of each.
        layered: True if the first extent counts layers.
        cubemap: True if the first extent counts faces.
        surface: True if kernels may write it.
        gather: True if kernels may gather from it.
    """

    shape: tuple[int, ...]
    layered: bool
    cubemap: bool
    surface: bool
    gather: bool

    def check(self) -> None:
        """Raise `TextureError` where no device has such an array."""
        description, ndim = f"a CUDA array of shape {self.shape}", len(self.shape)
        if not 1 <= ndim <= 3 or 0 in self.shape:
            raise TextureError(f"{description}: use 1 to 3 extents of at least 1")
        if max(self.shape) > _MOST:
            raise TextureError(f"{description}: no device has extents above {_MOST}")
        if self.cubemap:
            multiple = self.layered and self.shape[0] % 6 == 0
            if ndim != 3 or self.shape[1] != self.shape[2] or not (multiple or self.shape[0] == 6):
                raise TextureError(
                    f"{description}: a cubemap is (6, n, n), a layered one "
                    "(6 times the layers, n, n)"
                )
        elif self.layered and ndim == 1:
            raise TextureError(f"{description}: a layered array is (layers, [height,] width)")
        if self.gather and (ndim != 2 or self.layered):
            raise TextureError(
                f"{description}: gathering needs a two-dimensional array without layers"
            )

    @property
    def flags(self) -> int:
        """The driver's flags."""
        shape_flags = (self.layered, _LAYERED), (self.surface, _SURFACE)
        other = (self.cubemap, _CUBEMAP), (self.gather, _GATHER)
        return sum(flag for is_set, flag in (*shape_flags, *other) if is_set)

    @property
    def has_layers(self) -> bool:
        """True if the first extent counts layers or faces."""
        return self.layered or self.cubemap

    @property
    def native(self) -> tuple[int, int, int]:
        """Width, height and depth for the driver; 0 for those that are missing."""
        return self.along(self.shape, 0)

    def along(self, values: Sequence[int], missing: int) -> tuple[int, int, int]:
        """Return values of the axes of `shape` as x, y and z; `missing` for absent axes."""
        first, *inner = values
        if not inner:
            return first, missing, missing
        if len(inner) == 1:
            return (inner[0], missing, first) if self.has_layers else (inner[0], first, missing)
        return inner[1], inner[0], first

    def halved(self) -> ArrayExtents:
        """Return the extents of the next mipmap level, with as many layers and faces."""
        first = 1 if self.has_layers else 0
        halves = (max(extent // 2, 1) for extent in self.shape[first:])
        return replace(self, shape=(*self.shape[:first], *halves))

    @property
    def most_levels(self) -> int:
        """The greatest number of mipmap levels."""
        return max(self.shape[1 if self.has_layers else 0 :]).bit_length()

    @property
    def size(self) -> int:
        """The number of texels."""
        return math.prod(self.shape)

    def why_too_large(self, device: Device, *, mipmapped: bool) -> str:
        """Return the limits of a device that are exceeded, in words; "" if none is."""
        exceeded = [
            f"{attribute.name} is {limit}"
            for extent, attribute in self._bounded(mipmapped)
            if extent > (limit := device.attribute(attribute))
        ]
        return ", ".join(exceeded)

    def _bounded(self, mipmapped: bool) -> Iterator[tuple[int, DeviceAttribute]]:
        """Yield the extents with the device attributes that bound them."""
        width, height, depth = self.native
        dimensions = len(self.shape) - self.layered if not self.cubemap else 2
        kind = "CUBEMAP" if self.cubemap else f"{dimensions}D"
        axes = [("WIDTH", width)]
        if not self.cubemap and dimensions > 1:
            axes.append(("HEIGHT", height))
        if dimensions == 3:
            axes.append(("DEPTH", depth))
        if self.layered:
            kind += "_LAYERED"
            axes.append(("LAYERS", depth))
        kinds = [f"TEXTURE{kind}"]
        if self.surface:
            kinds.append(f"SURFACE{kind}")
        if self.gather:
            kinds.append("TEXTURE2D_GATHER")
        if mipmapped and kind in ("1D", "2D"):
            kinds.append(f"TEXTURE{kind}_MIPMAPPED")
        for name in kinds:
            for axis, extent in axes:
                yield extent, DeviceAttribute[f"MAXIMUM_{name}_{axis}"]


def descriptor_of(extents: ArrayExtents, texel: Texel) -> CUDA_ARRAY3D_DESCRIPTOR:
    """Return the driver's descriptor of an array."""
    descriptor = CUDA_ARRAY3D_DESCRIPTOR()
    descriptor.Width, descriptor.Height, descriptor.Depth = extents.native
    descriptor.Format, descriptor.NumChannels = texel.format, texel.channels
    descriptor.Flags = extents.flags
    return descriptor


def layout_of(descriptor: CUDA_ARRAY3D_DESCRIPTOR, *, surface: bool) -> tuple[ArrayExtents, Texel]:
    """Return the extents and the texel of an array that the driver describes.

    Args:
        descriptor: the driver's descriptor.
        surface: whether kernels may write the array.

    Raises:
        TextureError: there are no such texels in `CudaArray`.
    """
    try:
        described = descriptor.Format
    except ValueError:  # of a newer driver
        described = None
    names = [name for name, known in _FORMATS.items() if known == described]
    if not names:
        raise TextureError(f"texels of the format {described}: use 8 to 32 bits, or floats")
    flags = int(descriptor.Flags)
    native = int(descriptor.Depth), int(descriptor.Height), int(descriptor.Width)
    layered, cubemap, gather = (bool(flags & flag) for flag in (_LAYERED, _CUBEMAP, _GATHER))
    shape = tuple(extent for extent in native if extent)
    texel = Texel.of(names[0], int(descriptor.NumChannels))
    return ArrayExtents(shape, layered, cubemap, surface, gather), texel


def creation_error(
    context: BaseContext, extents: ArrayExtents, texel: Texel, code: CUresult, call: str
) -> CudadrvError:
    """Return the error for an array that the driver did not make."""
    if code == CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        return out_of_memory(context, extents.size * texel.nbytes, call)
    doing = f"creating a CUDA array of shape {extents.shape} of {texel} on {context!r}"
    mipmapped = call == "cuMipmappedArrayCreate"
    exceeded = extents.why_too_large(context.device, mipmapped=mipmapped)
    if code == CUresult.CUDA_ERROR_INVALID_VALUE and exceeded:
        return TextureError(f"{doing}: it is too large for the device, whose {exceeded}")
    return failure(context._api, code, call, doing)
