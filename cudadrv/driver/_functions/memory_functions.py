"""The driver's functions of memory, its pools, its addresses and its sharing."""

from __future__ import annotations

from typing import Protocol

from .._api import (
    CUdeviceptr,
    CUipcMemHandle,
    CUmem_advise,
    CUmemAccess_flags,
    CUmemAccessDesc,
    CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType,
    CUmemAllocationProp,
    CUmemGenericAllocationHandle,
    CUmemLocation,
    CUmemoryPool,
    CUmemPool_attribute,
    CUmemPoolProps,
    CUmemPoolPtrExportData,
    CUpointer_attribute,
    CUresult,
    CUstream,
    cuuint64_t,
)


class MemoryFunctions(Protocol):
    """Functions of memory, its pools, its addresses and its sharing."""

    def cuMemGetInfo(self) -> tuple[CUresult, int, int]: ...
    def cuMemAllocManaged(self, bytesize: int, flags: int, /) -> tuple[CUresult, CUdeviceptr]: ...
    def cuMemAlloc(self, bytesize: int, /) -> tuple[CUresult, CUdeviceptr]: ...
    def cuMemFree(self, dptr: CUdeviceptr, /) -> tuple[CUresult]: ...
    def cuMemAllocAsync(
        self, bytesize: int, h_stream: CUstream, /
    ) -> tuple[CUresult, CUdeviceptr]: ...
    def cuMemFreeAsync(self, dptr: CUdeviceptr, h_stream: CUstream, /) -> tuple[CUresult]: ...
    def cuMemPrefetchAsync(
        self,
        dev_ptr: CUdeviceptr,
        count: int,
        location: CUmemLocation,
        flags: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]: ...
    def cuMemAdvise(
        self, dev_ptr: CUdeviceptr, count: int, advice: CUmem_advise, location: CUmemLocation, /
    ) -> tuple[CUresult]: ...
    def cuStreamAttachMemAsync(
        self, h_stream: CUstream, dptr: CUdeviceptr, length: int, flags: int, /
    ) -> tuple[CUresult]: ...
    def cuMemHostRegister(self, p: int, bytesize: int, flags: int, /) -> tuple[CUresult]: ...
    def cuMemHostUnregister(self, p: int, /) -> tuple[CUresult]: ...
    def cuMemHostAlloc(self, bytesize: int, flags: int, /) -> tuple[CUresult, int]: ...
    def cuMemFreeHost(self, p: int, /) -> tuple[CUresult]: ...
    def cuMemAllocFromPoolAsync(
        self, bytesize: int, pool: CUmemoryPool, h_stream: CUstream, /
    ) -> tuple[CUresult, CUdeviceptr]: ...
    def cuMemPoolCreate(
        self, pool_props: CUmemPoolProps | None, /
    ) -> tuple[CUresult, CUmemoryPool]: ...
    def cuMemPoolDestroy(self, pool: CUmemoryPool, /) -> tuple[CUresult]: ...
    def cuMemPoolGetAccess(
        self, mem_pool: CUmemoryPool, location: CUmemLocation | None, /
    ) -> tuple[CUresult, CUmemAccess_flags]: ...
    def cuMemGetAllocationGranularity(
        self, prop: CUmemAllocationProp | None, option: CUmemAllocationGranularity_flags, /
    ) -> tuple[CUresult, int]: ...
    def cuMemAddressReserve(
        self, size: int, alignment: int, addr: int, flags: int, /
    ) -> tuple[CUresult, CUdeviceptr]: ...
    def cuMemAddressFree(self, ptr: CUdeviceptr, size: int, /) -> tuple[CUresult]: ...
    def cuMemCreate(
        self, size: int, prop: CUmemAllocationProp | None, flags: int, /
    ) -> tuple[CUresult, CUmemGenericAllocationHandle]: ...
    def cuMemExportToShareableHandle(
        self,
        handle: CUmemGenericAllocationHandle,
        handle_type: CUmemAllocationHandleType,
        flags: int,
        /,
    ) -> tuple[CUresult, int]: ...
    def cuMemImportFromShareableHandle(
        self, os_handle: int, sh_handle_type: CUmemAllocationHandleType, /
    ) -> tuple[CUresult, CUmemGenericAllocationHandle]: ...
    def cuMemRelease(self, handle: CUmemGenericAllocationHandle, /) -> tuple[CUresult]: ...
    def cuMemMap(
        self,
        ptr: CUdeviceptr,
        size: int,
        offset: int,
        handle: CUmemGenericAllocationHandle,
        flags: int,
        /,
    ) -> tuple[CUresult]: ...
    def cuMemSetAccess(
        self, ptr: CUdeviceptr, size: int, desc: list[CUmemAccessDesc], count: int, /
    ) -> tuple[CUresult]: ...
    def cuMemUnmap(self, ptr: CUdeviceptr, size: int, /) -> tuple[CUresult]: ...
    def cuMemPoolTrimTo(self, pool: CUmemoryPool, min_bytes_to_keep: int, /) -> tuple[CUresult]: ...
    def cuMemPoolSetAttribute(
        self, pool: CUmemoryPool, attr: CUmemPool_attribute, value: cuuint64_t, /
    ) -> tuple[CUresult]: ...
    def cuMemPoolGetAttribute(
        self, pool: CUmemoryPool, attr: CUmemPool_attribute, /
    ) -> tuple[CUresult, cuuint64_t]: ...
    def cuMemPoolSetAccess(
        self, pool: CUmemoryPool, map: list[CUmemAccessDesc], count: int, /
    ) -> tuple[CUresult]: ...
    def cuMemPoolExportToShareableHandle(
        self, pool: CUmemoryPool, handle_type: CUmemAllocationHandleType, flags: int, /
    ) -> tuple[CUresult, int]: ...
    def cuMemPoolImportFromShareableHandle(
        self, handle: int, handle_type: CUmemAllocationHandleType, flags: int, /
    ) -> tuple[CUresult, CUmemoryPool]: ...
    def cuMemPoolExportPointer(
        self, ptr: CUdeviceptr, /
    ) -> tuple[CUresult, CUmemPoolPtrExportData]: ...
    def cuMemPoolImportPointer(
        self, pool: CUmemoryPool, share_data: CUmemPoolPtrExportData | None, /
    ) -> tuple[CUresult, CUdeviceptr]: ...
    def cuIpcGetMemHandle(self, dptr: CUdeviceptr, /) -> tuple[CUresult, CUipcMemHandle]: ...
    def cuIpcOpenMemHandle(
        self, handle: CUipcMemHandle, flags: int, /
    ) -> tuple[CUresult, CUdeviceptr]: ...
    def cuIpcCloseMemHandle(self, dptr: CUdeviceptr, /) -> tuple[CUresult]: ...
    def cuPointerGetAttributes(
        self, num_attributes: int, attributes: tuple[CUpointer_attribute, ...], ptr: int, /
    ) -> tuple[CUresult, list[object]]: ...
