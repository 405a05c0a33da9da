"""Nodes of graphs: adding, changing, reading, ordering and removing them.

CUDA Driver API: "Graph Management", cuGraphAddNode, cuGraphNodeGetParams and CUgraphNodeParams. An
operation of a stream and a node have the same work; so a node's work is the work that the stream's
call would record in a capture.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from ...driver._api import (
    CUDA_CONDITIONAL_NODE_PARAMS,
    CUDA_KERNEL_NODE_PARAMS,
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
from ..call_error import OK, SUCCESS, CallError, invalid_value, not_supported
from ..contexts import Context
from ..copies import copy_boxes
from ..edge_data import has_other_edge, reject_edge_data
from ..events import Event
from ..graphs import ConditionKind, Graph, Node, Work
from ..launch import KernelCall, ShownParameters, read_parameters
from ..modules import KernelFunction, Shape
from ..node_kind import NodeKind
from ..pools import DEVICE, MANAGED, PINNED
from ..streams import NON_BLOCKING, Stream, StreamCapture
from ..timeline.queues import nothing
from .call import DriverCalls, call, pointer_to
from .execution import (
    NVLINK_CENTRIC,
    VALUE_BYTES,
    host_params,
    kernel_work,
    let_kernels_update,
    requested_update,
    with_attribute,
)
from .graph import UNCOPIED, copied_graph, forget_graph, release
from .library import function_of
from .memory_fill import Rows, fill_rows

_SWITCHED: Final = frozenset({NodeKind.KERNEL, NodeKind.COPY, NodeKind.SET})
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
"""The driver's number of a kind of node."""
_CONDITIONS: Final = {
    CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_IF: (ConditionKind.IF, 2),
    CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE: (ConditionKind.WHILE, 1),
    CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_SWITCH: (ConditionKind.SWITCH, 1 << 32),
}
CONDITION_TYPES: Final = {kind: int(number) for number, (kind, _) in _CONDITIONS.items()}
"""The driver's number of a kind of condition."""
_MOST_BODIES: Final = 1 << 16  # CUDA names no limit; each body is a graph
_BODIES_OFFSET: Final = 16  # of phGraph_out in CUDA_CONDITIONAL_NODE_PARAMS
_ASSIGN_DEFAULT: Final = 1
_FIXED: Final = UNCOPIED | {NodeKind.CHILD}
_UNION: Final = 16  # offset of one kind's parameters in CUgraphNodeParams
_KERNEL: Final = struct.Struct("<Q7I4xQQQQ")  # CUDA_KERNEL_NODE_PARAMS_v2 and _v3
_CONDITION: Final = struct.Struct("<QiIQQ")  # CUDA_CONDITIONAL_NODE_PARAMS
_ALLOCATION: Final = struct.Struct("<iiii72xQQQQ")  # CUDA_MEM_ALLOC_NODE_PARAMS_v2


