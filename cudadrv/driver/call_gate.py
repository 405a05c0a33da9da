"""`CallGate`: a capture has a stream for itself; calls of other threads wait.

Stream capture of the driver records each call that queues work on the stream, whichever thread
makes it. A call of another thread would become a part of the graph: it would not run now, and run
again at each replay. So each call that queues work takes a pass of the stream's gate, and returns
it. A capture begins once it has all passes, and keeps them until it ends.

Source: "Graph Management" and cuStreamBeginCapture in the CUDA Driver API manual.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from ptx.latch import Latch

from .. import border
from ..errors import InvalidValueError, StreamCaptureIsolationError
from .deferred_release import thread_of
from .locks import process_lock
from .registry import Registry

CAPTURE_WAIT_S: Final = 30.0
"""How long work of other threads waits for a capture that states no limit."""

_closing: Final = process_lock()
_POLL_S: Final = 0.005


class Awaited(Protocol):
    """What a thread waits for, and the one thread that can end it."""

    @property
    def thread_number(self) -> int | None:
        """The identifier of that thread, of `threading.get_ident`; None if none is known."""


class Wait:
    """A wait of one thread for what another one ends. Each wait has a new object.

    Attributes:
        awaited: what the thread waits for.
    """

    __slots__ = ("awaited",)

    def __init__(self, awaited: Awaited) -> None:
        self.awaited: Awaited = awaited


waits: Final[dict[int, Wait]] = {}
"""The current wait of each thread that waits for a capture or for a tile, by its identifier."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=waits.clear)  # it has none of these threads


def _circle(number: int, awaited: Awaited) -> list[Wait]:
    """Return the waits by which something that a thread waits for waits for that thread."""
    found: list[Wait] = []
    while True:
        awaiting = awaited.thread_number
        wait = None if awaiting is None else waits.get(awaiting)
        if wait is None or wait in found:
            return []
        found.append(wait)
        awaited = wait.awaited
        if awaited.thread_number == number:
            return found


def wait_limit(where: str, seconds: object) -> float:
    """Return a limit of waits for a capture, which is 0 or more; infinity is none.

    Raises:
        ArgumentTypeError: it is no number.
        InvalidValueError: it is negative or NaN.
    """
    limit = border.real(f"{where}: wait_limit_s", seconds)
    if not limit >= 0:
        raise InvalidValueError(f"{where}: wait_limit_s is {limit}: give 0 or more seconds")
    return limit


class CapturePeriod:
    """The time of one capture, in which other threads wait for its streams.

    Args:
        wait_limit_s: the seconds after which such a wait raises.

    Attributes:
        is_open: whether it is under way.
        is_blocking: whether the legacy stream and one of its streams wait for each other.
        thread_number: the identifier of the capturing thread.
    """

    __slots__ = (
        "_ended",
        "_thread",
        "_wait_limit_s",
        "is_blocking",
        "is_open",
        "thread_number",
    )

    def __init__(self, wait_limit_s: float = CAPTURE_WAIT_S) -> None:
        self.thread_number: int = threading.get_ident()
        self._thread: threading.Thread = threading.current_thread()
        self._ended: Latch = Latch()
        self._wait_limit_s: float = wait_limit_s
        self.is_open: bool = True
        self.is_blocking: bool = False

    @property
    def is_own(self) -> bool:
        """Whether the calling thread is the one that captures."""
        number = threading.get_ident()
        # A new thread may have the number of one that has ended.
        return number == self.thread_number and thread_of(number) is self._thread

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
            StreamCaptureIsolationError: it cannot end, as its thread has ended, or waits for this
                one; or it did not end within its limit.
        """
        if self._ended.is_set:
            return
        number, end = threading.get_ident(), time.monotonic() + self._wait_limit_s
        try:
            waits[number] = Wait(self)
            while not self._ended.wait(_POLL_S) and (gate is None or gate.period is self):
                self._require_end(number)
                if time.monotonic() >= end:
                    raise self._error(
                        f"the capture has not ended within {self._wait_limit_s:g} s: does that "
                        "thread wait for this one?",
                        "\n  a capture that takes longer needs a larger wait_limit_s",
                    )
        finally:
            waits.pop(number, None)

    def wait_for_calls(self, are_done: Callable[[], bool]) -> None:
        """Wait for calls of other threads that are under way, which takes microseconds for most.

        Raises:
            StreamCaptureIsolationError: they have not ended within the limit.
        """
        pause, end = 0.0, time.monotonic() + self._wait_limit_s
        while not are_done():
            if time.monotonic() >= end:
                raise StreamCaptureIsolationError(
                    "beginning a capture of a stream that other threads use",
                    text=f"their calls have not ended within {self._wait_limit_s:g} s: does one of "
                    "them wait for this thread?\n  end them before the capture, or capture with "
                    "a larger wait_limit_s",
                    explained=True,
                )
            time.sleep(pause)
            pause = min(pause + 0.00002, 0.001)

    def _require_end(self, number: int) -> None:
        """Raise if the capture cannot end while the calling thread waits."""
        if self.is_own:
            raise self._error("this thread captures it")
        if not self._thread.is_alive():
            raise self._error("that thread has ended without an end of the capture")
        circle = _circle(number, self)
        # The same waits at a second look: all of them were there at one time, in between.
        if circle and circle == _circle(number, self):
            for_capture = isinstance(circle[-1].awaited, CapturePeriod)
            what = "a capture of this one" if for_capture else "a tile that this one runs"
            by_way = "" if len(circle) == 1 else ", by way of other threads,"
            raise self._error(f"that thread waits{by_way} for {what}")

    def _error(self, reason: str, more: str = "") -> StreamCaptureIsolationError:
        return StreamCaptureIsolationError(
            f"using a stream that thread {self._thread.name!r} captures",
            text=f"{reason}\n  use the stream in the capturing thread or after the capture, or "
            f"another stream{more}",
            explained=True,
        )


class CallPass:
    """The right of one call to queue work on a stream."""

    __slots__ = ("__weakref__",)


class CallGate:
    """The passes of a stream, which calls that queue work take, and a capture has all of.

    Objects for the same stream share one.

    Attributes:
        passes: the passes that are free; empty while a capture has them. A call returns its pass to
            the list that it took it from.
        period: the capture that has the stream, or is about to.
    """

    __slots__ = ("__weakref__", "_issued", "_other", "_taken", "passes", "period")

    def __init__(self) -> None:
        self.passes: list[CallPass] = room_for_one()
        self.period: CapturePeriod | None = None
        # Becomes the list of passes when a capture begins.
        self._other: list[CallPass] = []
        # A pass that an interrupt loses is freed, and so it is none that `close` waits for.
        self._issued: Registry[CallPass] = Registry()
        self._taken: list[CallPass] = []

    def enter(self) -> CallPass:
        """Return a pass; wait while another thread's capture has the stream.

        Raises:
            StreamCaptureIsolationError: that wait cannot end, or has exceeded its limit.
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

    def close(self, period: CapturePeriod) -> None:
        """Take all passes for a capture, once no call that has one is under way.

        Raises:
            StreamCaptureIsolationError: another capture has the stream, and cannot end or exceeds
                its limit; or such a call does not end within the limit of this one.
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
            period.wait_for_calls(self._has_all)
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
