"""`GraphNode`: one operation of a graph, without the work of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final, TypeAlias

from ptx.read_only import ReadOnly

from .. import border
from ..driver._api import CUgraphNode, CUgraphNodeType as _Type, CUresult
from ..driver.driver_selection import failure
from ..driver.handle import NotCopyable
from ..errors import ArgumentTypeError
from .base_graph import BaseGraph
from .needs import NodeNeeds


class NodeKind(Enum):
    """The operation of a graph's node."""

    KERNEL = "kernel"
    COPY = "copy"
    FILL = "fill"
    HOST = "host function"
    GRAPH = "child graph"
    EMPTY = "empty"
    WAIT = "event wait"
    RECORD = "event record"
    ALLOC = "allocation"
    FREE = "free"
    CONDITIONAL = "conditional"
    OTHER = "other"


_KINDS: Final = {
    int(_Type.CU_GRAPH_NODE_TYPE_KERNEL): NodeKind.KERNEL,
    int(_Type.CU_GRAPH_NODE_TYPE_MEMCPY): NodeKind.COPY,
    int(_Type.CU_GRAPH_NODE_TYPE_MEMSET): NodeKind.FILL,
    int(_Type.CU_GRAPH_NODE_TYPE_HOST): NodeKind.HOST,
    int(_Type.CU_GRAPH_NODE_TYPE_GRAPH): NodeKind.GRAPH,
    int(_Type.CU_GRAPH_NODE_TYPE_EMPTY): NodeKind.EMPTY,
    int(_Type.CU_GRAPH_NODE_TYPE_WAIT_EVENT): NodeKind.WAIT,
    int(_Type.CU_GRAPH_NODE_TYPE_EVENT_RECORD): NodeKind.RECORD,
    int(_Type.CU_GRAPH_NODE_TYPE_MEM_ALLOC): NodeKind.ALLOC,
    int(_Type.CU_GRAPH_NODE_TYPE_MEM_FREE): NodeKind.FREE,
    int(_Type.CU_GRAPH_NODE_TYPE_CONDITIONAL): NodeKind.CONDITIONAL,
}


class GraphNode(NotCopyable):
    """A node of a graph; `Graph.add_...` makes one, and `Graph.nodes` lists them.

    Two objects are equal if they refer to the same node of one graph.

    Attributes:
        graph: the graph.
        handle: the CUgraphNode.
    """

    __slots__ = ("_graph", "_raw")

    graph: ReadOnly[BaseGraph] = ReadOnly("_graph")

    def __init__(self, graph: BaseGraph, handle: CUgraphNode) -> None:
        self._graph: BaseGraph = graph
        self._raw: CUgraphNode | None = handle

    def __repr__(self) -> str:
        if self._raw is None:
            return f"<{type(self).__name__} removed>"
        return f"<{type(self).__name__} {int(self._raw):#x} of {self._graph!r}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GraphNode) or self._raw is None or other._raw is None:
            return self is other
        return self._graph is other.graph and int(self._raw) == int(other._raw)

    def __hash__(self) -> int:
        return hash(id(self._graph))

    @property
    def handle(self) -> CUgraphNode:
        """The CUgraphNode.

        Raises:
            ClosedError: the node was removed, or its graph closed.
        """
        self._graph.handle  # noqa: B018  # raises once it is closed
        if self._raw is None:
            raise self._graph._closed_error()
        return self._raw

    @property
    def kind(self) -> NodeKind:
        """The operation; queries the driver."""
        api = self._graph._handle.api
        code, kind = api.cuGraphNodeGetType(self.handle)
        if code:
            raise failure(api, code, "cuGraphNodeGetType", f"querying {self!r}")
        return _KINDS.get(int(kind), NodeKind.OTHER)

    def remove(self) -> None:
        """Remove the node from its graph, with its edges; executables stay as they are.

        Raises:
            CudaError: the driver rejects it, as for allocations and frees.
        """
        graph, handle = self._graph, self.handle
        api, content = graph._handle.api, graph._content
        (code,) = api.cuGraphDestroyNode(handle)
        if code:
            raise failure(api, code, "cuGraphDestroyNode", f"removing {self!r}")
        self._raw = None
        content.bodies.pop(int(handle), None)
        if content.nodes.pop(int(handle), None) is not None:
            graph._touch()

    def _change(self, needs: NodeNeeds, change: Callable[[CUgraphNode], tuple[CUresult]]) -> None:
        """Replace the node's work, for everything that is made of the graph from now on."""
        graph, handle = self._graph, self.handle
        (code,) = change(handle)
        if code:
            doing = f"changing {self!r}"
            raise failure(graph._handle.api, code, "cuGraphNodeSetParams", doing)
        graph._content.nodes[int(handle)] = needs
        graph._touch()


After: TypeAlias = GraphNode | Iterable[GraphNode]
"""A node or several nodes that a new one runs after."""


def handles_of(where: str, graph: BaseGraph, after: After) -> list[CUgraphNode]:
    """Return the handles of nodes of a graph, each once."""
    if isinstance(after, GraphNode):
        after = (after,)
    nodes = dict.fromkeys(border.sequence_of(where, after, GraphNode))
    for node in nodes:
        if node.graph is not graph:
            raise ArgumentTypeError(f"{where}: {node!r} belongs to another graph than {graph!r}")
    return [node.handle for node in nodes]
