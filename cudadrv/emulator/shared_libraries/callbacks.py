"""Python functions that C calls: no exception may end there, as ctypes would answer success."""

from __future__ import annotations

import _thread
import ctypes
import signal
import sys
from collections.abc import Callable

from .signature import Argument

# As every call of Python's own functions by ctypes, it raises an exception that passes already.
_raise_what_passes = ctypes.pythonapi.PyErr_Occurred


def guarded(function: Callable[..., int], failed: int) -> Callable[..., int]:
    """The function, which answers `failed` instead of raising.

    An interrupt is raised again in the main thread, where the C code has returned. Anything else is
    told as an error without a caller, as C has no other place for it. So is an exception that
    passes through C code which tidies up: the function would find it as its own.
    """

    def answer(*given: Argument) -> int:
        try:
            _raise_what_passes()
        except BaseException:
            sys.excepthook(*sys.exc_info())
        try:
            return function(*given)
        except KeyboardInterrupt:
            # Within an unpacking, as after a call the interpreter would look for it here already.
            (_,) = map(_thread.interrupt_main, (signal.SIGINT,))
        except BaseException:
            sys.excepthook(*sys.exc_info())
        return failed

    return answer
