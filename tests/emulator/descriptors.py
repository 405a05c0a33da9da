"""Short ways to describe arrays, textures and copies to a driver."""

from __future__ import annotations

from typing import Final, TypedDict

from cudadrv.driver._api import (
    CUDA_ARRAY3D_DESCRIPTOR,
    CUDA_MEMCPY3D,
    CUDA_RESOURCE_DESC,
    CUDA_TEXTURE_DESC,
    CUaddress_mode,
    CUarray,
    CUarray_format,
    CUdeviceptr,
    CUfilter_mode,
    CUmemorytype,
    CUmipmappedArray,
    CUresourcetype,
)

U8: Final = CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8
F32: Final = CUarray_format.CU_AD_FORMAT_FLOAT
LAYERED, SURFACE, CUBEMAP, GATHER = 1, 2, 4, 8
HOST: Final = CUmemorytype.CU_MEMORYTYPE_HOST
DEVICE: Final = CUmemorytype.CU_MEMORYTYPE_DEVICE
ARRAY: Final = CUmemorytype.CU_MEMORYTYPE_ARRAY
UNIFIED: Final = CUmemorytype.CU_MEMORYTYPE_UNIFIED


def described(
    width: int,
    height: int = 0,
    depth: int = 0,
    flags: int = 0,
    *,
    channels: int = 1,
    format_: CUarray_format = F32,
) -> CUDA_ARRAY3D_DESCRIPTOR:
    """An array."""
    result = CUDA_ARRAY3D_DESCRIPTOR()
    result.Width, result.Height, result.Depth, result.Flags = width, height, depth, flags
    result.NumChannels, result.Format = channels, format_
    return result


def extents(found: CUDA_ARRAY3D_DESCRIPTOR) -> tuple[int, int, int, int, int, int]:
    """All that is in a descriptor."""
    return (
        found.Width,
        found.Height,
        found.Depth,
        found.Flags,
        found.NumChannels,
        int(found.Format),
    )


def over_array(array: CUarray) -> CUDA_RESOURCE_DESC:
    """An array as a resource."""
    result = CUDA_RESOURCE_DESC()
    result.resType = CUresourcetype.CU_RESOURCE_TYPE_ARRAY
    result.res.array.hArray = array
    return result


def over_mipmap(array: CUmipmappedArray) -> CUDA_RESOURCE_DESC:
    """A mipmapped array as a resource."""
    result = CUDA_RESOURCE_DESC()
    result.resType = CUresourcetype.CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
    result.res.mipmap.hMipmappedArray = array
    return result


def over_linear(address: int, nbytes: int = 1024, channels: int = 1) -> CUDA_RESOURCE_DESC:
    """Floats in a row as a resource."""
    result = CUDA_RESOURCE_DESC()
    result.resType = CUresourcetype.CU_RESOURCE_TYPE_LINEAR
    linear = result.res.linear
    linear.devPtr, linear.sizeInBytes = CUdeviceptr(address), nbytes
    linear.format, linear.numChannels = F32, channels
    return result


def over_rows(
    address: int, width: int = 16, height: int = 4, pitch: int = 64, channels: int = 1
) -> CUDA_RESOURCE_DESC:
    """Floats in rows as a resource."""
    result = CUDA_RESOURCE_DESC()
    result.resType = CUresourcetype.CU_RESOURCE_TYPE_PITCH2D
    rows = result.res.pitch2D
    rows.devPtr, rows.pitchInBytes = CUdeviceptr(address), pitch
    rows.width, rows.height, rows.format, rows.numChannels = width, height, F32, channels
    return result


def reading(flags: int = 0, mode: int = 1, *, linear: bool = False) -> CUDA_TEXTURE_DESC:
    """How a texture reads."""
    result = CUDA_TEXTURE_DESC()
    result.addressMode = [CUaddress_mode(mode)] * 3
    result.filterMode = CUfilter_mode(int(linear))
    result.flags = flags
    return result


class Fields(TypedDict, total=False):
    """The fields of CUDA_MEMCPY3D."""

    srcXInBytes: int
    srcY: int
    srcZ: int
    srcLOD: int
    srcMemoryType: CUmemorytype
    srcHost: int
    srcDevice: CUdeviceptr
    srcArray: CUarray
    srcPitch: int
    srcHeight: int
    dstXInBytes: int
    dstY: int
    dstZ: int
    dstLOD: int
    dstMemoryType: CUmemorytype
    dstHost: int
    dstDevice: CUdeviceptr
    dstArray: CUarray
    dstPitch: int
    dstHeight: int
    WidthInBytes: int
    Height: int
    Depth: int


def copying(*parts: Fields) -> CUDA_MEMCPY3D:
    """A copy of fields, of which the later ones win; what is not named is 0."""
    result = CUDA_MEMCPY3D()
    for fields in parts:
        for name, value in fields.items():
            setattr(result, name, value)
    return result
