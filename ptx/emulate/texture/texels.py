"""Texels as memory holds them, what lies outside of an image, and the numbers that kernels get.

CUDA programming guide, "Texture Object API" (read mode), and CUDA driver API, CUDA_TEXTURE_DESC.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.texture import Image, Texture
from ptx.emulate.texture.filtering import Slice, Texels, blend_floats, blend_normalized
from ptx.emulate.texture.texel_place import Bools, Floats, Integers

Words = NDArray[np.uint32]  # (n, channels)

# Linear light of each sRGB byte in 2**-14 (numbers to base 36), as an H100 converts it.
_SRGB_DIGITS = """
    0 5 A F K P U Z 14 19 1E 1J 1O 1U 20 26 2D 2K 2R 2Z 37 3F 3N 3W 46 4F 4P 50 5A 5L 5X 68 6K
    6Y 7A 7O 82 8G 8U 98 9O A4 AK B0 BG BY CG CY DG E0 EK F4 FO G8 GS HC I0 IO J8 JW KK L8 LW MO
    NC O0 OW PK Q8 R4 RS SO TK U8 V4 W0 WW XS YO ZK 10G 11K 12G 13C 14G 15C 16G 17C 18G 19K 1AG
    1BK 1CO 1DS 1EW 1G0 1HC 1I8 1JK 1KW 1LS 1N4 1OG 1PS 1R4 1SG 1TS 1V4 1WG 1XS 1Z4 20G 21S 234
    24G 268 27K 28W 2AO 2C0 2DC 2F4 2GG 2I8 2JK 2LC 2N4 2OG 2Q8 2S0 2TS 2V4 2WW 2YO 30G 328 340
    35S 37K 39C 3B4 3CW 3EO 3HC 3J4 3KW 3MO 3OG 3R4 3SW 3UO 3WG 3Z4 40W 42O 45C 474 49S 4BK 4E8
    4G0 4HS 4KG 4N4 4OW 4RK 4TC 4W0 4XS 50G 534 55S 57K 5A8 5CW 5EO 5HC 5K0 5MO 5PC 5S0 5UO 5XC
    5Z4 62O 64G 680 69S 6DC 6F4 6IO 6KG 6O0 6RK 6TC 6WW 6YO 728 75S 77K 7B4 7EO 7GG 7K0 7NK 7PC
    7SW 7WG 7Y8 81S 85C 88W 8CG 8E8 8HS 8LC 8OW 8SG 8U8 8XS 91C 94W 98G 9C0 9FK 9J4 9MO 9Q8 9TS
    9XC A0W A4G A80 ABK AF4 AIO AM8 APS ATC AWW B0G B40 B7K BB4 BGG BK0 BNK BR4 BUO BY8 C1S C5C
    CCG CG0 CJK CN4
"""
_SRGB = np.array(
    [int(digits, 36) for digits in _SRGB_DIGITS.split()], dtype=np.uint16
)  # fmt: skip


def elements_of(image: Image, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The image's bytes as elements of a type; whole elements only."""
    if image.values is not None:
        return image.values
    start = image.address - image.memory.base
    stop = start + image.nbytes // dtype.itemsize * dtype.itemsize
    return image.memory.data[start:stop].view(dtype)


def stored(image: Image, x: Integers, y: Integers | None, z: Integers | None) -> Texels:
    """(n, channels): the texels at places in the image."""
    size = image.dtype.itemsize
    index = x * image.channels
    if y is not None:
        index = index + y * (image.pitch // size)
    if z is not None:
        index = index + z * (image.pitch * (image.height or 1) // size)
    every = index[:, None] + np.arange(image.channels)
    found: Texels = elements_of(image, image.dtype).take(every)
    return found


def is_normalized(texture: Texture, dtype: np.dtype[Any]) -> bool:
    """Whether integers of a type are read as numbers from 0 or -1 to 1."""
    return not texture.as_integer and dtype.kind in "iu" and dtype.itemsize <= 2


def border_texel(texture: Texture, image: Image) -> Texels:
    """(channels,) what is read outside of the image: the border colour in the image's type.

    Integers that are read as they are get the low bits of the colour's float32.
    """
    colour = np.array(texture.border[: image.channels], dtype=np.float32)
    dtype = image.dtype
    if is_normalized(texture, dtype):
        if _is_srgb(texture, dtype):
            colour[:3] = _encoded(colour[:3])
        least = np.float32(0 if dtype.kind == "u" else -1)
        near = np.rint(np.clip(colour, least, np.float32(1)) * np.float32(np.iinfo(dtype).max))
        found: Texels = near.astype(dtype)
        return found
    if dtype.kind in "iu":
        bits = colour.view(np.uint32).astype(f"u{dtype.itemsize}")
        return bits.view(dtype)
    if dtype.itemsize == 2:
        with np.errstate(over="ignore"):
            half = colour.astype(np.float16)
        beyond = np.abs(half.astype(np.float32)) > np.abs(colour)
        return np.where(beyond, np.nextafter(half, np.float16(0)), half)
    return colour


def _encoded(light: Floats) -> Floats:
    """Linear light encoded as sRGB, both from 0 to 1."""
    light = np.clip(light, np.float32(0), np.float32(1))
    curve = 1.055 * light ** (1 / 2.4) - 0.055
    return np.where(light <= 0.0031308, 12.92 * light, curve).astype(np.float32)


def with_border(texture: Texture, image: Image, texels: Texels, inside: Bools | None) -> Texels:
    """The texels, and the border colour where they are not inside."""
    if inside is None or inside.all():
        return texels
    return np.where(inside[:, None], texels, border_texel(texture, image))


def _linear_light(texels: Texels) -> Floats:
    """sRGB bytes decoded to floats; a fourth channel is not a colour and stays linear."""
    found = (_SRGB.take(texels).astype(np.float32)) / np.float32(16384)
    if texels.shape[1] == 4:
        found[:, 3] = texels[:, 3] / np.float32(255)
    return found


def _is_srgb(texture: Texture, dtype: np.dtype[Any]) -> bool:
    return texture.srgb and dtype == np.uint8 and not texture.as_integer


def as_read(texture: Texture, texels: Texels) -> Words:
    """What a kernel gets of texels that are not filtered: 32 bits a channel."""
    dtype = texels.dtype
    if _is_srgb(texture, dtype):
        return _linear_light(texels).view(np.uint32)
    if is_normalized(texture, dtype):
        least = 0.0 if dtype.kind == "u" else -1.0
        value = np.maximum(texels / np.float64(np.iinfo(dtype).max), least)
        return value.astype(np.float32).view(np.uint32)
    if dtype.kind == "f":
        return texels.astype(np.float32).view(np.uint32)
    return texels.astype(np.uint32 if dtype.kind == "u" else np.int32).view(np.uint32)


def can_filter(texture: Texture, dtype: np.dtype[Any]) -> bool:
    """Whether texels of a type can be combined at all."""
    return dtype.kind == "f" or is_normalized(texture, dtype)


def blended(texture: Texture, parts: list[Slice]) -> Words:
    """What a kernel gets of several texels."""
    dtype = parts[0].texels[0].dtype
    if _is_srgb(texture, dtype):
        light = [replace(p, texels=[_linear_light(each) for each in p.texels]) for p in parts]
        found = blend_floats(light, 24)
        if found.shape[1] == 4:
            found[:, 3] = blend_normalized(parts, dtype)[:, 3]
        return found.view(np.uint32)
    if dtype.kind == "f":
        return blend_floats(parts, 11 if dtype.itemsize == 2 else 24).view(np.uint32)
    return blend_normalized(parts, dtype).view(np.uint32)
