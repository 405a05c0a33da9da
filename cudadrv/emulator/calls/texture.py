"""Texture and surface objects.

CUDA Driver API: "Texture Object Management", "Surface Object Management". An object belongs to the
context that is current when it is made. Destroying any other object than an existing one of the
current context has no effect on driver 580; the emulator rejects it. The driver accepts most
combinations in a descriptor with some meaning (measured with driver 580 on an H100). It checks
memory, alignment and pitch, and so does this file.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from ptx import emulate  # whose names are imported at their first use

from ...driver._api import (
    CUDA_RESOURCE_DESC,
    CUDA_RESOURCE_VIEW_DESC,
    CUDA_TEXTURE_DESC,
    CUarray,
    CUdevice_attribute,
    CUresourcetype,
    CUresult,
    CUsurfObject,
    CUtexObject,
)
from ..arrays import FORMATS, read_format
from ..call_error import OK, SUCCESS, CallError, invalid_value
from ..contexts import Context
from ..device_state import DeviceState
from .call import DriverCalls, call

_AS_INTEGER: Final = 0x01
_NORMALIZED: Final = 0x02
_SRGB: Final = 0x10
_SEAMLESS: Final = 0x40
_TEXTURE_FLAGS: Final = 0x7F
_MOST_LINEAR_BYTES: Final = 1 << 36  # the limit of a texture unit


class TextureCalls(DriverCalls):
    """Texture and surface objects."""

    @call
    def cuTexObjectCreate(
        self,
        res_desc: CUDA_RESOURCE_DESC | None,
        tex_desc: CUDA_TEXTURE_DESC | None,
        res_view_desc: CUDA_RESOURCE_VIEW_DESC | None,
        /,
    ) -> tuple[CUresult, CUtexObject]:
        """Create a texture of the current context; views of another format are not supported."""
        context = self._state.handles.current()
        kind, levels = self._resource(res_desc, context)
        texture = read_texture(tex_desc, levels, kind)
        if res_view_desc is not None:
            raise CallError(
                CUresult.CUDA_ERROR_NOT_SUPPORTED, "the emulator takes no views of resources"
            )
        self._state.captures.reject_unsafe()
        handle = self._state.handles.new()
        context.device.model.textures[handle] = texture
        self._state.handles.texture_owners[handle] = context
        return SUCCESS, CUtexObject(handle)

    @call
    def cuTexObjectDestroy(self, tex_object: CUtexObject, /) -> tuple[CUresult]:
        """Destroy a texture of the current context; its memory stays."""
        self._destroy_object(int(tex_object), "texture")
        return OK

    @call
    def cuSurfObjectCreate(
        self, res_desc: CUDA_RESOURCE_DESC | None, /
    ) -> tuple[CUresult, CUsurfObject]:
        """Create a surface of the current context, over an array.

        The manual requires CUDA_ARRAY3D_SURFACE_LDST; driver 580 accepts any array on an H200.
        """
        context = self._state.handles.current()
        kind, images = self._resource(res_desc, context)
        if kind != CUresourcetype.CU_RESOURCE_TYPE_ARRAY:
            raise invalid_value("a surface is over a CUDA array")
        (image,) = images
        self._state.captures.reject_unsafe()
        handle = self._state.handles.new()
        context.device.model.surfaces[handle] = image
        self._state.handles.texture_owners[handle] = context
        return SUCCESS, CUsurfObject(handle)

    @call
    def cuSurfObjectDestroy(self, surf_object: CUsurfObject, /) -> tuple[CUresult]:
        """Destroy a surface of the current context; its memory stays."""
        self._destroy_object(int(surf_object), "surface")
        return OK

    def _destroy_object(self, handle: int, kind: str) -> None:
        context = self._state.handles.current()
        owner = self._state.handles.texture_owners.get(handle)
        if owner is not None:
            self._state.handles.usable(owner)
        if owner is not context:
            raise invalid_value(
                f"{handle:#x} is no live {kind}"
                if owner is None
                else f"the {kind} {handle:#x} belongs to another context than the current one"
            )
        model = context.device.model
        objects = model.textures if kind == "texture" else model.surfaces
        if handle not in objects:
            raise invalid_value(f"{handle:#x} is no live {kind}")
        self._state.captures.reject_unsafe()
        if self._state.handles.texture_owners.pop(handle, None) is None:
            raise invalid_value(f"{handle:#x} is no live {kind}")
        timeline = self._state.operations.timeline
        if timeline is None:
            del objects[handle]
        else:  # launched work still reads it
            timeline.submit_after_all(context, partial(objects.__delitem__, handle))

    def _resource(
        self, resource: CUDA_RESOURCE_DESC | None, context: Context
    ) -> tuple[CUresourcetype, tuple[emulate.TexelImage, ...]]:
        """Return the kind of a resource, and its images.

        Raises:
            CallError: CUDA_ERROR_INVALID_VALUE, if a texture cannot read it.
        """
        if resource is None:
            raise invalid_value("the resource's descriptor is null")
        if resource.flags:
            raise invalid_value(f"a resource takes flags 0, not {resource.flags:#x}")
        try:
            kind = resource.resType
        except ValueError as error:
            raise invalid_value(f"the kind of the resource: {error}") from None
        if kind == CUresourcetype.CU_RESOURCE_TYPE_ARRAY:
            return kind, (self._image(resource.res.array.hArray, context),)
        if kind == CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
            mipmap = self._state.handles.mipmapped_arrays.get(
                int(resource.res.mipmap.hMipmappedArray)
            )
            if mipmap is None:
                raise invalid_value("the resource is no live mipmapped array")
            self._reject_other(mipmap.context, context)
            return kind, tuple(level.image for level in mipmap.levels)
        if kind == CUresourcetype.CU_RESOURCE_TYPE_LINEAR:
            return kind, (linear_image(resource, context.device),)
        return kind, (pitched_image(resource, context.device),)

    def _image(self, handle: CUarray, context: Context) -> emulate.TexelImage:
        array = self._state.handles.arrays.get(int(handle))
        if array is None:
            raise invalid_value(f"the resource {int(handle):#x} is no live array")
        self._reject_other(array.context, context)
        return array.image

    @staticmethod
    def _reject_other(owner: Context, context: Context) -> None:
        if owner is not context:
            raise CallError(
                CUresult.CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
                "the array belongs to another context than the current one",
            )


def linear_image(resource: CUDA_RESOURCE_DESC, device: DeviceState) -> emulate.TexelImage:
    """Return texels in a row, in plain memory.

    Raises:
        CallError: they are not aligned, not in one allocation, or of no format.
    """
    linear = resource.res.linear
    kind, channels = FORMATS[read_format(lambda: linear.format)], _channels(linear.numChannels)
    nbytes, texel = int(linear.sizeInBytes), kind.itemsize * channels
    if nbytes >= _MOST_LINEAR_BYTES:
        raise invalid_value(f"a texture of {nbytes} bytes is larger than any device takes")
    address = _placed(int(linear.devPtr), nbytes, device)
    return emulate.TexelImage(device.memory, address, kind, channels, nbytes // texel)


def pitched_image(resource: CUDA_RESOURCE_DESC, device: DeviceState) -> emulate.TexelImage:
    """Return texels in rows, in plain memory.

    Raises:
        CallError: they or the rows are not aligned, too many, not in one allocation, or of no
            format.
    """
    pitched = resource.res.pitch2D
    kind, channels = FORMATS[read_format(lambda: pitched.format)], _channels(pitched.numChannels)
    width, height, pitch = int(pitched.width), int(pitched.height), int(pitched.pitchInBytes)
    limits = [
        device.attributes[int(getattr(CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}"))]
        for name in (
            "MAXIMUM_TEXTURE2D_LINEAR_WIDTH",
            "MAXIMUM_TEXTURE2D_LINEAR_HEIGHT",
            "MAXIMUM_TEXTURE2D_LINEAR_PITCH",
            "TEXTURE_PITCH_ALIGNMENT",
        )
    ]
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
    return emulate.TexelImage(
        device.memory, address, kind, channels, width, height, row_bytes=pitch
    )


def _channels(channels: int) -> int:
    if channels not in (1, 2, 4):
        raise invalid_value(f"a texel has 1, 2 or 4 channels, not {channels}")
    return channels


def _placed(address: int, nbytes: int, device: DeviceState) -> int:
    """Return the address, if a texture may lie there; the driver checks only its alignment."""
    if not address:
        raise invalid_value("the texture's memory is null")
    if not device.holds(address):
        raise CallError(
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
    descriptor: CUDA_TEXTURE_DESC | None,
    levels: tuple[emulate.TexelImage, ...],
    kind: CUresourcetype,
) -> emulate.TextureObject:
    """Return the addressing and filtering of images.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE, if a number or a flag is invalid.
    """
    if descriptor is None:
        raise invalid_value("the texture's descriptor is null")
    flags = int(descriptor.flags)
    if flags & ~_TEXTURE_FLAGS:
        raise invalid_value(f"invalid texture flags {flags:#x}")
    if flags & _SEAMLESS and not levels[0].cube:
        raise invalid_value("only a cubemap is filtered across its edges")
    try:
        x, y, z = (emulate.AddressMode(int(mode)) for mode in descriptor.addressMode)
        linear, mip_linear = int(descriptor.filterMode), int(descriptor.mipmapFilterMode)
    except ValueError as error:
        raise invalid_value(f"the texture's descriptor: {error}") from None
    red, green, blue, alpha = descriptor.borderColor
    last = len(levels) - 1.0
    lowest, highest = (
        min(max(0.0 if math.isnan(bound) else bound, 0.0), last)
        for bound in (descriptor.minMipmapLevelClamp, descriptor.maxMipmapLevelClamp)
    )
    return emulate.TextureObject(
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
