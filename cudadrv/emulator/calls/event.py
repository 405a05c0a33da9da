"""Events.

CUDA Driver API: "Event Management". The clock is the host's.
"""

from __future__ import annotations

import time
from typing import Final

from ...driver._api import CUevent, CUresult, CUstream
from ..call_error import OK, SUCCESS, CallError, invalid_handle, invalid_value
from ..driver_state import DriverState
from ..events import Event
from ..node_kind import NodeKind
from ..streams import Stream
from ..timeline.queues import nothing
from .call import DriverCalls, call

_DISABLE_TIMING: Final = 2
INTERPROCESS: Final = 4
_FLAGS: Final = 7


class EventCalls(DriverCalls):
    """Events."""

    @call
    def cuEventRecordWithFlags(
        self, h_event: CUevent, h_stream: CUstream, flags: int, /
    ) -> tuple[CUresult]:
        """Record an event; outside of a capture an external one is an ordinary one."""
        if flags & ~1:
            raise invalid_value(f"invalid record flags {flags:#x}")
        if flags and self._state.handles.stream(h_stream).capture is not None:
            raise CallError(
                CUresult.CUDA_ERROR_NOT_SUPPORTED, "the emulator captures no external record"
            )
        record(self._state, h_event, self._state.handles.stream(h_stream))
        return OK

    @call
    def cuEventCreate(self, flags: int, /) -> tuple[CUresult, CUevent]:
        """Create an event of the current context."""
        context = self._state.handles.current()
        if flags & ~_FLAGS:
            raise invalid_value(f"invalid event flags {flags:#x}")
        if flags & INTERPROCESS and not flags & _DISABLE_TIMING:
            raise invalid_value("an interprocess event must be created without timing")
        event = Event(self._state.handles.new(), context, flags)
        self._state.handles.events[event.handle] = event
        return SUCCESS, CUevent(event.handle)

    @call
    def cuEventDestroy(self, h_event: CUevent, /) -> tuple[CUresult]:
        """Destroy an event."""
        with self._state.lock:
            event = self._state.handles.event(h_event)
            del self._state.handles.events[event.handle]
        if event.file is not None:
            event.file.close()
        return OK

    @call
    def cuEventRecord(self, h_event: CUevent, h_stream: CUstream, /) -> tuple[CUresult]:
        """Record the position in the stream; in a capturing stream, the position in the capture."""
        record(self._state, h_event, self._state.handles.stream(h_stream))
        return OK

    @call
    def cuEventQuery(self, h_event: CUevent, /) -> tuple[CUresult]:
        """Return whether the last record was reached; success if there was none."""
        event = self._state.handles.event(h_event)
        self._reject_if_captured(event)
        if event.operation is not None and self._state.operations.is_pending(
            [event.operation], event.context
        ):
            return (CUresult.CUDA_ERROR_NOT_READY,)
        self._host_has_waited_for(event)
        return OK

    @call
    def cuEventSynchronize(self, h_event: CUevent, /) -> tuple[CUresult]:
        """Run the work before the last record."""
        event = self._state.handles.event(h_event)
        self._reject_if_captured(event)
        if event.operation is not None:
            self._state.operations.wait_for([event.operation], event.context)
        self._host_has_waited_for(event)
        self._state.operations.synchronised(event.context)
        return OK

    def _host_has_waited_for(self, event: Event) -> None:
        if self._state.operations.accesses is not None and event.clock is not None:
            self._state.operations.accesses.host_waits(event.clock)

    def _reject_if_captured(self, event: Event) -> None:
        if event.capture is None:
            self._state.captures.reject_unsafe()
            return
        with self._state.lock:
            if event.capture.ended:
                raise invalid_value("the event was last recorded in a capture, which has ended")
            raise self._state.captures.invalidate(
                [event.capture],
                CUresult.CUDA_ERROR_CAPTURED_EVENT,
                "the event was last recorded in a capturing stream; the capture is now invalid",
            )

    @call
    def cuEventElapsedTime(self, h_start: CUevent, h_end: CUevent, /) -> tuple[CUresult, float]:
        """Return milliseconds of host time between two recorded events with timing."""
        start, end = self._state.handles.event(h_start), self._state.handles.event(h_end)
        for event in (start, end):
            if event.capture is not None:
                if event.capture.ended:
                    raise invalid_value("an event was last recorded in a capture")
                raise CallError(
                    CUresult.CUDA_ERROR_CAPTURED_EVENT,
                    "an event was last recorded in a capturing stream",
                )
            if event.flags & _DISABLE_TIMING:
                raise invalid_handle("invalid resource handle: an event was created without timing")
        for event in (start, end):
            if event.operation is not None and not event.operation.is_done:
                raise CallError(CUresult.CUDA_ERROR_NOT_READY, "an event was not reached yet")
        started, ended = start.reached_ns, end.reached_ns
        if started is None or ended is None:
            raise invalid_handle("invalid resource handle: an event was not recorded")
        if not start.context.shares_objects_with(end.context):
            raise invalid_handle("invalid resource handle: the events belong to different contexts")
        return SUCCESS, (ended - started) / 1e6


def record(driver: DriverState, h_event: CUevent, stream: Stream) -> None:
    """Record an event at the present position of a stream or of its capture."""
    event = driver.handles.event(h_event)
    if not event.context.shares_objects_with(stream.context):
        raise invalid_handle(
            "invalid resource handle: the event and the stream belong to different contexts"
        )
    if stream.capture is None:
        if driver.captures.active:
            driver.captures.reject_if_implicit(stream)
        event.capture, event.tip = None, frozenset()
        event.clock = (
            None if driver.operations.accesses is None else driver.operations.accesses.now(stream)
        )
        timeline = driver.operations.timeline
        if timeline is None:
            event.time_ns, event.operation = time.perf_counter_ns(), None
        else:
            event.operation = timeline.submit(stream, NodeKind.RECORD, nothing)
            driver.operations.let_others_see(event)
        return
    with driver.lock:
        driver.captures.reject_if_invalid(stream.capture)
        event.capture, event.tip = stream.capture, stream.tip
        event.time_ns = event.operation = event.clock = None
