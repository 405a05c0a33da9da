"""Streams and stream capture.

CUDA Driver API: "Stream Management", cuThreadExchangeStreamCaptureMode. The attributes of streams
are stored, and have no effect here.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Final

from ...driver._api import (
    CUcontext,
    CUdevice,
    CUevent,
    CUgraph,
    CUgraphEdgeData,
    CUgraphNode,
    CUkernelNodeAttrValue as AttributeValue,
    CUresult,
    CUstream,
    CUstreamCaptureMode,
    CUstreamCaptureStatus,
    cuuint64_t,
)
from ..call_error import OK, SUCCESS, CallError, invalid_handle, invalid_value
from ..contexts import Context
from ..driver_state import DriverState
from ..edge_data import reject_edge_data
from ..events import Event
from ..graphs import Graph, Tip
from ..native_thread import thread_number
from ..node_kind import NodeKind
from ..streams import NON_BLOCKING, Stream, StreamCapture
from ..timeline.queues import nothing
from .call import DriverCalls, call, pointer_to
from .event import INTERPROCESS

_StreamCallback: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_WAIT_EXTERNAL: Final = 1
_GREATEST_PRIORITY: Final = -5  # of cuCtxGetStreamPriorityRange
_MODES: Final = tuple(CUstreamCaptureMode)
_NOTHING: Final[Tip] = frozenset()
_BYTES: Final = 64  # sizeof(CUstreamAttrValue)
_WINDOW, _SYNC_POLICY, _PRIORITY, _DOMAIN_MAP, _DOMAIN = 1, 3, 8, 9, 10  # CUlaunchAttributeID
_KNOWN: Final = frozenset((_WINDOW, _SYNC_POLICY, _PRIORITY, _DOMAIN_MAP, _DOMAIN))
_AUTO: Final = 1  # CU_SYNC_POLICY_AUTO


class StreamCalls(DriverCalls):
    """Streams and stream capture."""

    @call
    def cuStreamCreate(self, flags: int, /) -> tuple[CUresult, CUstream]:
        """Create a stream of the current context."""
        return self.cuStreamCreateWithPriority(flags, 0)

    @call
    def cuStreamGetFlags(self, h_stream: CUstream, /) -> tuple[CUresult, int]:
        """Return the flags of its creation; invalidates a capture, as measured on an H200."""
        stream = self._state.handles.stream(h_stream)
        if self._state.captures.active:
            self._state.captures.reject_if_capturing(stream)
        return SUCCESS, stream.flags

    @call
    def cuStreamGetId(self, h_stream: CUstream, /) -> tuple[CUresult, int]:
        """Return a number unique among streams."""
        stream = self._state.handles.stream(h_stream)
        with self._state.lock:
            stream.identity = stream.identity or self._state.handles.new()
        return SUCCESS, stream.identity

    @call
    def cuStreamGetDevice(self, h_stream: CUstream, /) -> tuple[CUresult, CUdevice]:
        """Return the device of its context."""
        return SUCCESS, CUdevice(self._state.handles.stream(h_stream).context.device.ordinal)

    @call
    def cuStreamAddCallback(
        self, h_stream: CUstream, callback: int, user_data: int, flags: int, /
    ) -> tuple[CUresult]:
        """Call a host function with the stream and the result of its work."""
        stream = self._state.handles.stream(h_stream)
        function, argument = int(callback), int(user_data)
        if not function or flags:
            raise invalid_value("a stream's callback is a function, with flags 0")
        if stream.capture is not None:
            raise self._state.captures.invalidate(
                [stream.capture],
                CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "a callback cannot be captured: use a host function; the capture is now invalid",
            )
        called, handle = _StreamCallback(function), int(h_stream)
        self._state.operations.submit(
            stream,
            NodeKind.HOST,
            lambda: self._state.thread.run_on_host(lambda: called(handle, 0, argument)),
        )
        return OK

    @call
    def cuStreamCreateWithPriority(self, flags: int, priority: int, /) -> tuple[CUresult, CUstream]:
        """Create a stream of the current context; a priority outside the range is clamped."""
        context = self._state.handles.current()
        if flags & ~NON_BLOCKING:
            raise invalid_value(f"invalid stream flags {flags:#x}")
        return SUCCESS, new_stream(self._state, context, flags, priority)

    @call
    def cuStreamDestroy(self, h_stream: CUstream, /) -> tuple[CUresult]:
        """Destroy a stream, and abandon a capture that began in it; a forked one leaves its own."""
        if int(h_stream) <= 2:
            raise invalid_handle("invalid resource handle: a default stream cannot be destroyed")
        stream = self._state.handles.stream(h_stream)
        with self._state.lock:
            if (
                self._state.handles.streams.pop(stream.handle, None) is None
            ):  # another thread has destroyed it
                raise invalid_handle(
                    f"invalid resource handle: {stream.handle:#x} is no live stream"
                )
        capture = stream.capture
        if capture is None or capture.origin is stream:
            self._state.captures.drop(stream)
        else:
            with self._state.lock:
                capture.leave(stream)
        return OK

    @call
    def cuStreamSynchronize(self, h_stream: CUstream, /) -> tuple[CUresult]:
        """Run all queued work; unused memory above the pool's threshold is released."""
        stream = self._state.handles.stream(h_stream)
        self._reject_wait(stream)
        self._state.operations.wait_for_stream(stream)
        return OK

    @call
    def cuStreamQuery(self, h_stream: CUstream, /) -> tuple[CUresult]:
        """Return whether all queued work is done."""
        stream = self._state.handles.stream(h_stream)
        self._reject_wait(stream)
        timeline = self._state.operations.timeline
        if timeline is not None and self._state.operations.is_pending(
            timeline.tails(stream), stream.context
        ):
            return (CUresult.CUDA_ERROR_NOT_READY,)
        self._state.operations.host_has_waited(stream)
        return OK

    def _reject_wait(self, stream: Stream) -> None:
        if self._state.captures.active:
            self._state.captures.reject_if_implicit(stream)
            self._state.captures.reject_if_capturing(stream)
            self._state.captures.reject_unsafe()

    @call
    def cuStreamGetPriority(self, h_stream: CUstream, /) -> tuple[CUresult, int]:
        """Return the priority of the stream."""
        return SUCCESS, self._state.handles.stream(h_stream).priority

    @call
    def cuStreamGetCtx(self, h_stream: CUstream, /) -> tuple[CUresult, CUcontext]:
        """Return the context that the stream was made in."""
        return SUCCESS, CUcontext(self._state.handles.stream(h_stream).context.handle)

    @call
    def cuStreamWaitEvent(
        self, h_stream: CUstream, h_event: CUevent, flags: int, /
    ) -> tuple[CUresult]:
        """Order a stream after an event; an event of a capture makes the stream join it."""
        stream = self._state.handles.stream(h_stream)
        if flags & ~_WAIT_EXTERNAL:
            raise invalid_value(f"invalid wait flags {flags:#x}")
        try:
            event = self._state.handles.event(h_event)
        except CallError:
            if stream.capture is not None:
                stream.capture.invalid = True
            raise
        if event.flags & INTERPROCESS and event.context.device is not stream.context.device:
            # Here the driver of CUDA 13.0 ends the process.
            raise invalid_handle("an event for several processes is waited for on its own device")
        with self._state.lock:
            if stream.capture is not None:
                self._state.captures.reject_if_invalid(stream.capture)
            if event.capture is not None:
                self._join(stream, event, event.capture)
            elif stream.capture is None:
                self._state.captures.reject_if_implicit(stream)
            elif flags & _WAIT_EXTERNAL:
                stream.capture.add(stream, NodeKind.WAIT, nothing)
            elif event.time_ns is not None or event.operation is not None:
                raise self._state.captures.invalidate(
                    [stream.capture],
                    CUresult.CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                    "a capturing stream cannot wait for an event recorded outside its capture; "
                    "the capture is now invalid",
                )
        if (
            self._state.operations.accesses is not None
            and stream.capture is None
            and event.clock is not None
        ):
            self._state.operations.accesses.wait(stream, event.clock)
        record = event.operation
        is_logged = self._state.operations.queue.log is not None
        if stream.capture is None and record and (is_logged or not record.is_done):
            self._state.operations.queue.submit(
                stream, NodeKind.WAIT, nothing, after=(record,), is_marker=True
            )
        return OK

    def _join(self, stream: Stream, event: Event, capture: StreamCapture) -> None:
        """Order a stream after an event that was recorded in a capture; `_lock` is held."""
        if capture.ended:
            raise invalid_value("the event was recorded in a capture that has ended")
        if stream.is_legacy:
            raise self._state.captures.invalidate(
                [capture],
                CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                "the legacy stream cannot take part in a capture",
            )
        if stream.capture is not None and stream.capture is not capture:
            raise self._state.captures.invalidate(
                [capture, stream.capture],
                CUresult.CUDA_ERROR_STREAM_CAPTURE_MERGE,
                "the stream and the event belong to different captures; both are now invalid",
            )
        self._state.captures.reject_if_invalid(capture)
        capture.join(stream, event.tip)

    @call
    def cuStreamBeginCapture(
        self, h_stream: CUstream, mode: CUstreamCaptureMode, /
    ) -> tuple[CUresult]:
        """Record later work of the stream; impossible for the legacy stream."""
        self._begin_capture(self._state.handles.stream(h_stream), mode)
        return OK

    @call
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
        """Record later work of the stream into an existing graph, after these nodes."""
        stream = self._state.handles.stream(h_stream)
        graph = self._state.handles.graph(h_graph)
        handles = [int(handle) for handle in (dependencies or ())[:num_dependencies]]
        predecessors = [self._state.handles.nodes.get(handle) for handle in handles]
        if len(predecessors) < num_dependencies or any(
            n is None or n.graph is not graph for n in predecessors
        ):
            raise invalid_value("a dependency is no node of the graph")
        for number, node in enumerate(predecessors):
            if node is not None:
                reject_edge_data(dependency_data, number, node.kind)
        self._begin_capture(
            stream, mode, graph, frozenset(n for n in predecessors if n is not None)
        )
        return OK

    def _begin_capture(
        self,
        stream: Stream,
        mode: CUstreamCaptureMode,
        graph: Graph | None = None,
        tip: Tip = _NOTHING,
    ) -> None:
        if mode not in _MODES:
            raise invalid_value(f"invalid capture mode {int(mode)}")
        if stream.is_legacy:
            raise CallError(
                CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "the legacy stream cannot be captured: use a created stream",
            )
        with self._state.lock:
            if stream.capture is not None:
                raise CallError(
                    CUresult.CUDA_ERROR_ILLEGAL_STATE, "the stream is capturing already"
                )
            capture = StreamCapture(
                stream, mode, thread_number(), graph or Graph(), graph is not None
            )
            capture.number = self._state.handles.new()
            capture.join(stream, tip)
            self._state.captures.active.add(capture)

    @call
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
        """Return the stream's capture, its graph, and the nodes that the next one comes after."""
        stream = self._state.handles.stream(h_stream)
        if self._state.captures.active:
            self._state.captures.reject_if_implicit(stream, invalidates=False)
        capture = stream.capture
        status = CUstreamCaptureStatus
        if capture is None or capture.invalid:
            none, invalid = (
                status.CU_STREAM_CAPTURE_STATUS_NONE,
                status.CU_STREAM_CAPTURE_STATUS_INVALIDATED,
            )
            inactive = none if capture is None else invalid
            return SUCCESS, inactive, cuuint64_t(0), CUgraph(0), [], [], 0
        graph = capture.graph
        tip = [node for node in graph.nodes if node in stream.tip]
        return (
            SUCCESS,
            status.CU_STREAM_CAPTURE_STATUS_ACTIVE,
            cuuint64_t(capture.number),
            self._state.handles.handle_of_graph(graph),
            [self._state.handles.handle_of_node(node) for node in tip],
            [CUgraphEdgeData() for _ in tip],
            len(tip),
        )

    @call
    def cuStreamUpdateCaptureDependencies(
        self,
        h_stream: CUstream,
        dependencies: Sequence[CUgraphNode] | None,
        dependency_data: Sequence[CUgraphEdgeData] | None,
        num_dependencies: int,
        flags: int,
        /,
    ) -> tuple[CUresult]:
        """Set, or add (flag 0), the nodes that the stream's next operation comes after."""
        stream = self._state.handles.stream(h_stream)
        capture = stream.capture
        if capture is None:
            raise CallError(CUresult.CUDA_ERROR_ILLEGAL_STATE, "the stream is not capturing")
        handles = [int(handle) for handle in (dependencies or ())[:num_dependencies]]
        nodes = [self._state.handles.nodes.get(handle) for handle in handles]
        predecessors = frozenset(n for n in nodes if n is not None and n.graph is capture.graph)
        if len(predecessors) < num_dependencies or flags & ~1:
            raise invalid_value("a dependency is no node of the capture's graph, or the flags")
        for number, node in enumerate(nodes):
            if node is not None:
                reject_edge_data(dependency_data, number, node.kind)
        with self._state.lock:
            stream.tip = predecessors if flags else stream.tip | predecessors
            capture.nodes += [node for node in predecessors if node not in capture.nodes]
        return OK

    @call
    def cuStreamEndCapture(self, h_stream: CUstream, /) -> tuple[CUresult, CUgraph]:
        """End a capture in the stream where it began, joined, and return its graph."""
        stream = self._state.handles.stream(h_stream)
        with self._state.lock:
            capture = stream.capture
            if capture is None:
                raise CallError(CUresult.CUDA_ERROR_ILLEGAL_STATE, "the stream is not capturing")
            if capture.origin is not stream:
                raise self._state.captures.invalidate(
                    [capture],
                    CUresult.CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
                    "the capture began in another stream; it is now invalid",
                )
            joined = capture.is_joined
            self._state.captures.end(capture)
        try:
            self._reject_end(capture, joined)
        except CallError:
            self._state.captures.abandon(capture)
            raise
        return SUCCESS, self._state.handles.handle_of_graph(capture.graph)

    def _reject_end(self, capture: StreamCapture, joined: bool) -> None:
        """Reject the graph of a capture that did not end correctly."""
        self._state.captures.reject_if_invalid(capture)
        relaxed = capture.mode == CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
        if not relaxed and capture.thread != thread_number():
            raise CallError(
                CUresult.CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                "another thread began the capture, and its mode is not relaxed",
            )
        if not joined:
            raise CallError(
                CUresult.CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                "work of another stream in the capture was not joined: let the first stream "
                "wait for an event recorded after it",
            )

    @call
    def cuStreamIsCapturing(self, h_stream: CUstream, /) -> tuple[CUresult, CUstreamCaptureStatus]:
        """Return whether the stream takes part in a capture, and whether that is still valid.

        For the legacy stream, during a capture of a blocking one, it is an error, and the capture
        continues (CUDA Driver API, cuStreamIsCapturing).
        """
        stream = self._state.handles.stream(h_stream)
        if self._state.captures.active:
            self._state.captures.reject_if_implicit(stream, invalidates=False)
        capture = stream.capture
        if capture is None:
            return SUCCESS, CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
        if capture.invalid:
            return SUCCESS, CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_INVALIDATED
        return SUCCESS, CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_ACTIVE

    @call
    def cuStreamGetAttribute(
        self, h_stream: CUstream, attr: int, /
    ) -> tuple[CUresult, AttributeValue]:
        """Return the value that was set, or the initial one."""
        stream = self._state.handles.stream(h_stream)
        value = AttributeValue()
        data = self._attribute(stream, int(attr))
        ctypes.memmove(pointer_to(value), data, len(data))
        return SUCCESS, value

    @call
    def cuStreamSetAttribute(
        self, h_stream: CUstream, attr: int, value: AttributeValue | None, /
    ) -> tuple[CUresult]:
        """Store a value; a priority is clamped to the range."""
        stream = self._state.handles.stream(h_stream)
        if value is None or int(attr) not in _KNOWN:
            raise invalid_value(f"stream attribute {int(attr)} is none, or its value is null")
        data = ctypes.string_at(pointer_to(value), _BYTES)
        self._set_attribute(stream, int(attr), data)
        return OK

    @call
    def cuStreamCopyAttributes(self, dst: CUstream, src: CUstream, /) -> tuple[CUresult]:
        """Copy the attributes of another stream of the context."""
        target, source = self._state.handles.stream(dst), self._state.handles.stream(src)
        if target.context is not source.context:
            raise invalid_value("the streams are of different contexts")
        target.attributes = dict(source.attributes)
        target.priority = source.priority
        return OK

    @staticmethod
    def _attribute(stream: Stream, number: int) -> bytes:
        if number not in _KNOWN:
            raise invalid_value(f"there is no stream attribute {number}")
        if number == _PRIORITY:
            return struct.pack("<i", stream.priority)
        first = struct.pack("<i", _AUTO) if number == _SYNC_POLICY else bytes(_BYTES)
        return stream.attributes.get(number, first)

    @staticmethod
    def _set_attribute(stream: Stream, number: int, value: bytes) -> None:
        if number == _PRIORITY:
            (priority,) = struct.unpack_from("<i", value)
            stream.priority = max(_GREATEST_PRIORITY, min(0, priority))
        else:
            stream.attributes[number] = value

    @call
    def cuThreadExchangeStreamCaptureMode(
        self, mode: CUstreamCaptureMode, /
    ) -> tuple[CUresult, CUstreamCaptureMode]:
        """Set which captures forbid unsafe calls in this thread; return the former value."""
        try:
            new = CUstreamCaptureMode(int(mode))
        except ValueError:
            raise invalid_value(f"there is no capture mode {int(mode)}") from None
        former, self._state.thread.capture_mode = self._state.thread.capture_mode, int(new)
        return SUCCESS, CUstreamCaptureMode(former)


def new_stream(driver: DriverState, context: Context, flags: int, priority: int) -> CUstream:
    """Create a stream of a context; a priority outside the range is clamped."""
    clamped = min(max(priority, _GREATEST_PRIORITY), 0)
    stream = Stream(driver.handles.new(), context, flags, clamped)
    driver.handles.streams[stream.handle] = stream
    return CUstream(stream.handle)
