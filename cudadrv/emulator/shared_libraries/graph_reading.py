"""What graphs are made of, which C has in structures and arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final

from ...driver._api import CUgraphNodeType
from ..emulator import Emulator
from .special import INVALID_VALUE, Handler, Handlers, call, passed_on, put_bytes, put_size

GRAPH_READING: Final = Handlers()
_PARAMS_BYTES: Final = 256  # sizeof(CUgraphNodeParams), of which a union begins at 16
_UNION: Final = 16
_VALUE_BYTES: Final = 64  # sizeof(CUkernelNodeAttrValue)
_EDGE_BYTES: Final = 8  # sizeof(CUgraphEdgeData); all edges are ordinary ones, zeros
_Type = CUgraphNodeType


@GRAPH_READING("cuGraphNodeGetParams 13020 size >byte")
def node_params(api: Emulator, node: int, result: int) -> int:
    """The parameters of a node of any kind."""
    return _put_params(api, node, result, 0, _PARAMS_BYTES)


def _put_params(api: Emulator, node: int, result: int, first: int, nbytes: int) -> int:
    """Some of the bytes of a CUgraphNodeParams."""
    code, params = call(api, "cuGraphNodeGetParams", node)
    if not code:
        put_bytes(result, ctypes.string_at(int(params.getPtr()) + first, nbytes))
    return int(code)


def _of_kind(kind: CUgraphNodeType, first: int, nbytes: int) -> Handler:
    """What gives the parameters of nodes of one kind, and refuses the others."""

    def answer(api: Emulator, node: int, result: int) -> int:
        code, found = call(api, "cuGraphNodeGetType", node)
        if code:
            return int(code)
        return _put_params(api, node, result, first, nbytes) if found == kind else INVALID_VALUE

    return answer


for _line, _kind, _first, _nbytes in (
    ("cuGraphKernelNodeGetParams 10000", _Type.CU_GRAPH_NODE_TYPE_KERNEL, _UNION, 56),
    ("cuGraphKernelNodeGetParams_v2 12000", _Type.CU_GRAPH_NODE_TYPE_KERNEL, _UNION, 72),
    ("cuGraphMemcpyNodeGetParams 10000", _Type.CU_GRAPH_NODE_TYPE_MEMCPY, _UNION + 16, 200),
    ("cuGraphMemsetNodeGetParams 10000", _Type.CU_GRAPH_NODE_TYPE_MEMSET, _UNION, 40),
    ("cuGraphHostNodeGetParams 10000", _Type.CU_GRAPH_NODE_TYPE_HOST, _UNION, 16),
    ("cuGraphMemAllocNodeGetParams 11040", _Type.CU_GRAPH_NODE_TYPE_MEM_ALLOC, _UNION, 120),
    ("cuGraphMemFreeNodeGetParams 11040", _Type.CU_GRAPH_NODE_TYPE_MEM_FREE, _UNION, 8),
    ("cuGraphEventRecordNodeGetEvent 11010", _Type.CU_GRAPH_NODE_TYPE_EVENT_RECORD, _UNION, 8),
    ("cuGraphEventWaitNodeGetEvent 11010", _Type.CU_GRAPH_NODE_TYPE_WAIT_EVENT, _UNION, 8),
):
    GRAPH_READING(f"{_line} size >byte")(_of_kind(_kind, _first, _nbytes))


@GRAPH_READING("cuGraphChildGraphNodeGetGraph 10000 size >size")
def child_graph(api: Emulator, node: int, result: int) -> int:
    """The graph of a node that is a child graph."""
    return passed_on(api, "cuGraphChildGraphNodeGetGraph", (node,), result)


@GRAPH_READING("cuGraphNodeFindInClone 10000 >size size size")
def find_in_clone(api: Emulator, result: int, node: int, clone: int) -> int:
    """The node of a clone that was made of a node."""
    return passed_on(api, "cuGraphNodeFindInClone", (node, clone), result)


def _list(
    ask: Callable[[int], tuple[int, int, list[object] | None]], result: int, count: int
) -> int:
    """Put nodes where the caller wants them; what lies behind the last becomes null (manual)."""
    room = ctypes.c_size_t.from_address(count).value if result else 0
    code, number, nodes = ask(room)
    if not code:
        for at in range(room if result else 0):
            put_size(result + 8 * at, nodes[at] if nodes and at < len(nodes) else 0)
        put_size(count, number)
    return code


def _neighbours(name: str, api: Emulator, node: int, result: int, count: int) -> int:
    def ask(room: int) -> tuple[int, int, list[object] | None]:
        code, nodes, _, number = call(api, name, node, room)
        return int(code), number, nodes

    return _list(ask, result, count)


@GRAPH_READING("cuGraphNodeGetDependencies 10000 size size &size")
def dependencies(api: Emulator, node: int, result: int, count: int) -> int:
    """The nodes that one comes after."""
    return _neighbours("cuGraphNodeGetDependencies", api, node, result, count)


@GRAPH_READING("cuGraphNodeGetDependencies_v2 12030 size size size &size")
def dependencies_with_edges(api: Emulator, node: int, result: int, edges: int, count: int) -> int:
    """The same; edges are ordinary ones."""
    return _with_edges(dependencies(api, node, result, count), edges, count)


@GRAPH_READING("cuGraphNodeGetDependentNodes 10000 size size &size")
def dependents(api: Emulator, node: int, result: int, count: int) -> int:
    """The nodes that come after one."""
    return _neighbours("cuGraphNodeGetDependentNodes", api, node, result, count)


@GRAPH_READING("cuGraphNodeGetDependentNodes_v2 12030 size size size &size")
def dependents_with_edges(api: Emulator, node: int, result: int, edges: int, count: int) -> int:
    """The same; edges are ordinary ones."""
    return _with_edges(dependents(api, node, result, count), edges, count)


def _with_edges(code: int, edges: int, count: int) -> int:
    if not code and edges:
        put_bytes(edges, bytes(_EDGE_BYTES * ctypes.c_size_t.from_address(count).value))
    return code


@GRAPH_READING("cuGraphGetRootNodes 10000 size size &size")
def roots(api: Emulator, graph: int, result: int, count: int) -> int:
    """The nodes of a graph that come after none."""

    def ask(room: int) -> tuple[int, int, list[object] | None]:
        code, nodes, number = call(api, "cuGraphGetRootNodes", graph, room)
        return int(code), number, nodes

    return _list(ask, result, count)


@GRAPH_READING("cuGraphKernelNodeGetAttribute 11000 size int >byte")
def node_attribute(api: Emulator, node: int, attribute: int, result: int) -> int:
    """How a kernel's node launches."""
    code, value = call(api, "cuGraphKernelNodeGetAttribute", node, attribute)
    if not code:
        put_bytes(result, ctypes.string_at(int(value.getPtr()), _VALUE_BYTES))
    return int(code)


@GRAPH_READING("cuGraphKernelNodeCopyAttributes 11000 size size")
def copy_attributes(api: Emulator, target: int, source: int) -> int:
    """Let a kernel's node launch as another one does."""
    return int(call(api, "cuGraphKernelNodeCopyAttributes", target, source)[0])


@GRAPH_READING("cuDeviceGetGraphMemAttribute 11040 int int >size")
def graph_memory(api: Emulator, device: int, attribute: int, result: int) -> int:
    """Bytes that graphs take."""
    return passed_on(api, "cuDeviceGetGraphMemAttribute", (device, attribute), result)


@GRAPH_READING("cuDeviceSetGraphMemAttribute 11040 int int &size")
def reset_graph_memory(api: Emulator, device: int, attribute: int, value: int) -> int:
    """Reset a high-water mark."""
    number = ctypes.c_size_t.from_address(value).value
    return int(call(api, "cuDeviceSetGraphMemAttribute", device, attribute, number)[0])
