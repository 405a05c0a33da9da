"""The threads that help a large copy: they wait for one queue, and serve one copy at a time."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from itertools import starmap
from queue import SimpleQueue
from typing import Final

from ..driver.handover import Handover, take

MOST_THREADS: Final = 12
"""Threads that serve one copy, its caller among them; more gained nothing on a host of 16 cores."""

_NOTHING: Final = ((),)  # one call without arguments, for `starmap`


class _Helpers:
    """The threads, and what they wait for.

    Attributes:
        waiting: shares of copies for which there is a thread, or soon is.
        idle: an item for each thread that has no share. Where an exception set into a thread ends
            it, one is left over: then one share is taken back by its giver.
    """

    def __init__(self) -> None:
        self.waiting: SimpleQueue[Handover[[]]] = SimpleQueue()
        self.idle: list[bool] = []

    def give(self, share: Handover[[]]) -> None:
        """Let a thread that is idle, or a new one, take a share."""
        try:
            (_,) = starmap(self.idle.pop, _NOTHING)
            self.waiting.put(share)  # no interrupt comes in between
        except IndexError:
            if sys.is_finalizing():  # no thread runs any more ("daemon threads" in Python's manual)
                return
            self.waiting.put(share)
            try:
                threading.Thread(target=self._serve, name="cudadrv-staging", daemon=True).start()
            except RuntimeError:
                return  # the system has no more threads, or the interpreter is ending

    def _serve(self) -> None:
        while True:
            share = self.waiting.get()
            share.run()
            del share  # nothing of a copy stays alive in an idle thread
            self.idle.append(True)


_helpers = _Helpers()


def _after_fork() -> None:
    global _helpers
    _helpers = _Helpers()  # the child has none of the threads


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def work_together(job: Callable[[], None], threads: int) -> None:
    """Run `job` on the calling thread and on up to `threads` - 1 others; raises the first error.

    The job shares the work out among those that run it. It may be run by fewer threads, down to
    the caller alone. Nobody runs it any more when this returns or raises, whatever interrupts it.
    """
    _work(job, min(threads, usable_threads()) - 1)


def _work(job: Callable[[], None], helpers: int) -> None:
    """A call for each helper, so that each is awaited by a `finally` of its own."""
    if helpers <= 0:
        job()
        return
    share = Handover(job)
    lock = share.lock
    try:
        _helpers.give(share)
        _work(job, helpers - 1)
    finally:
        take(lock, 1)  # the first call: no interrupt comes before it, and none ends it
    error = share.settled()
    if error is not None:
        try:
            raise error
        finally:
            del error, share  # its traceback holds this frame


def usable_threads() -> int:
    """How many threads serve a copy at most, by the processors that this process may use."""
    # Not every system tells which processors the process may use.
    affinity = getattr(os, "sched_getaffinity", None)
    cpus = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return min(MOST_THREADS, cpus)
