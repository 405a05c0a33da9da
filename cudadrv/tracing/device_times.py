"""The times of what runs on devices, by events on its streams.

Nothing here waits before the trace ends or a context is destroyed. There is no lock: what threads
share is changed by single operations of a dict, a list or a deque.
"""

from __future__ import annotations

import itertools
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeVar

from ..driver._api import (
    CUcontext,
    CUevent,
    CUresult,
    CUstream,
    CUstream_flags,
    CUstreamCaptureStatus,
    DriverApi,
)
from ..driver.handle import Box, ContextBox
from ..driver.in_use import Bound, Driver
from ..driver.stream_box import StreamBox
from ..driver.stream_core import StreamCore
from ..errors import CudadrvError

_T = TypeVar("_T")
_RawT = TypeVar("_RawT")

_MOST_PENDING: Final = 4096  # spans of a context, before those that are done are taken
_NON_BLOCKING: Final = int(CUstream_flags.CU_STREAM_NON_BLOCKING)


class DeviceSpan(NamedTuple):
    """What ran on a stream, in nanoseconds of the host's clock.

    Attributes:
        flow: the number that ties it to the call that queued it.
    """

    ordinal: int
    stream: int
    name: str
    category: str
    start_ns: float
    duration_ns: float
    flow: int


class Queued(NamedTuple):
    """A call that queues work: its name, its stream and the event before the work."""

    times: ContextTimes
    stream: CUstream
    name: str
    category: str
    start: _Event


class DeviceTimes:
    """The times of all contexts of a driver, by its own functions, which are not traced."""

    def __init__(self, driver: Driver, api: DriverApi) -> None:
        self._driver = driver
        self._api = api
        self._contexts: dict[int, ContextTimes] = {}
        self._streams: dict[int, tuple[weakref.ref[StreamBox], ContextTimes]] = {}
        self._all: list[ContextTimes] = []
        self._flows = itertools.count(1)
        self._closed = False
        for stream in driver.streams.alive():
            self._know(stream)

    def begin(self, name: str, category: str, stream: CUstream) -> Queued | None:
        """Set an event before what a call queues on a stream.

        None where there are no times: on a stream that captures, as nothing runs, on one that no
        `Stream` of the driver stands for, and where the driver refuses.
        """
        code, status = self._api.cuStreamIsCapturing(stream)
        if code or status != CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE:
            return None
        times = self._times(int(stream))
        if times is None or self._closed:
            return None
        start = times.mark(stream)
        if start is None:
            times.untimed.append(name)
            return None
        return Queued(times, stream, name, category, start)

    def end(self, queued: Queued) -> int | None:
        """Set an event after it; gives the number that ties what runs to the call."""
        end = queued.times.mark(queued.stream)
        if end is None:
            queued.times.untimed.append(queued.name)
            return None
        flow = next(self._flows)
        queued.times.add(queued, end, flow)
        return flow

    def forget(self, context: CUcontext) -> None:
        """Take the times on a context that is to be destroyed, waiting for what runs there."""
        times = self._contexts.pop(int(context), None)
        if times is not None:
            times.finish()

    def finish(self) -> None:
        """Take all times that are left, waiting for what runs."""
        self._closed = True
        for times in list(self._contexts.values()):
            times.finish()

    def spans(self) -> Iterator[DeviceSpan]:
        """What ran, once its context was forgotten or all is finished."""
        for times in self._all:
            yield from times.spans

    def untimed(self) -> dict[int, int]:
        """How many calls queued work that could not be timed, by device; zeros are left out."""
        counts: dict[int, int] = {}
        for times in self._all:
            if times.untimed:
                counts[times.ordinal] = counts.get(times.ordinal, 0) + len(times.untimed)
        return counts

    def _times(self, number: int) -> ContextTimes | None:
        known = self._streams.get(number)
        # The number of a stream that was destroyed is soon another one's.
        if known is not None and known[0]() is not None:
            return known[1]
        for stream in self._driver.streams.alive():
            self._know(stream)
        known = self._streams.get(number)
        return None if known is None or known[0]() is None else known[1]

    def _know(self, stream: object) -> None:
        box = stream._box if isinstance(stream, StreamCore) else None
        if not isinstance(box, StreamBox) or box.capture is not None:
            return
        known = self._streams.get(int(box.raw))
        if known is None or known[0]() is not box:
            self._streams[int(box.raw)] = weakref.ref(box), self._times_of(box.context)

    def _times_of(self, context: ContextBox) -> ContextTimes:
        number = int(context.raw)
        times = self._contexts.get(number)
        if times is None:
            made = ContextTimes(self._driver, self._api, context.raw, context.ordinal)
            times = self._contexts.setdefault(number, made)
            if times is made:
                self._all.append(made)
        return times


