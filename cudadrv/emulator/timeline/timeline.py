"""The timeline: it runs the operations that are queued in an emulator's streams.

An operation waits for the one before it in its stream, and for its stream's waits. By the rules of
the legacy stream it also waits for other streams of its context. It runs when a call needs it, or
when the seed of a random order selects it, in the thread of that call. No lock is held while it
runs, so other threads may queue more meanwhile.

No collection runs while the queues are changed, as its finalizers may queue operations in the same
thread. Without the interpreter lock, finalizers may run there nevertheless: Python lets the thread
that made an object run its finalizer, at any point, if another thread dropped the object.

A signal handler or a finalizer may call in the middle of another call of its thread. Such a nested
call runs only the operations that it waits for. The wait is rejected if an outer call of its own
thread executes one of them, as it could never end. Operations that a nested call queues in the
middle of a change of the queues are admitted at the end of that change.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.exec.collection import collection_paused
from ptx.ordinary_files import opener
from ptx.standard_streams import write_error
from ptx.visible_text import visible, visible_line

from ... import border
from ...driver._api import CUresult
from ...errors import ArgumentValueError
from ..call_error import CallError, Failure
from ..call_site import shown_call_site, user_call_site
from ..node_kind import NodeKind, Run
from ..streams import NON_BLOCKING, Stream
from ..thread import CallingThread
from .host_watch import EarlyRead, HostWatch, OrderFinding, OrderWarning, early_read
from .queues import QueuedOperation, Queues, State, is_of, nothing, orders
from .schedule import OperationScheduler, Schedule, scheduler_of, with_dependencies

if TYPE_CHECKING:
    from ptx.emulate.model.grid_dependency import GridDependency

    from ..contexts import Context
    from ..device_state import DeviceState
    from ..host_memory import HostRange
    from .operation_log import OperationLog
    from .past_accesses import Numbers

# The emulator could not do it; the device still works.
_HARMLESS: Final = (CUresult.CUDA_ERROR_NOT_SUPPORTED, CUresult.CUDA_ERROR_OUT_OF_MEMORY)
_QUEUED: Final = "\n  it was queued at "
_CALLS: Final = {
    NodeKind.KERNEL: "cuLaunchKernel",
    NodeKind.COPY: "cuMemcpyAsync",
    NodeKind.SET: "cuMemsetD8Async",
    NodeKind.HOST: "cuLaunchHostFunc",
}


class LateErrors:
    """Faults that break a device, as on a GPU, and errors for the next call that waits."""

    def __init__(self, order: Schedule) -> None:
        self._order = order
        self._stored: dict[Context, CallError] = {}

    @staticmethod
    def lets_run(operation: QueuedOperation) -> bool:
        """Return whether the device still executes operations."""
        return operation.stream.context.device.fault is None

    def store(self, operation: QueuedOperation, error: CallError) -> None:
        """Store an error, and where it was queued, for a later call."""
        context = operation.stream.context
        if _QUEUED in error.text:
            return  # an error of another operation, reported before
        text = f"{error.text}{_QUEUED}{shown_call_site(operation.call_site)}"
        if self._order.name == "random":
            text += f"\n  {self._order.repeated_by}"
        if error.code in _HARMLESS or not context.device.keeps_faults:
            self._stored.setdefault(context, CallError(error.code, text, error.cause))
            return
        code = error.code
        if error.cause is None:
            # A call would be rejected; queued, it is an access to freed memory.
            code = CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
        call = _CALLS.get(operation.kind, "a queued operation")
        context.device.fault = Failure(call, code, text, error.cause)

    def raise_stored(self, context: Context) -> None:
        """Raise, once, the stored error of a context's work.

        Raises:
            CallError: an operation was not executed.
        """
        error = self._stored.pop(context, None)
        if error is not None:
            raise error


_REMEMBERED: Final = 4096
"""The environment variable with a file's name; each executed operation adds a line there."""
_HAS_INTERPRETER_LOCK: Final = "t" not in getattr(sys, "abiflags", "")
# Before the timeline's lock, never under it: a finalizer may queue an operation while its thread
# begins or ends a pause. Without the interpreter lock a pause keeps no finalizer away.
_no_collection: Final = collection_paused if _HAS_INTERPRETER_LOCK else nullcontext
# The end of an operation may come before the wait for it begins.
_LOOK_AGAIN_S: Final = 0.02
Arrivals: TypeAlias = deque[tuple[QueuedOperation, Callable[[], None]]]
"""Operations that nested calls queue in the middle of a change, with functions that insert them."""


