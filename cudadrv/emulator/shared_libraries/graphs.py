"""Graphs: their nodes, and the nodes' parameters."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Final

from ...driver._api import CUgraphNodeParams, CUgraphNodeType
from ..caller_memory import view_at
from ..edge_data import NBYTES
from ..emulator import Emulator
from .caller_structures import bytes_at, structures_at
from .handlers import INVALID_VALUE, Handler, Handlers, call, passed_on, put_bytes, put_size

GRAPHS: Final = Handlers()
_KERNEL_BYTES, _COPY_BYTES, _FILL_BYTES, _HOST_BYTES, _ALLOC_BYTES = 72, 200, 40, 16, 120
_ADDRESS_OFFSET: Final = 112  # of dptr in CUDA_MEM_ALLOC_NODE_PARAMS
_Type = CUgraphNodeType
_UNION: Final = 16  # the offset of a union in CUgraphNodeParams


@GRAPHS("cuGraphAddNode")
def add_node(
    api: Emulator,
    result: int,
    graph: int,
    dependencies: list[int],
    count: int,
    params: CUgraphNodeParams | None,
) -> int:
    """Add a node of any kind; the parameters receive its allocation or body."""
    return passed_on(api, "cuGraphAddNode", (graph, dependencies, None, count, params), result)


def _kernel(params: int) -> bytes:
    return bytes_at(params, _KERNEL_BYTES)


def _copy(params: int, context: int) -> bytes:
    return struct.pack("<iiQ", 0, 0, context) + bytes_at(params, _COPY_BYTES)


def _fill(params: int, context: int) -> bytes:
    return bytes_at(params, _FILL_BYTES) + struct.pack("<Q", context)


def _host(params: int) -> bytes:
    return bytes_at(params, _HOST_BYTES)


def _handle(value: int) -> bytes:
    return struct.pack("<Q", value)


def _params_of(kind: int, union: bytes) -> CUgraphNodeParams:
    """Return parameters of a node: its kind, and the bytes of their union."""
    params = CUgraphNodeParams()
    content = struct.pack("<i12x", int(kind)) + union
    ctypes.memmove(int(params.getPtr()), content, len(content))
    return params


class NodeKind:
    """The functions of one kind of node.

    Args:
        number: of the kind, a CUgraphNodeType.
        read: converts the caller's structure to the bytes of the union in CUgraphNodeParams.
    """

    def __init__(self, number: int, read: Callable[..., bytes]) -> None:
        self._number = number
        self._read = read

    def _params(self, arguments: tuple[int, ...]) -> CUgraphNodeParams:
        return _params_of(self._number, self._read(*arguments))

    def add(
        self,
        api: Emulator,
        result: int,
        graph: int,
        dependencies: list[int],
        count: int,
        *arguments: int,
    ) -> int:
        """Add a node."""
        if arguments and not arguments[0]:
            return INVALID_VALUE
        return add_node(api, result, graph, dependencies, count, self._params(arguments))

    def change(self, api: Emulator, node: int, *arguments: int) -> int:
        """Change a node; a copy or a fill belongs to the current context."""
        if not arguments[0]:
            return INVALID_VALUE
        needs_context = self._read in (_copy, _fill)
        params = self._params((*arguments, 0) if needs_context else arguments)
        return int(call(api, "cuGraphNodeSetParams", node, params)[0])

    def change_step(self, api: Emulator, executable: int, node: int, *arguments: int) -> int:
        """Change a node of an executable."""
        if not arguments[0]:
            return INVALID_VALUE
        params = self._params(arguments)
        return int(call(api, "cuGraphExecNodeSetParams", executable, node, params)[0])


_KERNEL: Final = NodeKind(_Type.CU_GRAPH_NODE_TYPE_KERNEL, _kernel)
_COPY: Final = NodeKind(_Type.CU_GRAPH_NODE_TYPE_MEMCPY, _copy)
_FILL: Final = NodeKind(_Type.CU_GRAPH_NODE_TYPE_MEMSET, _fill)
_HOST: Final = NodeKind(_Type.CU_GRAPH_NODE_TYPE_HOST, _host)
_CHILD: Final = NodeKind(_Type.CU_GRAPH_NODE_TYPE_GRAPH, _handle)
_RECORD: Final = NodeKind(_Type.CU_GRAPH_NODE_TYPE_EVENT_RECORD, _handle)
_WAIT: Final = NodeKind(_Type.CU_GRAPH_NODE_TYPE_WAIT_EVENT, _handle)
_FREE: Final = NodeKind(_Type.CU_GRAPH_NODE_TYPE_MEM_FREE, _handle)

for _symbol, _function in (
    ("cuGraphAddKernelNode_v2", _KERNEL.add),
    ("cuGraphKernelNodeSetParams_v2", _KERNEL.change),
    ("cuGraphExecKernelNodeSetParams_v2", _KERNEL.change_step),
    ("cuGraphAddMemcpyNode", _COPY.add),
    ("cuGraphMemcpyNodeSetParams", _COPY.change),
    ("cuGraphExecMemcpyNodeSetParams", _COPY.change_step),
    ("cuGraphAddMemsetNode", _FILL.add),
    ("cuGraphMemsetNodeSetParams", _FILL.change),
    ("cuGraphExecMemsetNodeSetParams", _FILL.change_step),
    ("cuGraphAddHostNode", _HOST.add),
    ("cuGraphHostNodeSetParams", _HOST.change),
    ("cuGraphExecHostNodeSetParams", _HOST.change_step),
    ("cuGraphAddChildGraphNode", _CHILD.add),
    ("cuGraphAddEventRecordNode", _RECORD.add),
    ("cuGraphAddEventWaitNode", _WAIT.add),
    ("cuGraphAddMemFreeNode", _FREE.add),
):
    GRAPHS(_symbol)(_function)


@GRAPHS("cuGraphAddEmptyNode")
def add_empty_node(
    api: Emulator, result: int, graph: int, dependencies: list[int], count: int
) -> int:
    """Add a node that does nothing."""
    kind = NodeKind(_Type.CU_GRAPH_NODE_TYPE_EMPTY, bytes)
    return kind.add(api, result, graph, dependencies, count)


@GRAPHS("cuGraphAddMemAllocNode")
def add_allocation(
    api: Emulator, result: int, graph: int, dependencies: list[int], count: int, params: int
) -> int:
    """Add a node that allocates; the parameters receive the address."""
    native = _params_of(_Type.CU_GRAPH_NODE_TYPE_MEM_ALLOC, bytes_at(params, _ALLOC_BYTES))
    code = add_node(api, result, graph, dependencies, count, native)
    address = int(native.getPtr()) + _UNION + _ADDRESS_OFFSET
    put_bytes(params + _ADDRESS_OFFSET, ctypes.string_at(address, 8))
    return code


@GRAPHS("cuGraphAddDependencies")
def add_edges(api: Emulator, graph: int, first: list[int], then: list[int], count: int) -> int:
    """Add ordinary edges between nodes."""
    return int(call(api, "cuGraphAddDependencies", graph, first, then, None, count)[0])


@GRAPHS("cuGraphRemoveDependencies")
def remove_edges(api: Emulator, graph: int, first: list[int], then: list[int], count: int) -> int:
    """Remove ordinary edges between nodes."""
    return int(call(api, "cuGraphRemoveDependencies", graph, first, then, None, count)[0])


@GRAPHS("cuGraphGetEdges")
def edges(api: Emulator, graph: int, first: int, then: int, count: int) -> int:
    """Return the edges of a graph, as many as fit, or how many there are."""
    return edges_with_data(api, graph, first, then, 0, count)


@GRAPHS("cuGraphGetEdges_v2")
def edges_with_data(api: Emulator, graph: int, first: int, then: int, data: int, count: int) -> int:
    """Same; the entries after the last edge become zeros (manual)."""
    capacity = _capacity(count, first, then)
    code, sources, targets, _, edge_count = call(api, "cuGraphGetEdges", graph, capacity)
    if not code:
        for target, handles in ((first, sources), (then, targets)):
            padded = [*map(int, handles or ()), *[0] * (capacity - len(handles or ()))]
            put_bytes(target, struct.pack(f"<{len(padded)}Q", *padded))
        if data:
            structures_at(data, NBYTES, capacity)
        put_bytes(data, bytes(NBYTES * capacity))
        put_size(count, edge_count)
    return int(code)


@GRAPHS("cuStreamUpdateCaptureDependencies")
def change_tip(api: Emulator, stream: int, dependencies: list[int], count: int, flags: int) -> int:
    """Set the nodes that the next operation of a capture comes after."""
    arguments = (stream, dependencies, None, count, flags)
    return int(call(api, "cuStreamUpdateCaptureDependencies", *arguments)[0])


def _put_params(api: Emulator, node: int, result: int, first: int, nbytes: int) -> int:
    """Write some of the bytes of a CUgraphNodeParams."""
    code, params = call(api, "cuGraphNodeGetParams", node)
    if not code:
        put_bytes(result, ctypes.string_at(int(params.getPtr()) + first, nbytes))
    return int(code)


def _of_kind(kind: CUgraphNodeType, first: int, nbytes: int) -> Handler:
    """Return a handler that returns parameters of nodes of one kind and rejects others."""

    def wrapper(api: Emulator, node: int, result: int) -> int:
        code, node_kind = call(api, "cuGraphNodeGetType", node)
        if code:
            return int(code)
        return _put_params(api, node, result, first, nbytes) if node_kind == kind else INVALID_VALUE

    return wrapper


for _symbol, _kind, _first, _nbytes in (
    ("cuGraphKernelNodeGetParams", _Type.CU_GRAPH_NODE_TYPE_KERNEL, _UNION, 56),
    ("cuGraphKernelNodeGetParams_v2", _Type.CU_GRAPH_NODE_TYPE_KERNEL, _UNION, 72),
    ("cuGraphMemcpyNodeGetParams", _Type.CU_GRAPH_NODE_TYPE_MEMCPY, _UNION + 16, 200),
    ("cuGraphMemsetNodeGetParams", _Type.CU_GRAPH_NODE_TYPE_MEMSET, _UNION, 40),
    ("cuGraphHostNodeGetParams", _Type.CU_GRAPH_NODE_TYPE_HOST, _UNION, 16),
    ("cuGraphMemAllocNodeGetParams", _Type.CU_GRAPH_NODE_TYPE_MEM_ALLOC, _UNION, 120),
    ("cuGraphMemFreeNodeGetParams", _Type.CU_GRAPH_NODE_TYPE_MEM_FREE, _UNION, 8),
    ("cuGraphEventRecordNodeGetEvent", _Type.CU_GRAPH_NODE_TYPE_EVENT_RECORD, _UNION, 8),
    ("cuGraphEventWaitNodeGetEvent", _Type.CU_GRAPH_NODE_TYPE_WAIT_EVENT, _UNION, 8),
):
    GRAPHS(_symbol)(_of_kind(_kind, _first, _nbytes))


def _capacity(count: int, *results: int) -> int:
    """Return the caller's number of elements; 0 if there is no array for them."""
    arrays = [result for result in results if result]
    capacity = view_at(ctypes.c_size_t, count).value if arrays else 0
    for result in arrays:
        structures_at(result, 8, capacity)
    return capacity


