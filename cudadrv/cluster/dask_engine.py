"""The workers of a Dask cluster. Dask schedules, moves and repeats; this tells it what to call."""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent import futures
from dataclasses import replace
from importlib import import_module
from queue import SimpleQueue
from typing import Any, Final, TypeAlias, cast

from ..driver.locks import process_lock
from ..errors import ExecutorClosedError, RuntimeDependencyUnavailable, WorkerLostError
from .call import Call
from .dask_client import DaskClient, DaskFuture
from .dask_outbox import DaskOutbox
from .dask_roster import DaskRoster
from .dask_task import Gathered, Sent, Wish, all_of
from .dask_watch import DaskWatch
from .engine import Engine
from .pickled import Function
from .request import Reply
from .worker_report import WorkerReport

_LOOK_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.2  # between looks where something is wrong
_LEAST_WAITING: Final = 16
_MOST_UNBEGUN: Final = 1
_SMALL_BYTES: Final = 1 << 18  # of a tile of which many may be under way
_LOST: Final = "lost"
_News: TypeAlias = "Sent | str | Gathered | None"


class DaskEngine(Engine):
    """All workers of a client's cluster.

    One thread sends calls, another one takes what comes of them: each takes all that there is at
    once. What is on its way is the second one's alone, which is told of it.

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
        self._watch = DaskWatch(self._client, grace_seconds)
        self._roster = DaskRoster(self._client, grace_seconds, self._watch.no_worker)
        self._look_seconds = min(_LOOK_SECONDS, max(_PAUSE_SECONDS, grace_seconds / 4))
        self._news: SimpleQueue[_News] = SimpleQueue()
        self._outbox = DaskOutbox(self._client, self._roster, self._news.put, self._news.put)
        self._lock = process_lock()
        self._delivering = process_lock()
        self._open: dict[Call, None] = {}
        self._sent: dict[str, Sent] = {}
        self._answered = 0
        self._lost = -math.inf  # when a worker was lost last
        self._is_closed = False
        self._is_cancelled = False
        self._is_aborted = False
        for name, work in (("calls", self._outbox.run), ("results", self._collect)):
            threading.Thread(
                target=self._work, args=(work,), name=f"cudadrv dask {name}", daemon=True
            ).start()

    def workers(self) -> tuple[WorkerReport, ...]:
        """Those that the scheduler has now; new ones are asked what they are."""
        return self._roster.workers()

    def depth(self, worker: int, nbytes: int, function: Function) -> int:
        """More of small ones: the way to Dask and back is long, and several go together."""
        threads = self._roster.threads(self._roster.address(worker))
        if nbytes >= _SMALL_BYTES:
            return threads + 1
        return threads + 2 * max(_LEAST_WAITING, self._outbox.together(function.digest))

    def start(self, call: Call, worker: int | None = None) -> None:
        """Let the worker have it, or whom Dask chooses instead."""
        self._give(call, Wish(None if worker is None else self._roster.address(worker)))

    def start_on(self, call: Call, worker: int) -> None:
        """Let the worker have it, and no other."""
        self._give(call, Wish(self._roster.address(worker), only=True))

    def close(self, *, wait: bool, cancel: bool) -> None:
        """The workers stay, which are the cluster's."""
        with self._lock:
            self._is_closed = True
            left = list(self._open)
        if cancel:
            self._is_cancelled = True
            self._news.put(None)
            for call in left:
                call.future.cancel()
        if wait:
            futures.wait([call.future for call in left])
        self._end_if_done()

    def abort(self) -> None:
        """Give up all calls; what a worker is doing it does to its end."""
        self._is_aborted = True
        with self._delivering:  # what is being put into a caller's items is waited for
            pass
        self.close(wait=False, cancel=True)
        self._fail_all(futures.CancelledError())

    def _give(self, call: Call, wish: Wish) -> None:
        with self._lock:
            if self._is_closed:
                raise ExecutorClosedError("cannot schedule new futures after shutdown")
            self._open[call] = None
        call.future.add_done_callback(lambda _: self._forget(call))
        self._outbox.put(call, wish)

    def _forget(self, call: Call) -> None:
        self._open.pop(call, None)
        self._end_if_done()

    def _end_if_done(self) -> None:
        """Let both threads end where no call can come any more."""
        with self._lock:
            is_done = self._is_closed and not self._open
        if is_done:
            self._outbox.end()
            self._news.put(None)

    def _work(self, work: Callable[[], None]) -> None:
        """What a thread does: nobody waits for ever for one that has failed."""
        try:
            work()
        except BaseException as error:
            with self._lock:
                self._is_closed = True
            self._fail_all(error)
            self._end_if_done()  # the other thread too
            raise

    def _fail_all(self, error: BaseException) -> None:
        for call in list(self._open):
            self._forget(call)
            call.fail(error)

    def _collect(self) -> None:
        """Take what has ended, until the engine is closed."""
        looked = time.monotonic()
        while not (self._is_closed and not self._open):
            is_lossy = time.monotonic() - self._lost < _LOOK_SECONDS
            every = _PAUSE_SECONDS if self._watch.is_over or is_lossy else self._look_seconds
            news = all_of(self._news, every)
            for each in news:
                if isinstance(each, Sent):
                    each.seen = self._happened
                    self._sent[each.key] = each
            if self._is_cancelled:
                self._cancel_all()
            self._ask([each for each in news if isinstance(each, str)])
            for each in news:
                if isinstance(each, Gathered):
                    for key, answer in each.answers().items():
                        self._deliver(key, answer)
            if time.monotonic() - looked >= every:
                self._look()
                looked = time.monotonic()
        self._cancel_all()
        self._outbox.begins.close()

    def _ask(self, keys: list[str]) -> None:
        """Ask for the results of tasks; the end of those that have none is each call's."""
        there: dict[str, DaskFuture] = {}
        for key in keys:
            sent = self._sent.get(key)
            status = "pending" if sent is None else sent.future.status
            if sent is None or status == "pending":
                continue
            if status not in ("finished", _LOST):
                self._deliver(key, None)
            elif not sent.is_asked:
                sent.is_asked = True
                if status == _LOST:  # Dask makes it again; others do not wait for it
                    self._lost = time.monotonic()
                    self._gather({key: sent.future})
                else:
                    there[key] = sent.future
        if there:
            self._gather(there)

    def _gather(self, asked: dict[str, DaskFuture]) -> None:
        """Ask for results; those of a worker that does not answer keep nobody waiting."""
        try:
            results: Coroutine[Any, Any, Any] = self._client.gather(
                asked, errors="skip", asynchronous=True
            )
            loop = self._client.loop.asyncio_loop
            found = asyncio.run_coroutine_threadsafe(results, loop)
        except Exception as error:  # the client was closed
            found = futures.Future()
            found.set_exception(error)
        found.add_done_callback(lambda _: self._news.put(Gathered(list(asked), found)))

    def _deliver(self, key: str, answer: object) -> None:
        """Take the answers of a task; what came instead of them is each call's."""
        sent = self._sent.pop(key, None)
        if sent is None:
            return  # it was given to others meanwhile
        status, error = sent.future.status, None
        if status == "error":
            error = _error_of(sent.future)
        # At once: a result that is lost would be made again, with whatever it does to a worker.
        with contextlib.suppress(Exception):  # the client may be closed
            sent.future.release()
        begun = self._outbox.begins.taken(key)
        replies = answer if isinstance(answer, list) else [answer] * len(sent.calls)
        for call, reply in zip(sent.calls, replies, strict=True):
            with self._delivering:
                if self._is_aborted:
                    return
                again = self._accept(call, sent, begun, status, reply or error)
            if again is not None:
                self._outbox.put(call, again)

    def _accept(
        self, call: Call, sent: Sent, begun: int, status: str, answer: object
    ) -> Wish | None:
        """Take what came of a call; who is to make it once more, if it is to be."""
        if isinstance(answer, Reply):
            return self._accept_reply(call, sent.wish, answer)
        if self._is_closed and status == "cancelled":
            call.fail(futures.CancelledError())
        elif isinstance(answer, self._killed):  # as many times as Dask allows
            call.worker = answer.args[1].address
            return self._lose(call, sent, begun, str(answer))
        elif isinstance(answer, Exception) and status == "error":
            call.fail(answer)
        else:
            return self._lose(call, sent, begun, f"Dask lost the result: {answer or status}")
        return None

    def _accept_reply(self, call: Call, wish: Wish, reply: Reply) -> Wish | None:
        self._answered += 1
        if reply.is_broken:
            # Of several at once each finds the context lost.
            is_only = wish.alone or self._roster.threads(reply.worker) == 1
            self._roster.replace(reply.worker)
            if not is_only or not reply.was_called:
                call.put_back()
                return replace(wish, alone=wish.alone or not is_only)
        elif not reply.was_called:
            self._roster.is_shared = False
            call.put_back()
            return wish
        self._outbox.note(call.function.digest, reply.seconds)
        return wish if call.accept(reply, reply.unpacked) else None

    def _lose(self, call: Call, sent: Sent, begun: int, why: str) -> Wish | None:
        """Note that a call's worker is lost; it counts for those that were begun there.

        Where nothing happens any more but that workers are lost, it counts for all.
        """
        self._lost = time.monotonic()
        places, wish = self._outbox.begins.places, sent.wish
        if not wish.alone:
            places.add(call.worker)
        is_quiet = self._happened == sent.seen and call.worker not in places
        unbegun = wish.unbegun + 1 if is_quiet and not begun else 0
        again = Wish(wish.address if wish.only else None, wish.only, True, unbegun)
        if not begun and unbegun <= _MOST_UNBEGUN:
            call.put_back()
            return again
        call.attempts += max(0, begun - 1)
        return again if call.lose(why) else None

    @property
    def _happened(self) -> int:
        """How often calls were begun alone, or have ended."""
        return self._answered + self._outbox.begins.total

    def _look(self) -> None:
        """See to what waits for a worker that is gone or begins nothing, or for any for long."""
        # Dask says when a task has ended; but not where its loop ended before.
        self._ask(list(self._sent))
        waiting = {
            key: each
            for key, each in self._sent.items()
            if each.future.status in ("pending", _LOST)
        }
        decision = self._watch.look(waiting)
        for key in decision.elsewhere:
            self._send_elsewhere(self._taken_back(key))
        for key, refusal in decision.refused.items():
            for call in self._taken_back(key).calls:
                call.fail(refusal)

    def _taken_back(self, key: str) -> Sent:
        """A task that Dask is to forget."""
        sent = self._sent.pop(key)
        with contextlib.suppress(Exception):  # the client may be closed
            sent.future.cancel()
        return sent

    def _cancel_all(self) -> None:
        for sent in self._sent.values():
            with contextlib.suppress(Exception):  # the client may be closed
                sent.future.cancel()

    def _send_elsewhere(self, sent: Sent) -> None:
        """Give calls to another worker, if they may go to one."""
        for call in sent.calls:
            if sent.wish.only:
                why = f"worker {sent.wish.address} has left the cluster"
                call.fail(WorkerLostError(why, worker=call.worker, attempts=call.attempts))
            else:
                call.put_back()
                self._outbox.put(call, replace(sent.wish, address=None))


def _error_of(future: DaskFuture) -> BaseException | None:
    """What a task raised, or that nobody can say it any more."""
    try:
        return future.exception()
    except Exception as error:  # the client was closed
        return error
