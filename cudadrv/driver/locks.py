"""Locks that a forked child finds free, whichever thread of its parent held them.

That thread is not in the child, so nobody would release them there. The child has no driver of its
parent's, but may use an emulator of its own, and is told when it uses what it must not.
"""

from __future__ import annotations

import os
import threading
from typing import Final

from .registry import Registry

_made: Final[Registry[threading.RLock]] = Registry()
_make: Final = threading.RLock


def process_lock() -> threading.RLock:
    """A re-entrant lock that is free in a forked child."""
    lock = _make()
    _made.add(lock)
    return lock


def _free_all() -> None:
    for lock in _made.alive():
        # What `threading` itself does to its locks after a fork; a new lock would have to be put
        # everywhere that the old one is.
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # not in the stubs


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