class RunRecord:
    """The operations that ran on one emulator, stored and written to a file.

    Args:
        index: the number of the timeline in this process, which each line begins with.

    Attributes:
        trace: the file's name; "" for none.
        last: the latest operations: number, kind, stream.
    """

    def __init__(self, index: int, trace: str) -> None:
        self._index = index
        self.trace: str = trace
        self.last: deque[str] = deque(maxlen=_REMEMBERED)

    def add(self, operation: QueuedOperation) -> None:
        """Record an operation that has run."""
        text = f"{operation.number} {operation.kind.value} on stream {operation.stream.number}"
        self.last.append(text)
        if self.trace:
            try:
                with open(self.trace, "a", encoding="utf-8", opener=opener) as file:
                    file.write(f"{self._index}.{text}\t{visible_line(operation.call_site)}\n")
            except OSError as error:  # of a full disk: the operation itself has run
                self.trace = ""
                # A filter that makes it an error must not break the queues.
                write_error(f"cudadrv: {Schedule.TRACE_VARIABLE}: no more lines: {error}\n")


def trace_of_environment() -> str:
    """Return the file of the environment for lines of operations; "" for none.

    Raises:
        ArgumentValueError: it cannot be written.
    """
    trace = os.environ.get(Schedule.TRACE_VARIABLE, "").strip()
    if trace:
        try:
            with open(trace, "a", encoding="utf-8", opener=opener):
                pass
        except OSError as error:
            raise ArgumentValueError(
                f"{Schedule.TRACE_VARIABLE} is {border.shown(trace)}, which cannot be written: "
                f"{error.strerror}"
            ) from None
    return trace


class UnderWay:
    """The operations that run now; callers hold the timeline's lock.

    Args:
        lock: the timeline's lock.
        thread: the driver's state of the calling thread.
    """

    def __init__(self, lock: threading.RLock, thread: CallingThread) -> None:
        self._changed = threading.Condition(lock)
        self._thread = thread
        self._operations: list[QueuedOperation] = []

    def begin(self, operation: QueuedOperation, depth: int = 0) -> QueuedOperation:
        """Record that the calling thread runs an operation, or has begun it at a `depth`."""
        operation.state, operation.thread = State.RUNNING, threading.get_ident()
        operation.depth = depth or self._thread.depth
        self._operations.append(operation)
        return operation

    def end(self, operation: QueuedOperation, state: State) -> None:
        """Record that it is done, or waits for its next turn."""
        operation.state = state
        self._operations.remove(operation)
        self._changed.notify_all()

    def wait(self) -> bool:
        """Wait until another thread may have ended one; False if this thread must not wait.

        A nested call may hold an operation that the others need.
        """
        if self._thread.is_nested or self.of_this_thread():
            return False
        self._changed.wait(_LOOK_AGAIN_S)
        return True

    def interrupted(self) -> list[QueuedOperation]:
        """Return operations of this thread that an interrupt ended; not those of outer calls."""
        depth = self._thread.depth
        return [operation for operation in self.of_this_thread() if depth <= operation.depth]

    def repair(self, unfinished: Iterable[QueuedOperation]) -> None:
        """Let states agree with the operations that run, where an exception came in between."""
        self._operations = [e for e in self._operations if e.state is State.RUNNING]
        for operation in unfinished:
            if operation.state is State.RUNNING and operation not in self._operations:
                operation.state = State.QUEUED

    def of_this_thread(self) -> list[QueuedOperation]:
        """Return operations that the calling thread runs, or was to run when an interrupt came."""
        this_thread = threading.get_ident()
        return [operation for operation in self._operations if operation.thread == this_thread]


