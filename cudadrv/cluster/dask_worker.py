"""A Dask worker as a worker of an executor: tasks of `cudadrv.cluster.dask_engine` run here."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any, Final, cast

from ..driver.device import list_devices
from ..errors import NoDeviceError
from .call import Reply, Request, this_process
from .worker import RequestHandler
from .worker_report import WorkerReport, report_of

_END_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.2
_LOG_SECONDS: Final = 30.0
_ALONE_SECONDS: Final = 10.0
_MAX_SHARING: Final = 64  # processes of one device


def serve(
    requests: Sequence[Request], code: bytes, log: tuple[str, str] | None = None
) -> list[Reply]:
    """Reply to requests of one function, one after the other.

    A worker whose context is lost leaves them to another one.

    Args:
        requests: the requests.
        code: the function's pickle.
        log: a topic and the task's key, logged before a call that is made alone.
    """
    # distributed has no types.
    worker: Any = import_module("distributed").get_worker()
    handler = _handler(worker.address)
    replies: list[Reply] = []
    with _gate.entered(alone=log is not None):
        for request in requests:
            if request.caller == this_process() or not handler.is_broken:
                if log is not None:
                    _log_begin(worker, *log)
                replies.append(handler.reply_to(replace(request, code=code)))
            elif replies:
                replies.append(handler.not_called())
            else:
                _end_soon()
                raise _reschedule()
    return replies


# Dask passes the worker to a parameter of this name.
async def report(dask_worker: Any) -> WorkerReport:
    """Report this worker and its device without blocking the worker: a driver's start is slow."""
    address, threads = dask_worker.address, dask_worker.state.nthreads
    return await asyncio.to_thread(lambda: report_of(_handler(address).ordinal, address, threads))


def end() -> None:
    """End the process, for a nanny to start another one."""
    os._exit(1)


class Gate:
    """Admits calls of a process: many at once, or one alone.

    In a cycle of waiting calls, a call is admitted after a while nevertheless.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._inside = 0
        self._is_shut = False

    @contextmanager
    def entered(self, *, alone: bool) -> Iterator[None]:
        """Enter for the duration of a `with` block."""
        with self._lock:
            self._changed.wait_for(lambda: not self._is_shut, _ALONE_SECONDS)
            if alone:
                self._is_shut = True
                self._changed.wait_for(lambda: not self._inside, _ALONE_SECONDS)
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if alone:
                    self._is_shut = False
                self._changed.notify_all()


class Claim:
    """The device of a worker without an assigned one: the first that no process of the host claims.

    It is one of the visible devices, in their order. Each worker gets a device of its own. Under
    dask-cuda it sees its own device first, under Slurm it sees one, and in a plain cluster it sees
    all. If there are more processes than devices they are shared evenly. The claim is a name of a
    socket (unix(7), abstract), which ends with the process.

    Args:
        turn: how many workers of this process claimed one before.

    Attributes:
        ordinal: the device.

    Raises:
        NoDeviceError: there is none.
    """

    def __init__(self, turn: int) -> None:
        devices = list_devices()
        if not devices:
            raise NoDeviceError("getting a worker's device")
        self._socket: socket.socket | None = None
        index: int | None = turn % len(devices)
        # Each process has emulated devices of its own.
        if not devices[0].is_emulated and sys.platform == "linux":
            index = first_free([str(device.uuid) for device in devices], self._take)
        self.ordinal: int = devices[index or 0].ordinal

    def _take(self, name: str) -> bool:
        self._socket = held_name(name)
        return self._socket is not None


def held_name(name: str) -> socket.socket | None:
    """Hold a name on this host until the socket is closed; None if another socket has it."""
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        holder.bind(f"\0cudadrv-{name}")
    except OSError:
        holder.close()
        return None
    return holder


def first_free(names: Sequence[str], take: Callable[[str], bool]) -> int | None:
    """Return the index of the first free name; each is used once before any is used twice."""
    for turn in range(_MAX_SHARING):
        for index, name in enumerate(names):
            if take(f"{name}-{turn}"):
                return index
    return None


_handlers: Final[dict[str, RequestHandler]] = {}
"""By the worker's address: a cluster of threads has several workers in one process."""
_gate: Final = Gate()
"""All calls of this process go through it, whichever worker received them."""
_ending: Final[list[threading.Timer]] = []
"""The timer that ends the process, once its end is due."""
_claims: Final[list[Claim]] = []
"""The workers' devices, for the life of the process."""


def _handler(address: str) -> RequestHandler:
    handler = _handlers.get(address)
    if handler is None:
        claim = Claim(len(_claims))
        _claims.append(claim)
        handler = _handlers.setdefault(address, RequestHandler(address, claim.ordinal))
    return handler


def _log_begin(worker: Any, topic: str, key: str) -> None:
    """Log that a call begins; when this returns the scheduler has the entry.

    Raises:
        distributed.Reschedule: the scheduler does not respond, so another worker begins the call.
    """
    logged = worker.scheduler.log_event(topic=topic, msg=(key, worker.address))
    logged_future = asyncio.run_coroutine_threadsafe(logged, worker.loop.asyncio_loop)
    try:
        logged_future.result(_LOG_SECONDS)
    except (OSError, futures.TimeoutError) as error:
        raise _reschedule() from error


def _end_soon() -> None:
    """End a process whose context is lost, unless the client does so first.

    Until then it accepts a few tasks, only to return them.
    """
    if not _ending:
        _ending.append(threading.Timer(_END_SECONDS, end))
        _ending[0].daemon = True
        _ending[0].start()
    time.sleep(_PAUSE_SECONDS)


def _reschedule() -> Exception:
    return cast(Exception, import_module("distributed").Reschedule())
