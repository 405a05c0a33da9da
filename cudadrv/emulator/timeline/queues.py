"""Queues of an emulator's streams, and the operations that are ready."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from ..streams import Stream
from .operation import Operation, nothing

if TYPE_CHECKING:
    from ptx.emulate.model.grid_dependency import GridDependency

    from ..contexts import Context
    from ..device_state import DeviceState

# A queue that is full makes the call wait that puts more into it, as the driver's do.
QUEUE_LENGTH: Final = 1024


class Queues:
    """The operations that are not done, by stream; the timeline's lock is held over each call.

    Attributes:
        ready: what waits for nothing, and is not running.
        markers: the same of those that only say that others are done.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._stream_numbers = itertools.count(1)
        self._of: dict[Stream, deque[Operation]] = {}
        self.ready: list[Operation] = []
        self.markers: deque[Operation] = deque()

    @property
    def is_empty(self) -> bool:
        """Whether all operations are done; it needs no lock."""
        return not self._of

    def add(self, new: Operation, before: Iterable[Operation]) -> None:
        """Put an operation into the queue of its stream, after `before`."""
        stream = new.stream
        new.number = next(self._numbers)
        new.before = tuple(dict.fromkeys(each for each in before if not each.is_done))
        for each in new.before:
            each.after.append(new)
        new.missing = len(new.before)
        self._of.setdefault(stream, deque()).append(new)
        if not stream.number and not new.is_marker:
            stream.number = next(self._stream_numbers)
        if not new.missing:
            self._make_ready(new)

    def _make_ready(self, operation: Operation) -> None:
        (self.markers if operation.is_marker else self.ready).append(operation)

    def depend(self, operation: Operation, dependency: GridDependency, *, is_early: bool) -> None:
        """A kernel that was added; `is_early`: it may begin before the end of the one ahead."""
        operation.dependency = dependency
        queue = self._of[operation.stream]
        ahead = queue[-2] if len(queue) > 1 else None
        if is_early and ahead is not None and ahead.dependency and ahead in operation.before:
            operation.early_behind = ahead
            dependency.ahead = ahead.dependency

    def let_go(self, operation: Operation) -> bool:
        """What a kernel lets begin waits for it no longer; whether there was anything."""
        early = [each for each in operation.after if each.early_behind is operation]
        for each in early:
            operation.after.remove(each)
            each.missing -= 1
            if not each.missing:
                self._make_ready(each)
        return bool(early)

    def retire(self, operation: Operation) -> None:
        """Take out an operation that is done; what waited for it alone is ready."""
        for each in operation.after:
            each.missing -= 1
            if not each.missing:
                self._make_ready(each)
        operation.before, operation.host, operation.run = (), (), nothing
        operation.early_behind = None
        operation.after.clear()
        queue = self._of.get(operation.stream)
        while queue and queue[0].is_done:
            queue.popleft()
        if not queue:  # it is None for what ran at its call
            self._of.pop(operation.stream, None)

    def first_if_full(self, stream: Stream) -> list[Operation]:
        """The operation that must be done before a full stream takes more; needs no lock."""
        queue = self._of.get(stream)
        return [queue[0]] if queue is not None and len(queue) > QUEUE_LENGTH else []

    def pending(self) -> list[Operation]:
        """Operations that are not done, in their order, without markers."""
        found = [each for queue in list(self._of.values()) for each in queue]
        found = [each for each in found if not (each.is_marker or each.is_done)]
        return sorted(found, key=attrgetter("number"))

    def tails(self, stream: Stream) -> list[Operation]:
        """What comes last before anything new in a stream, of each queue that counts."""
        return [
            queue[-1] for other, queue in list(self._of.items()) if queue and orders(stream, other)
        ]

    def tails_of(self, owner: Context | DeviceState) -> list[Operation]:
        """The last operation of each queue of a context or a device."""
        return [
            queue[-1] for stream, queue in list(self._of.items()) if queue and is_of(stream, owner)
        ]


def orders(stream: Stream, other: Stream) -> bool:
    """Whether what a stream does next comes after what another, or the same one, does now."""
    return other is stream or wait_for_each_other(stream, other)


def is_of(stream: Stream, owner: Context | DeviceState) -> bool:
    """Whether a stream is of a context or a device."""
    return owner in (stream.context, stream.context.device)


def wait_for_each_other(one: Stream, other: Stream) -> bool:
    """CUDA Driver API, "Stream synchronization behavior", of the legacy default stream."""
    return (
        one.context is other.context
        and (one.is_legacy or other.is_legacy)
        and one.is_blocking
        and other.is_blocking
    )
