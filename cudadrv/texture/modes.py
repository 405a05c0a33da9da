"""How a texture is read: addressing, filtering and what becomes of integers.

CUDA Driver API, CUDA_TEXTURE_DESC; CUDA Programming Guide, "Texture Fetching".
"""

from __future__ import annotations

from enum import Enum, IntEnum


class AddressMode(IntEnum):
    """What a coordinate outside of the texture reads; numbered as CUaddress_mode."""

    WRAP = 0
    """The texture again; needs normalised coordinates."""
    CLAMP = 1
    """The texel at the edge."""
    MIRROR = 2
    """The texture again, every other time reversed; needs normalised coordinates."""
    BORDER = 3
    """The border colour."""


class FilterMode(IntEnum):
    """Which texels make a value; numbered as CUfilter_mode."""

    POINT = 0
    """The nearest one."""
    LINEAR = 1
    """The nearest two of each dimension, by weights of 8 fractional bits."""


class ReadMode(Enum):
    """What a kernel gets of a texel."""

    ELEMENT = "its value, in its own type; float16 as float"
    NORMALIZED = "8- and 16-bit integers as floats of 0 to 1, signed ones of -1 to 1"
