"""The driver's functions of arrays, textures, surfaces and tensor maps."""

from __future__ import annotations

from typing import Protocol

from .._api import (
    CUDA_ARRAY3D_DESCRIPTOR,
    CUDA_RESOURCE_DESC,
    CUDA_RESOURCE_VIEW_DESC,
    CUDA_TEXTURE_DESC,
    CUarray,
    CUmipmappedArray,
    CUresult,
    CUsurfObject,
    CUtexObject,
)


class ArrayFunctions(Protocol):
    """Functions of arrays, textures, surfaces and tensor maps."""

    def cuArray3DCreate(
        self, allocate_array: CUDA_ARRAY3D_DESCRIPTOR | None, /
    ) -> tuple[CUresult, CUarray]: ...
    def cuArrayDestroy(self, h_array: CUarray, /) -> tuple[CUresult]: ...
    def cuMipmappedArrayCreate(
        self, mipmapped_array_desc: CUDA_ARRAY3D_DESCRIPTOR | None, num_mipmap_levels: int, /
    ) -> tuple[CUresult, CUmipmappedArray]: ...
    def cuMipmappedArrayGetLevel(
        self, h_mipmapped_array: CUmipmappedArray, level: int, /
    ) -> tuple[CUresult, CUarray]: ...
    def cuMipmappedArrayDestroy(
        self, h_mipmapped_array: CUmipmappedArray, /
    ) -> tuple[CUresult]: ...
    def cuTexObjectCreate(
        self,
        res_desc: CUDA_RESOURCE_DESC | None,
        tex_desc: CUDA_TEXTURE_DESC | None,
        res_view_desc: CUDA_RESOURCE_VIEW_DESC | None,
        /,
    ) -> tuple[CUresult, CUtexObject]: ...
    def cuTexObjectDestroy(self, tex_object: CUtexObject, /) -> tuple[CUresult]: ...
    def cuSurfObjectCreate(
        self, res_desc: CUDA_RESOURCE_DESC | None, /
    ) -> tuple[CUresult, CUsurfObject]: ...
    def cuSurfObjectDestroy(self, surf_object: CUsurfObject, /) -> tuple[CUresult]: ...
