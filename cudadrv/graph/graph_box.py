"""Owners of graphs and executables, as the driver has them."""

from __future__ import annotations

from collections.abc import Callable

from ..driver._api import CUgraph, CUgraphExec, CUresult, CUstream
from ..driver.context_box import ContextBox, Part
from ..driver.handle import check
from ..driver.later import drop_later, park
from ..driver.stream_box import StreamBox
from .needs import MemoryUses, Needs, OwnNeeds


class GraphBox(Part[CUgraph]):
    """Owns a graph, or stands for a body of a conditional node, whose graph owns it.

    Attributes:
        of: of a body, the box of the graph that has the node.
    """

    __slots__ = ("of",)

    def __init__(self, context: ContextBox, raw: CUgraph | None = None) -> None:
        super().__init__(context, raw)
        self.of: GraphBox | None = None

    def _destroy(self) -> None:
        if self.of is None:
            (code,) = self.api.cuGraphDestroy(self.raw)
            doing = f"destroying a graph of device {self.context.ordinal}"
            check(self, code, "cuGraphDestroy", doing)


class ExecBox(Part[CUgraphExec]):
    """Owns an executable graph; the driver keeps it for the replays that are queued.

    Attributes:
        needs: what the graph uses that it was made of, or last updated by.
        memory: that of `needs`, and of nodes that were changed in the executable alone.
        own: the rest of what those nodes need.
        queue: the stream of the last replay.
        replay: the driver's function that launches it.
    """

    __slots__ = ("memory", "needs", "own", "queue", "replay")

    def __init__(self, context: ContextBox, needs: Needs) -> None:
        super().__init__(context)
        self.needs: Needs = needs
        self.memory: MemoryUses = needs.memory
        self.own: OwnNeeds | None = None
        self.queue: StreamBox | None = None
        self.driver.launchers.add(self)
        self.replay: Callable[[CUgraphExec, CUstream], tuple[CUresult]] = self.api.cuGraphLaunch

    def renew(self) -> None:
        """Take the driver's function anew, as a trace begins or ends."""
        self.replay = self.api.cuGraphLaunch

    def let_go(self, owner: object) -> None:
        """Nothing: it has the handle of no stream or module built in."""

    def keep(self, kept: list[object]) -> None:
        """Have this beside what `needs` has, and let go of what was there before."""
        if self.own is None:
            if not kept:
                return
            self.own = OwnNeeds()
        former, queue = self.own.replace(kept), self.queue
        if not former:
            return
        if queue is None:
            drop_later(former)
            return
        event = queue.take_event()
        event.record(queue)
        park(event.is_done, [*former, event])

    def _destroy(self) -> None:
        former = [] if self.own is None else self.own.replace([])
        (code,) = self.api.cuGraphExecDestroy(self.raw)
        if former and self.queue is not None:
            park(self.queue.is_idle, former)
        doing = f"destroying an executable graph of device {self.context.ordinal}"
        check(self, code, "cuGraphExecDestroy", doing)
