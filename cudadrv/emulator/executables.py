"""Executable graphs: instantiated graphs, replayed in order.

The steps are the nodes in an executable order, with those of child graphs among them. So each step
waits only for its own dependencies. A conditional node is one step, which runs the steps of its
bodies one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from ..driver._api import CUgraphExecUpdateResult
from .call_error import invalid_value
from .graphs import Graph, Node, References, Work, next_number
from .memory_patterns import FREED, FRESH
from .node_kind import NodeKind, Run
from .timeline.queues import QueuedOperation, nothing

if TYPE_CHECKING:
    from .device_state import GraphAllocation
    from .timeline.timestamp import Track


@dataclass(eq=False, repr=False, slots=True)
class ExecutableStep:
    """A node that can run.

    Attributes:
        work: its work, which belongs to the executable and may be changed.
        after: numbers of the steps that it depends on.
        node: the node of the graph that it comes from.
        is_enabled: whether it has an effect.
        bodies: the bodies, of a conditional node.
    """

    work: Work
    after: frozenset[int]
    node: Node
    is_enabled: bool = True
    bodies: tuple[tuple[ExecutableStep, ...], ...] = ()

    @property
    def kind(self) -> NodeKind:
        """The kind of its work."""
        return self.work.kind

    def running(self, *, is_late: bool = False) -> Run:
        """Return its present function, unaffected by later changes; it may raise `CallError`.

        Args:
            is_late: whether it runs after the launch's call, which has counted the graph's memory.
        """
        work = self.work
        if not self.is_enabled:
            return nothing
        if is_late and work.memory is not None:
            return partial(work.memory.fill, FRESH if self.kind is NodeKind.ALLOC else FREED)
        if work.condition is not None:
            bodies = [[step.running() for step in body] for body in self.bodies]
            return partial(work.condition.run, [partial(_run, body) for body in bodies])
        return work.run


def _run(runs: Sequence[Run]) -> None:
    """Run one after the other, each to its end."""
    for run in runs:
        for _ in run() or ():
            pass


def steps_of(graph: Graph) -> tuple[ExecutableStep, ...]:
    """Return a graph's nodes as steps, with those of child graphs."""
    steps: list[ExecutableStep] = []
    _add(graph, frozenset(), steps)
    return tuple(steps)


def _add(graph: Graph, start: frozenset[int], steps: list[ExecutableStep]) -> frozenset[int]:
    """Add the steps of a graph that begins after `start`; return its last steps."""
    numbers: dict[Node, int] = {}
    for node in graph.ordered():
        dependencies = frozenset(numbers[dependency] for dependency in node.after) or start
        if node.work.child is not None:
            dependencies = _add(node.work.child, dependencies, steps) or dependencies
        bodies = tuple(steps_of(body) for body in node.work.bodies)
        numbers[node] = len(steps)
        steps.append(ExecutableStep(node.work, dependencies, node, bodies=bodies))
    inner = {dependency for node in graph.nodes for dependency in node.after}
    return frozenset(number for node, number in numbers.items() if node not in inner)


def all_steps(steps: Sequence[ExecutableStep]) -> Iterator[ExecutableStep]:
    """Yield these steps, and those in bodies."""
    for step in steps:
        yield step
        for body in step.bodies:
            yield from all_steps(body)


_TOPOLOGY: Final = CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
_TYPE: Final = CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED
_NOT_SUPPORTED: Final = CUgraphExecUpdateResult.CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED


class Difference(NamedTuple):
    """Why steps cannot replace others: the driver's result of the update, and words."""

    result: CUgraphExecUpdateResult
    text: str


