"""Streams and stream capture.

CUDA Driver API: "Stream Management".
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from ...driver._api import (
    CUcontext,
    CUevent,
    CUgraph,
    CUgraphEdgeData,
    CUgraphNode,
    CUresult,
    CUstream,
    CUstreamCaptureMode,
    CUstreamCaptureStatus,
    cuuint64_t,
)
from ..call_rules import CallRules
from ..contexts import Context
from ..events import Event
from ..graphs import Graph, Node, Tip
from ..node_kind import NodeKind
from ..refusal import OK, SUCCESS, Refusal, invalid_handle, invalid_value
from ..streams import NON_BLOCKING, Capture, Stream
from ..timeline.operation import nothing
from .call import call
from .event import INTERPROCESS

_WAIT_EXTERNAL: Final = 1
_GREATEST_PRIORITY: Final = -5
_MODES: Final = tuple(CUstreamCaptureMode)
_NOTHING: Final[Tip] = frozenset()


class StreamCalls(CallRules):
    """Streams and stream capture."""

    @call(1)
    def cuStreamCreateWithPriority(self, flags: int, priority: int, /) -> tuple[CUresult, CUstream]:
        """A stream of the current context; a priority outside the range is clamped to it."""
        context = self._current()
        if flags & ~NON_BLOCKING:
            raise invalid_value(f"invalid stream flags {flags:#x}")
        return SUCCESS, self._new_stream(context, flags, priority)

    def _new_stream(self, context: Context, flags: int, priority: int) -> CUstream:
        clamped = min(max(priority, _GREATEST_PRIORITY), 0)
        stream = Stream(next(self._handles), context, flags, clamped)
        self._streams[stream.handle] = stream
        return CUstream(stream.handle)

    @call()
    def cuStreamDestroy(self, h_stream: CUstream, /) -> tuple[CUresult]:
        """Destroy a stream; its capture, if it is capturing, is given up."""
        if int(h_stream) <= 2:
            raise invalid_handle("invalid resource handle: a default stream cannot be destroyed")
        stream = self._stream(h_stream)
        with self._lock:
            self._stream(h_stream)  # another thread may have destroyed it
            del self._streams[stream.handle]
        self._drop_capture(stream)
        return OK

    @call()
    def cuStreamSynchronize(self, h_stream: CUstream, /) -> tuple[CUresult]:
        """Let all that is queued end; unused memory above the pool's threshold goes back."""
        stream = self._stream(h_stream)
        self._refuse_wait(stream)
        self._wait_for_stream(stream)
        return OK

    @call()
    def cuStreamQuery(self, h_stream: CUstream, /) -> tuple[CUresult]:
        """Whether all that is queued is done."""
        stream = self._stream(h_stream)
        self._refuse_wait(stream)
        timeline = self._timeline
        if timeline is not None and self._is_pending(timeline.tails(stream), stream.context):
            return (CUresult.CUDA_ERROR_NOT_READY,)
        self._host_has_waited(stream)
        return OK

    def _refuse_wait(self, stream: Stream) -> None:
        if self._captures:
            self._refuse_if_implicit(stream)
            self._refuse_in_capture(stream)
            self._refuse_unsafe()

    @call(1)
    def cuStreamGetPriority(self, h_stream: CUstream, /) -> tuple[CUresult, int]:
        """The priority that the stream has."""
        return SUCCESS, self._stream(h_stream).priority

    @call(1)
    def cuStreamGetCtx(self, h_stream: CUstream, /) -> tuple[CUresult, CUcontext]:
        """The context that the stream was made in."""
        return SUCCESS, CUcontext(self._stream(h_stream).context.handle)

    @call()
    def cuStreamWaitEvent(
        self, h_stream: CUstream, h_event: CUevent, flags: int, /
    ) -> tuple[CUresult]:
        """Order a stream after an event; an event of a capture brings the stream into it."""
        stream = self._stream(h_stream)
        if flags & ~_WAIT_EXTERNAL:
            raise invalid_value(f"invalid wait flags {flags:#x}")
        try:
            event = self._event(h_event)
        except Refusal:
            if stream.capture is not None:
                stream.capture.invalid = True
            raise
        if event.flags & INTERPROCESS and event.context.device is not stream.context.device:
            # Here the driver of CUDA 13.0 ends the process.
            raise invalid_handle("an event for several processes is waited for on its own device")
        with self._lock:
            if stream.capture is not None:
                self._refuse_if_invalid(stream.capture)
            if event.capture is not None:
                self._join(stream, event, event.capture)
            elif stream.capture is None:
                self._refuse_if_implicit(stream)
            elif flags & _WAIT_EXTERNAL:
                stream.capture.add(stream, NodeKind.WAIT, nothing)
            elif event.time_ns is not None or event.operation is not None:
                raise self._invalidate(
                    [stream.capture],
                    CUresult.CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                    "a capturing stream cannot wait for an event recorded outside its capture; "
                    "the capture is now invalid",
                )
        if self._accesses is not None and stream.capture is None and event.clock is not None:
            self._accesses.wait(stream, event.clock)
        record = event.operation
        if stream.capture is None and record is not None and not record.is_done:
            self._queued.submit(stream, NodeKind.WAIT, nothing, after=(record,), is_marker=True)
        return OK

    def _join(self, stream: Stream, event: Event, capture: Capture) -> None:
        """Order a stream after an event that was recorded in a capture; `_lock` is held."""
        if capture.ended:
            raise invalid_value("the event was recorded in a capture that has ended")
        if stream.is_legacy:
            raise self._invalidate(
                [capture],
                CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                "the legacy stream cannot take part in a capture",
            )
        if stream.capture is not None and stream.capture is not capture:
            raise self._invalidate(
                [capture, stream.capture],
                CUresult.CUDA_ERROR_STREAM_CAPTURE_MERGE,
                "the stream and the event belong to different captures; both are now invalid",
            )
        self._refuse_if_invalid(capture)
        capture.join(stream, event.tip)

    @call()
    def cuStreamBeginCapture(
        self, h_stream: CUstream, mode: CUstreamCaptureMode, /
    ) -> tuple[CUresult]:
        """Record what follows in the stream; the legacy stream cannot."""
        self._begin_capture(self._stream(h_stream), mode)
        return OK

    @call()
    def cuStreamBeginCaptureToGraph(
        self,
        h_stream: CUstream,
        h_graph: CUgraph,
        dependencies: Sequence[CUgraphNode] | None,
        dependency_data: Sequence[CUgraphEdgeData] | None,
        num_dependencies: int,
        mode: CUstreamCaptureMode,
        /,
    ) -> tuple[CUresult]:
        """Record what follows in the stream into a graph that is there, behind these nodes."""
        stream = self._stream(h_stream)
        graph = self._graphs.get(int(h_graph))
        if graph is None:
            raise invalid_value(f"{int(h_graph):#x} is no live graph")
        handles = [int(handle) for handle in (dependencies or ())[:num_dependencies]]
        after = [self._nodes.get(handle) for handle in handles]
        if len(after) < num_dependencies or any(n is None or n.graph is not graph for n in after):
            raise invalid_value("a dependency is no node of the graph")
        self._begin_capture(stream, mode, graph, frozenset(n for n in after if n is not None))
        return OK

    def _begin_capture(
        self,
        stream: Stream,
        mode: CUstreamCaptureMode,
        graph: Graph | None = None,
        after: Tip = _NOTHING,
    ) -> None:
        if mode not in _MODES:
            raise invalid_value(f"invalid capture mode {int(mode)}")
        if stream.is_legacy:
            raise Refusal(
                CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "the legacy stream cannot be captured: use a created stream",
            )
        with self._lock:
            if stream.capture is not None:
                raise Refusal(CUresult.CUDA_ERROR_ILLEGAL_STATE, "the stream is capturing already")
            capture = Capture(
                stream, mode, threading.get_ident(), graph or Graph(), graph is not None
            )
            capture.number = next(self._handles)
            capture.join(stream, after)
            self._captures.add(capture)

    @call(6)
    def cuStreamGetCaptureInfo(
        self, h_stream: CUstream, /
    ) -> tuple[
        CUresult,
        CUstreamCaptureStatus,
        cuuint64_t,
        CUgraph,
        list[CUgraphNode] | None,
        list[CUgraphEdgeData] | None,
        int,
    ]:
        """The capture that the stream takes part in, its graph, and after what the next comes."""
        stream = self._stream(h_stream)
        if self._captures:
            self._refuse_if_implicit(stream, invalidates=False)
        capture = stream.capture
        status = CUstreamCaptureStatus
        if capture is None or capture.invalid:
            none, invalid = (
                status.CU_STREAM_CAPTURE_STATUS_NONE,
                status.CU_STREAM_CAPTURE_STATUS_INVALIDATED,
            )
            found = none if capture is None else invalid
            return SUCCESS, found, cuuint64_t(0), CUgraph(0), [], [], 0
        graph = capture.graph
        if not graph.handle:
            graph.handle = next(self._handles)
            self._graphs[graph.handle] = graph
        tip = [node for node in graph.nodes if node in stream.tip]
        return (
            SUCCESS,
            status.CU_STREAM_CAPTURE_STATUS_ACTIVE,
            cuuint64_t(capture.number),
            CUgraph(graph.handle),
            [self._handle_of(node) for node in tip],
            [CUgraphEdgeData() for _ in tip],
            len(tip),
        )

    @call()
    def cuStreamUpdateCaptureDependencies(
        self,
        h_stream: CUstream,
        dependencies: Sequence[CUgraphNode] | None,
        dependency_data: Sequence[CUgraphEdgeData] | None,
        num_dependencies: int,
        flags: int,
        /,
    ) -> tuple[CUresult]:
        """Say after which nodes the stream's next operation comes: as well, or alone (flag 1)."""
        stream = self._stream(h_stream)
        capture = stream.capture
        if capture is None:
            raise Refusal(CUresult.CUDA_ERROR_ILLEGAL_STATE, "the stream is not capturing")
        handles = [int(handle) for handle in (dependencies or ())[:num_dependencies]]
        nodes = [self._nodes.get(handle) for handle in handles]
        known = frozenset(n for n in nodes if n is not None and n.graph is capture.graph)
        if len(known) < num_dependencies or flags & ~1:
            raise invalid_value("a dependency is no node of the capture's graph, or the flags")
        with self._lock:
            stream.tip = known if flags else stream.tip | known
            capture.nodes += [node for node in known if node not in capture.nodes]
        return OK

    def _handle_of(self, node: Node) -> CUgraphNode:
        """The handle of a node, made when it is first asked for."""
        if not node.handle:
            node.handle = next(self._handles)
            self._nodes[node.handle] = node
        return CUgraphNode(node.handle)

    @call(1)
    def cuStreamEndCapture(self, h_stream: CUstream, /) -> tuple[CUresult, CUgraph]:
        """End a capture in the stream where it began, joined, and get its graph."""
        stream = self._stream(h_stream)
        with self._lock:
            capture = stream.capture
            if capture is None:
                raise Refusal(CUresult.CUDA_ERROR_ILLEGAL_STATE, "the stream is not capturing")
            if capture.origin is not stream:
                raise self._invalidate(
                    [capture],
                    CUresult.CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
                    "the capture began in another stream; it is now invalid",
                )
            joined = capture.is_joined
            self._end(capture)
        try:
            self._refuse_end(capture, joined)
        except Refusal:
            self._give_up(capture)
            raise
        graph = capture.graph
        if not graph.handle:
            graph.handle = next(self._handles)
            self._graphs[graph.handle] = graph
        return SUCCESS, CUgraph(graph.handle)

    def _refuse_end(self, capture: Capture, joined: bool) -> None:
        """Refuse the graph of a capture that did not end as it must."""
        self._refuse_if_invalid(capture)
        relaxed = capture.mode == CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        if not relaxed and capture.thread != threading.get_ident():
            raise Refusal(
                CUresult.CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                "another thread began the capture, and its mode is not relaxed",
            )
        if not joined:
            raise Refusal(
                CUresult.CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                "work of another stream in the capture was not joined: let the first stream "
                "wait for an event recorded after it",
            )

    @call(1)
    def cuStreamIsCapturing(self, h_stream: CUstream, /) -> tuple[CUresult, CUstreamCaptureStatus]:
        """Whether the stream takes part in a capture, and whether that is still valid.

        Of the legacy stream beside a capture of a blocking one it is an error, and the capture goes
        on (CUDA Driver API, cuStreamIsCapturing).
        """
        stream = self._stream(h_stream)
        if self._captures:
            self._refuse_if_implicit(stream, invalidates=False)
        capture = stream.capture
        if capture is None:
            return SUCCESS, CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
        if capture.invalid:
            return SUCCESS, CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_INVALIDATED
        return SUCCESS, CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE
