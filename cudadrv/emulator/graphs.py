"""Graphs and their executables: operations with their parameters, replayed in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .emulated_device import GraphMemory
    from .user_objects import References

# The nodes after which a stream's next operation comes.
Tip = frozenset[int]


class NodeKind(Enum):
    """What a node of a graph does."""

    KERNEL = "kernel"
    COPY = "memcpy"
    SET = "memset"
    WAIT = "event wait"
    ALLOC = "memory allocation"
    FREE = "memory free"
    HOST = "host function"


@dataclass(frozen=True, slots=True)
class Node:
    """An operation with all it needs; `run` may raise `Refusal`. `memory` of ALLOC and FREE."""

    kind: NodeKind
    run: Callable[[], None]
    after: Tip
    memory: GraphMemory | None = None


def _allocations(nodes: tuple[Node, ...]) -> tuple[GraphMemory, ...]:
    return tuple(
        node.memory for node in nodes if node.kind is NodeKind.ALLOC and node.memory is not None
    )


@dataclass(eq=False, slots=True)
class Graph:
    """What a capture recorded.

    Attributes:
        node_handles: of the nodes, made when they are first asked for.
        executables: how many of it exist; with allocations there can be only one.
        user_objects: the references that it has.
    """

    handle: int
    nodes: tuple[Node, ...]
    node_handles: list[int] = field(default_factory=list)
    executables: int = 0
    user_objects: References = field(default_factory=dict)

    @property
    def memory(self) -> tuple[GraphMemory, ...]:
        """The memory that its allocation nodes allocate."""
        return _allocations(self.nodes)

    def close(self) -> None:
        """Let go of its memory; it takes the device's lock."""
        for memory in self.memory:
            memory.release()


@dataclass(eq=False, slots=True)
class Executable:
    """An instantiated graph, independent of the graph's further life.

    Attributes:
        user_objects: the references that it has, as many as the graph had.
    """

    handle: int
    graph: Graph
    frees_on_launch: bool
    user_objects: References

    def why_not(self, graph: Graph) -> str:
        """Why a graph cannot take this one's place, in words; "" if it can."""
        own, other = self.graph.nodes, graph.nodes
        if len(own) != len(other):
            return f"the executable has {len(own)} nodes, the graph {len(other)}"
        for number, (former, new) in enumerate(zip(own, other, strict=True)):
            if former.kind is not new.kind:
                return f"node {number} is a {former.kind.value}, in the graph a {new.kind.value}"
            if former.after != new.after:
                return f"node {number} depends on other nodes in the graph"
            if former.memory is not None:
                return f"node {number} is a {former.kind.value}, which cannot be updated"
        return ""

    def update(self, graph: Graph) -> None:
        """Run the nodes of this graph from now on; the emulator's lock is held."""
        self.graph.executables -= 1
        self.graph = graph
        graph.executables += 1

    def launch(self) -> None:
        """Run the nodes in the order of their capture, which respects what each depends on.

        Raises:
            Refusal: an operation failed; those before it are done.
        """
        memory = self.graph.memory
        for allocation in memory:
            if allocation.live and self.frees_on_launch:
                allocation.free()
        for allocation in memory:
            allocation.refuse_if_live()
        for node in self.graph.nodes:
            node.run()

    def close(self) -> None:
        """Let go of its memory; it takes the device's lock."""
        for memory in self.graph.memory:
            memory.release()
