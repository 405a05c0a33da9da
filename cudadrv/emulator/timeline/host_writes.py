"""What the host writes to pinned and managed memory, as far as it changes values.

Memory that operations use is kept as it was at the last call of the driver. What differs at the
next one, the host has written in between; what operations change is taken over at their ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from ..origin import caller
from .past_accesses import Numbers

if TYPE_CHECKING:
    from ..host_memory import HostMemory, HostPiece

Bytes = NDArray[np.uint8]
# Of one allocation: to compare this much takes some milliseconds, at every call.
_MOST_BYTES: Final = 64 << 20
_NOTHING: Final[Numbers] = np.empty((0, 2), np.int64)


class HostWrites:
    """The allocations that operations use. Its owner's lock is held.

    Args:
        memory: all that there are.
    """

    def __init__(self, memory: HostMemory) -> None:
        self._memory = memory
        self._watched: dict[int, tuple[HostPiece, Bytes, Bytes]] = {}
        self._running = 0
        self._is_alone = True
        self._seen_at = ""

    def watch(self, address: int) -> None:
        """Watch the allocation at an address from now on."""
        piece = self._memory.find(address)
        if piece is None or piece.nbytes > _MOST_BYTES or piece.address in self._watched:
            return
        if not self._watched:
            self._seen_at = caller()
        now: Bytes = np.frombuffer(piece.pages, np.uint8)
        self._watched[piece.address] = piece, now, now.copy()

    def all(self) -> list[tuple[int, int]]:
        """Where the allocations begin and end that there are."""
        pieces = list(self._memory.pieces.values())
        return [(piece.address, piece.address + piece.nbytes) for piece in pieces]

    def watch_used(self, is_used: Callable[[int, int], bool]) -> None:
        """Watch the allocations that are used, of which the start and the end are given."""
        for start, end in self.all():
            if is_used(start, end):
                self.watch(start)

    def keep(self, is_used: Callable[[int, int], bool]) -> None:
        """Watch no more what is not used."""
        for address, (piece, _, _) in list(self._watched.items()):
            if not is_used(address, address + piece.nbytes):
                del self._watched[address]

    def look(self) -> tuple[Numbers, str]:
        """What the host has written since the last call, and between which calls that was.

        While operations run, nobody knows who writes.
        """
        if not self._watched or self._running:
            return _NOTHING, ""
        found, since, now = self._changed(), self._seen_at, caller()
        self._seen_at = now
        return found, f"after {since or 'an unknown place'}, before {now or 'an unknown place'}"

    def begin(self) -> None:
        """An operation begins, or goes on."""
        self._is_alone = not self._running
        self._running += 1

    def end(self) -> Numbers:
        """It has ended: take over what has changed. Gives that if it alone has run."""
        self._running -= 1
        found = self._changed() if self._watched else _NOTHING
        return found if self._is_alone else _NOTHING

    def _changed(self) -> Numbers:
        """(n, 2) addresses and sizes of what has changed since the last look, in their order."""
        found: list[Numbers] = []
        for address, (piece, now, before) in sorted(self._watched.items()):
            if self._memory.pieces.get(address) is not piece:
                del self._watched[address]
                continue
            places = np.flatnonzero(now != before)
            if len(places):
                found.append(_runs(address, places))
                before[places] = now[places]
        return np.concatenate(found) if found else _NOTHING


def _runs(start: int, places: NDArray[np.intp]) -> Numbers:
    """Neighbouring bytes as runs: where each begins, and its size."""
    parts = np.flatnonzero(np.diff(places) > 1)
    firsts, lasts = places[np.r_[0, parts + 1]], places[np.r_[parts, len(places) - 1]]
    return np.stack([start + firsts, lasts - firsts + 1], axis=1).astype(np.int64)
