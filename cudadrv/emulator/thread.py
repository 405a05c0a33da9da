"""What the emulated driver keeps for each thread, and what it puts off for a finalizer there."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ..errors import CudaError

if TYPE_CHECKING:
    from .contexts import Context
    from .refusal import Failure


class CallingThread(threading.local):
    """A thread's contexts, its last failed call, and what it has put off.

    It has no `__init__`: a collection in there would call the driver, and find half of it.

    Attributes:
        stack: its contexts; the last is current.
        put_off: what finalizers gave back in the middle of a call, with the stack of that moment.
        failure: its last failed call.
        runs_host_function: whether it runs one, which makes no calls.
        capture_mode: which captures keep it from unsafe calls, a CUstreamCaptureMode.
        depth: how many calls are under way, one in the other.
    """

    stack: list[Context]
    put_off: deque[tuple[tuple[Context, ...], Callable[[], object]]]
    failure: Failure | None = None
    runs_host_function: bool = False
    capture_mode: int = 0
    depth: int = 0
    _makes_up = False

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            if name not in ("stack", "put_off"):
                raise AttributeError(name)
            # A collection may come between the two steps, and be first.
            return self.__dict__.setdefault(name, [] if name == "stack" else deque())

    def begin_call(self, call: Callable[[], object] | None) -> bool:
        """Begin a call; but one that gives something back in the middle of another is put off.

        It comes from a finalizer then, in a thread that may hold a lock.
        """
        if call is not None and self.depth:
            self.put_off.append((tuple(self.stack), call))
            return False
        self.depth += 1
        return True

    def make_up(self) -> None:
        """Do what was put off; what is put off meanwhile, too."""
        if self._makes_up:
            return
        self._makes_up = True
        try:
            while self.put_off:
                stack, call = self.put_off.popleft()
                now, failure = self.stack, self.failure
                self.stack = list(stack)
                try:
                    result = call()
                finally:
                    self.stack, self.failure = now, failure
                if isinstance(result, tuple) and result[0]:
                    error = _refused(call, result[0])
                    # What broke a context was told by the call that this stood behind.
                    if not (error.sticky and failure is not None and failure.code == result[0]):
                        _Unraisable(error)
        finally:
            self._makes_up = False


class _Unraisable:
    """Hands an error that has no caller to sys.unraisablehook, by raising it in its finalizer."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __del__(self) -> None:
        raise self.error


def _refused(call: Callable[[], object], code: int) -> CudaError:
    """The error of a call that was put off, which nobody waits for."""
    name = call.func.__name__ if isinstance(call, partial) else ""
    doing = "giving back what a finalizer let go of in the middle of another call"
    return CudaError.for_code(int(code))(doing, call=name, code=int(code))
