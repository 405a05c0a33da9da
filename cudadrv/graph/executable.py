"""`GraphExec`: a graph that is ready to run, any number of times."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from ptx.read_only import ReadOnly

from .. import border
from ..driver._api import (
    CUDA_GRAPH_INSTANTIATE_PARAMS,
    CUgraphExec,
    CUgraphInstantiateResult as _Result,
    CUgraphNode,
    CUresult,
    CUstream,
)
from ..driver.context import BaseContext
from ..driver.context_handle import ChildHandle, ContextHandle
from ..driver.deferred_release import defer_release, release_when, run_deferred
from ..driver.driver_selection import failure
from ..driver.handle import Closeable, ClosedHandle, check, unroot
from ..driver.stream import BaseStream, require_stream
from ..driver.stream_handle import StreamHandle
from ..memory.order import is_ordered, memory_moves, order_access
from .base_graph import BaseGraph, require_graph
from .needs import MemoryUses, Needs, NodeNeeds, OwnNeeds
from .node import GraphNode

# CUgraphInstantiate_flags of the CUDA Driver API.
_FREE_ON_LAUNCH, _UPLOAD, _DEVICE_LAUNCH, _NODE_PRIORITY = 1, 2, 4, 8
_REASONS: Final = {
    _Result.CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE: "the nodes wait for each other in a circle",
    _Result.CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED: "an operation is not supported",
    _Result.CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED: "its nodes are of two contexts",
    _Result.CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED: "no node uses one of its conditions",
}


class ExecHandle(ChildHandle[CUgraphExec]):
    """Owning handle of an executable graph; the driver keeps it until queued replays are done.

    Attributes:
        needs: the needs of the graph that it was made of, or last updated by.
        memory: the memory of `needs`, and of nodes changed in the executable alone.
        own: other objects that those nodes need.
        queue: the stream of the last replay.
        replay: the driver's function that launches it.
    """

    __slots__ = ("memory", "needs", "own", "queue", "replay")

    def __init__(self, context: ContextHandle, needs: Needs) -> None:
        super().__init__(context)
        self.needs: Needs = needs
        self.memory: MemoryUses = needs.memory
        self.own: OwnNeeds | None = None
        self.queue: StreamHandle | None = None
        self.driver.launchers.add(self)
        self.replay: Callable[[CUgraphExec, CUstream], tuple[CUresult]] = self.api.cuGraphLaunch

    def reset(self) -> None:
        """Fetch the driver's function again, as a trace begins or ends."""
        self.replay = self.api.cuGraphLaunch

    def on_owner_closed(self, owner: object) -> None:
        """Do nothing: an executable caches no handle of a stream or module."""

    def keep(self, objects: list[object]) -> None:
        """Keep these objects beside `needs`; drop the former ones after the queued replays."""
        if self.own is None:
            if not objects:
                return
            self.own = OwnNeeds()
        former, queue = self.own.replace(objects), self.queue
        if not former:
            return
        if queue is None:
            defer_release(former)
            return
        before = queue.before_capture()
        if before is not None:
            release_when(before.is_done, former)
            return
        event = queue.take_event()
        event.record(queue)
        release_when(event.is_done, [*former, event])

    def _destroy(self) -> None:
        former = [] if self.own is None else self.own.replace([])
        (code,) = self.api.cuGraphExecDestroy(self.raw)
        if former and self.queue is not None:
            release_when(self.queue.is_idle, former)
        doing = f"destroying an executable graph of device {self.context.ordinal}"
        check(self, code, "cuGraphExecDestroy", doing)


