"""Graphs that are built: nodes of all kinds by one function, and by one function a kind."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Final

from ...driver._api import CUgraphNodeParams, CUgraphNodeType, CUkernelNodeAttrValue
from ..emulator import Emulator
from .special import INVALID_VALUE, Handlers, call, passed_on, put_bytes, put_size, sizes_at

GRAPH_NODES: Final = Handlers()
_PARAMS_BYTES: Final = 256  # sizeof(CUgraphNodeParams), of which a union begins at 16
_KERNEL_BYTES, _COPY_BYTES, _FILL_BYTES, _HOST_BYTES, _ALLOC_BYTES = 72, 200, 40, 16, 120
_ADDRESS_OFFSET: Final = 112  # of dptr in CUDA_MEM_ALLOC_NODE_PARAMS
_EDGE_BYTES: Final = 8  # sizeof(CUgraphEdgeData); all edges are ordinary ones, zeros
_Type = CUgraphNodeType


@GRAPH_NODES("cuGraphAddNode 12020 >size size size size size")
def add_node(api: Emulator, result: int, graph: int, after: int, count: int, params: int) -> int:
    """Add a node of any kind; what it allocates or runs is put into the parameters."""
    seen = CUgraphNodeParams(_ptr=params) if params else None
    given = (graph, sizes_at(after, count), None, count, seen)
    return passed_on(api, "cuGraphAddNode", given, result)


@GRAPH_NODES("cuGraphAddNode_v2 12030 >size size size size size size")
def add_node_with_edges(
    api: Emulator, result: int, graph: int, after: int, edges: int, count: int, params: int
) -> int:
    """The same; edges are ordinary ones."""
    return add_node(api, result, graph, after, count, params)


@GRAPH_NODES("cuGraphNodeSetParams 12020 size size")
def change_node(api: Emulator, node: int, params: int) -> int:
    """Let a node do the same kind of thing with other parameters."""
    seen = CUgraphNodeParams(_ptr=params) if params else None
    return int(call(api, "cuGraphNodeSetParams", node, seen)[0])


@GRAPH_NODES("cuGraphExecNodeSetParams 12020 size size size")
def change_step(api: Emulator, executable: int, node: int, params: int) -> int:
    """The same in an executable."""
    seen = CUgraphNodeParams(_ptr=params) if params else None
    return int(call(api, "cuGraphExecNodeSetParams", executable, node, seen)[0])


@GRAPH_NODES("cuGraphKernelNodeSetAttribute 11000 size int size")
def set_node_attribute(api: Emulator, node: int, attribute: int, value: int) -> int:
    """Let a kernel's node launch cooperatively, or in clusters."""
    seen = CUkernelNodeAttrValue(_ptr=value) if value else None
    return int(call(api, "cuGraphKernelNodeSetAttribute", node, attribute, seen)[0])


def _kernel(params: int) -> bytes:
    return ctypes.string_at(params, _KERNEL_BYTES)


def _copy(params: int, context: int) -> bytes:
    return struct.pack("<iiQ", 0, 0, context) + ctypes.string_at(params, _COPY_BYTES)


def _fill(params: int, context: int) -> bytes:
    return ctypes.string_at(params, _FILL_BYTES) + struct.pack("<Q", context)


def _host(params: int) -> bytes:
    return ctypes.string_at(params, _HOST_BYTES)


def _handle(value: int) -> bytes:
    return struct.pack("<Q", value)


