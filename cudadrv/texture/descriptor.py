"""What the driver is told of an array, and why it made none."""

from __future__ import annotations

from ..driver._api import CUDA_ARRAY3D_DESCRIPTOR, CUresult
from ..driver.context import ContextCore
from ..driver.in_use import failure
from ..errors import CudadrvError, TextureError
from ..memory.driver_pool import out_of_memory
from .extents import Extents
from .texel import Texel


def descriptor_of(extents: Extents, texel: Texel) -> CUDA_ARRAY3D_DESCRIPTOR:
    """The driver's words for an array."""
    descriptor = CUDA_ARRAY3D_DESCRIPTOR()
    descriptor.Width, descriptor.Height, descriptor.Depth = extents.native
    descriptor.Format, descriptor.NumChannels = texel.format, texel.channels
    descriptor.Flags = extents.flags
    return descriptor


def refused(
    context: ContextCore, extents: Extents, texel: Texel, code: CUresult, call: str
) -> CudadrvError:
    """The error for an array that the driver did not make."""
    if code == CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        return out_of_memory(context, extents.size * texel.nbytes, call)
    doing = f"making a CUDA array of shape {extents.shape} of {texel} on {context!r}"
    mipmapped = call == "cuMipmappedArrayCreate"
    exceeded = extents.why_too_large(context.device, mipmapped=mipmapped)
    if code == CUresult.CUDA_ERROR_INVALID_VALUE and exceeded:
        return TextureError(f"{doing}: it is too large for the device, whose {exceeded}")
    return failure(context._api, code, call, doing)
