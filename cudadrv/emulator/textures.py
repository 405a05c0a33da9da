"""Texture and surface objects: what a descriptor asks for, checked and read.

CUDA Driver API, "Texture Object Management", "Surface Object Management". The driver takes most
combinations and gives them some meaning (measured with driver 580 on an H100); memory, alignment
and pitch it checks, and so does this.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from ptx.emulate.texture.texture import AddressMode, Image, Texture

from ..driver._api import (
    CUDA_RESOURCE_DESC,
    CUDA_TEXTURE_DESC,
    CUdevice_attribute,
    CUresourcetype,
    CUresult,
)
from .arrays import FORMATS, read_format
from .refusal import Refusal, invalid_value

if TYPE_CHECKING:
    from .device_state import DeviceState

_AS_INTEGER: Final = 0x01
_NORMALIZED: Final = 0x02
_SRGB: Final = 0x10
_SEAMLESS: Final = 0x40
_FLAGS: Final = 0x7F
_MOST_LINEAR_BYTES: Final = 1 << 36  # more no texture unit counts


def linear_image(resource: CUDA_RESOURCE_DESC, device: DeviceState) -> Image:
    """Texels in a row, in plain memory.

    Raises:
        Refusal: they are not aligned, not in one allocation, or of no format.
    """
    linear = resource.res.linear
    kind, channels = FORMATS[read_format(lambda: linear.format)], _channels(linear.numChannels)
    nbytes, texel = int(linear.sizeInBytes), kind.itemsize * channels
    if nbytes >= _MOST_LINEAR_BYTES:
        raise invalid_value(f"a texture of {nbytes} bytes is larger than any device takes")
    address = _placed(int(linear.devPtr), nbytes, device)
    return Image(device.memory, address, kind, channels, nbytes // texel)


def pitched_image(resource: CUDA_RESOURCE_DESC, device: DeviceState) -> Image:
    """Texels in rows, in plain memory.

    Raises:
        Refusal: they or the rows are not aligned, too many, not in one allocation or of no format.
    """
    pitched = resource.res.pitch2D
    kind, channels = FORMATS[read_format(lambda: pitched.format)], _channels(pitched.numChannels)
    width, height, pitch = int(pitched.width), int(pitched.height), int(pitched.pitchInBytes)
    limits = [
        device.attributes[int(getattr(CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"))]
        for name in (
            "MAXIMUM_TEXTURE2D_LINEAR_WIDTH", "MAXIMUM_TEXTURE2D_LINEAR_HEIGHT",
            "MAXIMUM_TEXTURE2D_LINEAR_PITCH", "TEXTURE_PITCH_ALIGNMENT",
        )
    ]  # fmt: skip
    if width > limits[0] or height > limits[1] or pitch > limits[2]:
        raise invalid_value(
            f"a texture of {width} by {height} in rows of {pitch} bytes is above the limits of "
            f"{limits[0]}, {limits[1]} and {limits[2]}"
        )
    row = width * kind.itemsize * channels
    if pitch % limits[3] or pitch < row:
        raise invalid_value(
            f"rows of {pitch} bytes: the pitch is a multiple of {limits[3]} and at least the "
            f"{row} bytes of a row"
        )
    nbytes = pitch * (height - 1) + row if width and height else 0
    address = _placed(int(pitched.devPtr), nbytes, device)
    return Image(device.memory, address, kind, channels, width, height, row_bytes=pitch)


def _channels(channels: int) -> int:
    if channels not in (1, 2, 4):
        raise invalid_value(f"a texel has 1, 2 or 4 channels, not {channels}")
    return channels


def _placed(address: int, nbytes: int, device: DeviceState) -> int:
    """The address, if a texture may lie there; the driver looks at no more than its alignment."""
    if not address:
        raise invalid_value("the texture's memory is null")
    if not device.holds(address):
        raise Refusal(
            CUresult.CUDA_ERROR_NOT_SUPPORTED,
            f"{address:#x} is not in the memory of device {device.ordinal}: the emulator has "
            "textures over nothing else",
        )
    alignment = device.attributes[int(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)]
    if address % alignment:
        raise invalid_value(f"{address:#x} is not a multiple of {alignment}, as textures need it")
    with device.lock:
        device.place(address, nbytes)
    return address


def read_texture(
    descriptor: CUDA_TEXTURE_DESC | None, levels: tuple[Image, ...], kind: CUresourcetype
) -> Texture:
    """How images are read.

    Raises:
        Refusal: CUDA_ERROR_INVALID_VALUE, if a number or a flag is invalid.
    """
    if descriptor is None:
        raise invalid_value("the texture's descriptor is null")
    flags = int(descriptor.flags)
    if flags & ~_FLAGS:
        raise invalid_value(f"invalid texture flags {flags:#x}")
    if flags & _SEAMLESS and not levels[0].cube:
        raise invalid_value("only a cubemap is filtered across its edges")
    try:
        x, y, z = (AddressMode(int(mode)) for mode in descriptor.addressMode)
        linear, mip_linear = int(descriptor.filterMode), int(descriptor.mipmapFilterMode)
    except ValueError as error:
        raise invalid_value(f"the texture's descriptor: {error}") from None
    red, green, blue, alpha = descriptor.borderColor
    last = len(levels) - 1.0
    lowest, highest = (
        min(max(0.0 if math.isnan(bound) else bound, 0.0), last)
        for bound in (descriptor.minMipmapLevelClamp, descriptor.maxMipmapLevelClamp)
    )
    return Texture(
        levels,
        (x, y, z),
        linear=bool(linear),
        normalized_coordinates=bool(flags & _NORMALIZED),
        as_integer=bool(flags & _AS_INTEGER),
        srgb=bool(flags & _SRGB),
        border=(red, green, blue, alpha),
        mip_linear=bool(mip_linear),
        mip_bias=float(descriptor.mipmapLevelBias),
        min_level=lowest,
        max_level=highest,
        max_anisotropy=int(descriptor.maxAnisotropy),
        is_linear_memory=kind == CUresourcetype.CU_RESOURCE_TYPE_LINEAR,
        seamless_cube=bool(flags & _SEAMLESS),
    )
