"""Graphs: operations with their parameters, their dependencies, and their references.

CUDA Programming Guide, "Conditional Graph Nodes", "CUDA User Objects".
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakValueDictionary

from ptx.errors import PtxError

from ..driver._api import CUresult
from .call_error import CallError, invalid_value
from .node_kind import NodeKind, Run

if TYPE_CHECKING:
    from .device_state import GraphAllocation
    from .host_memory import HostRange
    from .launch import KernelCall, ShownParameters
_NUMBERS: Final = itertools.count(1)
# One run of a body costs the emulator at least as much as this many steps of a kernel.
_STEPS_OF_A_RUN: Final = 20


def next_number() -> int:
    """Return a number that no other graph or executable has."""
    return next(_NUMBERS)


class Work(NamedTuple):
    """The work of a node, with all it needs; `run` may raise `CallError`.

    Attributes:
        memory: the memory of ALLOC and FREE.
        host: the host memory that it reads and writes, as far as that is known.
        event: the event's handle of RECORD and WAIT.
        child: of CHILD, the node's own copy of the graph.
        condition: of CONDITIONAL, selects which of the graphs `bodies` runs, and how often.
        launch: the launch of KERNEL.
        native_params: of COPY, SET and HOST the driver's structure of its parameters, for queries.
    """

    kind: NodeKind
    run: Run
    memory: GraphAllocation | None = None
    host: tuple[HostRange, ...] = ()
    event: int = 0
    child: Graph | None = None
    condition: ConditionState | None = None
    bodies: tuple[Graph, ...] = ()
    launch: KernelCall | None = None
    native_params: bytes = b""


@dataclass(eq=False, repr=False, slots=True)
class Node:
    """A node of a graph.

    Attributes:
        number: its number within its graph.
        handle: 0 until it is requested.
        original: the node that it is a copy of.
        shown: the parameters of its kernel, once they were queried.
        after: its dependencies; a dict without values, as that keeps an order.
        device_handle: the handle for updates by kernels, 0 if they may not update it.
    """

    work: Work
    graph: Graph
    after: dict[Node, None]
    number: int = 0
    handle: int = 0
    device_handle: int = 0
    original: Node | None = None
    shown: ShownParameters | None = None

    @property
    def kind(self) -> NodeKind:
        """The kind of its work."""
        return self.work.kind

    @property
    def memory(self) -> GraphAllocation | None:
        """The memory of an allocation or a free."""
        return self.work.memory


# The nodes that a stream's next operation comes after.
Tip = frozenset[Node]


@dataclass(eq=False, repr=False, slots=True)
class Graph:
    """A graph that a capture recorded, or a program built.

    Attributes:
        handle: 0 if no caller has it: while it is captured, and for a node's copy.
        nodes: in the order of their creation.
        executables: how many of it exist; with allocations or conditions there can be only one.
        user_objects: its references.
        outer: the graph of the conditional node whose body it is.
        is_child: whether it is the graph of a child graph node.
        conditions: the conditions made for its nodes.
        number: the result of cuGraphGetId.
        made: how many nodes it has had.
    """

    handle: int = 0
    nodes: list[Node] = field(default_factory=list)
    executables: int = 0
    user_objects: References = field(default_factory=dict)
    outer: Graph | None = None
    is_child: bool = False
    conditions: list[ConditionState] = field(default_factory=list)
    number: int = field(default_factory=next_number)
    made: int = 0

    @property
    def is_body(self) -> bool:
        """Whether it is a body of a conditional node."""
        return self.outer is not None

    def knows(self, condition: ConditionState) -> bool:
        """Return whether a condition was made for it, or for a graph around it."""
        graph: Graph | None = self
        while graph is not None:
            if any(own is condition for own in graph.conditions):
                return True
            graph = graph.outer
        return False

    def add(self, work: Work, dependencies: Iterable[Node]) -> Node:
        """Add a node."""
        node = Node(work, self, dict.fromkeys(dependencies), number=self.made)
        self.made += 1
        self.nodes.append(node)
        return node

    def remove(self, node: Node) -> None:
        """Remove a node, with its edges."""
        self.nodes.remove(node)
        for dependent in self.nodes:
            dependent.after.pop(node, None)

    def ordered(self) -> list[Node]:
        """Return the nodes, each after its dependencies, and otherwise in their order.

        Raises:
            CallError: CUDA_ERROR_INVALID_VALUE, if some wait for each other.
        """
        indices = {node: index for index, node in enumerate(self.nodes)}
        if all(
            indices[earlier] < index for node, index in indices.items() for earlier in node.after
        ):
            return list(self.nodes)
        self._reject_circles()
        ordered: dict[Node, None] = {}
        for node in self.nodes:
            waiting = [node]
            while waiting:
                first = [
                    dependency for dependency in waiting[-1].after if dependency not in ordered
                ]
                if first:
                    waiting += first
                else:
                    ordered[waiting.pop()] = None
        return list(ordered)

    def _reject_circles(self) -> None:
        waiting = {node: len(node.after) for node in self.nodes}
        followers: dict[Node, list[Node]] = {}
        for node in self.nodes:
            for dependency in node.after:
                followers.setdefault(dependency, []).append(node)
        ready = [node for node, count in waiting.items() if not count]
        while ready:
            node = ready.pop()
            del waiting[node]
            for follower in followers.get(node, ()):
                waiting[follower] -= 1
                if not waiting[follower]:
                    ready.append(follower)
        if waiting:
            raise invalid_value(f"{len(waiting)} nodes of the graph wait for each other")

    def parts(self) -> Iterable[Graph]:
        """Yield this graph, and the child graphs and bodies in it."""
        yield self
        for node in self.nodes:
            for part in (node.work.child, *node.work.bodies):
                if part is not None:
                    yield from part.parts()

    def references(self) -> References:
        """Return its references to user objects, with those of graphs in it."""
        references: References = {}
        for part in self.parts():
            for user_object, count in part.user_objects.items():
                references[user_object] = references.get(user_object, 0) + count
        return references

    @property
    def memory(self) -> tuple[GraphAllocation, ...]:
        """The memory that its allocation nodes allocate."""
        return tuple(
            node.memory
            for node in self.nodes
            if node.kind is NodeKind.ALLOC and node.memory is not None
        )

    @property
    def has_conditions(self) -> bool:
        """Whether it contains a conditional node."""
        return any(
            node.kind is NodeKind.CONDITIONAL for part in self.parts() for node in part.nodes
        )

    @property
    def is_updatable(self) -> bool:
        """Whether kernels may update one of its nodes."""
        return any(node.device_handle for part in self.parts() for node in part.nodes)

    def close(self) -> None:
        """Release its memory; this takes the device's lock."""
        for memory in self.memory:
            memory.release()