class _Kind:
    """The functions of one kind of node.

    Args:
        number: of the kind, a CUgraphNodeType.
        read: makes what the caller gave the bytes of the union in CUgraphNodeParams.
    """

    def __init__(self, number: int, read: Callable[..., bytes]) -> None:
        self._number = number
        self._read = read

    def _params(self, given: tuple[int, ...]) -> ctypes.Array[ctypes.c_char]:
        head = struct.pack("<i12x", int(self._number))
        return ctypes.create_string_buffer(head + self._read(*given), _PARAMS_BYTES)

    def add(
        self, api: Emulator, result: int, graph: int, after: int, count: int, *given: int
    ) -> int:
        """Add a node."""
        if given and not given[0]:
            return INVALID_VALUE
        memory = self._params(given)
        return add_node(api, result, graph, after, count, ctypes.addressof(memory))

    def change(self, api: Emulator, node: int, *given: int) -> int:
        """Change one; of a copy or a fill in the current context."""
        if not given[0]:
            return INVALID_VALUE
        needs_context = self._read in (_copy, _fill)
        memory = self._params((*given, 0) if needs_context else given)
        return change_node(api, node, ctypes.addressof(memory))

    def change_step(self, api: Emulator, executable: int, node: int, *given: int) -> int:
        """Change one of an executable."""
        if not given[0]:
            return INVALID_VALUE
        memory = self._params(given)
        return change_step(api, executable, node, ctypes.addressof(memory))


_KERNEL: Final = _Kind(_Type.CU_GRAPH_NODE_TYPE_KERNEL, _kernel)
_COPY: Final = _Kind(_Type.CU_GRAPH_NODE_TYPE_MEMCPY, _copy)
_FILL: Final = _Kind(_Type.CU_GRAPH_NODE_TYPE_MEMSET, _fill)
_HOST: Final = _Kind(_Type.CU_GRAPH_NODE_TYPE_HOST, _host)
_CHILD: Final = _Kind(_Type.CU_GRAPH_NODE_TYPE_GRAPH, _handle)
_RECORD: Final = _Kind(_Type.CU_GRAPH_NODE_TYPE_EVENT_RECORD, _handle)
_WAIT: Final = _Kind(_Type.CU_GRAPH_NODE_TYPE_WAIT_EVENT, _handle)
_FREE: Final = _Kind(_Type.CU_GRAPH_NODE_TYPE_MEM_FREE, _handle)

for _line, _function in (
    ("cuGraphAddKernelNode_v2 12000 >size size size size size", _KERNEL.add),
    ("cuGraphKernelNodeSetParams_v2 12000 size size", _KERNEL.change),
    ("cuGraphExecKernelNodeSetParams_v2 12000 size size size", _KERNEL.change_step),
    ("cuGraphAddMemcpyNode 10000 >size size size size size size", _COPY.add),
    ("cuGraphMemcpyNodeSetParams 10000 size size", _COPY.change),
    ("cuGraphExecMemcpyNodeSetParams 10020 size size size size", _COPY.change_step),
    ("cuGraphAddMemsetNode 10000 >size size size size size size", _FILL.add),
    ("cuGraphMemsetNodeSetParams 10000 size size", _FILL.change),
    ("cuGraphExecMemsetNodeSetParams 10020 size size size size", _FILL.change_step),
    ("cuGraphAddHostNode 10000 >size size size size size", _HOST.add),
    ("cuGraphHostNodeSetParams 10000 size size", _HOST.change),
    ("cuGraphExecHostNodeSetParams 10020 size size size", _HOST.change_step),
    ("cuGraphAddChildGraphNode 10000 >size size size size size", _CHILD.add),
    ("cuGraphAddEventRecordNode 11010 >size size size size size", _RECORD.add),
    ("cuGraphAddEventWaitNode 11010 >size size size size size", _WAIT.add),
    ("cuGraphAddMemFreeNode 11040 >size size size size size", _FREE.add),
):
    GRAPH_NODES(_line)(_function)


@GRAPH_NODES("cuGraphAddEmptyNode 10000 >size size size size")
def add_empty_node(api: Emulator, result: int, graph: int, after: int, count: int) -> int:
    """Add a node that does nothing."""
    kind = _Kind(_Type.CU_GRAPH_NODE_TYPE_EMPTY, bytes)
    return kind.add(api, result, graph, after, count)


