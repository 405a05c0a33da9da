"""What tells threads of each other through memory, put off until somebody asks.

A kernel whose threads meet by atomic operations alone is never asked what they know: those may
meet. So it is only noted what was done, for all threads of a step at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_MOST_NUMBERS: Final = 1 << 22  # of four bytes each


class HandoverLog:
    """What the threads of a launch did, oldest first, and nobody has asked for yet."""

    def __init__(self) -> None:
        self._late: list[Callable[[], None]] = []
        self._numbers = 0

    def __bool__(self) -> bool:
        return bool(self._late)

    def put_off(self, work: Callable[[], None], numbers: int) -> None:
        """Do this before anything is asked; it keeps so many numbers in memory."""
        self._late.append(work)
        self._numbers += numbers
        if self._numbers > _MOST_NUMBERS:
            self.settle()

    def settle(self) -> None:
        """Do what was put off."""
        late, self._late, self._numbers = self._late, [], 0
        for work in late:
            work()
