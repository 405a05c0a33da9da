"""How a texture is read, and which ways CUDA does not have or would take for others.

CUDA Programming Guide, "Texture Fetching"; what the driver lets pass was measured with driver 580.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ..errors import TextureError
from ..memory.array import DeviceArray
from .mipmap import MipmappedArray
from .modes import AddressMode, FilterMode, ReadMode
from .texel import Texel
from .view import Resource

# CU_TRSF_*
_AS_INTEGER: Final = 0x01
_NORMALIZED: Final = 0x02
_SRGB: Final = 0x10
_SEAMLESS: Final = 0x40
_MOST_ANISOTROPY: Final = 16
_REPEATING: Final = (AddressMode.WRAP, AddressMode.MIRROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The arguments of a `Texture`, under the same names."""

    address_modes: tuple[AddressMode, ...]
    filter_mode: FilterMode
    read_mode: ReadMode
    normalized_coordinates: bool
    srgb: bool
    border_color: tuple[float, ...] | None
    mip_filter_mode: FilterMode
    mip_bias: float
    mip_levels: tuple[float, float] | None
    max_anisotropy: int
    seamless_cubemap: bool

    def check(self, resource: Resource, texel: Texel) -> None:
        """Raise `TextureError` for what this resource cannot be read as."""
        for problem in (
            *self._values(texel),
            *self._places(resource, dimensions_of(resource, texel)),
            *self._border(texel),
            *self._levels(resource),
        ):
            raise TextureError(f"a texture over {resource!r}: {problem}")

    def _values(self, texel: Texel) -> Iterator[str]:
        small = texel.dtype.itemsize <= 2
        if self.read_mode is ReadMode.NORMALIZED and texel.is_float:
            yield f"{texel.dtype} is read as it is: leave out ReadMode.NORMALIZED"
        elif self.read_mode is ReadMode.NORMALIZED and not small:
            yield f"{texel.dtype} has no normalised form, which is of 8 and 16 bits"
        as_integer = not texel.is_float and self.read_mode is ReadMode.ELEMENT
        if as_integer and FilterMode.LINEAR in (self.filter_mode, self.mip_filter_mode):
            remedy = "use ReadMode.NORMALIZED" if small else "use float32, or FilterMode.POINT"
            yield f"integers are not filtered: {remedy}"
        if self.srgb and (texel.dtype.str[1:] != "u1" or as_integer):
            yield "colours in sRGB are uint8, read with ReadMode.NORMALIZED"

    def _places(self, resource: Resource, dimensions: int) -> Iterator[str]:
        if len(self.address_modes) not in (1, dimensions):
            yield f"it has {dimensions} dimensions to address, not {len(self.address_modes)}"
        repeats = any(mode in _REPEATING for mode in self.address_modes)
        if repeats and not self.normalized_coordinates:
            yield "wrapping and mirroring need normalized_coordinates=True: CUDA would clamp"
        if isinstance(resource, DeviceArray) and dimensions == 1:
            plain = self.filter_mode is FilterMode.POINT and not self.normalized_coordinates
            if not plain or set(self.address_modes) != {AddressMode.CLAMP}:
                yield (
                    "plain memory in a row is read by tex1Dfetch, which takes whole numbers, does "
                    "not filter and reads 0 outside; copy it to a CudaArray for more"
                )
        cubemap = not isinstance(resource, DeviceArray) and resource.extents.cubemap
        if self.seamless_cubemap and not cubemap:
            yield "only a cubemap is seamless"
        if not 0 <= self.max_anisotropy <= _MOST_ANISOTROPY:
            yield f"max_anisotropy is 0 to {_MOST_ANISOTROPY}, not {self.max_anisotropy}"

    def _border(self, texel: Texel) -> Iterator[str]:
        color = self.border_color
        if color is None:
            return
        if AddressMode.BORDER not in self.address_modes:
            yield "a border_color is read with AddressMode.BORDER alone"
        if not 1 <= len(color) <= 4:
            yield f"a border_color has 1 to 4 numbers, not {len(color)}"
        if any(color) and not texel.is_float and self.read_mode is ReadMode.ELEMENT:
            yield "CUDA has border colours of floats, and 0 where integers are read as they are"

    def _levels(self, resource: Resource) -> Iterator[str]:
        linear = self.mip_filter_mode is FilterMode.LINEAR
        if not isinstance(resource, MipmappedArray):
            if linear or self.mip_bias or self.mip_levels is not None:
                yield "only a MipmappedArray has levels"
            return
        if not self.normalized_coordinates:
            yield "levels differ in size: use normalized_coordinates=True"
        least, greatest = self.level_range(resource)
        if not 0 <= least <= greatest <= resource.levels - 1 or not math.isfinite(self.mip_bias):
            yield f"levels {least:g} to {greatest:g} of {resource.levels}, counted from 0"

    def modes_of(
        self, resource: Resource, texel: Texel
    ) -> tuple[AddressMode, AddressMode, AddressMode]:
        """The address modes along x, y and z.

        Those of dimensions that the texture does not have clamp: an H100 mixes the border of y
        into one dimension that is filtered.
        """
        dimensions = dimensions_of(resource, texel)
        given = self.address_modes
        if len(given) == 1:
            given *= dimensions
        x, y, z = (*given[:dimensions], *(AddressMode.CLAMP,) * (3 - dimensions))
        return x, y, z

    def level_range(self, resource: Resource) -> tuple[float, float]:
        """The least and the greatest level that is read."""
        if self.mip_levels is not None:
            return self.mip_levels
        return 0.0, resource.levels - 1.0 if isinstance(resource, MipmappedArray) else 0.0

    def flags(self, is_float: bool) -> int:
        """The driver's flags."""
        as_integer = self.read_mode is ReadMode.ELEMENT and not is_float
        return (
            _AS_INTEGER * as_integer
            | _NORMALIZED * self.normalized_coordinates
            | _SRGB * self.srgb
            | _SEAMLESS * self.seamless_cubemap
        )


def dimensions_of(resource: Resource, texel: Texel) -> int:
    """Along how many a texel has a place; layers and faces are none."""
    if isinstance(resource, DeviceArray):
        return resource.ndim - len(texel.axes)
    return len(resource.shape) - resource.extents.has_layers
