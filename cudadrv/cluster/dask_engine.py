"""The workers of a Dask cluster as an engine. Dask schedules tasks, transfers data and repeats."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import secrets
import threading
import time
from collections.abc import Callable
from concurrent import futures
from dataclasses import dataclass, replace
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import Any, Final

from ..driver.locks import process_lock
from ..errors import (
    CudadrvError,
    ExecutorClosedError,
    NoWorkerError,
    RuntimeDependencyUnavailable,
)
from .call import NOT_BEGUN, Call, Engine, Outcome, Reply, Request, cache_by_digest
from .dask_worker import end, report, serve
from .pickled import PickledFunction
from .worker_report import WorkerReport

_PAUSE_SECONDS: Final = 0.2  # between checks after a problem
_REPLY_SECONDS: Final = 10.0
_RUNNING: Final = "running"
_ANY: Final = ""  # in place of an address
_REMEDY: Final = (
    "  Dask pauses a worker whose process has more than a share of its memory_limit: give workers\n"
    "  a larger one, or memory_limit=0 where they are threads of a process that does other work"
)


@dataclass(frozen=True, slots=True)
class ClusterView:
    """The state of the workers at one moment, and the tasks of those that begin none.

    A paused worker begins no task: its process uses more than the share of its memory_limit that
    Dask allows ("Worker Memory Management" in the manual of dask.distributed).

    Attributes:
        states: the scheduler's name for the state of each worker, by address.
        memory: bytes that the process of each worker uses, and may use; 0 for any.
        running: whether any worker begins tasks.
        placed: the keys of tasks assigned to some worker.
        held: the keys of tasks at workers that are not running, and not begun there.
        begun: the keys of tasks that such workers are executing.
    """

    states: dict[str, str]
    memory: dict[str, tuple[int, int]]
    running: bool
    placed: frozenset[str]
    held: frozenset[str]
    begun: frozenset[str]


class DaskCluster:
    """All workers that a cluster has had, by number, and how long they have begun no task.

    Args:
        client: a `distributed.Client`, which has no types.
        grace_seconds: how long calls wait if no worker begins them.

    Attributes:
        is_late: whether calls for any worker have waited that long.
    """

    def __init__(self, client: Any, grace_seconds: float) -> None:
        self.is_late: bool = False
        self._client = client
        self._grace_seconds = grace_seconds
        self._reports: dict[str, WorkerReport] = {}
        self._addresses: list[str] = []  # by number
        self._leaving: set[str] = set()
        self._threads: dict[str, int] = {}
        # The time since a worker begins no calls, by address; or since none of them does.
        self._since: dict[str, float] = {}

    def workers(self) -> tuple[WorkerReport, ...]:
        """Return the scheduler's present workers; new ones are queried for reports.

        Raises:
            NoWorkerError: there is none.
        """
        deadline = time.monotonic() + self._grace_seconds
        while True:
            reported = {*self._reports.copy(), *self._leaving.copy()}
            self._request_reports(
                [address for address in self._client.nthreads() if address not in reported]
            )
            reports = self._reports.copy()
            present = [address for address in sorted(self._client.nthreads()) if address in reports]
            if present:
                return tuple(reports[address] for address in present)
            # All may just be being replaced.
            if time.monotonic() > deadline:
                raise self.no_worker()
            with contextlib.suppress(TimeoutError):
                seconds_left = deadline - time.monotonic()
                self._client.wait_for_workers(1, timeout=max(0.1, seconds_left))
            time.sleep(_PAUSE_SECONDS)

    def counts(self) -> tuple[int, int]:
        """Return how many workers are known, and how many threads they have; at least one."""
        reports = list(self._reports.values())
        return max(1, len(reports)), max(1, sum(info.threads for info in reports))

    def address(self, number: int) -> str:
        """Return the present or former address of a worker by its number."""
        return self._addresses[number]

    def threads(self, address: str) -> int:
        """Return how many calls a worker executes at once, or executed."""
        return self._threads[address]

    def replace(self, address: str) -> None:
        """Let a worker end, so that its nanny starts another one. Does not wait for it."""
        if self._reports.pop(address, None) is None:
            return  # a replacement is under way
        self._leaving.add(address)

        def replace() -> None:
            with contextlib.suppress(Exception):  # it has ended before it could respond
                self._run(end, [address])

        threading.Thread(target=replace, name="cudadrv dask end", daemon=True).start()

    def view(self) -> ClusterView:
        """Return the present state of the cluster; record which workers begin no tasks.

        Raises:
            Exception: the scheduler is gone, or does not respond.
        """
        workers: dict[str, dict[str, Any]] = self._call_scheduler("identity")["workers"]
        states = {address: str(worker["status"]) for address, worker in workers.items()}
        memory = {
            address: (int(worker["metrics"].get("memory", 0)), int(worker["memory_limit"] or 0))
            for address, worker in workers.items()
        }
        idle = {address for address, state in states.items() if state != _RUNNING}
        processing: dict[str, list[str]] = self._call_scheduler("processing")
        waiting = [key for address, keys in processing.items() if address in idle for key in keys]
        begun_keys = self._begun(waiting)
        placed = frozenset(key for keys in processing.values() for key in keys)
        running = len(idle) < len(states)
        now = time.monotonic()
        silent = idle if running else idle | {_ANY}
        self._since = {address: self._since.get(address, now) for address in silent}
        self.is_late = self._waited(_ANY) > self._grace_seconds
        return ClusterView(
            states, memory, running, placed, frozenset(waiting) - begun_keys, begun_keys
        )

    def forget_waits(self) -> None:
        """Record that no call waits: workers without calls do not delay any."""
        self._since.clear()
        self.is_late = False

    def rejection(self, only: str | None, view: ClusterView) -> NoWorkerError | None:
        """Return the error of a call that its possible workers do not begin, or None."""
        whom = _ANY if only is None else only
        if self._waited(whom) <= self._grace_seconds:
            return None
        if not view.states:
            return self.no_worker()
        if only is None:
            complaint = f"no worker of the cluster started a call for {self._grace_seconds:g} s"
        else:
            complaint = (
                f"the only worker for this call has not started it for {self._grace_seconds:g} s"
            )
        lines = [f"{complaint}:"]
        for address in sorted(view.states) if only is None else [only]:
            has, limit = view.memory[address]
            of = f" of its memory_limit of {limit >> 20} MiB" if limit else ""
            lines.append(f"  {address}: {view.states[address]}, with {has >> 20} MiB{of}")
        return NoWorkerError("\n".join([*lines, _REMEDY]), states=view.states)

    def no_worker(self) -> NoWorkerError:
        """Return the error of a cluster without workers."""
        return NoWorkerError(
            f"the cluster has had no worker for {self._grace_seconds:g} s\n"
            "  start some for its scheduler, or give GpuExecutor.dask more grace_seconds",
            states={},
        )

    def _waited(self, whom: str) -> float:
        now = time.monotonic()
        return now - self._since.get(whom, now)

    def _request_reports(self, addresses: list[str]) -> None:
        """Fetch the reports of new workers; those that end meanwhile are omitted."""
        if not addresses:
            return
        for address, reply in self._run(report, addresses).items():
            if isinstance(reply, WorkerReport):
                self._reports[address] = replace(reply, number=len(self._addresses))
                self._addresses.append(address)
                self._threads[address] = reply.threads
            elif isinstance(reply, CudadrvError):
                raise reply

    def _begun(self, keys: list[str]) -> frozenset[str]:
        """Return the tasks being executed; all, if a worker does not respond."""
        if not keys:
            return frozenset()
        try:
            stacks: dict[str, dict[str, object]] = self._call_scheduler("call_stack", keys=keys)
        except Exception:  # such as a stopped worker: the scheduler decides how long to wait for it
            return frozenset(keys)
        return frozenset(key for of_worker in stacks.values() for key in of_worker)

    def _call_scheduler(self, handler: str, **arguments: object) -> Any:
        """Return the result of a handler of the scheduler."""
        function = getattr(self._client.scheduler, handler)
        return self._client.sync(function, callback_timeout=_REPLY_SECONDS, **arguments)

    def _run(self, function: Callable[..., object], workers: list[str]) -> dict[str, object]:
        """Return the result of a function in each worker, or its error."""
        replies: dict[str, object] = self._client.run(function, workers=workers, on_error="return")
        return replies


_LOOK_SECONDS: Final = 5.0
_MIN_CALLS: Final = 32  # small calls per worker: the round trip to Dask is long
_SMALL_BYTES: Final = 1 << 18
_MAX_UNBEGUN: Final = 1
_MAX_TOGETHER: Final = 64
_TASK_SECONDS: Final = 0.02  # duration of a task of several calls
_LARGE_CODE: Final = 1 << 15
_LOST: Final = "lost"


@dataclass(slots=True)
class _Task:
    """Calls of one function in flight, as one task of Dask's.

    Attributes:
        calls: the calls.
        only: the address of the one worker that may execute them; None for any.
        is_alone: whether its process executes no other call meanwhile, and logs that it begins.
        future: Dask's.
        seen: the value of the engine's `_happened` when it was sent.
        is_gathered: whether its result was requested.
    """

    calls: list[Call]
    only: str | None
    is_alone: bool
    future: Any
    seen: int
    is_gathered: bool = False


@dataclass(frozen=True, slots=True)
class _Gathered:
    """The results of tasks, as they have arrived from their workers.

    Attributes:
        keys: the tasks.
        future: their results by key.
    """

    keys: list[str]
    future: futures.Future[Any]

    def results(self) -> dict[str, object]:
        """Return a result for each task, or the error: they were lost, or the client was closed."""
        try:
            results: dict[str, object] = self.future.result()
        except BaseException as error:  # asyncio's cancellation, when the client's loop ends
            return dict.fromkeys(self.keys, error)
        return {key: results.get(key) for key in self.keys}


class DaskEngine(Engine):
    """All workers of a client's cluster, and one thread that sends calls and receives results.

    Dask counts a lost worker against all tasks that waited there, and does not report which had
    begun. So a call that has lost a worker runs alone from then on, and its worker logs an event
    before it begins. A scheduler forwards events before it gives up the task ("events" in the
    manual of dask.distributed). Only an attempt that was begun counts.

    Args:
        client: a `distributed.Client`, which has no types.
        grace_seconds: how long calls wait if no worker begins them.
    """

    def __init__(self, client: Any, grace_seconds: float) -> None:
        try:
            scheduler = import_module("distributed.scheduler")
        except ModuleNotFoundError as error:
            raise RuntimeDependencyUnavailable(
                'GpuExecutor.dask needs distributed: pip install "cudadrv[cluster]"'
            ) from error
        self._killed: type[Exception] = scheduler.KilledWorker
        self._client = client
        self._cluster = DaskCluster(client, grace_seconds)
        self._look_seconds = min(_LOOK_SECONDS, max(_PAUSE_SECONDS, grace_seconds / 4))
        # A call to send, the key of an ended task, or results; None to check the rest.
        self._events: SimpleQueue[Call | str | _Gathered | None] = SimpleQueue()
        self._lock = process_lock()
        self._delivering = process_lock()
        self._open: dict[Call, None] = {}
        self._is_closed = False
        self._is_cancelled = False
        self._is_aborted = False
        # The rest is the thread's alone, except in `_note_begin` and `_forget`.
        self._topic = f"cudadrv-{secrets.token_hex(4)}"
        self._keys = (f"{self._topic}-{number}" for number in itertools.count())
        self._tasks: dict[str, _Task] = {}
        self._codes: dict[str, Any] = {}  # futures of large functions' code
        self._seconds: dict[str, float] = {}  # of one call, by function
        self._lost = -math.inf  # when a worker was lost last
        # Calls that have lost a worker: how often since then, without any other event.
        self._suspects: dict[Call, int] = {}
        self._is_listening = False
        self._begun: dict[str, int] = {}  # how often a task that runs alone was begun
        self._suspect_workers: set[str] = set()  # workers that may be lost by tasks they had begun
        self._happened = 0  # calls that were begun alone or have ended
        threading.Thread(target=self._run, name="cudadrv dask", daemon=True).start()

    def workers(self) -> tuple[WorkerReport, ...]:
        """Return the scheduler's present workers."""
        return self._cluster.workers()

    def capacity(self, nbytes: int, function: PickledFunction) -> int:
        """Return more for small tiles: several are sent together."""
        workers, threads = self._cluster.counts()
        if nbytes >= _SMALL_BYTES:
            return threads + workers
        return threads + workers * max(_MIN_CALLS, 2 * self._together(function.digest))

    def start(self, call: Call) -> None:
        """Queue a call for sending."""
        with self._lock:
            if self._is_closed:
                raise ExecutorClosedError("cannot schedule new futures after shutdown")
            self._open[call] = None
            self._events.put(call)
        call.future.add_done_callback(lambda _: self._forget(call))

    def close(self, *, wait: bool, cancel: bool) -> None:
        """Accept no more calls; the workers stay, as they belong to the cluster."""
        with self._lock:
            self._is_closed = True
            open_calls = list(self._open)
        if cancel:
            self._is_cancelled = True
            for call in open_calls:
                call.future.cancel()
        self._events.put(None)
        if wait:
            futures.wait([call.future for call in open_calls])

    def abort(self) -> None:
        """Abandon all calls; a worker completes the call that it has begun."""
        self._is_aborted = True
        with self._delivering:  # wait for a result that is being copied into a caller's items
            pass
        self.close(wait=False, cancel=True)
        self._fail_all(futures.CancelledError())

    def _forget(self, call: Call) -> None:
        self._open.pop(call, None)
        self._suspects.pop(call, None)
        if self._is_closed and not self._open:
            self._events.put(None)

    def _fail_all(self, error: BaseException) -> None:
        for call in list(self._open):
            self._forget(call)
            call.fail(error)

    def _run(self) -> None:
        """Send calls and receive results, until the engine is closed and all calls have ended."""
        try:
            looked = time.monotonic()
            while not (self._is_closed and not self._open):
                is_lossy = time.monotonic() - self._lost < _LOOK_SECONDS
                is_late = self._cluster.is_late
                period = _PAUSE_SECONDS if is_late or is_lossy else self._look_seconds
                self._handle(_all_of(self._events, period))
                if time.monotonic() - looked >= period:
                    self._look()
                    looked = time.monotonic()
        except BaseException as error:  # no caller waits for ever for a failed thread
            with self._lock:
                self._is_closed = True
            self._fail_all(error)
            raise
        finally:
            self._cancel_all()
            if self._is_listening:
                with contextlib.suppress(Exception):  # the client may be closed
                    self._client.unsubscribe_topic(self._topic)
            for event in _all_of(self._events, 0):
                if isinstance(event, Call):
                    event.begin()  # it was cancelled: its waiters are notified

    def _handle(self, events: list[Call | str | _Gathered | None]) -> None:
        self._send([event for event in events if isinstance(event, Call)])
        if self._is_cancelled:
            self._cancel_all()
        self._collect([event for event in events if isinstance(event, str)])
        for event in events:
            if isinstance(event, _Gathered):
                for key, result in event.results().items():
                    self._deliver(key, result)

    # Sending

    def _together(self, digest: str) -> int:
        """Return how many calls of a function make a task: as many as fill a minimal duration."""
        seconds = self._seconds.get(digest, _TASK_SECONDS)
        return max(1, min(_MAX_TOGETHER, int(_TASK_SECONDS / max(seconds, 1e-6))))

    def _send(self, calls: list[Call]) -> None:
        groups: dict[tuple[str, int | None], list[Call]] = {}
        for call in calls:
            if not call.begin():
                continue
            if call in self._suspects:
                self._submit([call], is_alone=True)
                continue
            digest = call.function.digest
            group = groups.setdefault((digest, call.only_worker), [])
            group.append(call)
            if len(group) >= self._together(digest):
                self._submit(groups.pop((digest, call.only_worker)))
        for group in groups.values():
            self._submit(group)

    def _submit(self, group: list[Call], *, is_alone: bool = False) -> None:
        """Submit a task for calls of one function."""
        calls: list[Call] = []
        requests: list[Request] = []
        for call in group:
            try:
                requests.append(call.request(has_function=True))
                calls.append(call)
            except Exception as error:  # arguments that cannot be pickled
                call.fail(error)
        if not calls:
            return
        key, number = next(self._keys), calls[0].only_worker
        only = None if number is None else self._cluster.address(number)
        try:
            if is_alone and not self._is_listening:
                self._is_listening = True
                self._client.subscribe_topic(self._topic, self._note_begin)
            future = self._client.submit(
                serve,
                requests,
                self._code(calls[0].function),
                (self._topic, key) if is_alone else None,
                key=key,
                pure=False,
                workers=None if only is None else [only],
            )
            self._tasks[key] = _Task(calls, only, is_alone, future, self._happened)
            future.add_done_callback(lambda _: self._events.put(key))
        except Exception as error:  # the client is closed
            for call in calls:
                call.fail(error)

    def _code(self, function: PickledFunction) -> Any:
        """Return a function's pickle for a task: its bytes, or a future of them if large."""
        if len(function.code) <= _LARGE_CODE:
            return function.code
        pickled_code = self._codes.get(function.digest)
        if pickled_code is None or pickled_code.status not in ("pending", "finished"):
            # A task, not data of the client's: so Dask repeats it if a worker is lost.
            key = f"cudadrv-code-{function.digest}"
            pickled_code = self._client.submit(bytes, function.code, key=key, pure=False)
            cache_by_digest(self._codes, function.digest, pickled_code)
        return pickled_code

    # Results

    def _collect(self, keys: list[str]) -> None:
        """Request the results of tasks; one without a result ends now."""
        present: dict[str, Any] = {}
        for key in keys:
            task = self._tasks.get(key)
            if task is None or task.is_gathered:
                continue
            status = task.future.status
            if status == "finished":
                task.is_gathered = True
                present[key] = task.future
            elif status == _LOST:  # Dask repeats it; others do not wait for it
                task.is_gathered = True
                self._lost = time.monotonic()
                self._request_results({key: task.future})
            elif status != "pending":
                self._deliver(key, None)
        if present:
            self._request_results(present)

    def _request_results(self, futures_by_key: dict[str, Any]) -> None:
        """Request results; a worker that does not respond delays no other."""
        try:
            results = self._client.gather(futures_by_key, errors="skip", asynchronous=True)
            loop = self._client.loop.asyncio_loop
            gathered: futures.Future[Any] = asyncio.run_coroutine_threadsafe(results, loop)
        except Exception as error:  # the client was closed
            gathered = futures.Future()
            gathered.set_exception(error)
        gathered.add_done_callback(
            lambda _: self._events.put(_Gathered(list(futures_by_key), gathered))
        )

    def _deliver(self, key: str, result: object) -> None:
        """End an attempt at each call of a task, with its reply or the error."""
        task = self._tasks.pop(key, None)
        if task is None:
            return  # its calls were sent again meanwhile
        status = task.future.status
        if status == "error":
            result = result or _error_of(task.future)
        # At once: a lost result would be computed again, with all its effects on a worker.
        with contextlib.suppress(Exception):  # the client may be closed
            task.future.release()
        times_begun = self._begun.pop(key, 0)
        results = result if isinstance(result, list) else [result] * len(task.calls)
        for call, reply in zip(task.calls, results, strict=True):
            with self._delivering:
                if self._is_aborted:
                    return
                is_sent_again = self._end_attempt(call, task, times_begun, status, reply)
            if is_sent_again:
                self._events.put(call)

    def _end_attempt(
        self, call: Call, task: _Task, times_begun: int, status: str, result: object
    ) -> bool:
        """Report the outcome of its attempt to a call; return whether it is to be sent again."""
        if isinstance(result, Reply):
            self._happened += 1
            if result.is_broken:
                # Of several concurrent calls each finds the context lost.
                is_only = task.is_alone or self._cluster.threads(result.worker) == 1
                self._cluster.replace(result.worker)
                if not is_only:
                    self._suspects.setdefault(call, 0)
                if not is_only or not result.was_called:
                    return call.end(NOT_BEGUN)
            digest = call.function.digest
            former = self._seconds.get(digest, result.seconds)
            cache_by_digest(self._seconds, digest, (former + result.seconds) / 2)
            return call.end(Outcome(result))
        if self._is_closed and status == "cancelled":
            call.fail(futures.CancelledError())
            return False
        if isinstance(result, self._killed):  # as many times as Dask allows
            return self._lose(call, task, times_begun, str(result), result.args[1].address)
        if isinstance(result, Exception) and status == "error":
            call.fail(result)
            return False
        return self._lose(call, task, times_begun, f"Dask lost the result: {result or status}")

    def _lose(self, call: Call, task: _Task, times_begun: int, why: str, worker: str = "") -> bool:
        """Report a lost worker to a call, if the call was begun there.

        If workers are lost and nothing else happens any more, it counts for all.
        """
        self._lost = time.monotonic()
        worker = worker or call.worker
        if not task.is_alone:
            self._suspect_workers.add(worker)
        is_quiet = self._happened == task.seen and worker not in self._suspect_workers
        unbegun = self._suspects.get(call, 0) + 1 if is_quiet and not times_begun else 0
        self._suspects[call] = unbegun
        if not times_begun and unbegun <= _MAX_UNBEGUN:
            return call.end(Outcome(worker=worker, begun=0))
        return call.end(Outcome(lost=why, worker=worker, begun=max(1, times_begun)))

    def _note_begin(self, event: tuple[float, tuple[str, str]]) -> None:
        """Record the begin of a call that runs alone; in the client's loop."""
        _, (key, address) = event
        self._suspect_workers.add(address)
        self._begun[key] = self._begun.get(key, 0) + 1
        self._happened += 1

    # Waiting

    def _look(self) -> None:
        """Find tasks whose worker has left or does not run, or that have waited long."""
        # Dask reports the end of a task, unless its loop ended before.
        self._collect(list(self._tasks))
        waiting = {
            key: task
            for key, task in self._tasks.items()
            if task.future.status in ("pending", _LOST)
        }
        if not waiting:
            self._cluster.forget_waits()
            return
        try:
            view = self._cluster.view()
        except Exception:  # the scheduler is gone; Dask cancels the futures
            return
        for key, task in waiting.items():
            if task.only is not None and task.only not in view.states and key not in view.placed:
                why = f"worker {task.only} has left the cluster"
                for call in self._cancelled_calls(key):
                    call.abandon(why)
            elif task.only is None and key in view.held and view.running:
                for call in self._cancelled_calls(key):
                    if call.end(NOT_BEGUN):
                        self._events.put(call)
            elif key not in view.begun:
                rejection = self._cluster.rejection(task.only, view)
                if rejection is not None:
                    for call in self._cancelled_calls(key):
                        call.fail(rejection)

    def _cancelled_calls(self, key: str) -> list[Call]:
        """Return the calls of a task that Dask is to forget."""
        task = self._tasks.pop(key)
        with contextlib.suppress(Exception):  # the client may be closed
            task.future.cancel()
        return task.calls

    def _cancel_all(self) -> None:
        for task in self._tasks.values():
            with contextlib.suppress(Exception):  # the client may be closed
                task.future.cancel()


def _error_of(future: Any) -> BaseException | None:
    """Return the error of a task, or the reason why Dask cannot report it."""
    try:
        error: BaseException | None = future.exception()
    except Exception as failure:  # the client was closed
        return failure
    return error


def _all_of(
    queue: SimpleQueue[Call | str | _Gathered | None], seconds: float
) -> list[Call | str | _Gathered | None]:
    """Return all items of a queue, after waiting for the first."""
    items: list[Call | str | _Gathered | None] = []
    with contextlib.suppress(Empty):
        items.append(queue.get(timeout=seconds))
        while True:
            items.append(queue.get_nowait())
    return items
