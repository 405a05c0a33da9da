"""Executable graphs: what was instantiated, replayed in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .graphs import Graph, Run
    from .timeline.moment import Line
    from .timeline.operation import Operation
    from .user_objects import References


@dataclass(eq=False, slots=True)
class Executable:
    """An instantiated graph, independent of the graph's further life.

    Attributes:
        user_objects: the references that it has, as many as the graph had.
        last: the end of its last launch, which the next one waits for.
        clock, lines: the same for the logical time, and the chains of its nodes.
    """

    handle: int
    graph: Graph
    frees_on_launch: bool
    user_objects: References
    last: Operation | None = None
    clock: dict[int, int] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)

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

    def launch(self, runs: Sequence[Run] | None = None) -> None:
        """Run the nodes in the order of their capture, which respects what each depends on.

        `runs` is what is to run in their place.

        Raises:
            Refusal: an operation failed; those before it are done.
        """
        self.prepare()
        for node in self.graph.nodes if runs is None else ():
            node.run()
        for run in runs or ():
            run()

    def prepare(self) -> None:
        """What a launch does with the memory of the one before.

        Raises:
            Refusal: CUDA_ERROR_INVALID_VALUE, if that was not freed and must be.
        """
        memory = self.graph.memory
        for allocation in memory:
            if allocation.live and self.frees_on_launch:
                allocation.free()
        for allocation in memory:
            allocation.refuse_if_live()

    def close(self) -> None:
        """Let go of its memory; it takes the device's lock."""
        for memory in self.graph.memory:
            memory.release()
