"""Graphs: work captured from a stream once and replayed at the cost of one call."""

from __future__ import annotations

import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Final

from . import errors
from .driver._api import CUgraph, CUgraphExec, CUstreamCaptureMode, DriverApi
from .driver.in_use import Handle, failure
from .errors import ClosedError, CudadrvError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .driver.context import Context
    from .stream import Stream


# CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
_FREE_ON_LAUNCH: Final = 1


class Graph(Handle):
    """What a stream was given during a capture; `instantiate` makes it ready to run.

    The captured work holds addresses: the device arrays it uses must live as long as it is
    replayed. Those made in the capture itself belong to the graph, which has their memory from each
    replay to the next; host arrays that it copies from and to are kept.

    Attributes:
        context: the context of the stream.
        allocates: whether memory was allocated in the capture.
        kept: the host arrays that the captured copies use.
    """

    __slots__ = ("__weakref__", "_finalizer", "_handle", "allocates", "context", "kept")

    def __init__(self, context: Context) -> None:
        self.context = context
        self.allocates = False
        self.kept: Sequence[object] = ()
        self._handle: CUgraph | None = None
        self._finalizer: weakref.finalize[[DriverApi, CUgraph, Context], Graph] | None = None

    def __repr__(self) -> str:
        where = "of nothing" if self._handle is None else f"{int(self._handle):#x}"
        return f"<Graph {where} on device {self.context.ordinal}>"

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._finalizer is not None and not self._finalizer.alive

    def fill(self, handle: CUgraph) -> None:
        """Take over the graph that a capture gave."""
        self._handle = handle
        self._finalizer = weakref.finalize(
            self, _destroy_graph, self.context.api, handle, self.context
        )
        self._finalizer.atexit = False

    @property
    def handle(self) -> CUgraph:
        """The CUgraph.

        Raises:
            ClosedError: the capture has not ended, it failed, or the graph was closed.
        """
        if self._handle is None:
            raise ClosedError(
                "the graph holds nothing: its capture has not ended, or it was closed"
            )
        return self._handle

    @property
    def node_count(self) -> int:
        """How many operations were captured; asks the driver."""
        api = self.context.api
        code, _, count = api.cuGraphGetNodes(self.handle, 0)
        if code:
            raise failure(api, code, "cuGraphGetNodes", "counting a graph's nodes")
        return count

    def instantiate(self) -> GraphExec:
        """Make the graph ready to be launched, any number of times."""
        return GraphExec(self)

    def close(self) -> None:
        """Destroy the graph; executables made of it stay usable. Idempotent."""
        self._handle = None
        if self._finalizer is not None:
            self._finalizer()


