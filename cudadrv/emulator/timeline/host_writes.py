"""Writes of the host to pinned and managed memory, as far as they change values.

Memory that operations use is kept as it was at the last call of the driver. What differs at the
next one, the host has written in between; what operations change is taken over at their ends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ..call_site import user_call_site
from .past_accesses import Numbers

if TYPE_CHECKING:
    from ptx.emulate.check.accessed_bytes import AccessedBytes

    from ..host_memory import HostMemory, HostPiece

Bytes = NDArray[np.uint8]
# Of one range: to compare this much takes some milliseconds, at every call.
_MOST_BYTES: Final = 64 << 20
_MOST_RANGES: Final = 64  # before an allocation is watched as a whole
_NOTHING: Final[Numbers] = np.empty((0, 2), np.int64)


@dataclass(frozen=True, slots=True)
class _Watched:
    """A part of an allocation, as it is and as it was."""

    piece: HostPiece
    start: int
    now: Bytes
    before: Bytes

    @property
    def end(self) -> int:
        return self.start + len(self.now)

    def changed(self) -> Numbers:
        """(n, 2) addresses and sizes of what has changed, which is taken over."""
        if _are_equal(self.now, self.before):
            return _NOTHING
        places = np.flatnonzero(self.now != self.before)
        self.before[places] = self.now[places]
        parts = np.flatnonzero(np.diff(places) > 1)
        firsts, lasts = places[np.r_[0, parts + 1]], places[np.r_[parts, len(places) - 1]]
        return np.stack([self.start + firsts, lasts - firsts + 1], axis=1).astype(np.int64)


def _are_equal(one: Bytes, other: Bytes) -> bool:
    """Whether two parts are; eight bytes at a time."""
    whole = len(one) // 8 * 8
    words = one[:whole].view(np.uint64) == other[:whole].view(np.uint64)
    return bool(words.all()) and bool((one[whole:] == other[whole:]).all())


class HostWrites:
    """The memory that operations use. Its owner's lock is held.

    Args:
        memory: all allocations that there are.
    """

    def __init__(self, memory: HostMemory) -> None:
        self._memory = memory
        self._watched: list[_Watched] = []
        self._running = 0
        self._is_alone = True
        self._has_missed = False
        self._seen_at = ""
        self._spare: Bytes = np.empty(0, np.uint8)

    def watch(self, start: int, end: int) -> None:
        """Watch the bytes from one address to another, of one allocation, from now on."""
        piece = self._memory.find(start)
        # Memory of the caller's own may be gone by the time of the next look.
        if piece is None or piece.pages is None or end - start > _MOST_BYTES:
            return
        if any(each.start <= start and end <= each.end for each in self._watched):
            return
        if not self._watched:
            self._seen_at = user_call_site()
        if len(self._watched) >= _MOST_RANGES and piece.nbytes <= _MOST_BYTES:
            start, end = piece.address, piece.address + piece.nbytes
            self._watched = [each for each in self._watched if each.piece is not piece]
        now: Bytes = np.frombuffer(piece.pages, np.uint8)[
            start - piece.address : end - piece.address
        ]
        before = self._buffer(end - start)
        before[:] = now
        self._watched.append(_Watched(piece, start, now, before))

    def _buffer(self, nbytes: int) -> Bytes:
        """A used one where there is one: fresh pages take as long as several copies."""
        spare = self._spare
        if nbytes <= len(spare) <= 2 * nbytes:
            self._spare = spare[:0]
            return spare[:nbytes]
        return np.empty(nbytes, np.uint8)

    def watch_used(self, part: AccessedBytes) -> None:
        """Watch what an operation has accessed: in each allocation from the first byte on."""
        for piece in list(self._memory.pieces.values()):
            end = piece.address + piece.nbytes
            first = int(np.searchsorted(part.ends, piece.address, side="right"))
            behind = int(np.searchsorted(part.starts, end, side="left"))
            if first < behind:
                start = max(int(part.starts[first]), piece.address)
                self.watch(start, min(int(part.ends[behind - 1]), end))

    def keep(self, is_used: Callable[[int, int], bool]) -> None:
        """Watch no more what is not used, of which the start and the end are given."""
        if self._watched:
            former = self._watched
            self._watched = [each for each in former if is_used(each.start, each.end)]
            if not self._watched:
                self._spare = former[-1].before

    def look(self) -> tuple[Numbers, str]:
        """Find writes of the host since the last call, and between which calls they were.

        While other threads run operations, nobody knows who writes, nor afterwards when it was:
        what comes in that time is left out.
        """
        if self._running:
            self._has_missed = True
        if not self._watched or self._running:
            return _NOTHING, ""
        if self._has_missed:
            self._has_missed = False
            self.take_over()
        found, since, now = self._changed(), self._seen_at, user_call_site()
        self._seen_at = now
        return found, f"after {since or 'an unknown place'}, before {now or 'an unknown place'}"

    def begin(self) -> None:
        """An operation begins, or goes on."""
        self._is_alone = not self._running
        self._running += 1

    def end(self) -> None:
        """It has ended, or pauses."""
        self._running -= 1

    def take_over(self, start: int = 0, end: int = sys.maxsize) -> None:
        """An operation has written from one address to another."""
        for each in self._watched:
            if each.start < end and start < each.end:
                part = slice(max(start - each.start, 0), min(end, each.end) - each.start)
                each.before[part] = each.now[part]

    def written_alone(self) -> Numbers:
        """What an operation has written, which is taken over; nothing if others run as well."""
        found = self._changed()
        return found if self._is_alone else _NOTHING

    def _changed(self) -> Numbers:
        """(n, 2) addresses and sizes of what has changed since the last look, in any order."""
        if not self._watched:
            return _NOTHING
        pieces = self._memory.pieces
        self._watched = [e for e in self._watched if pieces.get(e.piece.address) is e.piece]
        found = [changed for each in self._watched if len(changed := each.changed())]
        return np.concatenate(found) if found else _NOTHING
