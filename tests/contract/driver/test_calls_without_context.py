"""Which functions of the driver are called with whatever context is current."""

from __future__ import annotations

import re
from pathlib import Path

import cudadrv

ROOT = Path(cudadrv.__file__).parent
# Seen on two GPUs (driver 580) with the own context current, none, and another device's: in calls
# of the driver alone, or in the contract tests with CUDADRV_TEST_CURRENT.
SEEN = frozenset(
    [
        "cuCtxDestroy",
        "cuCtxFromGreenCtx",
        "cuCtxCreate",
        "cuCtxGetCurrent",
        "cuCtxGetDevResource",
        "cuCtxGetDevice",
        "cuCtxPopCurrent",
        "cuCtxPushCurrent",
        "cuCtxSetCurrent",
        "cuDevResourceGenerateDesc",
        "cuDevSmResourceSplitByCount",
        "cuDeviceCanAccessPeer",
        "cuDeviceGet",
        "cuDeviceGetAttribute",
        "cuDeviceGetCount",
        "cuDeviceGetDefaultMemPool",
        "cuDeviceGetDevResource",
        "cuDeviceGetName",
        "cuDeviceGetPCIBusId",
        "cuDeviceGetUuid",
        "cuDevicePrimaryCtxReset",
        "cuDeviceTotalMem",
        "cuDevicePrimaryCtxRetain",
        "cuDriverGetVersion",
        "cuEventDestroy",
        "cuEventElapsedTime",
        "cuEventQuery",
        "cuEventRecord",
        "cuEventSynchronize",
        "cuFuncGetAttribute",
        "cuFuncGetName",
        "cuFuncGetParamInfo",
        "cuFuncSetAttribute",
        "cuGetErrorString",
        "cuGetProcAddress",
        "cuGraphAddDependencies",
        "cuGraphAddNode",
        "cuGraphDebugDotPrint",
        "cuGraphDestroy",
        "cuGraphDestroyNode",
        "cuGraphExecDestroy",
        "cuGraphGetEdges",
        "cuGraphGetNodes",
        "cuGraphKernelNodeSetAttribute",
        "cuGraphLaunch",
        "cuGraphNodeGetEnabled",
        "cuGraphNodeGetType",
        "cuGraphNodeSetEnabled",
        "cuGraphReleaseUserObject",
        "cuGraphRemoveDependencies",
        "cuGraphRetainUserObject",
        "cuGraphUpload",
        "cuGreenCtxCreate",
        "cuGreenCtxDestroy",
        "cuInit",
        "cuLaunchHostFunc",
        "cuLaunchKernelEx",
        "cuMemAllocAsync",
        "cuMemAllocFromPoolAsync",
        "cuMemExportToShareableHandle",
        "cuMemFreeAsync",
        "cuMemPoolDestroy",
        "cuMemPoolGetAccess",
        "cuMemPoolGetAttribute",
        "cuMemPoolSetAccess",
        "cuMemPoolSetAttribute",
        "cuMemPoolTrimTo",
        "cuMemRelease",
        "cuMemcpyDtoHAsync",
        "cuMemcpy3DPeerAsync",
        "cuMemcpyHtoDAsync",
        "cuMemcpyPeerAsync",
        "cuMemsetD16Async",
        "cuMemsetD32Async",
        "cuMemsetD8Async",
        "cuMipmappedArrayGetLevel",
        "cuModuleEnumerateFunctions",
        "cuModuleGetFunctionCount",
        "cuPointerGetAttributes",
        "cuStreamBeginCapture",
        "cuStreamBeginCaptureToGraph",
        "cuStreamDestroy",
        "cuStreamEndCapture",
        "cuStreamGetCaptureInfo",
        "cuStreamGetCtx",
        "cuStreamGetFlags",
        "cuStreamGetPriority",
        "cuStreamIsCapturing",
        "cuStreamQuery",
        "cuStreamSynchronize",
        "cuStreamUpdateCaptureDependencies",
        "cuStreamWaitEvent",
        "cuUserObjectCreate",
        "cuUserObjectRelease",
    ]
)
# Called by functions that `ContextHandle.call` runs, or between cuCtxPushCurrent and
# cuCtxPopCurrent: so with a context current.
IN_A_CALL = frozenset(
    [
        "cuCtxSynchronize",
        "cuEventCreate",
        "cuGraphChildGraphNodeGetGraph",  # these three by a trace, in the call that it records
        "cuGraphKernelNodeGetParams",
        "cuKernelGetName",
        "cuGraphicsMapResources",
        "cuLinkAddData",
        "cuLinkComplete",
        "cuLinkCreate",
        "cuLinkDestroy",
        "cuMemAlloc",
        "cuMemFree",
        "cuMemFreeHost",
        "cuMemHostAlloc",
        "cuMemcpyHtoDAsync",
    ]
)
# They name a process, by its number.
OF_A_PROCESS = frozenset(
    [
        "cuCheckpointProcessCheckpoint",
        "cuCheckpointProcessGetRestoreThreadId",
        "cuCheckpointProcessGetState",
        "cuCheckpointProcessLock",
        "cuCheckpointProcessRestore",
        "cuCheckpointProcessUnlock",
    ]
)
# It is called before a context is chosen: it says of which device.
OF_OPENGL = frozenset(["cuGLGetDevices"])
# Called by a variable, or given by one to what calls them on a stream.
IN_A_VARIABLE = frozenset(
    [
        "cuGraphicsMapResources",
        "cuLaunchKernelEx",
        "cuMemAllocFromPoolAsync",
        "cuMemcpyDtoHAsync",
        "cuMemcpyHtoDAsync",
        "cuMemsetD16Async",
        "cuMemsetD32Async",
        "cuMemsetD8Async",
    ]
)
# Called, or given to what calls it on a stream.
DIRECT = re.compile(r"\b_?api\.(cu\w+)\(|\bsubmit(?:_at_once)?\(\s*[\w.]*api\.(cu\w+)")


def test_what_is_called_without_its_context_was_seen_with_any() -> None:
    # A new one is bound by `ContextHandle.call`, or it is tried on two GPUs and listed here.
    sources = [
        path.read_text()
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).parts[0] not in ("emulator", "sessions")
    ]
    found = {name for text in sources for pair in DIRECT.findall(text) for name in pair if name}
    assert found | IN_A_VARIABLE == SEEN | IN_A_CALL | OF_A_PROCESS | OF_OPENGL
