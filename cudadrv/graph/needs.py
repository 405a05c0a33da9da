"""The objects that a graph uses, retained until its last replay is done."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from ..driver._api import CUgraph, CUuserObject
from ..driver.deferred_release import callbacks, defer_release
from ..driver.driver_api import DriverApi
from ..driver.driver_selection import failure
from ..driver.stream_handle import CaptureState
from ..memory.buffer import GraphMemory
from ..memory.order import AnyMemory, Memory, end_capture

_NO_DESTRUCTOR_SYNC: Final = 1  # CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, the only choice
_MOVE: Final = 1  # CU_GRAPH_USER_OBJECT_MOVE: the graph takes over the reference

_numbers: Final = itertools.count(1)
# The objects that graphs need, by the number of the driver's user object for them. The
# driver reports when no graph, executable or replay needs them any more.
_needed: Final[dict[int, list[object]]] = {}


def _forget(number: int) -> None:
    """Release a graph's objects. The driver calls this in a thread that must not call it."""
    defer_release(_needed.pop(number, []))


_FORGET: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_forget)
_FORGET_ADDRESS: Final = ctypes.cast(_FORGET, ctypes.c_void_p).value or 0

MemoryUses: TypeAlias = tuple[tuple[AnyMemory, bool], ...]
"""Device memory, each with True if it may be written."""


class NodeNeeds(NamedTuple):
    """The memory and objects that a node uses, or several nodes.

    Attributes:
        memory: device memory, each with True if the node may write it.
        retained: host arrays, modules, functions, events, textures.
    """

    memory: MemoryUses = ()
    retained: tuple[object, ...] = ()


class Needs:
    """A snapshot of everything that a graph uses.

    Attributes:
        memory: device memory, each with True if the graph may write it.
        retained: other objects; the driver holds them from `give_to` on.
        born: memory that the graph allocates itself, at each replay, and leaves to its user.
    """

    __slots__ = ("born", "memory", "retained")

    def __init__(self, parts: Iterable[NodeNeeds], born: Iterable[GraphMemory]) -> None:
        self.born: tuple[GraphMemory, ...] = tuple(born)
        uses: dict[AnyMemory, bool] = dict.fromkeys(self.born, True)
        objects: list[object] = []
        for part in parts:
            for memory, writes in part.memory:
                uses[memory] = uses.get(memory, False) or writes
            objects += part.retained
        self.memory: MemoryUses = tuple(uses.items())
        self.retained: list[object] = objects

    def give_to(self, api: DriverApi, graph: CUgraph) -> CUuserObject | None:
        """Make the driver hold the objects for the graph, and for everything made of the graph.

        Gives the user object, to which the graph has the one reference; None if nothing is needed.
        CUDA Programming Guide, "CUDA User Objects".
        """
        if not self.memory and not self.retained:
            return None
        number = next(_numbers)
        # The objects may refer to the graph, so its handle does not refer to them.
        objects: list[object] = [self.memory, self.retained]
        self.retained = []
        _needed[number] = objects
        doing = "retaining the objects that a graph uses"
        callbacks.expected = True
        code, user_object = api.cuUserObjectCreate(number, _FORGET_ADDRESS, 1, _NO_DESTRUCTOR_SYNC)
        if code:
            _needed.pop(number, None)
            raise failure(api, code, "cuUserObjectCreate", doing)
        (code,) = api.cuGraphRetainUserObject(graph, user_object, 1, _MOVE)
        if code:
            api.cuUserObjectRelease(user_object, 1)
            _needed.pop(number, None)  # the graph goes, and never ran
            raise failure(api, code, "cuGraphRetainUserObject", doing)
        return user_object


class Content:
    """The needs of a graph's nodes, while it can change.

    Attributes:
        nodes: by the handle of the node, or by an object where the driver has not made it yet.
        captured: the needs of captured work, whose nodes are unknown.
        born: memory that the graph allocates and leaves to its user.
        bodies: the contents of each conditional node's bodies, by its handle.
        is_changed: True if the driver does not hold all of it yet.
    """

    __slots__ = ("bodies", "born", "captured", "is_changed", "nodes")

    def __init__(self) -> None:
        self.nodes: dict[object, NodeNeeds] = {}
        self.captured: list[NodeNeeds] = []
        self.born: list[GraphMemory] = []
        self.bodies: dict[int, tuple[Content, ...]] = {}
        self.is_changed: bool = False

    def snapshot(self) -> Needs:
        """Return a snapshot of everything the graph needs."""
        return Needs(self.parts(), self.born)

    def parts(self) -> Iterator[NodeNeeds]:
        """Yield the needs of each node, including those in bodies."""
        yield from self.captured
        yield from list(self.nodes.values())
        for bodies in list(self.bodies.values()):
            for body in bodies:
                yield from body.parts()

    def add_capture(self, capture: CaptureState) -> None:
        """Add the needs of captured work."""
        own_handles = capture.own_handles()
        for reference in list(capture.born.values()):
            memory = reference()
            if isinstance(memory, GraphMemory):
                end_capture(memory, own_handles)
                self.born.append(memory)
        uses = tuple(
            (memory, writes)
            for memory, writes in capture.uses.copy().items()
            if isinstance(memory, Memory)
        )
        self.captured.append(NodeNeeds(uses, tuple(capture.keeps)))


class OwnNeeds:
    """Objects that an executable keeps for itself, beside its graph's.

    They stand in the table of graphs' objects, as they may refer to the executable.
    """

    __slots__ = ("_number",)

    def __init__(self) -> None:
        self._number = next(_numbers)

    def replace(self, objects: list[object]) -> list[object]:
        """Keep these objects, and return the former ones, which queued replays may still need."""
        former = _needed.pop(self._number, [])
        if objects:
            _needed[self._number] = objects
        return former
