"""`Workers`: the threads that run tiles, each a `Job`: a thread for each device and call, reused.

A waiting thread costs a tenth of one that must be started. Any number of scatters may run at once,
also one inside another: each uses idle workers, or new ones, so none waits for another. A worker
without work for a while ends, and frees its stream and arena. So do all when their driver is no
longer in use.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextvars import Context as Variables, copy_context
from functools import partial
from itertools import starmap
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeAlias, TypeVar

from ..driver.handover import Handover, take
from ..driver.in_use import Ending, current
from ..stream import cuda_context_for
from .tile import Tile, Workplace, running

IDLE_SECONDS: Final = 10.0
_NOTHING: Final = ((),)  # one call without arguments, for `starmap`
_R = TypeVar("_R")


class Job(Generic[_R]):
    """A call of a tile's function, with its context variables and its outcome.

    Attributes:
        ordinal: the device.
        range: the items.
        result: the call's result; not set if `error` is.
        error: the exception that it raised, or that was set into its thread.
        lock: of the hand-over to the worker.
        done: released once a worker is done with it.
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
        """On a worker: make the call, unless the caller has cancelled it."""
        self._handover.run(workplace)

    def wait(self) -> None:
        """Wait until a worker is done with it; a signal's handler may interrupt the wait."""
        with self.done:
            pass

    def conclude(self) -> None:
        """After its end: store its error, and release the call."""
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


# A worker does not know what a job returns.
_AnyJob: TypeAlias = Job[Any]


class Worker:
    """A thread that runs jobs, one after the other, for one device.

    Attributes:
        jobs: its queue of jobs; None ends it.
        workplace: its stream and arena.
    """

    __slots__ = ("_name", "_workers", "jobs", "workplace")

    def __init__(self, workers: Workers, ordinal: int, job: _AnyJob) -> None:
        self._workers = workers
        self._name = f"cudadrv device {ordinal}"
        self.jobs: SimpleQueue[_AnyJob | None] = SimpleQueue()
        self.workplace: Workplace = Workplace()
        self.jobs.put(job)
        self._start()

    def _start(self) -> None:
        # A daemon: an idle thread must not keep the process from ending.
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException:
            # Set into the thread by another thread. The worker's next jobs go to its next thread.
            self._start()
            raise

    def _serve(self) -> None:
        while True:
            try:
                # No interrupt comes before the `try` of the job.
                (job,) = map(self.jobs.get, (True,), (IDLE_SECONDS,))
            except Empty:
                if self._workers.leave(self):
                    self.workplace.clear()
                    return
                continue
            if job is None:
                return
            try:
                job.do(self.workplace)
            except BaseException as error:  # set into the thread by another one
                job.error = error
            finally:
                done = job.done
                del job  # before its caller goes on: an idle worker keeps nothing of it alive
                try:
                    self._workers.idle.append(self)
                finally:
                    done.release()


class Workers(Ending):
    """The idle workers of one device and driver; list operations are atomic, so there is no lock.

    Attributes:
        idle: the workers without a job, the last used at the end.
    """

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal
        self._pid = os.getpid()
        self.idle: list[Worker] = []

    def give(self, job: _AnyJob) -> None:
        """Give a job to a worker: the one that became idle last, or a new one.

        Raises:
            RuntimeError: the system starts no more threads.
        """
        if self._pid != os.getpid():
            # A fork has the list and not the threads.
            self._pid, self.idle = os.getpid(), []
        try:
            (worker,) = starmap(self.idle.pop, _NOTHING)
            worker.jobs.put(job)  # no interrupt comes in between
        except IndexError:
            Worker(self, self._ordinal, job)

    def leave(self, worker: Worker) -> bool:
        """Remove a worker from the list; return False if it is just getting a job."""
        try:
            self.idle.remove(worker)
        except ValueError:
            return False
        return True

    def end(self) -> None:
        """End the idle workers, and free their streams and arenas at once.

        Raises:
            CudaError: the driver returned an error.
        """
        while self.idle:
            try:
                (worker,) = starmap(self.idle.pop, _NOTHING)
            except IndexError:
                return  # another thread took it
            try:
                worker.workplace.clear()
            finally:
                worker.jobs.put(None)


def run_all(jobs: Sequence[Job[_R]]) -> None:
    """Start all jobs and wait for all, even if the wait is interrupted."""
    _run_from(0, jobs, current().cache(Workers))


def _run_from(number: int, jobs: Sequence[Job[_R]], by_device: dict[int, Workers]) -> None:
    """Start the jobs from a number on; each is awaited by a `finally` of its own.

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
            job.wait()  # handlers of signals run meanwhile: one may stop the tiles
        raise
    finally:
        if not taken:
            take(lock, 1)  # the first call: no interrupt comes before it, and none ends it
        job.conclude()
