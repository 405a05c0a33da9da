"""What a graph uses, which must be there until its last replay is done."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from ..driver._api import CUgraph, CUuserObject
from ..driver.driver_api import DriverApi
from ..driver.in_use import failure
from ..driver.later import drop_later
from ..driver.stream_box import CaptureState
from ..memory.order import AnyMemory, Memory, settle
from ..memory.release import GraphMemory

_NO_DESTRUCTOR_SYNC: Final = 1  # CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, the only way there is
_MOVE: Final = 1  # CU_GRAPH_USER_OBJECT_MOVE: the graph takes over the reference

_numbers: Final = itertools.count(1)
# What graphs of the driver need, by the number of the user object that stands for it there; the
# driver tells when no graph, executable or replay needs it any more.
_needed: Final[dict[int, list[object]]] = {}


def _forget(number: int) -> None:
    """What the driver calls, in a thread that must not call it: another one drops what was kept."""
    drop_later(_needed.pop(number, []))


_FORGET: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_forget)
_FORGET_ADDRESS: Final = ctypes.cast(_FORGET, ctypes.c_void_p).value or 0

MemoryUses: TypeAlias = tuple[tuple[AnyMemory, bool], ...]
"""Device memory, and whether it may be written."""


class NodeNeeds(NamedTuple):
    """What a node uses, or several.

    Attributes:
        memory: device memory, and whether the node may write it.
        kept: host arrays, modules, functions, events, textures.
    """

    memory: MemoryUses = ()
    kept: tuple[object, ...] = ()


class Needs:
    """What a graph uses, as of the moment when its nodes were asked.

    Attributes:
        memory: device memory, and whether the graph may write it.
        kept: the rest; the driver's from `give_to` on.
        born: memory that the graph allocates itself, at each replay, and leaves to its user.
    """

    __slots__ = ("born", "kept", "memory")

    def __init__(self, parts: Iterable[NodeNeeds], born: Iterable[GraphMemory]) -> None:
        self.born: tuple[GraphMemory, ...] = tuple(born)
        uses: dict[AnyMemory, bool] = dict.fromkeys(self.born, True)
        kept: list[object] = []
        for part in parts:
            for memory, writes in part.memory:
                uses[memory] = uses.get(memory, False) or writes
            kept += part.kept
        self.memory: MemoryUses = tuple(uses.items())
        self.kept: list[object] = kept

    def give_to(self, api: DriverApi, graph: CUgraph) -> CUuserObject | None:
        """Let the driver hold all of it for the graph, and for what is made of the graph.

        Gives the user object, to which the graph has the one reference; None if nothing is needed.
        CUDA Programming Guide, "CUDA User Objects".
        """
        if not self.memory and not self.kept:
            return None
        number = next(_numbers)
        # What the graph keeps may refer to the graph, so no box refers to it.
        needed: list[object] = [self.memory, self.kept]
        self.kept = []
        _needed[number] = needed
        doing = "keeping what a graph uses"
        code, held = api.cuUserObjectCreate(number, _FORGET_ADDRESS, 1, _NO_DESTRUCTOR_SYNC)
        if code:
            _needed.pop(number, None)
            raise failure(api, code, "cuUserObjectCreate", doing)
        (code,) = api.cuGraphRetainUserObject(graph, held, 1, _MOVE)
        if code:
            api.cuUserObjectRelease(held, 1)
            _needed.pop(number, None)  # the graph goes, and never ran
            raise failure(api, code, "cuGraphRetainUserObject", doing)
        return held


class Content:
    """What the nodes of a graph need, while it may be changed.

    Attributes:
        nodes: by the handle of the node, or by an object where the driver has not made it yet.
        captured: of what was captured, for which no nodes are known.
        born: memory that the graph allocates and leaves to its user.
        bodies: of each conditional node, by its handle.
        is_changed: whether the driver does not hold all of it.
    """

    __slots__ = ("bodies", "born", "captured", "is_changed", "nodes")

    def __init__(self) -> None:
        self.nodes: dict[object, NodeNeeds] = {}
        self.captured: list[NodeNeeds] = []
        self.born: list[GraphMemory] = []
        self.bodies: dict[int, tuple[Content, ...]] = {}
        self.is_changed: bool = False

    def gather(self) -> Needs:
        """All of it, as of now."""
        return Needs(self.parts(), self.born)

    def parts(self) -> Iterator[NodeNeeds]:
        """What each node needs, those in bodies among them."""
        yield from self.captured
        yield from list(self.nodes.values())
        for bodies in list(self.bodies.values()):
            for body in bodies:
                yield from body.parts()

    def add_capture(self, capture: CaptureState) -> None:
        """What was captured has come to the graph."""
        twins = capture.twins()
        for reference in capture.born.values():
            memory = reference()
            if isinstance(memory, GraphMemory):
                settle(memory, twins)
                self.born.append(memory)
        uses = tuple(
            (memory, writes)
            for memory, writes in capture.uses.items()
            if isinstance(memory, Memory)
        )
        self.captured.append(NodeNeeds(uses, tuple(capture.keeps)))


class OwnNeeds:
    """What an executable was given by itself, not with its graph.

    It stands in the table of what graphs need, as it may refer to the executable.
    """

    __slots__ = ("_number",)

    def __init__(self) -> None:
        self._number = next(_numbers)

    def replace(self, kept: list[object]) -> list[object]:
        """Have this from now on; gives what there was, which queued replays may still need."""
        former = _needed.pop(self._number, [])
        if kept:
            _needed[self._number] = kept
        return former
