"""One process at a time for one image, as far as the file system can promise it.

The system takes a lock back from a process that dies. One that hangs, or a file system without
locks, costs a second compilation at worst, because nobody waits longer than a limit.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

WAIT_SECONDS: Final = 120.0
_LONGEST_SLEEP: Final = 0.05

if sys.platform == "win32":
    import msvcrt

    def _try(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _release(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _try(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _release(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def take(descriptor: int) -> bool:
    """Take a file's lock, until the file is closed; False if another has it.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        _try(descriptor)
    except (BlockingIOError, PermissionError):
        return False
    return True


@contextlib.contextmanager
def exclusive(
    lock_file: contextlib.AbstractContextManager[int],
    settled: Callable[[], bool],
    wait_seconds: float = WAIT_SECONDS,
) -> Iterator[bool]:
    """Hold the lock of a file that is opened for it; False where it was not had.

    Waiting ends early when `settled()` says that what the lock is wanted for has come to pass.
    The file stays: removing it would let two processes hold a lock of the same name.
    """
    with contextlib.ExitStack() as stack:
        try:
            descriptor = stack.enter_context(lock_file)
        except OSError:
            yield False
            return
        try:
            yield _acquire(descriptor, settled, wait_seconds)
        finally:
            with contextlib.suppress(OSError):  # which was perhaps not had
                _release(descriptor)  # a forked child may have the file open, too


def _acquire(descriptor: int, settled: Callable[[], bool], wait_seconds: float) -> bool:
    deadline = time.monotonic() + wait_seconds
    pause = 0.001
    while True:
        try:
            if take(descriptor):
                return True
        except OSError:
            return False
        if settled() or time.monotonic() >= deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_SLEEP)
