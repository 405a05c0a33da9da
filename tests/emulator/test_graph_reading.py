"""What graphs are made of, as the driver tells it again."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from cudadrv.driver._api import (
    CUcontext,
    CUdeviceptr,
    CUgraph,
    CUgraphConditionalNodeType,
    CUgraphNode,
    CUgraphNodeParams,
    CUgraphNodeType as T,
    CUkernelNodeAttrID,
    CUkernelNodeAttrValue,
    CUmemAllocationType,
    CUmemLocationType,
    CUmemorytype,
    CUpointer_attribute,
    CUpointer_attribute as P,
    CUresult,
)
from cudadrv.emulator import Emulator

from .calls import (
    LEGACY,
    Parameters,
    attribute,
    code,
    download,
    functions,
    launch,
    load,
    ok,
    text,
)
from .handles import ADDRESS, RELAXED, a_node, a_stream, an_event, graph_of, params as empty
from .kernels import EMPTY, FILL

COOPERATIVE = CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
NEEDS_MANAGED_POOLS = pytest.mark.skipif(
    not hasattr(CUmemAllocationType, "CU_MEM_ALLOCATION_TYPE_MANAGED"),
    reason="needs pools of managed memory in cuda.bindings",
)
CLUSTER = CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION


@pytest.fixture
def api(in_either_order: Emulator) -> Emulator:
    return in_either_order


def of_type(kind: T) -> CUgraphNodeParams:
    found = CUgraphNodeParams()
    found.type = kind
    return found


def added(api: Emulator, graph: CUgraph, given: CUgraphNodeParams) -> CUgraphNode:
    return ok(api.cuGraphAddNode(graph, None, None, 0, given))


def shown(api: Emulator, node: CUgraphNode) -> CUgraphNodeParams:
    """The parameters of a node: hold them, as what is taken from them is a view."""
    return ok(api.cuGraphNodeGetParams(node))


def captured(api: Emulator, *calls: tuple[object, ...]) -> list[CUgraphNode]:
    """The nodes that some calls become, each with a function of the emulator and its arguments."""
    stream = a_stream(api)
    ok(api.cuStreamBeginCapture(stream, RELAXED))
    for name, *given in calls:
        assert code(getattr(api, str(name))(*given, stream)) == 0
    graph = ok(api.cuStreamEndCapture(stream))
    _, nodes, _ = api.cuGraphGetNodes(graph, 9)
    return [node for node in nodes or [] if int(node)]


def test_a_kernels_node_returns_its_launch_and_may_be_made_again_of_it(api: Emulator) -> None:
    (fill,) = functions(api, load(api, FILL), "fill")
    memory = ok(api.cuMemAlloc(64))
    given = Parameters(ctypes.c_uint64(int(memory)), ctypes.c_uint32(3), ctypes.c_uint8(1))
    stream = a_stream(api)
    ok(api.cuStreamBeginCapture(stream, RELAXED))
    ok(launch(api, fill, given, grid=(1, 1, 1), block=(4, 2, 1), shared_bytes=16, stream=stream))
    graph = ok(api.cuStreamEndCapture(stream))
    _, nodes, _ = api.cuGraphGetNodes(graph, 1)
    assert nodes is not None
    found = shown(api, nodes[0])
    kernel = found.kernel
    assert found.type == T.CU_GRAPH_NODE_TYPE_KERNEL
    assert (kernel.gridDimX, kernel.blockDimX, kernel.blockDimY) == (1, 4, 2)
    assert (kernel.sharedMemBytes, int(kernel.func), int(kernel.kern)) == (16, int(fill), 0)
    assert int(kernel.ctx) == int(ok(api.cuCtxGetCurrent()))
    same = ok(api.cuGraphKernelNodeGetParams(nodes[0]))
    for field in ("blockDimY", "sharedMemBytes", "kernelParams", "func", "kern", "ctx"):
        assert int(getattr(same, field)) == int(getattr(kernel, field)), field
    ok(api.cuGraphNodeSetParams(nodes[0], found))
    copy = ok(api.cuGraphCreate(0))
    added(api, copy, found)
    ok(api.cuGraphLaunch(ok(api.cuGraphInstantiate(copy, 0)), stream))
    values = np.zeros(4, np.uint32)
    ok(api.cuMemcpyDtoHAsync(values.ctypes.data, memory, 16, stream))
    ok(api.cuStreamSynchronize(stream))
    assert values.tolist() == [3] * 4


def test_a_kernel_of_a_library_is_reported_by_its_handle(api: Emulator) -> None:
    library = ok(api.cuLibraryLoadData(text(EMPTY), [], [], 0, [], [], 0))
    kernel = ok(api.cuLibraryGetKernel(library, b"empty"))
    given = of_type(T.CU_GRAPH_NODE_TYPE_KERNEL)
    given.kernel.kern = kernel
    given.kernel.gridDimX = given.kernel.gridDimY = given.kernel.gridDimZ = 1
    given.kernel.blockDimX = given.kernel.blockDimY = given.kernel.blockDimZ = 1
    node = added(api, ok(api.cuGraphCreate(0)), given)
    found = shown(api, node)
    assert int(found.kernel.kern) == int(kernel)


def test_fills_and_copies_report_what_they_were_given(api: Emulator) -> None:
    memory, other = ok(api.cuMemAlloc(64)), ok(api.cuMemAlloc(64))
    host = np.zeros(64, np.uint8)
    fill, rows, back, across = captured(
        api,
        ("cuMemsetD32Async", memory, 7, 4),
        ("cuMemsetD2D8Async", memory, 16, 5, 8, 3),
        ("cuMemcpyDtoHAsync", host.ctypes.data, memory, 64),
        ("cuMemcpyDtoDAsync", other, memory, 32),
    )
    found = shown(api, fill)
    told = found.memset
    assert (int(told.dst), told.value, told.elementSize, told.width, told.height) == (
        int(memory),
        7,
        4,
        4,
        1,
    )
    found = shown(api, rows)
    told = found.memset
    assert (told.pitch, told.value, told.elementSize, told.width, told.height) == (16, 5, 1, 8, 3)
    assert int(told.ctx) == int(ok(api.cuCtxGetCurrent()))
    found = shown(api, back)
    copy = found.memcpy.copyParams
    assert copy.srcMemoryType == CUmemorytype.CU_MEMORYTYPE_DEVICE
    assert copy.dstMemoryType == CUmemorytype.CU_MEMORYTYPE_HOST
    assert (int(copy.srcDevice), int(copy.dstHost)) == (int(memory), host.ctypes.data)
    assert (copy.WidthInBytes, copy.Height, copy.Depth) == (64, 1, 1)
    found = shown(api, across)
    copy = found.memcpy.copyParams
    assert (int(copy.srcDevice), int(copy.dstDevice)) == (int(memory), int(other))
    assert copy.WidthInBytes == 32
    # What is told makes the same node.
    graph = ok(api.cuGraphCreate(0))
    for node in (fill, rows, back, across):
        again = shown(api, added(api, graph, shown(api, node)))
        assert again.type == shown(api, node).type


def test_a_changed_node_returns_its_new_parameters(api: Emulator) -> None:
    memory = ok(api.cuMemAlloc(64))
    (node,) = captured(api, ("cuMemsetD8Async", memory, 1, 64))
    given = shown(api, node)
    given.memset.value = 9
    ok(api.cuGraphNodeSetParams(node, given))
    found = shown(api, node)
    assert found.memset.value == 9


def test_elements_of_a_fill_node_have_the_lowest_bytes_of_its_value(api: Emulator) -> None:
    # Measured with driver 580.
    memory = ok(api.cuMemAlloc(16))
    (node,) = captured(api, ("cuMemsetD8Async", memory, 1, 4))
    fill = shown(api, node)
    for nbytes, value, expected in ((1, 0x1FF, "ffffffff"), (2, 0x12345, "4523452345234523")):
        graph = ok(api.cuGraphCreate(0))
        fill.memset.elementSize, fill.memset.value = nbytes, value
        added(api, graph, fill)
        ok(api.cuGraphLaunch(ok(api.cuGraphInstantiate(graph, 0)), LEGACY))
        ok(api.cuCtxSynchronize())
        assert download(api, memory, 2).tobytes()[: len(expected) // 2].hex() == expected


def test_host_functions_events_and_memory_are_reported(api: Emulator) -> None:
    graph, event = ok(api.cuGraphCreate(0)), an_event(api)
    call = of_type(T.CU_GRAPH_NODE_TYPE_HOST)
    call.host.fn, call.host.userData = ADDRESS, 5
    record, wait = (
        of_type(T.CU_GRAPH_NODE_TYPE_EVENT_RECORD),
        of_type(T.CU_GRAPH_NODE_TYPE_WAIT_EVENT),
    )
    record.eventRecord.event = wait.eventWait.event = event
    take = of_type(T.CU_GRAPH_NODE_TYPE_MEM_ALLOC)
    take.alloc.bytesize = 1000
    take.alloc.poolProps.allocType = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    take.alloc.poolProps.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    take.alloc.poolProps.location.id = 1
    found = shown(api, added(api, graph, call))
    host = found.host
    assert (int(host.fn), int(host.userData)) == (ADDRESS, 5)
    found = shown(api, added(api, graph, record))
    assert int(found.eventRecord.event) == int(event)
    found = shown(api, added(api, graph, wait))
    assert int(found.eventWait.event) == int(event)
    found = shown(api, added(api, graph, take))
    alloc = found.alloc
    assert (alloc.bytesize, int(alloc.dptr)) == (1000, int(take.alloc.dptr))
    assert alloc.poolProps.location.id == 1
    give = of_type(T.CU_GRAPH_NODE_TYPE_MEM_FREE)
    give.free.dptr = take.alloc.dptr
    found = shown(api, added(api, graph, give))
    assert int(found.free.dptr) == int(take.alloc.dptr)


def test_conditional_nodes_return_their_condition_and_bodies(api: Emulator) -> None:
    graph = ok(api.cuGraphCreate(0))
    context = ok(api.cuCtxGetCurrent())
    given = of_type(T.CU_GRAPH_NODE_TYPE_CONDITIONAL)
    given.conditional.handle = ok(api.cuGraphConditionalHandleCreate(graph, context, 0, 0))
    given.conditional.type = CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_SWITCH
    given.conditional.size = 3
    assert code(api.cuGraphAddNode(graph, None, None, 0, given)) == 201
    _, said = api.cuGetErrorString(CUresult.CUDA_ERROR_INVALID_CONTEXT)
    assert b"a conditional node has a context" in (said or b"")
    assert code(api.cuGraphConditionalHandleCreate(graph, CUcontext(0), 0, 0)) == 201
    given.conditional.ctx = context
    node = added(api, graph, given)
    found = shown(api, node)
    told = found.conditional
    assert int(told.handle) == int(given.conditional.handle)
    assert (told.type, told.size) == (given.conditional.type, 3)
    bodies = [int(each) for each in given.conditional.phGraph_out]
    assert [int(each) for each in told.phGraph_out] == bodies


def conditional(api: Emulator, graph: CUgraph, owner: CUgraph, *, size: int = 2) -> CUresult:
    """Add a switch to a graph, whose condition was made for `owner`."""
    context = ok(api.cuCtxGetCurrent())
    given = of_type(T.CU_GRAPH_NODE_TYPE_CONDITIONAL)
    given.conditional.handle = ok(api.cuGraphConditionalHandleCreate(owner, context, 0, 0))
    given.conditional.type = CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_SWITCH
    given.conditional.size, given.conditional.ctx = size, context
    return CUresult(code(api.cuGraphAddNode(graph, None, None, 0, given)))


def test_a_condition_belongs_to_the_graph_that_it_was_made_for(api: Emulator) -> None:
    graph, other = ok(api.cuGraphCreate(0)), ok(api.cuGraphCreate(0))
    assert conditional(api, graph, other) == CUresult.CUDA_ERROR_INVALID_VALUE
    assert conditional(api, graph, graph) == CUresult.CUDA_SUCCESS


def test_a_condition_of_a_graph_serves_in_its_bodies(api: Emulator) -> None:
    graph, other = ok(api.cuGraphCreate(0)), ok(api.cuGraphCreate(0))
    inner = graph
    for _ in range(3):
        assert conditional(api, inner, graph, size=1) == CUresult.CUDA_SUCCESS
        _, nodes, _ = api.cuGraphGetNodes(inner, 1)
        params = shown(api, (nodes or [])[0])
        (inner,) = params.conditional.phGraph_out
    assert conditional(api, inner, other) == CUresult.CUDA_ERROR_INVALID_VALUE


def test_an_update_brings_the_graphs_own_conditions(api: Emulator) -> None:
    graphs = [ok(api.cuGraphCreate(0)) for _ in range(3)]
    for graph, size in zip(graphs, (2, 2, 3), strict=True):
        conditional(api, graph, graph, size=size)
    executable = ok(api.cuGraphInstantiate(graphs[0], 0))
    assert code(api.cuGraphExecUpdate(executable, graphs[1])) == 0
    assert code(api.cuGraphExecUpdate(executable, graphs[2])) == 910


def test_nodes_and_edges_of_a_graph_with_memory_stay(api: Emulator) -> None:
    graph = ok(api.cuGraphCreate(0))
    first, second = added(api, graph, empty()), added(api, graph, empty())
    edge = ([first], [second], None, 1)
    ok(api.cuGraphAddDependencies(graph, *edge))
    take = of_type(T.CU_GRAPH_NODE_TYPE_MEM_ALLOC)
    take.alloc.bytesize = 1000
    take.alloc.poolProps.allocType = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    take.alloc.poolProps.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    added(api, graph, take)
    assert code(api.cuGraphDestroyNode(second)) == CUresult.CUDA_ERROR_NOT_SUPPORTED
    removed = api.cuGraphRemoveDependencies(graph, *edge)
    assert code(removed) == CUresult.CUDA_ERROR_NOT_SUPPORTED


def test_nodes_return_what_they_come_after_and_what_comes_after_them(api: Emulator) -> None:
    first = a_node(api)
    graph = graph_of(api, first)
    second = ok(api.cuGraphAddNode(graph, [first], None, 1, empty()))
    third = ok(api.cuGraphAddNode(graph, [first, second], None, 2, empty()))

    def numbers(found: tuple[CUresult, list[CUgraphNode] | None, object, int]) -> list[int]:
        assert found[3] == len(found[1] or [])
        return [int(node) for node in found[1] or []]

    assert numbers(api.cuGraphNodeGetDependencies(third, 9)) == [int(first), int(second)]
    assert numbers(api.cuGraphNodeGetDependencies(third, 1)) == [int(first)]
    assert api.cuGraphNodeGetDependencies(third)[3] == 2
    assert numbers(api.cuGraphNodeGetDependentNodes(first, 9)) == [int(second), int(third)]
    assert api.cuGraphNodeGetDependentNodes(third)[3] == 0
    _, roots, count = api.cuGraphGetRootNodes(graph, 5)
    assert ([int(node) for node in roots or []], count) == ([int(first)], 1)


def test_a_child_graph_is_its_nodes_own(api: Emulator) -> None:
    inner = a_node(api)
    given = of_type(T.CU_GRAPH_NODE_TYPE_GRAPH)
    given.graph.graph = graph_of(api, inner)
    outer = ok(api.cuGraphCreate(0))
    node = added(api, outer, given)
    child = ok(api.cuGraphChildGraphNodeGetGraph(node))
    params = shown(api, node)
    assert int(child) == int(params.graph.graph)
    assert int(child) != int(graph_of(api, inner))
    assert api.cuGraphGetNodes(child)[2] == 1
    assert code(api.cuGraphDestroy(child)) == 1
    assert code(api.cuGraphChildGraphNodeGetGraph(inner)) == 1
    found = ok(api.cuGraphNodeFindInClone(inner, child))
    assert int(found) != int(inner)
    assert code(api.cuGraphNodeFindInClone(node, child)) == 1
    ok(api.cuGraphDestroy(outer))
    assert api.cuGraphGetNodes(child)[0] == CUresult.CUDA_ERROR_INVALID_VALUE


def test_a_clone_has_a_node_for_each_of_the_original(api: Emulator) -> None:
    node = a_node(api)
    clone = ok(api.cuGraphClone(graph_of(api, node)))
    found = ok(api.cuGraphNodeFindInClone(node, clone))
    assert int(graph_of(api, found)) == int(clone)


def test_attributes_of_a_kernels_node_are_reported_and_copied(api: Emulator) -> None:
    (kernel,) = functions(api, load(api, EMPTY), "empty")
    nodes = []
    for _ in range(2):
        given = of_type(T.CU_GRAPH_NODE_TYPE_KERNEL)
        given.kernel.func = kernel
        given.kernel.gridDimX, given.kernel.gridDimY, given.kernel.gridDimZ = 2, 1, 1
        given.kernel.blockDimX = given.kernel.blockDimY = given.kernel.blockDimZ = 1
        nodes.append(added(api, ok(api.cuGraphCreate(0)), given))
    one, other = nodes
    clusters = ok(api.cuGraphKernelNodeGetAttribute(one, CLUSTER))
    assert clusters.clusterDim.x == 0
    value = CUkernelNodeAttrValue()
    value.cooperative = 1
    ok(api.cuGraphKernelNodeSetAttribute(one, COOPERATIVE, value))
    assert ok(api.cuGraphKernelNodeGetAttribute(one, COOPERATIVE)).cooperative == 1
    assert ok(api.cuGraphKernelNodeGetAttribute(other, COOPERATIVE)).cooperative == 0
    ok(api.cuGraphKernelNodeCopyAttributes(other, one))
    assert ok(api.cuGraphKernelNodeGetAttribute(other, COOPERATIVE)).cooperative == 1
    assert code(api.cuGraphKernelNodeGetAttribute(a_node(api), COOPERATIVE)) == 1


def allocation(kind: int, where: int) -> CUgraphNodeParams:
    """A node of 64 bytes; the enumerations of CUDA 12 lack managed memory."""
    take = of_type(T.CU_GRAPH_NODE_TYPE_MEM_ALLOC)
    place = (ctypes.c_int * 4).from_address(take.getPtr() + 16)
    place[:] = [kind, 0, where, 0]
    take.alloc.bytesize = 64
    return take


@NEEDS_MANAGED_POOLS
@pytest.mark.parametrize(("kind", "where"), [(1, 2), (2, 0), (2, 1), (2, 2)])
def test_a_graph_allocates_memory_of_the_host_and_managed_memory(
    api: Emulator, kind: int, where: int
) -> None:
    graph, take = ok(api.cuGraphCreate(0)), allocation(kind, where)
    node = added(api, graph, take)
    address = int(take.alloc.dptr)
    managed = P.CU_POINTER_ATTRIBUTE_IS_MANAGED
    params = shown(api, node)
    found = params.alloc
    assert (int(found.poolProps.allocType), int(found.poolProps.location.type)) == (kind, where)
    assert (found.bytesize, int(found.dptr)) == (64, address)
    assert attribute(api, P.CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) == 0
    assert code(api.cuMemFree(CUdeviceptr(address))) == 1
    executable = ok(api.cuGraphInstantiate(graph, 0))
    stream = a_stream(api)
    for _ in range(2):
        ok(api.cuGraphLaunch(executable, stream))
        ok(api.cuMemsetD32Async(CUdeviceptr(address), 7, 16, stream))
        ok(api.cuStreamSynchronize(stream))
        assert ctypes.c_uint.from_address(address + 60).value == 7
        assert attribute(api, managed, address) is (kind == 2)
        assert code(api.cuGraphLaunch(executable, stream)) == 1
        ok(api.cuMemFreeAsync(CUdeviceptr(address), stream))
        ok(api.cuStreamSynchronize(stream))
    assert code(api.cuMemFree(CUdeviceptr(address))) == 1
    ok(api.cuGraphExecDestroy(executable))
    ok(api.cuGraphDestroy(graph))
    kinds = CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    assert attribute(api, kinds, address) == 0


@NEEDS_MANAGED_POOLS
def test_a_graph_frees_managed_memory_that_it_allocates(api: Emulator) -> None:
    graph, take = ok(api.cuGraphCreate(0)), allocation(2, 0)
    node = added(api, graph, take)
    give = of_type(T.CU_GRAPH_NODE_TYPE_MEM_FREE)
    give.free.dptr = take.alloc.dptr
    ok(api.cuGraphAddNode(graph, [node], None, 1, give))
    executable = ok(api.cuGraphInstantiate(graph, 0))
    for _ in range(2):
        ok(api.cuGraphLaunch(executable, LEGACY))
        ok(api.cuCtxSynchronize())
        assert attribute(api, P.CU_POINTER_ATTRIBUTE_RANGE_SIZE, int(take.alloc.dptr)) == 0


def test_a_graph_allocates_no_memory_at_an_impossible_place(api: Emulator) -> None:
    take = of_type(T.CU_GRAPH_NODE_TYPE_MEM_ALLOC)
    take.alloc.bytesize = 64
    take.alloc.poolProps.allocType = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    take.alloc.poolProps.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    take.alloc.poolProps.location.id = 9
    assert code(api.cuGraphAddNode(ok(api.cuGraphCreate(0)), None, None, 0, take)) == 1
