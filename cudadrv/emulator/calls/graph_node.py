"""Graphs that are built: their nodes of all kinds, and what each does.

CUDA Driver API: "Graph Management", cuGraphAddNode and CUgraphNodeParams. An operation of a stream
and a node do the same; so what a node does is what the stream's call would record in a capture.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ...driver._api import (
    CUDA_CONDITIONAL_NODE_PARAMS,
    CUcontext,
    CUDA_MEMSET_NODE_PARAMS_v2,
    CUfunction,
    CUgraph,
    CUgraphConditionalHandle,
    CUgraphConditionalNodeType,
    CUgraphEdgeData,
    CUgraphExec,
    CUgraphNode,
    CUgraphNodeParams,
    CUgraphNodeType,
    CUkernelNodeAttrID,
    CUkernelNodeAttrValue,
    CUresult,
    CUstreamCaptureMode,
)
from ..contexts import Context
from ..device_state import GraphMemory
from ..events import Event
from ..graphs import ConditionKind, Graph, Node, Work
from ..launch import read_parameters
from ..modules import Shape
from ..node_kind import NodeKind
from ..refusal import OK, SUCCESS, Refusal, invalid_value
from ..streams import NON_BLOCKING, Capture, Stream
from ..timeline.operation import nothing
from .call import call
from .copy_box import BoxCopyCalls
from .fill import FillCalls, Rows
from .graph import GraphCalls
from .host_function import host_params
from .launch import LaunchCalls

_Type = CUgraphNodeType
_KINDS: Final = {
    _Type.CU_GRAPH_NODE_TYPE_KERNEL: NodeKind.KERNEL,
    _Type.CU_GRAPH_NODE_TYPE_MEMCPY: NodeKind.COPY,
    _Type.CU_GRAPH_NODE_TYPE_MEMSET: NodeKind.SET,
    _Type.CU_GRAPH_NODE_TYPE_HOST: NodeKind.HOST,
    _Type.CU_GRAPH_NODE_TYPE_GRAPH: NodeKind.CHILD,
    _Type.CU_GRAPH_NODE_TYPE_EMPTY: NodeKind.EMPTY,
    _Type.CU_GRAPH_NODE_TYPE_WAIT_EVENT: NodeKind.WAIT,
    _Type.CU_GRAPH_NODE_TYPE_EVENT_RECORD: NodeKind.RECORD,
    _Type.CU_GRAPH_NODE_TYPE_MEM_ALLOC: NodeKind.ALLOC,
    _Type.CU_GRAPH_NODE_TYPE_MEM_FREE: NodeKind.FREE,
    _Type.CU_GRAPH_NODE_TYPE_CONDITIONAL: NodeKind.CONDITIONAL,
}
TYPES: Final = {kind: number for number, kind in _KINDS.items()}
"""The number of a kind of node for the driver."""
_CONDITIONS: Final = {
    CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_IF: (ConditionKind.IF, 2),
    CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE: (ConditionKind.WHILE, 1),
    CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_SWITCH: (ConditionKind.SWITCH, 1 << 32),
}
CONDITION_TYPES: Final = {kind: int(number) for number, (kind, _) in _CONDITIONS.items()}
"""The number of a kind of condition for the driver."""
_MOST_BODIES: Final = 1 << 16  # CUDA names no limit; each body is a graph
_BODIES_OFFSET: Final = 16  # of phGraph_out in CUDA_CONDITIONAL_NODE_PARAMS
_ASSIGN_DEFAULT: Final = 1
_PINNED, _OF_DEVICE = 1, 1  # CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_DEVICE
_UNCOPIED: Final = frozenset({NodeKind.ALLOC, NodeKind.FREE, NodeKind.CONDITIONAL})
_FIXED: Final = _UNCOPIED | {NodeKind.CHILD}


class GraphNodeCalls(LaunchCalls, BoxCopyCalls, FillCalls, GraphCalls):
    """Nodes of graphs."""

    @call(1)
    def cuGraphAddNode(
        self,
        h_graph: CUgraph,
        dependencies: Sequence[CUgraphNode] | None,
        dependency_data: Sequence[CUgraphEdgeData] | None,
        num_dependencies: int,
        node_params: CUgraphNodeParams | None,
        /,
    ) -> tuple[CUresult, CUgraphNode]:
        """Add a node of any kind; what it allocates or runs comes back in the parameters."""
        graph = self._graph(h_graph)
        after = self._several(graph, dependencies, num_dependencies)
        if node_params is None:
            raise invalid_value("the node's parameters are null")
        kind = _kind_of(node_params)
        if kind is NodeKind.CONDITIONAL:
            work = self._conditional(node_params.conditional)
        elif kind is NodeKind.ALLOC:
            work = self._allocation(graph, node_params)
        elif kind is NodeKind.CHILD:
            work = Work(kind, nothing, child=self._copied(self._graph(node_params.graph.graph)))
        elif kind is NodeKind.FREE:
            work = self._free_in_graph(graph, int(node_params.free.dptr))
        else:
            work = self._work(kind, node_params)
        with self._lock:
            node = graph.add(work, after)
        return SUCCESS, self._handle_of(node)

    @call()
    def cuGraphNodeSetParams(
        self, h_node: CUgraphNode, node_params: CUgraphNodeParams | None, /
    ) -> tuple[CUresult]:
        """Let a node do the same kind of thing with other parameters."""
        node = self._node(h_node)
        node.work = self._changed(node.work, node_params)
        return OK

    @call()
    def cuGraphExecNodeSetParams(
        self,
        h_graph_exec: CUgraphExec,
        h_node: CUgraphNode,
        node_params: CUgraphNodeParams | None,
        /,
    ) -> tuple[CUresult]:
        """Likewise in an executable; what is queued keeps what it had."""
        executable = self._executable(h_graph_exec)
        step = executable.step_of(self._node(h_node))
        step.work = self._changed(step.work, node_params)
        return OK

    @call()
    def cuGraphKernelNodeSetAttribute(
        self,
        h_node: CUgraphNode,
        attr: CUkernelNodeAttrID,
        value: CUkernelNodeAttrValue | None,
        /,
    ) -> tuple[CUresult]:
        """Let a kernel's node launch cooperatively or in clusters; hints have no effect."""
        node = self._node(h_node)
        launch = node.work.launch
        if launch is None or value is None:
            raise invalid_value("the node is no kernel's, or the value is null")
        shape = launch.shape
        if attr == CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            shape = replace(shape, cooperative=bool(value.cooperative))
        elif attr == CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            extents = value.clusterDim
            shape = replace(shape, cluster=(extents.x, extents.y, extents.z))
        node.work = self._kernel_work(launch.function, shape, launch.parameters)
        return OK

    @call(1)
    def cuGraphConditionalHandleCreate(
        self, h_graph: CUgraph, ctx: CUcontext, default_launch_value: int, flags: int, /
    ) -> tuple[CUresult, CUgraphConditionalHandle]:
        """A condition for one conditional node of the graph."""
        graph = self._graph(h_graph)
        if not int(ctx):
            raise Refusal(CUresult.CUDA_ERROR_INVALID_CONTEXT, "a condition has a context")
        self._given(ctx)
        if flags & ~_ASSIGN_DEFAULT:
            raise invalid_value(f"invalid flags of a condition {flags:#x}")
        handle = next(self._handles)
        default = default_launch_value if flags else None
        graph.conditions.append(self._conditions.add(handle, default, self.limits.max_steps))
        return SUCCESS, CUgraphConditionalHandle(handle)

    def _several(
        self, graph: Graph, handles: Sequence[CUgraphNode] | None, count: int
    ) -> list[Node]:
        """Nodes of a graph, which are different."""
        found = [self._node(handle) for handle in (handles or ())[:count]]
        if len(found) < count or len(set(found)) < count:
            raise invalid_value(f"{count} dependencies: {len(set(found))} different ones are given")
        for node in found:
            if node.graph is not graph:
                raise invalid_value("a dependency is a node of another graph")
        return found

    def _node(self, handle: CUgraphNode) -> Node:
        found = self._nodes.get(int(handle))
        if found is None:
            raise invalid_value(f"{int(handle):#x} is no live node of a graph")
        return found

    def _changed(self, work: Work, params: CUgraphNodeParams | None) -> Work:
        if params is None:
            raise invalid_value("the node's parameters are null")
        kind = _kind_of(params)
        if kind is not work.kind:
            raise invalid_value(f"the node is a {work.kind.value}, the parameters a {kind.value}")
        if kind in _FIXED:
            raise _unsupported(f"the parameters of a {kind.value} are not changed")
        return self._work(kind, params)

    def _work(self, kind: NodeKind, params: CUgraphNodeParams) -> Work:
        """What a node does whose kind needs no place in the graph."""
        if kind is NodeKind.KERNEL:
            self._current()  # without one, the driver of CUDA 13.0 ends the process
            return self._kernel_of_node(params)
        if kind is NodeKind.COPY:
            copy, context = params.memcpy.copyParams, self._given(params.memcpy.copyCtx)
            return self._recorded(context, lambda stream: self._copy_boxes(copy, stream))
        if kind is NodeKind.SET:
            return self._set(params.memset)
        if kind is NodeKind.HOST:
            function, argument = int(params.host.fn), int(params.host.userData)
            if not function:
                raise invalid_value("the host function is null")
            run = partial(self._call_host, function, argument)
            return Work(kind, run, told=host_params(function, argument))
        if kind is NodeKind.RECORD:
            event = self._event(params.eventRecord.event)
            return Work(kind, lambda: _record(event), event=event.handle)
        if kind is NodeKind.WAIT:
            return Work(kind, nothing, event=self._event(params.eventWait.event).handle)
        return Work(NodeKind.EMPTY, nothing)

    def _given(self, handle: CUcontext) -> Context:
        """The context of a node; null is the current one."""
        return self._usable(self._context(handle)) if int(handle) else self._current()

    @staticmethod
    def _recorded(context: Context, operate: Callable[[Stream], object]) -> Work:
        """What the capture of a stream of its own would record; it forgets all of it then."""
        stream = Stream(0, context, NON_BLOCKING, 0)
        capture = Capture(stream, CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED, 0)
        capture.join(stream, frozenset())
        operate(stream)
        recorded = [node.work for node in capture.nodes]
        return recorded[0] if recorded else Work(NodeKind.EMPTY, nothing)

    def _kernel_of_node(self, params: CUgraphNodeParams) -> Work:
        kernel = params.kernel
        if int(kernel.func):
            function = self._function(kernel.func)
        else:  # a kernel of a library, in a context that may be named
            function = self._function(CUfunction(int(kernel.kern)), self._given(kernel.ctx))
        shape = Shape(
            (kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ),
            (kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ),
            kernel.sharedMemBytes,
        )
        parameters = read_parameters(function, int(kernel.kernelParams), int(kernel.extra))
        return self._kernel_work(function, shape, parameters)

    def _set(self, params: CUDA_MEMSET_NODE_PARAMS_v2) -> Work:
        """Rows of a fill; more than one lie `pitch` bytes apart."""
        start, width = int(params.dst), int(params.elementSize)
        if width not in (1, 2, 4):
            raise invalid_value(f"a memset of elements of {width} bytes: 1, 2 or 4 will do")
        value, count, height = int(params.value), int(params.width), int(params.height)
        if not count or not height:
            raise invalid_value("a memset node of no bytes")

        rows = Rows(count, height, int(params.pitch))
        return self._recorded(
            self._given(params.ctx), lambda stream: self._fill(start, value, width, rows, stream)
        )

    def _allocation(self, graph: Graph, params: CUgraphNodeParams) -> Work:
        if graph.is_body:
            raise _unsupported("a body of a conditional node allocates no memory")
        props = params.alloc.poolProps
        if int(props.allocType) != _PINNED or int(props.location.type) != _OF_DEVICE:
            raise _unsupported("the emulator's graphs allocate memory of devices alone")
        device = self._device_at(int(props.location.id))
        if int(params.alloc.bytesize) <= 0:
            raise invalid_value("an allocation node of no bytes")
        memory = GraphMemory(device, int(params.alloc.bytesize))
        params.alloc.dptr = memory.piece.address
        return Work(NodeKind.ALLOC, memory.allocate, memory)

    @staticmethod
    def _free_in_graph(graph: Graph, address: int) -> Work:
        freed = {id(node.memory) for node in graph.nodes if node.kind is NodeKind.FREE}
        for memory in graph.memory:
            if memory.piece.address == address and id(memory) not in freed:
                return Work(NodeKind.FREE, memory.free, memory)
        raise invalid_value(
            f"{address:#x} was not allocated in this graph, or a node frees it already"
        )

    def _conditional(self, params: CUDA_CONDITIONAL_NODE_PARAMS) -> Work:
        """A node with empty bodies, whose handles are put where the parameters say."""
        known = _CONDITIONS.get(params.type)
        if known is None or not 1 <= params.size <= known[1]:
            raise invalid_value(
                f"a conditional node of kind {int(params.type)} with {params.size} bodies"
            )
        if not int(params.ctx):
            raise Refusal(CUresult.CUDA_ERROR_INVALID_CONTEXT, "a conditional node has a context")
        if params.size > _MOST_BODIES:
            text = f"the emulator has no memory for {params.size} bodies of a conditional node"
            raise Refusal(CUresult.CUDA_ERROR_OUT_OF_MEMORY, text)
        condition = self._conditions.free_one(int(params.handle))
        condition.kind = known[0]
        bodies = tuple(Graph(next(self._handles), is_body=True) for _ in range(params.size))
        self._graphs |= {body.handle: body for body in bodies}
        handles = (ctypes.c_size_t * len(bodies))(*(body.handle for body in bodies))
        place = ctypes.c_size_t.from_address(params.getPtr() + _BODIES_OFFSET)
        place.value = ctypes.addressof(handles)
        condition.handles = handles
        return Work(NodeKind.CONDITIONAL, nothing, condition=condition, bodies=bodies)

    def _copied(self, graph: Graph) -> Graph:
        """A copy of a graph, as child graphs and clones are.

        Raises:
            Refusal: CUDA_ERROR_NOT_SUPPORTED, if it has nodes that cannot be copied.
        """
        copy = Graph()
        made: dict[Node, Node] = {}
        for node in graph.ordered():
            work = node.work
            if work.kind in _UNCOPIED:
                raise _unsupported(f"a graph with a {work.kind.value} is not copied")
            if work.child is not None:
                work = replace(work, child=self._copied(work.child))
            made[node] = copy.add(work, [made[each] for each in node.after])
            made[node].original = node
        with self._lock:
            copy.user_objects = self._retain(graph.user_objects)
        return copy


def _kind_of(params: CUgraphNodeParams) -> NodeKind:
    try:
        return _KINDS[params.type]
    except (KeyError, ValueError):
        raise _unsupported("the emulator has no nodes of this kind") from None


def _unsupported(text: str) -> Refusal:
    return Refusal(CUresult.CUDA_ERROR_NOT_SUPPORTED, text)


def _record(event: Event) -> None:
    """What a node that records an event does.

    Where work is queued, its operation tells the time.
    """
    event.capture, event.tip = None, frozenset()
    event.time_ns = time.perf_counter_ns()
