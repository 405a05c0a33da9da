"""Worker threads: one a device and call, kept for the next call while there is one soon.

A thread that waits costs a tenth of one that must be started. Any number of scatters may run at
once, also one inside another: each takes workers that are free, or new ones, so none waits for
another. A worker without work for a while ends, and gives its stream and arena back.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final

from .tile import Workplace

IDLE_SECONDS: Final = 10.0


class Worker:
    """A thread that runs jobs, one after the other, for one device."""

    __slots__ = ("_jobs", "_workers", "workplace")

    def __init__(self, workers: Workers, ordinal: int) -> None:
        self._workers = workers
        self._jobs: SimpleQueue[Callable[[Worker], None]] = SimpleQueue()
        self.workplace = Workplace()
        # A daemon: an idle thread must not keep the process from ending.
        threading.Thread(target=self._run, name=f"cudadrv device {ordinal}", daemon=True).start()

    def put(self, job: Callable[[Worker], None]) -> None:
        """Let the worker run a job, which must not raise and must give the worker back."""
        self._jobs.put(job)

    def give_back(self) -> None:
        """Say that the worker is free for another job."""
        self._workers.idle.append(self)

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=IDLE_SECONDS)
            except Empty:
                if self._workers.leave(self):
                    self.workplace.clear()
                    return
                continue
            job(self)
            # An idle worker must keep nothing of its last job alive.
            del job


class Workers:
    """The free workers of one device and driver; list operations are atomic, so there is no lock.

    Attributes:
        idle: the workers without a job, the last used at the end.
    """

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal
        self._pid = os.getpid()
        self.idle: list[Worker] = []

    def take(self) -> Worker:
        """A worker for one job: the one that was free last, or a new one.

        Raises:
            RuntimeError: the system starts no more threads.
        """
        if self._pid != os.getpid():
            # A fork has the list and not the threads.
            self._pid, self.idle = os.getpid(), []
        try:
            return self.idle.pop()
        except IndexError:
            return Worker(self, self._ordinal)

    def leave(self, worker: Worker) -> bool:
        """Take a worker off the list; False where it is just being given a job."""
        try:
            self.idle.remove(worker)
        except ValueError:
            return False
        return True
