"""`Latch`: what happens once, and threads wait for, whatever interrupts them."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Final

_STEP_S: Final = 0.05


class Latch:
    """Something that happens once. A forked child has it as it was.

    `threading.Event` takes its lock in a function of Python. An interrupt inside that function
    leaves the lock taken, and each later call waits for ever. Here an interrupted call may be
    repeated, and no other thread waits longer than a step.

    Attributes:
        is_set: whether it has happened.
    """

    __slots__ = ("_held", "is_set")

    def __init__(self) -> None:
        self.is_set: bool = False
        # Wakes those who wait; `is_set` alone decides.
        self._held = threading.Lock()
        self._held.acquire()

    def set(self) -> None:
        """Let it have happened. Idempotent."""
        self.is_set = True
        self._wake()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it has happened, at most for some seconds; return whether it has."""
        end = None if seconds is None else time.monotonic() + seconds
        while not self.is_set:
            left = _STEP_S if end is None else min(_STEP_S, end - time.monotonic())
            if left <= 0:
                break
            if self._held.acquire(timeout=left):
                self._wake()  # the next one that waits
        return self.is_set

    def _wake(self) -> None:
        with suppress(RuntimeError):  # it is free: another thread was faster
            self._held.release()
