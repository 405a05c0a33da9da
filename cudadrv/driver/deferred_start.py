"""The start of an emulator that waits for the process's first driver call, under `emulate`.

A process that never calls the driver then costs nothing. This module imports nothing heavy, as each
Python process of `emulate` loads it.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable


class _Deferred:
    """What waits in this process.

    Attributes:
        start: starts the emulator; None if nothing waits.
        at_exit: functions for the end of the process, or None where `atexit` has them.
    """

    def __init__(self) -> None:
        self.start: Callable[[], object] | None = None
        self.at_exit: list[Callable[[], object]] | None = None

    def run_at_exit(self) -> None:
        """Run the functions for the end, last first, as `atexit` does."""
        functions = self.at_exit or []
        try:
            while functions:
                functions.pop()()
        finally:
            if functions:
                self.run_at_exit()


_deferred = _Deferred()


def defer(start: Callable[[], object]) -> None:
    """Let the first driver call run `start`.

    Functions for the end of the process run when they would if it had started now. So handlers that
    the program registers before its first call may call the driver, too.
    """
    _deferred.start = start
    if _deferred.at_exit is None:
        _deferred.at_exit = []
        atexit.register(_deferred.run_at_exit)


def take_start() -> Callable[[], object] | None:
    """Return what starts the emulator, if it waits; it waits no longer then."""
    start, _deferred.start = _deferred.start, None
    return start


def register_at_exit(function: Callable[[], object]) -> None:
    """Run a function at the end of the process, after what the program itself has registered."""
    if _deferred.at_exit is None:
        atexit.register(function)
    else:
        _deferred.at_exit.append(function)
