"""What a texture reads, by the formulas of the CUDA Programming Guide, "Texture Fetching".

Everything in float64, a fetch at a time: independent of how the emulator does it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cudadrv.texture import AddressMode

Values = npt.NDArray[np.float64]


def _inside(index: int, extent: int, mode: AddressMode) -> int | None:
    """The texel that an index names, None for the border."""
    if 0 <= index < extent:
        return index
    if mode is AddressMode.CLAMP:
        return min(max(index, 0), extent - 1)
    if mode is AddressMode.WRAP:
        return index % extent
    if mode is AddressMode.MIRROR:
        index %= 2 * extent
        return index if index < extent else 2 * extent - 1 - index
    return None


def sample(
    texels: npt.NDArray[np.generic],
    at: Sequence[float],
    *,
    modes: Sequence[AddressMode],
    linear: bool,
    border: float = 0.0,
) -> tuple[float, float]:
    """The value at a place in texels, x first, and how far another rounding of weights may be off.

    Weights have 8 fractional bits: a dimension moves the value by at most 1/256 of the difference
    of the texels that are mixed.
    """
    axes: list[list[tuple[int | None, float]]] = []
    for place, mode, extent in zip(at, modes, reversed(texels.shape), strict=False):
        if linear:
            low = math.floor(place - 0.5)
            weight = place - 0.5 - low
            pairs = [(low, 1 - weight), (low + 1, weight)]
        else:
            pairs = [(math.floor(place), 1.0)]
        axes.append([(_inside(index, extent, mode), share) for index, share in pairs])
    total, found = 0.0, []
    for corner in itertools.product(*axes):
        place_of = [index for index, _ in corner]
        inside = [index for index in place_of if index is not None]
        whole = len(inside) == len(place_of)
        value = float(texels[tuple(reversed(inside))].item()) if whole else border
        found.append(value)
        total += value * math.prod(share for _, share in corner)
    return total, (max(found) - min(found)) * len(axes) / 256


def sample_all(
    texels: npt.NDArray[np.generic],
    places: Sequence[Sequence[float]],
    *,
    mode: AddressMode | Sequence[AddressMode] = AddressMode.CLAMP,
    linear: bool = False,
    border: float = 0.0,
) -> tuple[Values, Values]:
    """The values at places, and how far off each may be."""
    modes = [mode] * 3 if isinstance(mode, AddressMode) else mode
    results = [sample(texels, at, modes=modes, linear=linear, border=border) for at in places]
    return np.array([value for value, _ in results]), np.array([bound for _, bound in results])


def cube_place(x: float, y: float, z: float) -> tuple[int, float, float]:
    """The face that a direction meets, and where, from 0 to 1 along either axis of the face.

    CUDA Programming Guide, "Cubemap Textures": the table of faces.
    """
    face, m, s, t = max(
        (
            (0, x, -z, -y),
            (1, -x, z, -y),
            (2, y, x, z),
            (3, -y, x, -z),
            (4, z, x, -y),
            (5, -z, -x, -y),
        ),
        key=lambda row: row[1],
    )
    return face, (s / m + 1) / 2, (t / m + 1) / 2


def from_srgb(value: float) -> float:
    """The linear colour of an sRGB one, both from 0 to 1 (IEC 61966-2-1)."""
    return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
