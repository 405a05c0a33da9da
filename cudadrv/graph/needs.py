"""What a graph uses, which must be there until its last replay is done."""

from __future__ import annotations

import ctypes
import itertools
from itertools import starmap
from typing import Final

from ..driver._api import CUgraph
from ..driver.handle import Part, check
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


class Needs:
    """What a captured graph uses, which must be there until its last replay is done.

    Attributes:
        memory: device memory, and whether the graph may write it.
        kept: host arrays, modules, textures; the driver's from `give_to` on.
        born: memory that the graph allocates itself, at each replay.
    """

    __slots__ = ("born", "kept", "memory")

    def __init__(self, capture: CaptureState) -> None:
        twins = capture.twins()
        self.born: list[GraphMemory] = []
        for reference in capture.born.values():
            memory = reference()
            if isinstance(memory, GraphMemory):
                settle(memory, twins)
                self.born.append(memory)
        uses: dict[AnyMemory, bool] = dict.fromkeys(self.born, True)
        uses |= {
            memory: writes for memory, writes in capture.uses.items() if isinstance(memory, Memory)
        }
        self.memory: tuple[tuple[AnyMemory, bool], ...] = tuple(uses.items())
        self.kept: list[object] = capture.keeps

    def give_to(self, box: GraphBox) -> None:
        """Let the driver hold all of it for the graph, and for what is made of the graph.

        CUDA Programming Guide, "CUDA User Objects".
        """
        if not self.memory and not self.kept:
            return
        api, number = box.api, next(_numbers)
        # What the graph keeps may refer to the graph, so no box refers to it.
        needed: list[object] = [self.memory, self.kept]
        self.kept = []
        held, is_moved = None, False
        try:
            _needed[number] = needed
            made = number, _FORGET_ADDRESS, 1, _NO_DESTRUCTOR_SYNC
            ((code, held),) = starmap(api.cuUserObjectCreate, (made,))  # `handover` says why
            if code:
                raise failure(api, code, "cuUserObjectCreate", "keeping what a graph uses")
            moved = box.raw, held, 1, _MOVE
            ((code,),) = starmap(api.cuGraphRetainUserObject, (moved,))
            is_moved = not code
            if code:
                raise failure(api, code, "cuGraphRetainUserObject", "keeping what a graph uses")
        except BaseException:
            if held is not None and not is_moved:
                api.cuUserObjectRelease(held, 1)
            _needed.pop(number, None)  # the graph goes, and never ran
            raise


class GraphBox(Part[CUgraph]):
    """Owns a graph.

    Attributes:
        needs: what the graph uses.
    """

    __slots__ = ("needs",)

    needs: Needs

    def _destroy(self) -> None:
        (code,) = self.api.cuGraphDestroy(self.raw)
        check(self, code, "cuGraphDestroy", f"destroying a graph of device {self.context.ordinal}")
