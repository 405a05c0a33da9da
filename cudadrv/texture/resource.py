"""What a texture is over, in the driver's words: arrays, and plain memory that is laid out for it.

CUDA Driver API, CUDA_RESOURCE_DESC.
"""

from __future__ import annotations

import math

from .. import border
from ..driver._api import CUDA_RESOURCE_DESC, CUdeviceptr, CUresourcetype
from ..driver.attributes import DeviceAttribute
from ..errors import TextureError
from ..memory.array import AnyDeviceArray, DeviceArray
from ..memory.layout import dense_strides
from .array import CudaArray
from .mipmap import MipmappedArray
from .texel import Texel
from .view import Resource


def describe(resource: Resource, texel: Texel, width: int | None) -> CUDA_RESOURCE_DESC:
    """The resource's descriptor.

    Raises:
        TextureError: plain memory is not laid out as textures need it.
        ClosedError: it was closed.
    """
    result = CUDA_RESOURCE_DESC()
    if isinstance(resource, CudaArray):
        result.resType = CUresourcetype.CU_RESOURCE_TYPE_ARRAY
        result.res.array.hArray = resource.handle
    elif isinstance(resource, MipmappedArray):
        result.resType = CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
        result.res.mipmap.hMipmappedArray = resource.handle
    else:
        _check_start(resource)
        _check_rows(resource)
        if len(texel_shape(resource, texel)) == 1:
            _describe_row(result, resource, texel, width)
        else:
            _describe_rows(result, resource, texel, width)
    return result


def texel_shape(array: AnyDeviceArray, texel: Texel) -> tuple[int, ...]:
    """The extents of a device array in texels.

    Raises:
        TextureError: it does not have one or two, or no such channels.
    """
    axes = texel.axes
    shape = array.shape[: array.ndim - len(axes)]
    if array.shape[len(shape) :] != axes or not 1 <= len(shape) <= 2 or 0 in shape:
        channels = f" with {texel.channels} channels as its last axis" if axes else ""
        raise TextureError(
            f"a texture over {array!r}: a device array has one or two extents of texels{channels}; "
            "for three, for layers and for cubemaps copy it to a CudaArray"
        )
    return shape


def _check_start(array: AnyDeviceArray) -> None:
    alignment = array.context.device.attribute(DeviceAttribute.TEXTURE_ALIGNMENT)
    if array.ptr % alignment:
        raise TextureError(
            f"a texture over {array!r}, which begins at {array.ptr:#x}: it must begin at a "
            f"multiple of {alignment} bytes, as an array of its own does and most views do not"
        )


def _check_rows(array: AnyDeviceArray) -> None:
    dense = dense_strides(array.shape, array.dtype.itemsize)
    is_pitched = array.ndim > 1 and array.strides[1:] == dense[1:] and array.strides[0] > dense[0]
    if not (array.is_contiguous or is_pitched):
        raise TextureError(
            f"a texture over {array!r}: its texels do not lie in rows, one behind the other; give "
            "what Stream.contiguous makes of it"
        )


def _describe_row(
    result: CUDA_RESOURCE_DESC, array: AnyDeviceArray, texel: Texel, width: int | None
) -> None:
    if width is not None:
        raise TextureError(f"width={width} for {array!r}, which has no rows to be padded")
    texels = array.nbytes // texel.nbytes
    most = array.context.device.attribute(DeviceAttribute.MAXIMUM_TEXTURE1D_LINEAR_WIDTH)
    if texels > most:
        raise TextureError(
            f"a texture over {array!r}: the device reads at most {most} texels of plain memory"
        )
    result.resType = CUresourcetype.CU_RESOURCE_TYPE_LINEAR
    linear = result.res.linear
    linear.devPtr, linear.sizeInBytes = CUdeviceptr(array.ptr), array.nbytes
    linear.format, linear.numChannels = texel.format, texel.channels


def _describe_rows(
    result: CUDA_RESOURCE_DESC, array: AnyDeviceArray, texel: Texel, width: int | None
) -> None:
    height, texels = texel_shape(array, texel)
    pitch = array.strides[0]
    device = array.context.device
    alignment = device.attribute(DeviceAttribute.TEXTURE_PITCH_ALIGNMENT)
    if pitch % alignment:
        padded = math.lcm(alignment, texel.nbytes) // texel.nbytes
        padded *= -(-texels // padded)
        raise TextureError(
            f"a texture over {array!r}, whose rows are {pitch} bytes: they must be a multiple of "
            f"{alignment}; make the array with {padded} texels a row and give width={texels}, or "
            "copy it to a CudaArray"
        )
    if width is None:
        width = texels
    elif not 1 <= width <= texels:
        raise TextureError(f"width={width} for {array!r}: its rows are of {texels} texels")
    for extent, name in ((width, "WIDTH"), (height, "HEIGHT"), (pitch, "PITCH")):
        most = device.attribute(DeviceAttribute[f"MAXIMUM_TEXTURE2D_LINEAR_{name}"])
        if extent > most:
            raise TextureError(
                f"a texture over {array!r}: the device reads plain memory of at most {most} "
                f"({name.lower()}), not {extent}; copy it to a CudaArray"
            )
    result.resType = CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
    rows = result.res.pitch2D
    rows.devPtr, rows.pitchInBytes = CUdeviceptr(array.ptr), pitch
    rows.format, rows.numChannels = texel.format, texel.channels
    rows.width, rows.height = width, height


def texel_of(resource: Resource, channels: int | None) -> Texel:
    """The texels of a resource; a device array's channels are told, others know theirs.

    Raises:
        TextureError: an array has other channels.
        DTypeError: a device array's dtype is none of a channel.
    """
    if isinstance(resource, DeviceArray):
        return Texel.of(resource.dtype, 1 if channels is None else channels)
    if not isinstance(resource, (CudaArray, MipmappedArray)):
        raise TextureError(
            f"a texture over a {type(resource).__name__}: it is over a CudaArray, a MipmappedArray "
            "or a DeviceArray"
        )
    if channels is not None and border.whole("channels", channels) != resource.channels:
        raise TextureError(f"channels={channels} for {resource!r}, which knows its own")
    return resource.texel
