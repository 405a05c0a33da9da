"""Logical time: the order by streams, events, graphs and waits of the host, not by the clock.

Each stream, and each chain of a graph's nodes, is a track of moments with numbers. A clock says up
to which moment of each track everything is over. The driver's manual has the rules: "Stream
synchronization behavior", "API synchronization behavior". All threads of the host are taken as
one: what one of them has waited for, others may know of by locks that nobody sees here.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..node_kind import NodeKind
from ..streams import Stream
from .queues import wait_for_each_other
from .timestamp import Clock, Timestamp, Track

if TYPE_CHECKING:
    from ..contexts import Context
    from ..device_state import DeviceState
    from ..events import Event
    from ..executables import Executable


class LogicalTime:
    """The tracks of an emulator. Its owner's lock is held."""

    def __init__(self) -> None:
        self._tracks: dict[Stream, Track] = {}
        self._track_numbers = itertools.count(1)
        self._moments = itertools.count(1)
        self._host: Clock = {}
        self._host_track = Track(next(self._track_numbers))

    def next_number(self) -> int:
        """A number for something that is no moment, in the same order."""
        return next(self._moments)

    def moment(self, stream: Stream, kind: NodeKind, place: str) -> Timestamp:
        """An operation is put into a stream."""
        after = self.now(stream)
        track = self._tracks.get(stream)
        if track is None:
            track = self._tracks[stream] = Track(next(self._track_numbers))
        return self._add(track, after, kind, place)

    def moment_of_host(self, place: str, kind: NodeKind) -> Timestamp:
        """The host itself does something."""
        found = self._add(self._host_track, dict(self._host), kind, place)
        self._host = self._host_track.clock
        return found

    def moments_of_graph(
        self, executable: Executable, stream: Stream, place: str, events: Mapping[int, Event]
    ) -> list[Timestamp]:
        """A graph is launched: one for each of its nodes."""
        start = self.now(stream)
        _join(start, executable.clock)
        end, clocks, found = dict(start), list[Clock](), list[Timestamp]()
        ends_of_chains: dict[int, Track] = {}  # by the node that is the last of its chain
        free = list(executable.tracks)
        for number, node in enumerate(executable.steps):
            after = dict(start)
            for each in node.after:
                _join(after, clocks[each])
            event = events.get(node.work.event)
            if event is not None and node.kind is NodeKind.WAIT:
                _join(after, event.clock or {})
            chain = next((ends_of_chains.pop(e) for e in node.after if e in ends_of_chains), None)
            if chain is None:
                chain = free.pop() if free else Track(next(self._track_numbers))
                if chain not in executable.tracks:
                    executable.tracks.append(chain)
            ends_of_chains[number] = chain
            found.append(self._add(chain, after, node.kind, place))
            clocks.append(chain.clock)
            if event is not None and node.kind is NodeKind.RECORD:
                event.clock = dict(chain.clock)
            _join(end, chain.clock)
        executable.clock = end
        self.wait(stream, end)
        return found

    def _add(self, track: Track, after: Clock, kind: NodeKind, place: str) -> Timestamp:
        track.last += 1
        track.clock = {**after, track.number: track.last}
        return Timestamp(next(self._moments), track.number, track.last, after, kind, place)

    def now(self, stream: Stream) -> Clock:
        """What is over once all is that a stream has, or would wait for, now."""
        found = dict(self._host)
        for other, track in self._tracks.items():
            if other is stream or wait_for_each_other(stream, other):
                _join(found, track.clock)
        return found

    def wait(self, stream: Stream, clock: Clock) -> None:
        """What comes next in a stream comes after this."""
        track = self._tracks.get(stream)
        if track is None:
            track = self._tracks[stream] = Track(next(self._track_numbers))
        track.clock = dict(track.clock)
        _join(track.clock, clock)

    def of(self, owner: Context | DeviceState) -> Clock:
        """What is over once all work of a context or a device is."""
        found: Clock = {}
        for stream, track in self._tracks.items():
            if owner in (stream.context, stream.context.device):
                _join(found, track.clock)
        return found

    def all(self) -> Clock:
        """What is over once everything is that was called."""
        found: Clock = {}
        for track in self._tracks.values():
            _join(found, track.clock)
        return found

    def host_waits(self, clock: Clock, *, forgets: bool) -> Clock:
        """The host has waited for this; gives all that is over for it, and so for what comes.

        `forgets`: nothing of it is compared any more, so that no clock has to tell of it.
        """
        over = dict(self._host)
        _join(over, clock)
        for stream, track in list(self._tracks.items()):
            track.clock = {n: index for n, index in track.clock.items() if over.get(n, 0) < index}
            if not track.clock:
                del self._tracks[stream]
        self._host = {} if forgets else over
        return over


def _join(into: Clock, more: Clock) -> None:
    for track, index in more.items():
        if into.get(track, 0) < index:
            into[track] = index
