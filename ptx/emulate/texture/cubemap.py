"""Directions into cubemaps: the face that one points at, and the place on it.

CUDA programming guide, "Cubemap Textures". Where two coordinates are equally large, z goes before
y, and y before x, as on an H100. Directions that are infinite, NaN or longer than 2**126 have no
meaning; a GPU finds other texels for them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptx.emulate.texture.texel_place import Bools, Floats, Integers

FACES = 6
_STEPS = 2.0**21  # of a normalised coordinate, see `texel_place`


def _choose(face: Integers, *values: Any) -> Any:  # arrays of any one type
    return np.choose(face, values)


def project(x: Any, y: Any, z: Any) -> tuple[Integers, Any, Any, Any]:  # float arrays of one type
    """Face, coordinates towards right and down on it, and the distance to it."""
    far_x, far_y, far_z = np.abs(x), np.abs(y), np.abs(z)
    along_z = (far_z >= far_x) & (far_z >= far_y)
    along_y = ~along_z & (far_y >= far_x)
    major = np.where(along_z, 2, np.where(along_y, 1, 0))
    negative = _choose(major, x, y, z) < 0
    face: Integers = (2 * major + negative).astype(np.int64)
    right = _choose(face, -z, z, x, x, x, -x)
    down = _choose(face, -y, -y, z, -z, -y, -y)
    return face, right, down, _choose(major, far_x, far_y, far_z)


def place(x: Floats, y: Floats, z: Floats) -> tuple[Integers, Floats, Floats]:
    """The face of each direction, and normalised coordinates on it; 0/0 is the middle."""
    with np.errstate(all="ignore"):
        face, right, down, distance = project(x, y, z)
        across, along = _on_face(right / distance), _on_face(down / distance)
    return face, across, along


def _on_face(ratio: Floats) -> Floats:
    """From -1 to 1 to a normalised coordinate, cut to the binary places that one has."""
    ratio = np.where(np.isnan(ratio), np.float32(0), ratio)
    steps = np.floor(ratio.astype(np.float64) * (_STEPS / 2)) + _STEPS / 2
    return (steps / _STEPS).astype(np.float32)


def neighbour(
    face: Integers, column: Integers, row: Integers, extent: int
) -> tuple[Integers, Integers, Integers]:
    """Face, column and row of a texel that may lie beyond one edge of its face by one."""
    right = (2 * column + 1 - extent) / extent
    down = (2 * row + 1 - extent) / extent
    one = np.ones_like(right)
    x = _choose(face, one, -one, right, right, right, -right)
    y = _choose(face, -down, -down, one, -one, -down, -down)
    z = _choose(face, -right, right, down, -down, one, -one)
    other, right, down, distance = project(x, y, z)

    def number(value: Any) -> Integers:
        units = np.floor((value / distance + 1) / 2 * extent).astype(np.int64)
        found: Integers = np.clip(units, 0, extent - 1)
        return found

    outside = is_outside(column, extent) | is_outside(row, extent)
    return (
        np.where(outside, other, face),
        np.where(outside, number(right), column),
        np.where(outside, number(down), row),
    )


def is_outside(number: Integers, extent: int) -> Bools:
    """Whether a column or row is not on the face."""
    return (number < 0) | (number >= extent)
