"""One tile's call on a worker, and how all calls of a scatter are awaited."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import Context as Variables, copy_context
from functools import partial
from typing import Generic, TypeVar

from ..driver.in_use import current
from ..driver.once_task import OnceTask, complete
from ..stream import cuda_context_for
from .tile import Tile, Workplace, running
from .workers import Workers

_R = TypeVar("_R")


class Job(Generic[_R]):
    """A call of a tile's function, with its context variables, and what came of it.

    Attributes:
        ordinal: the device.
        range: the items.
        result: what the call returned; nothing where `error` is set.
        error: what it raised, or what was set into its thread.
        done: free once a worker is done with it.
    """

    __slots__ = ("_task", "done", "error", "ordinal", "range", "result")

    result: _R

    def __init__(self, ordinal: int, items: range, call: Callable[[], _R]) -> None:
        self.ordinal: int = ordinal
        self.range: range = items
        self.error: BaseException | None = None
        # The function sees the caller's context variables, such as decimal's precision.
        self._task = OnceTask(partial(self._run, call, copy_context()))
        self.done: threading.Lock = threading.Lock()
        self.done.acquire()

    def do(self, workplace: Workplace) -> None:
        """On a worker: make the call, unless the caller has given it up."""
        self._task.run(workplace)

    def wait(self) -> None:
        """Wait until a worker is done with it; a signal's handler may run, and break it off."""
        with self.done:
            pass

    def cancel(self) -> None:
        """Keep a worker from beginning it; if one has begun, wait until that ends.

        Handlers of signals run meanwhile: one may tell the tiles to stop.
        """
        if not self._task.cancel():
            self.wait()

    def finish(self) -> None:
        """Wait until it has ended, or keep it from beginning; let go of the call. Idempotent."""
        self.error = self._task.finish() or self.error

    def _run(self, call: Callable[[], _R], variables: Variables, workplace: Workplace) -> None:
        try:
            tile = Tile(self.ordinal, self.range, cuda_context_for(self.ordinal), workplace)
            try:
                self.result = variables.run(_in_tile, tile, call)
                tile.finish()
            finally:
                tile.abandon()
        except BaseException:
            workplace.clear()
            raise


def _in_tile(tile: Tile, call: Callable[[], _R]) -> _R:
    running.set(tile)
    return call()


def run_all(jobs: Sequence[Job[_R]]) -> None:
    """Start all jobs and wait for all.

    Tiles are views of the caller's items: none runs when the caller goes on, whatever interrupts
    the wait.
    """
    by_device = current().cache(Workers)
    try:
        try:
            for job in jobs:
                workers = by_device.get(job.ordinal)
                if workers is None:
                    workers = by_device.setdefault(job.ordinal, Workers(job.ordinal))
                workers.give(job)
            for job in jobs:
                job.wait()
        except BaseException:
            for job in jobs:
                job.cancel()
            raise
        finally:
            complete(partial(_finish, jobs))
    finally:
        _finish(jobs)  # again, as an interrupt may have come at the call before


def _finish(jobs: Sequence[Job[_R]]) -> None:
    for job in jobs:
        job.finish()
