"""The seam to the driver: the types and functions of cuda.bindings that cudadrv uses.

Nothing else imports `cuda.bindings.driver`. Two things satisfy `DriverApi`: that module itself and
`cudadrv.emulator.Emulator`. Each function returns what cuda.bindings returns, a tuple whose first
item is the CUresult; the C declarations are in the CUDA Driver API manual under the same names.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar, cast

from cuda.bindings import driver as _cuda
from cuda.bindings.driver import (
    CUDA_ARRAY3D_DESCRIPTOR as CUDA_ARRAY3D_DESCRIPTOR,
    CUDA_CONDITIONAL_NODE_PARAMS as CUDA_CONDITIONAL_NODE_PARAMS,
    CUDA_MEMCPY3D as CUDA_MEMCPY3D,
    CUDA_MEMCPY3D_PEER as CUDA_MEMCPY3D_PEER,
    CUDA_RESOURCE_DESC as CUDA_RESOURCE_DESC,
    CUDA_RESOURCE_VIEW_DESC as CUDA_RESOURCE_VIEW_DESC,
    CUDA_TEXTURE_DESC as CUDA_TEXTURE_DESC,
    CUaddress_mode as CUaddress_mode,
    CUarray as CUarray,
    CUarray_format as CUarray_format,
    CUcontext as CUcontext,
    CUctx_flags as CUctx_flags,
    CUctxCreateParams as CUctxCreateParams,
    CUDA_MEMSET_NODE_PARAMS_v2 as CUDA_MEMSET_NODE_PARAMS_v2,
    CUdevice as CUdevice,
    CUdevice_attribute as CUdevice_attribute,
    CUdeviceptr as CUdeviceptr,
    CUdevResource as CUdevResource,
    CUdevResourceDesc as CUdevResourceDesc,
    CUdevResourceType as CUdevResourceType,
    CUdriverProcAddressQueryResult as CUdriverProcAddressQueryResult,
    CUevent as CUevent,
    CUevent_flags as CUevent_flags,
    CUfilter_mode as CUfilter_mode,
    CUfunc_cache as CUfunc_cache,
    CUfunction as CUfunction,
    CUfunction_attribute as CUfunction_attribute,
    CUgraph as CUgraph,
    CUgraphConditionalHandle as CUgraphConditionalHandle,
    CUgraphConditionalNodeType as CUgraphConditionalNodeType,
    CUgraphEdgeData as CUgraphEdgeData,
    CUgraphExec as CUgraphExec,
    CUgraphExecUpdateResultInfo as CUgraphExecUpdateResultInfo,
    CUgraphNode as CUgraphNode,
    CUgraphNodeParams as CUgraphNodeParams,
    CUgraphNodeType as CUgraphNodeType,
    CUgreenCtx as CUgreenCtx,
    CUipcEventHandle as CUipcEventHandle,
    CUipcMemHandle as CUipcMemHandle,
    CUjit_option as CUjit_option,
    CUjitInputType as CUjitInputType,
    CUkernelNodeAttrID as CUkernelNodeAttrID,
    CUkernelNodeAttrValue as CUkernelNodeAttrValue,
    CUlaunchAttribute as CUlaunchAttribute,
    CUlaunchAttributeID as CUlaunchAttributeID,
    CUlaunchConfig as CUlaunchConfig,
    CUlimit as CUlimit,
    CUlinkState as CUlinkState,
    CUmem_advise as CUmem_advise,
    CUmemAccess_flags as CUmemAccess_flags,
    CUmemAccessDesc as CUmemAccessDesc,
    CUmemAllocationGranularity_flags as CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType as CUmemAllocationHandleType,
    CUmemAllocationProp as CUmemAllocationProp,
    CUmemAllocationType as CUmemAllocationType,
    CUmemGenericAllocationHandle as CUmemGenericAllocationHandle,
    CUmemLocation as CUmemLocation,
    CUmemLocationType as CUmemLocationType,
    CUmemoryPool as CUmemoryPool,
    CUmemorytype as CUmemorytype,
    CUmemPool_attribute as CUmemPool_attribute,
    CUmemPoolProps as CUmemPoolProps,
    CUmemPoolPtrExportData as CUmemPoolPtrExportData,
    CUmipmappedArray as CUmipmappedArray,
    CUmodule as CUmodule,
    CUpointer_attribute as CUpointer_attribute,
    CUresourcetype as CUresourcetype,
    CUresult as CUresult,
    CUstream as CUstream,
    CUstream_flags as CUstream_flags,
    CUstreamCaptureMode as CUstreamCaptureMode,
    CUstreamCaptureStatus as CUstreamCaptureStatus,
    CUsurfObject as CUsurfObject,
    CUtensorMap as CUtensorMap,
    CUtexObject as CUtexObject,
    CUuserObject as CUuserObject,
    CUuuid as CUuuid,
    cuuint64_t as cuuint64_t,
)

from ..errors import (
    CudaError,
    DriverNotFoundError,
    DriverSymbolMissingError,
)

if TYPE_CHECKING:
    import numpy.typing as npt


class MemoryWatch(Protocol):
    """What an emulator that checks bounds wants to know of memory that is kept and lent out again.

    The driver has no such thing, nor has an emulator without that check: `Driver.memory_watch`.
    """

    def lend(self, address: int, nbytes: int) -> None:
        """These bytes are in use: an allocation, or a part of one that is an array of its own."""

    def take_back(self, address: int) -> None:
        """What was lent at an address is not in use any more, though nothing is freed."""


class HostAccesses(Protocol):
    """What an emulator that looks for races wants to know of what the host does by itself.

    The driver has no such thing, nor has an emulator without that check: `Driver.host_accesses`.
    """

    def host_reads(self, array: npt.NDArray[Any], /) -> None:
        """The library reads an array of the host for its user now, which may be pinned."""


class DriverApi(Protocol):
    """The driver functions in use, with the signatures of cuda.bindings 13."""

    def cuInit(self, flags: int, /) -> tuple[CUresult]: ...
    def cuDriverGetVersion(self) -> tuple[CUresult, int]: ...
    def cuGetErrorString(self, error: CUresult, /) -> tuple[CUresult, bytes | None]: ...
    def cuDeviceGetCount(self) -> tuple[CUresult, int]: ...
    def cuDeviceGet(self, ordinal: int, /) -> tuple[CUresult, CUdevice]: ...
    def cuDeviceGetName(self, length: int, dev: CUdevice, /) -> tuple[CUresult, bytes]: ...
    def cuDeviceGetUuid(self, dev: CUdevice, /) -> tuple[CUresult, CUuuid]: ...
    def cuDeviceGetPCIBusId(self, length: int, dev: CUdevice, /) -> tuple[CUresult, bytes]: ...
    def cuDeviceTotalMem(self, dev: CUdevice, /) -> tuple[CUresult, int]: ...
    def cuDeviceGetAttribute(
        self, attrib: CUdevice_attribute, dev: CUdevice, /
    ) -> tuple[CUresult, int]: ...
    def cuDeviceCanAccessPeer(
        self, dev: CUdevice, peer_dev: CUdevice, /
    ) -> tuple[CUresult, int]: ...
    def cuDeviceGetDefaultMemPool(self, dev: CUdevice, /) -> tuple[CUresult, CUmemoryPool]: ...
    def cuDevicePrimaryCtxRetain(self, dev: CUdevice, /) -> tuple[CUresult, CUcontext]: ...
    def cuDevicePrimaryCtxReset(self, dev: CUdevice, /) -> tuple[CUresult]: ...
    def cuCtxCreate(
        self, ctx_create_params: CUctxCreateParams | None, flags: int, dev: CUdevice, /
    ) -> tuple[CUresult, CUcontext]: ...
    def cuCtxDestroy(self, ctx: CUcontext, /) -> tuple[CUresult]: ...
    def cuDeviceGetDevResource(
        self, device: CUdevice, kind: CUdevResourceType, /
    ) -> tuple[CUresult, CUdevResource]: ...
    def cuCtxGetDevResource(
        self, h_ctx: CUcontext, kind: CUdevResourceType, /
    ) -> tuple[CUresult, CUdevResource]: ...
    def cuDevSmResourceSplitByCount(
        self, nb_groups: int, input: CUdevResource | None, flags: int, min_count: int, /
    ) -> tuple[CUresult, list[CUdevResource], int, CUdevResource]: ...
    def cuDevResourceGenerateDesc(
        self, resources: list[CUdevResource] | None, nb_resources: int, /
    ) -> tuple[CUresult, CUdevResourceDesc]: ...
    def cuGreenCtxCreate(
        self, desc: CUdevResourceDesc, dev: CUdevice, flags: int, /
    ) -> tuple[CUresult, CUgreenCtx]: ...
    def cuGreenCtxDestroy(self, h_ctx: CUgreenCtx, /) -> tuple[CUresult]: ...
    def cuCtxFromGreenCtx(self, h_ctx: CUgreenCtx, /) -> tuple[CUresult, CUcontext]: ...
    def cuGreenCtxStreamCreate(
        self, green_ctx: CUgreenCtx, flags: int, priority: int, /
    ) -> tuple[CUresult, CUstream]: ...
    def cuCtxGetCurrent(self) -> tuple[CUresult, CUcontext]: ...
    def cuCtxSetCurrent(self, ctx: CUcontext, /) -> tuple[CUresult]: ...
    def cuCtxPushCurrent(self, ctx: CUcontext, /) -> tuple[CUresult]: ...
    def cuCtxPopCurrent(self) -> tuple[CUresult, CUcontext]: ...
    def cuCtxSynchronize(self) -> tuple[CUresult]: ...
    def cuCtxEnablePeerAccess(self, peer_context: CUcontext, flags: int, /) -> tuple[CUresult]: ...
    def cuCtxGetLimit(self, limit: CUlimit, /) -> tuple[CUresult, int]: ...
    def cuCtxSetLimit(self, limit: CUlimit, value: int, /) -> tuple[CUresult]: ...
    def cuCtxGetCacheConfig(self) -> tuple[CUresult, CUfunc_cache]: ...
    def cuCtxSetCacheConfig(self, config: CUfunc_cache, /) -> tuple[CUresult]: ...
    def cuProfilerStart(self) -> tuple[CUresult]: ...
    def cuProfilerStop(self) -> tuple[CUresult]: ...
    def cuCtxGetStreamPriorityRange(self) -> tuple[CUresult, int, int]: ...
    def cuStreamCreateWithPriority(
        self, flags: int, priority: int, /
    ) -> tuple[CUresult, CUstream]: ...
    def cuStreamDestroy(self, h_stream: CUstream, /) -> tuple[CUresult]: ...
    def cuStreamSynchronize(self, h_stream: CUstream, /) -> tuple[CUresult]: ...
    def cuStreamQuery(self, h_stream: CUstream, /) -> tuple[CUresult]: ...
    def cuStreamGetPriority(self, h_stream: CUstream, /) -> tuple[CUresult, int]: ...
    def cuStreamGetFlags(self, h_stream: CUstream, /) -> tuple[CUresult, int]: ...
    def cuStreamGetCtx(self, h_stream: CUstream, /) -> tuple[CUresult, CUcontext]: ...
    def cuLaunchHostFunc(
        self, h_stream: CUstream, fn: int, user_data: int, /
    ) -> tuple[CUresult]: ...
    def cuStreamWaitEvent(
        self, h_stream: CUstream, h_event: CUevent, flags: int, /
    ) -> tuple[CUresult]: ...
    def cuStreamBeginCapture(
        self, h_stream: CUstream, mode: CUstreamCaptureMode, /
    ) -> tuple[CUresult]: ...
    def cuStreamEndCapture(self, h_stream: CUstream, /) -> tuple[CUresult, CUgraph]: ...
    def cuStreamIsCapturing(
        self, h_stream: CUstream, /
    ) -> tuple[CUresult, CUstreamCaptureStatus]: ...
    def cuStreamBeginCaptureToGraph(
        self,
        h_stream: CUstream,
        h_graph: CUgraph,
        dependencies: list[CUgraphNode] | None,
        dependency_data: list[CUgraphEdgeData] | None,
        num_dependencies: int,
        mode: CUstreamCaptureMode,
        /,
    ) -> tuple[CUresult]: ...
    def cuStreamGetCaptureInfo(
        self, h_stream: CUstream, /
    ) -> tuple[
        CUresult,
        CUstreamCaptureStatus,
        cuuint64_t,
        CUgraph,
        list[CUgraphNode] | None,
        list[CUgraphEdgeData] | None,
        int,
    ]: ...
    def cuStreamUpdateCaptureDependencies(
        self,
        h_stream: CUstream,
        dependencies: list[CUgraphNode] | None,
        dependency_data: list[CUgraphEdgeData] | None,
        num_dependencies: int,
        flags: int,
        /,
    ) -> tuple[CUresult]: ...
    def cuEventCreate(self, flags: int, /) -> tuple[CUresult, CUevent]: ...
    def cuEventDestroy(self, h_event: CUevent, /) -> tuple[CUresult]: ...
    def cuEventRecord(self, h_event: CUevent, h_stream: CUstream, /) -> tuple[CUresult]: ...
    def cuEventQuery(self, h_event: CUevent, /) -> tuple[CUresult]: ...
    def cuEventSynchronize(self, h_event: CUevent, /) -> tuple[CUresult]: ...
    def cuEventElapsedTime(self, h_start: CUevent, h_end: CUevent, /) -> tuple[CUresult, float]: ...
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
    def cuMemcpy3DAsync(
        self, copy: CUDA_MEMCPY3D | None, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuMemcpy3DPeerAsync(
        self, copy: CUDA_MEMCPY3D_PEER | None, h_stream: CUstream, /
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
    def cuGetProcAddress(
        self, symbol: bytes, cuda_version: int, flags: int, /
    ) -> tuple[CUresult, int, CUdriverProcAddressQueryResult]: ...
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
    def cuIpcGetEventHandle(self, event: CUevent, /) -> tuple[CUresult, CUipcEventHandle]: ...
    def cuIpcOpenEventHandle(self, handle: CUipcEventHandle, /) -> tuple[CUresult, CUevent]: ...
    def cuPointerGetAttributes(
        self, num_attributes: int, attributes: tuple[CUpointer_attribute, ...], ptr: int, /
    ) -> tuple[CUresult, list[object]]: ...
    def cuModuleLoadData(self, image: bytes, /) -> tuple[CUresult, CUmodule]: ...
    def cuModuleLoadDataEx(
        self,
        image: bytes,
        num_options: int,
        options: tuple[CUjit_option, ...],
        option_values: tuple[object, ...],
        /,
    ) -> tuple[CUresult, CUmodule]: ...
    def cuLinkCreate(
        self,
        num_options: int,
        options: tuple[CUjit_option, ...],
        option_values: tuple[object, ...],
        /,
    ) -> tuple[CUresult, CUlinkState]: ...
    def cuLinkAddData(
        self,
        state: CUlinkState,
        kind: CUjitInputType,
        data: bytes,
        size: int,
        name: bytes,
        num_options: int,
        options: tuple[CUjit_option, ...],
        option_values: tuple[object, ...],
        /,
    ) -> tuple[CUresult]: ...
    def cuLinkComplete(self, state: CUlinkState, /) -> tuple[CUresult, int, int]: ...
    def cuLinkDestroy(self, state: CUlinkState, /) -> tuple[CUresult]: ...
    def cuModuleUnload(self, hmod: CUmodule, /) -> tuple[CUresult]: ...
    def cuModuleGetFunction(
        self, hmod: CUmodule, name: bytes, /
    ) -> tuple[CUresult, CUfunction]: ...
    def cuModuleGetGlobal(
        self, hmod: CUmodule, name: bytes, /
    ) -> tuple[CUresult, CUdeviceptr, int]: ...
    def cuModuleGetFunctionCount(self, mod: CUmodule, /) -> tuple[CUresult, int]: ...
    def cuModuleEnumerateFunctions(
        self, num_functions: int, mod: CUmodule, /
    ) -> tuple[CUresult, list[CUfunction]]: ...
    def cuFuncGetName(self, hfunc: CUfunction, /) -> tuple[CUresult, bytes | None]: ...
    def cuFuncGetAttribute(
        self, attrib: CUfunction_attribute, hfunc: CUfunction, /
    ) -> tuple[CUresult, int]: ...
    def cuFuncSetAttribute(
        self, hfunc: CUfunction, attrib: CUfunction_attribute, value: int, /
    ) -> tuple[CUresult]: ...
    def cuFuncGetParamInfo(
        self, func: CUfunction, param_index: int, /
    ) -> tuple[CUresult, int, int]: ...
    def cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, func: CUfunction, block_size: int, dynamic_smem_size: int, /
    ) -> tuple[CUresult, int]: ...
    def cuOccupancyMaxActiveClusters(
        self, func: CUfunction, config: CUlaunchConfig, /
    ) -> tuple[CUresult, int]: ...
    def cuOccupancyMaxPotentialClusterSize(
        self, func: CUfunction, config: CUlaunchConfig, /
    ) -> tuple[CUresult, int]: ...
    def cuLaunchKernelEx(
        self, config: CUlaunchConfig, f: CUfunction, kernel_params: int, extra: int, /
    ) -> tuple[CUresult]: ...
    def cuGraphInstantiate(
        self, h_graph: CUgraph, flags: int, /
    ) -> tuple[CUresult, CUgraphExec]: ...
    def cuGraphExecUpdate(
        self, h_graph_exec: CUgraphExec, h_graph: CUgraph, /
    ) -> tuple[CUresult, CUgraphExecUpdateResultInfo]: ...
    def cuGraphLaunch(
        self, h_graph_exec: CUgraphExec, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuGraphDestroy(self, h_graph: CUgraph, /) -> tuple[CUresult]: ...
    def cuGraphExecDestroy(self, h_graph_exec: CUgraphExec, /) -> tuple[CUresult]: ...
    def cuGraphGetNodes(
        self, h_graph: CUgraph, num_nodes: int, /
    ) -> tuple[CUresult, list[CUgraphNode] | None, int]: ...
    def cuGraphCreate(self, flags: int, /) -> tuple[CUresult, CUgraph]: ...
    def cuGraphClone(self, original_graph: CUgraph, /) -> tuple[CUresult, CUgraph]: ...
    def cuGraphAddNode(
        self,
        h_graph: CUgraph,
        dependencies: list[CUgraphNode] | None,
        dependency_data: list[CUgraphEdgeData] | None,
        num_dependencies: int,
        node_params: CUgraphNodeParams | None,
        /,
    ) -> tuple[CUresult, CUgraphNode]: ...
    def cuGraphNodeSetParams(
        self, h_node: CUgraphNode, node_params: CUgraphNodeParams | None, /
    ) -> tuple[CUresult]: ...
    def cuGraphExecNodeSetParams(
        self,
        h_graph_exec: CUgraphExec,
        h_node: CUgraphNode,
        node_params: CUgraphNodeParams | None,
        /,
    ) -> tuple[CUresult]: ...
    def cuGraphKernelNodeSetAttribute(
        self,
        h_node: CUgraphNode,
        attr: CUkernelNodeAttrID,
        value: CUkernelNodeAttrValue | None,
        /,
    ) -> tuple[CUresult]: ...
    def cuGraphConditionalHandleCreate(
        self, h_graph: CUgraph, ctx: CUcontext, default_launch_value: int, flags: int, /
    ) -> tuple[CUresult, CUgraphConditionalHandle]: ...
    def cuGraphDestroyNode(self, h_node: CUgraphNode, /) -> tuple[CUresult]: ...
    def cuGraphAddDependencies(
        self,
        h_graph: CUgraph,
        from_: list[CUgraphNode] | None,
        to: list[CUgraphNode] | None,
        edge_data: list[CUgraphEdgeData] | None,
        num_dependencies: int,
        /,
    ) -> tuple[CUresult]: ...
    def cuGraphRemoveDependencies(
        self,
        h_graph: CUgraph,
        from_: list[CUgraphNode] | None,
        to: list[CUgraphNode] | None,
        edge_data: list[CUgraphEdgeData] | None,
        num_dependencies: int,
        /,
    ) -> tuple[CUresult]: ...
    def cuGraphGetEdges(
        self, h_graph: CUgraph, num_edges: int, /
    ) -> tuple[
        CUresult,
        list[CUgraphNode] | None,
        list[CUgraphNode] | None,
        list[CUgraphEdgeData] | None,
        int,
    ]: ...
    def cuGraphNodeGetType(self, h_node: CUgraphNode, /) -> tuple[CUresult, CUgraphNodeType]: ...
    def cuGraphNodeSetEnabled(
        self, h_graph_exec: CUgraphExec, h_node: CUgraphNode, is_enabled: int, /
    ) -> tuple[CUresult]: ...
    def cuGraphNodeGetEnabled(
        self, h_graph_exec: CUgraphExec, h_node: CUgraphNode, /
    ) -> tuple[CUresult, int]: ...
    def cuGraphUpload(
        self, h_graph_exec: CUgraphExec, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuGraphDebugDotPrint(
        self, h_graph: CUgraph, path: bytes, flags: int, /
    ) -> tuple[CUresult]: ...
    def cuGraphReleaseUserObject(
        self, graph: CUgraph, object: CUuserObject, count: int, /
    ) -> tuple[CUresult]: ...
    def cuGraphRetainUserObject(
        self, graph: CUgraph, object: CUuserObject, count: int, flags: int, /
    ) -> tuple[CUresult]: ...
    def cuUserObjectCreate(
        self, ptr: int, destroy: int, initial_refcount: int, flags: int, /
    ) -> tuple[CUresult, CUuserObject]: ...
    def cuUserObjectRelease(self, object: CUuserObject, count: int, /) -> tuple[CUresult]: ...


_P = ParamSpec("_P")
_R = TypeVar("_R")
_T = TypeVar("_T", CUipcMemHandle, CUipcEventHandle, CUmemPoolPtrExportData)

OPAQUE_BYTES: Final = 64
"""The size of what the driver gives to be sent to another process."""


def opaque_bytes(value: CUipcMemHandle | CUipcEventHandle | CUmemPoolPtrExportData) -> bytes:
    """What the driver gave to be sent to another process, as bytes."""
    return ctypes.string_at(value.getPtr(), OPAQUE_BYTES)


def of_opaque_bytes(kind: type[_T], content: bytes) -> _T:
    """Such bytes, of which there are `OPAQUE_BYTES`, as the driver takes them."""
    value = kind()
    ctypes.memmove(value.getPtr(), content, OPAQUE_BYTES)
    return value


# In 12.9 these names carry the signatures that 13 gives the plain ones. The table is fixed: the
# highest suffix is not always the newest signature.
_RENAMED_BEFORE_13: Final = {
    "cuCtxCreate": "cuCtxCreate_v4",
    "cuGraphAddDependencies": "cuGraphAddDependencies_v2",
    "cuGraphAddNode": "cuGraphAddNode_v2",
    "cuGraphGetEdges": "cuGraphGetEdges_v2",
    "cuGraphRemoveDependencies": "cuGraphRemoveDependencies_v2",
    "cuStreamGetCaptureInfo": "cuStreamGetCaptureInfo_v3",
    "cuStreamUpdateCaptureDependencies": "cuStreamUpdateCaptureDependencies_v2",
    "cuMemAdvise": "cuMemAdvise_v2",
    "cuMemPrefetchAsync": "cuMemPrefetchAsync_v2",
}

# Called on the paths where a microsecond counts, so taken from the module as they are.
_HOT: Final = frozenset(
    {
        "cuLaunchKernelEx", "cuGraphLaunch", "cuMemAllocAsync", "cuMemFreeAsync",
        "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyDtoDAsync",
        "cuEventRecord", "cuEventSynchronize", "cuStreamSynchronize", "cuStreamWaitEvent",
        "cuCtxGetCurrent", "cuCtxSetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent",
        "cuPointerGetAttributes",
    }
)  # fmt: skip


def _translated(function: Callable[_P, _R], /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Call, with a binding's own exceptions typed: a missing symbol, an unknown result."""
    try:
        return function(*args, **kwargs)
    except (KeyError, ValueError) as error:
        if "CUresult" not in str(error):
            raise
        raise CudaError(
            f"the driver answered a result that cuda-bindings does not know ({error}): "
            "update cuda-python",
            call=function.__name__,
        ) from error
    except RuntimeError as error:
        # Forty modules, which many versions of cuda.bindings import only to look for NVRTC.
        from cuda.pathfinder import DynamicLibNotFoundError

        # Every driver has cuInit; older bindings say no more than that they did not find it.
        if isinstance(error, DynamicLibNotFoundError) or function.__name__ == "cuInit":
            raise driver_not_found(error) from error
        raise DriverSymbolMissingError(
            f"{function.__name__} is not in the installed driver ({error}): update the driver"
        ) from error


def driver_not_found(error: Exception) -> DriverNotFoundError:
    first_line = str(error).partition("\n")[0]
    return DriverNotFoundError(
        "no CUDA driver was found\n  install the NVIDIA driver, or run on the emulator: set "
        f"CUDADRV_DRIVER=emulator or call cudadrv.emulator.use()\n  (the loader said: {first_line})"
    )


class _Functions:
    """Driver functions as attributes, which Python reads faster than those of a namespace."""


def load_cuda() -> DriverApi:
    """cuda.bindings.driver with the names and signatures of 13, whatever its version."""
    renamed = _RENAMED_BEFORE_13 if _cuda.CUDA_VERSION < 13000 else {}
    functions = _Functions()
    for name in vars(DriverApi):
        if name.startswith("cu"):
            function = getattr(_cuda, renamed.get(name, name))
            setattr(functions, name, function if name in _HOT else partial(_translated, function))
    # What is filled at run time cannot be checked against a protocol;
    # `_module_satisfies_the_protocol` checks the module that fills it.
    return cast(DriverApi, functions)


def _module_satisfies_the_protocol() -> DriverApi:
    """For the type checker alone: the module itself is a `DriverApi`."""
    return _cuda
