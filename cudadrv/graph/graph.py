"""Graphs: work captured or built once, and replayed at the cost of one call."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, Self

from .. import border
from ..driver._api import (
    CUgraph,
    CUgraphConditionalNodeType as _ConditionalType,
    CUgraphNode,
    CUgraphNodeType as _Type,
)
from ..driver.context import ContextCore
from ..driver.in_use import failure
from ..driver.stream_core import StreamCore
from .building import GraphBuilding
from .condition import GraphCondition
from .executable import GraphExec
from .graph_box import GraphBox
from .graph_core import GraphCore
from .needs import Content, NodeNeeds
from .node import After, GraphNode, handles_of
from .node_params import NodeWork, of_type
from .nodes import CopyNode, EventNode, FillNode, HostNode, KernelNode

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


class Graph(GraphBuilding):
    """What a stream was given during a capture, or nodes that were added one by one.

    `Context.new_graph` makes an empty one, and `Stream.capture` one that is recorded. `instantiate`
    makes it ready to run. The graph keeps what its nodes use, device arrays among it, until the
    last replay is done. Nodes that are added come after those that they name, and after no others:
    what memory they share makes no order. Arrays that were made in a capture, or by `add_alloc`,
    have their memory from each replay to the next.

    Attributes:
        context: the context in which its nodes run.
        handle: the CUgraph; reading it after `close` raises `ClosedError`.
        closed: whether it was closed.
        allocates: whether it allocates memory that it leaves to its user.
        node_count: how many nodes it has; asks the driver.
    """

    __slots__ = ()

    @classmethod
    def _made(cls, context: ContextCore, default_stream: Callable[[], StreamCore]) -> Self:
        """An empty graph."""
        box = GraphBox(context._box)
        code = box.make(context._api.cuGraphCreate, 0)
        if code:
            raise failure(context._api, code, "cuGraphCreate", f"making a graph on {context!r}")
        return cls._over(context, box, default_stream)

    @classmethod
    def _over(
        cls, context: ContextCore, box: GraphBox, default_stream: Callable[[], StreamCore]
    ) -> Self:
        """A graph of the driver that nobody else has."""
        self = cls._unfilled(context, default_stream)
        self._fill(box)
        return self

    @classmethod
    def _unfilled(cls, context: ContextCore, default_stream: Callable[[], StreamCore]) -> Self:
        """A graph that a capture is to give."""
        self = cls(context)
        self._default_stream = default_stream
        return self

    def _take(self, added: Content, box: GraphBox | None) -> None:
        """Take over what was captured, and the graph itself where a capture made it."""
        own = self._content
        own.captured += added.captured
        own.born += added.born
        self._touch()
        if box is not None:
            self._box = box
            try:
                self._settle()
            finally:
                self._shut()
            self._fill(box)

    def instantiate(self) -> GraphExec:
        """Make the graph ready to be launched, any number of times."""
        return GraphExec(self)

    @property
    def nodes(self) -> list[GraphNode]:
        """The nodes; asks the driver."""
        box, count = self._box, self.node_count
        code, handles, _ = box.api.cuGraphGetNodes(box.raw, count)
        if code:
            raise failure(box.api, code, "cuGraphGetNodes", f"the nodes of {self!r}")
        return [self._node(handle) for handle in handles or ()]

    @property
    def edges(self) -> list[tuple[GraphNode, GraphNode]]:
        """Pairs of nodes, of which the second comes after the first; asks the driver."""
        box = self._box
        code, *_, count = box.api.cuGraphGetEdges(box.raw, 0)
        if not code:
            code, first, then, *_ = box.api.cuGraphGetEdges(box.raw, count)
        if code:
            raise failure(box.api, code, "cuGraphGetEdges", f"the edges of {self!r}")
        pairs = zip(first or (), then or (), strict=True)
        return [(self._node(one), self._node(other)) for one, other in pairs]

    def _node(self, handle: CUgraphNode) -> GraphNode:
        handle = CUgraphNode(int(handle))
        code, kind = self._box.api.cuGraphNodeGetType(handle)
        if code:
            raise failure(self._box.api, code, "cuGraphNodeGetType", f"a node of {self!r}")
        return _NODE_CLASSES.get(int(kind), GraphNode)(self, handle)

    def new_condition(self, default: int | None = None) -> GraphCondition:
        """A condition for one conditional node of this graph.

        Args:
            default: what it is at the begin of each replay; without one it stays as it was.
        """
        number = 0
        if default is not None:
            number = border.whole("Graph.new_condition: default", default, most=_MOST_DEFAULT)
        flags = 0 if default is None else _ASSIGN_DEFAULT
        box = self._box
        make = box.api.cuGraphConditionalHandleCreate
        code, handle = box.context.call(make, box.raw, box.context.raw, number, flags)
        if code:
            doing = f"making a condition for {self!r}"
            raise failure(box.api, code, "cuGraphConditionalHandleCreate", doing)
        return GraphCondition(self, handle)

    def add_if(
        self, condition: GraphCondition, *, otherwise: bool = False, after: After = ()
    ) -> ConditionalNode:
        """Run the node's body where the condition is not 0; else its second one, if `otherwise`."""
        kind = _ConditionalType.CU_GRAPH_COND_TYPE_IF
        return self._add_conditional(condition, kind, 1 + bool(otherwise), after)

    def add_while(self, condition: GraphCondition, *, after: After = ()) -> ConditionalNode:
        """Run the node's body again and again, until the condition is 0."""
        return self._add_conditional(condition, _ConditionalType.CU_GRAPH_COND_TYPE_WHILE, 1, after)

    def add_switch(
        self, condition: GraphCondition, count: int, *, after: After = ()
    ) -> ConditionalNode:
        """Run the body whose number the condition is, of `count`; none where it is larger.

        CUDA names no limit, and each body is a graph of its own: 65,536 are the most here.
        """
        count = border.whole("Graph.add_switch: count", count, least=1, most=_MOST_BODIES)
        kind = _ConditionalType.CU_GRAPH_COND_TYPE_SWITCH
        return self._add_conditional(condition, kind, count, after)

    def add_edge(self, first: GraphNode, then: GraphNode) -> None:
        """Let a node come after another.

        Raises:
            InvalidValueError: it does already. A circle `instantiate` refuses.
        """
        one, other = self._ends(first, then)
        box = self._box
        (code,) = box.api.cuGraphAddDependencies(box.raw, one, other, None, 1)
        if code:
            doing = f"letting {then!r} come after {first!r}"
            raise failure(box.api, code, "cuGraphAddDependencies", doing)

    def remove_edge(self, first: GraphNode, then: GraphNode) -> None:
        """Let a node come after another no more.

        Raises:
            InvalidValueError: there is no such edge.
        """
        one, other = self._ends(first, then)
        box = self._box
        (code,) = box.api.cuGraphRemoveDependencies(box.raw, one, other, None, 1)
        if code:
            doing = f"letting {then!r} come after {first!r} no more"
            raise failure(box.api, code, "cuGraphRemoveDependencies", doing)

    def clone(self) -> Graph:
        """A copy, which may be changed apart; its nodes are others.

        Raises:
            CudaError: the graph allocates memory, or has conditional nodes.
        """
        box = self._box
        needs = self._settle()
        copy = GraphBox(box.context)
        code = copy.make(box.api.cuGraphClone, box.raw)
        if code:
            raise failure(box.api, code, "cuGraphClone", f"copying {self!r}")
        made = Graph._over(self.context, copy, self._default_stream)
        kept = tuple(each for part in self._content.parts() for each in part.kept)
        made._content.captured.append(NodeNeeds(needs.memory, kept))
        made._touch()
        return made

    def write_dot(self, path: str | os.PathLike[str], *, verbose: bool = False) -> None:
        """Write the graph to a file, in the language of Graphviz.

        Args:
            path: the file, which is written anew.
            verbose: whether to say all that the driver knows of each node.
        """
        file = border.path("Graph.write_dot: path", path)
        box = self._box
        flags = _VERBOSE if verbose else 0
        (code,) = box.api.cuGraphDebugDotPrint(box.raw, os.fsencode(file), flags)
        if code:
            raise failure(box.api, code, "cuGraphDebugDotPrint", f"writing {self!r} to {file}")

    def _add_conditional(
        self, condition: GraphCondition, kind: _ConditionalType, count: int, after: After
    ) -> ConditionalNode:
        border.instance("Graph: condition", condition, GraphCondition)
        params = of_type(_Type.CU_GRAPH_NODE_TYPE_CONDITIONAL)
        conditional = params.conditional
        conditional.handle, conditional.type = condition.handle, kind
        conditional.size, conditional.ctx = count, self._box.context.raw
        handle = self._add(NodeWork(params), after)
        bodies = tuple(self._body(int(raw)) for raw in params.conditional.phGraph_out)
        self._content.bodies[int(handle)] = tuple(body._content for body in bodies)
        return ConditionalNode(self, handle, bodies)

    def _body(self, raw: int) -> Graph:
        box = GraphBox(self._box.context, CUgraph(raw))
        box.of = self._box
        body = Graph._unfilled(self.context, self._default_stream)
        body._box, body._is_filled, body._root = box, True, self._root or self
        self._adopt(body)
        return body

    def _ends(
        self, first: GraphNode, then: GraphNode
    ) -> tuple[list[CUgraphNode], list[CUgraphNode]]:
        return handles_of("Graph: first", self, first), handles_of("Graph: then", self, then)


class ConditionalNode(GraphNode):
    """A node that runs one of its bodies, or the one again and again, as its condition says.

    A body is a graph of kernels, copies, fills, empty nodes, child graphs and conditional nodes.
    It is filled as any graph is; ``stream.capture(into=node.body)`` records into it.

    Attributes:
        bodies: of an if, where it holds and where it does not; of a switch, by number.
        body: the first one.
    """

    __slots__ = ("bodies",)

    def __init__(self, graph: GraphCore, handle: CUgraphNode, bodies: tuple[Graph, ...]) -> None:
        super().__init__(graph, handle)
        self.bodies: tuple[Graph, ...] = bodies

    @property
    def body(self) -> Graph:
        """The first body."""
        return self.bodies[0]

    def remove(self) -> None:
        """Take the node out of its graph, with its edges and bodies."""
        super().remove()
        for body in self.bodies:
            body.close()
