"""The workers of a Dask cluster. Dask schedules, moves and repeats; this tells it what to call."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent import futures
from dataclasses import replace
from importlib import import_module
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar, cast

from ..driver.locks import process_lock
from ..errors import (
    CudadrvError,
    ExecutorClosedError,
    RuntimeDependencyUnavailable,
    WorkerLostError,
)
from .call import Call
from .dask_client import DaskClient, DaskFuture
from .dask_task import Gathered, Sent, Wish
from .dask_watch import DaskWatch
from .dask_worker import can_open, end, report, serve
from .engine import Engine
from .report import WorkerReport
from .request import Reply, Request, keep
from .segment import CAN_SHARE, Segment

_LOOK_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.2
_LARGE_CODE: Final = 1 << 15
_TASK_SECONDS: Final = 0.02  # of a task of several calls
_MOST_TOGETHER: Final = 16
_SMALL_BYTES: Final = 1 << 18  # of a tile of which many may be under way
_T = TypeVar("_T")


class DaskEngine(Engine):
    """All workers of a client's cluster.

    One thread sends calls, another one takes what comes of them: each takes all that there is at
    once. Short calls of one function go together, as a task costs Dask milliseconds.

    Args:
        client: the client.
        grace_seconds: how long calls wait that no worker takes.
    """

    def __init__(self, client: object, grace_seconds: float) -> None:
        try:
            scheduler = import_module("distributed.scheduler")
        except ModuleNotFoundError as error:
            raise RuntimeDependencyUnavailable(
                'GpuExecutor.dask needs distributed: pip install "cudadrv[cluster]"'
            ) from error
        self._killed: type[Exception] = scheduler.KilledWorker
        self._client = cast(DaskClient, client)  # what a client is, no class of ours says
        self._reports: dict[str, WorkerReport] = {}
        self._numbered: list[str] = []
        self._leaving: set[str] = set()
        self._is_shared = CAN_SHARE  # until a worker cannot open it
        self._is_closed = False
        self._is_aborted = False
        self._token = secrets.token_hex(4)
        self._number = itertools.count()
        self._codes: dict[str, DaskFuture] = {}
        self._seconds: dict[str, float] = {}
        self._open: dict[Call, None] = {}
        self._sent: dict[str, Sent] = {}
        self._given: SimpleQueue[tuple[Call, Wish] | None] = SimpleQueue()
        self._ended: SimpleQueue[str | Gathered | None] = SimpleQueue()
        self._delivering = process_lock()
        self._grace_seconds = grace_seconds
        self._watch = DaskWatch(self._client, grace_seconds)
        self._look_seconds = min(_LOOK_SECONDS, max(_PAUSE_SECONDS, grace_seconds / 4))
        for name, work in (("calls", self._send), ("results", self._collect)):
            threading.Thread(target=work, name=f"cudadrv dask {name}", daemon=True).start()

    def workers(self) -> tuple[WorkerReport, ...]:
        """Those that the scheduler has now; new ones are asked what they are."""
        deadline = time.monotonic() + self._grace_seconds
        while True:
            known = self._reports.keys() | self._leaving
            self._ask([each for each in self._client.nthreads() if each not in known])
            there = [each for each in sorted(self._client.nthreads()) if each in self._reports]
            if there:
                return tuple(self._reports[each] for each in there)
            # All may just be replaced.
            if time.monotonic() > deadline:
                raise self._watch.no_worker()
            with contextlib.suppress(TimeoutError):
                left = deadline - time.monotonic()
                self._client.wait_for_workers(1, timeout=max(0.1, left))
            time.sleep(_PAUSE_SECONDS)

    def _ask(self, addresses: list[str]) -> None:
        """Ask new workers what they are; those that end meanwhile are none."""
        if not addresses:
            return
        for address, found in self._run(report, workers=addresses).items():
            if isinstance(found, WorkerReport):
                self._reports[address] = replace(found, number=len(self._numbered))
                self._numbered.append(address)
            elif isinstance(found, CudadrvError):
                raise found
        if self._is_shared:
            token = Segment(1)
            found_open = self._run(can_open, token.put(()), workers=addresses)
            self._is_shared = all(answer is not False for answer in found_open.values())

    def _run(
        self, function: Callable[..., object], *args: object, workers: list[str]
    ) -> dict[str, object]:
        """What a function gives in each worker, or its error."""
        found: dict[str, object] = self._client.run(
            function, *args, workers=workers, on_error="return"
        )
        return found

    def depth(self, worker: int, nbytes: int) -> int:
        """More of small ones: the way to Dask and back is long, and several go together."""
        known = self._reports.get(self._numbered[worker])  # not where it is just replaced
        threads = 1 if known is None else known.threads
        return threads + (2 * _MOST_TOGETHER if nbytes < _SMALL_BYTES else 1)

    def start(self, call: Call, worker: int | None = None) -> None:
        """Let the worker have it, or whom Dask chooses instead."""
        self._give(call, Wish(None if worker is None else self._numbered[worker], False))

    def start_on(self, call: Call, worker: int) -> None:
        """Let the worker have it, and no other."""
        self._give(call, Wish(self._numbered[worker], True))

    def close(self, *, wait: bool, cancel: bool) -> None:
        """The workers stay, which are the cluster's."""
        self._is_closed = True
        if cancel:
            for call in list(self._open):
                call.future.cancel()
            for sent in list(self._sent.values()):
                with contextlib.suppress(Exception):  # the client may be closed
                    sent.future.cancel()
        if wait:
            futures.wait([call.future for call in list(self._open)])
        self._given.put(None)
        self._ended.put(None)

    def abort(self) -> None:
        """Give up all calls; what a worker is doing it does to its end."""
        self._is_aborted = True
        with self._delivering:  # what is being put into a caller's items is waited for
            pass
        self.close(wait=False, cancel=True)
        for call in list(self._open):
            self._forget(call)
            call.fail(futures.CancelledError())

    def _give(self, call: Call, wish: Wish) -> None:
        if self._is_closed:
            raise ExecutorClosedError("cannot schedule new futures after shutdown")
        self._open[call] = None
        call.future.add_done_callback(lambda _: self._forget(call))
        self._given.put((call, wish))

    def _forget(self, call: Call) -> None:
        self._open.pop(call, None)

    def _send(self) -> None:
        """Send calls to Dask, as many together as their time allows."""
        while not (self._is_closed and not self._open):
            together: dict[tuple[str, Wish], list[Call]] = {}
            for call, wish in _all_of(self._given, None):
                if not call.begin():
                    continue
                digest = call.function.digest
                calls = together.setdefault((digest, wish), [])
                calls.append(call)
                if len(calls) >= self._together(digest):
                    self._submit(calls, wish)
                    del together[digest, wish]
            for (_, wish), calls in together.items():
                self._submit(calls, wish)

    def _together(self, digest: str) -> int:
        """How many calls of a function are a task."""
        seconds = self._seconds.get(digest, _TASK_SECONDS)
        return max(1, min(_MOST_TOGETHER, int(_TASK_SECONDS / max(seconds, 1e-6))))

    def _submit(self, calls: list[Call], wish: Wish) -> None:
        segments: list[Segment] = []
        sendable: list[Call] = []
        requests: list[Request] = []
        for call in calls:
            try:
                requests.append(self._request(call, segments))
                sendable.append(call)
            except Exception as error:  # arguments that cannot be pickled, or are too large
                call.fail(error)
        if not requests:
            return
        key = f"cudadrv-{self._token}-{next(self._number)}"
        try:
            future = self._client.submit(
                serve, requests, self._code(sendable[0]), key=key, pure=False,
                workers=None if wish.address is None else [wish.address],
                allow_other_workers=wish.address is not None and not wish.only,
            )  # fmt: skip
        except Exception as error:  # the client is closed
            for call in sendable:
                call.fail(error)
            return
        self._sent[key] = Sent(sendable, wish, future, segments)
        future.add_done_callback(lambda _: self._ended.put(key))

    def _request(self, call: Call, segments: list[Segment]) -> Request:
        def share(nbytes: int) -> Segment:
            segments.append(Segment(nbytes))
            return segments[-1]

        return call.request(
            has_function=True, share=share if self._is_shared else None, is_private=True
        )

    def _code(self, call: Call) -> bytes | DaskFuture:
        """The function: with the task, or, if it is large, once a worker."""
        function = call.function
        if len(function.code) <= _LARGE_CODE:
            return function.code
        found = self._codes.get(function.digest)
        if found is None or found.status not in ("pending", "finished"):
            # A task, and no data of the client's: so Dask makes it again where a worker is lost.
            found = self._client.submit(
                bytes, function.code, key=f"cudadrv-code-{function.digest}", pure=False
            )
            keep(self._codes, function.digest, found)
        return found

    def _collect(self) -> None:
        """Take what has ended, until the engine is closed."""
        looked = time.monotonic()
        while not (self._is_closed and not self._open):
            every = _PAUSE_SECONDS if self._watch.is_over else self._look_seconds
            ended: list[str | Gathered] = _all_of(self._ended, every)
            if time.monotonic() - looked >= every:
                self._look()
                looked = time.monotonic()
            sent = [
                self._sent.pop(each)
                for each in ended
                if isinstance(each, str) and each in self._sent
            ]
            there = [each for each in sent if each.future.status == "finished"]
            if there:
                self._gather(there)
            for each in sent:
                if each not in there:
                    self._deliver(each, None)
            for gathered in ended:
                if isinstance(gathered, Gathered):
                    for each, answer in zip(gathered.sent, gathered.answers(), strict=True):
                        self._deliver(each, answer)

    def _gather(self, sent: list[Sent]) -> None:
        """Ask for results; those of a worker that does not answer keep nobody waiting."""
        try:
            asked: Coroutine[Any, Any, Any] = self._client.gather(
                [each.future for each in sent], asynchronous=True
            )
            loop = self._client.loop.asyncio_loop
            found = asyncio.run_coroutine_threadsafe(asked, loop)
        except Exception as error:  # the client was closed
            found = futures.Future()
            found.set_exception(error)
        found.add_done_callback(lambda _: self._ended.put(Gathered(sent, found)))

    def _deliver(self, sent: Sent, answer: object) -> None:
        """Take the answers of a task; what came instead of them is each call's."""
        status, error = sent.future.status, None
        if status == "error":
            error = sent.future.exception()
        # At once: a result that is lost would be made again, with whatever it does to a worker.
        sent.future.release()
        replies = answer if isinstance(answer, list) else [answer] * len(sent.calls)
        for call, reply in zip(sent.calls, replies, strict=True):
            with self._delivering:
                if self._is_aborted:
                    return
                again = self._accept(call, status, reply or error)
            if again:
                self._given.put((call, sent.wish))

    def _accept(self, call: Call, status: str, answer: object) -> bool:
        """Take what came of a call; whether it is to be made once more."""
        if isinstance(answer, Reply):
            if answer.is_broken:
                self._replace(answer.worker)
            elif not answer.was_called:
                self._is_shared = False
            if not answer.was_called:
                call.put_back()
                return True
            former = self._seconds.get(call.function.digest, answer.seconds)
            keep(self._seconds, call.function.digest, (former + answer.seconds) / 2)
            return call.accept(answer, answer.unpacked)
        if self._is_closed and status == "cancelled":
            call.fail(futures.CancelledError())
        elif isinstance(answer, self._killed):  # as many times as Dask allows
            call.worker = answer.args[1].address
            return call.lose(str(answer))
        elif isinstance(answer, Exception) and status == "error":
            call.fail(answer)
        else:
            return call.lose(f"Dask lost the result: {answer or status}")
        return False

    def _replace(self, address: str) -> None:
        """Have a worker end, for its nanny to start another one. Does not wait for it."""
        if self._reports.pop(address, None) is None:
            return  # it is under way
        self._leaving.add(address)

        def replace() -> None:
            with contextlib.suppress(Exception):  # it has ended before it could answer
                self._run(end, workers=[address])

        threading.Thread(target=replace, name="cudadrv dask end", daemon=True).start()

    def _look(self) -> None:
        """See to what waits for a worker that is gone or begins nothing, or for any for long."""
        decision = self._watch.look(self._sent)
        for key in decision.elsewhere:
            self._send_elsewhere(self._sent.pop(key))
        for key, refusal in decision.refused.items():
            sent = self._sent.pop(key)
            with contextlib.suppress(Exception):  # the client may be closed
                sent.future.cancel()
            for call in sent.calls:
                call.fail(refusal)

    def _send_elsewhere(self, sent: Sent) -> None:
        """Give calls to another worker, if they may go to one."""
        with contextlib.suppress(Exception):  # the client may be closed
            sent.future.cancel()
        for call in sent.calls:
            if sent.wish.only:
                why = f"worker {sent.wish.address} has left the cluster"
                call.fail(WorkerLostError(why, worker=call.worker, attempts=call.attempts))
            else:
                call.put_back()
                self._given.put((call, Wish(None, False)))


def _all_of(queue: SimpleQueue[_T | None], seconds: float | None) -> list[_T]:
    """All that is there, waiting for the first; None among it only wakes."""
    found: list[_T | None] = []
    with contextlib.suppress(Empty):
        found.append(queue.get(timeout=seconds))
        while True:
            found.append(queue.get_nowait())
    return [each for each in found if each is not None]