class _Changes:
    """Nested changes of the queues. The end of the outermost admits arrivals.

    The first change after one that an exception has interrupted begins with `repair`.
    """

    def __init__(
        self, arrivals: Arrivals, thread: CallingThread, repair: Callable[[], None]
    ) -> None:
        self._arrivals = arrivals
        self._thread = thread
        self._repair = repair
        self._depth = 0
        self._is_complete = True

    @property
    def are_under_way(self) -> bool:
        """Return whether there is one; of this thread, as its lock is held."""
        return self._depth > 0

    def forget(self) -> None:
        """Forget a change that an exception interrupted, in a call that is in no change."""
        if not self._thread.is_nested:
            self._depth = 0

    def __enter__(self) -> None:
        self.forget()
        self._depth += 1
        if self._depth == 1:
            if not self._is_complete:
                self._repair()
            self._is_complete = False

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._depth > 1:
            self._depth -= 1
            return
        try:
            while self._depth and kind is None:
                while self._arrivals:
                    self._arrivals[0][1]()
                    self._arrivals.popleft()
                self._is_complete = True
                self._depth = 0
                self._depth = int(bool(self._arrivals))  # more may come until the previous line
        finally:
            self._depth = 0


class Timeline:
    """The queued operations of an emulator.

    Args:
        order: when they run. Under "immediate" only operations of nested calls are queued, and
            those of others until these are done.
        errors: stores the errors of failed operations.
        thread: the driver's state of the calling thread.
        lock: the emulator's. A finalizer takes it under itself in the middle of any call. With a
            second lock for the queues, two threads could wait for each other.

    Attributes:
        scheduler: selects the operation that runs next.
        findings: the host's changes of memory in use.
        executed: the latest executed operations, in order: number, kind, stream.
        log: records operations. While there is one, or a file of the environment, all are queued,
            also under "immediate".
    """

    _indices: ClassVar[Iterator[int]] = itertools.count()

    def __init__(
        self, order: Schedule, errors: LateErrors, thread: CallingThread, lock: threading.RLock
    ) -> None:
        self.order = order
        self._is_eager = order.name == "immediate"
        trace = trace_of_environment()
        index = next(self._indices) if trace or not self._is_eager else -1
        self.scheduler: OperationScheduler = scheduler_of(order, index)
        self._record = RunRecord(index, trace)
        self.findings: list[OrderFinding] = []
        self.executed: deque[str] = self._record.last
        self.log: OperationLog | None = None
        self._errors = errors
        self._lock = lock
        self._queues = Queues()
        self._arrivals: Arrivals = deque()
        self._changes = _Changes(self._arrivals, thread, self._repair)
        self._thread = thread
        self._under_way = UnderWay(self._lock, thread)
        self._watch = HostWatch(order.repeated_by)

    @property
    def is_unused(self) -> bool:
        """Return whether nothing is queued nor logged, and the call is not nested."""
        return (
            self._queues.is_empty
            and not self._arrivals
            and self._thread.depth < 2
            and self.log is None
            and not self._record.trace
        )

    @property
    def is_nested(self) -> bool:
        """Return whether the call is in the middle of another one of its thread."""
        return self._thread.is_nested

    # Putting operations into the queues.

    def submit(
        self,
        stream: Stream,
        kind: NodeKind,
        run: Run,
        *,
        after: Iterable[QueuedOperation] = (),
        host: tuple[HostRange, ...] = (),
        is_marker: bool = False,
        always: bool = False,
        dependency: GridDependency | None = None,
        is_early: bool = False,
    ) -> QueuedOperation:
        """Queue an operation; it waits for `after` in addition to its stream's order.

        A kernel has a `dependency`, and `is_early` if it may begin before the end of the previous
        kernel.
        """
        new = QueuedOperation(kind, stream, run, user_call_site(), is_marker, always, host)
        findings: list[OrderFinding] = []

        def add() -> None:
            if self._watch.is_watching:
                findings.extend(self._watch.look_often(new.call_site))
            self._prepare(new, (*self._queued_last(stream), *after))
            findings.extend(self._early_reads_of(new))
            if dependency is not None:
                self._queues.depend(new, dependency, is_early=is_early)
            self._add([new])

        self._admit(new, add)
        if findings:
            self._report(findings)
        self.proceed(stream)
        return new

    def submit_together(
        self,
        stream: Stream,
        parts: Callable[[Callable[..., QueuedOperation]], None],
        after: Iterable[QueuedOperation],
        end: Run,
        begin: Run = nothing,
    ) -> QueuedOperation:
        """Queue operations with an order of their own, such as a graph's, as one of the stream.

        `parts` calls its argument for each: kind, function, dependencies, host memory. `begin` runs
        before all of them; `end` after them, on a broken device too. Returns the stream's last
        operation.
        """
        call_site = user_call_site()
        start, last = (
            QueuedOperation(NodeKind.LAUNCH, stream, run, call_site, is_marker=True, always=True)
            for run in (begin, end)
        )

        def add_all() -> None:
            self._prepare(start, (*self._queued_last(stream), *after))
            added = [start]

            def add(
                kind: NodeKind,
                run: Run,
                waits: tuple[QueuedOperation, ...],
                host: tuple[HostRange, ...] = (),
            ) -> QueuedOperation:
                new = QueuedOperation(kind, stream, run, call_site, host=host)
                self._prepare(new, (start, *waits))
                added.append(new)
                return new

            parts(add)
            self._prepare(last, added)
            self._add([*added, last])

        self._admit(last, add_all)
        self.proceed(stream)
        return last

    def _prepare(self, new: QueuedOperation, dependencies: Iterable[QueuedOperation]) -> None:
        """Prepare an operation for its queue, within a change."""
        if self.log is not None:
            dependencies = tuple(dependencies)
            self.log.queued(new, dependencies)
        self._queues.prepare(new, dependencies)

    def _add(self, operations: Sequence[QueuedOperation]) -> None:
        """Put prepared operations into their queue, all or none."""
        self._queues.add(operations)
        for new in operations:
            self._watch.begin(new)

    def tails(self, stream: Stream) -> list[QueuedOperation]:
        """Return the last operation of each queue that new work in a stream comes after."""
        with self._lock:
            arrived = [
                operation
                for operation, _ in list(self._arrivals)
                if orders(stream, operation.stream)
            ]
            return self._queued_last(stream) + arrived

    def tails_of(self, owner: Context | DeviceState) -> list[QueuedOperation]:
        """Return the last operation of each queue of a context or a device."""
        with self._lock:
            below = self._below()
            further = [operation for operation, _ in list(self._arrivals)] + (
                [] if below is None else [below]
            )
            return self._queues.tails_of(owner) + [e for e in further if is_of(e.stream, owner)]

    def comes_after(self, stream: Stream, operation: QueuedOperation) -> bool:
        """Return whether all later work of a stream waits for an operation."""
        with self._lock:
            return operation.is_done or operation in with_dependencies(self.tails(stream))

    def submit_after_all(self, context: Context, run: Run) -> None:
        """Call a function for a device once all its present work is done."""
        own_stream = Stream(0, context, NON_BLOCKING, 0)
        new = QueuedOperation(NodeKind.LAUNCH, own_stream, run, "", is_marker=True, always=True)

        def add() -> None:
            self._prepare(new, self._queues.tails_of(context.device))
            self._add([new])

        self._admit(new, add)
        self.proceed()

    # Queued operations.

    def pending(self) -> list[QueuedOperation]:
        """Return operations that have not run, in the order of their calls; no markers."""
        with self._lock:
            return self._queues.pending()

    def host_reads(self, array: NDArray[Any], /) -> None:
        """Record that the library reads a host array for its user."""
        if self._queues.is_empty or not array.size:
            return
        from .past_accesses import dense_parts_of  # queued work and the race check need it

        call_site, ranges = user_call_site(), dense_parts_of(array)
        findings = [self._early_read(copy, ranges, call_site) for copy in self.pending()]
        self._report([finding for finding in findings if finding is not None])

    def _early_reads_of(self, new: QueuedOperation) -> Iterator[OrderFinding]:
        """Yield the host memory that a new operation reads before the copy to it has run."""
        read = [e for e in new.host if not e.is_written and e.is_watched]
        if not read:
            return
        ranges = np.array(
            [(host_range.address, host_range.nbytes) for host_range in read], np.int64
        )
        ancestors = with_dependencies([new])
        for copy in self._queues.pending():
            early = self._early_read(copy, ranges, new.call_site, is_queued=True)
            if early is not None and copy not in ancestors:
                yield early

    def _early_read(
        self, copy: QueuedOperation, ranges: Numbers, call_site: str, *, is_queued: bool = False
    ) -> EarlyRead | None:
        return early_read(copy, ranges, call_site, self.order.repeated_by, is_queued=is_queued)

    # Calls in the middle of another one.

    def _admit(self, new: QueuedOperation, add: Callable[[], None]) -> None:
        """Let `add` insert a new operation, after the arrivals."""
        with _no_collection(), self._lock:
            self._changes.forget()
            try:
                self._arrivals.append((new, add))
                if not self._changes.are_under_way:
                    with self._changes:
                        pass
            except BaseException:
                self._abandon(new)
                raise
        if self._is_eager and self.is_nested:
            self._thread.after_this_call(partial(self._thread.within_a_call, self.proceed))

    def _abandon(self, new: QueuedOperation) -> None:
        """Let nothing wait for an operation whose call raises, unless it is in its queue."""
        for arrival in list(self._arrivals):
            if arrival[0] is new:
                self._arrivals.remove(arrival)
        if not self._queues.has(new):
            new.state = State.DONE

    def _repair(self) -> None:
        """Complete a change that an exception has interrupted; the lock is held."""
        if self._arrivals and self._queues.has(self._arrivals[0][0]):
            self._arrivals.popleft()
        self._under_way.repair(self._queues.unfinished())
        self._queues.repair()
        self._watch.repair()

    def _queued_last(self, stream: Stream) -> list[QueuedOperation]:
        """Return the operations that new work in a stream comes after now; the lock is held."""
        last_operations, below = self._queues.tails(stream), self._below()
        return (
            last_operations
            if below is None or not orders(stream, below.stream)
            else [*last_operations, below]
        )

    def _below(self) -> QueuedOperation | None:
        """Return the operation that this thread's outer call executes; the lock is held."""
        thread = self._thread
        stream = thread.executing
        if stream is None or not thread.is_nested:
            return None
        if thread.below is None or thread.below.is_done:
            thread.below = QueuedOperation(NodeKind.LAUNCH, stream, nothing, "", is_marker=True)
            self._under_way.begin(thread.below, depth=1)
        return thread.below

    def execute(self, stream: Stream, run: Callable[[], object]) -> None:
        """Run an operation at its call, before operations that nested calls queue meanwhile."""
        thread = self._thread
        try:
            thread.executing = stream
            run()
        finally:
            thread.executing = None
            if thread.below is not None:
                below, thread.below = thread.below, None
                self._end(below)

    # Running operations.

    def proceed(self, stream: Stream | None = None) -> None:
        """Run markers, steps of the seed and the first of a full queue; nothing is needed."""
        if self.is_nested:
            return
        while self._queues.markers and (marker := self._take_marker()) is not None:
            self._run(marker)
        while (operation := self._take_unneeded()) is not None:
            self._run(operation)
        if stream is not None:
            self.need(self._queues.first_if_full(stream))

    def need(self, operations: Iterable[QueuedOperation]) -> None:
        """Run these and their dependencies; wait for those that another thread runs.

        Raises:
            CallError: the call is nested, and waits for an operation of its outer call.
        """
        pending = [operation for operation in operations if not operation.is_done]
        if not pending:
            return
        needed = self._needed(pending)
        if needed is None:
            raise _nested_wait()
        widens = not self.is_nested and self.scheduler.widens()
        while (operation := self._next(pending, needed, widens)) is not None:
            self._run(operation)
        if not all(operation.is_done for operation in pending):
            raise _nested_wait()

    def reject_to_wait(self, stream: Stream) -> None:
        """Reject a call that would queue an operation in a stream, and wait for it.

        Raises:
            CallError: the call is nested, and its outer call executes an operation of the stream.
        """
        if self.is_nested and self._needed(self.tails(stream)) is None:
            raise _nested_wait()

    def _needed(self, pending: list[QueuedOperation]) -> set[QueuedOperation] | None:
        """Return the operations to run for these; None if a nested call interrupted one of them."""
        with self._lock:
            self._changes.forget()
            if self._changes.are_under_way:
                return None
            interrupted = self._under_way.interrupted()
        for operation in interrupted:
            self._end_interrupted(operation)
        with self._lock:
            needed = with_dependencies(pending)
            running = self._under_way.of_this_thread()
            return None if self.is_nested and needed.intersection(running) else needed

    def query(self, operations: Iterable[QueuedOperation]) -> bool:
        """Return whether these are done; a needed operation runs before or after the check.

        So a query of pending work may return False, and a loop of queries ends.
        """
        pending = [operation for operation in operations if not operation.is_done]
        if not pending:
            return True
        needed = self._needed(pending)
        if needed is None:
            return False
        runs_first = self.scheduler.queries()
        operation = self._take(needed, False)
        if operation is not None:
            self._run(operation)
        return runs_first and all(pending_operation.is_done for pending_operation in pending)

    def _next(
        self, pending: list[QueuedOperation], needed: set[QueuedOperation], widens: bool
    ) -> QueuedOperation | None:
        """Return the next operation to run; None once pending ones are done, or cannot run here."""
        while not all(pending_operation.is_done for pending_operation in pending):
            operation = self._take(needed, widens)
            if operation is not None:
                return operation
            with self._lock:
                if not self._under_way.wait():
                    return None
        return None

    def _take(self, needed: set[QueuedOperation], widens: bool) -> QueuedOperation | None:
        """Return an operation that may run now, among the needed ones unless it `widens`.

        Kernels that seem to wait for others' writes let all others run as well.
        """
        with _no_collection(), self._lock, self._changes:
            marker = self._first_marker()
            if marker is not None:
                return marker
            ready = self._queues.ready
            if not widens:
                ready = [operation for operation in ready if operation in needed]
            if not ready:
                return None
            if all(operation.seems_to_wait for operation in ready):
                ready = self._queues.ready
            operation = self.scheduler.pick(ready, needed)
            self._queues.ready.remove(operation)
            return self._under_way.begin(operation)

    def _take_unneeded(self) -> QueuedOperation | None:
        """Return an operation that nothing needs, if the scheduler selects one."""
        with _no_collection(), self._lock, self._changes:
            marker = self._first_marker()
            if marker is not None:
                return marker
            operation = (
                self.scheduler.pick_unneeded(self._queues.ready) if self._queues.ready else None
            )
            if operation is None:
                return None
            self._queues.ready.remove(operation)
            return self._under_way.begin(operation)

    def _take_marker(self) -> QueuedOperation | None:
        with _no_collection(), self._lock, self._changes:
            return self._first_marker()

    def _first_marker(self) -> QueuedOperation | None:
        """Begin a marker, within a change."""
        markers = self._queues.markers
        return self._under_way.begin(markers.popleft()) if markers else None

    # The execution of an operation.

    def _run(self, operation: QueuedOperation) -> None:
        """Run an operation to its end, or turns of it until others may continue."""
        findings: list[OrderFinding] = []
        is_over = True
        try:
            if operation.always or self._errors.lets_run(operation):
                if self.log is not None:
                    with self._lock:
                        self.log.began(operation)
                if operation.turns is None:
                    if self._watch.is_needed(operation):
                        with _no_collection(), self._lock, self._changes:
                            findings += self._watch.run(operation, user_call_site())
                    operation.has_begun = True
                    operation.turns = operation.run()
                is_over = self._runs_to_end(operation)
        except CallError as error:
            self._errors.store(operation, error)
        except BaseException as error:
            if isinstance(error, MemoryError) or not isinstance(error, Exception):
                is_over = not operation.can_begin_again  # it is no error of the operation
            raise
        finally:
            if is_over:
                self._end(operation)
            else:
                self._pause(operation)
        if findings:
            self._report(findings)

    def _runs_to_end(self, operation: QueuedOperation) -> bool:
        """Run the remaining turns, unless others are to continue before the last one."""
        for waits in operation.turns or ():
            operation.waits += waits
            if self._gives_way_to_dependents(operation):
                return False
            with self._lock:
                if self.scheduler.may_preempt(operation, self._queues.ready):
                    return False
        return True

    def _gives_way_to_dependents(self, operation: QueuedOperation) -> bool:
        """Return whether it has let the next launch begin, which is to continue instead."""
        dependency = operation.dependency
        if dependency is None or not dependency.permits_dependents:
            return False
        with _no_collection(), self._lock, self._changes:
            return self._queues.start_dependents(operation) and self.scheduler.flips()

    def _pause(self, operation: QueuedOperation) -> None:
        """Pause until it is selected for its next turn."""
        with _no_collection(), self._lock, self._changes:
            self._under_way.end(operation, State.QUEUED)
            self._queues.make_ready(operation)

    def _end_interrupted(self, operation: QueuedOperation) -> None:
        """End an operation that an interrupt has ended, or let it begin again."""
        if operation.can_begin_again and not operation.is_done:
            self._pause(operation)
        else:
            self._end(operation)

    def _end(self, operation: QueuedOperation) -> None:
        """Record that an operation is done; operations that waited for it alone are ready."""
        with _no_collection(), self._lock, self._changes:
            if operation.is_done:
                return
            turns, operation.turns = operation.turns, None
            operation.ended_ns = time.perf_counter_ns()
            if operation.dependency is not None:
                operation.dependency.is_done = True
            self._under_way.end(operation, State.DONE)
            if self.log is not None:
                self.log.ended(operation)
            self._watch.end(operation)
            if not operation.is_marker:
                self._record.add(operation)
            self._queues.retire(operation)
        if turns is not None:
            turns.close()

    def _report(self, findings: list[OrderFinding]) -> None:
        """Store findings, and warn of them: the call itself has not failed."""
        self.findings += findings
        for finding in findings:
            warnings.warn(visible(str(finding)), OrderWarning, stacklevel=2)


def _nested_wait() -> CallError:
    """Return the error of a nested call's wait: its own thread would have to continue first."""
    return CallError(
        CUresult.CUDA_ERROR_NOT_PERMITTED,
        "a signal handler cannot wait for what its own thread is in the middle of on the emulator\n"
        "  let the handler queue its work, and wait for that after it has returned; a GPU would "
        "wait, as it runs beside the host",
    )