@GRAPH_NODES("cuGraphAddMemAllocNode 11040 >size size size size &byte")
def add_allocation(
    api: Emulator, result: int, graph: int, after: int, count: int, params: int
) -> int:
    """Add a node that allocates; the address is put into the parameters."""
    memory = ctypes.create_string_buffer(
        struct.pack("<i12x", int(_Type.CU_GRAPH_NODE_TYPE_MEM_ALLOC))
        + ctypes.string_at(params, _ALLOC_BYTES),
        _PARAMS_BYTES,
    )
    code = add_node(api, result, graph, after, count, ctypes.addressof(memory))
    put_bytes(params + _ADDRESS_OFFSET, memory.raw[16 + _ADDRESS_OFFSET : 24 + _ADDRESS_OFFSET])
    return code


@GRAPH_NODES("cuGraphAddDependencies 10000 size size size size")
def add_edges(api: Emulator, graph: int, first: int, then: int, count: int) -> int:
    """Let nodes come after others."""
    pairs = sizes_at(first, count), sizes_at(then, count)
    return int(call(api, "cuGraphAddDependencies", graph, *pairs, None, count)[0])


@GRAPH_NODES("cuGraphAddDependencies_v2 12030 size size size size size")
def add_ordinary_edges(
    api: Emulator, graph: int, first: int, then: int, edges: int, count: int
) -> int:
    """The same; edges are ordinary ones."""
    return add_edges(api, graph, first, then, count)


@GRAPH_NODES("cuGraphRemoveDependencies 10000 size size size size")
def remove_edges(api: Emulator, graph: int, first: int, then: int, count: int) -> int:
    """Let nodes come after others no more."""
    pairs = sizes_at(first, count), sizes_at(then, count)
    return int(call(api, "cuGraphRemoveDependencies", graph, *pairs, None, count)[0])


@GRAPH_NODES("cuGraphRemoveDependencies_v2 12030 size size size size size")
def remove_ordinary_edges(
    api: Emulator, graph: int, first: int, then: int, edges: int, count: int
) -> int:
    """The same; edges are ordinary ones."""
    return remove_edges(api, graph, first, then, count)


@GRAPH_NODES("cuGraphGetEdges 10000 size size size &size")
def edges(api: Emulator, graph: int, first: int, then: int, count: int) -> int:
    """The edges of a graph as far as there is room for them, or how many there are."""
    return edges_with_data(api, graph, first, then, 0, count)


@GRAPH_NODES("cuGraphGetEdges_v2 12030 size size size size &size")
def edges_with_data(api: Emulator, graph: int, first: int, then: int, data: int, count: int) -> int:
    """The same; what lies behind the last edge becomes zeros (manual)."""
    room = ctypes.c_size_t.from_address(count).value if first or then else 0
    code, befores, afters, _, found = call(api, "cuGraphGetEdges", graph, room)
    if not code:
        for place, handles in ((first, befores), (then, afters)):
            padded = [*map(int, handles or ()), *[0] * (room - len(handles or ()))]
            put_bytes(place, struct.pack(f"<{len(padded)}Q", *padded))
        put_bytes(data, bytes(_EDGE_BYTES * room))
        put_size(count, found)
    return int(code)


@GRAPH_NODES("cuStreamBeginCaptureToGraph 12030 stream size size size size int")
def capture_to_graph(
    api: Emulator, stream: int, graph: int, after: int, edges: int, count: int, mode: int
) -> int:
    """Record what follows in a stream into a graph that is there."""
    nodes = sizes_at(after, count)
    given = (stream, graph, nodes, None, count, mode)
    return int(call(api, "cuStreamBeginCaptureToGraph", *given)[0])


@GRAPH_NODES("cuStreamUpdateCaptureDependencies 11030 stream size size uint")
def change_tip(api: Emulator, stream: int, after: int, count: int, flags: int) -> int:
    """Say after which nodes the next operation of a capture comes."""
    given = (stream, sizes_at(after, count), None, count, flags)
    return int(call(api, "cuStreamUpdateCaptureDependencies", *given)[0])


@GRAPH_NODES("cuStreamUpdateCaptureDependencies_v2 12030 stream size size size uint")
def change_tip_with_edges(
    api: Emulator, stream: int, after: int, edges: int, count: int, flags: int
) -> int:
    """The same; edges are ordinary ones."""
    return change_tip(api, stream, after, count, flags)
