"""Handles of every kind: how one is made and destroyed."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cudadrv.driver._api import (
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    CUarray,
    CUcontext,
    CUdeviceptr,
    CUevent,
    CUexternalSemaphore,
    CUexternalSemaphoreHandleType,
    CUfunction,
    CUgraph,
    CUgraphExec,
    CUgraphNode,
    CUgraphNodeParams,
    CUgraphNodeType,
    CUmemAccess_flags,
    CUmemAccessDesc,
    CUmemAllocationHandleType,
    CUmemAllocationProp,
    CUmemAllocationType,
    CUmemGenericAllocationHandle,
    CUmemLocationType,
    CUmemPoolProps,
    CUmipmappedArray,
    CUmodule,
    CUresult,
    CUstream,
    CUstreamCaptureMode,
    CUsurfObject,
    CUtexObject,
    CUuserObject,
)
from cudadrv.emulator import Emulator

from .calls import LEGACY, ok, text
from .descriptors import (
    SURFACE,
    described,
    over_array,
    reading,
)
from .kernels import EMPTY, VARIABLE

RELAXED: Final = CUstreamCaptureMode(2)
HOST_DATA: Final = np.zeros(64, np.uint8)
PLACE: Final[int] = HOST_DATA.ctypes.data
_DISABLE_TIMING, _INTERPROCESS = 2, 4  # CUevent_flags
_FUNCTION: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)
ADDRESS: Final = ctypes.cast(_FUNCTION, ctypes.c_void_p).value or 0

# A handle of any kind, and a call with one.
Handle = Any
Call = Callable[[Emulator, Handle], tuple[CUresult, *tuple[object, ...]]]


@dataclass(frozen=True)
class OnHost:
    """A CUmemLocation."""

    type: int = 2
    id: int = 0


@dataclass(frozen=True)
class Kind:
    """A kind of handle.

    Attributes:
        make, destroy: one of it, in the current context.
        dead: what a function answers to one that was destroyed.
        orphan: what it answers after the context was destroyed; None if the object outlives it.
    """

    make: Callable[[Emulator], Handle]
    destroy: Call
    dead: int
    orphan: int | None = 709


def a_stream(api: Emulator) -> CUstream:
    return ok(api.cuStreamCreateWithPriority(1, 0))


def an_event(api: Emulator) -> CUevent:
    return ok(api.cuEventCreate(0))


def a_shared_event(api: Emulator) -> CUevent:
    return ok(api.cuEventCreate(_DISABLE_TIMING | _INTERPROCESS))


def a_module(api: Emulator) -> CUmodule:
    return ok(api.cuModuleLoadData(text(VARIABLE, EMPTY)))


def a_function(api: Emulator) -> CUfunction:
    return ok(api.cuModuleGetFunction(a_module(api), b"empty"))


def unload(api: Emulator, function: CUfunction) -> tuple[CUresult]:
    """Unload the module of a function."""
    return api.cuModuleUnload(ok(api.cuFuncGetModule(function)))


def a_graph(api: Emulator) -> CUgraph:
    stream = a_stream(api)
    ok(api.cuStreamBeginCapture(stream, RELAXED))
    return ok(api.cuStreamEndCapture(stream))


def params() -> CUgraphNodeParams:
    """Those of an empty node."""
    found = CUgraphNodeParams()
    found.type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_EMPTY
    return found


def a_node(api: Emulator) -> CUgraphNode:
    return ok(api.cuGraphAddNode(a_graph(api), None, None, 0, params()))


def a_child_node(api: Emulator) -> CUgraphNode:
    found = CUgraphNodeParams()
    found.type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH
    found.graph.graph = a_graph(api)
    return ok(api.cuGraphAddNode(a_graph(api), None, None, 0, found))


def a_kernel_node(api: Emulator) -> CUgraphNode:
    found = CUgraphNodeParams()
    found.type = CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL
    kernel = found.kernel
    kernel.func = a_function(api)
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1
    kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1
    return ok(api.cuGraphAddNode(a_graph(api), None, None, 0, found))


def an_executable(api: Emulator) -> CUgraphExec:
    """Of a graph with an empty node."""
    node = a_node(api)
    return ok(api.cuGraphInstantiate(graph_of(api, node), 0))


def a_kernel_executable(api: Emulator) -> CUgraphExec:
    return ok(api.cuGraphInstantiate(graph_of(api, a_kernel_node(api)), 0))


def graph_of(api: Emulator, node: CUgraphNode) -> CUgraph:
    """The graph that has a live node."""
    return ok(api.cuGraphNodeGetContainingGraph(node))


def an_array(api: Emulator) -> CUarray:
    return ok(api.cuArray3DCreate(described(16, 8, 0, SURFACE)))


def a_mipmap(api: Emulator) -> CUmipmappedArray:
    return ok(api.cuMipmappedArrayCreate(described(16, 8, 0, SURFACE), 2))


def a_texture(api: Emulator) -> CUtexObject:
    return ok(api.cuTexObjectCreate(over_array(an_array(api)), reading(), None))


def a_surface(api: Emulator) -> CUsurfObject:
    return ok(api.cuSurfObjectCreate(over_array(an_array(api))))


def a_context(api: Emulator) -> CUcontext:
    """One that is not current."""
    context = ok(api.cuCtxCreate(None, 0, ok(api.cuDeviceGet(1))))
    ok(api.cuCtxPopCurrent())
    return context


def memory(api: Emulator) -> CUdeviceptr:
    return ok(api.cuMemAlloc(64))


def pool_memory(api: Emulator) -> CUdeviceptr:
    return ok(api.cuMemAllocAsync(64, LEGACY))


def shared_pool_memory(api: Emulator) -> CUdeviceptr:
    properties = CUmemPoolProps()
    properties.allocType = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.handleTypes = CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    pool = ok(api.cuMemPoolCreate(properties))
    return ok(api.cuMemAllocFromPoolAsync(64, pool, LEGACY))


def host_pool_memory(api: Emulator) -> CUdeviceptr:
    """Page-locked memory of a pool."""
    pool = ok(api.cuMemGetMemPool(OnHost(), 1))
    return ok(api.cuMemAllocFromPoolAsync(64, pool, LEGACY))


def pinned(api: Emulator) -> int:
    return ok(api.cuMemHostAlloc(64, 0))


def elsewhere(api: Emulator) -> CUdeviceptr:
    """Memory of the host, so that it is not where device memory was freed."""
    return CUdeviceptr(pinned(api))


def managed(api: Emulator) -> CUdeviceptr:
    return ok(api.cuMemAllocManaged(64, 1))


def a_user_object(api: Emulator) -> CUuserObject:
    return ok(api.cuUserObjectCreate(0, ADDRESS, 1, 1))


def a_range(api: Emulator) -> CUdeviceptr:
    return api.cuMemAddressReserve(2 << 20, 0, 0, 0)[1]


def a_piece(api: Emulator) -> CUmemGenericAllocationHandle:
    properties = CUmemAllocationProp()
    properties.type = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    return api.cuMemCreate(2 << 20, properties, 0)[1]


def a_semaphore(api: Emulator) -> CUexternalSemaphore:
    """One that is signalled."""
    description = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC()
    description.type = CUexternalSemaphoreHandleType.CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD
    description.handle.fd = os.eventfd(1)
    return ok(api.cuImportExternalSemaphore(description))


def to_own_device() -> list[CUmemAccessDesc]:
    access = CUmemAccessDesc()
    access.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.flags = CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    return [access]


def mapped(api: Emulator) -> CUdeviceptr:
    """Memory in a range, to which its device has access."""
    place = a_range(api)
    api.cuMemMap(place, 2 << 20, 0, a_piece(api), 0)
    api.cuMemSetAccess(place, 2 << 20, to_own_device(), 1)
    return place


KINDS: Final = {
    "stream": Kind(a_stream, lambda api, h: api.cuStreamDestroy(h), 400),
    "event": Kind(an_event, lambda api, h: api.cuEventDestroy(h), 709),
    "shared event": Kind(a_shared_event, lambda api, h: api.cuEventDestroy(h), 709),
    "module": Kind(a_module, lambda api, h: api.cuModuleUnload(h), 400, orphan=400),
    "function": Kind(a_function, unload, 400),
    "graph": Kind(a_graph, lambda api, h: api.cuGraphDestroy(h), 1, None),
    "node": Kind(a_node, lambda api, h: api.cuGraphDestroyNode(h), 1, None),
    "child node": Kind(a_child_node, lambda api, h: api.cuGraphDestroyNode(h), 1, None),
    "kernel node": Kind(a_kernel_node, lambda api, h: api.cuGraphDestroyNode(h), 1, None),
    "kernel executable": Kind(
        a_kernel_executable, lambda api, h: api.cuGraphExecDestroy(h), 1, None
    ),
    "executable": Kind(an_executable, lambda api, h: api.cuGraphExecDestroy(h), 1, None),
    "array": Kind(an_array, lambda api, h: api.cuArrayDestroy(h), 709),
    "mipmap": Kind(a_mipmap, lambda api, h: api.cuMipmappedArrayDestroy(h), 709),
    "texture": Kind(a_texture, lambda api, h: api.cuTexObjectDestroy(h), 1),
    "surface": Kind(a_surface, lambda api, h: api.cuSurfObjectDestroy(h), 1),
    "context": Kind(a_context, lambda api, h: api.cuCtxDestroy(h), 709, None),
    "memory": Kind(memory, lambda api, h: api.cuMemFree(h), 1, 1),
    "pool memory": Kind(pool_memory, lambda api, h: api.cuMemFreeAsync(h, LEGACY), 1, None),
    "shared pool memory": Kind(
        shared_pool_memory, lambda api, h: api.cuMemFreeAsync(h, LEGACY), 1, None
    ),
    "memory of a pool of the host": Kind(
        host_pool_memory, lambda api, h: api.cuMemFreeAsync(h, LEGACY), 1, None
    ),
    "pinned memory": Kind(pinned, lambda api, h: api.cuMemFreeHost(h), 1, 1),
    "managed memory": Kind(managed, lambda api, h: api.cuMemFree(h), 1, 1),
    "range of memory": Kind(a_range, lambda api, h: api.cuMemAddressFree(h, 2 << 20), 1, None),
    "mapped memory": Kind(mapped, lambda api, h: api.cuMemUnmap(h, 2 << 20), 1, None),
    "user object": Kind(a_user_object, lambda api, h: api.cuUserObjectRelease(h, 1), 1, None),
}
