"""The threads that help a large copy: parked on a lock each, woken for one copy at a time."""

from __future__ import annotations

import _thread
import os
import sys
import threading
from collections.abc import Callable
from typing import Final

MOST_THREADS: Final = 12
"""Threads that serve one copy, its caller among them; more gained nothing on a host of 16 cores."""


class _Helper:
    """One thread, and the two locks that hand it a job and tell when that is done.

    Bare locks: waking a thread by an executor and its futures took several times as long.
    """

    __slots__ = ("_done", "_error", "_go", "_job")

    def __init__(self) -> None:
        self._go = _thread.allocate_lock()
        self._done = _thread.allocate_lock()
        self._go.acquire()
        self._done.acquire()
        self._job: Callable[[], None] | None = None
        self._error: BaseException | None = None
        threading.Thread(target=self._serve, name="cudadrv-staging", daemon=True).start()

    def start(self, job: Callable[[], None]) -> None:
        self._job = job
        self._go.release()

    def finish(self) -> BaseException | None:
        """Wait until the job is done; gives what it raised."""
        self._done.acquire()
        error, self._error = self._error, None
        return error

    def _serve(self) -> None:
        while True:
            self._go.acquire()
            job, self._job = self._job, None
            assert job is not None
            try:
                job()
            except BaseException as error:
                self._error = error
            # Nothing of the copy stays alive in a parked thread.
            del job
            self._done.release()


# Threads without a job; at most as many as ever helped at once. A forked child has none of them.
_parked: Final[list[_Helper]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_parked.clear)


def work_together(job: Callable[[], None], threads: int) -> None:
    """Run `job` on the calling thread and on up to `threads` - 1 others; raises the first error.

    The job shares the work out among those that run it. It may be run by fewer threads, down to
    the caller alone.
    """
    helpers = [helper for _ in range(min(threads, usable_threads()) - 1) if (helper := _take())]
    started: list[_Helper] = []
    try:
        for helper in helpers:
            helper.start(job)
            started.append(helper)
        job()
    finally:
        # Nobody may touch the caller's array after the return, whatever happened.
        errors = [error for helper in started if (error := helper.finish()) is not None]
        _parked.extend(helpers)
    if errors:
        raise errors[0]


def usable_threads() -> int:
    """How many threads serve a copy at most, by the processors that this process may use."""
    # Not every system tells which processors the process may use.
    affinity = getattr(os, "sched_getaffinity", None)
    cpus = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return min(MOST_THREADS, cpus)


def _take() -> _Helper | None:
    """A parked thread or a new one; None while the interpreter ends, when no thread runs any more.

    Source: "daemon threads" in Python's threading manual.
    """
    if sys.is_finalizing():
        return None
    try:
        return _parked.pop()
    except IndexError:
        pass
    try:
        return _Helper()
    except RuntimeError:
        return None  # the system has no more threads, or the interpreter is ending
