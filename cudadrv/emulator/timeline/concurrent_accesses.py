"""Unordered accesses of launches, copies, fills, allocations and frees, and of the host.

Each access is compared with the accesses of other tracks of the logical time that do not come
before it. Accesses that the host has waited for are dropped, as everything later comes after them.

Two kinds of accesses of the host are known: its changes of pinned and managed memory, and reads
that the library makes there for its user. Both count as strong accesses, which may overlap with
atomic or volatile ones of kernels.
"""

from __future__ import annotations

import itertools
import sys
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.accessed_bytes import AccessedBytes, LaunchAccesses
from ptx.emulate.check.findings import Access, Findings, MissingOrder

from ..call_site import shown_call_site, user_call_site
from ..node_kind import NodeKind, Run
from ..streams import Stream
from .past_accesses import (
    Doer,
    Numbers,
    PastAccesses,
    Range,
    as_one,
    elements_of,
    in_order,
    meeting,
    race_between,
    ranges_of,
    touches,
)
from .queues import wait_for_each_other
from .timestamp import Clock, Timestamp, Track

if TYPE_CHECKING:
    from ptx.emulate.exec.order.ordered_launch import Turns

    from ..contexts import Context
    from ..device_state import DeviceState
    from ..events import Event
    from ..executables import Executable
    from ..host_memory import HostMemory, HostPiece, HostRange

Bytes = NDArray[np.uint8]
# Of one range: comparing this much takes some milliseconds, at every call.
_MOST_BYTES: Final = 64 << 20
_MOST_RANGES: Final = 64  # above it an allocation is watched as a whole
_NOTHING: Final[Numbers] = np.empty((0, 2), np.int64)


@dataclass(frozen=True, slots=True)
class _WatchedPart:
    """A part of an allocation, with its present and its earlier contents."""

    piece: HostPiece
    start: int
    now: Bytes
    before: Bytes

    @property
    def end(self) -> int:
        return self.start + len(self.now)

    def changed(self) -> Numbers:
        """Return (n, 2) addresses and sizes of changed bytes, and accept the changes."""
        if _are_equal(self.now, self.before):
            return _NOTHING
        offsets = np.flatnonzero(self.now != self.before)
        self.before[offsets] = self.now[offsets]
        parts = np.flatnonzero(np.diff(offsets) > 1)
        firsts, lasts = offsets[np.r_[0, parts + 1]], offsets[np.r_[parts, len(offsets) - 1]]
        return np.stack([self.start + firsts, lasts - firsts + 1], axis=1).astype(np.int64)


def _are_equal(first: Bytes, second: Bytes) -> bool:
    """Return whether two parts are equal; compares eight bytes at a time."""
    whole_words = len(first) // 8 * 8
    words = first[:whole_words].view(np.uint64) == second[:whole_words].view(np.uint64)
    return bool(words.all()) and bool((first[whole_words:] == second[whole_words:]).all())