class GraphExec(Handle):
    """A graph ready to run; made by `Graph.instantiate`.

    Attributes:
        context: the context of the stream that was captured.
        handle: the CUgraphExec; reading it after `close` raises `ClosedError`.
        closed: whether it was closed.
    """

    __slots__ = ("__weakref__", "_api", "_finalizer", "_kept", "closed", "context", "handle")

    handle: CUgraphExec

    def __init__(self, graph: Graph) -> None:
        context = graph.context
        api = context.api
        # Memory that the last replay left to the graph is given back by the next one.
        flags = _FREE_ON_LAUNCH if graph.allocates else 0
        code, handle = api.cuGraphInstantiate(graph.handle, flags)
        if code:
            raise failure(api, code, "cuGraphInstantiate", f"instantiating a graph on {context!r}")
        self._api = api
        self.context = context
        self.handle = handle
        self.closed = False
        self._kept: tuple[Sequence[object], ...] = (graph.kept,)
        self._finalizer = weakref.finalize(self, _destroy_exec, api, handle, context)
        self._finalizer.atexit = False
        context.adopt(self)

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> object:
            if name == "handle":
                raise ClosedError("the graph executable was closed")
            raise AttributeError(f"a GraphExec has no attribute {name!r}")

    def __repr__(self) -> str:
        where = "closed" if self.closed else f"{int(self.handle):#x}"
        return f"<GraphExec {where} on device {self.context.ordinal}>"

    def __enter__(self) -> GraphExec:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def launch(self, stream: Stream) -> None:
        """Queue the whole graph on `stream`; one run of an executable at a time, in order."""
        (code,) = self._api.cuGraphLaunch(self.handle, stream.handle)
        if code:
            raise failure(self._api, code, "cuGraphLaunch", f"launching a graph on {stream!r}")

    def update(self, graph: Graph) -> None:
        """Take over the parameters of a graph that was captured alike, at less than instantiating.

        Runs already queued keep theirs.

        Raises:
            GraphExecUpdateFailureError: the graphs differ in their operations or their order, or
                allocate memory; the executable stays as it was.
        """
        code, _ = self._api.cuGraphExecUpdate(self.handle, graph.handle)
        if code:
            raise failure(self._api, code, "cuGraphExecUpdate", f"updating {self!r} by {graph!r}")
        # Runs already queued may still use what the former graph did.
        self._kept = (*self._kept[-1:], graph.kept)

    def close(self) -> None:
        """Destroy the executable after the runs already queued. Idempotent."""
        if self._finalizer.alive:
            self.discard()
            self._finalizer()

    def discard(self) -> None:
        """Take the handle away: the executable is destroyed, or its context is."""
        if not self.closed:
            self.closed = True
            del self.handle


class CaptureMemory:
    """The memory that a capture concerns, while it is open.

    Attributes:
        allocated: addresses of what was allocated in it and not released.
        deferred: addresses that were released in it, and not allocated there.
        kept: the host arrays that its graph will read and write.
    """

    __slots__ = ("allocated", "deferred", "kept")

    def __init__(self) -> None:
        self.allocated: set[int] = set()
        self.deferred: list[int] = []
        self.kept: list[object] = []


class Capture:
    """The `with` block of `Stream.capture`: records what its stream is given, runs nothing.

    The mode is relaxed: no other call of any thread disturbs the capture. A garbage collection in
    the block may free what other streams left behind, which the stricter modes would punish.
    Device memory of this stream released in the block is given back when it ends; what was
    allocated in the block as well is given back by the graph, at that point of each replay.
    """

    __slots__ = ("_graph", "_memory", "_stream")

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._memory = CaptureMemory()
        self._graph = Graph(stream.context)

    def __enter__(self) -> Graph:
        stream = self._stream
        if stream.capturing:
            raise errors.InvalidValueError(f"{stream!r} is already capturing")
        mode = CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        (code,) = stream.api.cuStreamBeginCapture(stream.handle, mode)
        if code:
            raise failure(stream.api, code, "cuStreamBeginCapture", f"capturing {stream!r}")
        stream.capturing = True
        stream.capture_memory = self._memory = CaptureMemory()
        self._graph = Graph(stream.context)
        return self._graph

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        stream = self._stream
        try:
            code, handle = stream.api.cuStreamEndCapture(stream.handle)
        finally:  # the stream may have been closed
            stream.capturing = False
            stream.capture_memory = None
        self._graph.allocates = bool(self._memory.allocated)
        self._graph.kept = self._memory.kept
        for pointer in self._memory.deferred:
            stream.release(pointer)
        if code:
            fault: CudadrvError = failure(
                stream.api, code, "cuStreamEndCapture", f"ending the capture of {stream!r}"
            )
            if error is None:
                raise fault
            error.add_note(f"the capture was lost: {fault}")
        elif error is None:
            self._graph.fill(handle)
        else:
            stream.api.cuGraphDestroy(handle)


def _destroy_graph(api: DriverApi, handle: CUgraph, context: Context) -> None:
    if not context.closed:
        api.cuGraphDestroy(handle)


def _destroy_exec(api: DriverApi, handle: CUgraphExec, context: Context) -> None:
    if not context.closed:
        api.cuGraphExecDestroy(handle)