def _list(
    query: Callable[[int], tuple[int, int, list[object] | None]], result: int, count: int
) -> int:
    """Write nodes to the caller's array; entries after the last become null (manual)."""
    capacity = _capacity(count, result)
    code, number, nodes = query(capacity)
    if not code:
        for index in range(capacity if result else 0):
            put_size(result + 8 * index, nodes[index] if nodes and index < len(nodes) else 0)
        put_size(count, number)
    return code


def _neighbours(name: str, api: Emulator, node: int, result: int, count: int) -> int:
    def ask(capacity: int) -> tuple[int, int, list[object] | None]:
        code, nodes, _, number = call(api, name, node, capacity)
        return int(code), number, nodes

    return _list(ask, result, count)


@GRAPHS("cuGraphNodeGetDependencies")
def dependencies(api: Emulator, node: int, result: int, count: int) -> int:
    """Return the nodes that a node depends on."""
    return _neighbours("cuGraphNodeGetDependencies", api, node, result, count)


@GRAPHS("cuGraphNodeGetDependencies_v2")
def dependencies_with_edges(api: Emulator, node: int, result: int, edges: int, count: int) -> int:
    """Same; edges are ordinary ones."""
    return _with_edges(dependencies(api, node, result, count), edges, count)


@GRAPHS("cuGraphNodeGetDependentNodes")
def dependents(api: Emulator, node: int, result: int, count: int) -> int:
    """Return the nodes that depend on a node."""
    return _neighbours("cuGraphNodeGetDependentNodes", api, node, result, count)


