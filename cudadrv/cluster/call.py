"""A call of a function by a worker: its attempts, its messages, and the engine's interface.

This file alone decides whether a call is repeated, and counts the attempts. An engine reports the
`Outcome` of each attempt to `Call.end`, and makes another attempt if that returns True.
"""

from __future__ import annotations

import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeVar

import numpy as np

from ..errors import WorkerLostError
from .pickled import PickledError, PickledFunction, PickledValue
from .shared_arrays import Segment
from .tile_policy import TilePolicy
from .worker_report import WorkerReport

_T = TypeVar("_T")
_MAX_FUNCTIONS: Final = 32
_HOST: Final = socket.gethostname()


class ReturnMode(Enum):
    """The kind of value that a worker returns."""

    RESULT = "the function's result"
    ITEMS = "the tile as the function left it"
    NOTHING = "nothing, as the tile is in shared memory"


@dataclass(frozen=True, slots=True)
class Request:
    """One attempt at a call, as the worker receives it.

    Attributes:
        function: the function's digest.
        code: the function's pickle; None if the worker has it.
        arguments: (args, kwargs).
        items: the items of a tile, whose function receives the device's ordinal first; else empty.
        returns: the kind of value in the reply.
        seconds: how long the call may take in a process that watches the time itself.
        caller: the host and process that sent the request.
    """

    function: str
    code: bytes | None
    arguments: PickledValue
    items: range
    returns: ReturnMode
    seconds: float | None
    caller: tuple[str, int]


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of a request.

    Attributes:
        value: the result; None if the tile was changed in shared memory, or the call failed.
        error: the error that the call raised.
        is_broken: whether the worker's context is lost.
        was_called: False if the context was lost before, or the arguments cannot be opened.
        worker: the worker's name.
        ordinal: the worker's device.
        seconds: how long the call took.
    """

    value: PickledValue | None
    error: PickledError | None
    is_broken: bool
    was_called: bool
    worker: str
    ordinal: int
    seconds: float

    def result(self) -> object:
        """Unpickle the value."""
        return None if self.value is None else self.value.value()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an attempt at a call, as an engine reports it.

    Attributes:
        reply: the worker's; None if it has not replied.
        result: of a reply, unpickles the result; of a tile that was changed in shared memory,
            returns the tile.
        lost: why the worker was lost, "" if it was not.
        worker: the name of the lost worker, if `Call.begin` did not receive it.
        begun: how often workers began it: an engine may repeat a task by itself.
    """

    reply: Reply | None = None
    result: Callable[[], object] | None = None
    lost: str = ""
    worker: str = ""
    begun: int = 1


NOT_BEGUN: Final = Outcome(begun=0)
"""The outcome of an attempt that no worker began; another one follows."""


