"""The beginning of a library that initialises the driver in a thread of its own.

Such a library may hold the interpreter lock until that thread has ended, as the driver itself needs
no Python: Dr.Jit does at its first call, and computes meanwhile. The emulator needs the lock. So
the main thread waits, without it, until the native thread has made the calls that follow the first
one. `lock_wait.py` serves later calls, if the wait for them sleeps.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from .lock_wait import lock_functions

_QUIET: Final = 0.1  # seconds without a call
_LONGEST: Final = 20.0
_STEP: Final = 0.002
_Pending: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


def let_native_thread_begin() -> None:
    """Let the main thread wait for the calls of this thread, if C code has made it.

    The main thread goes on when a tenth of a second has passed without a call.
    """
    counted = lock_functions()
    if counted is None or not _is_native(threading.get_ident()):
        return
    calls = counted.calls

    def wait(_: int | None) -> int:
        _wait_until_quiet(lambda: calls.value)
        return 0

    pending = _Pending(wait)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(pending))
    ctypes.pythonapi.Py_AddPendingCall(pending, None)


def _wait_until_quiet(count: Callable[[], int]) -> None:
    """Sleep until the count stays and no native thread is within a call."""
    end = time.monotonic() + _LONGEST
    last, since = count(), time.monotonic()
    while (now := time.monotonic()) < end:
        time.sleep(_STEP)
        if count() != last or any(map(_is_native, sys._current_frames())):
            last, since = count(), now
        elif now - since > _QUIET:
            return


def _is_native(thread: int) -> bool:
    """Return whether C code has made a thread."""
    known = (each.ident for each in threading.enumerate() if not _is_dummy(each))
    return thread not in known


def _is_dummy(thread: threading.Thread) -> bool:
    """Return whether Python made an object for a thread that it did not start."""
    return isinstance(thread, threading._DummyThread)
