"""The shape of a CUDA array: as NumPy writes it, and as the driver does.

CUDA Driver API, cuArray3DCreate: the table of valid extents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ..driver.attributes import DeviceAttribute
from ..errors import TextureError

if TYPE_CHECKING:
    from ..driver.device import Device

# CUDA_ARRAY3D_*
_LAYERED: Final = 0x01
_SURFACE: Final = 0x02
_CUBEMAP: Final = 0x04
_GATHER: Final = 0x08
_MOST: Final = 2**31 - 1  # a device says its own limits in a C int


@dataclass(frozen=True, slots=True)
class Extents:
    """What an array has of texels, and what may be done with it.

    Attributes:
        shape: ``([[depth,] height,] width)``, or layers or faces before the extents of each.
        layered: whether the first extent counts layers.
        cubemap: whether the first extent counts faces.
        surface: whether kernels may write it.
        gather: whether kernels may gather from it.
    """

    shape: tuple[int, ...]
    layered: bool
    cubemap: bool
    surface: bool
    gather: bool

    def check(self) -> None:
        """Raise `TextureError` where no device has such an array."""
        what, ndim = f"a CUDA array of shape {self.shape}", len(self.shape)
        if not 1 <= ndim <= 3 or 0 in self.shape:
            raise TextureError(f"{what}: it has 1 to 3 extents of at least 1")
        if max(self.shape) > _MOST:
            raise TextureError(f"{what}: no device has extents above {_MOST}")
        if self.cubemap:
            multiple = self.layered and self.shape[0] % 6 == 0
            if ndim != 3 or self.shape[1] != self.shape[2] or not (multiple or self.shape[0] == 6):
                raise TextureError(
                    f"{what}: a cubemap is (6, n, n), a layered one (6 times the layers, n, n)"
                )
        elif self.layered and ndim == 1:
            raise TextureError(f"{what}: a layered array is (layers, [height,] width)")
        if self.gather and (ndim != 2 or self.layered):
            raise TextureError(f"{what}: gathering needs a two-dimensional array without layers")

    @property
    def flags(self) -> int:
        """The driver's flags."""
        given = (self.layered, _LAYERED), (self.surface, _SURFACE)
        other = (self.cubemap, _CUBEMAP), (self.gather, _GATHER)
        return sum(flag for asked, flag in (*given, *other) if asked)

    @property
    def has_layers(self) -> bool:
        """Whether the first extent is no dimension of a texel's place."""
        return self.layered or self.cubemap

    @property
    def native(self) -> tuple[int, int, int]:
        """Width, height and depth as the driver has them: 0 where there is none."""
        return self.along(self.shape, 0)

    def along(self, values: Sequence[int], missing: int) -> tuple[int, int, int]:
        """Values of the axes of `shape` along x, y and z; `missing` for what has no axis."""
        first, *rest = values
        if not rest:
            return first, missing, missing
        if len(rest) == 1:
            return (rest[0], missing, first) if self.has_layers else (rest[0], first, missing)
        return rest[1], rest[0], first

    def halved(self) -> Extents:
        """Those of the next mipmap level; layers and faces stay as many."""
        kept = 1 if self.has_layers else 0
        halves = (max(extent // 2, 1) for extent in self.shape[kept:])
        return replace(self, shape=(*self.shape[:kept], *halves))

    @property
    def most_levels(self) -> int:
        """How many mipmap levels there can be."""
        return max(self.shape[1 if self.has_layers else 0 :]).bit_length()

    @property
    def size(self) -> int:
        """The number of texels."""
        return math.prod(self.shape)

    def why_too_large(self, device: Device, *, mipmapped: bool) -> str:
        """Which limits of a device are exceeded, in words; "" if none is."""
        exceeded = [
            f"{attribute.name} is {limit}"
            for extent, attribute in self._bounded(mipmapped)
            if extent > (limit := device.attribute(attribute))
        ]
        return ", ".join(exceeded)

    def _bounded(self, mipmapped: bool) -> Iterator[tuple[int, DeviceAttribute]]:
        """The extents with the attributes that bound them."""
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
