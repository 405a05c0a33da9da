"""Graphs: work captured from a stream once and replayed at the cost of one call.

`capture` makes them.
"""

from __future__ import annotations

from typing import Final

from .. import border
from ..driver._api import CUgraph, CUgraphExec
from ..driver.context import ContextCore
from ..driver.handle import Closed, Closing, ContextBox, Part, check
from ..driver.in_use import failure
from ..driver.later import drop_now
from ..driver.stream_box import StreamBox
from ..driver.stream_core import StreamCore
from ..memory.order import Epoch, is_ordered, use
from .needs import GraphBox, Needs

# CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
_FREE_ON_LAUNCH: Final = 1


class ExecBox(Part[CUgraphExec]):
    """Owns an executable graph; the driver keeps it for the replays that are queued.

    Attributes:
        needs: what the graph uses that it was made of, or last updated by.
    """

    __slots__ = ("needs",)

    def __init__(self, context: ContextBox, needs: Needs) -> None:
        super().__init__(context)
        self.needs: Needs = needs

    def _destroy(self) -> None:
        (code,) = self.api.cuGraphExecDestroy(self.raw)
        doing = f"destroying an executable graph of device {self.context.ordinal}"
        check(self, code, "cuGraphExecDestroy", doing)


class Graph(Closing):
    """What a stream was given during a capture; `instantiate` makes it ready to run.

    The graph keeps what its work uses, device arrays among it, until the last replay is done.
    Arrays that were made in the capture have their memory from each replay to the next.

    Attributes:
        context: the context of the stream.
        allocates: whether memory was allocated in the capture.
    """

    __slots__ = ("_is_filled", "allocates", "context")

    _box: GraphBox

    def __init__(self, context: ContextCore) -> None:
        self.context: ContextCore = context
        self.allocates: bool = False
        self._is_filled = False
        self._shut()

    def __repr__(self) -> str:
        where = "of nothing" if super().closed else f"{int(self.handle):#x}"
        return f"<Graph {where} on device {self.context.ordinal}>"

    @property
    def _closed_text(self) -> str:
        return "the graph holds nothing: its capture has not ended, or it was closed"

    @property
    def closed(self) -> bool:
        """Whether it was closed, after it was captured."""
        return self._is_filled and super().closed

    @property
    def handle(self) -> CUgraph:
        """The CUgraph.

        Raises:
            ClosedError: the capture has not ended, it failed, or the graph was closed.
        """
        return self._box.raw

    @property
    def node_count(self) -> int:
        """How many operations were captured; asks the driver."""
        box = self._box
        code, _, count = box.api.cuGraphGetNodes(box.raw, 0)
        if code:
            raise failure(box.api, code, "cuGraphGetNodes", "counting a graph's nodes")
        return count

    def instantiate(self) -> GraphExec:
        """Make the graph ready to be launched, any number of times."""
        return GraphExec(self)

    def close(self) -> None:
        """Give the graph up; executables made of it stay usable. Idempotent."""
        super().close()
        drop_now()

    def _fill(self, box: GraphBox) -> None:
        """Take over the graph that a capture gave."""
        self.allocates = bool(box.needs.born)
        self._box, self._is_filled = box, True
        self.context._adopt(self)


class GraphExec(Closing):
    """A graph ready to run; made by `Graph.instantiate`.

    Attributes:
        context: the context of the stream that was captured.
        handle: the CUgraphExec; reading it after `close` raises `ClosedError`.
        closed: whether it was closed.
    """

    __slots__ = ("_epoch", "_stream", "context")

    _box: ExecBox

    def __init__(self, graph: Graph) -> None:
        border.instance("GraphExec: graph", graph, Graph)
        context, source = graph.context, graph._box
        # Memory that the last replay left to the graph is given back by the next one.
        flags = _FREE_ON_LAUNCH if source.needs.born else 0
        box = ExecBox(source.context, source.needs)
        # It wants a current context, unlike launches.
        code = box.make(context._api.cuGraphInstantiate, source.raw, flags)
        if code:
            doing = f"instantiating a graph on {context!r}"
            raise failure(context._api, code, "cuGraphInstantiate", doing)
        self.context: ContextCore = context
        # The stream for which all memory was ordered, and the epoch of that.
        self._stream: StreamBox | None = None
        self._epoch: object = None
        self._box = box
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
        is_ready = queue is self._stream and self._epoch is Epoch.now
        if not is_ready:
            self._order(box, queue)
        (code,) = box.context._driver.api.cuGraphLaunch(box.raw, queue.raw)
        if code:
            self._stream = None
            raise failure(box.api, code, "cuGraphLaunch", f"launching a graph on {stream!r}")
        if not is_ready:
            for memory in box.needs.born:
                memory.has_contents = True

    def update(self, graph: Graph) -> None:
        """Take over the parameters of a graph that was captured alike, at less than instantiating.

        Runs already queued keep theirs, and what those use.

        Raises:
            GraphExecUpdateFailureError: the graphs differ in their operations or their order, or
                allocate memory; the executable stays as it was.
        """
        border.instance("GraphExec.update: graph", graph, Graph)
        box, source = self._box, graph._box
        # As `instantiate`.
        code, _ = box.context.call(box.api.cuGraphExecUpdate, box.raw, source.raw)
        if code:
            raise failure(box.api, code, "cuGraphExecUpdate", f"updating {self!r} by {graph!r}")
        box.needs, self._stream = source.needs, None
        drop_now()

    def close(self) -> None:
        """Give the executable up; it goes after the runs already queued. Idempotent."""
        self._stream = None
        super().close()
        drop_now()

    def _order(self, box: ExecBox, queue: StreamBox) -> None:
        """Make a replay on a stream a use of all that the graph uses."""
        border.instance("GraphExec.launch: stream", queue, (StreamBox, Closed))
        needs, capture = box.needs, queue.capture  # raise if one of the two was closed
        for memory, writes in needs.memory:
            use(memory, queue, writes=writes)
        # Read before the test: what another thread moves after it makes a newer one.
        epoch = Epoch.now
        if capture is None and all(
            is_ordered(memory, queue, writes=writes) for memory, writes in needs.memory
        ):
            self._stream, self._epoch = queue, epoch
        drop_now()
