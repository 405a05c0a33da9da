"""Python functions that C calls: no exception may end there, as ctypes would answer success."""

from __future__ import annotations

import _thread
import signal
import sys
from collections.abc import Callable

from .signature import Argument


def guarded(function: Callable[..., int], failed: int) -> Callable[..., int]:
    """The function, which answers `failed` instead of raising.

    An interrupt is raised again in the main thread, where the C code has returned. Anything else is
    told as an error without a caller, as C has no other place for it.
    """

    def answer(*given: Argument) -> int:
        try:
            return function(*given)
        except KeyboardInterrupt:
            # Within an unpacking, as after a call the interpreter would look for it here already.
            (_,) = map(_thread.interrupt_main, (signal.SIGINT,))
        except BaseException:
            sys.excepthook(*sys.exc_info())
        return failed

    return answer
