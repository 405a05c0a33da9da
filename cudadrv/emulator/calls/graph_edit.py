"""Graphs that are built: made, changed, copied, shown and uploaded.

CUDA Driver API: "Graph Management".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...driver._api import (
    CUgraph,
    CUgraphEdgeData,
    CUgraphExec,
    CUgraphNode,
    CUgraphNodeType,
    CUresult,
    CUstream,
)
from ..graphs import Graph, Node
from ..node_kind import NodeKind
from ..refusal import OK, SUCCESS, Refusal, invalid_value
from .call import call
from .graph_node import TYPES, GraphNodeCalls

_SWITCHED: Final = frozenset({NodeKind.KERNEL, NodeKind.COPY, NodeKind.SET})


class GraphEditCalls(GraphNodeCalls):
    """Graphs that are built."""

    @call(1)
    def cuGraphCreate(self, flags: int, /) -> tuple[CUresult, CUgraph]:
        """An empty graph."""
        if flags:
            raise invalid_value(f"a graph is made with flags 0, not {flags:#x}")
        return SUCCESS, self._known(Graph())

    @call(1)
    def cuGraphClone(self, original_graph: CUgraph, /) -> tuple[CUresult, CUgraph]:
        """A copy of a graph, with copies of its child graphs."""
        return SUCCESS, self._known(self._copied(self._graph(original_graph)))

    def _known(self, graph: Graph) -> CUgraph:
        graph.handle = next(self._handles)
        self._graphs[graph.handle] = graph
        return CUgraph(graph.handle)

    @call()
    def cuGraphDestroyNode(self, h_node: CUgraphNode, /) -> tuple[CUresult]:
        """Take a node away, with its edges."""
        node = self._node(h_node)
        if node.kind in (NodeKind.ALLOC, NodeKind.FREE):
            raise Refusal(
                CUresult.CUDA_ERROR_NOT_SUPPORTED, f"a {node.kind.value} stays in its graph"
            )
        with self._lock:
            node.graph.remove(node)
            del self._nodes[node.handle]
            parts = [each for each in (node.work.child, *node.work.bodies) if each is not None]
            references = [part.references() for part in parts]
            for part in parts:
                self._forget(part)
        for each in references:
            self._release(each)
        return OK

    @call()
    def cuGraphAddDependencies(
        self,
        h_graph: CUgraph,
        from_: Sequence[CUgraphNode] | None,
        to: Sequence[CUgraphNode] | None,
        edge_data: Sequence[CUgraphEdgeData] | None,
        num_dependencies: int,
        /,
    ) -> tuple[CUresult]:
        """Let nodes come after others; no edge twice. Instantiation refuses a circle."""
        graph = self._graph(h_graph)
        with self._lock:
            for number in range(num_dependencies):
                first, then = self._ends(graph, from_, to, number)
                if first in then.after or first is then:
                    raise invalid_value("the edge is there already, or of a node to itself")
                then.after[first] = None
        return OK

    @call()
    def cuGraphRemoveDependencies(
        self,
        h_graph: CUgraph,
        from_: Sequence[CUgraphNode] | None,
        to: Sequence[CUgraphNode] | None,
        edge_data: Sequence[CUgraphEdgeData] | None,
        num_dependencies: int,
        /,
    ) -> tuple[CUresult]:
        """Let nodes come after others no more."""
        graph = self._graph(h_graph)
        with self._lock:
            for number in range(num_dependencies):
                first, then = self._ends(graph, from_, to, number)
                if first not in then.after:
                    raise invalid_value("there is no such edge")
                del then.after[first]
        return OK

    def _ends(
        self,
        graph: Graph,
        from_: Sequence[CUgraphNode] | None,
        to: Sequence[CUgraphNode] | None,
        number: int,
    ) -> tuple[Node, Node]:
        if from_ is None or to is None or number >= min(len(from_), len(to)):
            raise invalid_value("fewer edges are given than their number says")
        (first,) = self._several(graph, from_[number : number + 1], 1)
        (then,) = self._several(graph, to[number : number + 1], 1)
        return first, then

    @call(4)
    def cuGraphGetEdges(
        self, h_graph: CUgraph, num_edges: int = 0, /
    ) -> tuple[
        CUresult,
        list[CUgraphNode] | None,
        list[CUgraphNode] | None,
        list[CUgraphEdgeData] | None,
        int,
    ]:
        """Up to `num_edges` edges, and how many; for 0, only how many."""
        graph = self._graph(h_graph)
        edges = [(first, then) for then in graph.nodes for first in then.after]
        if num_edges <= 0:
            return SUCCESS, [], [], [], len(edges)
        edges = edges[:num_edges]
        return (
            SUCCESS,
            [self._handle_of(first) for first, _ in edges],
            [self._handle_of(then) for _, then in edges],
            [CUgraphEdgeData() for _ in edges],
            len(edges),
        )

    @call(1)
    def cuGraphNodeGetType(self, h_node: CUgraphNode, /) -> tuple[CUresult, CUgraphNodeType]:
        """What a node does."""
        return SUCCESS, TYPES[self._node(h_node).kind]

    @call()
    def cuGraphUpload(self, h_graph_exec: CUgraphExec, h_stream: CUstream, /) -> tuple[CUresult]:
        """Nothing has to be brought to an emulated device before a launch."""
        self._executable(h_graph_exec)
        stream = self._stream(h_stream)
        if self._captures:
            self._refuse_if_implicit(stream)
            self._refuse_in_capture(stream)
        return OK

    @call()
    def cuGraphDebugDotPrint(self, h_graph: CUgraph, path: bytes, flags: int, /) -> tuple[CUresult]:
        """Write the graph in the language of Graphviz."""
        graph = self._graph(h_graph)
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"digraph graph_{graph.handle:#x} {{\n{_dot(graph, '')}}}\n")
        except OSError as error:
            raise Refusal(
                CUresult.CUDA_ERROR_OPERATING_SYSTEM, f"writing {path!r}: {error}"
            ) from error
        return OK

    @call()
    def cuGraphNodeSetEnabled(
        self, h_graph_exec: CUgraphExec, h_node: CUgraphNode, is_enabled: int, /
    ) -> tuple[CUresult]:
        """Let a kernel, copy or fill of an executable do nothing, or what it does, from now on."""
        step = self._executable(h_graph_exec).step_of(self._node(h_node))
        if step.kind not in _SWITCHED:
            raise invalid_value(f"a {step.kind.value} is not switched off")
        step.is_enabled = bool(is_enabled)
        return OK

    @call(1)
    def cuGraphNodeGetEnabled(
        self, h_graph_exec: CUgraphExec, h_node: CUgraphNode, /
    ) -> tuple[CUresult, int]:
        """Whether a node of an executable does something."""
        step = self._executable(h_graph_exec).step_of(self._node(h_node))
        return SUCCESS, int(step.is_enabled)


def _dot(graph: Graph, prefix: str) -> str:
    """The nodes and edges of a graph, those of graphs in it among them."""
    lines = []
    names = {node: f"{prefix}{number}" for number, node in enumerate(graph.nodes)}
    for node, name in names.items():
        launch = node.work.launch
        what = node.kind.value if launch is None else launch.function.name
        lines.append(f'  "{name}" [label="{what}"];\n')
        lines += [f'  "{names[first]}" -> "{name}";\n' for first in node.after]
        for part in (node.work.child, *node.work.bodies):
            if part is not None:
                inner = f"{name}_{len(lines)}_"
                lines.append(f'  subgraph "cluster_{inner}" {{\n{_dot(part, inner)}  }}\n')
    return "".join(lines)
