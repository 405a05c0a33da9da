"""What a worker is asked to do and what it answers, whichever engine brings it there."""

from __future__ import annotations

import os
import pickle
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final, TypeVar, cast

from ..driver.in_use import in_use
from ..pool.tile import Workplace
from ..pool.workers import Job
from .failure import Failure
from .mapped_segments import MappedSegments
from .parcel import Parcel, packed
from .segment import NotHereError, Segment

_T = TypeVar("_T")
_MOST_FUNCTIONS: Final = 32
_HOST: Final = socket.gethostname()
HUNG: Final = 86  # the exit status of a worker that ends itself


class Wanted(Enum):
    """What the giver wants back."""

    RESULT = "the function's result"
    ITEMS = "the tile as the function left it"
    NOTHING = "nothing, as the tile is in shared memory"


@dataclass(frozen=True, slots=True)
class Request:
    """A call of a function.

    Attributes:
        function: its digest.
        code: its pickle; None where the worker has it.
        arguments: (args, kwargs).
        items: which items of a whole they are, if the call is a tile's; then the function gets the
            device's ordinal first.
        wanted: what the answer is to hold.
        is_private: whether changes of shared arguments stay with the worker.
        seconds: how long it may take in a process that has to look for itself.
        giver: host and process that ask.
    """

    function: str
    code: bytes | None
    arguments: Parcel
    items: range | None
    wanted: Wanted
    is_private: bool
    seconds: float | None
    giver: tuple[str, int]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a call.

    Attributes:
        value: its result; None where the tile was changed in shared memory, or it failed.
        failure: what it raised.
        is_broken: whether the worker's context is lost.
        was_called: False where the context was lost before, or the arguments are not shared here.
        worker: the worker's name.
        ordinal: its device.
        seconds: how long it took.
    """

    value: Parcel | None
    failure: Failure | None
    is_broken: bool
    was_called: bool
    worker: str
    ordinal: int
    seconds: float

    def unpacked(self) -> object:
        """The value."""
        return None if self.value is None else self.value.unpacked()


class RequestHandler:
    """A process, or one of Dask's workers, that answers requests on its device.

    Attributes:
        name: what it is called.
        ordinal: the device.
    """

    def __init__(self, name: str, ordinal: int, share: Callable[[int], Segment] | None) -> None:
        self.name = name
        self.ordinal = ordinal
        self._share = share
        self._functions: dict[str, Callable[..., object]] = {}
        self._segments = MappedSegments(ordinal)
        self._own = threading.local()  # a workplace a thread

    @property
    def is_broken(self) -> bool:
        """Whether an error has left a context of the process unusable."""
        driver = in_use()
        return driver is not None and driver.has_failed

    def answer(self, request: Request) -> Reply:
        """Make the call. What it raises is in the answer."""
        value: Parcel | None = None
        failure: Failure | None = None
        began, was_called = time.perf_counter(), True
        watch = self._watch(request)
        try:
            arguments = self._unpacked(request)
            value = self._call(request, arguments)
        except NotHereError:
            was_called = False
        except BaseException as error:
            failure = Failure.of(error, self.name)
        finally:
            if watch is not None:
                watch.cancel()
        # In the giver's own process nobody could replace it.
        is_broken = self.is_broken and request.giver != here()
        seconds = time.perf_counter() - began
        return Reply(value, failure, is_broken, was_called, self.name, self.ordinal, seconds)

    def not_called(self) -> Reply:
        """The answer of a worker whose context was lost by a call before."""
        return Reply(None, None, True, False, self.name, self.ordinal, 0.0)

    def _unpacked(self, request: Request) -> object:
        parcel = request.arguments
        if parcel.place is None or request.is_private:
            return parcel.unpacked()
        return parcel.over(self._segments.arrays(parcel.place))

    def _call(self, request: Request, arguments: object) -> Parcel | None:
        function = self._function(request)
        args, kwargs = cast("tuple[tuple[object, ...], dict[str, object]]", arguments)
        whole = request.items
        if whole is not None:
            function = partial(function, self.ordinal)
        # As a tile of a scatter within a process: its context is current, and it may have a stream.
        job = Job(self.ordinal, whole or range(0), partial(function, *args, **kwargs))
        job.do(self._workplace())
        job.conclude()
        if job.error is not None:
            raise job.error
        if request.wanted is Wanted.NOTHING:
            return None
        value = args[0] if request.wanted is Wanted.ITEMS else job.result
        return packed(value, self._share)

    def _function(self, request: Request) -> Callable[..., object]:
        """The function, unpickled if it is not there."""
        functions = self._functions
        function = functions.get(request.function)
        if function is None:
            assert request.code is not None, "the giver counts what a worker has"
            function = cast("Callable[..., object]", pickle.loads(request.code))
            keep(functions, request.function, function)
        return function

    def _workplace(self) -> Workplace:
        found = getattr(self._own, "workplace", None)
        if found is None:
            found = self._own.workplace = Workplace()
        return cast(Workplace, found)

    def _watch(self, request: Request) -> threading.Timer | None:
        """What ends the process where the call takes too long."""
        if request.seconds is None or request.giver == here():
            return None
        watch = threading.Timer(request.seconds, self._end, (request.seconds,))
        watch.daemon = True
        watch.start()
        return watch

    def _end(self, seconds: float) -> None:
        print(f"cudadrv: worker {self.name} hung for {seconds} s: it ends", file=sys.stderr)
        sys.stderr.flush()
        os._exit(HUNG)


def keep(by_digest: dict[str, _T], digest: str, value: _T) -> None:
    """Keep what belongs to a function; the first ones go, in a worker and where calls are given."""
    by_digest[digest] = value
    for former in list(by_digest)[:-_MOST_FUNCTIONS]:
        by_digest.pop(former, None)


def here() -> tuple[str, int]:
    """This host and process."""
    return _HOST, os.getpid()