class ContextTimes:
    """The times on one context, counted from an event on a stream of the trace's own.

    Attributes:
        ordinal: the device's ordinal.
        spans: what ran, once it is finished.
        untimed: the names of what could not be timed.
    """

    def __init__(self, driver: Driver, api: DriverApi, context: CUcontext, ordinal: int) -> None:
        self.ordinal = ordinal
        self.spans: list[DeviceSpan] = []
        self.untimed: list[str] = []
        self._driver = driver
        self._api = api
        self._context = context
        self._pending: deque[tuple[Queued, _Event, int]] = deque()
        self._placed: list[DeviceSpan] = []  # with times from the origin
        self._closed = False
        raw = self._make(lambda: api.cuStreamCreateWithPriority(_NON_BLOCKING, 0))
        self._stream = None if raw is None else _Stream(driver, raw)
        self._origin = None if raw is None else self.mark(raw)

    def mark(self, stream: CUstream) -> _Event | None:
        """A timed event at this point of a stream; None where it cannot be had."""
        if self._stream is None:
            return None
        raw = self._make(lambda: self._api.cuEventCreate(0))
        if raw is None:
            return None
        event = _Event(self._driver, raw)
        (code,) = self._api.cuEventRecord(raw, stream)
        return None if code else event

    def add(self, queued: Queued, end: _Event, flow: int) -> None:
        """Remember what was queued, to be timed once it is done."""
        self._pending.append((queued, end, flow))
        if self._closed:
            self._pending.clear()  # it came too late
        elif len(self._pending) > _MOST_PENDING:
            self._place(wait=False)

    def finish(self) -> None:
        """Wait for what runs, and take its times; a failed context has none."""
        self._closed = True
        self._place(wait=True)
        origin_ns = self._located()
        for span in self._placed:
            if origin_ns is None:
                self.untimed.append(span.name)
            else:
                self.spans.append(span._replace(start_ns=origin_ns + span.start_ns))
        self._placed.clear()
        self._origin = self._stream = None

    def _place(self, *, wait: bool) -> None:
        """Take the times of what is done, in the order of the calls; or wait for everything."""
        api, origin = self._api, self._origin
        while self._pending:
            try:
                queued, end, flow = self._pending.popleft()
            except IndexError:
                return  # another thread was quicker
            if wait:
                (code,) = api.cuEventSynchronize(end.raw)
            else:
                (code,) = api.cuEventQuery(end.raw)
                if not code and origin is not None:
                    (code,) = api.cuEventQuery(origin.raw)
                if code == CUresult.CUDA_ERROR_NOT_READY:
                    self._pending.appendleft((queued, end, flow))
                    return
            since = None if code else self._elapsed_ns(origin, queued.start)
            duration = None if code else self._elapsed_ns(queued.start, end)
            if since is None or duration is None:
                self.untimed.append(queued.name)
            else:
                what = self.ordinal, int(queued.stream), queued.name, queued.category
                self._placed.append(DeviceSpan(*what, since, duration, flow))

    def _located(self) -> float | None:
        """The origin on the host's clock, by the event after it that took the shortest wait."""
        closest: tuple[int, float] | None = None
        for _ in range(5):
            before = time.perf_counter_ns()
            now = None if self._stream is None else self.mark(self._stream.raw)
            if now is None or self._api.cuEventSynchronize(now.raw)[0]:
                return None
            after = time.perf_counter_ns()
            elapsed = self._elapsed_ns(self._origin, now)
            if elapsed is not None and (closest is None or after - before < closest[0]):
                closest = after - before, after - elapsed
        return None if closest is None else closest[1]

    def _elapsed_ns(self, start: _Event | None, end: _Event) -> float | None:
        """Device time between two events that are done."""
        if start is None:
            return None
        code, elapsed_ms = self._api.cuEventElapsedTime(start.raw, end.raw)
        return None if code else elapsed_ms * 1e6

    def _make(self, function: Callable[[], tuple[CUresult, _T]]) -> _T | None:
        """What a function makes in the context; None where the driver refuses."""
        try:
            with Bound(self._api, self._context):
                code, made = function()
        except CudadrvError:
            return None
        return None if code else made


class _Own(Box[_RawT]):
    """Owns an event or a stream of the trace's; the trace lets go of it before its context goes.

    Results of destroying are left out: what can be wrong is the failure of earlier work, which is
    told to those whose work it was.
    """

    __slots__ = ("_driver",)

    def __init__(self, driver: Driver, raw: _RawT) -> None:
        super().__init__(raw)
        self._driver = driver

    @property
    def driver(self) -> Driver:
        return self._driver


class _Event(_Own[CUevent]):
    __slots__ = ()

    def _destroy(self) -> None:
        self.api.cuEventDestroy(self.raw)


class _Stream(_Own[CUstream]):
    __slots__ = ()

    def _destroy(self) -> None:
        self.api.cuStreamDestroy(self.raw)
