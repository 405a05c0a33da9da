"""Executable graphs: ready to run, any number of times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .. import border
from ..driver._api import CUgraphExec, CUgraphNode, CUresult
from ..driver.context import ContextCore
from ..driver.handle import Closed, Closing, unroot
from ..driver.in_use import failure
from ..driver.later import drop_now
from ..driver.stream_box import StreamBox
from ..driver.stream_core import StreamCore
from ..memory.order import is_ordered, moves, use
from .graph_box import ExecBox
from .graph_core import GraphCore
from .needs import NodeNeeds
from .node import GraphNode

# CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
_FREE_ON_LAUNCH: Final = 1


class GraphExec(Closing):
    """A graph ready to run; made by `Graph.instantiate`.

    Attributes:
        context: the context of the graph.
        handle: the CUgraphExec; reading it after `close` raises `ClosedError`.
        closed: whether it was closed.
    """

    __slots__ = ("_changed", "_epoch", "_stream", "context")

    _box: ExecBox

    def __init__(self, graph: GraphCore) -> None:
        context, needs, source = graph.context, graph._settle(), graph._box
        # Memory that the last replay left to the graph is given back by the next one.
        flags = _FREE_ON_LAUNCH if needs.born else 0
        box = ExecBox(source.context, needs)
        # It wants a current context, unlike launches.
        code = box.make(context._api.cuGraphInstantiate, source.raw, flags)
        if code:
            doing = f"instantiating a graph on {context!r}"
            raise failure(context._api, code, "cuGraphInstantiate", doing)
        self.context: ContextCore = context
        # The stream for which all memory was ordered, and the epoch of that.
        self._stream: StreamBox | None = None
        self._epoch: object = None
        # Of the nodes that were changed here alone, by their handles: the memory that they use.
        self._changed: dict[int, NodeNeeds] = {}
        self._own(box)
        context._adopt(self)

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"{int(self.handle):#x}"
        return f"<GraphExec {where} on device {self.context.ordinal}>"

    @property
    def _closed_text(self) -> str:
        return "the graph executable was closed"

    @property
    def handle(self) -> CUgraphExec:
        """The CUgraphExec.

        Raises:
            ClosedError: it was closed.
        """
        return self._box.raw

    def launch(self, stream: StreamCore) -> None:
        """Queue the whole graph on `stream`; one run of an executable at a time, in order.

        The stream waits for what other streams do with the memory that the graph uses.
        """
        try:
            box, queue = self._box, stream._box
        except AttributeError:
            raise border.refused("GraphExec.launch: stream", stream, "give a Stream") from None
        if queue is self._stream and self._epoch is moves.now:
            replay = box.replay  # not called as a method, which would be looked up
            code = replay(box.raw, queue.raw)[0]
        else:
            code = self._launch_anew(box, queue)
        if code:
            self._stream = None
            raise failure(box.api, code, "cuGraphLaunch", f"launching a graph on {stream!r}")

    def _launch_anew(self, box: ExecBox, queue: StreamBox) -> CUresult:
        """Order the stream after what others do with the graph's memory, and queue the graph."""
        self._order(box, queue)
        (code,) = box.api.cuGraphLaunch(box.raw, queue.raw)
        if not code:
            for memory in box.needs.born:
                memory.has_contents = True
        return code

    def update(self, graph: GraphCore) -> None:
        """Take over the parameters of a graph that was captured alike, at less than instantiating.

        Runs already queued keep theirs, and what those use.

        Raises:
            GraphExecUpdateFailureError: the graphs differ in their operations or their order, or
                allocate memory; the executable stays as it was.
        """
        border.instance("GraphExec.update: graph", graph, GraphCore)
        box, needs, source = self._box, graph._settle(), graph._box
        # As `instantiate`.
        code, _ = box.context.call(box.api.cuGraphExecUpdate, box.raw, source.raw)
        if code:
            raise failure(box.api, code, "cuGraphExecUpdate", f"updating {self!r} by {graph!r}")
        box.needs, box.memory, self._stream = needs, needs.memory, None
        self._changed.clear()
        box.keep([])
        drop_now()

    def upload(self, stream: StreamCore) -> None:
        """Bring the graph to the device now, so that the first launch does not have to.

        Raises:
            ClosedError: the executable or the stream was closed.
        """
        border.instance("GraphExec.upload: stream", stream, StreamCore)
        box = self._box
        (code,) = box.api.cuGraphUpload(box.raw, stream._box.raw)
        if code:
            raise failure(box.api, code, "cuGraphUpload", f"uploading {self!r}")

    def enable(self, node: GraphNode, enabled: bool = True) -> None:
        """Let a node of the graph do its work in launches from now on, or nothing.

        Args:
            node: a kernel, a copy or a fill of the graph that the executable was made of.
            enabled: whether it does.

        Raises:
            InvalidValueError: it is another kind of node, or of another graph.
        """
        box = self._box
        code, *_ = box.api.cuGraphNodeSetEnabled(box.raw, _handle(node), int(enabled))
        if code:
            raise failure(box.api, code, "cuGraphNodeSetEnabled", f"switching {node!r}")

    def is_enabled(self, node: GraphNode) -> bool:
        """Whether a kernel, a copy or a fill does its work in launches; asks the driver."""
        box = self._box
        code, enabled = box.api.cuGraphNodeGetEnabled(box.raw, _handle(node))
        if code:
            raise failure(box.api, code, "cuGraphNodeGetEnabled", f"asking about {node!r}")
        return bool(enabled)

    def _change(
        self, node: GraphNode, needs: NodeNeeds, change: Callable[[ExecBox], CUresult]
    ) -> None:
        """Let a node do something else here, and not in the graph."""
        box, number = self._box, int(_handle(node))
        former = self._changed.get(number)
        code = change(box)
        if code:
            doing = f"changing {node!r} in {self!r}"
            raise failure(box.api, code, "cuGraphExecNodeSetParams", doing)
        self._changed[number] = needs
        if former is None or list(map(id, former.kept)) != list(map(id, needs.kept)):
            box.keep([kept for each in self._changed.values() for kept in each.kept])
        if former is None or former.memory != needs.memory:
            self._stream = None
            changed = (use for each in self._changed.values() for use in each.memory)
            box.memory = (*box.needs.memory, *changed)

    def close(self) -> None:
        """Give the executable up; it goes after the runs already queued. Idempotent."""
        self._stream = None
        super().close()
        drop_now()

    def _order(self, box: ExecBox, queue: StreamBox) -> None:
        """Make a replay on a stream a use of all that the graph uses."""
        border.instance("GraphExec.launch: stream", queue, (StreamBox, Closed))
        box.raw, queue.capture  # noqa: B018  # raise if one of the two was closed
        for memory, writes in box.memory:
            use(memory, queue, writes=writes)
        box.queue = queue
        if queue.is_foreign:
            unroot(id(self), box)  # it leads to the owner of the stream from now on
        # Read before the test: what another thread moves after it makes a newer one.
        epoch = moves.now
        if queue.capture is None and all(
            is_ordered(memory, queue, writes=writes) for memory, writes in box.memory
        ):
            self._stream, self._epoch = queue, epoch
        drop_now()


def _handle(node: GraphNode) -> CUgraphNode:
    return border.instance("GraphExec: node", node, GraphNode).handle
