"""The driver's functions that need nothing but their numbers passed on.

Each line has the symbol, the version of CUDA that brought this form of it, and its parameters
(`signature.py`). Older forms stand here where they take the same, as compiled callers ask for the
functions of the version that they were built for. CUDA Driver API manual, and `cudaTypedefs.h` for
versions.
"""

from __future__ import annotations

from typing import Final

from .signature import signatures

PLAIN: Final = signatures("""
cuInit 2000 uint
cuDriverGetVersion 2020 >int
cuDeviceGet 2000 >int int
cuDeviceGetCount 2000 >int
cuDeviceGetAttribute 2000 >int int int
cuDeviceTotalMem_v2 3020 >size int
cuDeviceCanAccessPeer 4000 >int int int
cuDeviceGetDefaultMemPool 11020 >size int
cuDeviceGetMemPool 11020 >size int
cuDeviceSetMemPool 11020 int size
cuDevicePrimaryCtxRetain 7000 >size int
cuDevicePrimaryCtxRelease 7000 int
cuDevicePrimaryCtxRelease_v2 11000 int
cuDevicePrimaryCtxReset 7000 int
cuDevicePrimaryCtxReset_v2 11000 int
cuDevicePrimaryCtxGetState 7000 int >uint >int
cuCtxDestroy 2000 size
cuCtxDestroy_v2 4000 size
cuCtxGetCurrent 4000 >size
cuCtxSetCurrent 4000 size
cuCtxPushCurrent 2000 size
cuCtxPushCurrent_v2 4000 size
cuCtxPopCurrent 2000 >?size
cuCtxPopCurrent_v2 4000 >?size
cuCtxGetDevice 2000 >int
cuCtxGetFlags 7000 >uint
cuCtxGetId 12000 size >size
cuCtxGetApiVersion 3020 size >uint
cuCtxGetLimit 3010 >size int
cuCtxSetLimit 3010 int size
cuCtxGetCacheConfig 3020 >int
cuCtxSetCacheConfig 3020 int
cuCtxSynchronize 2000
cuCtxEnablePeerAccess 4000 size uint
cuCtxDisablePeerAccess 4000 size
cuStreamCopyAttributes 11000 stream stream
cuCtxGetStreamPriorityRange 5050 >?int >?int
cuGreenCtxCreate 12040 >size size int uint
cuGreenCtxDestroy 12040 size
cuGreenCtxStreamCreate 12050 >size size uint int
cuCtxFromGreenCtx 12040 >size size
cuStreamCreate 2000 >size uint
cuStreamCreateWithPriority 5050 >size uint int
cuStreamDestroy 2000 size
cuStreamDestroy_v2 4000 size
cuStreamSynchronize 2000 stream
cuStreamQuery 2000 stream
cuStreamGetPriority 5050 stream >int
cuStreamGetFlags 5050 stream >uint
cuStreamGetId 12000 stream >size
cuStreamGetDevice 12080 stream >int
cuStreamGetCtx 9020 stream >size
cuStreamWaitEvent 3020 stream size uint
cuStreamAddCallback 5000 stream size size uint
cuStreamBeginCapture_v2 10010 stream int
cuStreamEndCapture 10000 stream >size
cuStreamIsCapturing 10000 stream >int
cuStreamAttachMemAsync 6000 stream size size uint
cuLaunchHostFunc 10000 stream size size
cuEventCreate 2000 >size uint
cuEventDestroy 2000 size
cuEventDestroy_v2 4000 size
cuEventRecord 2000 size stream
cuEventRecordWithFlags 11010 size stream uint
cuEventQuery 2000 size
cuEventSynchronize 2000 size
cuEventElapsedTime 2000 >float size size
cuEventElapsedTime_v2 12080 >float size size
cuMemGetInfo_v2 3020 >size >size
cuMemAlloc_v2 3020 >size size
cuMemAllocManaged 6000 >size size uint
cuMemFree_v2 3020 size
cuMemGetAddressRange_v2 3020 >?size >?size size
cuMemAllocAsync 11020 >size size stream
cuMemAllocFromPoolAsync 11020 >size size size stream
cuMemFreeAsync 11020 size stream
cuMemAllocHost_v2 3020 >size size
cuMemHostAlloc 2020 >size size uint
cuMemFreeHost 2000 size
cuMemHostRegister 4000 size size uint
cuMemHostRegister_v2 6050 size size uint
cuMemHostUnregister 4000 size
cuMemHostGetDevicePointer_v2 3020 >size size uint
cuMemHostGetFlags 2030 >uint size
cuMemcpy 4000 size size size
cuMemcpyAsync 4000 size size size stream
cuMemcpyHtoD_v2 3020 size size size
cuMemcpyDtoH_v2 3020 size size size
cuMemcpyDtoD_v2 3020 size size size
cuMemcpyPeer 4000 size size size size size
cuMemcpyHtoDAsync_v2 3020 size size size stream
cuMemcpyDtoHAsync_v2 3020 size size size stream
cuMemcpyDtoDAsync_v2 3020 size size size stream
cuMemcpyPeerAsync 4000 size size size size size stream
cuMemcpy3D_v2 3020 *CUDA_MEMCPY3D
cuMemcpy3DAsync_v2 3020 *CUDA_MEMCPY3D stream
cuMemsetD8_v2 3020 size byte size
cuMemsetD16_v2 3020 size short size
cuMemsetD32_v2 3020 size uint size
cuMemsetD8Async 3020 size byte size stream
cuMemsetD16Async 3020 size short size stream
cuMemsetD32Async 3020 size uint size stream
cuMemsetD2D8Async 3020 size size byte size size stream
cuMemsetD2D16Async 3020 size size short size size stream
cuMemsetD2D32Async 3020 size size uint size size stream
cuMemPoolCreate 11020 >size *CUmemPoolProps
cuMemPoolDestroy 11020 size
cuMemPoolTrimTo 11020 size size
cuMemPoolExportToShareableHandle 11020 >int size int size
cuMemPoolImportFromShareableHandle 11020 >size size int size
cuMemPoolExportPointer 11020 >@CUmemPoolPtrExportData size
cuMemPoolImportPointer 11020 >size size *CUmemPoolPtrExportData
cuMemExportToShareableHandle 10020 >int size int size
cuMemImportFromShareableHandle 10020 >size size int
cuIpcGetMemHandle 4010 >@CUipcMemHandle size
cuIpcOpenMemHandle 4010 >size @CUipcMemHandle uint
cuIpcOpenMemHandle_v2 11000 >size @CUipcMemHandle uint
cuIpcCloseMemHandle 4010 size
cuIpcGetEventHandle 4010 >@CUipcEventHandle size
cuIpcOpenEventHandle 4010 >size @CUipcEventHandle
cuMemAddressReserve 10020 >size size size size size
cuMemAddressFree 10020 size size
cuMemCreate 10020 >size size *CUmemAllocationProp size
cuMemRelease 10020 size
cuMemRetainAllocationHandle 11000 >size size
cuMemGetAllocationGranularity 10020 >size *CUmemAllocationProp int
cuMemMap 10020 size size size size size
cuMemUnmap 10020 size size
cuArray3DCreate_v2 3020 >size *CUDA_ARRAY3D_DESCRIPTOR
cuArrayDestroy 2000 size
cuMipmappedArrayCreate 5000 >size *CUDA_ARRAY3D_DESCRIPTOR uint
cuMipmappedArrayGetLevel 5000 >size size uint
cuMipmappedArrayDestroy 5000 size
cuTexObjectCreate 5000 >size *CUDA_RESOURCE_DESC *CUDA_TEXTURE_DESC *CUDA_RESOURCE_VIEW_DESC
cuTexObjectDestroy 5000 size
cuSurfObjectCreate 5000 >size *CUDA_RESOURCE_DESC
cuSurfObjectDestroy 5000 size
cuModuleUnload 2000 size
cuModuleGetFunction 2000 >size size text
cuModuleGetGlobal_v2 3020 >?size >?size size text
cuModuleGetFunctionCount 12040 >uint size
cuModuleGetLoadingMode 11070 >int
cuFuncGetAttribute 2020 >int int size
cuFuncSetAttribute 9000 size int int
cuFuncSetCacheConfig 3000 size int
cuFuncGetParamInfo 12040 size size >size >?size
cuFuncGetParamCount 13020 size >size
cuFuncGetModule 11000 >size size
cuLibraryUnload 12000 size
cuLibraryGetKernel 12000 >size size text
cuLibraryGetModule 12000 >size size
cuLibraryGetGlobal 12000 >?size >?size size text
cuLibraryGetKernelCount 12040 >uint size
cuKernelGetFunction 12000 >size size
cuKernelGetLibrary 12050 >size size
cuKernelGetAttribute 12000 >int int size int
cuKernelSetAttribute 12000 int int size int
cuKernelSetCacheConfig 12000 size int int
cuKernelGetParamInfo 12040 size size >size >?size
cuOccupancyMaxActiveBlocksPerMultiprocessor 6050 >int size int size
cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags 7000 >int size int size uint
cuOccupancyAvailableDynamicSMemPerBlock 10020 >size size int int
cuLaunchKernel 4000 size uint uint uint uint uint uint uint stream size size
cuLaunchCooperativeKernel 9000 size uint uint uint uint uint uint uint stream size
cuDeviceGraphMemTrim 11040 int
cuCheckpointProcessGetState 12080 int >int
cuCheckpointProcessGetRestoreThreadId 12080 int >int
cuCheckpointProcessLock 12080 int size
cuCheckpointProcessCheckpoint 12080 int size
cuCheckpointProcessRestore 12080 int size
cuCheckpointProcessUnlock 12080 int size
cuProfilerStart 4000
cuProfilerStop 4000
cuGraphCreate 10000 >size uint
cuGraphClone 10000 >size size
cuGraphDestroyNode 10000 size
cuGraphNodeGetType 10000 size >int
cuGraphNodeGetEnabled 11060 size size >uint
cuGraphNodeSetEnabled 11060 size size uint
cuGraphConditionalHandleCreate 12030 >size size size uint uint
cuGraphDebugDotPrint 11030 size text uint
cuGraphUpload 11010 size stream
cuGraphLaunch 10000 size stream
cuGraphDestroy 10000 size
cuGraphExecDestroy 10000 size
cuGraphRetainUserObject 11030 size size uint uint
cuGraphReleaseUserObject 11030 size size uint
cuUserObjectCreate 11030 >size size size uint uint
cuUserObjectRelease 11030 size uint
""")