@GRAPHS("cuGraphNodeGetDependentNodes_v2")
def dependents_with_edges(api: Emulator, node: int, result: int, edges: int, count: int) -> int:
    """Same; edges are ordinary ones."""
    return _with_edges(dependents(api, node, result, count), edges, count)


def _with_edges(code: int, edges: int, count: int) -> int:
    if not code and edges:
        put_bytes(edges, bytes(NBYTES * view_at(ctypes.c_size_t, count).value))
    return code


@GRAPHS("cuGraphGetNodes")
def all_nodes(api: Emulator, graph: int, result: int, count: int) -> int:
    """Return the nodes of a graph, or how many there are."""
    return _nodes("cuGraphGetNodes", api, graph, result, count)


@GRAPHS("cuGraphGetRootNodes")
def roots(api: Emulator, graph: int, result: int, count: int) -> int:
    """Return the nodes of a graph without dependencies."""
    return _nodes("cuGraphGetRootNodes", api, graph, result, count)


def _nodes(name: str, api: Emulator, graph: int, result: int, count: int) -> int:
    def ask(capacity: int) -> tuple[int, int, list[object] | None]:
        code, nodes, number = call(api, name, graph, capacity)
        return int(code), number, nodes

    return _list(ask, result, count)


@GRAPHS("cuDeviceSetGraphMemAttribute")
def reset_graph_memory(api: Emulator, device: int, attribute: int, value: int) -> int:
    """Reset a high-water mark."""
    number = view_at(ctypes.c_size_t, value).value
    return int(call(api, "cuDeviceSetGraphMemAttribute", device, attribute, number)[0])
