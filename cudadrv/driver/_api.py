"""The interface to the driver: the types of cuda.bindings that cudadrv uses, and its module.

Nothing else imports `cuda.bindings.driver`. Two things satisfy `DriverApi`: that module itself and
`cudadrv.emulator.Emulator`.

Each type is imported by its name. A type checker without cuda.bindings must still find the name
here; else the types of cudadrv that contain it become unknown too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from cuda.bindings import driver as driver
from cuda.bindings.driver import (
    CUDA_ARRAY3D_DESCRIPTOR as CUDA_ARRAY3D_DESCRIPTOR,
    CUDA_ARRAY_DESCRIPTOR as CUDA_ARRAY_DESCRIPTOR,
    CUDA_CONDITIONAL_NODE_PARAMS as CUDA_CONDITIONAL_NODE_PARAMS,
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC as CUDA_EXTERNAL_MEMORY_BUFFER_DESC,
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC as CUDA_EXTERNAL_MEMORY_HANDLE_DESC,
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC as CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS as CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS as CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    CUDA_GRAPH_INSTANTIATE_PARAMS as CUDA_GRAPH_INSTANTIATE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS as CUDA_KERNEL_NODE_PARAMS,
    CUDA_MEMCPY3D as CUDA_MEMCPY3D,
    CUDA_MEMCPY3D_BATCH_OP as CUDA_MEMCPY3D_BATCH_OP,
    CUDA_MEMCPY3D_PEER as CUDA_MEMCPY3D_PEER,
    CUDA_RESOURCE_DESC as CUDA_RESOURCE_DESC,
    CUDA_RESOURCE_VIEW_DESC as CUDA_RESOURCE_VIEW_DESC,
    CUDA_TEXTURE_DESC as CUDA_TEXTURE_DESC,
    CUaccessProperty as CUaccessProperty,
    CUaddress_mode as CUaddress_mode,
    CUarray as CUarray,
    CUarray_format as CUarray_format,
    CUcheckpointCheckpointArgs as CUcheckpointCheckpointArgs,
    CUcheckpointLockArgs as CUcheckpointLockArgs,
    CUcheckpointUnlockArgs as CUcheckpointUnlockArgs,
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
    CUexecAffinityType as CUexecAffinityType,
    CUexternalMemory as CUexternalMemory,
    CUexternalMemoryHandleType as CUexternalMemoryHandleType,
    CUexternalSemaphore as CUexternalSemaphore,
    CUexternalSemaphoreHandleType as CUexternalSemaphoreHandleType,
    CUfilter_mode as CUfilter_mode,
    CUfunc_cache as CUfunc_cache,
    CUfunction as CUfunction,
    CUfunction_attribute as CUfunction_attribute,
    CUGLDeviceList as CUGLDeviceList,
    CUgraph as CUgraph,
    CUgraphConditionalHandle as CUgraphConditionalHandle,
    CUgraphConditionalNodeType as CUgraphConditionalNodeType,
    CUgraphEdgeData as CUgraphEdgeData,
    CUgraphExec as CUgraphExec,
    CUgraphExecUpdateResult as CUgraphExecUpdateResult,
    CUgraphExecUpdateResultInfo as CUgraphExecUpdateResultInfo,
    CUgraphicsResource as CUgraphicsResource,
    CUgraphInstantiateResult as CUgraphInstantiateResult,
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
    CUlaunchAttributeValue as CUlaunchAttributeValue,
    CUlaunchConfig as CUlaunchConfig,
    CUlaunchMemSyncDomain as CUlaunchMemSyncDomain,
    CUlimit as CUlimit,
    CUlinkState as CUlinkState,
    CUlogIterator as CUlogIterator,
    CUlogsCallbackHandle as CUlogsCallbackHandle,
    CUmem_advise as CUmem_advise,
    CUmemAccess_flags as CUmemAccess_flags,
    CUmemAccessDesc as CUmemAccessDesc,
    CUmemAllocationGranularity_flags as CUmemAllocationGranularity_flags,
    CUmemAllocationHandleType as CUmemAllocationHandleType,
    CUmemAllocationProp as CUmemAllocationProp,
    CUmemAllocationType as CUmemAllocationType,
    CUmemcpy3DOperand as CUmemcpy3DOperand,
    CUmemcpy3DOperandType as CUmemcpy3DOperandType,
    CUmemcpyAttributes as CUmemcpyAttributes,
    CUmemcpySrcAccessOrder as CUmemcpySrcAccessOrder,
    CUmemFabricHandle as CUmemFabricHandle,
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
    CUmulticastGranularity_flags as CUmulticastGranularity_flags,
    CUmulticastObjectProp as CUmulticastObjectProp,
    CUpointer_attribute as CUpointer_attribute,
    CUprocessState as CUprocessState,
    CUresourcetype as CUresourcetype,
    CUresult as CUresult,
    CUstream as CUstream,
    CUstream_flags as CUstream_flags,
    CUstreamBatchMemOpParams as CUstreamBatchMemOpParams,
    CUstreamCaptureMode as CUstreamCaptureMode,
    CUstreamCaptureStatus as CUstreamCaptureStatus,
    CUsurfObject as CUsurfObject,
    CUtensorMap as CUtensorMap,
    CUtexObject as CUtexObject,
    CUuserObject as CUuserObject,
    CUuuid as CUuuid,
    cuuint64_t as cuuint64_t,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    # cuda-bindings 13.3.0 lacks this name.
    from cuda.bindings.driver import CUcheckpointRestoreArgs as CUcheckpointRestoreArgs


class MemoryWatch(Protocol):
    """Reports of cached and reused memory to an emulator that checks bounds or unwritten memory.

    The driver has no such interface, nor has another emulator: `Driver.memory_watch`.
    """

    def lend(self, address: int, nbytes: int) -> None:
        """Mark bytes as in use and unwritten: an allocation, or a part that is its own array."""

    def take_back(self, address: int) -> None:
        """Mark the memory handed out at an address as unused, though nothing is freed."""


class HostAccesses(Protocol):
    """Reports of the host's own accesses to an emulator that finds races or runs work late.

    The driver has no such interface, nor has any other emulator: `Driver.host_accesses`.
    """

    def host_reads(self, array: npt.NDArray[Any], /) -> None:
        """Record that the library reads a host array for its user, which may be pinned."""


class CopyWatch(Protocol):
    """Reports of arrays that are copied to the host, to an emulator that checks unwritten memory.

    The driver does not know the elements of memory, so it has no such interface, nor has an
    emulator without that check: `Driver.copy_watch`.
    """

    def copying(
        self, address: int, nbytes: int, itemsize: int | None, /
    ) -> AbstractContextManager[None]:
        """Return a block in which this memory is copied, as elements of a size.

        With None the elements are unknown, and with 0 the copies are not checked.
        """

    def unwritten(self, address: int, nbytes: int, itemsize: int, /) -> npt.NDArray[np.bool_]:
        """Return which elements of device memory nothing has written; work on it is complete."""


class NamesKernels(Protocol):
    """Reports a module's name expressions to an emulator; the driver does not receive them.

    The driver has no such function: `Driver.name_kernels`.
    """

    def __call__(self, module: CUmodule, expressions: Mapping[str, str], /) -> None:
        """Let errors call the kernels of a module by name expressions, given by their symbols."""


_T = TypeVar("_T", CUipcMemHandle, CUipcEventHandle, CUmemPoolPtrExportData, CUmemFabricHandle)
OpaqueBytes: TypeAlias = (
    CUipcMemHandle | CUipcEventHandle | CUmemPoolPtrExportData | CUmemFabricHandle
)

OPAQUE_BYTES: Final = 64
"""The size of the driver's handles for other processes."""


