"""`CallGate`: a capture has a stream for itself; calls of other threads wait.

Stream capture of the driver records each call that queues work on the stream, whichever thread
makes it. A call of another thread would become a part of the graph: it would not run now, and run
again at each replay. So each call that queues work takes a pass of the stream's gate, and returns
it. A capture begins once it has all passes, and keeps them until it ends.

Source: "Graph Management" and cuStreamBeginCapture in the CUDA Driver API manual.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FrameType, FunctionType
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from ..errors import StreamCaptureIsolationError
from .deferred_release import thread_of
from .locks import process_lock
from .registry import Registry

_P = ParamSpec("_P")
_T = TypeVar("_T")

_closing: Final = process_lock()
_POLL_S: Final = 0.005
# Shorter waits of the capturing thread do not count: they may be for a thread that needs nothing.
_LASTING_S: Final = 0.2
# The capture that a thread waits for, by the identifier of the thread.
_waits: Final[dict[int, CapturePeriod]] = {}


class CapturePeriod:
    """The time of one capture, in which other threads wait for its streams.

    Attributes:
        is_open: whether it is under way.
        is_blocking: whether the legacy stream and one of its streams wait for each other.
    """

    __slots__ = ("_ended", "_name", "_number", "_thread", "is_blocking", "is_open")

    def __init__(self) -> None:
        self._number: int = threading.get_ident()
        self._thread: threading.Thread | None = thread_of(self._number)
        self._name: str = "a thread" if self._thread is None else f"thread {self._thread.name!r}"
        self._ended: threading.Event = threading.Event()
        self.is_open: bool = True
        self.is_blocking: bool = False

    @property
    def is_own(self) -> bool:
        """Whether the calling thread is the one that captures."""
        number = threading.get_ident()
        # A new thread may have the number of one that has ended.
        return number == self._number and thread_of(number) is self._thread

    def become_blocking(self) -> None:
        """Declare that the legacy stream and one of its streams wait for each other."""
        self.is_blocking = True

    def end(self) -> None:
        """Let the waiting threads go on. Idempotent."""
        self.is_open = False
        self._ended.set()

    def wait(self, gate: CallGate | None = None) -> None:
        """Wait until the capture ends, or returns the passes of a gate.

        Raises:
            StreamCaptureIsolationError: it may never end, as its thread has ended, or waits for
                this one.
        """
        if self._ended.is_set():
            return
        number, since, former = threading.get_ident(), 0.0, None
        _waits[number] = self
        try:
            while not self._ended.wait(_POLL_S) and (gate is None or gate.period is self):
                self._require_end(number)
                waiting, now = _endless_wait(self._number), time.monotonic()
                if waiting is None or waiting is not former:
                    former, since = waiting, now
                elif now - since >= _LASTING_S:
                    raise self._error(
                        "that thread waits for another one without a timeout, maybe for this one"
                    )
        finally:
            del _waits[number]
            former = waiting = None  # frames hold all variables of the other thread

    def _require_end(self, number: int) -> None:
        """Raise if the capture cannot end while the calling thread waits."""
        if self.is_own:
            raise self._error("this thread captures it")
        if self._thread is not None and not self._thread.is_alive():
            raise self._error("that thread has ended without an end of the capture")
        awaited, seen = _waits.get(self._number), {self}
        while awaited is not None and awaited not in seen:
            if awaited._number == number:
                raise self._error("that thread waits for a capture of this one")
            seen.add(awaited)
            awaited = _waits.get(awaited._number)

    def _error(self, reason: str) -> StreamCaptureIsolationError:
        return StreamCaptureIsolationError(
            f"using a stream that {self._name} captures",
            text=f"{reason}\n  use the stream in the capturing thread or after the capture, or "
            "another stream",
            explained=True,
        )


def _endless_wait(number: int) -> FrameType | None:
    """Return the frame in which a thread waits for other threads without a timeout, if it does.

    It is known of waits in `threading`, and of what is made of those: `queue.Queue`,
    `concurrent.futures`, `DevicePool`. A wait for a lock has no frame.
    """
    if not getattr(sys, "_is_gil_enabled", _with_lock)():
        return None  # frames of running threads must not be read there
    frame = sys._current_frames().get(number)
    if frame is None or frame.f_code not in _WAITING:
        return None
    timeout = frame.f_locals.get("timeout")
    return frame if timeout is None or timeout < 0 else None


def _with_lock() -> bool:
    """Return whether threads run one at a time, on Pythons that cannot do without."""
    return True


# The code of functions that wait for other threads: without a timeout, unless they have a variable
# of this name, which is 0 or more.
_WAITING: Final[set[CodeType]] = {
    threading.Condition.wait.__code__,
    threading.Thread.join.__code__,
}
# Until Python 3.12.
_join: Final[object] = getattr(threading.Thread, "_wait_for_tstate_lock", None)
if isinstance(_join, FunctionType):
    _WAITING.add(_join.__code__)


def waits_for_threads(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Declare that a function waits for other threads without a timeout."""
    assert isinstance(function, FunctionType)
    _WAITING.add(function.__code__)
    return function