class Call:
    """A function with its arguments, and the future of its result.

    Attributes:
        function: the function.
        future: the caller's.
        attempts: how often the call was begun.
        worker: the name of the worker that began it last, "" before.
        ordinal: the device of that worker.
        seconds: how long an attempt may take; None is no limit.
        items: the items of a tile; empty for other calls.
        only_worker: the number of the one worker that may make it; None for any.
    """

    __slots__ = (
        "_arguments", "_policy", "_put", "_retries", "attempts", "function", "future", "items",
        "only_worker", "ordinal", "seconds", "worker",
    )  # fmt: skip

    def __init__(
        self,
        function: PickledFunction,
        arguments: tuple[tuple[object, ...], dict[str, object]],
        policy: TilePolicy,
        *,
        items: range = range(0),
        put: Callable[[object], None] | None = None,
        only_worker: int | None = None,
    ) -> None:
        """Describe a call; `put` receives the tile that it has changed."""
        self.function: PickledFunction = function
        self.future: Future[object] = Future()
        self.attempts: int = 0
        self.worker: str = ""
        self.ordinal: int = -1
        self.seconds: float | None = policy.seconds
        self.items: range = items
        self.only_worker: int | None = only_worker
        self._arguments = arguments
        self._policy = policy
        self._put = put
        self._retries = policy.retried

    def begin(self, worker: str = "", ordinal: int = -1) -> bool:
        """Begin an attempt; False if the call was cancelled or has failed.

        Args:
            worker: the name of the worker, if it is known now.
            ordinal: the device of that worker.
        """
        future = self.future
        if not future.running():
            if future.done() and not future.cancelled():
                return False
            if not future.set_running_or_notify_cancel():
                return False
        self.attempts += 1
        if worker:
            self.worker, self.ordinal = worker, ordinal
        return True

    def request(
        self, *, has_function: bool, share: Callable[[int], Segment] | None = None
    ) -> Request:
        """Pickle an attempt for a worker.

        Args:
            has_function: whether the worker has the function.
            share: returns shared memory of a size, for the arguments' arrays.

        Raises:
            ArgumentTypeError: an argument cannot be pickled.
            OSError: the system has not enough memory.
        """
        arguments = PickledValue.of(self._arguments, share)
        returns = ReturnMode.RESULT
        if self._put is not None:
            tile = self._arguments[0][0]
            is_plain = isinstance(tile, np.ndarray) and not tile.dtype.hasobject
            in_place = is_plain and arguments.shared is not None
            returns = ReturnMode.NOTHING if in_place else ReturnMode.ITEMS
        return Request(
            self.function.digest,
            None if has_function else self.function.code,
            arguments,
            self.items,
            returns,
            self.seconds,
            this_process(),
        )

    def end(self, outcome: Outcome) -> bool:
        """End an attempt; return whether the call is to be repeated."""
        self.attempts += outcome.begun - 1
        self.worker = outcome.worker or self.worker
        if outcome.reply is not None:
            return self._accept(outcome.reply, outcome.result or outcome.reply.result)
        return self._lose(outcome.lost) if outcome.lost else True

    def _accept(self, reply: Reply, result: Callable[[], object]) -> bool:
        self.worker, self.ordinal = reply.worker, reply.ordinal
        if reply.is_broken and reply.error is not None:
            return self._lose("its context is lost", reply.error)
        if reply.error is not None:
            if self._retries > 0:
                self._retries -= 1
                return True
            self.fail(reply.error.error())
            return False
        try:
            value = result()
            if self._put is not None:
                self._put(value)
                value = None
        except Exception as error:  # a value that cannot be unpickled, or does not fit these items
            self.fail(error)
        else:
            self.future.set_result(value)
        return False

    def _lose(self, reason: str, cause: PickledError | None = None) -> bool:
        if self.attempts <= self._policy.redone:
            return True
        calls_lost = f"items {self.items.start} to {self.items.stop}" if self.items else "a call"
        text = f"{calls_lost}: worker {self.worker} was lost ({reason}), in attempt {self.attempts}"
        self.abandon(text, None if cause is None else cause.error())
        return False

    def abandon(self, reason: str, cause: BaseException | None = None) -> None:
        """End the call, as no worker can execute it."""
        lost = WorkerLostError(reason, worker=self.worker, attempts=self.attempts)
        lost.__cause__ = cause
        self.fail(lost)

    def fail(self, error: BaseException) -> None:
        """End the call with an error."""
        if not self.future.done():
            self.future.set_exception(error)


def cache_by_digest(by_digest: dict[str, _T], digest: str, value: _T) -> None:
    """Cache an object of a function, and drop the oldest: worker and caller drop the same ones."""
    by_digest[digest] = value
    for former in list(by_digest)[:-_MAX_FUNCTIONS]:
        by_digest.pop(former, None)


def this_process() -> tuple[str, int]:
    """Return the name of this host and the ID of this process."""
    return _HOST, os.getpid()


class Engine(ABC):
    """Workers, and the transport to them."""

    @abstractmethod
    def workers(self) -> tuple[WorkerReport, ...]:
        """Return the present workers; wait for those that are starting.

        Raises:
            CudadrvError: none of them could be started.
        """

    @abstractmethod
    def capacity(self, nbytes: int, function: PickledFunction) -> int:
        """Return how many tiles of a size to start at once, as far as known now."""

    @abstractmethod
    def start(self, call: Call) -> None:
        """Start a call.

        Raises:
            ExecutorClosedError: the engine was closed.
        """

    @abstractmethod
    def close(self, *, wait: bool, cancel: bool) -> None:
        """Accept no more calls; end the workers when all are done. Idempotent."""

    @abstractmethod
    def abort(self) -> None:
        """End everything now; then no worker accesses a caller's memory. Idempotent."""
