"""Which levels of a mipmap a fetch reads. PTX ISA, "tex" (`.level`, `.grad`).

Measured on an H100. A level counts in 256ths: what is asked for and the texture's bias are each
cut to that, then added and clamped. Where gradients are given the level is the logarithm of the
longest way across the texels of a pixel, estimated without squares; it is right to 2/256 of a
level, and mostly exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ptx.emulate.memory.texture import Image, Texture
from ptx.emulate.texture.texel_place import FRACTION, Doubles, Floats, Integers

Gradient = tuple[Floats, ...]  # a derivative of each coordinate

_MOST = 2.0**10
_DIGITS = 9  # of a gradient that count, behind the first
_LEAST = 2.0**-60
_LONGEST = 2.0**60


def _table() -> Integers:
    """256ths of the logarithm to base 2 of 1 + i/256, as they are built into the GPU."""
    steps = np.arange(256)
    found: Integers = np.rint(256 * np.log2(1 + (steps + 0.469) / 256)).astype(np.int64)
    found[0], found[255] = 0, 255
    return found


_LOGARITHM = _table()


def _in_steps(value: Any) -> Any:
    """A level in 256ths, cut towards zero; NaN is 0."""
    value = np.where(np.isnan(value), 0.0, np.clip(value, -_MOST, _MOST))
    return np.trunc(value * FRACTION).astype(np.int64)


def _level(texture: Texture, steps: Integers) -> tuple[Integers, Integers]:
    least = int(_in_steps(np.float64(texture.min_level)))
    most = int(_in_steps(np.float64(texture.max_level)))
    last = FRACTION * (len(texture.levels) - 1)
    steps = np.clip(np.minimum(np.maximum(steps, least), most), 0, last)
    if texture.mip_linear:
        return steps >> 8, steps & (FRACTION - 1)
    return (steps + FRACTION // 2) >> 8, np.zeros_like(steps)


def base_level(texture: Texture, count: int) -> tuple[Integers, Integers]:
    """The level that a fetch without one reads, and the next one's weight; no bias is added."""
    return _level(texture, np.zeros(count, dtype=np.int64))


def asked_level(texture: Texture, level: Floats) -> tuple[Integers, Integers]:
    """The first level to read for each thread, and the weight of the next one, of `FRACTION`."""
    return _level(texture, _in_steps(level) + int(_in_steps(np.float64(texture.mip_bias))))


def gradient_level(texture: Texture, dx: Gradient, dy: Gradient) -> tuple[Integers, Integers]:
    """The same, from how the coordinates change from one pixel to its neighbours."""
    image = texture.levels[0]
    first = _in_texels(texture, image, dx)
    second = _in_texels(texture, image, dy)
    both = [a + b for a, b in zip(first, second, strict=True)]
    across = [a - b for a, b in zip(first, second, strict=True)]
    longest = np.maximum(
        np.maximum(_length(first), _length(second)),
        11 / 16 * np.maximum(_length(both), _length(across)),
    )
    mantissa, exponent = np.frexp(np.clip(longest, _LEAST, _LONGEST))
    step = ((2 * mantissa - 1) * 256).astype(np.int64)
    steps = (exponent.astype(np.int64) - 1) * FRACTION + _LOGARITHM.take(step)
    return _level(texture, steps + int(_in_steps(np.float64(texture.mip_bias))))


def _in_texels(texture: Texture, image: Image, gradient: Gradient) -> list[Doubles]:
    extents = (image.width, image.height, image.depth)
    found = []
    for value, extent in zip(gradient, extents, strict=False):
        wide = value.astype(np.float64) * (extent if texture.normalized_coordinates else 1)
        wide = np.clip(np.where(np.isnan(wide), 0.0, wide), -_LONGEST, _LONGEST)
        mantissa, exponent = np.frexp(wide)
        cut = np.trunc(np.ldexp(mantissa, _DIGITS + 1))
        found.append(np.ldexp(cut, exponent - _DIGITS - 1))
    return found


def _length(vector: list[Doubles]) -> Doubles:
    """About the length: the largest part, 11/32 of the second and 1/4 of the third."""
    parts = np.sort(np.abs(np.stack(vector)), axis=0)[::-1]
    total: Doubles = parts[0].copy()
    for part, share in zip(parts[1:], (11 / 32, 1 / 4), strict=False):
        total += part * share
    return total
