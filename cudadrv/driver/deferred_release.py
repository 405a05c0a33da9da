"""Objects whose release is deferred until a call of this library may run it.

A function that the driver calls in a thread of its own must not call the driver, and releasing its
arguments may do that. Memory of another library must not be released before our queued work on it
is done. Buffers of OpenGL are released in a thread that has an OpenGL context. All are stored here.
Calls that wait for the device release them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Final

from ..errors import CudadrvError

# Destroy functions that could not run in their thread.
_rejected: Final[deque[Callable[[], object]]] = deque()
# Each list is emptied when it is released, as the caller may still hold the list itself.
_cells: Final[deque[list[object]]] = deque()
# Lists that are released once a condition holds.
_parked: Final[deque[tuple[Callable[[], bool], list[object]]]] = deque()


class _Callbacks:
    """Whether the driver has received functions of ours, which it calls in threads of its own."""

    expected: bool = False


callbacks: Final = _Callbacks()
# Private, and a dictionary by `get_ident()` on every Python that is supported: the public functions
# that read it take its lock, which a finalizer must not.
_python_threads: Final[dict[int, threading.Thread]] = threading._active  # type: ignore[attr-defined]
_STRANGERS: Final = (type(None), threading._DummyThread)


def thread_of(number: int) -> threading.Thread | None:
    """Return the thread of an identifier of `threading.get_ident`; None if Python did not start it.

    Takes no lock.
    """
    return _python_threads.get(number)


def is_driver_thread() -> bool:
    """Return whether this thread may be one of the driver's, in which nothing may call the driver.

    A garbage collection can begin in any thread, also in one that the driver calls a function of
    ours in, and before its first line. There the driver may reject a call, or wait for ever: H100,
    driver 580, cuStreamDestroy. Python did not start the driver's threads.
    """
    if not callbacks.expected:
        return False
    return isinstance(_python_threads.get(threading.get_ident()), _STRANGERS)


def defer_release(cell: list[object]) -> None:
    """Release the contents of a list at the next `run_deferred`. Calls nothing."""
    _cells.append(cell)


def release_when(is_done: Callable[[], bool], cell: list[object]) -> None:
    """Release the contents of a list at a `run_deferred` after `is_done` returns True."""
    _parked.append((is_done, cell))


def retry_destroy(destroy: Callable[[], object]) -> None:
    """Call `destroy` again at the next `run_deferred`. Calls nothing now."""
    _rejected.append(destroy)


def waiting_count() -> int:
    """Return how many releases wait for a `run_deferred`."""
    return len(_rejected) + len(_cells) + len(_parked)


def run_deferred() -> bool:
    """Release all deferred objects whose condition holds. Return whether there were some."""
    if not (_rejected or _cells or _parked):
        return False
    has_released = bool(_rejected or _cells)
    for _ in range(len(_rejected)):
        try:
            destroy = _rejected.popleft()
        except IndexError:
            break  # another thread released it
        destroy()
    while _cells:
        try:
            cell = _cells.popleft()
        except IndexError:
            break  # another thread released it
        cell.clear()
    for _ in range(len(_parked)):
        try:
            is_done, cell = _parked.popleft()
        except IndexError:
            break
        done = False
        try:
            done = is_done()
        except CudadrvError:
            done = True  # failed work no longer runs
        finally:
            if not done:
                _parked.append((is_done, cell))
        if done:
            has_released = True
            cell.clear()
    return has_released
