"""Timestamps of the logical time, the tracks that they stand on, and what is over at them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..node_kind import NodeKind

Clock = dict[int, int]
"""By track, the index up to which everything is over; a missing track is not known."""


@dataclass(eq=False, slots=True)
class Timestamp:
    """When one operation runs.

    Attributes:
        number: counts the moments of an emulator in the order of the calls.
        track, index: where it stands.
        after: what is over before it.
        place: file and line of the call.
    """

    number: int
    track: int
    index: int
    after: Clock
    kind: NodeKind
    place: str

    def comes_after(self, other: Timestamp) -> bool:
        """Whether another operation is over before this one begins."""
        if other.track == self.track:
            return other.index < self.index
        return self.after.get(other.track, 0) >= other.index


@dataclass(eq=False, slots=True)
class Track:
    """A stream, or a chain in a graph: its moments follow each other.

    Attributes:
        last: the index of the last one.
        clock: what is over once that is.
    """

    number: int
    last: int = 0
    clock: Clock = field(default_factory=dict)
