"""The table of the driver's functions: versions, C parameters, and flags for cudadrv.

A line is one form of a function as C has it: its symbol, the CUDA version that introduced it (CUDA
Driver API manual, `cudaTypedefs.h`), its parameters and, after a semicolon, flags. Compiled callers
use the form of the version that they were built for, so old forms stay.

Words of parameters:

- `int`, `uint`, `short`, `byte`, `float`.
- `size`: 8 bytes (handles, addresses, sizes). `bytes` is the size of memory that the call uses.
- `text`: ends with a NUL. `stream`: a stream's handle.
- `*NAME`: a pointer to a structure of cuda.bindings. `*NAME=N` has N bytes. `=N`: one of N bytes.
- `@NAME`: a structure of 64 opaque bytes, passed by value.
- `location`: a CUmemLocation, passed by value. `*location`: a pointer to one.
- `image`: what a module is loaded from.
- `WORD[N]`: a pointer to an array, whose count is parameter N. Words of elements are `size`, `int`,
  `*NAME=N`, `location`, `access` (CUmemAccessDesc) and `edge` (CUgraphEdgeData).

`>` marks a pointer to a result, `&` a pointer to memory that the call reads. Texts and marked
pointers may not be null, except after a `?`, as in `>?size`.

Flags for callers:
    early: works before cuInit.
    hot: called where a microsecond counts, so without translation of the binding's exceptions.
    frees: called by finalizers, and so possibly in the middle of another call.
    suffixed: before CUDA 13 cuda.bindings has this form only under the symbol with its suffix.
    absent: the emulator lacks it, and returns CUDA_ERROR_NOT_SUPPORTED to callers of C.

Flags for names and traces:
    ptds: there is a variant `_ptds` for each thread's default stream, which no parameter names.
    ptsz: the variant of such a function is `_ptsz`, as of all with a `stream`: a structure has it.
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
cuDeviceComputeCapability 2000 >int >int int
cuDeviceGet 2000 >int int
cuDeviceGetAttribute 2000 >int int int
cuDeviceGetByPCIBusId 4010 >int text
cuDeviceGetCount 2000 >int
cuDeviceGetDefaultMemPool 11020 >size int
cuDeviceGetDevResource 12040 int >=144 int
cuDeviceGetExecAffinitySupport 11040 >int int int
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
cuLogsCurrent 12090 >uint uint
cuLogsDumpToFile 12090 size text uint
cuLogsDumpToMemory 12090 size &byte &size uint
cuLogsRegisterCallback 12090 size size >size
cuLogsUnregisterCallback 12090 size
# Contexts
cuCheckpointProcessCheckpoint 12080 int size ; early
cuCheckpointProcessGetRestoreThreadId 12080 int >int ; early
cuCheckpointProcessGetState 12080 int >int ; early
cuCheckpointProcessLock 12080 int *CUcheckpointLockArgs ; early
cuCheckpointProcessRestore 12080 int *CUcheckpointRestoreArgs ; early
cuCheckpointProcessUnlock 12080 int size ; early
cuCtxAttach 2000 >size uint
cuCtxCreate 2000 >size uint int
cuCtxCreate_v2 3020 >size uint int
cuCtxCreate_v3 11040 >size size int uint int
cuCtxCreate_v4 12050 >size size uint int ; suffixed
cuCtxDestroy 2000 size
cuCtxDestroy_v2 4000 size ; frees
cuCtxDetach 2000 size
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
cuDevicePrimaryCtxSetFlags 7000 int uint
cuDevicePrimaryCtxSetFlags_v2 11000 int uint
cuGreenCtxCreate 12040 >size size int uint
cuGreenCtxDestroy 12040 size ; frees
cuGreenCtxGetDevResource 12040 size >=144 int
cuStreamGetDevResource 13010 stream >=144 int
cuGreenCtxStreamCreate 12050 >size size uint int
cuProfilerStart 4000
cuProfilerStop 4000
# Streams and events
cuEventCreate 2000 >size uint ; hot
cuEventDestroy 2000 size
cuEventDestroy_v2 4000 size ; hot frees
cuEventElapsedTime 2000 >float size size
cuEventElapsedTime_v2 12080 >float size size
cuEventQuery 2000 size ; hot
cuEventRecord 2000 size stream ; hot
cuEventRecordWithFlags 11010 size stream uint
cuEventSynchronize 2000 size ; hot wait
cuIpcGetEventHandle 4010 >=64 size
cuIpcOpenEventHandle 4010 >size @CUipcEventHandle
cuLaunchHostFunc 10000 stream size size
cuLaunchHostFunc_v2 13010 stream size size uint
cuStreamAddCallback 5000 stream size size uint
cuStreamAttachMemAsync 6000 stream size size uint
cuStreamBatchMemOp 8000 stream uint *CUstreamBatchMemOpParams=48[1] uint
cuStreamBatchMemOp_v2 11070 stream uint *CUstreamBatchMemOpParams=48[1] uint
cuStreamBeginCapture_v2 10010 stream int
cuStreamBeginCapture 10000 stream
cuStreamBeginCaptureToGraph 12030 stream size size[4] edge[4] size int
cuStreamCopyAttributes 11000 stream stream
cuStreamCreate 2000 >size uint
cuStreamCreateWithPriority 5050 >size uint int ; hot
cuStreamDestroy 2000 size
cuStreamDestroy_v2 4000 size ; hot frees
cuStreamEndCapture 10000 stream >size
cuStreamGetAttribute 11000 stream int >=64
cuStreamGetCaptureInfo_v2 11030 stream >int >?size >?size >?size >?size
cuStreamGetCaptureInfo 10010 stream >int >?size
cuStreamGetCaptureInfo_v3 12030 stream >int >?size >?size >?size >?size >?size ; suffixed
cuStreamGetCtx 9020 stream >size
cuStreamGetCtx_v2 12050 stream >size >size
cuStreamGetDevice 12080 stream >int
cuStreamGetFlags 5050 stream >uint
cuStreamGetId 12000 stream >size
cuStreamGetPriority 5050 stream >int
cuStreamIsCapturing 10000 stream >int
cuStreamQuery 2000 stream ; hot
cuStreamSetAttribute 11000 stream int *CUkernelNodeAttrValue
cuStreamSynchronize 2000 stream ; hot wait
cuStreamUpdateCaptureDependencies 11030 stream size[2] size uint
cuStreamUpdateCaptureDependencies_v2 12030 stream size[3] edge[3] size uint ; suffixed
cuStreamWaitEvent 3020 stream size uint ; hot
cuStreamWaitValue32 8000 stream size uint uint
cuStreamWaitValue32_v2 11070 stream size uint uint
cuStreamWaitValue64 9000 stream size size uint
cuStreamWaitValue64_v2 11070 stream size size uint
cuStreamWriteValue32 8000 stream size uint uint
cuStreamWriteValue32_v2 11070 stream size uint uint
cuStreamWriteValue64 9000 stream size size uint
cuStreamWriteValue64_v2 11070 stream size size uint
cuThreadExchangeStreamCaptureMode 10010 &int
# Copies and fills
cuMemcpy 4000 size size size ; ptds
cuMemcpy2D_v2 3020 size ; ptds
cuMemcpy2DAsync_v2 3020 size stream
cuMemcpy2DUnaligned_v2 3020 size ; ptds
cuMemcpy3D_v2 3020 *CUDA_MEMCPY3D ; ptds
cuMemcpy3DAsync_v2 3020 *CUDA_MEMCPY3D stream ; copy
cuMemcpy3DBatchAsync 12080 size *CUDA_MEMCPY3D_BATCH_OP=112[0] size size stream
cuMemcpy3DBatchAsync_v2 13000 size *CUDA_MEMCPY3D_BATCH_OP=112[0] size stream
cuMemcpy3DPeer 4000 *CUDA_MEMCPY3D_PEER ; ptds
cuMemcpy3DPeerAsync 4000 *CUDA_MEMCPY3D_PEER stream ; copy
cuMemcpy3DWithAttributesAsync 13020 *CUDA_MEMCPY3D_BATCH_OP size stream
cuMemcpyAsync 4000 size size size stream
cuMemcpyAtoA_v2 3020 size size size size size ; ptds
cuMemcpyAtoD_v2 3020 size size size size ; ptds
cuMemcpyAtoH_v2 3020 size size size size ; ptds
cuMemcpyAtoHAsync_v2 3020 size size size size stream
cuMemcpyBatchAsync 12080 &size[3] &size[3] &size[3] size &*CUmemcpyAttributes=24[6] &size[6] size size stream
cuMemcpyBatchAsync_v2 13000 &size[3] &size[3] &size[3] size &*CUmemcpyAttributes=24[6] &size[6] size stream ; copy
cuMemcpyDtoA_v2 3020 size size size size ; ptds
cuMemcpyDtoD_v2 3020 size size size ; ptds
cuMemcpyDtoDAsync_v2 3020 size size bytes stream ; hot copy
cuMemcpyDtoH_v2 3020 size size size ; ptds
cuMemcpyDtoHAsync_v2 3020 size size bytes stream ; hot copy
cuMemcpyHtoA_v2 3020 size size size size ; ptds
cuMemcpyHtoAAsync_v2 3020 size size size size stream
cuMemcpyHtoD_v2 3020 size size size ; ptds
cuMemcpyHtoDAsync_v2 3020 size size bytes stream ; hot copy
cuMemcpyPeer 4000 size size size size size ; ptds
cuMemcpyPeerAsync 4000 size size size size bytes stream ; copy
cuMemcpyWithAttributesAsync 13020 size size size *CUmemcpyAttributes stream
cuMemsetD16_v2 3020 size short size ; ptds
cuMemsetD16Async 3020 size short size stream ; copy
cuMemsetD2D16_v2 3020 size size short size size ; ptds
cuMemsetD2D16Async 3020 size size short size size stream ; copy
cuMemsetD2D32_v2 3020 size size uint size size ; ptds
cuMemsetD2D32Async 3020 size size uint size size stream ; copy
cuMemsetD2D8_v2 3020 size size byte size size ; ptds
cuMemsetD2D8Async 3020 size size byte size size stream ; copy
cuMemsetD32_v2 3020 size uint size ; ptds
cuMemsetD32Async 3020 size uint size stream ; copy
cuMemsetD8_v2 3020 size byte size ; ptds
cuMemsetD8Async 3020 size byte bytes stream ; copy
# Memory
cuIpcCloseMemHandle 4010 size ; frees
cuIpcGetMemHandle 4010 >=64 size
cuIpcOpenMemHandle 4010 >size @CUipcMemHandle uint
cuIpcOpenMemHandle_v2 11000 >size @CUipcMemHandle uint
cuMemAddressFree 10020 size size ; frees
cuMemAddressReserve 10020 >size size size size size
cuMemAdvise 8000 size size int int
cuMemAdvise_v2 12020 size size int location ; suffixed
cuMemAlloc_v2 3020 >size bytes ; allocation
cuMemAllocAsync 11020 >size bytes stream ; hot allocation
cuMemAllocFromPoolAsync 11020 >size bytes size stream ; allocation
cuMemAllocHost_v2 3020 >size size
cuMemAllocManaged 6000 >size size uint
cuMemAllocPitch_v2 3020 >size >size size size uint
cuMemCreate 10020 >size size *CUmemAllocationProp size
cuMemDiscardAndPrefetchBatchAsync 13000 &size[2] &size[2] size &location[5] &size[5] size size stream ; copy
cuMemDiscardBatchAsync 13000 &size[2] &size[2] size size stream ; copy
cuMemExportToShareableHandle 10020 >int size int size
cuMemFree_v2 3020 size ; frees allocation
cuMemFreeAsync 11020 size stream ; hot frees allocation
cuMemFreeHost 2000 size ; frees allocation
cuMemGetAddressRange_v2 3020 >?size >?size size
cuMemGetAccess 10020 >size *CUmemLocation size
cuMemGetAllocationGranularity 10020 >size *CUmemAllocationProp int
cuMemGetAllocationPropertiesFromHandle 10020 >=32 size
cuMemGetDefaultMemPool 13000 >size *location int
cuMemGetInfo_v2 3020 >?size >?size
cuMemGetMemPool 13000 >size *location int
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
cuMemPoolGetAccess 11020 >int size *location
cuMemPoolGetAttribute 11020 size int >byte
cuMemPoolImportFromShareableHandle 11020 >size size int size
cuMemPoolImportPointer 11020 >size size *CUmemPoolPtrExportData
cuMemPoolSetAccess 11020 size access[2] size
cuMemPoolSetAttribute 11020 size int &byte
cuMemPoolTrimTo 11020 size size
cuMemPrefetchAsync 8000 size size int stream
cuMemPrefetchAsync_v2 12020 size bytes location uint stream ; suffixed copy
cuMemPrefetchBatchAsync 13000 &size[2] &size[2] size &location[5] &size[5] size size stream ; copy
cuMemRangeGetAttribute 8000 >byte size int size size
cuMemRangeGetAttributes 8000 &size[3] &size[3] &int[3] size size size
cuMemRelease 10020 size ; frees
cuMemRetainAllocationHandle 11000 >size size
cuMemSetAccess 10020 size size access[3] size
cuMemSetMemPool 13000 *location int size
cuMemUnmap 10020 size size ; frees
cuMulticastAddDevice 12010 size int
cuMulticastBindAddr 12010 size size size size size
cuMulticastBindMem 12010 size size size size size size
cuMulticastCreate 12010 >size *CUmulticastObjectProp
cuMulticastGetGranularity 12010 >size *CUmulticastObjectProp int
cuMulticastUnbind 12010 size int size size ; frees
cuPointerGetAttribute 4000 >byte int size
cuPointerGetAttributes 7000 uint &int &size size ; hot
# External memory and semaphores
cuDestroyExternalMemory 10000 size ; frees
cuDestroyExternalSemaphore 10000 size ; frees
cuExternalMemoryGetMappedBuffer 10000 >size size *CUDA_EXTERNAL_MEMORY_BUFFER_DESC
cuImportExternalMemory 10000 >size *CUDA_EXTERNAL_MEMORY_HANDLE_DESC
cuImportExternalSemaphore 10000 >size *CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC
cuSignalExternalSemaphoresAsync 10000 size[2] *CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS=144[2] uint stream
cuWaitExternalSemaphoresAsync 10000 size[2] *CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS=144[2] uint stream
# OpenGL
cuGLCtxCreate 2000 >?size uint int
cuGLCtxCreate_v2 3020 >?size uint int
cuGLGetDevices 4010 >?uint >?size uint int
cuGLInit 2000
cuGLMapBufferObject 2000 >?uint >?uint uint
cuGLMapBufferObjectAsync 2030 >?uint >?uint uint size
cuGLMapBufferObjectAsync_v2 3020 >?size >?size uint stream
cuGLMapBufferObject_v2 3020 >?size >?size uint ; ptds
cuGLRegisterBufferObject 2000 uint
cuGLSetBufferObjectMapFlags 2030 uint uint
cuGLUnmapBufferObject 2000 uint
cuGLUnmapBufferObjectAsync 2030 uint size
cuGLUnregisterBufferObject 2000 uint
cuGLGetDevices_v2 6050 >uint >size uint int
cuGraphicsGLRegisterBuffer 3000 >size uint uint
cuGraphicsGLRegisterImage 3000 >size uint uint uint
cuGraphicsMapResources 3000 uint size stream
cuGraphicsResourceGetMappedPointer_v2 3020 >size >size size
cuGraphicsResourceSetMapFlags 3000 size uint
cuGraphicsResourceSetMapFlags_v2 6050 size uint
cuGraphicsResourceGetMappedPointer 3000 >?uint >?uint size
cuGraphicsSubResourceGetMappedArray 3000 >size size uint uint
cuGraphicsUnmapResources 3000 uint size stream ; frees
cuGraphicsUnregisterResource 3000 size ; frees
# Arrays, textures, surfaces and tensor maps
cuArray3DCreate_v2 3020 >size *CUDA_ARRAY3D_DESCRIPTOR
cuArray3DGetDescriptor_v2 3020 >=40 size
cuArrayCreate_v2 3020 >size &*CUDA_ARRAY_DESCRIPTOR=24
cuArrayDestroy 2000 size ; frees
cuArrayGetDescriptor_v2 3020 >=24 size
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
cuFuncSetBlockShape 2000 size int int int
cuFuncSetCacheConfig 3000 size int
cuFuncSetSharedSize 2000 size uint
cuKernelGetAttribute 12000 >int int size int
cuKernelGetFunction 12000 >size size
cuKernelGetLibrary 12050 >size size
cuKernelGetName 12030 >size size
cuKernelGetParamInfo 12040 size size >size >?size
cuKernelSetAttribute 12000 int int size int
cuKernelSetCacheConfig 12000 size int int
cuLaunch 2000 size
cuLaunchCooperativeKernel 9000 size uint uint uint uint uint uint uint stream size
cuLaunchGrid 2000 size int int
cuLaunchGridAsync 2000 size int int size
cuLaunchKernel 4000 size uint uint uint uint uint uint uint stream size size
cuLaunchKernelEx 11060 &size size size size ; hot launch ptsz
cuLibraryEnumerateKernels 12040 >size uint size
cuLibraryGetGlobal 12000 >?size >?size size text
cuLibraryGetKernel 12000 >size size text
cuLibraryGetKernelCount 12040 >uint size
cuLibraryGetModule 12000 >size size
cuLibraryLoadData 12000 >size &image int[4] size[4] uint int[7] size[7] uint
cuLibraryLoadFromFile 12000 >size text int[4] size[4] uint int[7] size[7] uint
cuLibraryUnload 12000 size ; frees
cuLinkAddData_v2 6050 size int &byte size ?text uint size size
cuLinkAddData 5050 size int &byte size ?text uint size size
cuLinkAddFile_v2 6050 size int text uint size size
cuLinkAddFile 5050 size int text uint size size
cuLinkComplete 5050 size >size >?size ; compilation
cuLinkCreate_v2 6050 uint int[0] size[0] >size
cuLinkCreate 5050 uint int[0] size[0] >size
cuLinkDestroy 5050 size
cuModuleEnumerateFunctions 12040 >size uint size
cuModuleGetFunction 2000 >size size text
cuModuleGetFunctionCount 12040 >uint size
cuModuleGetGlobal_v2 3020 >?size >?size size text
cuModuleGetLoadingMode 11070 >int
cuModuleLoad 2000 >size text
cuModuleLoadData 2000 >size &image ; compilation
cuModuleLoadDataEx 2010 >size &image uint int[2] size[2] ; compilation
cuModuleLoadFatBinary 2000 >size &image
cuModuleUnload 2000 size ; frees
cuOccupancyAvailableDynamicSMemPerBlock 10020 >size size int int
cuOccupancyMaxActiveBlocksPerMultiprocessor 6050 >int size int size
cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags 7000 >int size int size uint
cuOccupancyMaxActiveClusters 11070 >int size &size
cuOccupancyMaxPotentialBlockSize 6050 >int >int size size size int
cuOccupancyMaxPotentialBlockSizeWithFlags 7000 >int >int size size size int uint
cuOccupancyMaxPotentialClusterSize 11070 >int size &size
cuParamSetf 2000 size int float
cuParamSeti 2000 size int uint
cuParamSetSize 2000 size uint
cuParamSetv 2000 size int &byte uint
# Graphs
cuGraphAddChildGraphNode 10000 >size size size[3] size size
cuGraphAddDependencies 10000 size size[3] size[3] size
cuGraphAddDependencies_v2 12030 size size[4] size[4] edge[4] size ; suffixed
cuGraphAddEmptyNode 10000 >size size size[3] size
cuGraphAddEventRecordNode 11010 >size size size[3] size size
cuGraphAddEventWaitNode 11010 >size size size[3] size size
cuGraphAddHostNode 10000 >size size size[3] size size
cuGraphAddKernelNode_v2 12000 >size size size[3] size size
cuGraphAddKernelNode 10000 >size size size[3] size size
cuGraphAddMemAllocNode 11040 >size size size[3] size &byte
cuGraphAddMemFreeNode 11040 >size size size[3] size size
cuGraphAddMemcpyNode 10000 >size size size[3] size size size
cuGraphAddMemsetNode 10000 >size size size[3] size size size
cuGraphAddNode 12020 >size size size[3] size *CUgraphNodeParams=256
cuGraphAddNode_v2 12030 >size size size[4] edge[4] size *CUgraphNodeParams=256 ; suffixed
cuGraphChildGraphNodeGetGraph 10000 size >size
cuGraphClone 10000 >size size
cuGraphConditionalHandleCreate 12030 >size size size uint uint
cuGraphCreate 10000 >size uint
cuGraphDebugDotPrint 11030 size text uint
cuGraphDestroy 10000 size ; frees
cuGraphDestroyNode 10000 size
cuGraphEventRecordNodeGetEvent 11010 size >size
cuGraphEventWaitNodeGetEvent 11010 size >size
cuGraphExecDestroy 10000 size ; frees
cuGraphExecGetId 13010 size >uint
cuGraphExecHostNodeSetParams 10020 size size size
cuGraphExecKernelNodeSetParams_v2 12000 size size size
cuGraphExecKernelNodeSetParams 10010 size size size
cuGraphExecMemcpyNodeSetParams 10020 size size size size
cuGraphExecMemsetNodeSetParams 10020 size size size size
cuGraphExecNodeSetParams 12020 size size *CUgraphNodeParams=256
cuGraphExecUpdate_v2 12000 size size size
cuGraphExecUpdate 10020 size size >?size >?uint
cuGraphGetEdges 10000 size size size &size
cuGraphGetEdges_v2 12030 size size size size &size ; suffixed
cuGraphGetId 13010 size >uint
cuGraphGetNodes 10000 size size &size
cuGraphGetRootNodes 10000 size size &size
cuGraphHostNodeGetParams 10000 size >=16
cuGraphHostNodeSetParams 10000 size size
cuGraphInstantiate 10000 >size size size size size
cuGraphInstantiate_v2 11000 >size size size size size
cuGraphInstantiateWithFlags 11040 >size size size ; name=cuGraphInstantiate
cuGraphInstantiateWithParams 12000 >size size &*CUDA_GRAPH_INSTANTIATE_PARAMS=32 ; ptsz compilation
cuGraphKernelNodeCopyAttributes 11000 size size
cuGraphKernelNodeGetAttribute 11000 size int >=64
cuGraphKernelNodeGetParams 10000 size >=56
cuGraphKernelNodeGetParams_v2 12000 size >=72
cuGraphKernelNodeSetAttribute 11000 size int *CUkernelNodeAttrValue
cuGraphKernelNodeSetParams_v2 12000 size size
cuGraphKernelNodeSetParams 10000 size size
cuGraphLaunch 10000 size stream ; hot launch
cuGraphMemAllocNodeGetParams 11040 size >=120
cuGraphMemFreeNodeGetParams 11040 size >size
cuGraphMemcpyNodeGetParams 10000 size >=200
cuGraphMemcpyNodeSetParams 10000 size size
cuGraphMemsetNodeGetParams 10000 size >=40
cuGraphMemsetNodeSetParams 10000 size size
cuGraphNodeFindInClone 10000 >size size size
cuGraphNodeGetContainingGraph 13010 size >size
cuGraphNodeGetDependencies 10000 size size &size
cuGraphNodeGetDependencies_v2 12030 size size size &size
cuGraphNodeGetDependentNodes 10000 size size &size
cuGraphNodeGetDependentNodes_v2 12030 size size size &size
cuGraphNodeGetEnabled 11060 size size >uint
cuGraphNodeGetLocalId 13010 size >uint
cuGraphNodeGetParams 13020 size >=256
cuGraphNodeGetToolsId 13010 size >size
cuGraphNodeGetType 10000 size >int
cuGraphNodeSetEnabled 11060 size size uint
cuGraphNodeSetParams 12020 size *CUgraphNodeParams=256
cuGraphReleaseUserObject 11030 size size uint
cuGraphRemoveDependencies 10000 size size[3] size[3] size
cuGraphRemoveDependencies_v2 12030 size size[4] size[4] edge[4] size ; suffixed
cuGraphRetainUserObject 11030 size size uint uint
cuGraphUpload 11010 size stream ; launch
cuUserObjectCreate 11030 >size size size uint uint
cuUserObjectRelease 11030 size uint ; frees
# Forms of CUDA 3.1 and older, whose addresses have 32 bits
cuArray3DCreate 2000 >?size size
cuArray3DGetDescriptor 2000 size size
cuArrayCreate 2000 >?size size
cuArrayGetDescriptor 2000 size size
cuDeviceTotalMem 2000 >uint int
cuMemAlloc 2000 >?uint uint
cuMemAllocHost 2000 >?size uint
cuMemAllocPitch 2000 >?uint >?uint uint uint uint
cuMemFree 2000 uint
cuMemGetAddressRange 2000 >?uint >?uint uint
cuMemGetInfo 2000 >?uint >?uint
cuMemHostGetDevicePointer 2020 >?uint size uint
cuMemcpy2D 2000 size
cuMemcpy2DAsync 2000 size size
cuMemcpy2DUnaligned 2000 size
cuMemcpy3D 2000 size
cuMemcpy3DAsync 2000 size size
cuMemcpyAtoA 2000 size uint size uint uint
cuMemcpyAtoD 2000 uint size uint uint
cuMemcpyAtoH 2000 size size uint uint
cuMemcpyAtoHAsync 2000 size size uint uint size
cuMemcpyDtoA 2000 size uint uint uint
cuMemcpyDtoD 2000 uint uint uint
cuMemcpyDtoDAsync 3000 uint uint uint size
cuMemcpyDtoH 2000 size uint uint
cuMemcpyDtoHAsync 2000 size uint uint size
cuMemcpyHtoA 2000 size uint size uint
cuMemcpyHtoAAsync 2000 size uint size uint size
cuMemcpyHtoD 2000 uint size uint
cuMemcpyHtoDAsync 2000 uint size uint size
cuMemsetD16 2000 uint short uint
cuMemsetD2D16 2000 uint uint short uint uint
cuMemsetD2D32 2000 uint uint uint uint uint
cuMemsetD2D8 2000 uint uint byte uint uint
cuMemsetD32 2000 uint uint uint
cuMemsetD8 2000 uint byte uint
cuModuleGetGlobal 2000 >?uint >?uint size ?text
cuTexRefGetAddress 2000 >?uint size
cuTexRefSetAddress 2000 >?uint size uint uint
cuTexRefSetAddress2D 2020 size size uint uint
cuTexRefSetAddress2D_v2 3020 size size size size
# Functions that the emulator lacks
cuArrayGetMemoryRequirements 11060 size size int ; absent
cuArrayGetPlane 11020 size size uint ; absent
cuArrayGetSparseProperties 11010 size size ; absent
cuCheckpointOperationComplete 13040 size ; absent
cuCoredumpDeregisterCompleteCallback 13020 size ; absent
cuCoredumpDeregisterStartCallback 13020 size ; absent
cuCoredumpGetAttribute 12010 int size &size
cuCoredumpGetAttributeGlobal 12010 int size &size
cuCoredumpRegisterCompleteCallback 13020 size size size ; absent
cuCoredumpRegisterStartCallback 13020 size size size ; absent
cuCoredumpSetAttribute 12010 int &byte &size
cuCoredumpSetAttributeGlobal 12010 int &byte &size
cuCtxGetExecAffinity 11040 size int ; absent
cuCtxGetSharedMemConfig 4020 size ; absent
cuCtxRecordEvent 12050 size size ; absent
cuCtxResetPersistingL2Cache 11000 ; absent
cuCtxSetFlags 12010 uint ; absent
cuCtxSetSharedMemConfig 4020 int ; absent
cuCtxWaitEvent 12050 size size ; absent
cuDeviceGetCliqueCount 13040 size int ; absent
cuDeviceGetCliqueInfo 13040 size size int ; absent
cuDeviceGetFabricClusterUuid 13040 size int ; absent
cuDeviceGetHostAtomicCapabilities 13000 size size uint int ; absent
cuDeviceGetLuid 10000 size size int ; absent
cuDeviceGetNvSciSyncAttributes 10020 size int int ; absent
cuDeviceGetP2PAtomicCapabilities 13000 size size uint int int ; absent
cuDeviceGetP2PAttribute 8000 size int int int ; absent
cuDeviceGetProperties 2000 size int ; absent
cuDeviceGetTexture1DLinearMaxWidth 11010 size int uint int ; absent
cuDeviceRegisterAsyncNotification 12040 int size size size ; absent
cuDeviceUnregisterAsyncNotification 12040 int size ; absent
cuEGLApiInit 7000 size ; absent
cuEGLStreamConsumerAcquireFrame 7000 size size size uint ; absent
cuEGLStreamConsumerConnect 7000 size size ; absent
cuEGLStreamConsumerConnectWithFlags 8000 size size uint ; absent
cuEGLStreamConsumerDisconnect 7000 size ; absent
cuEGLStreamConsumerReleaseFrame 7000 size size size ; absent
cuEGLStreamProducerConnect 7000 size size int int ; absent
cuEGLStreamProducerDisconnect 7000 size ; absent
cuEGLStreamProducerPresentFrame 7000 size size size ; absent
cuEGLStreamProducerReturnFrame 7000 size size size ; absent
cuExternalMemoryGetMappedMipmappedArray 10000 size size size ; absent
cuFabricCpyBatchAsync 13050 size size size stream ; absent
cuFlushGPUDirectRDMAWrites 11030 int int ; absent
cuFuncIsLoaded 12040 size size ; absent
cuFuncLoad 12040 size ; absent
cuFuncSetSharedMemConfig 4020 size int ; absent
cuGraphAddBatchMemOpNode 11070 size size size size size ; absent
cuGraphAddExternalSemaphoresSignalNode 11020 size size size size size ; absent
cuGraphAddExternalSemaphoresWaitNode 11020 size size size size size ; absent
cuGraphAddNode_v3 13040 size size size size size size ; absent
cuGraphBatchMemOpNodeGetParams 11070 size size ; absent
cuGraphBatchMemOpNodeSetParams 11070 size size ; absent
cuGraphEventRecordNodeSetEvent 11010 size size ; absent
cuGraphEventWaitNodeSetEvent 11010 size size ; absent
cuGraphExecBatchMemOpNodeSetParams 11070 size size size ; absent
cuGraphExecChildGraphNodeSetParams 11010 size size size ; absent
cuGraphExecEventRecordNodeSetEvent 11010 size size size ; absent
cuGraphExecEventWaitNodeSetEvent 11010 size size size ; absent
cuGraphExecExternalSemaphoresSignalNodeSetParams 11020 size size size ; absent
cuGraphExecExternalSemaphoresWaitNodeSetParams 11020 size size size ; absent
cuGraphExecGetFlags 12000 size size ; absent
cuGraphExternalSemaphoresSignalNodeGetParams 11020 size size ; absent
cuGraphExternalSemaphoresSignalNodeSetParams 11020 size size ; absent
cuGraphExternalSemaphoresWaitNodeGetParams 11020 size size ; absent
cuGraphExternalSemaphoresWaitNodeSetParams 11020 size size ; absent
cuGraphNodeSetParams_v2 13040 size size ; absent
cuGraphicsEGLRegisterImage 7000 size size uint ; absent
cuGraphicsResourceGetMappedEglFrame 7000 size size uint uint ; absent
cuGraphicsResourceGetMappedMipmappedArray 5000 size size ; absent
cuGraphicsVDPAURegisterOutputSurface 3010 size uint uint ; absent
cuGraphicsVDPAURegisterVideoSurface 3010 size uint uint ; absent
cuGreenCtxGetId 12090 size size ; absent
cuGreenCtxRecordEvent 12040 size size ; absent
cuGreenCtxWaitEvent 12040 size size ; absent
cuKernelGetParamCount 13020 size size ; absent
cuLaunchCooperativeKernelMultiDevice 9000 size uint uint ; absent
cuLibraryGetManaged 12000 size size size size ; absent
cuLibraryGetUnifiedFunction 12000 size size size ; absent
cuLogicalEndpointAddDevice 13030 uint int ; absent
cuLogicalEndpointBindAddr 13030 uint int size size size size ; absent
cuLogicalEndpointBindMem 13030 uint int size size size size size ; absent
cuLogicalEndpointCreate 13030 uint size ; absent
cuLogicalEndpointDestroy 13030 uint ; absent
cuLogicalEndpointExport 13030 size uint int ; absent
cuLogicalEndpointGetLimits 13030 size size size ; absent
cuLogicalEndpointIdRelease 13030 uint uint ; absent
cuLogicalEndpointIdReserve 13030 size uint ; absent
cuLogicalEndpointImport 13030 uint size int ; absent
cuLogicalEndpointQuery 13030 uint uint size ; absent
cuLogicalEndpointUnbind 13030 uint int size size ; absent
cuMemBatchDecompressAsync 12060 size size uint size stream ; absent
cuMemGetHandleForAddressRange 11070 size size size int size ; absent
cuMemGetLocationInfo 13040 size size size size size ; absent
cuMemMapArrayAsync 11010 size uint stream ; absent
cuMipmappedArrayGetMemoryRequirements 11060 size size int ; absent
cuMipmappedArrayGetSparseProperties 11010 size size ; absent
cuModuleGetSurfRef 3000 size size size ; absent
cuModuleGetTexRef 2000 size size size ; absent
cuMulticastBindAddr_v2 13010 size int size size size size ; absent
cuMulticastBindMem_v2 13010 size int size size size size size ; absent
cuParamSetTexRef 2000 size int size ; absent
cuPointerSetAttribute 6000 &byte int size
cuProfilerInitialize 4000 text text int ; absent
cuStreamBeginCaptureToCig 13010 stream size ; absent
cuStreamBeginRecaptureToGraph 13030 stream int size size size ; absent
cuStreamEndCaptureToCig 13010 stream ; absent
cuStreamGetGreenCtx 12040 size size ; absent
cuSurfObjectGetResourceDesc 5000 size size ; absent
cuSurfRefGetArray 3000 size size ; absent
cuSurfRefSetArray 3000 size size uint ; absent
cuTensorMapSetAllocationClass 13050 size int size ; absent
cuTexObjectGetResourceDesc 5000 size size ; absent
cuTexObjectGetResourceViewDesc 5000 size size ; absent
cuTexObjectGetTextureDesc 5000 size size ; absent
cuTexRefCreate 2000 size ; absent
cuTexRefDestroy 2000 size ; absent
cuTexRefGetAddressMode 2000 size size int ; absent
cuTexRefGetAddress_v2 3020 size size ; absent
cuTexRefGetArray 2000 size size ; absent
cuTexRefGetBorderColor 8000 size size ; absent
cuTexRefGetFilterMode 2000 size size ; absent
cuTexRefGetFlags 2000 size size ; absent
cuTexRefGetFormat 2000 size size size ; absent
cuTexRefGetMaxAnisotropy 5000 size size ; absent
cuTexRefGetMipmapFilterMode 5000 size size ; absent
cuTexRefGetMipmapLevelBias 5000 size size ; absent
cuTexRefGetMipmapLevelClamp 5000 size size size ; absent
cuTexRefGetMipmappedArray 5000 size size ; absent
cuTexRefSetAddress2D_v3 4010 size size size size ; absent
cuTexRefSetAddressMode 2000 size int int ; absent
cuTexRefSetAddress_v2 3020 size size size size ; absent
cuTexRefSetArray 2000 size size uint ; absent
cuTexRefSetBorderColor 8000 size size ; absent
cuTexRefSetFilterMode 2000 size int ; absent
cuTexRefSetFlags 2000 size uint ; absent
cuTexRefSetFormat 2000 size int int ; absent
cuTexRefSetMaxAnisotropy 5000 size uint ; absent
cuTexRefSetMipmapFilterMode 5000 size int ; absent
cuTexRefSetMipmapLevelBias 5000 size float ; absent
cuTexRefSetMipmapLevelClamp 5000 size float float ; absent
cuTexRefSetMipmappedArray 5000 size size uint ; absent
cuUserObjectRetain 11030 size uint ; absent
cuVDPAUCtxCreate 3010 size uint int uint size ; absent
cuVDPAUCtxCreate_v2 3020 size uint int uint size ; absent
cuVDPAUGetDevice 3010 size uint size ; absent
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
        names = [flag for flag in self.flags if flag.startswith("name=")]
        return names[0].removeprefix("name=") if names else without_version(self.symbol)

    @property
    def per_thread(self) -> str:
        """The symbol of its variant for each thread's default stream; empty if there is none."""
        if "ptds" in self.flags:
            return self.symbol + "_ptds"
        has_stream = "stream" in self.parameters or "ptsz" in self.flags
        return self.symbol + "_ptsz" if has_stream else ""


def without_version(symbol: str) -> str:
    """Return a symbol without a suffix such as `_v2`."""
    base, _, suffix = symbol.rpartition("_v")
    return base if base and suffix.isdecimal() else symbol


def read_table(table: str) -> tuple[FunctionForm, ...]:
    """Return the forms of a table; empty lines and lines that begin with `#` are skipped."""
    return tuple(_form(line) for line in table.split("\n") if line and line[0] != "#")


def _form(line: str) -> FunctionForm:
    form, _, flags = line.partition(";")
    symbol, since, *parameters = form.split()
    return FunctionForm(symbol, int(since), tuple(parameters), tuple(flags.split()))


def forms() -> tuple[FunctionForm, ...]:
    """Return the forms of all driver functions, also of functions that the emulator lacks."""
    return read_table(_TABLE)


@cache
def _flagged_forms() -> tuple[FunctionForm, ...]:
    lines = (line for line in _TABLE.split("\n") if ";" in line)
    return tuple(_form(line) for line in lines if not line.endswith("; absent"))


def flagged(flag: str) -> dict[str, FunctionForm]:
    """Return the forms that have a flag, by the functions' names."""
    return {form.name: form for form in _flagged_forms() if flag in form.flags}
