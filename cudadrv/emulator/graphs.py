"""Graphs: operations with their parameters, and what each comes after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from .timeline.patterns import FREED, FRESH

if TYPE_CHECKING:
    from ptx.emulate.exec.order.ordered_launch import Turns

    from .graph_memory import GraphMemory
    from .host_memory import HostRange
    from .user_objects import References

# The nodes after which a stream's next operation comes.
Tip = frozenset[int]
Run = Callable[[], "Turns | None"]
"""What an operation does: at once, or turn by turn where it gives the turns."""


class NodeKind(Enum):
    """What a node of a graph does."""

    KERNEL = "kernel"
    COPY = "memcpy"
    SET = "memset"
    WAIT = "event wait"
    ALLOC = "memory allocation"
    FREE = "memory free"
    HOST = "host function"
    # No nodes: what the queues of streams have beside them.
    RECORD = "event record"
    LAUNCH = "graph launch"


@dataclass(frozen=True, slots=True)
class Node:
    """An operation with all it needs; `run` may raise `Refusal`.

    Attributes:
        memory: of ALLOC and FREE.
        host: the host memory that it reads and writes, as far as that is known.
    """

    kind: NodeKind
    run: Run
    after: Tip
    memory: GraphMemory | None = None
    host: tuple[HostRange, ...] = ()

    def run_later(self) -> Turns | None:
        """Run after the launch's call, which has kept the accounts of the graph's memory."""
        if self.memory is None:
            return self.run()
        self.memory.fill(FRESH if self.kind is NodeKind.ALLOC else FREED)
        return None


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
