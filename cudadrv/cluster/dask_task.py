"""Calls on their way through Dask, and what comes back."""

from __future__ import annotations

from concurrent import futures
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from .call import Call
from .dask_client import DaskFuture
from .shared_arrays import Segment

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Wish:
    """Who is to make a call, and how.

    Attributes:
        address: the worker; None for any.
        only: whether no other may.
        alone: whether the worker's process makes no other call beside it, and tells of it before.
        unbegun: how often it was lost then without having been begun, and nothing else happened.
    """

    address: str | None = None
    only: bool = False
    alone: bool = False
    unbegun: int = 0


@dataclass(slots=True)
class Sent:
    """Calls of one function on their way, as one task of Dask's.

    Attributes:
        key: the task's.
        calls: the calls.
        wish: who is to make them.
        future: Dask's.
        segments: the memory of their arguments, which workers may open as long as this is there.
        is_asked: whether its result is on its way.
        seen: how much had happened to other calls when it was sent.
    """

    key: str
    calls: list[Call]
    wish: Wish
    future: DaskFuture
    segments: list[Segment]
    is_asked: bool = False
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was asked for, and the results.

    Attributes:
        keys: the tasks.
        found: their results by key.
    """

    keys: list[str]
    found: futures.Future[Any]

    def answers(self) -> dict[str, object]:
        """A result for each task, or the error: they were lost, or the client was closed."""
        try:
            found: dict[str, object] = self.found.result()
        except BaseException as error:  # asyncio's cancellation, where the client's loop ends
            return dict.fromkeys(self.keys, error)
        return {key: found.get(key) for key in self.keys}


def all_of(queue: SimpleQueue[_T], seconds: float | None) -> list[_T]:
    """All that is there, waiting for the first."""
    found: list[_T] = []
    with suppress(Empty):
        found.append(queue.get(timeout=seconds))
        while True:
            found.append(queue.get_nowait())
    return found
