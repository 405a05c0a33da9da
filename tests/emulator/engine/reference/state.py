"""What threads of the reference share: memory, and what they stop for."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

RunningThread = Generator["Request", int, None]


class NotCovered(Exception):
    """The interpreter does not have this instruction."""


class Deadlock(Exception):
    """Threads wait for others that never come."""


@dataclass
class Request:
    """What a thread stops for: "bar", or a warp instruction with what the lane brings.

    A barrier's values are its number, the count of threads if there is one, and for `.red` the
    predicate last; a warp instruction's `mask` has the lanes that take part.
    """

    kind: str
    words: tuple[str, ...] = ()
    values: tuple[int, ...] = ()
    mask: int = 0


@dataclass
class Memory:
    """Global memory in pieces, and the shared memory of one block."""

    pieces: dict[int, bytearray]
    shared: bytearray = field(default_factory=bytearray)

    def place(self, address: int, nbytes: int) -> tuple[bytearray, int]:
        for start, data in self.pieces.items():
            if start <= address and address + nbytes <= start + len(data):
                return data, address - start
        raise IndexError(f"{address:#x}")


@dataclass
class Thread:
    """Where one thread is in the grid, and its local memory by variable name."""

    place: dict[str, int]
    lane: int