class GraphNodeCalls(DriverCalls):
    """Nodes of graphs, and their edges."""

    @call
    def cuGraphDestroyNode(self, h_node: CUgraphNode, /) -> tuple[CUresult]:
        """Remove a node, with its edges."""
        node = self._state.handles.node(h_node)
        _reject_if_allocating(node.graph)
        if node.device_handle:
            raise not_supported("a node that kernels update stays in its graph")
        with self._state.lock:
            node.graph.remove(node)
            del self._state.handles.nodes[node.handle]
            parts = [part for part in (node.work.child, *node.work.bodies) if part is not None]
            references = [part.references() for part in parts]
            for part in parts:
                forget_graph(self._state, part)
        for held_references in references:
            release(self._state, held_references)
        return OK

    @call
    def cuGraphAddDependencies(
        self,
        h_graph: CUgraph,
        from_: Sequence[CUgraphNode] | None,
        to: Sequence[CUgraphNode] | None,
        edge_data: Sequence[CUgraphEdgeData] | None,
        num_dependencies: int,
        /,
    ) -> tuple[CUresult]:
        """Add ordinary edges, each once. Instantiation rejects a cycle."""
        graph = self._state.handles.graph(h_graph)
        with self._state.lock:
            self._reject_data_of_edges(graph, from_, to, edge_data, num_dependencies)
            for first, then in self._edges(graph, from_, to, num_dependencies):
                if first in then.after or first is then:
                    raise invalid_value("the edge is there already, or of a node to itself")
                then.after[first] = None
        return OK

    @call
    def cuGraphRemoveDependencies(
        self,
        h_graph: CUgraph,
        from_: Sequence[CUgraphNode] | None,
        to: Sequence[CUgraphNode] | None,
        edge_data: Sequence[CUgraphEdgeData] | None,
        num_dependencies: int,
        /,
    ) -> tuple[CUresult]:
        """Remove edges between nodes."""
        graph = self._state.handles.graph(h_graph)
        _reject_if_allocating(graph)
        with self._state.lock:
            pairs = self._edges(graph, from_, to, num_dependencies)
            for number, (first, then) in enumerate(pairs):
                has_other_edge(edge_data, number, first.kind, then.kind)  # a driver ignores which
                if first not in then.after:
                    raise invalid_value("there is no such edge")
                del then.after[first]
        return OK

    def _reject_data_of_edges(
        self,
        graph: Graph,
        from_: Sequence[CUgraphNode] | None,
        to: Sequence[CUgraphNode] | None,
        edge_data: Sequence[CUgraphEdgeData] | None,
        count: int,
    ) -> None:
        """Raise for wrong data before any edge is added; wrong nodes end the look."""
        pairs = self._edges(graph, from_, to, count)
        for number in range(count):
            try:
                first, then = next(pairs)
            except CallError:
                return
            if first is then:
                raise invalid_value("an edge of a node to itself")
            reject_edge_data(edge_data, number, first.kind, then.kind)

    def _edges(
        self,
        graph: Graph,
        from_: Sequence[CUgraphNode] | None,
        to: Sequence[CUgraphNode] | None,
        count: int,
    ) -> Iterator[tuple[Node, Node]]:
        """Yield both nodes of each edge; edges before an invalid one are processed first."""
        for number in range(count):
            if from_ is None or to is None or number >= min(len(from_), len(to)):
                raise invalid_value("fewer edges are given than their number says")
            (first,) = self._dependencies(graph, from_[number : number + 1], 1)
            (then,) = self._dependencies(graph, to[number : number + 1], 1)
            yield first, then

    @call
    def cuGraphGetEdges(
        self, h_graph: CUgraph, num_edges: int = 0, /
    ) -> tuple[
        CUresult,
        list[CUgraphNode] | None,
        list[CUgraphNode] | None,
        list[CUgraphEdgeData] | None,
        int,
    ]:
        """Return up to `num_edges` edges, and how many exist; for 0, only how many."""
        graph = self._state.handles.graph(h_graph)
        edges = [(first, then) for then in graph.nodes for first in then.after]
        if num_edges <= 0:
            return SUCCESS, [], [], [], len(edges)
        edges = edges[:num_edges]
        return (
            SUCCESS,
            [self._state.handles.handle_of_node(first) for first, _ in edges],
            [self._state.handles.handle_of_node(then) for _, then in edges],
            [CUgraphEdgeData() for _ in edges],
            len(edges),
        )

    @call
    def cuGraphNodeGetType(self, h_node: CUgraphNode, /) -> tuple[CUresult, CUgraphNodeType]:
        """Return the type of a node."""
        return SUCCESS, TYPES[self._state.handles.node(h_node).kind]

    @call
    def cuGraphNodeSetEnabled(
        self, h_graph_exec: CUgraphExec, h_node: CUgraphNode, is_enabled: int, /
    ) -> tuple[CUresult]:
        """Enable or disable a kernel, copy or fill of an executable."""
        step = self._state.handles.executable(h_graph_exec).step_of(
            self._state.handles.node(h_node)
        )
        if step.kind not in _SWITCHED:
            raise invalid_value(f"a {step.kind.value} is not switched off")
        step.is_enabled = bool(is_enabled)
        return OK

    @call
    def cuGraphNodeGetEnabled(
        self, h_graph_exec: CUgraphExec, h_node: CUgraphNode, /
    ) -> tuple[CUresult, int]:
        """Return whether a node of an executable is enabled."""
        step = self._state.handles.executable(h_graph_exec).step_of(
            self._state.handles.node(h_node)
        )
        return SUCCESS, int(step.is_enabled)

    @call
    def cuGraphAddNode(
        self,
        h_graph: CUgraph,
        dependencies: Sequence[CUgraphNode] | None,
        dependency_data: Sequence[CUgraphEdgeData] | None,
        num_dependencies: int,
        node_params: CUgraphNodeParams | None,
        /,
    ) -> tuple[CUresult, CUgraphNode]:
        """Add a node of any kind; the parameters receive its allocation or body."""
        graph = self._state.handles.graph(h_graph)
        predecessors = self._dependencies(graph, dependencies, num_dependencies)
        if node_params is None:
            raise invalid_value("the node's parameters are null")
        kind = _kind_of(node_params)
        for number, predecessor in enumerate(predecessors):
            reject_edge_data(dependency_data, number, predecessor.kind, kind)
        if kind is NodeKind.CONDITIONAL:
            work = self._conditional(graph, node_params.conditional)
        elif kind is NodeKind.ALLOC:
            work = self._allocation(graph, node_params)
        elif kind is NodeKind.CHILD:
            work = Work(
                kind,
                nothing,
                child=copied_graph(self._state, self._state.handles.graph(node_params.graph.graph)),
            )
        elif kind is NodeKind.FREE:
            work = self._free_in_graph(graph, int(node_params.free.dptr))
        else:
            work = self._work(kind, node_params)
        with self._state.lock:
            node = graph.add(work, predecessors)
        return SUCCESS, self._state.handles.handle_of_node(node)

    @call
    def cuGraphNodeSetParams(
        self, h_node: CUgraphNode, node_params: CUgraphNodeParams | None, /
    ) -> tuple[CUresult]:
        """Change the parameters of a node; its kind stays."""
        node = self._state.handles.node(h_node)
        node.work = self._changed(node.work, node_params)
        return OK

    @call
    def cuGraphExecNodeSetParams(
        self,
        h_graph_exec: CUgraphExec,
        h_node: CUgraphNode,
        node_params: CUgraphNodeParams | None,
        /,
    ) -> tuple[CUresult]:
        """Same in an executable; queued launches keep the former parameters."""
        executable = self._state.handles.executable(h_graph_exec)
        step = executable.step_of(self._state.handles.node(h_node))
        step.work = self._changed(step.work, node_params)
        return OK

    @call
    def cuGraphKernelNodeSetAttribute(
        self,
        h_node: CUgraphNode,
        attr: CUkernelNodeAttrID,
        value: CUkernelNodeAttrValue | None,
        /,
    ) -> tuple[CUresult]:
        """Let a kernel's node launch cooperatively or in clusters; hints have no effect."""
        node = self._state.handles.node(h_node)
        launch = node.work.launch
        if launch is None or value is None:
            raise invalid_value("the node is no kernel's, or the value is null")
        if int(attr) == CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
            self._let_kernels_update(node, value)
            return OK
        version = self._state.process.driver_version
        shape = with_attribute(launch.shape, attr, value, version)
        node.work = kernel_work(self._state, launch.function, shape, launch.parameters)
        return OK

    def _let_kernels_update(self, node: Node, value: CUkernelNodeAttrValue) -> None:
        """Return the node's handle for kernels in the value (codes of driver 580)."""
        requested = requested_update(value)
        if not requested and node.device_handle:
            raise not_supported("a node that kernels update remains so")
        if requested:
            let_kernels_update(self._state, node, value)

    @call
    def cuGraphConditionalHandleCreate(
        self, h_graph: CUgraph, ctx: CUcontext, default_launch_value: int, flags: int, /
    ) -> tuple[CUresult, CUgraphConditionalHandle]:
        """Create a condition for one conditional node of the graph."""
        graph = self._state.handles.graph(h_graph)
        if not int(ctx):
            raise CallError(CUresult.CUDA_ERROR_INVALID_CONTEXT, "a condition has a context")
        self._given(ctx)
        if flags & ~_ASSIGN_DEFAULT:
            raise invalid_value(f"invalid flags of a condition {flags:#x}")
        handle = self._state.handles.new()
        default = default_launch_value if flags else None
        graph.conditions.append(
            self._state.handles.conditions.add(handle, default, self._state.limits.max_steps)
        )
        return SUCCESS, CUgraphConditionalHandle(handle)

    def _dependencies(
        self, graph: Graph, handles: Sequence[CUgraphNode] | None, count: int
    ) -> list[Node]:
        """Return nodes of a graph, which must be different."""
        nodes = [self._state.handles.node(handle) for handle in (handles or ())[:count]]
        if len(nodes) < count or len(set(nodes)) < count:
            raise invalid_value(f"{count} dependencies: {len(set(nodes))} different ones are given")
        for node in nodes:
            if node.graph is not graph:
                raise invalid_value("a dependency is a node of another graph")
        return nodes

    def _changed(self, work: Work, params: CUgraphNodeParams | None) -> Work:
        if params is None:
            raise invalid_value("the node's parameters are null")
        kind = _kind_of(params)
        if kind is not work.kind:
            raise invalid_value(f"the node is a {work.kind.value}, the parameters a {kind.value}")
        if kind in _FIXED:
            raise not_supported(f"the parameters of a {kind.value} are not changed")
        return self._work(kind, params)

    def _work(self, kind: NodeKind, params: CUgraphNodeParams) -> Work:
        """Return the work of a node whose kind does not depend on the graph."""
        if kind is NodeKind.KERNEL:
            self._state.handles.current()  # without one, the driver of CUDA 13.0 ends the process
            return self._kernel_of_node(params)
        if kind is NodeKind.COPY:
            copy, context = params.memcpy.copyParams, self._given(params.memcpy.copyCtx)
            return self._recorded(context, lambda stream: copy_boxes(self._state, copy, stream))
        if kind is NodeKind.SET:
            return self._set(params.memset)
        if kind is NodeKind.HOST:
            function, argument = int(params.host.fn), int(params.host.userData)
            if not function:
                raise invalid_value("the host function is null")
            run = partial(self._state.thread.call_host, function, argument)
            return Work(kind, run, native_params=host_params(function, argument))
        if kind is NodeKind.RECORD:
            event = self._state.handles.event(params.eventRecord.event)
            return Work(kind, lambda: _record(event), event=event.handle)
        if kind is NodeKind.WAIT:
            return Work(
                kind, nothing, event=self._state.handles.event(params.eventWait.event).handle
            )
        return Work(NodeKind.EMPTY, nothing)

    def _given(self, handle: CUcontext) -> Context:
        """Return the context of a node; null is the current one."""
        return (
            self._state.handles.usable(self._state.handles.context(handle))
            if int(handle)
            else self._state.handles.current()
        )

    @staticmethod
    def _recorded(context: Context, operate: Callable[[Stream], object]) -> Work:
        """Run `operate` on a private capturing stream and return the work that it recorded."""
        stream = Stream(0, context, NON_BLOCKING, 0)
        capture = StreamCapture(stream, CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED, 0)
        capture.join(stream, frozenset())
        operate(stream)
        recorded = [node.work for node in capture.nodes]
        return recorded[0] if recorded else Work(NodeKind.EMPTY, nothing)

    def _kernel_of_node(self, params: CUgraphNodeParams) -> Work:
        kernel = params.kernel
        if int(kernel.func):
            function = function_of(self._state, kernel.func)
        else:  # a kernel of a library, in the given context, if any
            function = function_of(
                self._state, CUfunction(int(kernel.kern)), self._given(kernel.ctx)
            )
        shape = Shape(
            (kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ),
            (kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ),
            kernel.sharedMemBytes,
        )
        parameters = read_parameters(
            function,
            int(kernel.kernelParams),
            int(kernel.extra),
            is_checked=self._state.process.has_foreign_callers,
        )
        return kernel_work(self._state, function, shape, parameters)

    def _set(self, params: CUDA_MEMSET_NODE_PARAMS_v2) -> Work:
        """Return a fill of rows; several rows lie `pitch` bytes apart."""
        start, width = int(params.dst), int(params.elementSize)
        if width not in (1, 2, 4):
            raise invalid_value(f"a memset of elements of {width} bytes: 1, 2 or 4 will do")
        # Of the value an element has the lowest bytes: measured with driver 580.
        value = int(params.value) & ((1 << 8 * width) - 1)
        count, height = int(params.width), int(params.height)
        if not count or not height:
            raise invalid_value("a memset node of no bytes")

        rows = Rows(count, height, int(params.pitch))
        return self._recorded(
            self._given(params.ctx),
            lambda stream: fill_rows(self._state, start, value, width, rows, stream),
        )

    def _allocation(self, graph: Graph, params: CUgraphNodeParams) -> Work:
        if graph.is_body:
            raise not_supported("a body of a conditional node allocates no memory")
        props = params.alloc.poolProps
        location = self._state.memory.pool_location(props.location, int(props.allocType))
        if int(params.alloc.bytesize) <= 0:
            raise invalid_value("an allocation node of no bytes")
        device = self._state.devices.visible[location.number if location.kind == DEVICE else 0]
        memory = self._state.memory.graph_allocation(device, int(params.alloc.bytesize), location)
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

    def _conditional(self, graph: Graph, params: CUDA_CONDITIONAL_NODE_PARAMS) -> Work:
        """Make a node with empty bodies, and write their handles to the parameters' address."""
        condition_kind = _CONDITIONS.get(params.type)
        if condition_kind is None or not 1 <= params.size <= condition_kind[1]:
            raise invalid_value(
                f"a conditional node of kind {int(params.type)} with {params.size} bodies"
            )
        if not int(params.ctx):
            raise CallError(CUresult.CUDA_ERROR_INVALID_CONTEXT, "a conditional node has a context")
        if params.size > _MOST_BODIES:
            text = f"the emulator has no memory for {params.size} bodies of a conditional node"
            raise CallError(CUresult.CUDA_ERROR_OUT_OF_MEMORY, text)
        condition = self._state.handles.conditions.free_one(int(params.handle))
        if not graph.knows(condition):
            raise invalid_value(f"the condition {condition.handle:#x} was made for another graph")
        condition.kind = condition_kind[0]
        bodies = tuple(Graph(self._state.handles.new(), outer=graph) for _ in range(params.size))
        self._state.handles.graphs |= {body.handle: body for body in bodies}
        handles = (ctypes.c_size_t * len(bodies))(*(body.handle for body in bodies))
        handles_field = ctypes.c_size_t.from_address(params.getPtr() + _BODIES_OFFSET)
        handles_field.value = ctypes.addressof(handles)
        condition.handles = handles
        return Work(NodeKind.CONDITIONAL, nothing, condition=condition, bodies=bodies)

    @call
    def cuGraphNodeGetParams(self, h_node: CUgraphNode, /) -> tuple[CUresult, CUgraphNodeParams]:
        """Return the parameters of a node; memory they point to is valid until they are changed."""
        node = self._state.handles.node(h_node)
        params = CUgraphNodeParams()
        params.type = TYPES[node.kind]
        native = self._native_params(node)
        ctypes.memmove(pointer_to(params) + _UNION, native, len(native))
        return SUCCESS, params

    @call
    def cuGraphNodeGetDependencies(
        self, h_node: CUgraphNode, num_dependencies: int = 0, /
    ) -> tuple[CUresult, list[CUgraphNode] | None, list[CUgraphEdgeData] | None, int]:
        """Return nodes that a node depends on, and how many exist; for 0, only how many."""
        return self._listed(list(self._state.handles.node(h_node).after), num_dependencies)

    @call
    def cuGraphNodeGetDependentNodes(
        self, h_node: CUgraphNode, num_dependent_nodes: int = 0, /
    ) -> tuple[CUresult, list[CUgraphNode] | None, list[CUgraphEdgeData] | None, int]:
        """Same for the nodes that depend on a node."""
        node = self._state.handles.node(h_node)
        return self._listed([n for n in node.graph.nodes if node in n.after], num_dependent_nodes)

    @call
    def cuGraphGetRootNodes(
        self, h_graph: CUgraph, num_root_nodes: int = 0, /
    ) -> tuple[CUresult, list[CUgraphNode] | None, int]:
        """Same for the nodes without dependencies."""
        roots = [node for node in self._state.handles.graph(h_graph).nodes if not node.after]
        code, handles, _, count = self._listed(roots, num_root_nodes)
        return code, handles, count

    def _listed(
        self, nodes: Sequence[Node], limit: int
    ) -> tuple[CUresult, list[CUgraphNode], list[CUgraphEdgeData], int]:
        if limit <= 0:
            return SUCCESS, [], [], len(nodes)
        handles = [self._state.handles.handle_of_node(node) for node in nodes[:limit]]
        return SUCCESS, handles, [CUgraphEdgeData() for _ in handles], len(handles)

    @call
    def cuGraphChildGraphNodeGetGraph(self, h_node: CUgraphNode, /) -> tuple[CUresult, CUgraph]:
        """Return the graph of a child graph node; it is destroyed with the node."""
        child = self._state.handles.node(h_node).work.child
        if child is None:
            raise invalid_value("the node is no child graph")
        return SUCCESS, self._handle_of_child(child)

    def _handle_of_child(self, child: Graph) -> CUgraph:
        child.is_child = True
        return self._state.handles.handle_of_graph(child)

    @call
    def cuGraphNodeFindInClone(
        self, h_original_node: CUgraphNode, h_cloned_graph: CUgraph, /
    ) -> tuple[CUresult, CUgraphNode]:
        """Return the node of a clone that was copied from a node of the original."""
        original, clone = (
            self._state.handles.node(h_original_node),
            self._state.handles.graph(h_cloned_graph),
        )
        for part in clone.parts():
            for node in part.nodes:
                if node.original is original:
                    return SUCCESS, self._state.handles.handle_of_node(node)
        raise invalid_value("the graph is no clone of the one that the node is of")

    @call
    def cuGraphKernelNodeGetParams(
        self, h_node: CUgraphNode, /
    ) -> tuple[CUresult, CUDA_KERNEL_NODE_PARAMS]:
        """Return the launch of a kernel's node; its arguments are valid until it is changed."""
        node = self._state.handles.node(h_node)
        native = self._native_kernel_params(node, self._launch_of(node))
        params = CUDA_KERNEL_NODE_PARAMS()
        ctypes.memmove(params.getPtr(), native, len(native))
        return SUCCESS, params

    @call
    def cuGraphKernelNodeGetAttribute(
        self, h_node: CUgraphNode, attr: CUkernelNodeAttrID, /
    ) -> tuple[CUresult, CUkernelNodeAttrValue]:
        """Return a launch attribute of a kernel's node; zeros if it was not set."""
        node = self._state.handles.node(h_node)
        shape = self._launch_of(node).shape
        attribute = CUkernelNodeAttrValue()
        if int(attr) == CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            attribute.cooperative = int(shape.cooperative)
        elif int(attr) == CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            cluster = shape.cluster or (0, 0, 0)
            extents = attribute.clusterDim
            extents.x, extents.y, extents.z = cluster
        elif int(attr) == CUkernelNodeAttrID.CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
            updatable = attribute.deviceUpdatableKernelNode
            updatable.deviceUpdatable = int(node.device_handle != 0)
            updatable.devNode = node.device_handle
        else:
            if int(attr) == NVLINK_CENTRIC:
                raise invalid_value(f"launch attribute {int(attr)} of a node is not reported")
            value = dict(shape.hints).get(int(attr), bytes(VALUE_BYTES))
            ctypes.memmove(attribute.getPtr(), value, VALUE_BYTES)
        return SUCCESS, attribute

    @call
    def cuGraphKernelNodeCopyAttributes(
        self, dst: CUgraphNode, src: CUgraphNode, /
    ) -> tuple[CUresult]:
        """Copy the launch attributes of one kernel's node to another."""
        target, source = (
            self._state.handles.node(dst),
            self._launch_of(self._state.handles.node(src)).shape,
        )
        launch = self._launch_of(target)
        if target.device_handle or self._state.handles.node(src).device_handle:
            raise not_supported("attributes of a node that kernels update are not copied")
        shape = launch.shape._replace(
            cooperative=source.cooperative,
            cluster=source.cluster,
            hints=source.hints,
        )
        target.work = kernel_work(self._state, launch.function, shape, launch.parameters)
        return OK

    @staticmethod
    def _launch_of(node: Node) -> KernelCall:
        if node.work.launch is None:
            raise invalid_value(f"the node is a {node.kind.value}, and no kernel")
        return node.work.launch

    def _native_params(self, node: Node) -> bytes:
        """Return the structure of the node's kind.

        Raises:
            CallError: the emulator no longer has it.
        """
        work, kind = node.work, node.kind
        if work.launch is not None:
            return self._native_kernel_params(node, work.launch)
        if kind in (NodeKind.RECORD, NodeKind.WAIT):
            return struct.pack("<Q", work.event)
        if work.child is not None:
            return struct.pack("<Q", int(self._handle_of_child(work.child)))
        if work.memory is not None and kind is NodeKind.FREE:
            return struct.pack("<Q", work.memory.piece.address)
        if work.memory is not None:
            memory = work.memory
            location = memory.location
            pool_fields = (
                MANAGED if location.is_managed else PINNED,
                0,
                location.kind,
                location.number,
            )
            return _ALLOCATION.pack(*pool_fields, 0, 0, memory.nbytes, memory.piece.address)
        condition = work.condition
        if condition is not None:
            bodies = ctypes.addressof(condition.handles) if condition.handles is not None else 0
            assert condition.kind is not None  # set when its node was made
            number = CONDITION_TYPES[condition.kind]
            return _CONDITION.pack(condition.handle, number, len(work.bodies), bodies, 0)
        if kind is not NodeKind.EMPTY and not work.native_params:
            raise CallError(
                CUresult.CUDA_ERROR_NOT_SUPPORTED,
                f"the emulator does not keep the parameters of this {kind.value}",
            )
        return work.native_params

    def _native_kernel_params(self, node: Node, launch: KernelCall) -> bytes:
        function, shape = launch.function, launch.shape
        if node.shown is None or node.shown.launch is not launch:
            node.shown = ShownParameters(launch)
        return _KERNEL.pack(
            function.handle,
            *shape.grid,
            *shape.block,
            shape.shared_bytes,
            ctypes.addressof(node.shown.pointers),
            0,
            self._kernel_of(function),
            function.module.context.handle,
        )

    def _kernel_of(self, function: KernelFunction) -> int:
        """Return the library's kernel of a function in its context; 0 if it has none."""
        module = function.module
        for kernel in list(self._state.handles.kernels.values()):
            is_its = kernel.library.modules.get(module.context) is module
            if is_its and kernel.name == function.name:
                return kernel.handle
        return 0


def _kind_of(params: CUgraphNodeParams) -> NodeKind:
    try:
        return _KINDS[params.type]
    except (KeyError, ValueError):
        raise not_supported("the emulator has no nodes of this kind") from None


def _record(event: Event) -> None:
    """Record an event, as its node does.

    With queued work its operation has the time.
    """
    event.capture, event.tip = None, frozenset()
    event.time_ns = time.perf_counter_ns()


def _reject_if_allocating(graph: Graph) -> None:
    """Keep the nodes and edges of a graph that allocates memory.

    CUDA Driver API, "cuGraphDestroyNode", "cuGraphRemoveDependencies".

    Raises:
        CallError: the graph has a node that allocates or frees.
    """
    node = next((n for n in graph.nodes if n.kind in (NodeKind.ALLOC, NodeKind.FREE)), None)
    if node is not None:
        raise CallError(
            CUresult.CUDA_ERROR_NOT_SUPPORTED,
            f"nodes and edges of a graph with a {node.kind.value} stay in it",
        )
