"""Timestamps of the logical time, their tracks, and the work that is over at them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..node_kind import NodeKind

Clock = dict[int, int]
"""By track, the index up to which everything is over; a missing track is unknown."""


@dataclass(eq=False, repr=False, slots=True)
class Timestamp:
    """The logical time of one operation.

    Attributes:
        number: counts the moments of an emulator in the order of the calls.
        track, index: its position.
        after: the clock of the work that is over before it.
        call_site: file and line of the call.
    """

    number: int
    track: int
    index: int
    after: Clock
    kind: NodeKind
    call_site: str

    def comes_after(self, other: Timestamp) -> bool:
        """Return whether another operation is over before this one begins."""
        if other.track == self.track:
            return other.index < self.index
        return self.after.get(other.track, 0) >= other.index


@dataclass(eq=False, repr=False, slots=True)
class Track:
    """A stream, or a chain in a graph, with ordered moments.

    Attributes:
        last: the index of the last one.
        clock: the work that is over after that one.
    """

    number: int
    last: int = 0
    clock: Clock = field(default_factory=dict)