class HostWrites:
    """Watches the memory that operations use. Its owner's lock is held.

    Args:
        memory: all allocations of host memory.
    """

    def __init__(self, memory: HostMemory) -> None:
        self._memory = memory
        self._watched: list[_WatchedPart] = []
        self._running = 0
        self._is_alone = True
        self._has_missed = False
        self._seen_at = ""
        self._spare: Bytes = np.empty(0, np.uint8)

    def watch(self, start: int, end: int) -> None:
        """Watch the bytes between two addresses of one allocation from now on."""
        piece = self._memory.find(start)
        # The caller's own memory may be freed before the next check.
        if piece is None or piece.pages is None or end - start > _MOST_BYTES:
            return
        if any(watched.start <= start and end <= watched.end for watched in self._watched):
            return
        if not self._watched:
            self._seen_at = user_call_site()
        if len(self._watched) >= _MOST_RANGES and piece.nbytes <= _MOST_BYTES:
            start, end = piece.address, piece.address + piece.nbytes
            self._watched = [watched for watched in self._watched if watched.piece is not piece]
        now: Bytes = np.frombuffer(piece.pages, np.uint8)[
            start - piece.address : end - piece.address
        ]
        before = self._buffer(end - start)
        before[:] = now
        self._watched.append(_WatchedPart(piece, start, now, before))

    def _buffer(self, nbytes: int) -> Bytes:
        """Return a used buffer if there is one: fresh pages take as long as several copies."""
        spare = self._spare
        if nbytes <= len(spare) <= 2 * nbytes:
            self._spare = spare[:0]
            return spare[:nbytes]
        return np.empty(nbytes, np.uint8)

    def watch_used(self, part: AccessedBytes) -> None:
        """Watch bytes that an operation accessed: in each allocation from the first one on."""
        for piece in list(self._memory.pieces.values()):
            end = piece.address + piece.nbytes
            first = int(np.searchsorted(part.ends, piece.address, side="right"))
            stop = int(np.searchsorted(part.starts, end, side="left"))
            if first < stop:
                start = max(int(part.starts[first]), piece.address)
                self.watch(start, min(int(part.ends[stop - 1]), end))

    def keep(self, is_used: Callable[[int, int], bool]) -> None:
        """Watch unused ranges no more; `is_used` receives a range's start and end."""
        if self._watched:
            former = self._watched
            self._watched = [watched for watched in former if is_used(watched.start, watched.end)]
            if not self._watched:
                self._spare = former[-1].before

    def look(self) -> tuple[Numbers, str]:
        """Find writes of the host since the last call, and the calls they were between.

        While other threads run operations, neither writer nor time of a write can be determined:
        such writes are ignored.
        """
        if self._running:
            self._has_missed = True
        if not self._watched or self._running:
            return _NOTHING, ""
        if self._has_missed:
            self._has_missed = False
            self.take_over()
        changes, since, now = self._changed(), self._seen_at, user_call_site()
        self._seen_at = now
        return changes, f"after {shown_call_site(since)}, before {shown_call_site(now)}"

    def begin(self) -> None:
        """Record that an operation begins, or continues."""
        self._is_alone = not self._running
        self._running += 1

    def end(self) -> None:
        """Record that it has ended, or pauses."""
        self._running -= 1

    def take_over(self, start: int = 0, end: int = sys.maxsize) -> None:
        """Accept the writes of an operation between two addresses."""
        for watched in self._watched:
            if watched.start < end and start < watched.end:
                part = slice(max(start - watched.start, 0), min(end, watched.end) - watched.start)
                watched.before[part] = watched.now[part]

    def written_alone(self) -> Numbers:
        """Return the writes of an operation that runs alone, and accept them; else none."""
        changes = self._changed()
        return changes if self._is_alone else _NOTHING

    def _changed(self) -> Numbers:
        """Return (n, 2) addresses and sizes of the changes since the last check, in any order."""
        if not self._watched:
            return _NOTHING
        pieces = self._memory.pieces
        self._watched = [e for e in self._watched if pieces.get(e.piece.address) is e.piece]
        changes = [changed for watched in self._watched if len(changed := watched.changed())]
        return np.concatenate(changes) if changes else _NOTHING


