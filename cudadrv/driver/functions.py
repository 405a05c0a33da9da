"""The table of the driver's functions: versions, C parameters, and flags for cudadrv.

A line is one form of a function as C has it: its symbol, the CUDA version that introduced it (CUDA
Driver API manual, `cudaTypedefs.h`), its parameters and, after a semicolon, flags. Compiled callers
use the form of the version that they were built for, so old forms stay.

Words of parameters: `int`, `uint`, `short`, `byte`, `float`; `size` for 8 bytes (handles,
addresses, sizes), of which `bytes` is the size of the memory that the call uses; `text`, which ends
with a NUL; `stream`, a stream's handle; `*NAME`, a pointer to a structure of cuda.bindings;
`@NAME`, a structure of 64 opaque bytes, passed by value; `=N`, a structure of N bytes. A `>` marks
a pointer to a result, an `&` a pointer to what is read. Texts and marked pointers may not be null,
except after a `?`, as in `>?size`.

Flags:
    early: works before cuInit.
    hot: called where a microsecond counts, so without translation of the binding's exceptions.
    frees: called by finalizers, and so possibly in the middle of another call.
    suffixed: before CUDA 13 cuda.bindings has this form only under the symbol with its suffix.
    launch, copy, allocation, compilation, wait: a trace shows the call in this category.
    name=NAME: the name in cuda.bindings and on the emulator, if not the symbol without its suffix.

Python's parameters and results are those of the emulator's methods (`cudadrv.emulator.calls`), of
which `tools/generate_driver_api.py` makes the protocol `DriverApi`.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

_TABLE: Final = """
# The driver, devices and results
cuDeviceCanAccessPeer 4000 >int int int
cuDeviceGet 2000 >int int
cuDeviceGetAttribute 2000 >int int int
cuDeviceGetCount 2000 >int
cuDeviceGetDefaultMemPool 11020 >size int
cuDeviceGetDevResource 12040 int >=144 int
cuDeviceGetGraphMemAttribute 11040 int int >size
cuDeviceGetMemPool 11020 >size int
cuDeviceGetName 2000 >byte int int
cuDeviceGetPCIBusId 4010 >byte int int
cuDeviceGetUuid 9020 >=16 int
cuDeviceGetUuid_v2 11040 >=16 int
cuDeviceGraphMemTrim 11040 int
cuDeviceSetGraphMemAttribute 11040 int int &size
cuDeviceSetMemPool 11020 int size
cuDeviceTotalMem_v2 3020 >size int
cuDriverGetVersion 2020 >int ; early
cuGetErrorName 6000 int >size
cuGetErrorString 6000 int >size
cuGetExportTable 3000 >size &size
cuGetProcAddress 11030 text >size int size
cuGetProcAddress_v2 12000 text >size int size >?int
cuInit 2000 uint ; early
# Contexts
cuCheckpointProcessCheckpoint 12080 int size
cuCheckpointProcessGetRestoreThreadId 12080 int >int
cuCheckpointProcessGetState 12080 int >int
cuCheckpointProcessLock 12080 int size
cuCheckpointProcessRestore 12080 int size
cuCheckpointProcessUnlock 12080 int size
cuCtxCreate 2000 >size uint int
cuCtxCreate_v2 3020 >size uint int
cuCtxCreate_v3 11040 >size size int uint int
cuCtxCreate_v4 12050 >size size uint int ; suffixed
cuCtxDestroy 2000 size
cuCtxDestroy_v2 4000 size ; frees
cuCtxDisablePeerAccess 4000 size
cuCtxEnablePeerAccess 4000 size uint
cuCtxFromGreenCtx 12040 >size size
cuCtxGetApiVersion 3020 size >uint
cuCtxGetCacheConfig 3020 >int
cuCtxGetCurrent 4000 >size ; hot
cuCtxGetDevResource 12040 size >=144 int
cuCtxGetDevice 2000 >int
cuCtxGetDevice_v2 13000 >int size
cuCtxGetFlags 7000 >uint
cuCtxGetId 12000 size >size
cuCtxGetLimit 3010 >size int
cuCtxGetStreamPriorityRange 5050 >?int >?int
cuCtxPopCurrent 2000 >?size
cuCtxPopCurrent_v2 4000 >?size ; hot
cuCtxPushCurrent 2000 size
cuCtxPushCurrent_v2 4000 size ; hot
cuCtxSetCacheConfig 3020 int
cuCtxSetCurrent 4000 size ; hot
cuCtxSetLimit 3010 int size
cuCtxSynchronize 2000 ; wait
cuCtxSynchronize_v2 13000 size
cuDevResourceGenerateDesc 12040 >size size uint
cuDevSmResourceSplit 13010 size uint &byte size uint &byte
cuDevSmResourceSplitByCount 12040 size &int &byte size uint uint
cuDevicePrimaryCtxGetState 7000 int >uint >int
cuDevicePrimaryCtxRelease 7000 int
cuDevicePrimaryCtxRelease_v2 11000 int
cuDevicePrimaryCtxReset 7000 int
cuDevicePrimaryCtxReset_v2 11000 int ; wait
cuDevicePrimaryCtxRetain 7000 >size int
cuGreenCtxCreate 12040 >size size int uint
cuGreenCtxDestroy 12040 size ; frees
cuGreenCtxGetDevResource 12040 size >=144 int
cuGreenCtxStreamCreate 12050 >size size uint int
cuProfilerStart 4000
cuProfilerStop 4000
# Streams and events
cuEventCreate 2000 >size uint
cuEventDestroy 2000 size
cuEventDestroy_v2 4000 size ; frees
cuEventElapsedTime 2000 >float size size
cuEventElapsedTime_v2 12080 >float size size
cuEventQuery 2000 size
cuEventRecord 2000 size stream ; hot
cuEventRecordWithFlags 11010 size stream uint
cuEventSynchronize 2000 size ; hot wait
cuIpcGetEventHandle 4010 >=64 size
cuIpcOpenEventHandle 4010 >size @CUipcEventHandle
cuLaunchHostFunc 10000 stream size size
cuLaunchHostFunc_v2 13010 stream size size uint
cuStreamAddCallback 5000 stream size size uint
cuStreamAttachMemAsync 6000 stream size size uint
cuStreamBeginCapture_v2 10010 stream int
cuStreamBeginCaptureToGraph 12030 stream size size size size int
cuStreamCopyAttributes 11000 stream stream
cuStreamCreate 2000 >size uint
cuStreamCreateWithPriority 5050 >size uint int
cuStreamDestroy 2000 size
cuStreamDestroy_v2 4000 size ; frees
cuStreamEndCapture 10000 stream >size
cuStreamGetAttribute 11000 stream int >=64
cuStreamGetCaptureInfo_v2 11030 stream >int >?size >?size >?size >?size
cuStreamGetCaptureInfo_v3 12030 stream >int >?size >?size >?size >?size >?size ; suffixed
cuStreamGetCtx 9020 stream >size
cuStreamGetCtx_v2 12050 stream >size >size
cuStreamGetDevice 12080 stream >int
cuStreamGetFlags 5050 stream >uint
cuStreamGetId 12000 stream >size
cuStreamGetPriority 5050 stream >int
cuStreamIsCapturing 10000 stream >int
cuStreamQuery 2000 stream
cuStreamSetAttribute 11000 stream int *CUkernelNodeAttrValue
cuStreamSynchronize 2000 stream ; hot wait
cuStreamUpdateCaptureDependencies 11030 stream size size uint
cuStreamUpdateCaptureDependencies_v2 12030 stream size size size uint ; suffixed
cuStreamWaitEvent 3020 stream size uint ; hot
cuThreadExchangeStreamCaptureMode 10010 &int
# Copies and fills
cuMemcpy 4000 size size size
cuMemcpy2D_v2 3020 size
cuMemcpy2DAsync_v2 3020 size stream
cuMemcpy2DUnaligned_v2 3020 size
cuMemcpy3D_v2 3020 *CUDA_MEMCPY3D
cuMemcpy3DAsync_v2 3020 *CUDA_MEMCPY3D stream ; copy
cuMemcpy3DBatchAsync 12080 size size size size stream
cuMemcpy3DBatchAsync_v2 13000 size size size stream
cuMemcpy3DPeerAsync 4000 *CUDA_MEMCPY3D_PEER stream ; copy
cuMemcpy3DWithAttributesAsync 13020 *CUDA_MEMCPY3D_BATCH_OP size stream
cuMemcpyAsync 4000 size size size stream
cuMemcpyBatchAsync 12080 size size size size size size size size stream
cuMemcpyBatchAsync_v2 13000 size size size size size size size stream
cuMemcpyDtoD_v2 3020 size size size
cuMemcpyDtoDAsync_v2 3020 size size bytes stream ; hot copy
cuMemcpyDtoH_v2 3020 size size size
cuMemcpyDtoHAsync_v2 3020 size size bytes stream ; hot copy
cuMemcpyHtoD_v2 3020 size size size
cuMemcpyHtoDAsync_v2 3020 size size bytes stream ; hot copy
cuMemcpyPeer 4000 size size size size size
cuMemcpyPeerAsync 4000 size size size size bytes stream ; copy
cuMemcpyWithAttributesAsync 13020 size size size *CUmemcpyAttributes stream
cuMemsetD16_v2 3020 size short size
cuMemsetD16Async 3020 size short size stream ; copy
cuMemsetD2D16Async 3020 size size short size size stream ; copy
cuMemsetD2D32Async 3020 size size uint size size stream ; copy
cuMemsetD2D8Async 3020 size size byte size size stream ; copy
cuMemsetD32_v2 3020 size uint size
cuMemsetD32Async 3020 size uint size stream ; copy
cuMemsetD8_v2 3020 size byte size
cuMemsetD8Async 3020 size byte bytes stream ; copy
# Memory
cuIpcCloseMemHandle 4010 size ; frees
cuIpcGetMemHandle 4010 >=64 size
cuIpcOpenMemHandle 4010 >size @CUipcMemHandle uint
cuIpcOpenMemHandle_v2 11000 >size @CUipcMemHandle uint
cuMemAddressFree 10020 size size ; frees
cuMemAddressReserve 10020 >size size size size size
cuMemAdvise 8000 size size int int
cuMemAdvise_v2 12020 size size int size ; suffixed
cuMemAlloc_v2 3020 >size bytes ; allocation
cuMemAllocAsync 11020 >size bytes stream ; hot allocation
cuMemAllocFromPoolAsync 11020 >size bytes size stream ; allocation
cuMemAllocHost_v2 3020 >size size
cuMemAllocManaged 6000 >size size uint
cuMemCreate 10020 >size size *CUmemAllocationProp size
cuMemDiscardAndPrefetchBatchAsync 13000 size size size size size size size stream
cuMemDiscardBatchAsync 13000 size size size size stream
cuMemExportToShareableHandle 10020 >int size int size
cuMemFree_v2 3020 size ; frees allocation
cuMemFreeAsync 11020 size stream ; hot frees allocation
cuMemFreeHost 2000 size ; frees allocation
cuMemGetAddressRange_v2 3020 >?size >?size size
cuMemGetAllocationGranularity 10020 >size *CUmemAllocationProp int
cuMemGetDefaultMemPool 13000 >size size int
cuMemGetInfo_v2 3020 >size >size
cuMemGetMemPool 13000 >size size int
cuMemHostAlloc 2020 >size bytes uint ; allocation
cuMemHostGetDevicePointer_v2 3020 >size size uint
cuMemHostGetFlags 2030 >uint size
cuMemHostRegister 4000 size size uint
cuMemHostRegister_v2 6050 size bytes uint ; allocation
cuMemHostUnregister 4000 size ; frees
cuMemImportFromShareableHandle 10020 >size size int
cuMemMap 10020 size size size size size
cuMemPoolCreate 11020 >size *CUmemPoolProps
cuMemPoolDestroy 11020 size ; frees
cuMemPoolExportPointer 11020 >=64 size
cuMemPoolExportToShareableHandle 11020 >int size int size
cuMemPoolGetAccess 11020 >int size size
cuMemPoolGetAttribute 11020 size int >byte
cuMemPoolImportFromShareableHandle 11020 >size size int size
cuMemPoolImportPointer 11020 >size size *CUmemPoolPtrExportData
cuMemPoolSetAccess 11020 size size size
cuMemPoolSetAttribute 11020 size int &byte
cuMemPoolTrimTo 11020 size size
cuMemPrefetchAsync 8000 size size int stream
cuMemPrefetchAsync_v2 12020 size bytes size uint stream ; suffixed copy
cuMemPrefetchBatchAsync 12080 size size size size size size size stream
cuMemRangeGetAttribute 8000 >byte size int size size
cuMemRangeGetAttributes 8000 &size &size &int size size size
cuMemRelease 10020 size ; frees
cuMemRetainAllocationHandle 11000 >size size
cuMemSetAccess 10020 size size size size
cuMemSetMemPool 13000 size int size
cuMemUnmap 10020 size size ; frees
cuPointerGetAttribute 4000 >byte int size
cuPointerGetAttributes 7000 uint &int &size size ; hot
# Arrays, textures, surfaces and tensor maps
cuArray3DCreate_v2 3020 >size *CUDA_ARRAY3D_DESCRIPTOR
cuArray3DGetDescriptor_v2 3020 >byte size
cuArrayDestroy 2000 size ; frees
cuArrayGetDescriptor_v2 3020 >byte size
cuMipmappedArrayCreate 5000 >size *CUDA_ARRAY3D_DESCRIPTOR uint
cuMipmappedArrayDestroy 5000 size ; frees
cuMipmappedArrayGetLevel 5000 >size size uint
cuSurfObjectCreate 5000 >size *CUDA_RESOURCE_DESC
cuSurfObjectDestroy 5000 size ; frees
cuTensorMapEncodeIm2col 12000 size uint uint size size size size size uint uint \
    size uint uint uint uint
