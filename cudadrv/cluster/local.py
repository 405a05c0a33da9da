"""Processes of this host, one a device: started, asked, and replaced where they are lost."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Final

from ..driver.locks import process_lock
from ..driver.registry import Registry
from ..errors import CudadrvError, ExecutorClosedError, WorkerLostError
from .call import Call
from .engine import Engine
from .process import LostError, WorkerProcess
from .report import WorkerReport
from .seats import Seat

_MOST_FAILED_STARTS: Final = 3


class LocalWorker:
    """A thread that asks one process at a time, and puts another in its place when it is lost.

    Attributes:
        calls: what it is to do; None ends it.
        report: what its process said of itself, None before.
        failure: why it was given up.
        started: set when there is a report or it was given up.
    """

    def __init__(self, engine: LocalEngine, seat: Seat, number: int) -> None:
        self.calls: SimpleQueue[Call | None] = SimpleQueue()
        self.report: WorkerReport | None = None
        self.failure: Exception | None = None
        self.started: threading.Event = threading.Event()
        self.is_busy: bool = False
        self._engine = engine
        self._seat = seat
        self._number = number
        self._process: WorkerProcess | None = None
        self._failed_starts = 0
        self.thread: threading.Thread = threading.Thread(
            target=self._run, name=f"cudadrv worker {number}", daemon=True
        )

    @property
    def load(self) -> int:
        """How many calls it has."""
        return self.calls.qsize() + self.is_busy

    def kill(self) -> None:
        """End its process now."""
        process = self._process
        if process is not None:
            process.strike()

    def _run(self) -> None:
        try:
            self._start()
            while self.failure is None and (call := self.calls.get()) is not None:
                self.is_busy = True
                while self._do(call):
                    pass
                del call
                self.is_busy = False
        finally:
            if self._process is not None:
                self._process.end()
            self._engine.give_up(self)

    def _do(self, call: Call) -> bool:
        """Have a call made; whether this worker is to try it again."""
        if self._engine.is_aborted or not self._is_ready():
            return self._engine.elsewhere(call, self)
        if not call.begin():
            return False
        process = self._process
        assert process is not None
        call.worker, call.ordinal = process.report.name, process.report.device.ordinal
        try:
            again = process.ask(call)
        except LostError as error:
            self._drop()
            again = call.lose(str(error))
        except Exception as error:  # arguments that cannot be pickled, or are too large
            call.fail(error)
            again = False
        if process.is_broken:
            self._drop()
        return again and self._engine.elsewhere(call, self)

    def _is_ready(self) -> bool:
        """Whether there is a process; one that ended while it had nothing to do is replaced."""
        if self._process is not None and not self._process.is_alive:
            self._drop()
        if self._process is None:
            self._start()
        return self._process is not None

    def _drop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _start(self) -> None:
        """Start a process; after some failures in a row the worker is given up."""
        while not self._engine.is_aborted:
            try:
                self._process = self._engine.start_process(self._seat)
                self._process.wait_for_start()
                self.report = replace(self._process.report, number=self._number)
                self._failed_starts = 0
                break
            except (CudadrvError, OSError) as error:
                self._drop()
                self._failed_starts += 1
                lasting = not isinstance(error, LostError | OSError)
                if lasting or self._failed_starts >= _MOST_FAILED_STARTS:
                    self.failure = error
                    break
        self.started.set()


class LocalEngine(Engine):
    """One worker a seat.

    Args:
        seats: what each worker has.
        start: starts the process of a seat.

    Attributes:
        is_aborted: whether everything is to end now.
    """

    def __init__(
        self, seats: Sequence[Seat], start: Callable[[Seat], WorkerProcess] = WorkerProcess
    ) -> None:
        self.start_process = start
        self.is_aborted: bool = False
        self._is_closed = False
        self._lock = process_lock()
        self._workers = [LocalWorker(self, seat, number) for number, seat in enumerate(seats)]
        self._living = list(self._workers)
        _engines.add(self)
        for worker in self._workers:
            worker.thread.start()

    def workers(self) -> tuple[WorkerReport, ...]:
        """Those whose processes have started once."""
        for worker in self._workers:
            worker.started.wait()
        reports = tuple(each.report for each in self._workers if each.report is not None)
        if not reports:
            raise self._workers[0].failure or WorkerLostError(
                "no worker could be started", worker="", attempts=0
            )
        return reports

    def depth(self, worker: int, nbytes: int) -> int:
        """Two: the next one is there when a worker is done with one."""
        return 2

    def start(self, call: Call, worker: int | None = None) -> None:
        """Put it in a worker's queue; where that was given up, in another one's."""
        with self._lock:
            if self._is_closed:
                raise ExecutorClosedError("cannot schedule new futures after shutdown")
            if self._living:
                chosen = min(self._living, key=lambda each: each.load)
                if worker is not None and self._workers[worker] in self._living:
                    chosen = self._workers[worker]
                chosen.calls.put(call)
                return
        self._refuse(call)

    def start_on(self, call: Call, worker: int) -> None:
        """The same: a call leaves its worker only if that is lost."""
        self.start(call, worker)

    def elsewhere(self, call: Call, worker: LocalWorker) -> bool:
        """Give a call to another worker; True where there is none, so that it has to try itself."""
        if self.is_aborted:
            self._refuse(call)
            return False
        with self._lock:
            others = [each for each in self._living if each is not worker]
            if others and not self._is_closed:
                min(others, key=lambda each: each.load).calls.put(call)
                return False
        if worker.failure is None:
            return True
        self._refuse(call)
        return False

    def give_up(self, worker: LocalWorker) -> None:
        """Take a worker that has ended out of the list, and give its calls to others."""
        with self._lock:
            if worker in self._living:
                self._living.remove(worker)
            left = _drained(worker)
        for call in left:
            self.elsewhere(call, worker)

    def close(self, *, wait: bool, cancel: bool) -> None:
        """Processes end one by one, as they are done."""
        with self._lock:
            was_closed, self._is_closed = self._is_closed, True
            left = [call for each in self._workers for call in _drained(each)] if cancel else []
            if not was_closed or cancel:
                for worker in self._workers:
                    worker.calls.put(None)
        for call in left:
            call.future.cancel()
            call.future.set_running_or_notify_cancel()
        if wait:
            for worker in self._workers:
                worker.thread.join()

    def abort(self) -> None:
        """Kill all processes, and wait for the threads that have them."""
        self.is_aborted = True
        self.close(wait=False, cancel=True)
        for worker in self._workers:
            while worker.thread.is_alive():
                worker.kill()  # again: it may just have started one
                worker.thread.join(0.05)

    def _refuse(self, call: Call) -> None:
        failures = [each.failure for each in self._workers if each.failure is not None]
        reason = "the executor was ended" if self.is_aborted else "there is no worker any more"
        lost = WorkerLostError(reason, worker=call.worker, attempts=call.attempts)
        lost.__cause__ = failures[0] if failures else None
        call.fail(lost)


def _drained(worker: LocalWorker) -> list[Call]:
    calls: list[Call] = []
    while True:
        try:
            call = worker.calls.get_nowait()
        except Empty:
            return calls
        if call is not None:
            calls.append(call)


_engines: Final[Registry[LocalEngine]] = Registry()


@atexit.register
def _end_all() -> None:
    for engine in _engines.alive():
        engine.abort()
