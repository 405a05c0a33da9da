"""Queues of an emulator's streams, and the operations that are ready."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from ..call_site import shown_call_site
from ..node_kind import NodeKind, Run
from ..streams import Stream

if TYPE_CHECKING:
    from ptx.emulate.exec.order.ordered_launch import Turns
    from ptx.emulate.model.grid_dependency import GridDependency

    from ..contexts import Context
    from ..device_state import DeviceState
    from ..host_memory import HostRange

_MANY_TURNS: Final = 8
_REPEATABLE: Final = (NodeKind.COPY, NodeKind.SET, NodeKind.ALLOC)


class State(Enum):
    """The progress of an operation."""

    QUEUED = 0
    RUNNING = 1
    DONE = 2


@dataclass(eq=False, repr=False, slots=True)
class QueuedOperation:
    """An operation that a call put into the queue of a stream.

    Attributes:
        number: counts the operations of an emulator in their order; 0 before it is in its queue.
        call_site: file and line of the call.
        before: the operations it waits for; empty once it is done, so that no chain of the past
            stays.
        after: the operations that wait for it.
        missing: how many of `before` are not done.
        is_marker: whether it only marks that others are done, and so runs as soon as they are.
        always: whether it runs on a broken device too.
        host: the host memory that it reads and writes, as far as that is known.
        has_begun: whether its function was called.
        thread: the thread that runs it.
        turns: its remaining turns, if it runs turn by turn.
        depth: the nesting depth of the calls of its thread that began it.
        waits: how many of its turns have left blocks that may wait for others' writes.
        ended_ns: host clock when it was done.
        dependency: how a kernel and adjacent launches synchronise.
        early_after: the kernel before whose end it may begin, with that kernel's permission.
    """

    kind: NodeKind
    stream: Stream
    run: Run
    call_site: str
    is_marker: bool = False
    always: bool = False
    host: tuple[HostRange, ...] = ()
    number: int = 0
    state: State = State.QUEUED
    missing: int = 0
    has_begun: bool = False
    thread: int = 0
    turns: Turns | None = None
    depth: int = 0
    waits: int = 0
    ended_ns: int | None = None
    before: tuple[QueuedOperation, ...] = ()
    after: list[QueuedOperation] = field(default_factory=list)
    dependency: GridDependency | None = None
    early_after: QueuedOperation | None = None

    def __str__(self) -> str:
        queued_at = f", queued at {shown_call_site(self.call_site)}" if self.call_site else ""
        return f"{self.kind.value} {self.number}{queued_at}"

    @property
    def text(self) -> str:
        """The text of `str`, and the present contents of host memory that it is still to write."""
        lines = [str(self)]
        lines += [
            f"  its destination, {host_range.nbytes} bytes of host memory at "
            f"{host_range.address:#x}, still holds\n  {host_range.contents}"
            for host_range in self.host
            if host_range.is_written and host_range.piece is not None
        ]
        return "\n".join(lines)

    @property
    def seems_to_wait(self) -> bool:
        """Return whether it has had many turns and still has blocks that may wait for others."""
        return self.waits >= _MANY_TURNS

    @property
    def can_begin_again(self) -> bool:
        """Return whether it can run after an interrupt has ended it.

        A kernel in the middle cannot: its threads would do the first part twice.
        """
        return not self.has_begun or self.kind in _REPEATABLE

    @property
    def is_done(self) -> bool:
        """Whether it ran, or was abandoned on a broken device."""
        return self.state is State.DONE


def nothing() -> None:
    """Do nothing: the function of a marker, and of an operation that is done."""


# A call that adds to a full queue waits, as the driver's do.
QUEUE_LENGTH: Final = 1024


class Queues:
    """The unfinished operations, by stream; the timeline's lock is held over each call.

    The queues, and each operation's `state` and `before`, are what is known. The rest is derived
    from them: `after` and `missing` of the operations, `ready` and `markers`. A call changes one
    of the former in one step, and then the rest. If an exception comes in between, `repair`
    derives the rest again.

    Attributes:
        ready: operations that wait for nothing, and are not running.
        markers: the same for markers.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._stream_numbers = itertools.count(1)
        self._of: dict[Stream, deque[QueuedOperation]] = {}
        self.ready: list[QueuedOperation] = []
        self.markers: deque[QueuedOperation] = deque()

    @property
    def is_empty(self) -> bool:
        """Whether all operations are done; it needs no lock."""
        return not self._of

    def prepare(self, new: QueuedOperation, dependencies: Iterable[QueuedOperation]) -> None:
        """Give a new operation its number and its dependencies."""
        stream = new.stream
        new.number = next(self._numbers)
        new.before = tuple(
            dict.fromkeys(earlier for earlier in dependencies if not earlier.is_done)
        )
        if not stream.number and not new.is_marker:
            stream.number = next(self._stream_numbers)

    def add(self, operations: Sequence[QueuedOperation]) -> None:
        """Put prepared operations into the queue of their stream, all or none."""
        self._of.setdefault(operations[0].stream, deque()).extend(operations)
        for new in operations:
            for earlier in new.before:
                earlier.after.append(new)
            new.missing = len(new.before)
            if not new.missing:
                self.make_ready(new)

    def has(self, operation: QueuedOperation) -> bool:
        """Return whether an operation is in the queue of its stream."""
        return operation in self._of.get(operation.stream, ())

    def unfinished(self) -> list[QueuedOperation]:
        """Return the unfinished operations of all queues."""
        return [
            operation
            for queue in list(self._of.values())
            for operation in queue
            if not operation.is_done
        ]

    def repair(self) -> None:
        """Derive again what an exception may have left behind the queues and states."""
        operations = self.unfinished()
        self._of = {}
        for operation in operations:
            self._of.setdefault(operation.stream, deque()).append(operation)
            operation.after = []
        for operation in operations:
            operation.before = tuple(e for e in operation.before if not e.is_done)
            operation.missing = len(operation.before)
            for earlier in operation.before:
                earlier.after.append(operation)
        self.ready, self.markers = [], deque()
        for operation in operations:
            if operation.state is State.QUEUED and not operation.missing:
                self.make_ready(operation)

    def make_ready(self, operation: QueuedOperation) -> None:
        """Let an operation run that waits for nothing."""
        (self.markers if operation.is_marker else self.ready).append(operation)

    def depend(
        self, operation: QueuedOperation, dependency: GridDependency, *, is_early: bool
    ) -> None:
        """Record a prepared kernel; `is_early`: it may begin before the end of the previous one."""
        operation.dependency = dependency
        queue = self._of.get(operation.stream)
        ahead = queue[-1] if queue else None
        if is_early and ahead is not None and ahead.dependency and ahead in operation.before:
            operation.early_after = ahead
            dependency.ahead = ahead.dependency

    def start_dependents(self, operation: QueuedOperation) -> bool:
        """Let launches begin that wait for a kernel's permission; return whether any did."""
        early = [launch for launch in operation.after if launch.early_after is operation]
        for launch in early:
            launch.before = tuple(e for e in launch.before if e is not operation)
            operation.after.remove(launch)
            launch.missing -= 1
            if not launch.missing:
                self.make_ready(launch)
        return bool(early)

    def retire(self, operation: QueuedOperation) -> None:
        """Remove a finished operation; operations that waited for it alone are ready."""
        for waiting in operation.after:
            waiting.missing -= 1
            if not waiting.missing:
                self.make_ready(waiting)
        operation.before, operation.host, operation.run = (), (), nothing
        operation.early_after = None
        operation.after.clear()
        queue = self._of.get(operation.stream)
        while queue and queue[0].is_done:
            queue.popleft()
        if not queue:  # it is None for an operation that ran at its call
            self._of.pop(operation.stream, None)

    def first_if_full(self, stream: Stream) -> list[QueuedOperation]:
        """Return the operation to finish before a full stream accepts more; needs no lock."""
        queue = self._of.get(stream)
        return [queue[0]] if queue is not None and len(queue) > QUEUE_LENGTH else []

    def pending(self) -> list[QueuedOperation]:
        """Return unfinished operations, in their order, without markers."""
        operations = [operation for queue in list(self._of.values()) for operation in queue]
        operations = [
            operation for operation in operations if not (operation.is_marker or operation.is_done)
        ]
        return sorted(operations, key=attrgetter("number"))

    def tails(self, stream: Stream) -> list[QueuedOperation]:
        """Return the last operation of each queue that new work in a stream comes after."""
        return _last_of(queue for other, queue in self._of.copy().items() if orders(stream, other))

    def tails_of(self, owner: Context | DeviceState) -> list[QueuedOperation]:
        """Return the last operation of each queue of a context or a device."""
        return _last_of(queue for stream, queue in self._of.copy().items() if is_of(stream, owner))


def _last_of(queues: Iterable[Sequence[QueuedOperation]]) -> list[QueuedOperation]:
    """Return the last operation of each queue, one of which a signal's handler may empty."""
    found = []
    for queue in queues:
        try:
            found.append(queue[-1])
        except IndexError:
            continue
    return found


def orders(stream: Stream, other: Stream) -> bool:
    """Return whether later work of a stream comes after present work of another, or the same."""
    return other is stream or wait_for_each_other(stream, other)


def is_of(stream: Stream, owner: Context | DeviceState) -> bool:
    """Return whether a stream belongs to a context or a device."""
    return owner in (stream.context, stream.context.device)


def wait_for_each_other(first: Stream, second: Stream) -> bool:
    """Return whether two streams wait for each other, as legacy and blocking ones do.

    Source: CUDA Driver API, "Stream synchronization behavior".
    """
    return (
        first.context is second.context
        and (first.is_legacy or second.is_legacy)
        and first.is_blocking
        and second.is_blocking
    )
