"""The watch over host memory that queued operations use: the host must not access it meanwhile.

Memory that an operation will read or write is compared, when the operation runs, with its contents
at the call. Writes of other operations in between are correct, so they are accepted.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import numpy as np

from ..call_site import host_place, shown_call_site
from ..node_kind import NodeKind

if TYPE_CHECKING:
    from ptx.emulate.check.findings import Place

    from ..host_memory import HostRange
    from .past_accesses import Numbers
    from .queues import QueuedOperation

# Larger ranges are not watched: their checksum costs tens of milliseconds.
_MOST_BYTES: Final = 64 << 20
# Up to this total size, every call that queues an operation checks all ranges.
_OFTEN_BYTES: Final = 256 << 10
_WRITERS: Final = (NodeKind.KERNEL, NodeKind.HOST)


class OrderWarning(UserWarning):
    """A program that is correct only in some orders of its operations."""


@dataclass(frozen=True, slots=True)
class HostChange:
    """The host changed memory that a queued operation was still to read or to write.

    Attributes:
        address: the start of the memory, and `nbytes` its size.
        queued_at: the call that queued the operation.
        unchanged_at: the last call of the driver at which the memory was still unchanged.
        found_at: the call at which it was changed.
        is_read: whether the operation reads the memory; else it writes there.
        repeated_by: how to run the program in this order again.
    """

    address: int
    nbytes: int
    queued_at: str
    unchanged_at: str
    found_at: str
    is_read: bool
    repeated_by: str
    check: ClassVar[str] = "order"
    kernel: ClassVar[str] = ""
    variable: ClassVar[str] = ""
    benign: ClassVar[str] = ""
    is_told: ClassVar[bool] = False

    @property
    def places(self) -> tuple[Place, ...]:
        """The three calls."""
        return (
            host_place("queued", self.queued_at),
            host_place("last unchanged", self.unchanged_at),
            host_place("found changed", self.found_at),
        )

    def __str__(self) -> str:
        use = "read by" if self.is_read else "the destination of"
        return (
            f"{self.nbytes} bytes of host memory at {self.address:#x}, {use} a copy queued at "
            f"{shown_call_site(self.queued_at)},\n  were changed by the host before the copy "
            f"ran: after {shown_call_site(self.unchanged_at)}, before "
            f"{shown_call_site(self.found_at)}\n  wait for the copy first, by its stream or "
            f"an event\n  to see it again, {self.repeated_by}"
        )


@dataclass(frozen=True, slots=True)
class EarlyRead:
    """Host memory was read before a queued copy had written it.

    Attributes:
        address: the start of the bytes that were read and are to be written, and `nbytes` their
            number.
        queued_at: the call that queued the copy.
        read_at: the call that read, or that queued a reading copy.
        is_queued: whether such a copy reads: the two copies are unordered.
        contents: the contents of the memory at that call, if it is page-locked or managed.
        repeated_by: how to run the program in this order again.
    """

    address: int
    nbytes: int
    queued_at: str
    read_at: str
    is_queued: bool
    contents: str
    repeated_by: str
    check: ClassVar[str] = "order"
    kernel: ClassVar[str] = ""
    variable: ClassVar[str] = ""
    benign: ClassVar[str] = ""
    is_told: ClassVar[bool] = False

    @property
    def places(self) -> tuple[Place, ...]:
        """The two calls."""
        return (host_place("queued", self.queued_at), host_place("read", self.read_at))

    def __str__(self) -> str:
        call_site = shown_call_site(self.read_at)
        read = (
            f"are read by a copy queued at {call_site}, and nothing orders the two"
            if self.is_queued
            else f"were read before the copy ran, at {call_site}"
        )
        contents = f"\n  they held {self.contents}" if self.contents else ""
        return (
            f"{self.nbytes} bytes of host memory at {self.address:#x}, the destination of a copy "
            f"queued at {shown_call_site(self.queued_at)},\n  {read}{contents}\n"
            f"  wait for the copy first, by its stream or an event\n"
            f"  to see it again, {self.repeated_by}"
        )


OrderFinding: TypeAlias = HostChange | EarlyRead
"""A finding about memory that the host and queued copies share."""


def early_read(
    copy: QueuedOperation, ranges: Numbers, call_site: str, repeated_by: str, *, is_queued: bool
) -> EarlyRead | None:
    """Return the finding if bytes are read that a copy will write; None if there are none.

    `ranges` are (n, 2) addresses and sizes.
    """
    for destination in copy.host:
        firsts = np.maximum(ranges[:, 0], destination.address)
        ends = np.minimum(ranges.sum(axis=1), destination.address + destination.nbytes)
        met = np.flatnonzero(firsts < ends)
        # The race check reports the others.
        if destination.is_written and destination.is_watched and len(met):
            first, nbytes = int(firsts[met[0]]), int((ends - firsts)[met[0]])
            part = destination._replace(address=first, nbytes=nbytes)
            contents = "" if part.piece is None else part.contents
            return EarlyRead(
                first, nbytes, copy.call_site, call_site, is_queued, contents, repeated_by
            )
    return None


@dataclass(slots=True)
class _WatchedRange:
    """A range, with its former checksum, and the call at which it last matched."""

    range: HostRange
    checksum: int
    seen_at: str

    def renew(self) -> None:
        self.checksum = _checksum(self.range)


def _checksum(range: HostRange) -> int:
    return zlib.crc32((ctypes.c_ubyte * range.nbytes).from_address(range.address))


class HostWatch:
    """The ranges of queued operations. Its owner's lock is held.

    Args:
        repeated_by: a sentence for each finding.
    """

    def __init__(self, repeated_by: str) -> None:
        self._repeated_by = repeated_by
        self._watched: dict[QueuedOperation, list[_WatchedRange]] = {}
        self._nbytes = 0
        self._writers: list[QueuedOperation] = []

    @property
    def is_watching(self) -> bool:
        """Whether any range is watched."""
        return bool(self._watched)

    def is_needed(self, operation: QueuedOperation) -> bool:
        """Return whether `run` has any work."""
        return bool(self._watched) or _writes_host(operation)

    def begin(self, operation: QueuedOperation) -> None:
        """Watch the memory of a new operation."""
        ranges = [e for e in operation.host if e.is_watched and e.nbytes <= _MOST_BYTES]
        if ranges:
            call_site = operation.call_site
            self._watched[operation] = [
                _WatchedRange(host_range, _checksum(host_range), call_site) for host_range in ranges
            ]
            self._nbytes += sum(host_range.nbytes for host_range in ranges)

    def look_often(self, call_site: str) -> list[HostChange]:
        """Check all ranges, if they are small, so that a finding gives a short interval."""
        return list(self._look(call_site)) if 0 < self._nbytes <= _OFTEN_BYTES else []

    def run(self, operation: QueuedOperation, call_site: str) -> list[HostChange]:
        """Return the changes of a running operation's ranges; of all that it may write to."""
        writes = _writes_host(operation)
        changes: list[HostChange] = []
        if self._watched:
            changes += self._look(call_site, None if writes else (operation,))
            watched = self._watched.pop(operation, ())
            self._nbytes -= sum(watched_range.range.nbytes for watched_range in watched)
        if writes:
            self._writers.append(operation)
        return changes

    def end(self, operation: QueuedOperation) -> None:
        """Record that it has ended, and accept its writes."""
        watched = self._watched.pop(operation, ())  # if it did not run at all
        self._nbytes -= sum(watched_range.range.nbytes for watched_range in watched)
        if operation in self._writers:
            self._writers.remove(operation)
            for watched_range in self._all():
                if _may_write(operation, watched_range.range):
                    watched_range.renew()

    def repair(self) -> None:
        """Forget operations that have ended, whose end an exception interrupted."""
        for operation in [*self._writers, *self._watched]:
            if operation.is_done:
                self.end(operation)
        self._nbytes = sum(watched_range.range.nbytes for watched_range in self._all())

    def _all(self) -> Iterator[_WatchedRange]:
        for watched in self._watched.values():
            yield from watched

    def _look(
        self, call_site: str, operations: Sequence[QueuedOperation] | None = None
    ) -> Iterator[HostChange]:
        for operation in list(self._watched) if operations is None else operations:
            for watched_range in self._watched.get(operation, ()):
                if any(_may_write(writer, watched_range.range) for writer in self._writers):
                    continue  # another thread runs it; its writes are accepted at its end
                if _checksum(watched_range.range) != watched_range.checksum:
                    yield HostChange(
                        watched_range.range.address,
                        watched_range.range.nbytes,
                        operation.call_site,
                        watched_range.seen_at,
                        call_site,
                        not watched_range.range.is_written,
                        self._repeated_by,
                    )
                    watched_range.renew()
                watched_range.seen_at = call_site


def _may_write(operation: QueuedOperation, range: HostRange) -> bool:
    return operation.kind in _WRITERS or any(
        written.is_written and written.overlaps(range) for written in operation.host
    )


def _writes_host(operation: QueuedOperation) -> bool:
    return operation.kind in _WRITERS or any(host_range.is_written for host_range in operation.host)