class GraphExec(Closeable):
    """A graph that is ready to run; `Graph.instantiate` makes it.

    Attributes:
        context: the context of the graph.
        handle: the CUgraphExec; reading it after `close` raises `ClosedError`.
        closed: True once it was closed.
    """

    __slots__ = ("_changed", "_context", "_epoch", "_stream")

    context: ReadOnly[BaseContext] = ReadOnly("_context")

    _handle: ExecHandle

    def __init__(
        self,
        graph: BaseGraph,
        *,
        node_priority: bool = False,
        device_launch: bool = False,
        upload: BaseStream | None = None,
    ) -> None:
        params = CUDA_GRAPH_INSTANTIATE_PARAMS()
        if upload is not None:
            params.hUploadStream = require_stream("Graph.instantiate: upload", upload).handle
        context, needs, source = graph.context, graph._retain_needs(), graph._handle
        params.flags = (
            (_UPLOAD if upload is not None else 0)
            | (_NODE_PRIORITY if node_priority else 0)
            # Memory that the last replay left allocated is freed by the next one. Graphs for
            # launches of the device have no such nodes: the driver rejects both flags together.
            | (_DEVICE_LAUNCH if device_launch else _FREE_ON_LAUNCH if needs.born else 0)
        )
        handle = ExecHandle(source.context, needs)
        # It needs a current context, unlike launches.
        make = partial(handle.make, context._api.cuGraphInstantiateWithParams, source.raw, params)
        code = make() if upload is None else upload._handle.submit(make)
        if code:
            doing = f"instantiating a graph {_where(graph, params)}"
            raise failure(context._api, code, "cuGraphInstantiateWithParams", doing)
        self._context: BaseContext = context
        # The stream for which all memory was ordered, and the epoch when it was.
        self._stream: StreamHandle | None = None
        self._epoch: int | None = None
        # The needs of nodes that were changed here alone, by their handles.
        self._changed: dict[int, NodeNeeds] = {}
        self._own(handle)
        context._adopt(self)

    def __repr__(self) -> str:
        handle = "closed" if self.closed else f"{int(self.handle):#x}"
        return f"<GraphExec {handle} on device {self._context.ordinal}>"

    @property
    def _closed_text(self) -> str:
        return "the graph executable was closed"

    @property
    def handle(self) -> CUgraphExec:
        """The CUgraphExec.

        Raises:
            ClosedError: it was closed.
        """
        return self._handle.raw

    def launch(self, stream: BaseStream) -> None:
        """Queue the whole graph on `stream`; one run of an executable at a time, in order.

        The stream waits for other streams' work on the memory that the graph uses.
        """
        try:
            handle, queue = self._handle, stream._handle
        except AttributeError:
            raise border.wrong_type("GraphExec.launch: stream", stream, "give a Stream") from None
        if queue is self._stream and self._epoch == memory_moves.count:
            passes = queue.gate.passes  # as `submit` does
            try:
                mine = passes.pop()
            except IndexError:
                mine, passes = queue.gate.enter(), queue.gate.passes
            try:
                replay = handle.replay  # a local name, so that no method is looked up
                code = replay(handle.raw, queue.raw)[0]
            finally:
                passes.append(mine)
        else:
            code = self._launch_cached(handle, queue)
        if code:
            self._stream = None
            raise failure(handle.api, code, "cuGraphLaunch", f"launching a graph on {stream!r}")

    def _launch_cached(self, handle: ExecHandle, queue: StreamHandle) -> CUresult:
        """Order the stream after other streams' work on the graph's memory, and queue the graph."""
        self._order(handle, queue)
        (code,) = queue.submit(handle.api.cuGraphLaunch, handle.raw, queue.raw)
        if not code:
            for memory in handle.needs.born:
                memory.has_contents = True
        return code

    def update(self, graph: BaseGraph) -> None:
        """Take over the parameters of a graph of the same form; this costs less than instantiating.

        Runs already queued keep their parameters, and the objects that those use.

        Raises:
            GraphExecUpdateFailureError: the graphs differ in their operations or their order, or
                allocate memory; the executable stays as it was.
        """
        require_graph("GraphExec.update: graph", graph)
        handle, needs, source = self._handle, graph._retain_needs(), graph._handle
        # As `instantiate`.
        code, _ = handle.context.call(handle.api.cuGraphExecUpdate, handle.raw, source.raw)
        if code:
            raise failure(handle.api, code, "cuGraphExecUpdate", f"updating {self!r} by {graph!r}")
        handle.needs, handle.memory, self._stream = needs, needs.memory, None
        self._changed.clear()
        handle.keep([])
        run_deferred()

    def upload(self, stream: BaseStream) -> None:
        """Copy the graph to the device now, so that the first launch need not.

        Raises:
            ClosedError: the executable or the stream was closed.
        """
        require_stream("GraphExec.upload: stream", stream)
        handle = self._handle
        queue = stream._handle
        (code,) = queue.submit(handle.api.cuGraphUpload, handle.raw, queue.raw)
        if code:
            raise failure(handle.api, code, "cuGraphUpload", f"uploading {self!r}")

    def enable(self, node: GraphNode, enabled: bool = True) -> None:
        """Enable or disable a node of the graph in launches from now on.

        Args:
            node: a kernel, a copy or a fill of the graph that the executable was made of.
            enabled: True to enable it.

        Raises:
            InvalidValueError: it is another kind of node, or of another graph.
        """
        handle = self._handle
        code, *_ = handle.api.cuGraphNodeSetEnabled(handle.raw, _raw_of(node), int(enabled))
        if code:
            raise failure(handle.api, code, "cuGraphNodeSetEnabled", f"switching {node!r}")

    def is_enabled(self, node: GraphNode) -> bool:
        """Return True if a kernel, a copy or a fill is enabled; queries the driver."""
        handle = self._handle
        code, enabled = handle.api.cuGraphNodeGetEnabled(handle.raw, _raw_of(node))
        if code:
            raise failure(handle.api, code, "cuGraphNodeGetEnabled", f"querying {node!r}")
        return bool(enabled)

    def _change(
        self, node: GraphNode, needs: NodeNeeds, change: Callable[[ExecHandle], CUresult]
    ) -> None:
        """Replace a node's work here, and not in the graph."""
        handle, number = self._handle, int(_raw_of(node))
        former = self._changed.get(number)
        code = change(handle)
        if code:
            doing = f"changing {node!r} in {self!r}"
            raise failure(handle.api, code, "cuGraphExecNodeSetParams", doing)
        self._changed[number] = needs
        if former is None or list(map(id, former.retained)) != list(map(id, needs.retained)):
            handle.keep([item for changes in self._changed.values() for item in changes.retained])
        if former is None or former.memory != needs.memory:
            self._stream = None
            changed = (use for changes in self._changed.values() for use in changes.memory)
            handle.memory = (*handle.needs.memory, *changed)

    def close(self) -> None:
        """Release the executable; it is destroyed after the runs already queued. Idempotent."""
        self._stream = None
        super().close()
        run_deferred()

    def _order(self, handle: ExecHandle, queue: StreamHandle) -> None:
        """Order a replay on a stream after other work on the graph's memory, and record it."""
        border.instance_of("GraphExec.launch: stream", queue, (StreamHandle, ClosedHandle))
        handle.raw, queue.capture  # noqa: B018  # raise if one of the two was closed
        for memory, writes in handle.memory:
            order_access(memory, queue, writes=writes)
        handle.queue = queue
        if queue.is_foreign:
            unroot(self._key, handle)  # it leads to the owner of the stream from now on
        # Read before the test: memory that another thread moves afterwards makes a newer epoch.
        epoch = memory_moves.count
        if queue.capture is None and all(
            is_ordered(memory, queue, writes=writes) for memory, writes in handle.memory
        ):
            self._stream, self._epoch = queue, epoch
        run_deferred()


def _where(graph: BaseGraph, params: CUDA_GRAPH_INSTANTIATE_PARAMS) -> str:
    """Return the reason and the node that the driver reports for a graph that it rejects."""
    parts = [_REASONS.get(params.result_out, "")]
    if int(params.hErrNode_out):
        node = GraphNode(graph, params.hErrNode_out)
        parts.insert(0, f"node {int(node.handle):#x}, {node.kind.value}")
    text = ": ".join(filter(None, parts))
    return f"({text})" if text else f"on {graph.context!r}"


def _raw_of(node: GraphNode) -> CUgraphNode:
    return border.instance_of("GraphExec: node", node, GraphNode).handle
