"""Processes of this host, one a device: started, asked, and replaced where they are lost."""

from __future__ import annotations

import atexit
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ..driver.locks import process_lock
from ..driver.registry import Registry
from ..errors import CudadrvError, ExecutorClosedError, WorkerLostError
from .call import Call
from .engine import Engine
from .inbox import Inbox
from .pickled import Function
from .process import LostError, WorkerProcess
from .seats import Seat
from .worker_report import WorkerReport

_MOST_FAILED_STARTS: Final = 3
_SHORT_SECONDS: Final = 0.02


class LocalWorker:
    """A thread that asks one process at a time, and puts another in its place when it is lost.

    While the process makes a call, the thread sends it the next one; and it takes the result of
    one while the next is made.

    Attributes:
        calls: what it is to do; None ends it.
        first: what it does before that, as its process was lost.
        report: what its process said of itself, None before.
        failure: why it was given up.
        seconds: how long its last call took there.
        started: set when there is a report or it was given up.
    """

    def __init__(self, engine: LocalEngine, seat: Seat, number: int) -> None:
        self.calls: Inbox = Inbox()
        self.first: deque[Call] = deque()
        self.report: WorkerReport | None = None
        self.failure: Exception | None = None
        self.seconds: float = math.inf
        self.started: threading.Event = threading.Event()
        self._sent: deque[Call] = deque()
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
        return len(self.calls) + len(self.first) + len(self._sent)

    def kill(self) -> None:
        """End its process now."""
        process = self._process
        if process is not None:
            process.strike()

    def _run(self) -> None:
        try:
            self._start()
            while self.failure is None:
                if self._sent:
                    self._finish(self._sent.popleft())
                elif (call := self._next()) is not None:
                    self._send(call)
                else:
                    break
                call = None
        finally:
            if self._process is not None:
                self._process.end()
            self._engine.give_up(self)

    def _next(self) -> Call | None:
        return self.first.popleft() if self.first else self.calls.get()

    def _send(self, call: Call) -> None:
        """Have the process begin a call, which has no other one."""
        again = True
        while again:
            if self._engine.is_aborted or not self._is_ready():
                again = self._engine.elsewhere(call, self)
                continue
            process = self._process
            assert process is not None
            try:
                self._begin(call, process)
                break
            except LostError as error:
                self._drop()
                again = call.lose(str(error)) and self._engine.elsewhere(call, self)
            except Exception as error:  # arguments that cannot be pickled, or are too large
                call.fail(error)
                break

    def _begin(self, call: Call, process: WorkerProcess) -> None:
        if call.begin():
            call.worker, call.ordinal = process.report.name, process.report.device.ordinal
            process.send(call)
            self._sent.append(call)

    def _finish(self, call: Call) -> None:
        """Await the answer to a call, and take it."""
        process = self._process
        assert process is not None
        try:
            self._await(process, call.seconds)
            accept = process.receive()
            self.seconds = process.seconds
        except LostError as error:
            self._drop()
            self._take_back()
            again = call.lose(str(error))
        except Exception as error:  # an answer that cannot be read
            call.fail(error)
            again = False
        else:
            if process.is_broken:
                self._take_back()  # it has ended with its answer
            again = accept()
            if process.is_broken:
                self._drop()
        if again and self._engine.elsewhere(call, self):
            self.first.append(call)

    def _await(self, process: WorkerProcess, seconds: float | None) -> None:
        """Wait for an answer, and send the next call meanwhile."""
        end = None if seconds is None else time.monotonic() + seconds
        self._send_ahead(process)
        while not process.is_answered(None if self._sent or self.first else self.calls, end):
            call = self.calls.take()
            if call is not None:
                self.first.append(call)
                self._send_ahead(process)

    def _send_ahead(self, process: WorkerProcess) -> None:
        """Send the next call, if there is one; what cannot be sent now has its turn."""
        if not self._sent and self.first and process.prepare(self.first[0]):
            try:
                self._begin(self.first[0], process)
            except LostError:
                self.first[0].put_back()
                raise
            self.first.popleft()

    def _take_back(self) -> None:
        """Give the call to another worker that the process was sent and has not begun."""
        while self._sent:
            call = self._sent.pop()
            call.put_back()
            if self._engine.elsewhere(call, self):
                self.first.append(call)

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

    def depth(self, worker: int, nbytes: int, function: Function) -> int:
        """Two: the next one is there when a worker is done with one. Of short ones one more.

        That is there while the answer to the first is put in its place, after which another one
        is given to the worker.
        """
        return 3 if self._workers[worker].seconds < _SHORT_SECONDS else 2

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
            left = [*worker.first, *worker.calls.drained()]
            worker.first.clear()
        for call in left:
            self.elsewhere(call, worker)

    def close(self, *, wait: bool, cancel: bool) -> None:
        """Processes end one by one, as they are done."""
        with self._lock:
            was_closed, self._is_closed = self._is_closed, True
            left = (
                [call for each in self._workers for call in each.calls.drained()] if cancel else []
            )
            # Its worker finds it cancelled.
            ahead = [call for each in self._workers for call in each.first.copy()] if cancel else []
            if not was_closed or cancel:
                for worker in self._workers:
                    worker.calls.put(None)
        for call in left:
            if call.future.cancel():
                call.future.set_running_or_notify_cancel()
            else:
                self._refuse(call)  # it was begun before, and lost its worker
        for call in ahead:
            call.future.cancel()
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
        if call.future.cancelled():
            call.begin()  # who waits for it is told
            return
        failures = [each.failure for each in self._workers if each.failure is not None]
        reason = "the executor was ended" if self.is_aborted else "there is no worker any more"
        lost = WorkerLostError(reason, worker=call.worker, attempts=call.attempts)
        lost.__cause__ = failures[0] if failures else None
        call.fail(lost)


_engines: Final[Registry[LocalEngine]] = Registry()


@atexit.register
def _end_all() -> None:
    for engine in _engines.alive():
        engine.abort()
