"""`DeviceTimes`: the times of work on devices, by events on its streams.

Nothing here waits before the trace ends or a context is closed. There is no lock: data that threads
share changes by single operations of a dict, a list or a deque.
"""

from __future__ import annotations

import itertools
import time
import weakref
from collections import Counter, deque
from collections.abc import Iterator
from threading import Lock
from typing import Final, NamedTuple

from ..driver._api import CUresult, CUstream, CUstream_flags, CUstreamCaptureStatus
from ..driver.context import BaseContext
from ..driver.driver_api import DriverApi
from ..driver.driver_selection import Driver, failure
from ..driver.handle import Closeable, check, raise_all
from ..driver.stream import BaseStream
from ..driver.stream_handle import EventHandle, StreamHandle
from ..errors import ClosedError, CudadrvError, CudaError

_MOST_PENDING: Final = 4096  # spans of a context, before those that are done are taken
_NON_BLOCKING: Final = int(CUstream_flags.CU_STREAM_NON_BLOCKING)


class DeviceSpan(NamedTuple):
    """Work that ran on a stream, in nanoseconds of the host's clock.

    Attributes:
        flow: the number that connects it to the call that queued it.
        kernels: of the replay of a graph, each kernel with the number of its launches.
    """

    ordinal: int
    stream: int
    name: str
    category: str
    start_ns: float
    duration_ns: float
    flow: int
    kernels: tuple[tuple[str, int], ...] = ()


class Queued(NamedTuple):
    """A call that queues work: its name, stream, kernels, and the event before the work."""

    times: ContextTimes
    stream: StreamHandle
    name: str
    category: str
    start: _Mark
    kernels: tuple[tuple[str, int], ...]


class DeviceTimes:
    """The times of all contexts of a driver.

    Args:
        driver: the driver.
        api: its own functions, which are not traced.
    """

    def __init__(self, driver: Driver, api: DriverApi) -> None:
        self._driver = driver
        self._api = api
        self._streams: dict[int, tuple[weakref.ref[StreamHandle], BaseContext]] = {}
        self._contexts: dict[int, ContextTimes] = {}
        self._all: list[ContextTimes] = []
        self._untimed: list[int] = []  # the device of each call that could not be timed
        self._flows = itertools.count(1)
        self._closed = False
        self._know_streams()
        for _, context in list(self._streams.values()):
            self._times_of(context)

    def begin(
        self,
        name: str,
        category: str,
        stream: CUstream,
        kernels: tuple[tuple[str, int], ...] = (),
    ) -> Queued | None:
        """Record an event before the work that a call queues on a stream.

        Return None where there are no times: on a stream that captures, on one without a `Stream`
        of the driver, and after an error of the driver.
        """
        code, status = self._api.cuStreamIsCapturing(stream)
        if not code and status != CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE:
            return None
        origin = self._find(int(stream))
        if origin is None or self._closed:
            return None
        handle, context = origin
        times = None if code else self._times_of(context)
        start = None if times is None else _mark(handle)
        if times is None or start is None:
            self._untimed.append(context.ordinal)
            return None
        return Queued(times, handle, name, category, start, kernels)

    def end(self, queued: Queued) -> int | None:
        """Record an event after it; return the number that connects the work to the call."""
        end = _mark(queued.stream)
        if end is None:
            self._untimed.append(queued.times.ordinal)
            return None
        flow = next(self._flows)
        queued.times.add(queued, end, flow)
        return flow

    def finish(self) -> None:
        """Take all remaining times, waiting for running work.

        Raises:
            CudaError: the driver failed to destroy a stream of the trace.
            ExceptionGroup: several such errors.
        """
        self._closed = True
        faults: list[Exception] = []
        for times in list(self._all):
            try:
                times.finish()
            except CudaError as fault:
                faults.append(fault)
        raise_all(faults, "ending a trace")

    def spans(self) -> Iterator[DeviceSpan]:
        """Yield the work that ran, once all is finished."""
        for times in self._all:
            yield from times.spans

    def untimed(self) -> dict[int, int]:
        """Return the number of calls that could not be timed, by device; zeros are left out."""
        return Counter(
            itertools.chain(self._untimed, *([t.ordinal] * len(t.untimed) for t in self._all))
        )

    def _find(self, number: int) -> tuple[StreamHandle, BaseContext] | None:
        """Return the stream of a handle, and its context."""
        origin = self._known(number)
        if origin is None:
            self._know_streams()
            origin = self._known(number)
        return origin

    def _known(self, number: int) -> tuple[StreamHandle, BaseContext] | None:
        entry = self._streams.get(number)
        # The driver soon reuses the number of a destroyed stream.
        handle = None if entry is None else entry[0]()
        return None if entry is None or handle is None else (handle, entry[1])

    def _know_streams(self) -> None:
        for stream in self._driver.streams.alive():
            if not isinstance(stream, BaseStream):
                continue
            handle = stream._handle
            try:
                # A stream that captures gets its own handle back afterwards.
                if handle.capture is None:
                    self._streams[int(handle.raw)] = weakref.ref(handle), stream.context
            except ClosedError:
                continue

    def _times_of(self, context: BaseContext) -> ContextTimes | None:
        """Return the times of a context; None once it is closed, or after a driver error."""
        try:
            number = int(context.handle)
            times = self._contexts.get(number)
            if times is None or times.closed:
                times = ContextTimes(context, self._api)
                # If two threads add one at once, both are finished with the others.
                self._all.append(times)
                self._contexts[number] = times
        except CudadrvError:
            return None
        return times


