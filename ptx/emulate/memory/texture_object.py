"""Images in device memory, and the textures that read them: the objects of kernels' handles.

CUDA programming guide, "Texture and Surface Memory", "Texture Fetching".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.device_memory import DeviceMemory


class AddressMode(IntEnum):
    """Handling of coordinates outside of an image; numbered as the driver does.

    WRAP and MIRROR need normalised coordinates; with others they are CLAMP.
    """

    WRAP = 0
    CLAMP = 1
    MIRROR = 2
    BORDER = 3


@dataclass(frozen=True, slots=True)
class TexelImage:
    """Texels in device memory, row by row from `address`: [layer or slice][row][column][channel].

    Attributes:
        dtype: of a channel: u1, u2, u4, i1, i2, i4, f2 or f4.
        channels: 1, 2 or 4.
        width, height, depth: in texels; a height of 0 is one-dimensional, a depth of 0 has no
            slices.
        layers: 0 where it is not layered; 6 for a cubemap, 6 n for a layered one.
        row_bytes: from one row to the next; 0 where rows are packed.
        values: read in place of the memory, channel by channel.
    """

    memory: DeviceMemory
    address: int
    dtype: np.dtype[Any]  # any of eight scalar types
    channels: int
    width: int
    height: int = 0
    depth: int = 0
    layers: int = 0
    cube: bool = False
    row_bytes: int = 0
    values: NDArray[Any] | None = None

    @property
    def texel_bytes(self) -> int:
        """Size of a texel."""
        return self.channels * self.dtype.itemsize

    @property
    def pitch(self) -> int:
        """Bytes from one row to the next."""
        return self.row_bytes or self.width * self.texel_bytes

    @property
    def slices(self) -> int:
        """Number of layers or slices, at least 1."""
        return self.layers or self.depth or 1

    @property
    def geometry(self) -> str:
        """The name in instructions: "1d", "a2d", "3d"; faces of cubemaps count as layers."""
        if self.depth:
            return "3d"
        plain = "2d" if self.height else "1d"
        return f"a{plain}" if self.layers else plain

    @property
    def nbytes(self) -> int:
        """Bytes from the first texel to the end of the last."""
        rows = (self.height or 1) * self.slices
        return self.pitch * (rows - 1) + self.width * self.texel_bytes


@dataclass(frozen=True, slots=True)
class TextureObject:
    """An image, or its mipmap levels from the finest on, and how it is read.

    Attributes:
        levels: one unless it is mipmapped.
        linear: the filter mode; else the nearest texel.
        as_integer: integers are read as they are; else 8- and 16-bit ones as numbers from 0 or -1
            to 1.
        srgb: the first three channels of 8 bits are converted from sRGB.
        mip_linear: two levels are combined; else the nearest.
        max_anisotropy: 0 or 1 for none.
        is_linear_memory: read by a texel's number; beyond the end it gives zeros.
        seamless_cube: filtering continues across the edges of a cubemap.
    """

    levels: tuple[TexelImage, ...]
    address_modes: tuple[AddressMode, AddressMode, AddressMode]
    linear: bool
    normalized_coordinates: bool
    as_integer: bool
    srgb: bool = False
    border: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    mip_linear: bool = False
    mip_bias: float = 0.0
    min_level: float = 0.0
    max_level: float = 0.0
    max_anisotropy: int = 0
    is_linear_memory: bool = False
    seamless_cube: bool = False
