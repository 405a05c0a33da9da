"""The driver's functions of copies and fills."""

from __future__ import annotations

from typing import Protocol

from .._api import CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUcontext, CUdeviceptr, CUresult, CUstream


class CopyFunctions(Protocol):
    """Functions of copies and fills."""

    def cuMemcpyHtoDAsync(
        self, dst_device: CUdeviceptr, src_host: int, byte_count: int, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuMemcpyDtoHAsync(
        self, dst_host: int, src_device: CUdeviceptr, byte_count: int, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuMemcpyDtoDAsync(
        self,
        dst_device: CUdeviceptr,
        src_device: CUdeviceptr,
        byte_count: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]: ...
    def cuMemcpyPeerAsync(
        self,
        dst_device: CUdeviceptr,
        dst_context: CUcontext,
        src_device: CUdeviceptr,
        src_context: CUcontext,
        byte_count: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]: ...
    def cuMemsetD8Async(
        self, dst_device: CUdeviceptr, uc: int, n: int, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuMemsetD16Async(
        self, dst_device: CUdeviceptr, us: int, n: int, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuMemsetD32Async(
        self, dst_device: CUdeviceptr, ui: int, n: int, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuMemsetD2D8Async(
        self,
        dst_device: CUdeviceptr,
        dst_pitch: int,
        uc: int,
        width: int,
        height: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]: ...
    def cuMemsetD2D16Async(
        self,
        dst_device: CUdeviceptr,
        dst_pitch: int,
        us: int,
        width: int,
        height: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]: ...
    def cuMemsetD2D32Async(
        self,
        dst_device: CUdeviceptr,
        dst_pitch: int,
        ui: int,
        width: int,
        height: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]: ...
    def cuMemcpy3DAsync(
        self, copy: CUDA_MEMCPY3D | None, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuMemcpy3DPeerAsync(
        self, copy: CUDA_MEMCPY3D_PEER | None, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