class ContextTimes(Closeable):
    """The times on one context, relative to an event on a stream of the trace's own.

    It closes with the context: the times are taken then, before the events are destroyed.

    Attributes:
        ordinal: the device's ordinal.
        spans: the work that ran, once it is finished.
        untimed: the names of work that could not be timed.

    Raises:
        ClosedError: the context was closed.
        CudaError: the driver returned an error.
    """

    _handle: StreamHandle

    def __init__(self, context: BaseContext, api: DriverApi) -> None:
        self.ordinal: int = context.ordinal
        self.spans: list[DeviceSpan] = []
        self.untimed: list[str] = []
        self._api = api
        self._pending: deque[tuple[Queued, _Mark, int]] = deque()
        self._placed: list[DeviceSpan] = []  # with times from the origin
        self._finisher: dict[str, object] = {}
        # Free once the times were taken; an `Event` may stay locked after an interrupt.
        self._finished = Lock()
        self._finished.acquire()
        self._mark_closed()
        handle = context._handle
        stream = _OwnStream(handle, None, is_owned=True)
        code = stream.make(api.cuStreamCreateWithPriority, _NON_BLOCKING, 0)
        if code:
            doing = f"a stream of a trace on {context!r}"
            raise failure(api, code, "cuStreamCreateWithPriority", doing)
        self._own(stream)
        self._origin: _Mark | None = _Mark(handle, 0)
        self._origin.record(self._handle)
        context._adopt(self)

    @property
    def _closed_text(self) -> str:
        return f"the times on device {self.ordinal} were taken"

    def _close_with_parent(self) -> None:
        self._finish_once()

    def add(self, queued: Queued, end: _Mark, flow: int) -> None:
        """Store queued work, to be timed once it is done."""
        self._pending.append((queued, end, flow))
        if self.closed:
            self._pending.clear()  # it came too late
        elif len(self._pending) > _MOST_PENDING:
            self._read_times(wait=False)

    def finish(self) -> None:
        """Wait for running work, and take its times; a failed context has none."""
        self._finish_once()
        with self._finished:  # wait for a thread that closes the context meanwhile
            pass

    def _finish_once(self) -> None:
        me = object()  # unique, so that an interrupt leaves no doubt which thread finishes
        try:
            if self._finisher.setdefault("me", me) is not me:
                return
            self._read_times(wait=True)
            origin_ns = self._located()
            for span in self._placed:
                if origin_ns is None:
                    self.untimed.append(span.name)
                else:
                    self.spans.append(span._replace(start_ns=origin_ns + span.start_ns))
        finally:
            # Without a call before the release, so that no interrupt comes before it.
            if self._finisher and self._finisher["me"] is me:
                self._finished.release()
                self._origin = None
                self._placed.clear()
                self._pending.clear()
                self.close()

    def _read_times(self, *, wait: bool) -> None:
        """Take the times of finished work, in the order of the calls; or wait for everything."""
        api, origin = self._api, self._origin
        if wait and origin is not None:
            api.cuEventSynchronize(origin.raw)  # no other stream waits for it
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
                labels = self.ordinal, int(queued.stream.raw), queued.name, queued.category
                self._placed.append(DeviceSpan(*labels, since, duration, flow, queued.kernels))

    def _located(self) -> float | None:
        """Return the origin on the host's clock, by the later event with the shortest wait."""
        closest: tuple[int, float] | None = None
        for _ in range(5):
            before = time.perf_counter_ns()
            now = _mark(self._handle)
            if now is None or self._api.cuEventSynchronize(now.raw)[0]:
                return None
            after = time.perf_counter_ns()
            elapsed = self._elapsed_ns(self._origin, now)
            if elapsed is not None and (closest is None or after - before < closest[0]):
                closest = after - before, after - elapsed
        return None if closest is None else closest[1]

    def _elapsed_ns(self, start: _Mark | None, end: _Mark) -> float | None:
        """Return the device time between two finished events."""
        if start is None:
            return None
        code, elapsed_ms = self._api.cuEventElapsedTime(start.raw, end.raw)
        return None if code else elapsed_ms * 1e6


def _mark(stream: StreamHandle) -> _Mark | None:
    """Record a timed event at this point of a stream; None if the driver returns an error."""
    try:
        event = _Mark(stream.context, 0)
        event.record(stream)
    except CudadrvError:
        return None
    return event


# They are destroyed in the middle of the program's calls. A report of earlier failed work is left
# out: those calls raise it.


class _Mark(EventHandle):
    """Owning handle of an event of the trace."""

    __slots__ = ()

    def record(self, stream: StreamHandle) -> None:
        """Set the event to this point of a stream, within a call that has a pass of its gate."""
        self._recorded(stream, self.api.cuEventRecord(self.raw, stream.raw)[0])

    def _destroy(self) -> None:
        (code,) = self.api.cuEventDestroy(self.raw)
        if code and not CudaError.for_code(int(code)).sticky:
            check(self, code, "cuEventDestroy", "destroying an event of a trace")


class _OwnStream(StreamHandle):
    """Owning handle of a stream of the trace."""

    __slots__ = ()

    def _destroy(self) -> None:
        (code,) = self.api.cuStreamDestroy(self.raw)
        if code and not CudaError.for_code(int(code)).sticky:
            check(self, code, "cuStreamDestroy", "destroying a stream of a trace")
