"""Worker threads: one a device and call, kept for the next call while there is one soon.

A thread that waits costs a tenth of one that must be started. Any number of scatters may run at
once, also one inside another: each takes workers that are free, or new ones, so none waits for
another. A worker without work for a while ends, and gives its stream and arena back; so do all when
their driver is no longer in use.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context as Variables, copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, TypeAlias, TypeVar

from ptx.latch import Latch

from ..driver.call_gate import Wait, waits
from ..driver.driver_selection import Ending, current
from ..driver.handle import FREE_THREADED
from ..driver.once_task import OnceTask, complete
from ..stream import cuda_context_for
from .tile import Tile, Workplace, running

IDLE_SECONDS: Final = 10.0
_INTERVAL_S: Final = 1.0
_R = TypeVar("_R")


class Job(Generic[_R]):
    """A call of a tile's function, with its context variables and its outcome.

    Attributes:
        ordinal: the device.
        range: the items.
        result: the call's result; not set if `error` is.
        error: the exception that it raised, or that was set into its thread.
        done: released once a worker is done with it.
        thread_number: the identifier of the worker's thread, while it runs the job.
    """

    __slots__ = ("_task", "done", "error", "ordinal", "range", "result", "thread_number")

    result: _R

    def __init__(self, ordinal: int, items: range, call: Callable[[], _R]) -> None:
        self.ordinal: int = ordinal
        self.range: range = items
        self.error: BaseException | None = None
        self.thread_number: int | None = None
        # The function sees the caller's context variables, such as decimal's precision.
        self._task = OnceTask(partial(self._run, call, copy_context()))
        self.done: threading.Lock = threading.Lock()
        self.done.acquire()

    def do(self, workplace: Workplace) -> None:
        """On a worker: make the call, unless the caller has cancelled it."""
        try:
            self.thread_number = threading.get_ident()
            self._task.run(workplace)
        finally:
            self.thread_number = None

    def wait(self) -> None:
        """Wait until a worker is done with it; a signal's handler may interrupt the wait."""
        number = threading.get_ident()
        try:
            waits[number] = Wait(self)
            with self.done:
                pass
        finally:
            waits.pop(number, None)  # a handler may have waited too

    def cancel(self) -> None:
        """Keep a worker from beginning it; if one has begun, wait until that ends.

        Handlers of signals run meanwhile: one may request that the tiles stop.
        """
        if not self._task.cancel():
            self.wait()

    def finish(self) -> None:
        """Wait until it has ended, or keep it from beginning; release the call. Idempotent."""
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


# A worker cannot know the result type of a job.
_AnyJob: TypeAlias = Job[Any]


class Worker:
    """A thread that runs jobs, one after the other, for one device.

    Attributes:
        jobs: what it was given and has not done; None ends it. A job stays there until it is done,
            so that the next thread has it where an exception ends this one.
        workplace: its stream and arena.
        has_ended: set once its thread ends.
    """

    __slots__ = ("_given", "_name", "_workers", "has_ended", "jobs", "workplace")

    def __init__(self, workers: Workers, ordinal: int, job: _AnyJob) -> None:
        self._workers = workers
        self._name = f"cudadrv device {ordinal}"
        self.jobs: deque[_AnyJob | None] = deque([job])
        self._given: SimpleQueue[None] = SimpleQueue()
        self.workplace: Workplace = Workplace()
        self.has_ended: Latch = Latch()
        self._start()

    def give(self, job: _AnyJob | None) -> None:
        """Let the worker do a job, or end."""
        self.jobs.append(job)
        self._given.put(None)

    def _start(self) -> None:
        # A daemon: an idle thread must not keep the process from ending.
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        try:
            self._serve()
        except BaseException:
            # Set into the thread by another. The next thread takes the remaining jobs.
            try:
                self._start()
            except BaseException:
                self.has_ended.set()
                raise
            raise

    def _serve(self) -> None:
        while True:
            while self.jobs:
                if self.jobs[0] is None:
                    self.has_ended.set()
                    return
                self._do_first()
            try:
                self._given.get(timeout=IDLE_SECONDS)
            except Empty:
                if self._workers.leave(self):
                    self.workplace.clear()
                    return

    def _do_first(self) -> None:
        job = self.jobs[0]
        assert job is not None
        try:
            job.do(self.workplace)
        except BaseException as error:  # set into the thread: nobody else would tell
            job.error = error
        finally:
            completion = job.done
            # Before its caller goes on: an idle worker keeps nothing of it alive.
            self.jobs.popleft()
            del job
            try:
                self._workers.idle[self] = None
            finally:
                completion.release()


class Workers(Ending):
    """The free workers of one device and driver, without a lock: each step is one of a dict.

    Attributes:
        idle: the workers without a job, the last used at the end.
    """

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal
        self._pid = os.getpid()
        self.idle: dict[Worker, None] = {}

    def give(self, job: _AnyJob) -> None:
        """Let a worker do a job: the one that was free last, or a new one.

        Raises:
            RuntimeError: the system starts no more threads.
        """
        if self._pid != os.getpid():
            # A fork has the list and not the threads.
            self._pid, self.idle = os.getpid(), {}
        try:
            worker, _ = self.idle.popitem()
        except KeyError:
            Worker(self, self._ordinal, job)
            return
        worker.give(job)

    def leave(self, worker: Worker) -> bool:
        """Take a worker off the list; False where it is just being given a job."""
        try:
            del self.idle[worker]
        except KeyError:
            return False
        return True

    def end(self) -> None:
        """Let the free workers end, and give their streams and arenas back at once.

        Raises:
            CudaError: the driver refused.
        """
        ended: list[Worker] = []
        while self.idle:
            try:
                worker, _ = self.idle.popitem()
            except KeyError:
                break  # another thread took it
            try:
                worker.workplace.clear()
            finally:
                worker.give(None)
            ended.append(worker)
        if FREE_THREADED and self._pid == os.getpid():
            # Such a Python destroys what a thread has made once that thread runs again. No driver's
            # object may be left then. While the interpreter ends, threads run no more.
            for worker in ended:
                while not worker.has_ended.wait(_INTERVAL_S) and not sys.is_finalizing():
                    pass


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
