"""Who was at work when a Dask worker was lost: what workers tell before they begin a call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Final, cast

from .dask_client import DaskClient, DaskWorker

_TELL_SECONDS: Final = 30.0
_ALONE_SECONDS: Final = 10.0


class DaskBegins:
    """How often calls were begun that are made alone.

    Dask counts a lost worker against all that waited there. Only what had begun may have been the
    cause: so a call that has lost a worker is made alone from then on, and told of before. A
    scheduler passes that on before it gives the task up ("events" in the manual of
    dask.distributed), on one way.

    Args:
        client: the client.
        topic: under which the workers tell.

    Attributes:
        total: how often any was begun.
        places: the addresses of workers that may have been lost by what they had begun.
    """

    def __init__(self, client: DaskClient, topic: str) -> None:
        self.total: int = 0
        self.places: set[str] = set()
        self._client = client
        self._topic = topic
        self._counts: dict[str, int] = {}
        self._is_listening = False

    def topic(self) -> str:
        """What a worker is given with a call, so that it tells; from then on this listens."""
        if not self._is_listening:
            self._is_listening = True
            self._client.subscribe_topic(self._topic, self._note)
        return self._topic

    def taken(self, key: str) -> int:
        """How often the call of a task was begun, which has ended."""
        return self._counts.pop(key, 0)

    def close(self) -> None:
        """Listen no more."""
        if self._is_listening:
            with suppress(Exception):  # the client may be closed
                self._client.unsubscribe_topic(self._topic)

    def _note(self, event: tuple[float, tuple[str, str]]) -> None:
        _, (key, address) = event
        self.places.add(address)
        self._counts[key] = self._counts.get(key, 0) + 1
        self.total += 1


def tell(worker: DaskWorker, topic: str, key: str) -> None:
    """Tell, in a worker, that a call begins; when this returns the scheduler knows.

    Raises:
        distributed.Reschedule: it could not be told, so that another worker is to begin it.
    """
    told = worker.scheduler.log_event(topic=topic, msg=(key, worker.address))
    known = asyncio.run_coroutine_threadsafe(told, worker.loop.asyncio_loop)
    try:
        known.result(_TELL_SECONDS)
    except (OSError, futures.TimeoutError) as error:
        raise cast(Exception, import_module("distributed").Reschedule()) from error


class Gate:
    """Lets the calls of a process in: many at once, or one alone.

    One that waits for a call which waits for it goes in after a while nevertheless.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._is_shut = False

    @contextmanager
    def entered(self, *, alone: bool) -> Iterator[None]:
        """Be inside."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_shut, _ALONE_SECONDS)
            if alone:
                self._is_shut = True
                self._changed.wait_for(lambda: not self._inside, _ALONE_SECONDS)
            self._inside += 1
        try:
            yield
        finally:
            with self._changed:
                self._inside -= 1
                if alone:
                    self._is_shut = False
                self._changed.notify_all()
