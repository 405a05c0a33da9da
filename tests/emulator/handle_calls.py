"""A call of every driver function that takes one."""

from __future__ import annotations

from typing import Final

from cudadrv.driver._api import (
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    CUDA_GRAPH_INSTANTIATE_PARAMS,
    CUDA_MEMCPY3D,
    CUDA_MEMCPY3D_PEER,
    CUarray,
    CUcontext,
    CUdeviceptr,
    CUdevResourceType,
    CUevent,
    CUfunction,
    CUfunction_attribute,
    CUlaunchAttribute,
    CUlaunchAttributeID,
    CUlaunchConfig,
    CUmem_advise,
    CUmemoryPool,
    CUresult,
    CUstream,
)
from cudadrv.emulator import Emulator

from .batch_handle_calls import BATCH_CALLS, on_host
from .calls import LEGACY, ok
from .descriptors import (
    ARRAY,
    DEVICE,
    HOST as MEMORY,
    Fields,
    copying,
    over_array,
    over_mipmap,
    reading,
)
from .graph_handle_calls import GRAPH_CALLS
from .handles import (
    ADDRESS,
    PLACE,
    RELAXED,
    Call,
    a_function,
    a_graph,
    a_node,
    a_piece,
    a_semaphore,
    a_stream,
    a_user_object,
    an_array,
    an_event,
    an_executable,
    elsewhere,
    graph_of,
    managed,
    memory,
    to_own_device,
)


def capture(api: Emulator, stream: CUstream) -> tuple[CUresult, object]:
    """End a capture of the stream; the beginning of it is what may be refused."""
    (result,) = api.cuStreamBeginCapture(stream, RELAXED)
    return (result, None) if result else api.cuStreamEndCapture(stream)


def a_pool(api: Emulator) -> CUmemoryPool:
    _, device = api.cuDeviceGet(0)
    _, pool = api.cuDeviceGetDefaultMemPool(device)
    return pool


def peer_box(memory: CUdeviceptr) -> CUDA_MEMCPY3D_PEER:
    """A copy of eight bytes onto themselves."""
    copy = CUDA_MEMCPY3D_PEER()
    copy.srcMemoryType = copy.dstMemoryType = DEVICE
    copy.srcDevice = copy.dstDevice = memory
    copy.WidthInBytes, copy.Height, copy.Depth = 8, 1, 1
    return copy


def launch_in(api: Emulator, stream: CUstream) -> CUlaunchConfig:
    config = CUlaunchConfig()
    config.gridDimX = config.gridDimY = config.gridDimZ = 1
    config.blockDimX = config.blockDimY = config.blockDimZ = 1
    config.hStream = stream
    return config


def in_clusters(api: Emulator) -> CUlaunchConfig:
    config, attribute = launch_in(api, LEGACY), CUlaunchAttribute()
    attribute.id = CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    extents = attribute.value.clusterDim
    extents.x = extents.y = extents.z = 1
    config.attrs, config.numAttrs = [attribute], 1
    return config


def box(source: CUarray | None, target: CUarray | None) -> CUDA_MEMCPY3D:
    """Two rows of an array to the host, or of the host to an array."""
    if source is None and target is not None:
        fields = Fields(srcMemoryType=MEMORY, srcHost=PLACE, dstMemoryType=ARRAY, dstArray=target)
    elif source is not None:
        fields = Fields(srcMemoryType=ARRAY, srcArray=source, dstMemoryType=MEMORY, dstHost=PLACE)
    return copying(Fields(WidthInBytes=16, Height=2, Depth=1), fields)


