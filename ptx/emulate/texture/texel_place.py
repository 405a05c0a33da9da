"""Where a texture coordinate lies in an image: texel numbers, fractions, and what is outside.

CUDA programming guide, "Texture Fetching". How a GPU rounds is measured on an H100: a normalised
coordinate is cut to 21 binary places (22 beyond 8192 texels, 23 beyond 65536) before it is
multiplied by the extent, and the fraction that linear filtering uses is rounded to 8, halves up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.texture import AddressMode

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]

FRACTION = 256  # steps from one texel to the next
_FARTHEST = 2.0**40
_PLACES = ((8192, 2.0**21), (65536, 2.0**22), (2**62, 2.0**23))  # by the largest extent
_SMALLEST = 2.0**-126


@dataclass(frozen=True, slots=True)
class Axis:
    """How one coordinate is read: the image's extent along it and what lies outside."""

    extent: int
    mode: AddressMode
    normalized: bool

    @property
    def effective(self) -> AddressMode:
        """The mode that is used: WRAP and MIRROR are CLAMP for coordinates in texels."""
        if not self.normalized and self.mode in (AddressMode.WRAP, AddressMode.MIRROR):
            return AddressMode.CLAMP
        return self.mode

    def units(self, coordinate: Floats) -> Doubles:
        """(n,) float64: the coordinate in texels, exact; NaN and subnormals count as 0."""
        wide = coordinate.astype(np.float64)
        wide = np.where(np.abs(wide) >= _SMALLEST, wide, 0.0)
        wide = np.clip(wide, -_FARTHEST, _FARTHEST)
        if not self.normalized:
            return wide
        places = next(steps for most, steps in _PLACES if self.extent <= most)
        scaled: Doubles = np.floor(wide * places) / places * self.extent
        return scaled

    def inside(self, number: Integers) -> tuple[Integers, Bools | None]:
        """Texel numbers within the extent, and which are in the image; None: all are."""
        mode, extent = self.effective, self.extent
        if mode is AddressMode.WRAP:
            return number % extent, None
        if mode is AddressMode.MIRROR:
            place = number % (2 * extent)
            return np.where(place >= extent, 2 * extent - 1 - place, place), None
        clamped = np.clip(number, 0, extent - 1)
        return clamped, clamped == number if mode is AddressMode.BORDER else None


def nearest(axis: Axis, coordinate: Floats, offset: Integers | int = 0) -> Integers:
    """The texel that holds a coordinate, not yet brought inside."""
    number: Integers = np.floor(axis.units(coordinate)).astype(np.int64) + offset
    return number


def pair(axis: Axis, coordinate: Floats, offset: Integers | int = 0) -> tuple[Integers, Integers]:
    """The first of the two texels around a coordinate, and the second's weight of `FRACTION`.

    Where clamping makes both the same texel the weight is 0.
    """
    place = np.floor((axis.units(coordinate) - 0.5) * FRACTION + 0.5).astype(np.int64)
    number, weight = (place >> 8) + offset, place & (FRACTION - 1)
    if axis.effective is AddressMode.CLAMP:
        weight = np.where((number < 0) | (number >= axis.extent - 1), 0, weight)
    return number, weight
