"""`Graph`: work captured or built once, and replayed at the cost of one call."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from enum import IntFlag
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, overload

import numpy as np

from ptx.read_only import ReadOnly

from .. import border
from ..driver._api import (
    CUdeviceptr,
    CUgraph,
    CUgraphConditionalHandle,
    CUgraphConditionalNodeType as _ConditionalType,
    CUgraphNode,
    CUgraphNodeType as _Type,
    CUmemAllocationType,
    CUmemLocationType,
)
from ..driver.context import BaseContext
from ..driver.driver_selection import failure
from ..driver.event import Event
from ..driver.handle import NotCopyable
from ..driver.stream import BaseStream
from ..errors import InvalidValueError
from ..launch.config import LaunchConfig
from ..launch.module_and_kernel import Kernel
from ..memory.array import AnyDeviceArray, DeviceArray
from ..memory.buffer import DeviceBuffer, GraphMemory, over, owning
from ..memory.driver_pool import out_of_memory
from ..memory.dtypes import TypedDType, checked_dtype
from ..memory.host_copy import ArrayOrBuffer, HostArray
from ..memory.layout import Shape, checked_shape
from .base_graph import BaseGraph, GraphHandle
from .executable import GraphExec
from .needs import Content, NodeNeeds
from .node import After, GraphNode, handles_of
from .node_kinds import AllocNode, CopyNode, EventNode, FillNode, HostNode, KernelNode
from .node_work import (
    NodeWork,
    copy_work,
    event_work,
    fill_work,
    graph_work,
    host_work,
    kernel_work,
    of_type,
)

if TYPE_CHECKING:
    import numpy.typing as npt

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_ASSIGN_DEFAULT: Final = 1  # CU_GRAPH_COND_ASSIGN_DEFAULT
_VERBOSE: Final = 1  # CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE
_MOST_DEFAULT: Final = 2**32 - 1
_MOST_BODIES: Final = 1 << 16
_NODE_CLASSES: Final[dict[int, type[GraphNode]]] = {
    int(_Type.CU_GRAPH_NODE_TYPE_KERNEL): KernelNode,
    int(_Type.CU_GRAPH_NODE_TYPE_MEMCPY): CopyNode,
    int(_Type.CU_GRAPH_NODE_TYPE_MEMSET): FillNode,
    int(_Type.CU_GRAPH_NODE_TYPE_HOST): HostNode,
    int(_Type.CU_GRAPH_NODE_TYPE_WAIT_EVENT): EventNode,
    int(_Type.CU_GRAPH_NODE_TYPE_EVENT_RECORD): EventNode,
}


class DotDetail(IntFlag):
    """Details of a node in `Graph.write_dot`; the emulator writes names and handles alone.

    Source: CUgraphDebugDot_flags in the CUDA Driver API manual.
    """

    RUNTIME_TYPES = 1 << 1
    KERNELS = 1 << 2
    COPIES = 1 << 3
    FILLS = 1 << 4
    HOST_FUNCTIONS = 1 << 5
    EVENTS = 1 << 6
    SEMAPHORE_SIGNALS = 1 << 7
    SEMAPHORE_WAITS = 1 << 8
    KERNEL_ATTRIBUTES = 1 << 9
    HANDLES = 1 << 10
    ALLOCATIONS = 1 << 11
    FREES = 1 << 12
    MEMORY_OPERATIONS = 1 << 13
    EDGES = 1 << 14
    CONDITIONS = 1 << 15


_NO_DETAIL: Final = DotDetail(0)


class GraphCondition(NotCopyable):
    """A number that a kernel sets, for one conditional node; `Graph.new_condition` makes it.

    It is an argument of kernels, as an ``unsigned long long``; device code declares
    ``extern "C" __device__ void cudaGraphSetConditional(unsigned long long, unsigned int);`` and
    gives it the number.

    Attributes:
        graph: the graph of the conditional node.
        handle: the CUgraphConditionalHandle.
    """

    __slots__ = ("_graph", "_raw")

    graph: ReadOnly[BaseGraph] = ReadOnly("_graph")

    def __init__(self, graph: BaseGraph, handle: CUgraphConditionalHandle) -> None:
        self._graph: BaseGraph = graph
        self._raw = handle

    @property
    def handle(self) -> CUgraphConditionalHandle:
        """The CUgraphConditionalHandle.

        Raises:
            ClosedError: the graph was closed.
        """
        self._graph._handle.raw  # noqa: B018  # raises once it is closed
        return self._raw

    def __repr__(self) -> str:
        return f"<GraphCondition {int(self._raw):#x} of {self._graph!r}>"

    def __index__(self) -> int:
        return int(self.handle)


class Graph(BaseGraph):
    """Work that was captured from a stream, or nodes that were added one by one.

    `Context.new_graph` makes an empty one, and `Stream.capture` one that is recorded. `instantiate`
    makes it ready to run. The graph keeps the objects that its nodes use, such as arrays, until the
    last replay is done. Added nodes run after the nodes that they name, and after no others:
    shared memory makes no order. Arrays that were made in a capture, or by `add_alloc`,
    have their memory from each replay to the next.

    Attributes:
        context: the context in which its nodes run.
        handle: the CUgraph; reading it after `close` raises `ClosedError`.
        closed: True once it was closed.
        allocates: True if it allocates memory that it leaves to its user.
        node_count: the number of nodes; queries the driver.
    """

    __slots__ = ("_default_stream",)

    # Returns the context's default stream, for memory that the graph allocates.
    _default_stream: Callable[[], BaseStream]

    @classmethod
    def _new(cls, context: BaseContext, default_stream: Callable[[], BaseStream]) -> Self:
        """Make an empty graph."""
        handle = GraphHandle(context._handle)
        code = handle.make(context._api.cuGraphCreate, 0)
        if code:
            raise failure(context._api, code, "cuGraphCreate", f"creating a graph on {context!r}")
        return cls._over(context, handle, default_stream)

    @classmethod
    def _over(
        cls, context: BaseContext, handle: GraphHandle, default_stream: Callable[[], BaseStream]
    ) -> Self:
        """Make a graph that takes over a handle."""
        self = cls._unfilled(context, default_stream)
        self._fill(handle)
        return self

    @classmethod
    def _unfilled(cls, context: BaseContext, default_stream: Callable[[], BaseStream]) -> Self:
        """Make a graph that a capture will fill."""
        self = cls(context)
        self._default_stream = default_stream
        return self

    def _take(self, added: Content, handle: GraphHandle | None) -> None:
        """Take over the needs of captured work, and the graph itself if a capture made it."""
        content = self._content
        content.captured += added.captured
        content.born += added.born
        self._touch()
        if handle is not None:
            self._handle = handle
            try:
                self._retain_needs()
            finally:
                self._mark_closed()
            self._fill(handle)

    def instantiate(
        self,
        *,
        node_priority: bool = False,
        device_launch: bool = False,
        upload: BaseStream | None = None,
    ) -> GraphExec:
        """Make the graph ready to be launched, any number of times.

        Memory that the graph allocates and does not free is freed by its next launch.

        Args:
            node_priority: whether kernels run with the priorities of their nodes, which are those
                of the captured streams or of `LaunchAttributes`, not with the launching stream's.
            device_launch: whether kernels may launch it too, by its `handle`. It then has only
                kernels, copies, fills and child graphs of one context, and needs an upload first.
            upload: a stream to upload it on, as `GraphExec.upload` does.

        Raises:
            CudaError: the driver rejects the graph; the error names the node if the driver does.
        """
        return GraphExec(
            self, node_priority=node_priority, device_launch=device_launch, upload=upload
        )

    @property
    def nodes(self) -> list[GraphNode]:
        """The nodes; queries the driver."""
        graph, count = self._handle, self.node_count
        code, handles, _ = graph.api.cuGraphGetNodes(graph.raw, count)
        if code:
            raise failure(graph.api, code, "cuGraphGetNodes", f"the nodes of {self!r}")
        return [self._node(handle) for handle in handles or ()]

    @property
    def edges(self) -> list[tuple[GraphNode, GraphNode]]:
        """Pairs of nodes, of which the second runs after the first; queries the driver."""
        handle = self._handle
        code, *_, count = handle.api.cuGraphGetEdges(handle.raw, 0)
        if not code:
            code, first, then, *_ = handle.api.cuGraphGetEdges(handle.raw, count)
        if code:
            raise failure(handle.api, code, "cuGraphGetEdges", f"the edges of {self!r}")
        pairs = zip(first or (), then or (), strict=True)
        return [(self._node(source), self._node(target)) for source, target in pairs]

    def _node(self, handle: CUgraphNode) -> GraphNode:
        handle = CUgraphNode(int(handle))
        code, kind = self._handle.api.cuGraphNodeGetType(handle)
        if code:
            raise failure(self._handle.api, code, "cuGraphNodeGetType", f"a node of {self!r}")
        return _NODE_CLASSES.get(int(kind), GraphNode)(self, handle)

    def add_kernel(
        self, kernel: Kernel, config: LaunchConfig, *args: object, after: After = ()
    ) -> KernelNode:
        """Launch a kernel.

        Args:
            kernel: of the graph's context.
            config: blocks, threads and resources.
            args: as for `Kernel.launch`.
            after: the node, or the nodes, that it runs after.

        Raises:
            ArgumentError: an argument has the wrong count, type, range or memory space.
            LaunchConfigError: the device or the kernel cannot run the configuration.
            WrongDeviceError: the kernel or an argument belongs to another device.
        """
        work = kernel_work(self.context, kernel, config, args)
        node = KernelNode(self, self._add(work, after))
        for attribute, value in work.attributes:
            api = self._handle.api
            (code,) = api.cuGraphKernelNodeSetAttribute(node.handle, attribute, value)
            if code:
                node.remove()
                doing = f"adding kernel {kernel.name!r} with {config}"
                raise failure(api, code, "cuGraphKernelNodeSetAttribute", doing)
        return node

    def add_copy(
        self,
        dst: ArrayOrBuffer | HostArray,
        src: ArrayOrBuffer | HostArray,
        *,
        after: After = (),
    ) -> CopyNode:
        """Copy between arrays of one shape and dtype, or buffers of one size.

        Either side may be a host array, C-contiguous, which is read or written at each replay and
        belongs to the graph as long as that may run.

        Raises:
            CopyError: the two sides do not match, or a host array is strided or read-only.
            WrongDeviceError: neither side is of the graph's context.
        """
        return CopyNode(self, self._add(copy_work(self.context, dst, src), after))

    def add_fill(self, dst: ArrayOrBuffer, value: object, *, after: After = ()) -> FillNode:
        """Set every element of an array, or every byte of a buffer, to `value`.

        Raises:
            InvalidValueError: an element cannot have the value, or its bytes do not repeat after 1,
                2 or 4.
        """
        return FillNode(self, self._add(fill_work(self.context, dst, value), after))

    def add_host(
        self, function: Callable[..., object], *args: object, after: After = ()
    ) -> HostNode:
        """Call ``function(*args)`` at each replay, in a thread of the driver.

        It must make no CUDA call, in any library, nor wait for one. An exception is
        reported by `sys.unraisablehook`.
        """
        return HostNode(self, self._add(host_work(function, args), after))

    def add_graph(self, child: BaseGraph, *, after: After = ()) -> GraphNode:
        """Run the nodes of another graph, as it is now.

        Raises:
            InvalidValueError: it allocates memory.
            CudaError: it has conditional nodes, or frees memory.
        """
        return GraphNode(self, self._add(graph_work(child), after))

    def add_empty(self, *, after: After = ()) -> GraphNode:
        """Do nothing, after several nodes, so that other nodes can run after all of them."""
        return GraphNode(self, self._add(NodeWork(of_type(_Type.CU_GRAPH_NODE_TYPE_EMPTY)), after))

    def add_record(self, event: Event, *, after: After = ()) -> EventNode:
        """Record an event at this point of each replay."""
        work = event_work(self.context, event, records=True)
        return EventNode(self, self._add(work, after))

    def add_wait(self, event: Event, *, after: After = ()) -> EventNode:
        """Wait for the work that an event holds when the replay is launched."""
        work = event_work(self.context, event, records=False)
        return EventNode(self, self._add(work, after))

    @overload
    def add_alloc(
        self, shape: Shape, dtype: TypedDType[_ScalarT], *, after: After = ()
    ) -> AllocNode[_ScalarT]: ...
    # A type checker learns nothing from a dtype given as text.
    @overload
    def add_alloc(
        self, shape: Shape, dtype: npt.DTypeLike, *, after: After = ()
    ) -> AllocNode[Any]: ...
    def add_alloc(self, shape: Shape, dtype: npt.DTypeLike, *, after: After = ()) -> AllocNode[Any]:
        """Allocate an array at each replay, not initialised; `AllocNode.array` is it.

        Its memory lasts from that node of a replay to the same node of the next, or to `add_free`.

        Raises:
            OutOfMemoryError: there is not enough memory.
        """
        kind: np.dtype[Any] = checked_dtype(dtype)
        nbytes = math.prod(checked_shape(shape)) * kind.itemsize
        if not nbytes:
            raise InvalidValueError("a node allocates one byte or more")
        if nbytes > border.LARGEST:
            raise out_of_memory(self.context, nbytes, "")
        params = of_type(_Type.CU_GRAPH_NODE_TYPE_MEM_ALLOC)
        alloc = params.alloc
        alloc.bytesize = nbytes
        pool = alloc.poolProps
        pool.allocType = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        pool.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        pool.location.id = self.context.ordinal
        handle = self._add(NodeWork(params), after)
        memory = GraphMemory(self._handle.context, CUdeviceptr(int(params.alloc.dptr)), None)
        buffer = over(self._default_stream(), memory, int(memory.raw), nbytes)
        self._content.born.append(memory)
        self._touch()
        return AllocNode(self, handle, owning(DeviceArray(buffer, shape, kind)))

    def add_free(self, array: AnyDeviceArray | DeviceBuffer, *, after: After) -> GraphNode:
        """Free memory that a node of this graph allocates, after its uses.

        Raises:
            InvalidValueError: no node of the graph allocates it, or one frees it already.
        """
        memory = border.instance_of(
            "Graph.add_free: array", array, (DeviceArray, DeviceBuffer)
        )._memory
        params = of_type(_Type.CU_GRAPH_NODE_TYPE_MEM_FREE)
        params.free.dptr = array.ptr
        handle = self._add(NodeWork(params, NodeNeeds(((memory, True),))), after)
        self._content.born = [
            allocation for allocation in self._content.born if allocation is not memory
        ]
        return GraphNode(self, handle)

    def new_condition(self, default: int | None = None) -> GraphCondition:
        """Return a condition for one conditional node of this graph.

        Args:
            default: its value at the start of each replay; without one it stays as it was.
        """
        number = 0
        if default is not None:
            number = border.int_in_range(
                "Graph.new_condition: default", default, most=_MOST_DEFAULT
            )
        flags = 0 if default is None else _ASSIGN_DEFAULT
        graph = self._handle
        make = graph.api.cuGraphConditionalHandleCreate
        code, handle = graph.context.call(make, graph.raw, graph.context.raw, number, flags)
        if code:
            doing = f"creating a condition for {self!r}"
            raise failure(graph.api, code, "cuGraphConditionalHandleCreate", doing)
        return GraphCondition(self, handle)

    def add_if(
        self, condition: GraphCondition, *, otherwise: bool = False, after: After = ()
    ) -> ConditionalNode:
        """Run the node's body if the condition is not 0; else its second body, if `otherwise`."""
        kind = _ConditionalType.CU_GRAPH_COND_TYPE_IF
        return self._add_conditional(condition, kind, 1 + bool(otherwise), after)

    def add_while(self, condition: GraphCondition, *, after: After = ()) -> ConditionalNode:
        """Run the node's body again and again, until the condition is 0."""
        return self._add_conditional(condition, _ConditionalType.CU_GRAPH_COND_TYPE_WHILE, 1, after)

    def add_switch(
        self, condition: GraphCondition, count: int, *, after: After = ()
    ) -> ConditionalNode:
        """Run the body that the condition numbers, of `count`; none if it is larger.

        CUDA names no limit, and each body is a graph of its own: 65,536 are the most here.
        """
        count = border.int_in_range("Graph.add_switch: count", count, least=1, most=_MOST_BODIES)
        kind = _ConditionalType.CU_GRAPH_COND_TYPE_SWITCH
        return self._add_conditional(condition, kind, count, after)

    def add_edge(self, first: GraphNode, then: GraphNode) -> None:
        """Make a node run after another.

        Raises:
            InvalidValueError: it does already. `instantiate` rejects circles.
        """
        source, target = self._ends(first, then)
        handle = self._handle
        (code,) = handle.api.cuGraphAddDependencies(handle.raw, source, target, None, 1)
        if code:
            doing = f"adding an edge from {first!r} to {then!r}"
            raise failure(handle.api, code, "cuGraphAddDependencies", doing)

    def remove_edge(self, first: GraphNode, then: GraphNode) -> None:
        """Remove the edge between two nodes.

        Raises:
            InvalidValueError: there is no such edge.
        """
        source, target = self._ends(first, then)
        handle = self._handle
        (code,) = handle.api.cuGraphRemoveDependencies(handle.raw, source, target, None, 1)
        if code:
            doing = f"removing the edge from {first!r} to {then!r}"
            raise failure(handle.api, code, "cuGraphRemoveDependencies", doing)

    def clone(self) -> Graph:
        """Return a copy with nodes of its own, which changes independently.

        Raises:
            CudaError: the graph allocates memory, or has conditional nodes.
        """
        handle = self._handle
        needs = self._retain_needs()
        copy = GraphHandle(handle.context)
        code = copy.make(handle.api.cuGraphClone, handle.raw)
        if code:
            raise failure(handle.api, code, "cuGraphClone", f"copying {self!r}")
        graph = Graph._over(self.context, copy, self._default_stream)
        objects = tuple(item for part in self._content.parts() for item in part.retained)
        graph._content.captured.append(NodeNeeds(needs.memory, objects))
        graph._touch()
        return graph

    def write_dot(
        self,
        path: str | os.PathLike[str],
        *,
        verbose: bool = False,
        details: DotDetail = _NO_DETAIL,
    ) -> None:
        """Write the graph to a file, in the language of Graphviz.

        Args:
            path: the file, which is replaced.
            verbose: True to write all that the driver knows about each node.
            details: what to write about each node instead; members of `DotDetail`, joined by ``|``.
        """
        file = border.path("Graph.write_dot: path", path)
        handle = self._handle
        chosen = border.instance_of("Graph.write_dot: details", details, DotDetail)
        flags = int(chosen) | (_VERBOSE if verbose else 0)
        (code,) = handle.api.cuGraphDebugDotPrint(handle.raw, os.fsencode(file), flags)
        if code:
            doing = f"writing {self!r} to {border.shown_text(file)}"
            raise failure(handle.api, code, "cuGraphDebugDotPrint", doing)

    def _add(self, work: NodeWork, after: After) -> CUgraphNode:
        """Add a node; its needs are stored before the driver has it."""
        dependencies = handles_of("Graph: after", self, after)
        graph, nodes = self._handle, self._content.nodes
        if any(work.needs):
            nodes[work] = work.needs
        add = graph.api.cuGraphAddNode
        code, handle = graph.context.call(
            add, graph.raw, dependencies, None, len(dependencies), work.params
        )
        if code:
            nodes.pop(work, None)
            raise failure(graph.api, code, "cuGraphAddNode", f"adding a node to {self!r}")
        if any(work.needs):
            nodes[int(handle)] = nodes.pop(work)
            self._touch()
        return handle

    def _add_conditional(
        self, condition: GraphCondition, kind: _ConditionalType, count: int, after: After
    ) -> ConditionalNode:
        border.instance_of("Graph: condition", condition, GraphCondition)
        params = of_type(_Type.CU_GRAPH_NODE_TYPE_CONDITIONAL)
        conditional = params.conditional
        conditional.handle, conditional.type = condition.handle, kind
        conditional.size, conditional.ctx = count, self._handle.context.raw
        handle = self._add(NodeWork(params), after)
        bodies = tuple(self._body(int(raw)) for raw in params.conditional.phGraph_out)
        self._content.bodies[int(handle)] = tuple(body._content for body in bodies)
        return ConditionalNode(self, handle, bodies)

    def _body(self, raw: int) -> Graph:
        handle = GraphHandle(self._handle.context, CUgraph(raw))
        handle.of = self._handle
        body = Graph._unfilled(self.context, self._default_stream)
        body._handle, body._is_filled, body._root = handle, True, self._root or self
        self._adopt(body)
        return body

    def _ends(
        self, first: GraphNode, then: GraphNode
    ) -> tuple[list[CUgraphNode], list[CUgraphNode]]:
        return handles_of("Graph: first", self, first), handles_of("Graph: then", self, then)


class ConditionalNode(GraphNode):
    """A node that runs one of its bodies, once or repeatedly, as its condition selects.

    A body is a graph of kernels, copies, fills, empty nodes, child graphs and conditional nodes.
    Add nodes to it as to any graph, or record into it by ``stream.capture(into=node.body)``.

    Attributes:
        bodies: of an if, for true and for false; of a switch, by number.
        body: the first one.
    """

    __slots__ = ("_bodies",)

    bodies: ReadOnly[tuple[Graph, ...]] = ReadOnly("_bodies")

    def __init__(self, graph: BaseGraph, handle: CUgraphNode, bodies: tuple[Graph, ...]) -> None:
        super().__init__(graph, handle)
        self._bodies: tuple[Graph, ...] = bodies

    @property
    def body(self) -> Graph:
        """The first body."""
        return self._bodies[0]

    def remove(self) -> None:
        """Remove the node from its graph, with its edges and bodies."""
        super().remove()
        for body in self._bodies:
            body.close()
