"""Worker threads: one a device and call, kept for the next call while there is one soon.

A thread that waits costs a tenth of one that must be started. Any number of scatters may run at
once, also one inside another: each takes workers that are free, or new ones, so none waits for
another. A worker without work for a while ends, and gives its stream and arena back; so do all when
their driver is no longer in use.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, Protocol

from ..driver.in_use import Ending
from .tile import Workplace

IDLE_SECONDS: Final = 10.0

if TYPE_CHECKING:  # making a protocol takes a start longer than most modules

    class AnyJob(Protocol):
        """A job, whatever its call returns."""

        done: threading.Lock
        error: BaseException | None

        def do(self, workplace: Workplace) -> None:
            """Make its call, unless it was given up."""


class Worker:
    """A thread that runs jobs, one after the other, for one device.

    Attributes:
        jobs: what it was given and has not done; None ends it. A job stays there until it is done,
            so that the next thread has it where an exception ends this one.
        workplace: its stream and arena.
    """

    __slots__ = ("_given", "_name", "_workers", "jobs", "workplace")

    def __init__(self, workers: Workers, ordinal: int, job: AnyJob) -> None:
        self._workers = workers
        self._name = f"cudadrv device {ordinal}"
        self.jobs: deque[AnyJob | None] = deque([job])
        self._given: SimpleQueue[None] = SimpleQueue()
        self.workplace: Workplace = Workplace()
        self._start()

    def give(self, job: AnyJob | None) -> None:
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
            # Set into the thread by another. What the worker is given goes to its next thread.
            self._start()
            raise

    def _serve(self) -> None:
        while True:
            while self.jobs:
                if self.jobs[0] is None:
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
            done = job.done
            # Before its caller goes on: an idle worker keeps nothing of it alive.
            self.jobs.popleft()
            del job
            try:
                self._workers.idle.append(self)
            finally:
                done.release()


class Workers(Ending):
    """The free workers of one device and driver; list operations are atomic, so there is no lock.

    Attributes:
        idle: the workers without a job, the last used at the end.
    """

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal
        self._pid = os.getpid()
        self.idle: list[Worker] = []

    def give(self, job: AnyJob) -> None:
        """Let a worker do a job: the one that was free last, or a new one.

        Raises:
            RuntimeError: the system starts no more threads.
        """
        if self._pid != os.getpid():
            # A fork has the list and not the threads.
            self._pid, self.idle = os.getpid(), []
        try:
            worker = self.idle.pop()
        except IndexError:
            Worker(self, self._ordinal, job)
            return
        worker.give(job)

    def leave(self, worker: Worker) -> bool:
        """Take a worker off the list; False where it is just being given a job."""
        try:
            self.idle.remove(worker)
        except ValueError:
            return False
        return True

    def end(self) -> None:
        """Let the free workers end, and give their streams and arenas back at once.

        Raises:
            CudaError: the driver refused.
        """
        while self.idle:
            try:
                worker = self.idle.pop()
            except IndexError:
                return  # another thread took it
            try:
                worker.workplace.clear()
            finally:
                worker.give(None)
