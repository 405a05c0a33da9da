"""The operations of an emulator: running, queueing, recording them, and waiting for them.

An operation runs at its call, is queued, or is recorded by a capture. CUDA Driver API, "API
synchronization behavior", defines which calls wait; under "immediate" only the work of nested calls
is ever pending.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from ptx.emulate.model.grid_dependency import GridDependency

from .captures import Captures
from .contexts import Context
from .device_state import DeviceState
from .events import Event
from .handle_tables import HandleTables
from .host_memory import HostRange
from .memory_state import MemoryState
from .node_kind import NodeKind, Run
from .streams import Stream
from .thread import CallingThread
from .timeline.freed_memory import FreedMemory
from .timeline.queues import QueuedOperation, nothing
from .timeline.schedule import Schedule
from .timeline.timeline import LateErrors, Timeline

if TYPE_CHECKING:
    from .timeline.concurrent_accesses import ConcurrentAccesses


class Operations:
    """Runs, queues or records operations, and waits for them.

    Attributes:
        schedule: when operations run.
        is_immediate: whether each runs at its call.
        queue: the queued operations.
        accesses: the race check among operations; None if races are not checked.
        freed: the memory whose free is queued; None under "immediate".
        launches: numbers of the launches in another order.
    """

    __slots__ = (
        "_captures", "_handles", "_late_errors", "_lock", "_memory", "_thread", "accesses",
        "freed", "is_immediate", "launches", "queue", "schedule",
    )  # fmt: skip

    def __init__(
        self,
        schedule: Schedule,
        thread: CallingThread,
        lock: threading.RLock,
        handles: HandleTables,
        captures: Captures,
        memory: MemoryState,
        accesses: ConcurrentAccesses | None,
    ) -> None:
        self._thread, self._lock = thread, lock
        self._handles, self._captures, self._memory = handles, captures, memory
        self.schedule: Schedule = schedule
        self.is_immediate: bool = schedule.name == "immediate"
        self.accesses: ConcurrentAccesses | None = accesses
        self._late_errors = LateErrors(schedule)
        self.queue: Timeline = Timeline(schedule, self._late_errors, thread, lock)
        self.freed: FreedMemory | None = None if self.is_immediate else FreedMemory(self.queue)
        self.launches: Iterator[int] = itertools.count()

    @property
    def timeline(self) -> Timeline | None:
        """The queue of operations; None if each runs at its call.

        Under "immediate" a nested call queues, and other calls do until its work is done.
        """
        queued = self.queue
        return None if self.is_immediate and queued.is_unused else queued

    def submit(
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
            if self._captures.active:
                self._captures.reject_if_implicit(stream)
            if self.accesses is not None:
                run = self.accesses.timed(stream, kind, run, host)
            timeline = self.timeline
            if timeline is not None:
                return timeline.submit(
                    stream, kind, run, host=host, dependency=dependency, is_early=is_early
                )
            self.queue.execute(stream, run)
            return None
        with self._lock:
            self._captures.reject_if_invalid(capture)
            capture.add(stream, kind, run, host=host)
        return None

    def follow(self, stream: Stream, other: Stream) -> None:
        """Let a stream wait for the present work of another one."""
        if self.accesses is not None:
            self.accesses.wait(stream, self.accesses.now(other))
        timeline = self.timeline
        pending = [] if timeline is None else timeline.tails(other)
        if timeline is not None and pending:
            timeline.submit(stream, NodeKind.WAIT, nothing, after=pending, is_marker=True)

    def wait_for(self, operations: Iterable[QueuedOperation], context: Context) -> None:
        """Wait for operations of a context.

        Raises:
            CallError: some of them failed.
        """
        self.queue.need(operations)
        self._handles.usable(context)
        self._late_errors.raise_stored(context)

    def wait_for_context(self, context: Context) -> None:
        """Wait for all work of a context.

        Raises:
            CallError: some of it failed.
        """
        timeline = self.timeline
        if timeline is not None:
            self.wait_for(timeline.tails_of(context), context)
        self.host_has_waited(context)
        self.synchronised(context)

    def wait_for_stream(self, stream: Stream) -> None:
        """Wait for a stream, and for the work that it would wait for.

        Raises:
            CallError: some of it failed.
        """
        timeline = self.timeline
        if timeline is not None:
            self.wait_for(timeline.tails(stream), stream.context)
        self.host_has_waited(stream)
        self.synchronised(stream.context)

    def wait_if_synchronous(self, *addresses: int) -> None:
        """Wait for the default stream if an address has CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.

        Raises:
            CallError: some of its work failed.
        """
        if self.timeline is None:
            return
        for address in addresses:
            device = self._memory.devices.holding(address)
            piece = (
                device.piece_at(address) if device is not None else self._memory.host.find(address)
            )
            if piece is not None and piece.is_synchronous:
                self.wait_for_stream(self._handles.stream(self._thread.default_stream))
                return

    def is_pending(self, operations: Iterable[QueuedOperation], context: Context) -> bool:
        """Return whether some operation is not done; repeated queries come to an end.

        Raises:
            CallError: some of it failed.
        """
        if self.queue.query(operations):
            return False
        self._handles.usable(context)
        return True

    def finish_device(self, device: DeviceState) -> None:
        """Complete all work of a device; the next call raises its errors."""
        timeline = self.timeline
        if timeline is not None:
            timeline.need(timeline.tails_of(device))
        self.host_has_waited(device)

    def finish_context(self, context: Context) -> None:
        """Same for a context."""
        timeline = self.timeline
        if timeline is not None:
            timeline.need(timeline.tails_of(context))
        self.host_has_waited(context)

    def finish_context_of(self, handle: int) -> None:
        """Complete the work of the context in which an object was made, before freeing it.

        The driver waits for no other context then: measured. Later work of another one on the
        object fails.
        """
        context = self._handles.contexts.get(handle)
        if context is not None:
            self.finish_context(context)

    def host_has_waited(self, waited: Stream | Context | DeviceState | None) -> None:
        """Order later calls after this, or after all if None, if accesses are compared."""
        if self.accesses is not None:
            self.accesses.host_waits_for(waited)

    def let_others_see(self, event: Event) -> None:
        """Complete a record that other processes may wait for: they cannot run operations here.

        So a shared event is always reached here; waits elsewhere need nothing more.
        """
        if event.is_shared and event.operation is not None:
            need = partial(self.queue.need, [event.operation])
            if self._thread.is_nested:
                self._thread.after_this_call(partial(self._thread.within_a_call, need))
            else:
                need()

    def synchronised(self, context: Context) -> None:
        """Release unused memory above the pool's threshold; raise stored errors.

        Raises:
            CallError: an operation was not executed.
        """
        self._late_errors.raise_stored(context)
        with context.device.lock:
            for pool in list(context.device.account.pools.values()):
                pool.synchronised()
        if self._memory.host_pools.by_handle:
            with self._lock:
                self._memory.host_pools.synchronised()
