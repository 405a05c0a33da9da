"""Rules of all driver calls: running operations, waiting, and limits of captures.

An operation runs at its call, is queued, or is recorded by a capture. CUDA Driver API, "API
synchronization behavior", defines which calls wait; under "immediate" only the work of nested calls
is ever pending. CUDA Programming Guide, "Prohibited and Unhandled Operations", and
cuThreadExchangeStreamCaptureMode define what captures forbid. The codes, and which calls
invalidate, were measured with driver 580.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial

from ptx.emulate.model.grid_dependency import GridDependency

from ..driver._api import CUresult, CUstreamCaptureMode
from .call_error import CallError, invalid_value
from .contexts import Context
from .device_state import DeviceState, GraphAllocation
from .driver_state import DriverState
from .events import Event
from .host_memory import HostRange
from .native_thread import thread_number
from .node_kind import NodeKind, Run
from .pools import (
    ANYWHERE,
    DEVICE,
    HOST,
    HOST_NUMA,
    HOST_NUMA_CURRENT,
    MANAGED,
    PINNED,
    Location,
    PoolLocation,
)
from .streams import Stream, StreamCapture
from .timeline.host_watch import OrderWarning
from .timeline.queues import QueuedOperation, nothing


class CallRules(DriverState):
    """Runs, queues or records operations, waits, and rejects calls that would break a capture."""

    def _submit(
        self,
        stream: Stream,
        kind: NodeKind,
        run: Run,
        host: tuple[HostRange, ...] = (),
        *,
        dependency: GridDependency | None = None,
        is_early: bool = False,
    ) -> QueuedOperation | None:
        """Run or queue an operation, or record it if the stream is capturing.

        `host` is the host memory that it uses, as far as that is known; for the other arguments see
        `Timeline.submit`. Returns the queued operation.
        """
        capture = stream.capture
        if capture is None:
            if self._captures:
                self._reject_if_implicit(stream)
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
            self._reject_if_invalid(capture)
            capture.add(stream, kind, run, host=host)
        return None

    @staticmethod
    def _reject_if_invalid(capture: StreamCapture) -> None:
        if capture.invalid:
            raise CallError(
                CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                "an earlier error invalidated the capture that the stream takes part in",
            )

    def _invalidate(
        self, captures: Iterable[StreamCapture], code: CUresult, text: str
    ) -> CallError:
        """Invalidate captures, and return the error to raise."""
        for capture in captures:
            capture.invalid = True
        return CallError(code, text)

    def _reject_if_implicit(self, stream: Stream, *, invalidates: bool = True) -> None:
        """Reject a wait of the legacy stream for a capturing stream that blocks with it.

        That invalidates the capture, except for a call that only queries.
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

    def _reject_unsafe(self) -> None:
        """Reject a call that may synchronise while a capture forbids such calls.

        A capture does so if this thread began it and its mode is not relaxed, or any thread began
        it in global mode. cuThreadExchangeStreamCaptureMode can relax this for the thread.
        """
        if not self._captures:
            return
        this_thread, wants = thread_number(), self._thread.capture_mode
        if wants == CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED:
            return
        minds_others = wants == CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
        with self._lock:
            forbidding = [
                capture
                for capture in self._captures
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
                raise self._invalidate(
                    forbidding,
                    CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                    "the call may synchronise, which the mode of a capture in progress forbids; "
                    "the capture is now invalid",
                )

    def _reject_in_capture(self, stream: Stream) -> None:
        """Reject a call that a capturing stream does not accept, in any mode."""
        capture = stream.capture
        if capture is None:
            return
        with self._lock:
            self._reject_if_invalid(capture)
            raise self._invalidate(
                [capture],
                CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                "the stream is capturing, which does not allow the call; the capture is now "
                "invalid",
            )

    def _reject_sync_in_capture(self, context: Context) -> None:
        """Reject synchronising a context that has a capturing stream, in every capture mode."""
        with self._lock:
            captures = [
                capture
                for capture in self._captures
                if any(stream.context is context for stream in capture.streams)
            ]
            if captures:
                raise self._invalidate(
                    captures,
                    CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                    "a stream of the context is capturing, which does not allow to synchronise; "
                    "the capture is now invalid",
                )
        self._reject_unsafe()

    def _drop_capture(self, stream: Stream) -> None:
        """Abandon the capture of a stream that is being destroyed."""
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

    def _give_up(self, capture: StreamCapture) -> None:
        """Abandon a capture that has ended without a graph."""
        capture.abandon()
        if not capture.is_into:
            self._graphs.pop(capture.graph.handle, None)

    def _end(self, capture: StreamCapture) -> None:
        """End a capture; `_lock` is held."""
        self._captures.discard(capture)  # first: after an exception the stream can end it again
        capture.end()

    @property
    def repeated_by(self) -> str:
        """Return a sentence on how to run a program in this order again."""
        return self._order.repeated_by

    def finish(self) -> None:
        """Run all queued operations, as at the end of a session; failures become warnings."""
        if self._timeline is None:
            return
        for device in self._devices:
            broken = device.fault
            self._thread.within_a_call(partial(self._finish_device, device))
            if device.fault is not None and device.fault is not broken:
                warnings.warn(
                    f"what was still queued on device {device.ordinal} failed, which no call could "
                    f"say: {device.fault.text}",
                    OrderWarning,
                    stacklevel=2,
                )

    def _finish_device(self, device: DeviceState) -> None:
        """Complete all work of a device; the next call raises its errors."""
        timeline = self._timeline
        if timeline is not None:
            timeline.need(timeline.tails_of(device))
        self._host_has_waited(device)

    def _finish_context(self, context: Context) -> None:
        """Same for a context."""
        timeline = self._timeline
        if timeline is not None:
            timeline.need(timeline.tails_of(context))
        self._host_has_waited(context)

    def _host_has_waited(self, waited: Stream | Context | DeviceState | None) -> None:
        """Order later calls after this, or after all if None, if accesses are compared."""
        if self._accesses is not None:
            self._accesses.host_waits_for(waited)

    def _finish_context_of(self, handle: int) -> None:
        """Complete the work of the context in which an object was made, before freeing it.

        The driver waits for no other context then: measured. Later work of another one on the
        object fails.
        """
        context = self._contexts.get(handle)
        if context is not None:
            self._finish_context(context)

    def _wait_for_context(self, context: Context) -> None:
        """Wait for all work of a context.

        Raises:
            CallError: some of it failed.
        """
        timeline = self._timeline
        if timeline is not None:
            self._wait_for(timeline.tails_of(context), context)
        self._host_has_waited(context)
        self._synchronised(context)

    def _wait_for_stream(self, stream: Stream) -> None:
        """Wait for a stream, and for the work that it would wait for.

        Raises:
            CallError: some of it failed.
        """
        timeline = self._timeline
        if timeline is not None:
            self._wait_for(timeline.tails(stream), stream.context)
        self._host_has_waited(stream)
        self._synchronised(stream.context)

    def _graph_allocation(
        self, device: DeviceState, nbytes: int, location: PoolLocation
    ) -> GraphAllocation:
        """Reserve memory at a location for a graph.

        Raises:
            CallError: CUDA_ERROR_OUT_OF_MEMORY.
        """
        if location.kind == DEVICE and not location.is_managed:
            return GraphAllocation(nbytes, location, self._devices[location.number])
        return GraphAllocation(nbytes, location, device, (self._host, self._lock))

    def _pool_location(self, location: Location | None, typename: int) -> PoolLocation:
        """Return the pool location of a location and a type of allocation.

        The codes were measured with driver 580.

        Raises:
            CallError: there are no such pools.
        """
        if location is None:
            raise invalid_value("the location of the pool is null")
        kind, number = int(location.type), int(location.id)
        is_managed = int(typename) == MANAGED
        if not is_managed and int(typename) != PINNED:
            raise invalid_value(f"memory of type {int(typename)} has no pool")
        if kind == DEVICE:
            if not 0 <= number < len(self._devices):
                raise invalid_value(f"there is no device {number} of {len(self._devices)}")
            return PoolLocation(kind, number, is_managed)
        if kind == HOST_NUMA and number:
            raise invalid_value(f"the emulated host has NUMA node 0, and no node {number}")
        if kind in (HOST, HOST_NUMA) or (is_managed and kind in (ANYWHERE, HOST_NUMA_CURRENT)):
            return PoolLocation(kind, 0, is_managed)
        raise invalid_value(f"there are no pools of memory at locations of type {kind}")

    def _wait_if_synchronous(self, *addresses: int) -> None:
        """Wait for the default stream if an address has CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.

        Raises:
            CallError: some of its work failed.
        """
        if self._timeline is None:
            return
        for address in addresses:
            device = self._device_of(address)
            piece = device.piece_at(address) if device is not None else self._host.find(address)
            if piece is not None and piece.is_synchronous:
                self._wait_for_stream(self._stream(self._thread.default_stream))
                return

    def _follow(self, stream: Stream, other: Stream) -> None:
        """Let a stream wait for the present work of another one."""
        if self._accesses is not None:
            self._accesses.wait(stream, self._accesses.now(other))
        timeline = self._timeline
        pending = [] if timeline is None else timeline.tails(other)
        if timeline is not None and pending:
            timeline.submit(stream, NodeKind.WAIT, nothing, after=pending, is_marker=True)

    def _wait_for(self, operations: Iterable[QueuedOperation], context: Context) -> None:
        self._queued.need(operations)
        self._usable(context)
        self._late_errors.raise_stored(context)

    def _let_others_see(self, event: Event) -> None:
        """Complete a record that other processes may wait for: they cannot run operations here.

        So a shared event is always reached here; waits elsewhere need nothing more.
        """
        if event.is_shared and event.operation is not None:
            need = partial(self._queued.need, [event.operation])
            if self._thread.is_nested:
                self._thread.after_this_call(partial(self._thread.within_a_call, need))
            else:
                need()

    def _is_pending(self, operations: Iterable[QueuedOperation], context: Context) -> bool:
        """Return whether some operation is not done; repeated queries come to an end.

        Raises:
            CallError: some of it failed.
        """
        if self._queued.query(operations):
            return False
        self._usable(context)
        return True

    def _synchronised(self, context: Context) -> None:
        """Release unused memory above the pool's threshold; raise stored errors.

        Raises:
            CallError: an operation was not executed.
        """
        self._late_errors.raise_stored(context)
        with context.device.lock:
            for pool in list(context.device.account.pools.values()):
                pool.synchronised()
        if self._host_pools.by_handle:
            with self._lock:
                self._host_pools.synchronised()
