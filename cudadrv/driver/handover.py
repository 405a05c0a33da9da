"""Work that one thread gives to another, and takes back or waits for, whatever interrupts it.

CPython looks for signals, and for exceptions that other threads set, in three places: where a
Python function begins, where a loop goes back, and after the call of a function that is not
Python's. So nothing comes between the beginning of a ``finally`` and the first call in it, and
nothing between the answer of a function that C calls, such as `map`, and the assignment of it.
`take` and `give` are functions of C, for such places, and no signal ends the wait of `take`: that
of Python's own locks ends when a handler raises.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import starmap
from typing import Final, Generic, ParamSpec, cast

_P = ParamSpec("_P")

# The same library as `ctypes.pythonapi`, which would keep the interpreter's lock during a wait.
_python: Final = ctypes.CDLL(ctypes.pythonapi._name, handle=ctypes.pythonapi._handle)
_HANDLE: Final = ctypes.c_void_p


def _function(
    name: str, result: type[ctypes.c_int | ctypes.c_void_p] | None, *arguments: type
) -> object:
    function = _python[name]
    function.restype, function.argtypes = result, arguments
    return function


# Source: pythread.h of CPython, part of its stable interface. `ctypes` knows no types of them.
_new: Final = cast("Callable[[], int]", _function("PyThread_allocate_lock", _HANDLE))
_free: Final = cast("Callable[[int], None]", _function("PyThread_free_lock", None, _HANDLE))
take: Final = cast(
    "Callable[[int, int], int]",
    _function("PyThread_acquire_lock", ctypes.c_int, _HANDLE, ctypes.c_int),
)
"""Take the lock of a handle: with 1 wait for it, with 0 answer 1 or 0 at once."""
give: Final = cast("Callable[[int], None]", _function("PyThread_release_lock", None, _HANDLE))
"""Give the lock of a handle back."""


_MOST_TRIES: Final = 1000


def finish(step: Callable[[], object]) -> None:
    """Call a step that may be called again, until it ends; then raise what interrupted it last.

    For what must be undone. An error of the step is raised at once.
    """
    interrupt: BaseException | None = None
    for _ in range(_MOST_TRIES):
        try:
            step()
            break
        except Exception:
            raise
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


class Handover(Generic[_P]):
    """A piece of work that is begun at most once, and then awaited.

    Whoever takes its lock has it: the thread that runs it, until it has ended, or the giver, who
    keeps the lock, so that nobody begins any more.

    Attributes:
        lock: the handle for `take` and `give`.
    """

    __slots__ = ("_error", "_work", "lock")

    lock: int

    def __init__(self, work: Callable[_P, object]) -> None:
        self._work: Callable[_P, object] | None = work
        self._error: BaseException | None = None
        (self.lock,) = starmap(_new, ((),))

    def __del__(self) -> None:
        # Only a thread that refers to it uses its lock.
        lock = getattr(self, "lock", 0)
        if lock:
            _free(lock)

    def run(self, *args: _P.args, **kwargs: _P.kwargs) -> bool:
        """Do the work, unless the giver has taken it back; whether it did. Raises nothing of it."""
        lock = self.lock
        (taken,) = map(take, (lock,), (0,))
        if taken:
            try:
                if self._work is not None:
                    self._work(*args, **kwargs)
            except BaseException as error:  # whatever it is, the giver gets it
                self._error = error
            finally:
                give(lock)
        return bool(taken)

    def settled(self) -> BaseException | None:
        """By the giver, who has the lock: let go of the work; gives what it raised."""
        self._work = None
        error, self._error = self._error, None
        return error