def opaque_bytes(value: OpaqueBytes) -> bytes:
    """Return a driver's handle for other processes as bytes."""
    return ctypes.string_at(value.getPtr(), OPAQUE_BYTES)


def of_opaque_bytes(kind: type[_T], content: bytes) -> _T:
    """Return such bytes, `OPAQUE_BYTES` of them, as the driver's structure."""
    value = kind()
    ctypes.memmove(value.getPtr(), content, OPAQUE_BYTES)
    return value


def restore_arguments(pairs: Sequence[tuple[bytes, bytes]]) -> CUcheckpointRestoreArgs:
    """Return arguments that restore a process on other devices: pairs of UUIDs, old and new.

    Raises:
        AttributeError: cuda.bindings is older than 13.0, or 13.3.0.
    """
    arguments = driver.CUcheckpointRestoreArgs()
    gpu_pairs = []
    for old, new in pairs:
        pair = driver.CUcheckpointGpuPair()
        # The binding has no setter for the bytes of a UUID.
        ctypes.memmove(pair.oldUuid.getPtr(), old, len(old))
        ctypes.memmove(pair.newUuid.getPtr(), new, len(new))
        gpu_pairs.append(pair)
    arguments.gpuPairs = gpu_pairs
    arguments.gpuPairsCount = len(gpu_pairs)
    return arguments
