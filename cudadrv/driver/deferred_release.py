"""What may not be dropped where it is let go of, kept until a call of ours may drop it.

A function that the driver calls in a thread of its own must not call the driver, and dropping what
it was given may do that. Memory of another library must not go before our queued work on it is
done. Both are put here; calls that wait, and those that put something here, empty it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from ..errors import CudadrvError

# What the driver refused to destroy in a thread of its own.
_refused: Final[deque[Callable[[], object]]] = deque()
# Each cell is emptied where it is dropped: who put it here may still hold the list itself.
_cells: Final[deque[list[object]]] = deque()
# What is dropped once a condition holds.
_parked: Final[deque[tuple[Callable[[], bool], list[object]]]] = deque()


def defer_release(cell: list[object]) -> None:
    """Let the next call of `run_deferred` drop what the list holds. Calls nothing."""
    _cells.append(cell)


def release_when(is_done: Callable[[], bool], cell: list[object]) -> None:
    """Let a call of `run_deferred` drop what the list holds once `is_done` says so."""
    _parked.append((is_done, cell))


def retry_destroy(destroy: Callable[[], object]) -> None:
    """Let a call of `run_deferred` destroy something again. Calls nothing."""
    _refused.append(destroy)


def run_deferred() -> None:
    """Drop what was put here and may go."""
    for _ in range(len(_refused)):
        try:
            destroy = _refused.popleft()
        except IndexError:
            break  # another thread took it
        destroy()
    while _cells:
        try:
            cell = _cells.popleft()
        except IndexError:
            break  # another thread took it
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
            done = True  # of work that failed nothing is left
        finally:
            if not done:
                _parked.append((is_done, cell))
        if done:
            cell.clear()