class CallPass:
    """The right of one call to queue work on a stream."""

    __slots__ = ("__weakref__",)


class HasPasses(Protocol):
    """An object whose calls take passes from a list that it has."""

    passes: list[CallPass]


class CallGate:
    """The passes of a stream, which calls that queue work take, and a capture has all of.

    Objects for the same stream share one.

    Attributes:
        passes: the passes that are free; empty while a capture has them. A call returns its pass to
            the list that it took it from.
        period: the capture that has the stream, or is about to.
    """

    __slots__ = ("__weakref__", "_issued", "_other", "_sharing", "_taken", "passes", "period")

    def __init__(self) -> None:
        self.passes: list[CallPass] = room_for_one()
        self.period: CapturePeriod | None = None
        # Becomes the list of passes when a capture begins.
        self._other: list[CallPass] = room_for_one()
        self._sharing: Registry[HasPasses] = Registry()
        # A pass that an interrupt loses is freed, and so it is none that `close` waits for.
        self._issued: Registry[CallPass] = Registry()
        self._taken: list[CallPass] = []

    def share(self, handle: HasPasses) -> None:
        """Give a handle the list of passes, now and whenever it is replaced."""
        self._sharing.add(handle)
        handle.passes = self.passes

    def enter(self) -> CallPass:
        """Return a pass; wait while another thread's capture has the stream.

        Raises:
            StreamCaptureIsolationError: that wait may never end.
        """
        while True:
            mine = self.try_enter()
            if mine is not None:
                return mine
            period = self.period
            if period is not None:
                period.wait(self)

    def try_enter(self) -> CallPass | None:
        """Return a pass; None if a capture has the stream."""
        try:
            return self.passes.pop()
        except IndexError:
            mine = CallPass()
        self._issued.add(mine)  # before the test: `close` sets the period before it counts
        return mine if self.period is None else None

    def close(self, period: CapturePeriod, hold_back: Callable[[], object] = lambda: None) -> None:
        """Take all passes for a capture, once no call of another thread is under way.

        Args:
            period: the capture.
            hold_back: makes later calls take a pass that would not need one.

        Raises:
            StreamCaptureIsolationError: another capture has the stream, and may never end.
        """
        while True:
            with _closing:
                former = self.period
                if former is None:
                    self.period = period
                    break
            former.wait(self)
        try:
            # Threads that return their passes to one list find none in the other one.
            self.passes, self._other = self._other, self.passes
            for handle in self._sharing.alive():
                handle.passes = self.passes
            hold_back()
            wait_until(self._has_all)
        except BaseException:
            self.open(period)
            raise

    def open(self, period: CapturePeriod) -> None:
        """Return the passes, if the capture has them. Idempotent."""
        if self.period is not period:
            return
        self.period = None
        taken, self._taken = self._taken, []
        self.passes.extend(taken)

    def _has_all(self) -> bool:
        for passes in (self._other, self.passes):
            with suppress(IndexError):
                while True:
                    self._taken.append(passes.pop())
        return len(self._taken) >= len(self._issued)


def room_for_one() -> list[Any]:
    """Return an empty list with room for one item.

    Taking the last item from a list that was appended to frees its memory, and the next append
    allocates it again: that takes 50 ns.
    """
    items: list[Any] = [None]
    items.pop()
    return items


def wait_until(is_done: Callable[[], bool]) -> None:
    """Wait for calls of other threads that are under way, which takes microseconds for most."""
    pause = 0.0
    while not is_done():
        time.sleep(pause)
        pause = min(pause + 0.00002, 0.001)
