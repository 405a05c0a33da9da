"""Calls on their way through Dask, and what comes back."""

from __future__ import annotations

from concurrent import futures
from dataclasses import dataclass
from typing import Any

from .call import Call
from .dask_client import DaskFuture
from .segment import Segment


@dataclass(frozen=True, slots=True)
class Wish:
    """Who is to make a call.

    Attributes:
        address: the worker; None for any.
        only: whether no other may.
    """

    address: str | None
    only: bool


@dataclass(frozen=True, slots=True)
class Sent:
    """Calls of one function on their way, as one task of Dask's.

    Attributes:
        calls: the calls.
        wish: who is to make them.
        future: Dask's.
        segments: the memory of their arguments, which workers may open as long as this is there.
    """

    calls: list[Call]
    wish: Wish
    future: DaskFuture
    segments: list[Segment]


@dataclass(frozen=True, slots=True)
class Gathered:
    """What was asked for, and the results.

    Attributes:
        sent: the tasks.
        found: their results, in a list.
    """

    sent: list[Sent]
    found: futures.Future[Any]

    def answers(self) -> list[object]:
        """A result for each task, or the error: they were lost, or the client was closed."""
        error = self.found.exception()
        return [error] * len(self.sent) if error is not None else self.found.result()
