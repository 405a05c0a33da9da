"""`OnceTask`: work that one thread offers to others, then waits for; and uninterruptible steps.

A signal handler may raise an exception between any two steps of the main thread. So a mandatory
step is one that may be repeated, and it is repeated until it has completed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Generic, ParamSpec

_P = ParamSpec("_P")

_MOST_TRIES: Final = 1000


def complete(step: Callable[[], object]) -> None:
    """Call a step that may be repeated until it completes; then raise the last interruption.

    An error of the step itself, an `Exception`, is raised at once.
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


class OnceTask(Generic[_P]):
    """Work that is begun at most once: by the first thread that calls `run`.

    The thread that made the task ends it by `finish`.
    """

    __slots__ = ("_error", "_lock", "_work")

    def __init__(self, work: Callable[_P, object]) -> None:
        self._work: Callable[_P, object] | None = work
        self._error: BaseException | None = None
        # Held by the thread that runs the work; at the end by the thread that made the task.
        self._lock = threading.RLock()

    def run(self, *args: _P.args, **kwargs: _P.kwargs) -> bool:
        """Do the work, unless `finish` came first. Return whether it was done. Raises nothing."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._work is not None:
                self._work(*args, **kwargs)
        except BaseException as error:  # `finish` returns any error
            self._error = error
        finally:
            self._lock.release()
        return True

    def cancel(self) -> bool:
        """Prevent the start of the work. Return False if it runs. The maker's thread calls this."""
        return self._lock.acquire(blocking=False)

    def finish(self) -> BaseException | None:
        """Wait until the work ends if it has begun, else prevent its start. Idempotent.

        Return the error that the work raised. The maker's thread calls this, and keeps the lock.
        """
        complete(self._lock.acquire)
        self._work = None
        error, self._error = self._error, None
        return error
