"""What makes the operations run that are queued in an emulator's streams.

An operation waits for the one before it in its stream, for what its stream waits for, and, by the
rules of the legacy stream, for other streams of its context. It runs when a call needs it, or when
the seed of a random order says so, in the thread of that call. No lock is held while it runs, so
that other threads may queue more meanwhile.

No collection comes while the queues are changed, as the finalizers that it calls may queue more in
the same thread.
"""

from __future__ import annotations

import itertools
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, ClassVar

from ptx.emulate.exec.collection import collection_paused

from ..node_kind import NodeKind, Run
from ..origin import caller
from ..refusal import Refusal
from ..streams import NON_BLOCKING, Stream
from ..thread import CallingThread
from .choice import Choice, Order, choice_of, with_what_it_waits_for
from .host_watch import HostChange, HostWatch, OrderWarning
from .operation import Operation, State, nothing
from .queues import Queues
from .run_record import RunRecord
from .under_way import UnderWay

if TYPE_CHECKING:
    from ptx.emulate.model.grid_dependency import GridDependency

    from ..contexts import Context
    from ..emulated_device import DeviceState
    from ..host_memory import HostRange
    from .late_errors import LateErrors


class Timeline:
    """The queued operations of an emulator.

    Args:
        order: late or random.
        errors: what becomes of an operation that fails.
        thread: what the driver keeps for the calling thread.

    Attributes:
        choice: which operation is next.
        findings: what the host did to memory in use.
        executed: the last operations that ran, in their order: number, kind, stream.
    """

    _indices: ClassVar[Iterator[int]] = itertools.count()

    def __init__(self, order: Order, errors: LateErrors, thread: CallingThread) -> None:
        self.order = order
        index = next(self._indices)
        self.choice: Choice = choice_of(order, index)
        self._record = RunRecord(index)
        self.findings: list[HostChange] = []
        self.executed: deque[str] = self._record.last
        self._errors = errors
        self._lock = threading.RLock()
        self._queues = Queues()
        self._under_way = UnderWay(self._lock, thread)
        self._watch = HostWatch(order.repeated_by)

    # What is put into the queues.

    def submit(
        self,
        stream: Stream,
        kind: NodeKind,
        run: Run,
        *,
        after: Iterable[Operation] = (),
        host: tuple[HostRange, ...] = (),
        is_marker: bool = False,
        always: bool = False,
        dependency: GridDependency | None = None,
        is_early: bool = False,
    ) -> Operation:
        """Queue an operation; `after` is what it waits for beside what its stream says.

        A kernel has a `dependency`, and `is_early` where it may begin before the end of the kernel
        ahead of it.
        """
        place = caller()
        with collection_paused(), self._lock:
            findings = self._watch.look_often(place) if self._watch.is_watching else []
            before = (*self.tails(stream), *after)
            operation = self._add(stream, kind, run, place, before, host, is_marker, always)
            if dependency is not None:
                self._queues.depend(operation, dependency, is_early=is_early)
        if findings:
            self._tell(findings)
        self.proceed(stream)
        return operation

    def submit_together(
        self,
        stream: Stream,
        parts: Callable[[Callable[..., Operation]], None],
        after: Iterable[Operation],
        end: Run,
        begin: Run = nothing,
    ) -> Operation:
        """Queue operations with an order of their own, such as a graph's, as one of the stream.

        `parts` calls what it is given for each: kind, function, what it waits for, host memory.
        `begin` runs before all of them; `end` after them, on a broken device too. Gives what is the
        stream's last.
        """
        place = caller()
        with collection_paused(), self._lock:
            before = (*self.tails(stream), *after)
            start = self._add(
                stream, NodeKind.LAUNCH, begin, place, before, is_marker=True, always=True
            )
            added = [start]

            def add(
                kind: NodeKind,
                run: Run,
                waits: tuple[Operation, ...],
                host: tuple[HostRange, ...] = (),
            ) -> Operation:
                new = self._add(stream, kind, run, place, (start, *waits), host)
                added.append(new)
                return new

            parts(add)
            last = self._add(
                stream, NodeKind.LAUNCH, end, place, tuple(added), is_marker=True, always=True
            )
        self.proceed(stream)
        return last

    def _add(
        self,
        stream: Stream,
        kind: NodeKind,
        run: Run,
        place: str,
        before: Iterable[Operation],
        host: tuple[HostRange, ...] = (),
        is_marker: bool = False,
        always: bool = False,
    ) -> Operation:
        """The lock is held."""
        new = self._queues.add(stream, kind, run, place, before, host, is_marker, always)
        self._watch.begin(new)
        return new

    def tails(self, stream: Stream) -> list[Operation]:
        """What comes last before anything new in a stream, of each queue that counts."""
        with self._lock:
            return self._queues.tails(stream)

    def tails_of(self, owner: Context | DeviceState) -> list[Operation]:
        """The last operation of each queue of a context or a device."""
        with self._lock:
            return self._queues.tails_of(owner)

    def comes_after(self, stream: Stream, operation: Operation) -> bool:
        """Whether all that a stream does from now on waits for an operation."""
        with self._lock:
            return operation.is_done or operation in with_what_it_waits_for(self.tails(stream))

    def submit_after_all(self, context: Context, run: Run) -> None:
        """Do something for a device once all that is queued on it now is done."""
        with collection_paused(), self._lock:
            apart = Stream(0, context, NON_BLOCKING, 0)
            before = self.tails_of(context.device)
            self._add(apart, NodeKind.LAUNCH, run, "", before, is_marker=True, always=True)
        self.proceed()

    # What makes them run.

    def proceed(self, stream: Stream | None = None) -> None:
        """What a call does that needs nothing: markers, steps of the seed, room in a full queue."""
        while self._queues.markers and (marker := self._take_marker()) is not None:
            self._run(marker)
        while (operation := self._take_volunteer()) is not None:
            self._run(operation)
        if stream is not None:
            self.need(self._queues.first_if_full(stream))

    def need(self, wanted: Iterable[Operation]) -> None:
        """Run what these need, and them; wait for what another thread is running."""
        pending = [each for each in wanted if not each.is_done]
        if not pending:
            return
        with self._lock:
            self._end_interrupted()
            needed = with_what_it_waits_for(pending)
        widens = self.choice.widens()
        while (operation := self._next(pending, needed, widens)) is not None:
            self._run(operation)

    def query(self, wanted: Iterable[Operation]) -> bool:
        """Whether these are done; something that they need runs before or after the look.

        So a query of pending work may say no, and a loop of queries ends.
        """
        pending = [each for each in wanted if not each.is_done]
        if not pending:
            return True
        with self._lock:
            self._end_interrupted()
            needed = with_what_it_waits_for(pending)
        runs_first = self.choice.queries()
        operation = self._take(needed, False)
        if operation is not None:
            self._run(operation)
        return runs_first and all(each.is_done for each in pending)

    def _next(
        self, pending: list[Operation], needed: set[Operation], widens: bool
    ) -> Operation | None:
        """What to run next, taken; None once the pending ones are done, or cannot be from here."""
        while not all(each.is_done for each in pending):
            operation = self._take(needed, widens)
            if operation is not None:
                return operation
            with self._lock:
                if not self._under_way.wait():
                    return None
        return None

    def _take(self, needed: set[Operation], widens: bool) -> Operation | None:
        """An operation that may run now, among those needed unless it `widens`.

        Kernels that seem to wait for what others write let all others run as well.
        """
        with collection_paused(), self._lock:
            marker = self._take_marker()
            if marker is not None:
                return marker
            ready = self._queues.ready
            if not widens:
                ready = [each for each in ready if each in needed]
            if not ready:
                return None
            if all(each.seems_to_wait for each in ready):
                ready = self._queues.ready
            operation = self.choice.pick(ready, needed)
            self._queues.ready.remove(operation)
            return self._under_way.begin(operation)

    def _take_volunteer(self) -> Operation | None:
        """What runs though nothing needs it, if anything does."""
        with collection_paused(), self._lock:
            marker = self._take_marker()
            if marker is not None:
                return marker
            operation = self.choice.volunteer(self._queues.ready) if self._queues.ready else None
            if operation is None:
                return None
            self._queues.ready.remove(operation)
            return self._under_way.begin(operation)

    def _take_marker(self) -> Operation | None:
        with collection_paused(), self._lock:
            markers = self._queues.markers
            return self._under_way.begin(markers.popleft()) if markers else None

    # How one runs.

    def _run(self, operation: Operation) -> None:
        """Run an operation to its end, or turns of it until others may go on."""
        findings: list[HostChange] = []
        is_over = True
        try:
            if operation.always or self._errors.lets_run(operation):
                if operation.turns is None:
                    if self._watch.is_needed(operation):
                        with collection_paused(), self._lock:
                            findings = self._watch.run(operation, caller())
                    operation.turns = operation.run()
                is_over = self._goes_on_to_its_end(operation)
        except Refusal as refusal:
            self._errors.keep(operation, refusal)
        finally:
            if is_over:
                self._end(operation)
            else:
                self._pause(operation)
        if findings:
            self._tell(findings)

    def _goes_on_to_its_end(self, operation: Operation) -> bool:
        """Run the turns that are left, unless others are to go on before the last one."""
        for waits in operation.turns or ():
            operation.waits += waits
            if self._gives_way_to_dependents(operation):
                return False
            with self._lock:
                if self.choice.pauses(operation, self._queues.ready):
                    return False
        return True

    def _gives_way_to_dependents(self, operation: Operation) -> bool:
        """Whether it has let the next launch begin, which is to go on instead."""
        dependency = operation.dependency
        if dependency is None or not dependency.lets_go:
            return False
        with collection_paused(), self._lock:
            return self._queues.let_go(operation) and self.choice.flips()

    def _pause(self, operation: Operation) -> None:
        """Its next turn comes when it is chosen again."""
        with collection_paused(), self._lock:
            self._under_way.end(operation, State.QUEUED)
            self._queues.ready.append(operation)

    def _end(self, operation: Operation) -> None:
        """An operation is done, and what waited for it alone is ready."""
        with collection_paused(), self._lock:
            if operation.is_done:
                return
            turns, operation.turns = operation.turns, None
            operation.ended_ns = time.perf_counter_ns()
            if operation.dependency is not None:
                operation.dependency.is_done = True
            self._under_way.end(operation, State.DONE)
            self._watch.end(operation)
            if not operation.is_marker:
                self._record.add(operation)
            self._queues.retire(operation)
        if turns is not None:
            turns.close()

    def _end_interrupted(self) -> None:
        """End what an interrupt broke off in this thread, unless it is still under way below."""
        for operation in self._under_way.interrupted():
            self._end(operation)

    def _tell(self, findings: list[HostChange]) -> None:
        """Keep findings, and warn of them: the call itself has not failed."""
        self.findings += findings
        for finding in findings:
            warnings.warn(str(finding), OrderWarning, stacklevel=2)
