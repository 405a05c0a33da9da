"""Accesses of launches, copies, fills, allocations and frees that nothing orders.

Each is compared with those of other lines of the logical time that it does not come after. What the
host has waited for is forgotten, as all that follows comes after it.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.accessed_bytes import AccessedBytes, LaunchAccesses
from ptx.emulate.check.findings import Access, Finding, Findings
from ptx.emulate.model.errors import Where

from ..graphs import NodeKind, Run
from ..origin import caller
from ..streams import Stream
from .logical_time import LogicalTime
from .moment import Clock, Moment

if TYPE_CHECKING:
    from ptx.emulate.exec.order.ordered_launch import Turns

    from ..contexts import Context
    from ..emulated_device import DeviceState
    from ..executables import Executable

_T = TypeVar("_T")
_MOST_PARTS: Final = 24  # of a line in one way, before they are made one
_MOST_LOOKED_AT: Final = 64  # ranges of two parts that meet
_MOST_BORN: Final = 64  # allocations at one address that are told apart
_MISSING: Final = (
    "an event that the later one's stream waits for, a stream for both, or a wait of the host"
)
Range = tuple[int, int]
"""An address and a number of bytes."""
Named = tuple[int, str]
"""Where an allocation begins, and what it is in words."""
Ways = tuple[bool, bool]
"""Whether an access writes, and whether it is strong."""
Numbers = NDArray[np.int64]


class _Doer:
    """One operation that accessed memory."""

    def __init__(self, moment: Moment, launch: LaunchAccesses | None) -> None:
        self.moment = moment
        self.launch = launch

    def access(self, part: AccessedBytes, at: int) -> Access:
        """One side of a race."""
        place = self.moment.place
        if self.launch is not None:
            return self.launch.access(part, at, place)
        file, _, line = place.rpartition(":")
        kind = self.moment.kind.value
        where = Where("", None, None, kind, 0, file or None, int(line) if line else None)
        return Access("write" if part.writes else "read", where, place)


@dataclass(frozen=True, slots=True)
class _Past:
    """Ranges that operations of one line accessed in one way.

    Attributes:
        whose: for each range, which of `doers` was the last.
        last: the index of the last moment.
    """

    part: AccessedBytes
    doers: tuple[_Doer, ...]
    whose: Numbers
    last: int

    @staticmethod
    def of(part: AccessedBytes, doer: _Doer) -> _Past:
        return _Past(part, (doer,), np.zeros(len(part.starts), np.int64), doer.moment.index)

    def since(self, index: int) -> _Past | None:
        """What came after a moment; None if nothing did."""
        if self.last <= index:
            return None
        if len(self.doers) == 1:
            return self
        late = np.array([doer.moment.index > index for doer in self.doers])[self.whose]
        if not late.any():
            return None
        return _Past(_chosen(self.part, late), self.doers, self.whose[late], self.last)


class ConcurrentAccesses:
    """What the operations of an emulator accessed since the host last waited for them.

    Args:
        findings: where races are put.
        allocation_at: finds the allocation that holds an address.
    """

    def __init__(self, findings: Findings, allocation_at: Callable[[int], Named | None]) -> None:
        self._findings = findings
        self._allocation_at = allocation_at
        self._lock = threading.RLock()
        self._time = LogicalTime()
        self._past: dict[int, dict[Ways, list[_Past]]] = {}
        # When the allocations were made that began at an address.
        self._born: dict[int, list[int]] = {}
        self._pending: dict[int, Moment] = {}
        self._current = threading.local()

    # When something happens.

    def timed(self, stream: Stream, kind: NodeKind, run: Run) -> Run:
        """An operation is put into a stream: what is to be run in its place."""
        with self._lock:
            moment = self._time.moment(stream, kind, caller())
            self._pending[moment.number] = moment
        return self._at(moment, run)

    def timed_graph(self, executable: Executable, stream: Stream, runs: list[Run]) -> list[Run]:
        """A graph is launched: what is to be run in the place of each node's function."""
        with self._lock:
            moments = self._time.moments_of_graph(executable, stream, caller())
            self._pending |= {moment.number: moment for moment in moments}
        return [self._at(moment, run) for moment, run in zip(moments, runs, strict=True)]

    def _at(self, moment: Moment, run: Run) -> Run:
        def run_now() -> Turns | None:
            turns: Turns | None = None
            try:
                turns = self._within(moment, run)
            finally:
                if turns is None:
                    self._pending.pop(moment.number, None)
            if moment.kind is NodeKind.HOST:  # what it tells the host, nobody sees
                self.host_waits({**moment.after, moment.line: moment.index})
            return None if turns is None else self._in_turns(moment, turns)

        return run_now

    def _in_turns(self, moment: Moment, turns: Turns) -> Turns:
        try:
            while (waits := self._within(moment, lambda: next(turns, None))) is not None:
                yield waits
        finally:
            self._pending.pop(moment.number, None)
            turns.close()

    def _within(self, moment: Moment, work: Callable[[], _T]) -> _T:
        """Do an operation, or a part of it."""
        former = getattr(self._current, "moment", None)
        self._current.moment = moment
        try:
            return work()
        finally:
            self._current.moment = former

    def now(self, stream: Stream) -> Clock:
        """What an event says that is recorded in a stream now."""
        with self._lock:
            return self._time.now(stream)

    def wait(self, stream: Stream, clock: Clock) -> None:
        """A stream waits for an event."""
        with self._lock:
            self._time.wait(stream, clock)

    def host_waits(self, clock: Clock) -> None:
        """The host has waited for what an event says."""
        with self._lock:
            # What was called before, and runs later or in another thread now, may still meet what
            # the host has waited for, or be a part of it.
            forgets = not self._pending
            over = self._time.host_waits(clock, forgets=forgets)
            if not forgets:
                return
            for line, ways in list(self._past.items()):
                index = over.get(line, 0)
                for way, past in list(ways.items()):
                    rest = [each for each in (one.since(index) for one in past) if each is not None]
                    ways[way] = rest
                if not any(ways.values()):
                    del self._past[line]

    def host_waits_for(self, waited: Stream | Context | DeviceState | None) -> None:
        """The host has waited for a stream, a context, a device, or for everything."""
        with self._lock:
            if waited is None:
                self.host_waits(self._time.all())
            elif isinstance(waited, Stream):
                self.host_waits(self._time.now(waited))
            else:
                self.host_waits(self._time.of(waited))

    # What is accessed.

    def born(self, address: int) -> None:
        """An allocation begins here; what was done to its place before is of another one.

        It takes no lock: the device's is held.
        """
        self._begin(address, self._time.next_number())

    def _begin(self, address: int, number: int) -> None:
        born = self._born.setdefault(address, [])
        born.append(number)
        if len(born) > _MOST_BORN:
            del born[: _MOST_BORN // 2]

    def allocated(self, stream: Stream, address: int, nbytes: int) -> None:
        """Memory is there from here on in a stream."""
        with self._lock:
            moment = self._time.moment(stream, NodeKind.ALLOC, caller())
            self._begin(address, moment.number)
        self._add(_Doer(moment, None), [_range([(address, nbytes)], writes=True)])

    def freed(self, stream: Stream | None, address: int, nbytes: int) -> None:
        """Memory is there no more from here on in a stream, or for the host."""
        with self._lock:
            if stream is None:
                moment = self._time.moment_of_host(caller(), NodeKind.FREE)
            else:
                moment = self._time.moment(stream, NodeKind.FREE, caller())
        self._add(_Doer(moment, None), [_range([(address, nbytes)], writes=True)])

    def in_graph(self, address: int, nbytes: int, *, allocates: bool) -> None:
        """The operation that runs now allocates or frees memory of its graph."""
        moment = getattr(self._current, "moment", None)
        if moment is not None:
            if allocates:
                self._begin(address, moment.number)
            self._add(_Doer(moment, None), [_range([(address, nbytes)], writes=True)])

    def moved(self, read: Iterable[Range], written: Iterable[Range]) -> None:
        """The operation that runs now reads and writes these ranges, such as a copy does."""
        moment = getattr(self._current, "moment", None)
        if moment is not None:
            parts = [_range(list(read), writes=False), _range(list(written), writes=True)]
            self._add(_Doer(moment, None), parts)

    def launched(self, launch: LaunchAccesses) -> None:
        """The operation that runs now is a launch that accessed this."""
        launch.let_go()
        moment = getattr(self._current, "moment", None)
        if moment is not None:
            self._add(_Doer(moment, launch), launch.parts)

    def _add(self, doer: _Doer, parts: Iterable[AccessedBytes]) -> None:
        """Compare with what is known, keep it, and report; the lock is not held."""
        parts = [each for each in parts if len(each.starts)]
        with self._lock:
            pairs = list(self._pairs(doer, parts))
            own = self._past.setdefault(doer.moment.line, {})
            for part in parts:
                past = own.setdefault((part.writes, part.strong), [])
                past.append(_Past.of(part, doer))
                if len(past) > _MOST_PARTS:
                    past[:] = [_as_one(past)]
        for earlier, part in pairs:
            self._compare(earlier, part, doer)

    def _pairs(
        self, doer: _Doer, parts: list[AccessedBytes]
    ) -> Iterator[tuple[_Past, AccessedBytes]]:
        """What an operation does not come after, and may not meet, with what it does there."""
        for line, ways in self._past.items():
            if line == doer.moment.line:
                continue
            known = doer.moment.after.get(line, 0)
            for (writes, strong), past in ways.items():
                some = [p for p in parts if (writes or p.writes) and not (strong and p.strong)]
                late = [each for each in (one.since(known) for one in past) if each is not None]
                for each in late:
                    for part in some:
                        if (
                            each.part.starts[0] < part.ends[-1]
                            and part.starts[0] < each.part.ends[-1]
                        ):
                            yield each, part

    def _compare(self, past: _Past, part: AccessedBytes, doer: _Doer) -> None:
        for at, mine in _meeting(past.part, part):
            other = past.doers[int(past.whose[at])]
            address = int(max(past.part.starts[at], part.starts[mine]))
            end = int(min(past.part.ends[at], part.ends[mine]))
            if not other.moment.comes_after(doer.moment) and not self._is_stale(
                address, other, doer
            ):
                sides = other.access(past.part, at), doer.access(part, mine)
                self._report(*sides, (address, end - address), (other, doer))
                return

    def _is_stale(self, address: int, *doers: _Doer) -> bool:
        """Whether these were done to two allocations, one after the other at this address."""
        allocation = self._allocation_at(address)
        born = [] if allocation is None else self._born.get(allocation[0], [])
        return len({bisect_right(born, doer.moment.number) for doer in doers}) > 1

    def _report(
        self, first: Access, second: Access, where: Range, doers: tuple[_Doer, _Doer]
    ) -> None:
        allocation = self._allocation_at(where[0])
        names = [doer.launch.kernel for doer in doers if doer.launch is not None]
        self._findings.add(
            Finding(
                check="race",
                kernel=names[-1] if names else "",
                first=first,
                second=second,
                space="global",
                address=where[0],
                nbytes=where[1],
                memory="" if allocation is None else allocation[1],
                benign="",
                missing=_MISSING,
            )
        )


def _range(ranges: list[Range], *, writes: bool) -> AccessedBytes:
    found = np.array(sorted(ranges), dtype=np.int64).reshape(-1, 2)
    starts, sizes = found[:, 0], found[:, 1]
    sites = np.zeros(len(starts), np.int64)
    return AccessedBytes(starts, starts + sizes, sites, writes, strong=False)


def _chosen(part: AccessedBytes, which: NDArray[np.bool_]) -> AccessedBytes:
    return AccessedBytes(
        part.starts[which], part.ends[which], part.sites[which], part.writes, part.strong
    )


def _meeting(one: AccessedBytes, other: AccessedBytes) -> list[tuple[int, int]]:
    """Pairs of ranges that have bytes in common, some of them where they are many."""
    first = np.searchsorted(one.ends, other.starts, side="right")
    behind = np.searchsorted(one.starts, other.ends, side="left")
    found: list[tuple[int, int]] = []
    for mine in np.flatnonzero(first < behind)[:_MOST_LOOKED_AT].tolist():
        stop = min(int(behind[mine]), int(first[mine]) + _MOST_LOOKED_AT)
        found += [(at, mine) for at in range(int(first[mine]), stop)]
    return found


def _as_one(past: list[_Past]) -> _Past:
    """What was accessed last where, of all these, which are in their order."""
    bounds = np.unique(np.concatenate([e for p in past for e in (p.part.starts, p.part.ends)]))
    doers: list[_Doer] = []
    whose = np.full(len(bounds) - 1, -1, np.int64)
    sites = np.zeros(len(bounds) - 1, np.int64)
    for each in past:
        at = np.searchsorted(each.part.starts, bounds[:-1], side="right") - 1
        there = np.flatnonzero((at >= 0) & (bounds[:-1] < each.part.ends[np.maximum(at, 0)]))
        whose[there] = each.whose[at[there]] + len(doers)
        sites[there] = each.part.sites[at[there]]
        doers += each.doers
    known = whose >= 0
    first = known.copy()  # of a range: its neighbour is of another one, or not accessed
    first[1:] &= (whose[1:] != whose[:-1]) | (sites[1:] != sites[:-1])
    starts = np.flatnonzero(first)
    last = known.copy()
    last[:-1] &= (whose[1:] != whose[:-1]) | (sites[1:] != sites[:-1])
    ends = np.flatnonzero(last)
    kept, whose_kept = np.unique(whose[starts], return_inverse=True)
    part = past[0].part
    return _Past(
        AccessedBytes(bounds[starts], bounds[ends + 1], sites[starts], part.writes, part.strong),
        tuple(doers[int(at)] for at in kept),
        whose_kept.reshape(-1),
        past[-1].last,
    )