# By function and parameter: the kind of handle, and a call that is right but for the handle.
CALLS: Final[dict[tuple[str, str], tuple[str, Call]]] = {
    ("cuCtxDestroy", "ctx"): ("context", lambda api, h: api.cuCtxDestroy(h)),
    ("cuCtxSetCurrent", "ctx"): ("context", lambda api, h: api.cuCtxSetCurrent(h)),
    ("cuCtxEnablePeerAccess", "peer_context"): (
        "context",
        lambda api, h: api.cuCtxEnablePeerAccess(h, 0),
    ),
    ("cuCtxPushCurrent", "ctx"): ("context", lambda api, h: api.cuCtxPushCurrent(h)),
    ("cuStreamDestroy", "h_stream"): ("stream", lambda api, h: api.cuStreamDestroy(h)),
    ("cuStreamSynchronize", "h_stream"): ("stream", lambda api, h: api.cuStreamSynchronize(h)),
    ("cuStreamQuery", "h_stream"): ("stream", lambda api, h: api.cuStreamQuery(h)),
    ("cuStreamGetPriority", "h_stream"): ("stream", lambda api, h: api.cuStreamGetPriority(h)),
    ("cuStreamGetFlags", "h_stream"): ("stream", lambda api, h: api.cuStreamGetFlags(h)),
    ("cuStreamGetCtx", "h_stream"): ("stream", lambda api, h: api.cuStreamGetCtx(h)),
    ("cuStreamGetAttribute", "h_stream"): (
        "stream", lambda api, h: api.cuStreamGetAttribute(h, 8)),
    ("cuStreamCopyAttributes", "dst"): (
        "stream", lambda api, h: api.cuStreamCopyAttributes(h, a_stream(api))),
    ("cuLaunchHostFunc", "h_stream"): (
        "stream", lambda api, h: api.cuLaunchHostFunc(h, ADDRESS, 0)),
    ("cuStreamWaitEvent", "h_stream"): (
        "stream", lambda api, h: api.cuStreamWaitEvent(h, an_event(api), 0)),
    ("cuStreamWaitEvent", "h_event"): (
        "event", lambda api, h: api.cuStreamWaitEvent(a_stream(api), h, 0)),
    ("cuSignalExternalSemaphoresAsync", "stream"): (
        "stream",
        lambda api, h: api.cuSignalExternalSemaphoresAsync(
            [a_semaphore(api)], [CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS()], 1, h
        ),
    ),
    ("cuWaitExternalSemaphoresAsync", "stream"): (
        "stream",
        lambda api, h: api.cuWaitExternalSemaphoresAsync(
            [a_semaphore(api)], [CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS()], 1, h
        ),
    ),
    ("cuStreamBeginCapture", "h_stream"): ("stream", capture),
    ("cuStreamEndCapture", "h_stream"): ("stream", capture),
    ("cuStreamIsCapturing", "h_stream"): ("stream", lambda api, h: api.cuStreamIsCapturing(h)),
    ("cuEventDestroy", "h_event"): ("event", lambda api, h: api.cuEventDestroy(h)),
    ("cuEventRecord", "h_event"): ("event", lambda api, h: api.cuEventRecord(h, LEGACY)),
    ("cuEventRecord", "h_stream"): (
        "stream", lambda api, h: api.cuEventRecord(an_event(api), h)),
    ("cuEventQuery", "h_event"): ("event", lambda api, h: api.cuEventQuery(h)),
    ("cuEventSynchronize", "h_event"): ("event", lambda api, h: api.cuEventSynchronize(h)),
    ("cuEventElapsedTime", "h_start"): (
        "event", lambda api, h: elapsed(api, h, an_event(api), h)),
    ("cuEventElapsedTime", "h_end"): (
        "event", lambda api, h: elapsed(api, an_event(api), h, h)),
    ("cuIpcGetMemHandle", "dptr"): ("memory", lambda api, h: api.cuIpcGetMemHandle(h)),
    ("cuIpcGetEventHandle", "event"): ("shared event", lambda api, h: api.cuIpcGetEventHandle(h)),
    ("cuMemPoolExportPointer", "ptr"): (
        "shared pool memory", lambda api, h: api.cuMemPoolExportPointer(h)),
    ("cuCtxGetDevResource", "h_ctx"): (
        "context", lambda api, h: api.cuCtxGetDevResource(h, CUdevResourceType(1))),
    ("cuMemFree", "dptr"): ("memory", lambda api, h: api.cuMemFree(h)),
    ("cuMemFree", "dptr of a pool"): ("pool memory", lambda api, h: api.cuMemFree(h)),
    ("cuMemFree", "dptr of the host"): ("managed memory", lambda api, h: api.cuMemFree(h)),
    ("cuMemFreeHost", "p"): ("pinned memory", lambda api, h: api.cuMemFreeHost(h)),
    ("cuMemFreeAsync", "dptr"): ("pool memory", lambda api, h: api.cuMemFreeAsync(h, LEGACY)),
    ("cuMemFree", "dptr of a pool of the host"): (
        "memory of a pool of the host", lambda api, h: api.cuMemFree(h)),
    ("cuMemFreeAsync", "dptr of a pool of the host"): (
        "memory of a pool of the host", lambda api, h: api.cuMemFreeAsync(h, LEGACY)),
    ("cuMemFreeAsync", "dptr of no pool"): (
        "memory", lambda api, h: api.cuMemFreeAsync(h, LEGACY)),
    ("cuMemFreeAsync", "h_stream"): (
        "stream", lambda api, h: api.cuMemFreeAsync(CUdeviceptr(0), h)),
    ("cuMemAllocAsync", "h_stream"): ("stream", lambda api, h: api.cuMemAllocAsync(64, h)),
    ("cuMemcpyHtoDAsync", "h_stream"): (
        "stream", lambda api, h: api.cuMemcpyHtoDAsync(memory(api), PLACE, 8, h)),
    ("cuMemcpyHtoDAsync", "dst_device"): (
        "memory", lambda api, h: api.cuMemcpyHtoDAsync(h, PLACE, 8, LEGACY)),
    ("cuMemcpyDtoHAsync", "h_stream"): (
        "stream", lambda api, h: api.cuMemcpyDtoHAsync(PLACE, memory(api), 8, h)),
    ("cuMemcpyDtoHAsync", "src_device"): (
        "memory", lambda api, h: api.cuMemcpyDtoHAsync(PLACE, h, 8, LEGACY)),
    ("cuMemcpyDtoDAsync", "h_stream"): (
        "stream", lambda api, h: api.cuMemcpyDtoDAsync(memory(api), memory(api), 8, h)),
    ("cuMemcpyDtoDAsync", "dst_device"): (
        "memory", lambda api, h: api.cuMemcpyDtoDAsync(h, elsewhere(api), 8, LEGACY)),
    ("cuMemcpyDtoDAsync", "src_device"): (
        "memory", lambda api, h: api.cuMemcpyDtoDAsync(elsewhere(api), h, 8, LEGACY)),
    ("cuMemcpyPeerAsync", "dst_device"): (
        "memory", lambda api, h: peer_copy(api, h, elsewhere(api))),
    ("cuMemcpyPeerAsync", "src_device"): (
        "memory", lambda api, h: peer_copy(api, elsewhere(api), h)),
    ("cuMemcpyPeerAsync", "dst_context"): (
        "context", lambda api, h: peer_copy(api, memory(api), memory(api), to_context=h)),
    ("cuMemcpyPeerAsync", "src_context"): (
        "context", lambda api, h: peer_copy(api, memory(api), memory(api), of_context=h)),
    ("cuMemcpyPeerAsync", "h_stream"): (
        "stream", lambda api, h: peer_copy(api, memory(api), memory(api), stream=h)),
    ("cuMemsetD8Async", "h_stream"): (
        "stream", lambda api, h: api.cuMemsetD8Async(memory(api), 1, 8, h)),
    ("cuMemsetD8Async", "dst_device"): (
        "memory", lambda api, h: api.cuMemsetD8Async(h, 1, 8, LEGACY)),
    ("cuMemsetD16Async", "h_stream"): (
        "stream", lambda api, h: api.cuMemsetD16Async(memory(api), 1, 4, h)),
    ("cuMemsetD16Async", "dst_device"): (
        "memory", lambda api, h: api.cuMemsetD16Async(h, 1, 4, LEGACY)),
    ("cuMemsetD32Async", "h_stream"): (
        "stream", lambda api, h: api.cuMemsetD32Async(memory(api), 1, 2, h)),
    ("cuMemsetD32Async", "dst_device"): (
        "memory", lambda api, h: api.cuMemsetD32Async(h, 1, 2, LEGACY)),
    ("cuMemAllocFromPoolAsync", "h_stream"): (
        "stream", lambda api, h: api.cuMemAllocFromPoolAsync(8, a_pool(api), h)),
    ("cuMemPrefetchAsync", "h_stream"): (
        "stream", lambda api, h: api.cuMemPrefetchAsync(managed(api), 8, on_host(), 0, h)),
    ("cuMemPrefetchAsync", "dev_ptr"): (
        "managed memory", lambda api, h: api.cuMemPrefetchAsync(h, 8, on_host(), 0, LEGACY)),
    ("cuMemAdvise", "dev_ptr"): (
        "managed memory", lambda api, h: api.cuMemAdvise(h, 8, CUmem_advise(1), on_host())),
    ("cuStreamAttachMemAsync", "dptr"): (
        "managed memory", lambda api, h: api.cuStreamAttachMemAsync(LEGACY, h, 0, 1)),
    ("cuStreamAttachMemAsync", "h_stream"): (
        "stream", lambda api, h: api.cuStreamAttachMemAsync(h, managed(api), 0, 1)),
    ("cuMemAddressFree", "ptr"): (
        "range of memory", lambda api, h: api.cuMemAddressFree(h, 2 << 20)),
    ("cuMemMap", "ptr"): (
        "range of memory", lambda api, h: api.cuMemMap(h, 2 << 20, 0, a_piece(api), 0)),
    ("cuMemUnmap", "ptr"): ("mapped memory", lambda api, h: api.cuMemUnmap(h, 2 << 20)),
    ("cuMemSetAccess", "ptr"): (
        "mapped memory", lambda api, h: api.cuMemSetAccess(h, 2 << 20, to_own_device(), 1)),
    ("cuMemsetD2D8Async", "h_stream"): (
        "stream", lambda api, h: api.cuMemsetD2D8Async(memory(api), 4, 1, 4, 2, h)),
    ("cuMemsetD2D8Async", "dst_device"): (
        "memory", lambda api, h: api.cuMemsetD2D8Async(h, 4, 1, 4, 2, LEGACY)),
    ("cuMemsetD2D16Async", "h_stream"): (
        "stream", lambda api, h: api.cuMemsetD2D16Async(memory(api), 4, 1, 2, 2, h)),
    ("cuMemsetD2D16Async", "dst_device"): (
        "memory", lambda api, h: api.cuMemsetD2D16Async(h, 4, 1, 2, 2, LEGACY)),
    ("cuMemsetD2D32Async", "h_stream"): (
        "stream", lambda api, h: api.cuMemsetD2D32Async(memory(api), 4, 1, 1, 2, h)),
    ("cuMemsetD2D32Async", "dst_device"): (
        "memory", lambda api, h: api.cuMemsetD2D32Async(h, 4, 1, 1, 2, LEGACY)),
    ("cuArrayDestroy", "h_array"): ("array", lambda api, h: api.cuArrayDestroy(h)),
    ("cuArray3DGetDescriptor", "h_array"): (
        "array", lambda api, h: api.cuArray3DGetDescriptor(h)),
    ("cuMipmappedArrayGetLevel", "h_mipmapped_array"): (
        "mipmap", lambda api, h: api.cuMipmappedArrayGetLevel(h, 1)),
    ("cuMipmappedArrayDestroy", "h_mipmapped_array"): (
        "mipmap", lambda api, h: api.cuMipmappedArrayDestroy(h)),
    ("cuMemcpy3DAsync", "h_stream"): (
        "stream", lambda api, h: api.cuMemcpy3DAsync(box(an_array(api), None), h)),
    ("cuMemcpy3DPeerAsync", "h_stream"): (
        "stream", lambda api, h: api.cuMemcpy3DPeerAsync(peer_box(memory(api)), h)),
    ("cuTexObjectDestroy", "tex_object"): (
        "texture", lambda api, h: api.cuTexObjectDestroy(h)),
    ("cuSurfObjectDestroy", "surf_object"): (
        "surface", lambda api, h: api.cuSurfObjectDestroy(h)),
    ("cuModuleUnload", "hmod"): ("module", lambda api, h: api.cuModuleUnload(h)),
    ("cuModuleGetFunction", "hmod"): (
        "module", lambda api, h: api.cuModuleGetFunction(h, b"empty")),
    ("cuModuleGetGlobal", "hmod"): ("module", lambda api, h: api.cuModuleGetGlobal(h, b"gv")),
    ("cuModuleGetFunctionCount", "mod"): (
        "module", lambda api, h: api.cuModuleGetFunctionCount(h)),
    ("cuModuleEnumerateFunctions", "mod"): (
        "module", lambda api, h: api.cuModuleEnumerateFunctions(1, h)),
    ("cuFuncGetName", "hfunc"): ("function", lambda api, h: api.cuFuncGetName(h)),
    ("cuFuncGetAttribute", "hfunc"): (
        "function", lambda api, h: api.cuFuncGetAttribute(CUfunction_attribute(0), h)),
    ("cuFuncSetAttribute", "hfunc"): (
        "function", lambda api, h: api.cuFuncSetAttribute(h, CUfunction_attribute(8), 64)),
    ("cuFuncGetParamCount", "func"): ("function", lambda api, h: api.cuFuncGetParamCount(h)),
    ("cuFuncGetParamInfo", "func"): ("function", lambda api, h: no_parameter(api, h)),
    ("cuOccupancyMaxActiveBlocksPerMultiprocessor", "func"): (
        "function", lambda api, h: api.cuOccupancyMaxActiveBlocksPerMultiprocessor(h, 32, 0)),
    ("cuOccupancyMaxActiveClusters", "func"): (
        "function", lambda api, h: api.cuOccupancyMaxActiveClusters(h, in_clusters(api))),
    ("cuOccupancyMaxPotentialClusterSize", "func"): (
        "function",
        lambda api, h: api.cuOccupancyMaxPotentialClusterSize(h, launch_in(api, LEGACY))),
    ("cuLaunchKernel", "f"): (
        "function", lambda api, h: api.cuLaunchKernel(h, 1, 1, 1, 1, 1, 1, 0, LEGACY, 0, 0)),
    ("cuLaunchKernel", "h_stream"): (
        "stream",
        lambda api, h: api.cuLaunchKernel(a_function(api), 1, 1, 1, 1, 1, 1, 0, h, 0, 0)),
    ("cuLaunchKernelEx", "f"): (
        "function", lambda api, h: api.cuLaunchKernelEx(launch_in(api, LEGACY), h, 0, 0)),
    **GRAPH_CALLS,
    **BATCH_CALLS,
    ("cuGraphInstantiate", "h_graph"): ("graph", lambda api, h: api.cuGraphInstantiate(h, 0)),
    ("cuGraphInstantiateWithParams", "h_graph"): (
        "graph",
        lambda api, h: api.cuGraphInstantiateWithParams(h, CUDA_GRAPH_INSTANTIATE_PARAMS())),
    ("cuGraphExecUpdate", "h_graph_exec"): (
        "executable", lambda api, h: api.cuGraphExecUpdate(h, graph_of(api, a_node(api)))),
    ("cuGraphExecUpdate", "h_graph"): (
        "graph",
        lambda api, h: api.cuGraphExecUpdate(ok(api.cuGraphInstantiate(a_graph(api), 0)), h)),
    ("cuGraphLaunch", "h_graph_exec"): (
        "executable", lambda api, h: api.cuGraphLaunch(h, LEGACY)),
    ("cuGraphLaunch", "h_stream"): (
        "stream", lambda api, h: api.cuGraphLaunch(an_executable(api), h)),
    ("cuGraphDestroy", "h_graph"): ("graph", lambda api, h: api.cuGraphDestroy(h)),
    ("cuGraphExecDestroy", "h_graph_exec"): (
        "executable", lambda api, h: api.cuGraphExecDestroy(h)),
    ("cuGraphGetNodes", "h_graph"): ("graph", lambda api, h: api.cuGraphGetNodes(h, 0)),
    ("cuGraphRetainUserObject", "graph"): (
        "graph", lambda api, h: api.cuGraphRetainUserObject(h, a_user_object(api), 1, 0)),
    ("cuGraphRetainUserObject", "object"): (
        "user object", lambda api, h: api.cuGraphRetainUserObject(a_graph(api), h, 1, 0)),
    ("cuUserObjectRelease", "object"): (
        "user object", lambda api, h: api.cuUserObjectRelease(h, 1)),
}  # fmt: skip

