"""Locks that a forked child finds free, whichever thread of its parent held them.

The child has no such thread, so it could never release them. The child cannot use its parent's
driver, but may use an emulator of its own. It raises an error if it uses its parent's objects.
"""

from __future__ import annotations

import os
import threading
from typing import Final

from .registry import Registry

_locks: Final[Registry[threading.RLock]] = Registry()
_new_lock: Final = threading.RLock


def process_lock() -> threading.RLock:
    """A re-entrant lock that is free in a forked child."""
    lock = _new_lock()
    _locks.add(lock)
    return lock


def _free_all() -> None:
    for lock in _locks.alive():
        # `threading` does the same to its locks after a fork; a new lock would have to replace the
        # old one everywhere.
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # not in the stubs


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free_all)
