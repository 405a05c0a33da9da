"""Executable graphs: what was instantiated, replayed in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .node_kind import NodeKind, Run
from .refusal import invalid_value
from .steps import Step, all_steps, difference, steps_of, take_over

if TYPE_CHECKING:
    from .graph_memory import GraphMemory
    from .graphs import Graph, Node
    from .timeline.moment import Line
    from .timeline.operation import Operation
    from .user_objects import References


@dataclass(eq=False, slots=True)
class Executable:
    """An instantiated graph, independent of the graph's further life.

    Attributes:
        steps: its nodes, ready to run.
        user_objects: the references that it has, as many as the graph had.
        last: the end of its last launch, which the next one waits for.
        clock, lines: the same for the logical time, and the chains of its nodes.
    """

    handle: int
    graph: Graph
    frees_on_launch: bool
    user_objects: References
    steps: tuple[Step, ...] = ()
    last: Operation | None = None
    clock: dict[int, int] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)

    def why_not(self, graph: Graph) -> str:
        """Why a graph cannot take this one's place, in words; "" if it can."""
        return difference(self.steps, steps_of(graph))

    def update(self, graph: Graph) -> None:
        """Do what the nodes of this graph do from now on; the emulator's lock is held."""
        self.graph.executables -= 1
        self.graph = graph
        graph.executables += 1
        take_over(self.steps, steps_of(graph))

    def step_of(self, node: Node) -> Step:
        """What a node of the graph became that it was made of.

        Raises:
            Refusal: CUDA_ERROR_INVALID_VALUE, if it has no such node.
        """
        for step in all_steps(self.steps):
            if step.node is node:
                return step
        raise invalid_value("the executable was made of a graph without this node")

    @property
    def memory(self) -> tuple[GraphMemory, ...]:
        """The memory that its allocation nodes allocate."""
        return tuple(
            step.work.memory
            for step in self.steps
            if step.kind is NodeKind.ALLOC and step.work.memory is not None
        )

    def begin(self) -> None:
        """A launch begins: conditions have their first values."""
        for step in all_steps(self.steps):
            if step.work.condition is not None:
                step.work.condition.begin()

    def launch(self, runs: Sequence[Run]) -> None:
        """Run its steps, or what is to run in their place.

        Raises:
            Refusal: an operation failed; those before it are done.
        """
        self.prepare()
        self.begin()
        for run in runs:
            run()

    def prepare(self) -> None:
        """What a launch does with the memory of the one before.

        Raises:
            Refusal: CUDA_ERROR_INVALID_VALUE, if that was not freed and must be.
        """
        memory = self.memory
        for allocation in memory:
            if allocation.live and self.frees_on_launch:
                allocation.free()
        for allocation in memory:
            allocation.refuse_if_live()

    def close(self) -> None:
        """Let go of its memory; it takes the device's lock."""
        for memory in self.memory:
            memory.release()
