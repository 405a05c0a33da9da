"""Moments of the logical time, the lines that they stand on, and what is over at them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..node_kind import NodeKind

Clock = dict[int, int]
"""By line, the number of a moment up to which all is over; a line that is missing is not known."""


@dataclass(eq=False, slots=True)
class Moment:
    """When one operation runs.

    Attributes:
        number: counts the moments of an emulator in the order of the calls.
        line, index: where it stands.
        after: what is over before it.
        place: file and line of the call.
    """

    number: int
    line: int
    index: int
    after: Clock
    kind: NodeKind
    place: str

    def comes_after(self, other: Moment) -> bool:
        """Whether another operation is over before this one begins."""
        if other.line == self.line:
            return other.index < self.index
        return self.after.get(other.line, 0) >= other.index


@dataclass(eq=False, slots=True)
class Line:
    """A stream, or a chain in a graph: its moments follow each other.

    Attributes:
        last: the index of the last one.
        clock: what is over once that is.
    """

    number: int
    last: int = 0
    clock: Clock = field(default_factory=dict)
