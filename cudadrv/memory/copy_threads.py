"""The threads that help a large copy: they wait for one queue, and serve one copy at a time."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Final

from ..driver.once_task import OnceTask

_MOST_A_PROCESSOR: Final = 4  # copies at once share them; it ends what quick copies would start
MOST_THREADS: Final = 12
"""Threads that serve one copy, its caller among them; more gained nothing on a host of 16 cores."""

FEWEST_THREADS: Final = 4
"""What a copy has however many are under way, as far as there are processors."""


class Share:
    """How many threads may serve a copy while it is among the copies `under_way`.

    Each thread more takes time of the interpreter's lock. Where there are as many copies as
    devices, that is what all of them wait for.

    Attributes:
        threads: how many may serve it.
        is_alone: whether no other copy is under way.
    """

    __slots__ = ("is_alone", "threads")

    def __init__(self) -> None:
        copies, most = len(under_way) + 1, usable_threads()
        self.is_alone: bool = copies == 1
        self.threads: int = min(most, max(FEWEST_THREADS, most // copies))


under_way: Final[list[Share]] = []
"""An item for each copy; its thread puts it in and takes it out again."""


class _Helpers:
    """The threads, some a processor at most, and what they wait for.

    Attributes:
        threads: an item for each thread that there is.
        waiting: shares of copies for which there is a thread, or soon is.
        idle: an item for each thread that waits for a share, or is about to. An interrupt may lose
            one; then a thread more is started, or the giver has the share.
    """

    def __init__(self) -> None:
        self.threads: list[bool] = []
        self.waiting: SimpleQueue[OnceTask[[]]] = SimpleQueue()
        self.idle: list[bool] = []

    def give(self, share: OnceTask[[]]) -> None:
        """Let a thread that is idle, or a new one, take a share; without one its giver has it."""
        try:
            self.idle.pop()
        except IndexError:
            most = _MOST_A_PROCESSOR * _processors()
            # At its end no thread runs any more ("daemon threads" in Python's manual).
            if sys.is_finalizing() or len(self.threads) >= most:
                return
            self.threads.append(True)
            try:
                threading.Thread(target=self._serve, name="cudadrv-staging", daemon=True).start()
            except RuntimeError:
                self.threads.pop()  # the system has no more, or the interpreter is ending
        self.waiting.put(share)

    def _serve(self) -> None:
        try:
            while True:
                share = self.waiting.get()
                if not share.run():
                    self.idle.append(True)
                del share  # nothing of a copy stays alive in an idle thread
        finally:
            self.threads.pop()

    def help(self, job: Callable[[], None]) -> None:
        """Run a share. The thread is idle before the giver knows, whose next copy needs it."""
        try:
            job()
        finally:
            self.idle.append(True)


_helpers = _Helpers()


def _after_fork() -> None:
    global _helpers
    _helpers = _Helpers()  # the child has none of the threads
    under_way.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def work_together(job: Callable[[], None], threads: int) -> None:
    """Run `job` on the calling thread and on up to `threads` - 1 others; raises the first error.

    The job shares the work out among those that run it. It may be run by fewer threads, down to
    the caller alone. Nobody runs it any more when this returns or raises.
    """
    shares = [
        OnceTask(partial(_helpers.help, job)) for _ in range(min(threads, usable_threads()) - 1)
    ]
    try:
        try:
            for share in shares:
                _helpers.give(share)
            job()
        finally:
            errors = _finished(shares)
    finally:
        _finished(shares)  # again, as an interrupt may have come at the call before
    for error in errors:
        raise error


def _finished(shares: list[OnceTask[[]]]) -> list[BaseException]:
    """Wait for the threads that run a share, and return what they raised."""
    found: list[BaseException] = []
    for share in shares:
        error = share.finish()
        if error is not None:
            found.append(error)
    return found


def usable_threads() -> int:
    """How many threads serve a copy at most."""
    return min(MOST_THREADS, _processors())


def _processors() -> int:
    """Those that this process may use, as far as the system tells."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