class LogicalTime:
    """The tracks of an emulator. Its owner's lock is held."""

    def __init__(self) -> None:
        self._tracks: dict[Stream, Track] = {}
        self._track_numbers = itertools.count(1)
        self._moments = itertools.count(1)
        self._host: Clock = {}
        self._host_track = Track(next(self._track_numbers))

    def next_number(self) -> int:
        """Return a number, in the same order, for an event without a moment."""
        return next(self._moments)

    def moment(self, stream: Stream, kind: NodeKind, call_site: str) -> Timestamp:
        """Return the moment of an operation that is queued in a stream."""
        clock = self.now(stream)
        track = self._tracks.get(stream)
        if track is None:
            track = self._tracks[stream] = Track(next(self._track_numbers))
        return self._add(track, clock, kind, call_site)

    def moment_of_host(self, call_site: str, kind: NodeKind) -> Timestamp:
        """Return the moment of an action of the host."""
        moment = self._add(self._host_track, dict(self._host), kind, call_site)
        self._host = self._host_track.clock
        return moment

    def moments_of_graph(
        self, executable: Executable, stream: Stream, call_site: str, events: Mapping[int, Event]
    ) -> list[Timestamp]:
        """Return a moment for each node of a graph that is launched."""
        start = self.now(stream)
        _join(start, executable.clock)
        end, clocks, moments = dict(start), list[Clock](), list[Timestamp]()
        ends_of_chains: dict[int, Track] = {}  # by the last node of each chain
        free = list(executable.tracks)
        for number, node in enumerate(executable.steps):
            clock = dict(start)
            for dependency in node.after:
                _join(clock, clocks[dependency])
            event = events.get(node.work.event)
            if event is not None and node.kind is NodeKind.WAIT:
                _join(clock, event.clock or {})
            chain = next((ends_of_chains.pop(e) for e in node.after if e in ends_of_chains), None)
            if chain is None:
                chain = free.pop() if free else Track(next(self._track_numbers))
                if chain not in executable.tracks:
                    executable.tracks.append(chain)
            ends_of_chains[number] = chain
            moments.append(self._add(chain, clock, node.kind, call_site))
            clocks.append(chain.clock)
            if event is not None and node.kind is NodeKind.RECORD:
                event.clock = dict(chain.clock)
            _join(end, chain.clock)
        executable.clock = end
        self.wait(stream, end)
        return moments

    def _add(self, track: Track, clock: Clock, kind: NodeKind, call_site: str) -> Timestamp:
        track.last += 1
        track.clock = {**clock, track.number: track.last}
        return Timestamp(next(self._moments), track.number, track.last, clock, kind, call_site)

    def now(self, stream: Stream) -> Clock:
        """Return the clock at the present end of a stream and of the work it would wait for."""
        clock = dict(self._host)
        for other, track in self._tracks.items():
            if other is stream or wait_for_each_other(stream, other):
                _join(clock, track.clock)
        return clock

    def wait(self, stream: Stream, clock: Clock) -> None:
        """Order the next work of a stream after this clock."""
        track = self._tracks.get(stream)
        if track is None:
            track = self._tracks[stream] = Track(next(self._track_numbers))
        track.clock = dict(track.clock)
        _join(track.clock, clock)

    def of(self, owner: Context | DeviceState) -> Clock:
        """Return the clock at the end of all work of a context or a device."""
        clock: Clock = {}
        for stream, track in self._tracks.items():
            if owner in (stream.context, stream.context.device):
                _join(clock, track.clock)
        return clock

    def all(self) -> Clock:
        """Return the clock at the end of all calls."""
        clock: Clock = {}
        for track in self._tracks.values():
            _join(clock, track.clock)
        return clock

    def host_waits(self, clock: Clock, *, forgets: bool) -> Clock:
        """Record a wait of the host; return the clock of all work that is over for it.

        `forgets`: no completed access is compared any more, so no clock has to include it.
        """
        finished = dict(self._host)
        _join(finished, clock)
        for stream, track in self._tracks.copy().items():
            track.clock = {
                n: index for n, index in track.clock.items() if finished.get(n, 0) < index
            }
            if not track.clock:
                del self._tracks[stream]
        self._host = {} if forgets else finished
        return finished


def _join(into: Clock, other: Clock) -> None:
    for track, index in other.items():
        if into.get(track, 0) < index:
            into[track] = index


_MOST: Final = 64  # allocations at one address that are distinguished
Named = tuple[int, str]
"""The start of an allocation, and its description."""
_T = TypeVar("_T")
_MOST_PARTS: Final = 24  # parts of a track of one kind, before they are merged
Ways = tuple[bool, bool]
"""Whether an access writes, and whether it is strong."""


