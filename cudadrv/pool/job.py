"""One tile's call on a worker, and how all calls of a scatter are awaited."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import Context as Variables, copy_context
from typing import Generic, TypeVar

from ..driver.in_use import current
from ..stream import cuda_context_for
from .tile import Tile, running
from .workers import Worker, Workers

_R = TypeVar("_R")


class Job(Generic[_R]):
    """A call of a tile's function, with its context variables, and what came of it.

    Attributes:
        ordinal: the device.
        range: the items.
        result: what the call returned; nothing where `error` is set.
        error: what it raised.
    """

    __slots__ = ("_call", "_claim", "_done", "_variables", "error", "ordinal", "range", "result")

    result: _R

    def __init__(self, ordinal: int, items: range, call: Callable[[], _R]) -> None:
        self.ordinal = ordinal
        self.range = items
        self.error: BaseException | None = None
        self._call = call
        # The function sees the caller's context variables, such as decimal's precision.
        self._variables: Variables = copy_context()
        # Taken by whoever is first: the worker that runs the call, or the caller who gives it up.
        self._claim = threading.Lock()
        self._done = threading.Lock()
        self._done.acquire()

    def start(self, workers: Workers) -> None:
        """Give the call to a worker."""
        workers.take().put(self._run)

    def wait(self) -> None:
        """Wait until the call has ended; once it has, this answers at once."""
        with self._done:
            pass

    def give_up(self) -> None:
        """Keep the call from beginning, or wait for its end if it has begun."""
        if not self._claim.acquire(blocking=False):
            self.wait()

    def _run(self, worker: Worker) -> None:
        if not self._claim.acquire(blocking=False):
            worker.give_back()
            return
        try:
            tile = Tile(self.ordinal, self.range, cuda_context_for(self.ordinal), worker.workplace)
            try:
                self.result = self._variables.run(self._in_tile, tile)
                tile.finish()
            finally:
                tile.abandon()
        # Whatever it is, the caller gets it: a worker has nobody to tell.
        except BaseException as error:
            self.error = error
            worker.workplace.clear()
        finally:
            worker.give_back()
            self._done.release()

    def _in_tile(self, tile: Tile) -> _R:
        running.set(tile)
        return self._call()


def run_all(jobs: Sequence[Job[_R]]) -> None:
    """Start all jobs and wait for all, also where the wait is interrupted."""
    by_device = current().cache(Workers)
    try:
        for job in jobs:
            workers = by_device.get(job.ordinal)
            if workers is None:
                workers = by_device.setdefault(job.ordinal, Workers(job.ordinal))
            job.start(workers)
        for job in jobs:
            job.wait()
    except BaseException:
        # Tiles are views of the caller's items: none may still run when the caller goes on.
        for job in jobs:
            job.give_up()
        raise
