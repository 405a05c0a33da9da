"""Where an operation goes: it runs, is queued, or a capture records it; and what captures forbid.

CUDA Programming Guide, "Prohibited and Unhandled Operations"; cuThreadExchangeStreamCaptureMode.
The codes, and which calls invalidate, were measured with driver 580.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from ptx.emulate.model.grid_dependency import GridDependency

from ..driver._api import CUresult, CUstreamCaptureMode
from .contexts import Context
from .host_memory import HostRange
from .node_kind import NodeKind, Run
from .refusal import Refusal
from .streams import Capture, Stream
from .timeline.operation import Operation
from .waits import Waits


class CaptureRules(Waits):
    """Runs, queues or records operations, and refuses what would break a capture."""

    def _submit(
        self,
        stream: Stream,
        kind: NodeKind,
        run: Run,
        host: tuple[HostRange, ...] = (),
        *,
        dependency: GridDependency | None = None,
        is_early: bool = False,
    ) -> Operation | None:
        """Run or queue an operation, or record it if the stream is capturing.

        `host` is the host memory that it uses, as far as that is known; for the others see
        `Timeline.submit`. Gives what was queued.
        """
        capture = stream.capture
        if capture is None:
            if self._captures:
                self._refuse_if_implicit(stream)
            if self._accesses is not None:
                run = self._accesses.timed(stream, kind, run, host)
            timeline = self._timeline
            if timeline is not None:
                return timeline.submit(
                    stream, kind, run, host=host, dependency=dependency, is_early=is_early
                )
            self._queued.execute(stream, run)
            return None
        with self._lock:
            self._refuse_if_invalid(capture)
            capture.add(stream, kind, run, host=host)
        return None

    @staticmethod
    def _refuse_if_invalid(capture: Capture) -> None:
        if capture.invalid:
            raise Refusal(
                CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                "an earlier error invalidated the capture that the stream takes part in",
            )

    def _invalidate(self, captures: Iterable[Capture], code: CUresult, text: str) -> Refusal:
        """Invalidate captures, and give the refusal to raise."""
        for capture in captures:
            capture.invalid = True
        return Refusal(code, text)

    def _refuse_if_implicit(self, stream: Stream, *, invalidates: bool = True) -> None:
        """The legacy stream would wait for a capturing stream that blocks with it.

        That makes the capture invalid, but for a call that only asks.
        """
        if not stream.is_legacy:
            return
        with self._lock:
            waiting = [
                capture
                for capture in self._captures
                if any(s.is_blocking and s.context is stream.context for s in capture.streams)
            ]
            if waiting:
                raise self._invalidate(
                    waiting if invalidates else (),
                    CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
                    "the legacy stream would depend on a stream that is capturing and was not "
                    "created with CU_STREAM_NON_BLOCKING",
                )

    def _refuse_unsafe(self) -> None:
        """Refuse a call that may synchronise while a capture forbids such calls.

        It does if this thread began it and its mode is not relaxed, or any thread began it in
        global mode; less if the thread has said so (cuThreadExchangeStreamCaptureMode).
        """
        if not self._captures:
            return
        own, wants = threading.get_ident(), self._thread.capture_mode
        if wants == CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED:
            return
        minds_others = wants == CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
        with self._lock:
            forbidding = [
                capture
                for capture in self._captures
                if (
                    capture.mode == CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
                    and (minds_others or capture.thread == own)
                )
                or (
                    capture.mode == CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                    and capture.thread == own
                )
            ]
            if forbidding:
                raise self._invalidate(
                    forbidding,
                    CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                    "the call may synchronise, which the mode of a capture in progress forbids; "
                    "the capture is now invalid",
                )

    def _refuse_in_capture(self, stream: Stream) -> None:
        """Refuse a call that a capturing stream does not take, in any mode."""
        capture = stream.capture
        if capture is None:
            return
        with self._lock:
            self._refuse_if_invalid(capture)
            raise self._invalidate(
                [capture],
                CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "the stream is capturing, which does not allow the call; the capture is now "
                "invalid",
            )

    def _refuse_sync_in_capture(self, context: Context) -> None:
        """Refuse to synchronise a context that has a capturing stream, whatever the mode."""
        with self._lock:
            own = [
                capture
                for capture in self._captures
                if any(stream.context is context for stream in capture.streams)
            ]
            if own:
                raise self._invalidate(
                    own,
                    CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                    "a stream of the context is capturing, which does not allow to synchronise; "
                    "the capture is now invalid",
                )
        self._refuse_unsafe()

    def _drop_capture(self, stream: Stream) -> None:
        """Give up the capture of a stream that is going away."""
        with self._lock:
            capture = stream.capture
            if capture is None:
                return
            capture.invalid = True
            is_over = capture.origin is stream
            if is_over:
                self._end(capture)
        if is_over:
            self._give_up(capture)

    def _give_up(self, capture: Capture) -> None:
        """There will be no graph of a capture that has ended."""
        capture.abandon()
        if not capture.is_into:
            self._graphs.pop(capture.graph.handle, None)

    def _end(self, capture: Capture) -> None:
        """End a capture; `_lock` is held."""
        capture.end()
        self._captures.discard(capture)
