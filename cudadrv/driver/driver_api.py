"""The protocol of the driver: the functions that cudadrv calls, as in cuda.bindings 13.

Made by tools/generate_driver_api.py. Each returns what cuda.bindings returns, a tuple whose first
item is the CUresult; the C declarations are in the CUDA Driver API manual under the same names.
"""

from __future__ import annotations

from typing import Final, Protocol

from ._api import (
    CUDA_ARRAY3D_DESCRIPTOR,
    CUDA_MEMCPY3D,
    CUDA_MEMCPY3D_PEER,
    CUDA_RESOURCE_DESC,
    CUDA_RESOURCE_VIEW_DESC,
    CUDA_TEXTURE_DESC,
    CUarray,
    CUcontext,
    CUctxCreateParams,
    CUdevice,
    CUdevice_attribute,
    CUdeviceptr,
    CUdevResource,
    CUdevResourceDesc,
    CUdevResourceType,
    CUdriverProcAddressQueryResult,
    CUevent,
    CUfunc_cache,
    CUfunction,
    CUfunction_attribute,
    CUgraph,
    CUgraphConditionalHandle,
    CUgraphEdgeData,
    CUgraphExec,
    CUgraphExecUpdateResultInfo,
    CUgraphNode,
    CUgraphNodeParams,
    CUgraphNodeType,
    CUgreenCtx,
    CUipcEventHandle,
    CUipcMemHandle,
    CUjit_option,
    CUjitInputType,
    CUkernelNodeAttrID,
    CUkernelNodeAttrValue,
    CUlaunchConfig,
    CUlimit,
    CUlinkState,
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
    CUmipmappedArray,
    CUmodule,
    CUpointer_attribute,
    CUresult,
    CUstream,
    CUstreamCaptureMode,
    CUstreamCaptureStatus,
    CUsurfObject,
    CUtexObject,
    CUuserObject,
    CUuuid,
    cuuint64_t,
)