class AllocationTimes:
    """The numbers of the moments in which allocations were made, by their addresses.

    It takes no lock: an allocation is recorded under its device's.

    Args:
        allocation_at: finds the allocation that holds an address.
    """

    def __init__(self, allocation_at: Callable[[int], Named | None]) -> None:
        self._allocation_at = allocation_at
        self._numbers: dict[int, list[int]] = {}

    def note(self, address: int, number: int) -> None:
        """Record an allocation that begins at an address."""
        born = self._numbers.setdefault(address, [])
        born.append(number)
        if len(born) > _MOST:
            del born[: _MOST // 2]

    def separates(self, address: int, *numbers: int) -> bool:
        """Return whether these moments belong to different allocations at an address."""
        allocation = self._allocation_at(address)
        born = [] if allocation is None else self._numbers.get(allocation[0], [])
        return len({bisect_right(born, number) for number in numbers}) > 1


class ConcurrentAccesses:
    """Accesses of an emulator's operations since the host last waited for them.

    Args:
        findings: the list that receives races.
        allocation_at: finds the allocation that holds an address.
        host: pinned and managed memory.
        lock: the emulator's, since finalizers take it in the middle of calls.
        is_late: whether operations may run later than they are called.
    """

    def __init__(
        self,
        findings: Findings,
        allocation_at: Callable[[int], Named | None],
        host: HostMemory,
        lock: threading.RLock,
        *,
        is_late: bool,
    ) -> None:
        self._is_late = is_late
        self._findings = findings
        self._allocation_at = allocation_at
        self._lock = lock
        self._time = LogicalTime()
        self._host_writes = HostWrites(host)
        self._past: dict[int, dict[Ways, list[PastAccesses]]] = {}
        self._allocation_times = AllocationTimes(allocation_at)
        self._pending: dict[int, Timestamp] = {}
        self._current = threading.local()

    # The times of operations.

    def timed(
        self, stream: Stream, kind: NodeKind, run: Run, host: Iterable[HostRange] = ()
    ) -> Run:
        """Wrap the function of an operation that is queued in a stream.

        `host` is the host memory that it may use, unless it runs at once.
        """
        with self._lock:
            self._look_at_host(host)
            moment = self._time.moment(stream, kind, user_call_site())
            self._pending[moment.number] = moment
        return self._at(moment, run)

    def timed_graph(
        self,
        executable: Executable,
        stream: Stream,
        runs: list[Run],
        events: Mapping[int, Event],
    ) -> list[Run]:
        """Wrap the functions of a launched graph's nodes."""
        with self._lock:
            self._look_at_host(
                host_range for step in executable.steps for host_range in step.work.host
            )
            moments = self._time.moments_of_graph(executable, stream, user_call_site(), events)
            self._pending |= {moment.number: moment for moment in moments}
        return [self._at(moment, run) for moment, run in zip(moments, runs, strict=True)]

    def _at(self, moment: Timestamp, run: Run) -> Run:
        def run_now() -> Turns | None:
            turns: Turns | None = None
            try:
                turns = self._within(moment, run)
            finally:
                if turns is None:
                    self._pending.pop(moment.number, None)
            if moment.kind is NodeKind.HOST:  # it reports nothing to the race check
                self.host_waits({**moment.after, moment.track: moment.index})
            return None if turns is None else self._in_turns(moment, turns)

        return run_now

    def _in_turns(self, moment: Timestamp, turns: Turns) -> Turns:
        try:
            while (waits := self._within(moment, lambda: next(turns, None))) is not None:
                yield waits
        finally:
            self._pending.pop(moment.number, None)
            turns.close()

    def _within(self, moment: Timestamp, work: Callable[[], _T]) -> _T:
        """Run an operation, or a part of it."""
        former = getattr(self._current, "moment", None)
        with self._lock:
            if self._is_late:
                self._look_at_host()
            self._host_writes.begin()
        try:
            self._current.moment = moment
            return work()
        finally:
            self._current.moment = former
            with self._lock:
                self._take_over(moment)
                self._host_writes.end()

    def _take_over(self, moment: Timestamp) -> None:
        """Accept the writes of a kernel, whose addresses are unknown: they are not the host's."""
        if moment.kind is NodeKind.KERNEL:
            self._host_writes.take_over()
        elif moment.kind is NodeKind.HOST:
            written = self._host_writes.written_alone()
            if len(written):
                self._add(Doer(moment), [AccessedBytes.merged([in_order(written, writes=True)])])

    def now(self, stream: Stream) -> Clock:
        """Return the clock of an event that is recorded in a stream now."""
        with self._lock:
            return self._time.now(stream)

    def wait(self, stream: Stream, clock: Clock) -> None:
        """Record that a stream waits for an event."""
        with self._lock:
            self._time.wait(stream, clock)

    def host_waits(self, clock: Clock) -> None:
        """Record that the host has waited for an event."""
        with self._lock:
            self._look_at_host()
            # An earlier call that runs later, or in another thread now, may still conflict with
            # accesses that the host has waited for, or be one of them.
            forgets = not self._pending
            finished = self._time.host_waits(clock, forgets=forgets)
            if not forgets:
                return
            for track, by_kind in self._past.copy().items():
                index = finished.get(track, 0)
                for kind, past in by_kind.copy().items():
                    remaining = [
                        accesses
                        for accesses in (earlier.since(index) for earlier in past)
                        if accesses is not None
                    ]
                    by_kind[kind] = remaining
                if not any(by_kind.values()):
                    del self._past[track]
            self._host_writes.keep(self._is_used)

    def host_waits_for(self, waited: Stream | Context | DeviceState | None) -> None:
        """Record that the host has waited for a stream, a context, a device, or for everything."""
        with self._lock:
            if waited is None:
                self.host_waits(self._time.all())
            elif isinstance(waited, Stream):
                self.host_waits(self._time.now(waited))
            else:
                self.host_waits(self._time.of(waited))

    # Accesses of the host.

    def host_reads(self, array: NDArray[Any], /) -> None:
        """Record that the library reads a host array for its user."""
        address = array.ctypes.data
        if self._allocation_at(address) is not None:  # pinned or managed
            with self._lock:
                self._look_at_host()
                when = f"called at {shown_call_site(user_call_site())}"
                self._host_accesses(elements_of(array), when, writes=False)

    def _look_at_host(self, ranges: Iterable[HostRange] = ()) -> None:
        """Find writes of the host; watch these ranges from now on. The lock is held."""
        written, when = self._host_writes.look()
        if len(written):
            self._host_accesses(written, when, writes=True)
        for host_range in ranges:
            self._host_writes.watch(host_range.address, host_range.address + host_range.nbytes)

    def _host_accesses(self, ranges: Numbers, when: str, *, writes: bool) -> None:
        moment = self._time.moment_of_host(user_call_site(), NodeKind.HOST)
        doer = Doer(moment, by_host=when)
        self._add(doer, [AccessedBytes.merged([in_order(ranges, writes=writes, strong=True)])])

    def _is_used(self, start: int, end: int) -> bool:
        """Return whether an operation has accessed bytes there that the host has not waited for."""
        return any(
            touches(accesses.part, start, end)
            for by_kind in self._past.values()
            for past in by_kind.values()
            for accesses in past
        )

    # Accesses of operations.

    def born(self, address: int) -> None:
        """Record the start of an allocation; earlier accesses at its address belong to another one.

        It takes no lock: the device's is held.
        """
        self._allocation_times.note(address, self._time.next_number())

    def allocated(self, stream: Stream, address: int, nbytes: int) -> None:
        """Record that memory exists from here on in a stream."""
        with self._lock:
            moment = self._time.moment(stream, NodeKind.ALLOC, user_call_site())
            self._allocation_times.note(address, moment.number)
        self._add(Doer(moment), [ranges_of([(address, nbytes)], writes=True)])

    def freed(self, stream: Stream | None, address: int, nbytes: int) -> None:
        """Record that memory is freed from here on in a stream, or for the host."""
        with self._lock:
            if stream is None:
                moment = self._time.moment_of_host(user_call_site(), NodeKind.FREE)
            else:
                moment = self._time.moment(stream, NodeKind.FREE, user_call_site())
        self._add(Doer(moment), [ranges_of([(address, nbytes)], writes=True)])

    def in_graph(self, address: int, nbytes: int, *, allocates: bool) -> None:
        """Record that the running operation allocates or frees memory of its graph."""
        moment = getattr(self._current, "moment", None)
        if moment is not None:
            if allocates:
                self._allocation_times.note(address, moment.number)
            self._add(Doer(moment), [ranges_of([(address, nbytes)], writes=True)])

    def moved(self, read: Iterable[Range], written: Iterable[Range]) -> None:
        """Record that the running operation reads and writes these ranges, as a copy does."""
        moment = getattr(self._current, "moment", None)
        if moment is not None:
            written = list(written)
            with self._lock:
                for address, nbytes in written:
                    self._host_writes.take_over(address, address + nbytes)
            parts = [ranges_of(read, writes=False), ranges_of(written, writes=True)]
            self._add(Doer(moment), parts)

    def launched(self, launch: LaunchAccesses) -> None:
        """Record the accesses of the launch that is running now."""
        launch.release()
        moment = getattr(self._current, "moment", None)
        if moment is not None:
            self._add(Doer(moment, launch), launch.parts)

    def _add(self, doer: Doer, parts: Iterable[AccessedBytes]) -> None:
        """Compare with the known accesses, store and report; the lock is not held."""
        parts = [part for part in parts if len(part.starts)]
        with self._lock:
            pairs = list(self._pairs(doer, parts))
            by_kind = self._past.setdefault(doer.moment.track, {})
            for part in parts:
                past = by_kind.setdefault((part.writes, part.strong), [])
                past.append(PastAccesses.of(part, doer))
                if len(past) > _MOST_PARTS:
                    past[:] = [as_one(past)]
            if not doer.by_host:
                for part in parts:
                    self._host_writes.watch_used(part)
        for earlier, part in pairs:
            self._compare(earlier, part, doer)

    def _pairs(
        self, doer: Doer, parts: list[AccessedBytes]
    ) -> Iterator[tuple[PastAccesses, AccessedBytes]]:
        """Yield earlier accesses that an operation may race with, each with its own part."""
        for track, by_kind in self._past.items():
            if track == doer.moment.track:
                continue
            finished_index = doer.moment.after.get(track, 0)
            for (writes, strong), past in by_kind.items():
                candidates = [
                    p for p in parts if (writes or p.writes) and not (strong and p.strong)
                ]
                late = [
                    accesses
                    for accesses in (earlier.since(finished_index) for earlier in past)
                    if accesses is not None
                ]
                for accesses in late:
                    for part in candidates:
                        if (
                            accesses.part.starts[0] < part.ends[-1]
                            and part.starts[0] < accesses.part.ends[-1]
                        ):
                            yield accesses, part

    def _compare(self, past: PastAccesses, part: AccessedBytes, doer: Doer) -> None:
        for index, own_index in meeting(past.part, part):
            other = past.doers[int(past.whose[index])]
            address = int(max(past.part.starts[index], part.starts[own_index]))
            end = int(min(past.part.ends[index], part.ends[own_index]))
            if (
                not other.moment.comes_after(doer.moment)
                and not doer.may_know_of(other)
                and not self._allocation_times.separates(
                    address, other.moment.number, doer.moment.number
                )
            ):
                sides = other.access(past.part, index), doer.access(part, own_index)
                self._report(*sides, (address, end - address), (other, doer))
                return

    def _report(
        self, first: Access, second: Access, byte_range: Range, doers: tuple[Doer, Doer]
    ) -> None:
        allocation = self._allocation_at(byte_range[0])
        memory = "" if allocation is None else allocation[1]
        earlier, later = sorted((doer.moment for doer in doers), key=attrgetter("number"))
        missing = MissingOrder(
            earlier.track,
            earlier.index,
            later.track,
            later.index,
            is_of_allocation=NodeKind.ALLOC in (earlier.kind, later.kind),
        )
        self._findings.add(race_between(first, second, byte_range, doers, memory), missing)
