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


class _Job:
    """What one thread does for a copy.

    Attributes:
        error: what it raised.
        is_done: whether it has ended, or was never begun.
    """

    __slots__ = ("_ended", "_run", "error", "is_done")

    def __init__(self, run: Callable[[], None]) -> None:
        self._run: Callable[[], None] | None = run
        self._ended = _thread.allocate_lock()
        self._ended.acquire()
        self.error: BaseException | None = None
        self.is_done = True

    def do(self) -> None:
        assert self._run is not None
        try:
            self._run()
        except BaseException as error:
            self.error = error
        self._run = None
        self.is_done = True
        self._ended.release()

    def wait(self) -> None:
        """Wait until it has ended; may be broken off, and called again."""
        while not self.is_done:
            self._ended.acquire()


class _Helper:
    """One thread, and the lock that hands it a job.

    Bare locks: waking a thread by an executor and its futures took several times as long.
    """

    __slots__ = ("_go", "_job")

    def __init__(self) -> None:
        self._go = _thread.allocate_lock()
        self._go.acquire()
        self._job: _Job | None = None
        threading.Thread(target=self._serve, name="cudadrv-staging", daemon=True).start()

    def start(self, job: _Job) -> None:
        self._job = job
        job.is_done = False  # no interrupt comes between this and the next line
        self._go.release()

    def _serve(self) -> None:
        while True:
            self._go.acquire()
            job, self._job = self._job, None
            assert job is not None
            job.do()
            # Nothing of the copy stays alive in a parked thread.
            del job


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
    started: list[_Job] = []
    try:
        for helper in helpers:
            started.append(_Job(job))
            helper.start(started[-1])
        job()
    finally:
        # Nobody may touch the caller's array after the return, whatever happened.
        interrupt = _await(started)
        _parked.extend(helpers)
    for each in started:
        if each.error is not None:
            raise each.error
    if interrupt is not None:
        raise interrupt


def _await(jobs: list[_Job]) -> BaseException | None:
    """Wait until all have ended, whatever interrupts that; gives the last interrupt."""
    interrupt: BaseException | None = None
    for job in jobs:
        while not job.is_done:
            try:
                job.wait()
            except BaseException as error:
                interrupt = error
    return interrupt


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