class DriverApi(Protocol):
    """The functions of the driver or of the emulator."""

    def cuDeviceCanAccessPeer(
        self, dev: CUdevice, peer_dev: CUdevice, /
    ) -> tuple[CUresult, int]: ...
    def cuDeviceGet(self, ordinal: int, /) -> tuple[CUresult, CUdevice]: ...
    def cuDeviceGetAttribute(
        self, attrib: CUdevice_attribute, dev: CUdevice, /
    ) -> tuple[CUresult, int]: ...
    def cuDeviceGetCount(self) -> tuple[CUresult, int]: ...
    def cuDeviceGetDefaultMemPool(self, dev: CUdevice, /) -> tuple[CUresult, CUmemoryPool]: ...
    def cuDeviceGetDevResource(
        self, device: CUdevice, kind: CUdevResourceType, /
    ) -> tuple[CUresult, CUdevResource]: ...
    def cuDeviceGetName(self, length: int, dev: CUdevice, /) -> tuple[CUresult, bytes]: ...
    def cuDeviceGetPCIBusId(self, length: int, dev: CUdevice, /) -> tuple[CUresult, bytes]: ...
    def cuDeviceGetUuid(self, dev: CUdevice, /) -> tuple[CUresult, CUuuid]: ...
    def cuDeviceTotalMem(self, dev: CUdevice, /) -> tuple[CUresult, int]: ...
    def cuDriverGetVersion(self) -> tuple[CUresult, int]: ...
    def cuGetErrorString(self, error: CUresult, /) -> tuple[CUresult, bytes | None]: ...
    def cuGetProcAddress(
        self, symbol: bytes, cuda_version: int, flags: int, /
    ) -> tuple[CUresult, int, CUdriverProcAddressQueryResult]: ...
    def cuInit(self, flags: int, /) -> tuple[CUresult]: ...
    def cuCtxCreate(
        self, ctx_create_params: CUctxCreateParams | None, flags: int, dev: CUdevice, /
    ) -> tuple[CUresult, CUcontext]: ...
    def cuCtxDestroy(self, ctx: CUcontext, /) -> tuple[CUresult]: ...
    def cuCtxEnablePeerAccess(self, peer_context: CUcontext, flags: int, /) -> tuple[CUresult]: ...
    def cuCtxFromGreenCtx(self, h_ctx: CUgreenCtx, /) -> tuple[CUresult, CUcontext]: ...
    def cuCtxGetCacheConfig(self) -> tuple[CUresult, CUfunc_cache]: ...
    def cuCtxGetCurrent(self) -> tuple[CUresult, CUcontext]: ...
    def cuCtxGetDevResource(
        self, h_ctx: CUcontext, kind: CUdevResourceType, /
    ) -> tuple[CUresult, CUdevResource]: ...
    def cuCtxGetDevice(self) -> tuple[CUresult, CUdevice]: ...
    def cuCtxGetLimit(self, limit: CUlimit, /) -> tuple[CUresult, int]: ...
    def cuCtxGetStreamPriorityRange(self) -> tuple[CUresult, int, int]: ...
    def cuCtxPopCurrent(self) -> tuple[CUresult, CUcontext]: ...
    def cuCtxPushCurrent(self, ctx: CUcontext, /) -> tuple[CUresult]: ...
    def cuCtxSetCacheConfig(self, config: CUfunc_cache, /) -> tuple[CUresult]: ...
    def cuCtxSetCurrent(self, ctx: CUcontext, /) -> tuple[CUresult]: ...
    def cuCtxSetLimit(self, limit: CUlimit, value: int, /) -> tuple[CUresult]: ...
    def cuCtxSynchronize(self) -> tuple[CUresult]: ...
    def cuDevResourceGenerateDesc(
        self,
        resources: list[CUdevResource] | tuple[CUdevResource, ...] | None,
        nb_resources: int,
        /,
    ) -> tuple[CUresult, CUdevResourceDesc]: ...
    def cuDevSmResourceSplitByCount(
        self, nb_groups: int, input: CUdevResource | None, flags: int, min_count: int, /
    ) -> tuple[CUresult, list[CUdevResource], int, CUdevResource]: ...
    def cuDevicePrimaryCtxReset(self, dev: CUdevice, /) -> tuple[CUresult]: ...
    def cuDevicePrimaryCtxRetain(self, dev: CUdevice, /) -> tuple[CUresult, CUcontext]: ...
    def cuGreenCtxCreate(
        self, desc: CUdevResourceDesc, dev: CUdevice, flags: int, /
    ) -> tuple[CUresult, CUgreenCtx]: ...
    def cuGreenCtxDestroy(self, h_ctx: CUgreenCtx, /) -> tuple[CUresult]: ...
    def cuGreenCtxStreamCreate(
        self, green_ctx: CUgreenCtx, flags: int, priority: int, /
    ) -> tuple[CUresult, CUstream]: ...
    def cuProfilerStart(self) -> tuple[CUresult]: ...
    def cuProfilerStop(self) -> tuple[CUresult]: ...
    def cuEventCreate(self, flags: int, /) -> tuple[CUresult, CUevent]: ...
    def cuEventDestroy(self, h_event: CUevent, /) -> tuple[CUresult]: ...
    def cuEventElapsedTime(self, h_start: CUevent, h_end: CUevent, /) -> tuple[CUresult, float]: ...
    def cuEventQuery(self, h_event: CUevent, /) -> tuple[CUresult]: ...
    def cuEventRecord(self, h_event: CUevent, h_stream: CUstream, /) -> tuple[CUresult]: ...
    def cuEventSynchronize(self, h_event: CUevent, /) -> tuple[CUresult]: ...
    def cuIpcGetEventHandle(self, event: CUevent, /) -> tuple[CUresult, CUipcEventHandle]: ...
    def cuIpcOpenEventHandle(self, handle: CUipcEventHandle, /) -> tuple[CUresult, CUevent]: ...
    def cuLaunchHostFunc(
        self, h_stream: CUstream, fn: int, user_data: int, /
    ) -> tuple[CUresult]: ...
    def cuStreamAttachMemAsync(
        self, h_stream: CUstream, dptr: CUdeviceptr, length: int, flags: int, /
    ) -> tuple[CUresult]: ...
    def cuStreamBeginCapture(
        self, h_stream: CUstream, mode: CUstreamCaptureMode, /
    ) -> tuple[CUresult]: ...
    def cuStreamBeginCaptureToGraph(
        self,
        h_stream: CUstream,
        h_graph: CUgraph,
        dependencies: list[CUgraphNode] | tuple[CUgraphNode, ...] | None,
        dependency_data: list[CUgraphEdgeData] | tuple[CUgraphEdgeData, ...] | None,
        num_dependencies: int,
        mode: CUstreamCaptureMode,
        /,
    ) -> tuple[CUresult]: ...
    def cuStreamCreateWithPriority(
        self, flags: int, priority: int, /
    ) -> tuple[CUresult, CUstream]: ...
    def cuStreamDestroy(self, h_stream: CUstream, /) -> tuple[CUresult]: ...
    def cuStreamEndCapture(self, h_stream: CUstream, /) -> tuple[CUresult, CUgraph]: ...
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
    def cuStreamGetCtx(self, h_stream: CUstream, /) -> tuple[CUresult, CUcontext]: ...
    def cuStreamGetFlags(self, h_stream: CUstream, /) -> tuple[CUresult, int]: ...
    def cuStreamGetPriority(self, h_stream: CUstream, /) -> tuple[CUresult, int]: ...
    def cuStreamIsCapturing(
        self, h_stream: CUstream, /
    ) -> tuple[CUresult, CUstreamCaptureStatus]: ...
    def cuStreamQuery(self, h_stream: CUstream, /) -> tuple[CUresult]: ...
    def cuStreamSynchronize(self, h_stream: CUstream, /) -> tuple[CUresult]: ...
    def cuStreamUpdateCaptureDependencies(
        self,
        h_stream: CUstream,
        dependencies: list[CUgraphNode] | tuple[CUgraphNode, ...] | None,
        dependency_data: list[CUgraphEdgeData] | tuple[CUgraphEdgeData, ...] | None,
        num_dependencies: int,
        flags: int,
        /,
    ) -> tuple[CUresult]: ...
    def cuStreamWaitEvent(
        self, h_stream: CUstream, h_event: CUevent, flags: int, /
    ) -> tuple[CUresult]: ...
    def cuMemcpy3DAsync(
        self, copy: CUDA_MEMCPY3D | None, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuMemcpy3DPeerAsync(
        self, copy: CUDA_MEMCPY3D_PEER | None, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuMemcpyDtoDAsync(
        self,
        dst_device: CUdeviceptr,
        src_device: CUdeviceptr,
        byte_count: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]: ...
    def cuMemcpyDtoHAsync(
        self, dst_host: int, src_device: CUdeviceptr, byte_count: int, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuMemcpyHtoDAsync(
        self, dst_device: CUdeviceptr, src_host: int, byte_count: int, h_stream: CUstream, /
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
    def cuMemsetD16Async(
        self, dst_device: CUdeviceptr, us: int, n: int, h_stream: CUstream, /
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
    def cuMemsetD32Async(
        self, dst_device: CUdeviceptr, ui: int, n: int, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuMemsetD8Async(
        self, dst_device: CUdeviceptr, uc: int, n: int, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuIpcCloseMemHandle(self, dptr: CUdeviceptr, /) -> tuple[CUresult]: ...
    def cuIpcGetMemHandle(self, dptr: CUdeviceptr, /) -> tuple[CUresult, CUipcMemHandle]: ...
    def cuIpcOpenMemHandle(
        self, handle: CUipcMemHandle, flags: int, /
    ) -> tuple[CUresult, CUdeviceptr]: ...
    def cuMemAddressFree(self, ptr: CUdeviceptr, size: int, /) -> tuple[CUresult]: ...
    def cuMemAddressReserve(
        self, size: int, alignment: int, addr: int, flags: int, /
    ) -> tuple[CUresult, CUdeviceptr]: ...
    def cuMemAdvise(
        self, dev_ptr: CUdeviceptr, count: int, advice: CUmem_advise, location: CUmemLocation, /
    ) -> tuple[CUresult]: ...
    def cuMemAlloc(self, bytesize: int, /) -> tuple[CUresult, CUdeviceptr]: ...
    def cuMemAllocAsync(
        self, bytesize: int, h_stream: CUstream, /
    ) -> tuple[CUresult, CUdeviceptr]: ...
    def cuMemAllocFromPoolAsync(
        self, bytesize: int, pool: CUmemoryPool, h_stream: CUstream, /
    ) -> tuple[CUresult, CUdeviceptr]: ...
    def cuMemAllocManaged(self, bytesize: int, flags: int, /) -> tuple[CUresult, CUdeviceptr]: ...
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
    def cuMemFree(self, dptr: CUdeviceptr, /) -> tuple[CUresult]: ...
    def cuMemFreeAsync(self, dptr: CUdeviceptr, h_stream: CUstream, /) -> tuple[CUresult]: ...
    def cuMemFreeHost(self, p: int, /) -> tuple[CUresult]: ...
    def cuMemGetAllocationGranularity(
        self, prop: CUmemAllocationProp | None, option: CUmemAllocationGranularity_flags, /
    ) -> tuple[CUresult, int]: ...
    def cuMemGetInfo(self) -> tuple[CUresult, int, int]: ...
    def cuMemHostAlloc(self, bytesize: int, flags: int, /) -> tuple[CUresult, int]: ...
    def cuMemHostRegister(self, p: int, bytesize: int, flags: int, /) -> tuple[CUresult]: ...
    def cuMemHostUnregister(self, p: int, /) -> tuple[CUresult]: ...
    def cuMemImportFromShareableHandle(
        self, os_handle: int, sh_handle_type: CUmemAllocationHandleType, /
    ) -> tuple[CUresult, CUmemGenericAllocationHandle]: ...
    def cuMemMap(
        self,
        ptr: CUdeviceptr,
        size: int,
        offset: int,
        handle: CUmemGenericAllocationHandle,
        flags: int,
        /,
    ) -> tuple[CUresult]: ...
    def cuMemPoolCreate(
        self, pool_props: CUmemPoolProps | None, /
    ) -> tuple[CUresult, CUmemoryPool]: ...
    def cuMemPoolDestroy(self, pool: CUmemoryPool, /) -> tuple[CUresult]: ...
    def cuMemPoolExportPointer(
        self, ptr: CUdeviceptr, /
    ) -> tuple[CUresult, CUmemPoolPtrExportData]: ...
    def cuMemPoolExportToShareableHandle(
        self, pool: CUmemoryPool, handle_type: CUmemAllocationHandleType, flags: int, /
    ) -> tuple[CUresult, int]: ...
    def cuMemPoolGetAccess(
        self, mem_pool: CUmemoryPool, location: CUmemLocation | None, /
    ) -> tuple[CUresult, CUmemAccess_flags]: ...
    def cuMemPoolGetAttribute(
        self, pool: CUmemoryPool, attr: CUmemPool_attribute, /
    ) -> tuple[CUresult, cuuint64_t]: ...
    def cuMemPoolImportFromShareableHandle(
        self, handle: int, handle_type: CUmemAllocationHandleType, flags: int, /
    ) -> tuple[CUresult, CUmemoryPool]: ...
    def cuMemPoolImportPointer(
        self, pool: CUmemoryPool, share_data: CUmemPoolPtrExportData | None, /
    ) -> tuple[CUresult, CUdeviceptr]: ...
    def cuMemPoolSetAccess(
        self,
        pool: CUmemoryPool,
        map: list[CUmemAccessDesc] | tuple[CUmemAccessDesc, ...],
        count: int,
        /,
    ) -> tuple[CUresult]: ...
    def cuMemPoolSetAttribute(
        self, pool: CUmemoryPool, attr: CUmemPool_attribute, value: cuuint64_t, /
    ) -> tuple[CUresult]: ...
    def cuMemPoolTrimTo(self, pool: CUmemoryPool, min_bytes_to_keep: int, /) -> tuple[CUresult]: ...
    def cuMemPrefetchAsync(
        self,
        dev_ptr: CUdeviceptr,
        count: int,
        location: CUmemLocation,
        flags: int,
        h_stream: CUstream,
        /,
    ) -> tuple[CUresult]: ...
    def cuMemRelease(self, handle: CUmemGenericAllocationHandle, /) -> tuple[CUresult]: ...
    def cuMemSetAccess(
        self,
        ptr: CUdeviceptr,
        size: int,
        desc: list[CUmemAccessDesc] | tuple[CUmemAccessDesc, ...],
        count: int,
        /,
    ) -> tuple[CUresult]: ...
    def cuMemUnmap(self, ptr: CUdeviceptr, size: int, /) -> tuple[CUresult]: ...
    def cuPointerGetAttributes(
        self,
        num_attributes: int,
        attributes: list[CUpointer_attribute] | tuple[CUpointer_attribute, ...],
        ptr: int,
        /,
    ) -> tuple[CUresult, list[object]]: ...
    def cuArray3DCreate(
        self, allocate_array: CUDA_ARRAY3D_DESCRIPTOR | None, /
    ) -> tuple[CUresult, CUarray]: ...
    def cuArrayDestroy(self, h_array: CUarray, /) -> tuple[CUresult]: ...
    def cuMipmappedArrayCreate(
        self, mipmapped_array_desc: CUDA_ARRAY3D_DESCRIPTOR | None, num_mipmap_levels: int, /
    ) -> tuple[CUresult, CUmipmappedArray]: ...
    def cuMipmappedArrayDestroy(
        self, h_mipmapped_array: CUmipmappedArray, /
    ) -> tuple[CUresult]: ...
    def cuMipmappedArrayGetLevel(
        self, h_mipmapped_array: CUmipmappedArray, level: int, /
    ) -> tuple[CUresult, CUarray]: ...
    def cuSurfObjectCreate(
        self, res_desc: CUDA_RESOURCE_DESC | None, /
    ) -> tuple[CUresult, CUsurfObject]: ...
    def cuSurfObjectDestroy(self, surf_object: CUsurfObject, /) -> tuple[CUresult]: ...
    def cuTexObjectCreate(
        self,
        res_desc: CUDA_RESOURCE_DESC | None,
        tex_desc: CUDA_TEXTURE_DESC | None,
        res_view_desc: CUDA_RESOURCE_VIEW_DESC | None,
        /,
    ) -> tuple[CUresult, CUtexObject]: ...
    def cuTexObjectDestroy(self, tex_object: CUtexObject, /) -> tuple[CUresult]: ...
    def cuFuncGetAttribute(
        self, attrib: CUfunction_attribute, hfunc: CUfunction, /
    ) -> tuple[CUresult, int]: ...
    def cuFuncGetName(self, hfunc: CUfunction, /) -> tuple[CUresult, bytes | None]: ...
    def cuFuncGetParamCount(self, func: CUfunction, /) -> tuple[CUresult, int]: ...
    def cuFuncGetParamInfo(
        self, func: CUfunction, param_index: int, /
    ) -> tuple[CUresult, int, int]: ...
    def cuFuncSetAttribute(
        self, hfunc: CUfunction, attrib: CUfunction_attribute, value: int, /
    ) -> tuple[CUresult]: ...
    def cuLaunchKernelEx(
        self, config: CUlaunchConfig, f: CUfunction, kernel_params: int, extra: int, /
    ) -> tuple[CUresult]: ...
    def cuLinkAddData(
        self,
        state: CUlinkState,
        kind: CUjitInputType,
        data: bytes,
        size: int,
        name: bytes,
        num_options: int,
        options: list[CUjit_option] | tuple[CUjit_option, ...],
        option_values: list[object] | tuple[object, ...],
        /,
    ) -> tuple[CUresult]: ...
    def cuLinkComplete(self, state: CUlinkState, /) -> tuple[CUresult, int, int]: ...
    def cuLinkCreate(
        self,
        num_options: int,
        options: list[CUjit_option] | tuple[CUjit_option, ...],
        option_values: list[object] | tuple[object, ...],
        /,
    ) -> tuple[CUresult, CUlinkState]: ...
    def cuLinkDestroy(self, state: CUlinkState, /) -> tuple[CUresult]: ...
    def cuModuleEnumerateFunctions(
        self, num_functions: int, mod: CUmodule, /
    ) -> tuple[CUresult, list[CUfunction]]: ...
    def cuModuleGetFunction(
        self, hmod: CUmodule, name: bytes, /
    ) -> tuple[CUresult, CUfunction]: ...
    def cuModuleGetFunctionCount(self, mod: CUmodule, /) -> tuple[CUresult, int]: ...
    def cuModuleGetGlobal(
        self, hmod: CUmodule, name: bytes, /
    ) -> tuple[CUresult, CUdeviceptr, int]: ...
    def cuModuleLoadData(self, image: bytes, /) -> tuple[CUresult, CUmodule]: ...
    def cuModuleLoadDataEx(
        self,
        image: bytes,
        num_options: int,
        options: list[CUjit_option] | tuple[CUjit_option, ...],
        option_values: list[object] | tuple[object, ...],
        /,
    ) -> tuple[CUresult, CUmodule]: ...
    def cuModuleUnload(self, hmod: CUmodule, /) -> tuple[CUresult]: ...
    def cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, func: CUfunction, block_size: int, dynamic_smem_size: int, /
    ) -> tuple[CUresult, int]: ...
    def cuOccupancyMaxActiveClusters(
        self, func: CUfunction, config: CUlaunchConfig, /
    ) -> tuple[CUresult, int]: ...
    def cuOccupancyMaxPotentialClusterSize(
        self, func: CUfunction, config: CUlaunchConfig, /
    ) -> tuple[CUresult, int]: ...
    def cuGraphAddDependencies(
        self,
        h_graph: CUgraph,
        from_: list[CUgraphNode] | tuple[CUgraphNode, ...] | None,
        to: list[CUgraphNode] | tuple[CUgraphNode, ...] | None,
        edge_data: list[CUgraphEdgeData] | tuple[CUgraphEdgeData, ...] | None,
        num_dependencies: int,
        /,
    ) -> tuple[CUresult]: ...
    def cuGraphAddNode(
        self,
        h_graph: CUgraph,
        dependencies: list[CUgraphNode] | tuple[CUgraphNode, ...] | None,
        dependency_data: list[CUgraphEdgeData] | tuple[CUgraphEdgeData, ...] | None,
        num_dependencies: int,
        node_params: CUgraphNodeParams | None,
        /,
    ) -> tuple[CUresult, CUgraphNode]: ...
    def cuGraphClone(self, original_graph: CUgraph, /) -> tuple[CUresult, CUgraph]: ...
    def cuGraphConditionalHandleCreate(
        self, h_graph: CUgraph, ctx: CUcontext, default_launch_value: int, flags: int, /
    ) -> tuple[CUresult, CUgraphConditionalHandle]: ...
    def cuGraphCreate(self, flags: int, /) -> tuple[CUresult, CUgraph]: ...
    def cuGraphDebugDotPrint(
        self, h_graph: CUgraph, path: bytes, flags: int, /
    ) -> tuple[CUresult]: ...
    def cuGraphDestroy(self, h_graph: CUgraph, /) -> tuple[CUresult]: ...
    def cuGraphDestroyNode(self, h_node: CUgraphNode, /) -> tuple[CUresult]: ...
    def cuGraphExecDestroy(self, h_graph_exec: CUgraphExec, /) -> tuple[CUresult]: ...
    def cuGraphExecNodeSetParams(
        self,
        h_graph_exec: CUgraphExec,
        h_node: CUgraphNode,
        node_params: CUgraphNodeParams | None,
        /,
    ) -> tuple[CUresult]: ...
    def cuGraphExecUpdate(
        self, h_graph_exec: CUgraphExec, h_graph: CUgraph, /
    ) -> tuple[CUresult, CUgraphExecUpdateResultInfo]: ...
    def cuGraphGetEdges(
        self, h_graph: CUgraph, num_edges: int, /
    ) -> tuple[
        CUresult,
        list[CUgraphNode] | None,
        list[CUgraphNode] | None,
        list[CUgraphEdgeData] | None,
        int,
    ]: ...
    def cuGraphGetNodes(
        self, h_graph: CUgraph, num_nodes: int, /
    ) -> tuple[CUresult, list[CUgraphNode] | None, int]: ...
    def cuGraphInstantiate(
        self, h_graph: CUgraph, flags: int, /
    ) -> tuple[CUresult, CUgraphExec]: ...
    def cuGraphKernelNodeSetAttribute(
        self, h_node: CUgraphNode, attr: CUkernelNodeAttrID, value: CUkernelNodeAttrValue | None, /
    ) -> tuple[CUresult]: ...
    def cuGraphLaunch(
        self, h_graph_exec: CUgraphExec, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuGraphNodeGetEnabled(
        self, h_graph_exec: CUgraphExec, h_node: CUgraphNode, /
    ) -> tuple[CUresult, int]: ...
    def cuGraphNodeGetType(self, h_node: CUgraphNode, /) -> tuple[CUresult, CUgraphNodeType]: ...
    def cuGraphNodeSetEnabled(
        self, h_graph_exec: CUgraphExec, h_node: CUgraphNode, is_enabled: int, /
    ) -> tuple[CUresult]: ...
    def cuGraphNodeSetParams(
        self, h_node: CUgraphNode, node_params: CUgraphNodeParams | None, /
    ) -> tuple[CUresult]: ...
    def cuGraphReleaseUserObject(
        self, graph: CUgraph, object: CUuserObject, count: int, /
    ) -> tuple[CUresult]: ...
    def cuGraphRemoveDependencies(
        self,
        h_graph: CUgraph,
        from_: list[CUgraphNode] | tuple[CUgraphNode, ...] | None,
        to: list[CUgraphNode] | tuple[CUgraphNode, ...] | None,
        edge_data: list[CUgraphEdgeData] | tuple[CUgraphEdgeData, ...] | None,
        num_dependencies: int,
        /,
    ) -> tuple[CUresult]: ...
    def cuGraphRetainUserObject(
        self, graph: CUgraph, object: CUuserObject, count: int, flags: int, /
    ) -> tuple[CUresult]: ...
    def cuGraphUpload(
        self, h_graph_exec: CUgraphExec, h_stream: CUstream, /
    ) -> tuple[CUresult]: ...
    def cuUserObjectCreate(
        self, ptr: int, destroy: int, initial_refcount: int, flags: int, /
    ) -> tuple[CUresult, CUuserObject]: ...
    def cuUserObjectRelease(self, object: CUuserObject, count: int, /) -> tuple[CUresult]: ...


FUNCTIONS: Final = tuple(name for name in vars(DriverApi) if name.startswith("cu"))
"""Their names."""