def difference(
    former_steps: Sequence[ExecutableStep], new_steps: Sequence[ExecutableStep]
) -> Difference | None:
    """Return why steps cannot replace others; None if they can."""
    if len(former_steps) != len(new_steps):
        text = f"the executable has {len(former_steps)} nodes, the graph {len(new_steps)}"
        return Difference(_TOPOLOGY, text)
    for number, (former, new) in enumerate(zip(former_steps, new_steps, strict=True)):
        if former.kind is not new.kind:
            text = f"node {number} is a {former.kind.value}, in the graph a {new.kind.value}"
            return Difference(_TYPE, text)
        if former.after != new.after:
            return Difference(_TOPOLOGY, f"node {number} depends on other nodes in the graph")
        if former.work.memory is not None:
            text = f"node {number} is a {former.kind.value}, which cannot be updated"
            return Difference(_NOT_SUPPORTED, text)
        kinds = {step.work.condition and step.work.condition.kind for step in (former, new)}
        if len(former.bodies) != len(new.bodies) or len(kinds) > 1:
            text = f"node {number} is a conditional node of another kind or size"
            return Difference(_TOPOLOGY, text)
        for body, new_body in zip(former.bodies, new.bodies, strict=True):
            reason = difference(body, new_body)
            if reason is not None:
                return Difference(reason.result, f"in a body of node {number}, {reason.text}")
    return None


def take_over(former_steps: Sequence[ExecutableStep], new_steps: Sequence[ExecutableStep]) -> None:
    """Copy the work of other steps to matching ones."""
    for former, new in zip(former_steps, new_steps, strict=True):
        former.work = new.work
        for body, new_body in zip(former.bodies, new.bodies, strict=True):
            take_over(body, new_body)


@dataclass(eq=False, repr=False, slots=True)
class Executable:
    """An instantiated graph, independent of later changes of the graph.

    Attributes:
        steps: its nodes, ready to run.
        user_objects: its references, as many as the graph had.
        last: the end of its last launch, which the next one waits for.
        clock, tracks: the same in the logical time, and the chains of its nodes.
        number: the result of cuGraphExecGetId.
    """

    handle: int
    graph: Graph
    frees_on_launch: bool
    user_objects: References
    steps: tuple[ExecutableStep, ...] = ()
    last: QueuedOperation | None = None
    clock: dict[int, int] = field(default_factory=dict)
    tracks: list[Track] = field(default_factory=list)
    number: int = field(default_factory=next_number)

    def why_not(self, graph: Graph) -> Difference | None:
        """Return why a graph cannot replace this one; None if it can."""
        return difference(self.steps, steps_of(graph))

    def update(self, graph: Graph) -> None:
        """Replace the nodes' work by this graph's; the emulator's lock is held."""
        self.graph.executables -= 1
        self.graph = graph
        graph.executables += 1
        take_over(self.steps, steps_of(graph))

    def step_of(self, node: Node) -> ExecutableStep:
        """Return the step for a node of the graph.

        Raises:
            CallError: CUDA_ERROR_INVALID_VALUE, if it has no such node.
        """
        for step in all_steps(self.steps):
            if step.node is node:
                return step
        raise invalid_value("the executable was made of a graph without this node")

    @property
    def memory(self) -> tuple[GraphAllocation, ...]:
        """The memory that its allocation nodes allocate."""
        return tuple(
            step.work.memory
            for step in self.steps
            if step.kind is NodeKind.ALLOC and step.work.memory is not None
        )

    def begin(self) -> None:
        """Begin a launch: conditions get their initial values."""
        for step in all_steps(self.steps):
            if step.work.condition is not None:
                step.work.condition.begin()

    def launch(self, runs: Sequence[Run]) -> None:
        """Run its steps, or the given functions instead.

        Raises:
            CallError: an operation failed; those before it are done.
        """
        self.prepare()
        self.begin()
        for run in runs:
            run()

    def prepare(self) -> None:
        """Free the memory of the launch before, or reject the new one.

        Raises:
            CallError: CUDA_ERROR_INVALID_VALUE, if that memory must be freed and was not.
        """
        memory = self.memory
        for allocation in memory:
            if allocation.live and self.frees_on_launch:
                allocation.free()
        for allocation in memory:
            allocation.reject_if_live()

    def close(self) -> None:
        """Release its memory; this takes the device's lock."""
        for memory in self.memory:
            memory.release()