# Handles that a structure brings, for which the driver's answer is another (measured).
IN_STRUCTURES: Final[dict[str, tuple[str, int, Call]]] = {
    "stream of a launch": (
        "stream",
        400,
        lambda api, h: api.cuLaunchKernelEx(launch_in(api, h), a_function(api), 0, 0),
    ),
    "array of a texture": (
        "array",
        1,
        lambda api, h: api.cuTexObjectCreate(over_array(h), reading(), None),
    ),
    "mipmapped array of a texture": (
        "mipmap",
        1,
        lambda api, h: api.cuTexObjectCreate(over_mipmap(h), reading(2), None),
    ),
    "array of a surface": ("array", 1, lambda api, h: api.cuSurfObjectCreate(over_array(h))),
    "source of a copy": ("array", 1, lambda api, h: api.cuMemcpy3DAsync(box(h, None), LEGACY)),
    "target of a copy": ("array", 1, lambda api, h: api.cuMemcpy3DAsync(box(None, h), LEGACY)),
}
ALL: Final = {" ".join(names): (kind, None, use) for names, (kind, use) in CALLS.items()}


def elapsed(
    api: Emulator, start: CUevent, end: CUevent, suspect: CUevent
) -> tuple[CUresult, *tuple[object, ...]]:
    for event in (start, end):
        (result,) = api.cuEventRecord(event, LEGACY)
        if result and event is not suspect:
            return (result,)
    return api.cuEventElapsedTime(start, end)


def peer_copy(
    api: Emulator,
    to: CUdeviceptr,
    of: CUdeviceptr,
    *,
    to_context: CUcontext | None = None,
    of_context: CUcontext | None = None,
    stream: CUstream = LEGACY,
) -> tuple[CUresult]:
    null = CUcontext(0)
    return api.cuMemcpyPeerAsync(to, to_context or null, of, of_context or null, 8, stream)


def no_parameter(api: Emulator, function: CUfunction) -> tuple[CUresult, *tuple[object, ...]]:
    """The kernel has no parameters, so a live one is told from a dead one by its name."""
    result, *values = api.cuFuncGetParamInfo(function, 0)
    live = result == CUresult.CUDA_ERROR_INVALID_VALUE
    return (CUresult.CUDA_SUCCESS if live else result, *values)