cuTensorMapEncodeIm2colWide 12080 size uint uint size size size int int uint \
    uint size uint uint uint uint uint
cuTensorMapEncodeTiled 12000 size uint uint size size size size size uint uint uint uint
cuTensorMapReplaceAddress 12000 size size
cuTexObjectCreate 5000 >size *CUDA_RESOURCE_DESC *CUDA_TEXTURE_DESC *CUDA_RESOURCE_VIEW_DESC
cuTexObjectDestroy 5000 size ; frees
# Modules, libraries, links and kernels
cuFuncGetAttribute 2020 >int int size
cuFuncGetModule 11000 >size size
cuFuncGetName 12030 >size size
cuFuncGetParamCount 13020 size >size
cuFuncGetParamInfo 12040 size size >size >?size
cuFuncSetAttribute 9000 size int int
cuFuncSetCacheConfig 3000 size int
cuKernelGetAttribute 12000 >int int size int
cuKernelGetFunction 12000 >size size
cuKernelGetLibrary 12050 >size size
cuKernelGetName 12030 >size size
cuKernelGetParamInfo 12040 size size >size >?size
cuKernelSetAttribute 12000 int int size int
cuKernelSetCacheConfig 12000 size int int
cuLaunchCooperativeKernel 9000 size uint uint uint uint uint uint uint stream size
cuLaunchKernel 4000 size uint uint uint uint uint uint uint stream size size
cuLaunchKernelEx 11060 &size size size size ; hot launch
cuLibraryEnumerateKernels 12040 >size uint size
cuLibraryGetGlobal 12000 >?size >?size size text
cuLibraryGetKernel 12000 >size size text
cuLibraryGetKernelCount 12040 >uint size
cuLibraryGetModule 12000 >size size
cuLibraryLoadData 12000 >size &byte size size uint size size uint
cuLibraryLoadFromFile 12000 >size text size size uint size size uint
cuLibraryUnload 12000 size ; frees
cuLinkAddData_v2 6050 size int &byte size ?text uint size size
cuLinkAddFile_v2 6050 size int text uint size size
cuLinkComplete 5050 size >size >?size ; compilation
cuLinkCreate_v2 6050 uint size size >size
cuLinkDestroy 5050 size
cuModuleEnumerateFunctions 12040 >size uint size
cuModuleGetFunction 2000 >size size text
cuModuleGetFunctionCount 12040 >uint size
cuModuleGetGlobal_v2 3020 >?size >?size size text
cuModuleGetLoadingMode 11070 >int
cuModuleLoad 2000 >size text
cuModuleLoadData 2000 >size &byte ; compilation
cuModuleLoadDataEx 2010 >size &byte uint size size ; compilation
cuModuleLoadFatBinary 2000 >size &byte
cuModuleUnload 2000 size ; frees
cuOccupancyAvailableDynamicSMemPerBlock 10020 >size size int int
cuOccupancyMaxActiveBlocksPerMultiprocessor 6050 >int size int size
cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags 7000 >int size int size uint
cuOccupancyMaxActiveClusters 11070 >int size &size
cuOccupancyMaxPotentialBlockSize 6050 >int >int size size size int
cuOccupancyMaxPotentialBlockSizeWithFlags 7000 >int >int size size size int uint
cuOccupancyMaxPotentialClusterSize 11070 >int size &size
# Graphs
cuGraphAddChildGraphNode 10000 >size size size size size
cuGraphAddDependencies 10000 size size size size
cuGraphAddDependencies_v2 12030 size size size size size ; suffixed
cuGraphAddEmptyNode 10000 >size size size size
cuGraphAddEventRecordNode 11010 >size size size size size
cuGraphAddEventWaitNode 11010 >size size size size size
cuGraphAddHostNode 10000 >size size size size size
cuGraphAddKernelNode_v2 12000 >size size size size size
cuGraphAddMemAllocNode 11040 >size size size size &byte
cuGraphAddMemFreeNode 11040 >size size size size size
cuGraphAddMemcpyNode 10000 >size size size size size size
cuGraphAddMemsetNode 10000 >size size size size size size
cuGraphAddNode 12020 >size size size size size
cuGraphAddNode_v2 12030 >size size size size size size ; suffixed
cuGraphChildGraphNodeGetGraph 10000 size >size
cuGraphClone 10000 >size size
cuGraphConditionalHandleCreate 12030 >size size size uint uint
cuGraphCreate 10000 >size uint
cuGraphDebugDotPrint 11030 size text uint
cuGraphDestroy 10000 size ; frees
cuGraphDestroyNode 10000 size
cuGraphEventRecordNodeGetEvent 11010 size >byte
cuGraphEventWaitNodeGetEvent 11010 size >byte
cuGraphExecDestroy 10000 size ; frees
cuGraphExecHostNodeSetParams 10020 size size size
cuGraphExecKernelNodeSetParams_v2 12000 size size size
cuGraphExecMemcpyNodeSetParams 10020 size size size size
cuGraphExecMemsetNodeSetParams 10020 size size size size
cuGraphExecNodeSetParams 12020 size size size
cuGraphExecUpdate_v2 12000 size size size
cuGraphGetEdges 10000 size size size &size
cuGraphGetEdges_v2 12030 size size size size &size ; suffixed
cuGraphGetNodes 10000 size size &size
cuGraphGetRootNodes 10000 size size &size
cuGraphHostNodeGetParams 10000 size >byte
cuGraphHostNodeSetParams 10000 size size
cuGraphInstantiateWithFlags 11040 >size size size ; name=cuGraphInstantiate compilation
cuGraphInstantiateWithParams 12000 >size size &size
cuGraphKernelNodeCopyAttributes 11000 size size
cuGraphKernelNodeGetAttribute 11000 size int >=64
cuGraphKernelNodeGetParams 10000 size >byte
cuGraphKernelNodeGetParams_v2 12000 size >byte
cuGraphKernelNodeSetAttribute 11000 size int *CUkernelNodeAttrValue
cuGraphKernelNodeSetParams_v2 12000 size size
cuGraphLaunch 10000 size stream ; hot launch
cuGraphMemAllocNodeGetParams 11040 size >byte
cuGraphMemFreeNodeGetParams 11040 size >byte
cuGraphMemcpyNodeGetParams 10000 size >byte
cuGraphMemcpyNodeSetParams 10000 size size
cuGraphMemsetNodeGetParams 10000 size >byte
cuGraphMemsetNodeSetParams 10000 size size
cuGraphNodeFindInClone 10000 >size size size
cuGraphNodeGetDependencies 10000 size size &size
cuGraphNodeGetDependencies_v2 12030 size size size &size
cuGraphNodeGetDependentNodes 10000 size size &size
cuGraphNodeGetDependentNodes_v2 12030 size size size &size
cuGraphNodeGetEnabled 11060 size size >uint
cuGraphNodeGetParams 13020 size >=256
cuGraphNodeGetType 10000 size >int
cuGraphNodeSetEnabled 11060 size size uint
cuGraphNodeSetParams 12020 size size
cuGraphReleaseUserObject 11030 size size uint
cuGraphRemoveDependencies 10000 size size size size
cuGraphRemoveDependencies_v2 12030 size size size size size ; suffixed
cuGraphRetainUserObject 11030 size size uint uint
cuGraphUpload 11010 size stream ; launch
cuUserObjectCreate 11030 >size size size uint uint
cuUserObjectRelease 11030 size uint ; frees
"""


class FunctionForm(NamedTuple):
    """One C form of a driver function: a line of the table.

    Attributes:
        symbol: its name in the library, with its suffix.
        since: the CUDA version that introduced it, as cuGetProcAddress counts.
        parameters: words.
        flags: words.
    """

    symbol: str
    since: int
    parameters: tuple[str, ...]
    flags: tuple[str, ...]

    @property
    def name(self) -> str:
        """The function's name in cuda.bindings and on the emulator."""
        given = [flag for flag in self.flags if flag.startswith("name=")]
        return given[0].removeprefix("name=") if given else without_version(self.symbol)


def without_version(symbol: str) -> str:
    """Return a symbol without a suffix such as `_v2`."""
    base, _, suffix = symbol.rpartition("_v")
    return base if base and suffix.isdecimal() else symbol


def read_table(table: str) -> tuple[FunctionForm, ...]:
    """Return the forms of a table; empty lines and lines that begin with `#` are skipped."""
    return tuple(_form(line) for line in table.splitlines() if line and line[0] != "#")


def _form(line: str) -> FunctionForm:
    form, _, flags = line.partition(";")
    symbol, since, *parameters = form.split()
    return FunctionForm(symbol, int(since), tuple(parameters), tuple(flags.split()))


def forms() -> tuple[FunctionForm, ...]:
    """Return the forms of all driver functions."""
    return read_table(_TABLE)


@cache
def _flagged_forms() -> tuple[FunctionForm, ...]:
    return tuple(_form(line) for line in _TABLE.splitlines() if ";" in line)


def flagged(flag: str) -> dict[str, FunctionForm]:
    """Return the forms that have a flag, by the functions' names."""
    return {form.name: form for form in _flagged_forms() if flag in form.flags}
