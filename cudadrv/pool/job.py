"""One tile's call on a worker, and how all calls of a scatter are awaited."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import Context as Variables, copy_context
from functools import partial
from typing import Generic, TypeVar

from ..driver.handover import Handover, take
from ..driver.in_use import current
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
        lock: of the hand-over to the worker.
        done: free once a worker is done with it.
    """

    __slots__ = ("_handover", "done", "error", "lock", "ordinal", "range", "result")

    result: _R

    def __init__(self, ordinal: int, items: range, call: Callable[[], _R]) -> None:
        self.ordinal: int = ordinal
        self.range: range = items
        self.error: BaseException | None = None
        # The function sees the caller's context variables, such as decimal's precision.
        self._handover = Handover(partial(self._run, call, copy_context()))
        self.lock: int = self._handover.lock
        self.done: threading.Lock = threading.Lock()
        self.done.acquire()

    def do(self, workplace: Workplace) -> None:
        """On a worker: make the call, unless the caller has given it up."""
        self._handover.run(workplace)

    def wait(self) -> None:
        """Wait until a worker is done with it; a signal's handler may run, and break it off."""
        with self.done:
            pass

    def conclude(self) -> None:
        """Once it has ended: take what it raised, and let go of the call, whoever has the job."""
        self.error = self._handover.settled() or self.error

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
    """Start all jobs and wait for all, also where the wait is interrupted."""
    _run_from(0, jobs, current().cache(Workers))


def _run_from(number: int, jobs: Sequence[Job[_R]], by_device: dict[int, Workers]) -> None:
    """A call for each job, so that each is awaited by a `finally` of its own.

    Tiles are views of the caller's items: none may still run when the caller goes on.
    """
    if number == len(jobs):
        for job in jobs:
            job.wait()
        return
    job, taken = jobs[number], 0
    lock = job.lock
    try:
        workers = by_device.get(job.ordinal)
        if workers is None:
            workers = by_device.setdefault(job.ordinal, Workers(job.ordinal))
        workers.give(job)
        _run_from(number + 1, jobs, by_device)
    except BaseException:
        (taken,) = map(take, (lock,), (0,))  # unless it has begun
        if not taken:
            job.wait()  # handlers of signals run meanwhile: one may tell the tiles to stop
        raise
    finally:
        if not taken:
            take(lock, 1)  # the first call: no interrupt comes before it, and none ends it
        job.conclude()
