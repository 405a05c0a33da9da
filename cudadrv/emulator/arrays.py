"""CUDA arrays of the emulator: texels in device memory, row by row.

CUDA Driver API, "Memory Management": cuArray3DCreate, cuMipmappedArrayCreate. The codes were
measured with driver 580 on an H100.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntFlag
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from ptx import emulate  # whose names are imported at their first use

from ..driver._api import CUDA_ARRAY3D_DESCRIPTOR, CUarray_format, CUdevice_attribute, CUresult
from .call_error import CallError, invalid_value

if TYPE_CHECKING:
    from .contexts import Context
    from .device_state import DeviceState, Piece

# A channel of any of eight scalar types.
FORMATS: Final[Mapping[CUarray_format, np.dtype[Any]]] = MappingProxyType(
    {
        CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8: np.dtype("u1"),
        CUarray_format.CU_AD_FORMAT_UNSIGNED_INT16: np.dtype("u2"),
        CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32: np.dtype("u4"),
        CUarray_format.CU_AD_FORMAT_SIGNED_INT8: np.dtype("i1"),
        CUarray_format.CU_AD_FORMAT_SIGNED_INT16: np.dtype("i2"),
        CUarray_format.CU_AD_FORMAT_SIGNED_INT32: np.dtype("i4"),
        CUarray_format.CU_AD_FORMAT_HALF: np.dtype("f2"),
        CUarray_format.CU_AD_FORMAT_FLOAT: np.dtype("f4"),
    }
)


class ArrayFlags(IntFlag):
    """CUDA_ARRAY3D_*, as far as the emulator supports them."""

    LAYERED = 1
    SURFACE_LDST = 2
    CUBEMAP = 4
    TEXTURE_GATHER = 8


_ELSEWHERE: Final = 0x1C0  # sparse, mapped later, for video: unsupported arrays
_KNOWN: Final = sum(int(flag) for flag in ArrayFlags)


class ArrayLayout(NamedTuple):
    """The layout of an array: a checked descriptor, with the descriptor's extents."""

    width: int
    height: int
    depth: int
    format: CUarray_format
    channels: int
    flags: ArrayFlags

    @property
    def texel_bytes(self) -> int:
        """Size of a texel."""
        return FORMATS[self.format].itemsize * self.channels

    @property
    def is_layered(self) -> bool:
        """Whether the depth counts layers or faces."""
        return bool(self.flags & (ArrayFlags.LAYERED | ArrayFlags.CUBEMAP))

    @property
    def rows(self) -> int:
        """Rows of a layer or slice."""
        return max(self.height, 1)

    @property
    def slices(self) -> int:
        """Layers, faces or slices, at least one."""
        return max(self.depth, 1)

    @property
    def nbytes(self) -> int:
        """Size, packed."""
        return self.texel_bytes * self.width * self.rows * self.slices

    def halved(self) -> ArrayLayout:
        """Return the next mipmap level; the number of layers and faces stays."""
        depth = self.depth if self.is_layered else self.depth and max(self.depth // 2, 1)
        height = self.height and max(self.height // 2, 1)
        return ArrayLayout(
            max(self.width // 2, 1), height, depth, self.format, self.channels, self.flags
        )

    def image(self, device: DeviceState, address: int) -> emulate.TexelImage:
        """Return the texels at an address."""
        return emulate.TexelImage(
            device.memory,
            address,
            FORMATS[self.format],
            self.channels,
            self.width,
            self.height,
            0 if self.is_layered else self.depth,
            self.depth if self.is_layered else 0,
            cube=ArrayFlags.CUBEMAP in self.flags,
        )

    def descriptor(self) -> CUDA_ARRAY3D_DESCRIPTOR:
        """Return the descriptor for cuArray3DGetDescriptor."""
        result = CUDA_ARRAY3D_DESCRIPTOR()
        result.Width, result.Height, result.Depth = self.width, self.height, self.depth
        result.Format, result.NumChannels, result.Flags = self.format, self.channels, self.flags
        return result


@dataclass(eq=False, repr=False, slots=True)
class Array:
    """A CUDA array; a level of a mipmapped one has no `piece` of its own."""

    handle: int
    context: Context
    layout: ArrayLayout
    address: int
    piece: Piece | None
    destroyed: bool = False

    @property
    def image(self) -> emulate.TexelImage:
        """Return its texels."""
        return self.layout.image(self.context.device, self.address)


@dataclass(eq=False, repr=False, slots=True)
class MipmappedArray:
    """A mipmapped array: its levels lie one after the other in one piece."""

    handle: int
    context: Context
    levels: tuple[Array, ...]
    piece: Piece


def read_layout(descriptor: CUDA_ARRAY3D_DESCRIPTOR | None, device: DeviceState) -> ArrayLayout:
    """Read the layout of a descriptor.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE, if there is no such array on the device; NOT_SUPPORTED
            for an unsupported format or flag.
    """
    if descriptor is None:
        raise invalid_value("the array's descriptor is null")
    flags = int(descriptor.Flags)
    if flags & _ELSEWHERE:
        raise CallError(
            CUresult.CUDA_ERROR_NOT_SUPPORTED, f"the emulator has no arrays of flags {flags:#x}"
        )
    if flags & ~_KNOWN:
        raise invalid_value(f"invalid array flags {flags:#x}")
    channels = int(descriptor.NumChannels)
    if channels not in (1, 2, 4):
        raise invalid_value(f"an array has 1, 2 or 4 channels, not {channels}")
    layout = ArrayLayout(
        int(descriptor.Width),
        int(descriptor.Height),
        int(descriptor.Depth),
        read_format(lambda: descriptor.Format),
        channels,
        ArrayFlags(flags),
    )
    _check_shape(layout)
    _check_limits(layout, device)
    return layout


# A getter, because the binding raises for a number that is not one of its enumerators.
def read_format(get: Callable[[], CUarray_format]) -> CUarray_format:
    """Read the format of a channel.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE for no format, NOT_SUPPORTED for unsupported ones:
            several planes, compressed blocks or normalised integers.
    """
    try:
        channel_format = get()
    except ValueError as error:
        raise invalid_value(f"the format of the channels: {error}") from None
    if channel_format not in FORMATS:
        raise CallError(
            CUresult.CUDA_ERROR_NOT_SUPPORTED,
            f"the emulator has no arrays of format {channel_format!r}",
        )
    return channel_format


def _check_shape(layout: ArrayLayout) -> None:
    width, height, depth, flags = layout.width, layout.height, layout.depth, layout.flags
    description = f"an array of {width}, {height}, {depth} with flags {int(flags):#x}"
    if not width:
        raise invalid_value(f"{description}: the width is at least 1")
    if ArrayFlags.CUBEMAP in flags:
        faces = depth % 6 == 0 if ArrayFlags.LAYERED in flags else depth == 6
        if width != height or not depth or not faces:
            raise invalid_value(
                f"{description}: a cubemap is of 6 square faces, a layered one of 6 n"
            )
    elif ArrayFlags.LAYERED in flags:
        if not depth:
            raise invalid_value(f"{description}: a layered array has at least 1 layer")
    elif depth and not height:
        raise invalid_value(f"{description}: an array of some depth has a height")
    if ArrayFlags.TEXTURE_GATHER in flags and (not height or depth):
        raise invalid_value(f"{description}: gathering takes a two-dimensional array")


def _limits(layout: ArrayLayout) -> Iterator[tuple[str, ...]]:
    """Yield the attributes that bound the extents; any one of several for three dimensions."""
    flags = layout.flags
    if ArrayFlags.CUBEMAP in flags:
        kind = "CUBEMAP_LAYERED" if ArrayFlags.LAYERED in flags else "CUBEMAP"
        axes: tuple[str, ...] = ("WIDTH", "WIDTH", "LAYERS")[: 2 + (kind != "CUBEMAP")]
    elif ArrayFlags.LAYERED in flags:
        kind = "2D_LAYERED" if layout.height else "1D_LAYERED"
        axes = ("WIDTH", "HEIGHT" if layout.height else "", "LAYERS")
    else:
        kind = "3D" if layout.depth else "2D" if layout.height else "1D"
        axes = ("WIDTH", "HEIGHT", "DEPTH")[: int(kind[0])]
    yield tuple(axis and f"TEXTURE{kind}_{axis}" for axis in axes)
    if kind == "3D":
        yield tuple(f"TEXTURE3D_{axis}_ALTERNATE" for axis in axes)
    if ArrayFlags.SURFACE_LDST in flags:
        yield tuple(axis and f"SURFACE{kind}_{axis}" for axis in axes)
    if ArrayFlags.TEXTURE_GATHER in flags:
        yield "TEXTURE2D_GATHER_WIDTH", "TEXTURE2D_GATHER_HEIGHT"


def _check_limits(layout: ArrayLayout, device: DeviceState) -> None:
    extents = layout.width, layout.height, layout.depth

    def fits(names: tuple[str, ...]) -> bool:
        return all(
            extent <= device.attributes[_attribute(name)]
            for extent, name in zip(extents, names, strict=False)
            if name
        )

    usual, *further = _limits(layout)
    good = fits(usual)
    if further and further[0][0].endswith("ALTERNATE"):
        alternate = further.pop(0)
        good = good or fits(alternate)
    if not good or not all(map(fits, further)):
        raise invalid_value(
            f"an array of {extents} is larger than the device takes: see "
            + ", ".join(f"MAXIMUM_{name}" for names in (usual, *further) for name in names if name)
        )


def _attribute(name: str) -> int:
    return int(getattr(CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_MAXIMUM_{name}"))
