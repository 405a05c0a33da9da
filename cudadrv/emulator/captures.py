"""Stream captures in progress, and the calls that they forbid.

CUDA Programming Guide, "Prohibited and Unhandled Operations", and cuThreadExchangeStreamCaptureMode
define what captures forbid. The codes, and which calls invalidate, were measured with driver 580.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from ..driver._api import CUresult, CUstreamCaptureMode
from .call_error import CallError
from .contexts import Context
from .handle_tables import HandleTables
from .native_thread import thread_number
from .streams import Stream, StreamCapture
from .thread import CallingThread


class Captures:
    """The captures in progress.

    Attributes:
        active: all of them; the emulator's lock guards changes.
    """

    __slots__ = ("_handles", "_lock", "_thread", "active")

    def __init__(self, thread: CallingThread, lock: threading.RLock, handles: HandleTables) -> None:
        self._thread, self._lock, self._handles = thread, lock, handles
        self.active: set[StreamCapture] = set()

    @staticmethod
    def reject_if_invalid(capture: StreamCapture) -> None:
        """Reject a call for a capture that an earlier error invalidated."""
        if capture.invalid:
            raise CallError(
                CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                "an earlier error invalidated the capture that the stream takes part in",
            )

    @staticmethod
    def invalidate(captures: Iterable[StreamCapture], code: CUresult, text: str) -> CallError:
        """Invalidate captures, and return the error to raise."""
        for capture in captures:
            capture.invalid = True
        return CallError(code, text)

    def reject_if_implicit(self, stream: Stream, *, invalidates: bool = True) -> None:
        """Reject a wait of the legacy stream for a capturing stream that blocks with it.

        That invalidates the capture, except for a call that only queries.
        """
        if not stream.is_legacy:
            return
        with self._lock:
            waiting = [
                capture
                for capture in self.active
                if any(s.is_blocking and s.context is stream.context for s in capture.streams)
            ]
            if waiting:
                raise self.invalidate(
                    waiting if invalidates else (),
                    CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                    "the legacy stream would depend on a stream that is capturing and was not "
                    "created with CU_STREAM_NON_BLOCKING",
                )

    def reject_unsafe(self) -> None:
        """Reject a call that may synchronise while a capture forbids such calls.

        A capture does so if this thread began it and its mode is not relaxed, or any thread began
        it in global mode. cuThreadExchangeStreamCaptureMode can relax this for the thread.
        """
        if not self.active:
            return
        this_thread, wants = thread_number(), self._thread.capture_mode
        if wants == CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED:
            return
        minds_others = wants == CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
        with self._lock:
            forbidding = [
                capture
                for capture in self.active
                if (
                    capture.mode == CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
                    and (minds_others or capture.thread == this_thread)
                )
                or (
                    capture.mode == CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                    and capture.thread == this_thread
                )
            ]
            if forbidding:
                raise self.invalidate(
                    forbidding,
                    CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                    "the call may synchronise, which the mode of a capture in progress forbids; "
                    "the capture is now invalid",
                )

    def reject_if_capturing(self, stream: Stream) -> None:
        """Reject a call that a capturing stream does not accept, in any mode."""
        capture = stream.capture
        if capture is None:
            return
        with self._lock:
            self.reject_if_invalid(capture)
            raise self.invalidate(
                [capture],
                CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "the stream is capturing, which does not allow the call; the capture is now "
                "invalid",
            )

    def reject_sync(self, context: Context) -> None:
        """Reject synchronising a context that has a capturing stream, in every capture mode."""
        with self._lock:
            captures = [
                capture
                for capture in self.active
                if any(stream.context is context for stream in capture.streams)
            ]
            if captures:
                raise self.invalidate(
                    captures,
                    CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                    "a stream of the context is capturing, which does not allow to synchronise; "
                    "the capture is now invalid",
                )
        self.reject_unsafe()

    def drop(self, stream: Stream) -> None:
        """Abandon the capture of a stream that is being destroyed."""
        with self._lock:
            capture = stream.capture
            if capture is None:
                return
            capture.invalid = True
            is_over = capture.origin is stream
            if is_over:
                self.end(capture)
        if is_over:
            self.abandon(capture)

    def abandon(self, capture: StreamCapture) -> None:
        """Abandon a capture that has ended without a graph."""
        capture.abandon()
        if not capture.is_into:
            self._handles.graphs.pop(capture.graph.handle, None)

    def end(self, capture: StreamCapture) -> None:
        """End a capture; the emulator's lock is held."""
        self.active.discard(capture)  # first: after an exception the stream can end it again
        capture.end()