class ConditionKind(Enum):
    """The kind of a conditional node."""

    IF = "if"
    WHILE = "while"
    SWITCH = "switch"


@dataclass(eq=False, repr=False, slots=True, weakref_slot=True)
class ConditionState:
    """A condition with its handle, and its node.

    Attributes:
        default: its value at the begin of each launch of the graph; None leaves it unchanged.
        value: its present value.
        kind: the kind of its node; None until there is one.
        handles: the handles of the bodies, at the address that the caller received.
        most_steps: the limit for a loop; a run of its body counts as several steps.
    """

    handle: int
    default: int | None
    most_steps: int
    value: int = 0
    kind: ConditionKind | None = None
    handles: ctypes.Array[ctypes.c_size_t] | None = None

    def begin(self) -> None:
        """Begin a launch of the graph."""
        if self.default is not None:
            self.value = self.default

    def run(self, bodies: Sequence[Callable[[], None]]) -> None:
        """Run the bodies that the value selects."""
        if self.kind is ConditionKind.WHILE:
            for _ in range(max(1, self.most_steps // _STEPS_OF_A_RUN)):
                if not self.value:
                    return
                bodies[0]()
            raise self._endless()
        # The second body of an if runs if the condition is 0.
        index = int(not self.value) if self.kind is ConditionKind.IF else self.value
        if index < len(bodies):
            bodies[index]()

    def _endless(self) -> CallError:
        text = (
            f"a loop of a graph has not ended after {self.most_steps // _STEPS_OF_A_RUN} runs of "
            "its body, which the emulator takes for an endless one: does a kernel set the "
            f"condition to 0?\n  if it is only long, raise the limit of {self.most_steps} steps: "
            "Limits(max_steps=...), or CUDADRV_EMULATOR_STEPS"
        )
        return CallError(CUresult.CUDA_ERROR_LAUNCH_TIMEOUT, text, PtxError(text))


class Conditions:
    """The conditions of an emulator, by their handles; kernels set them.

    Each lives as long as its graph and all copies and executables of it.
    """

    def __init__(self) -> None:
        self._known: WeakValueDictionary[int, ConditionState] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._known)

    def add(self, handle: int, default: int | None, most_steps: int) -> ConditionState:
        """Add a condition."""
        condition = self._known[handle] = ConditionState(handle, default, most_steps)
        return condition

    def free_one(self, handle: int) -> ConditionState:
        """Return a condition that no node uses yet.

        Raises:
            CallError: CUDA_ERROR_INVALID_VALUE, if there is none of this handle.
        """
        condition = self._known.get(handle)
        if condition is None:
            raise invalid_value(f"{handle:#x} is no handle of a condition")
        if condition.kind is not None:
            raise invalid_value(f"another node has the condition {handle:#x} already")
        return condition

    def set(self, handle: int, value: int) -> bool:
        """Set a condition, as `cudaGraphSetConditional` does; False if it does not exist."""
        condition = self._known.get(handle)
        if condition is not None:
            condition.value = value
        return condition is not None


@dataclass(eq=False, repr=False, slots=True)
class UserObject:
    """A user object.

    Attributes:
        pointer: the argument of the destructor.
        destructor: address of a `void (*)(void *)`.
        owned: the references of the driver's caller.
        count: all references; without any the object is destroyed.
    """

    handle: int
    pointer: int
    destructor: int
    owned: int
    count: int


# The number of references of a graph, an executable or a launch to each object.
References = dict[UserObject, int]
