"""How much of a device's memory graphs use and keep.

CUDA Driver API: cuDeviceGetGraphMemAttribute.
"""

from __future__ import annotations

from collections.abc import Iterable

from .pieces import Piece


class GraphAccount:
    """Bytes that graphs use now, and those that launches have allocated and nobody has trimmed.

    Whoever asks holds the device's lock.

    Attributes:
        used_high, reserved_high: the most since they were reset.
    """

    def __init__(self) -> None:
        self.used_high: int = 0
        self.reserved_high: int = 0

    @staticmethod
    def now(pieces: Iterable[Piece]) -> tuple[int, int]:
        """What is used, and what is reserved, of all allocations of the device."""
        used = reserved = 0
        for piece in pieces:
            if piece.graph is not None and piece.graph.is_reserved:
                reserved += piece.nbytes
                used += piece.nbytes if piece.graph.live else 0
        return used, reserved

    def note(self, pieces: Iterable[Piece]) -> None:
        """Something was allocated."""
        used, reserved = self.now(pieces)
        self.used_high = max(self.used_high, used)
        self.reserved_high = max(self.reserved_high, reserved)

    @staticmethod
    def trim(pieces: Iterable[Piece]) -> None:
        """Keep what is used alone."""
        for piece in pieces:
            if piece.graph is not None and not piece.graph.live:
                piece.graph.is_reserved = False
