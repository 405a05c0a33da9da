"""`trace`: what the driver was asked to do and what the device did, as a file for Perfetto.

While a trace is recorded the driver's functions are substituted by ones that take times; before
and after, nothing of it is there. The file is Chrome's trace format ("Trace Event Format"), which
https://ui.perfetto.dev and chrome://tracing open. Where the nvtx package is installed, the same
spans are NVTX ranges for Nsight Systems.
"""

from __future__ import annotations

import gc
import importlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, Final, NamedTuple, TextIO, TypeAlias, cast

import ptx

from ._api import CUcontext, CUevent, CUstream, CUstreamCaptureStatus, DriverApi
from ._driver import Bound, Driver, current
from .errors import CudadrvError, InvalidValueError
from .launcher import live_launchers, renew_launchers
from .stream import Stream

# The functions of the driver have no signature in common.
_Function: TypeAlias = Callable[..., Any]


class _Span(NamedTuple):
    """A substituted function: how it is shown, and where its stream and its size are found."""

    category: str
    stream: int | None = None
    nbytes: int | None = None


# Position of the stream among the arguments for what runs on the device; a wait on the host has
# none. A memset's size is a number of elements.
_SPANS: Final = {
    "cuLaunchKernel": _Span("launch", 8),
    "cuLaunchKernelEx": _Span("launch"),
    "cuGraphLaunch": _Span("launch", 1),
    "cuMemcpyHtoDAsync": _Span("copy", 3, 2),
    "cuMemcpyDtoHAsync": _Span("copy", 3, 2),
    "cuMemcpyDtoDAsync": _Span("copy", 3, 2),
    "cuMemcpyPeerAsync": _Span("copy", 5, 4),
    "cuMemsetD8Async": _Span("copy", 3, 2),
    "cuMemsetD16Async": _Span("copy", 3),
    "cuMemsetD32Async": _Span("copy", 3),
    "cuMemAlloc": _Span("allocation", None, 0),
    "cuMemAllocAsync": _Span("allocation", None, 0),
    "cuMemHostAlloc": _Span("allocation", None, 0),
    "cuMemFree": _Span("allocation"),
    "cuMemFreeAsync": _Span("allocation"),
    "cuMemFreeHost": _Span("allocation"),
    "cuModuleLoadDataEx": _Span("compilation"),
    "cuGraphInstantiate": _Span("compilation"),
    "cuStreamSynchronize": _Span("wait"),
    "cuEventSynchronize": _Span("wait"),
    "cuCtxSynchronize": _Span("wait"),
}
# What the trace itself calls, as it was before the substitution.
_OWN_CALLS: Final = (
    "cuCtxGetCurrent", "cuCtxGetDevice", "cuCtxPopCurrent", "cuCtxPushCurrent", "cuEventCreate",
    "cuEventDestroy", "cuEventElapsedTime", "cuEventRecord", "cuEventSynchronize",
    "cuGetErrorString", "cuStreamIsCapturing",
)  # fmt: skip
_COMPILERS: Final = ("compile", "link")
_DEVICE_PROCESS: Final = 1_000_000  # the trace's process number of device 0; above any real one
_MOST_PENDING: Final = 4096
_recording: Final = threading.Lock()


class _Lane:
    """A stream's place in the trace: its context, and the event that its times are counted from."""

    def __init__(self, api: DriverApi, context: CUcontext, ordinal: int, stream: CUstream) -> None:
        self.api = api
        self.context = context
        self.ordinal = ordinal
        self.stream = stream
        self.origin_ns: float | None = None
        self.origin = self.mark()

    def mark(self) -> CUevent | None:
        """A timed event at this point of the stream; None where it cannot be had."""
        with Bound(self.api, self.context):
            code, event = self.api.cuEventCreate(0)
        if code:
            return None
        (code,) = self.api.cuEventRecord(event, self.stream)
        return None if code else event

    def locate(self) -> None:
        """Find the origin's place on the host's clock, by an event that is waited for."""
        closest: tuple[int, float] | None = None
        for _ in range(5):
            before = time.perf_counter_ns()
            now = self.mark()
            if now is None or self.origin is None:
                return
            if self.api.cuEventSynchronize(now)[0]:
                return
            after = time.perf_counter_ns()
            elapsed = self.elapsed_ns(self.origin, now)
            if elapsed is not None and (closest is None or after - before < closest[0]):
                closest = after - before, after - elapsed
            self.api.cuEventDestroy(now)
        if closest is not None:
            self.origin_ns = closest[1]

    def elapsed_ns(self, start: CUevent, end: CUevent) -> float | None:
        """Device time between two events that are done."""
        code, elapsed_ms = self.api.cuEventElapsedTime(start, end)
        return None if code else elapsed_ms * 1e6


class _DeviceSpan(NamedTuple):
    lane: _Lane
    name: str
    category: str
    start: CUevent
    end: CUevent
    flow: int


class _Placed(NamedTuple):
    """A span of the device, in nanoseconds from its lane's origin."""

    lane: _Lane
    name: str
    category: str
    start_ns: float
    duration_ns: float
    flow: int


class Trace:
    """A trace being recorded; made by `trace`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file: TextIO | None = None
        self._events: list[dict[str, object]] = []
        self._threads: dict[int, str] = {}
        self._lanes: dict[int, _Lane] = {}
        self._streams: dict[int, tuple[CUcontext, int, CUstream]] = {}
        self._pending: list[_DeviceSpan] = []
        self._placed: list[_Placed] = []
        self._kernels: dict[int, str] = {}
        self._flows = 0
        self._lock = threading.RLock()
        self._restore: list[Callable[[], None]] = []
        self._nvtx = _nvtx()

    def __enter__(self) -> Trace:
        if not _recording.acquire(blocking=False):
            raise InvalidValueError("a trace is being recorded already: one at a time")
        try:
            self._file = self.path.open("w", encoding="utf-8")
            driver = current()
            own = {name: getattr(driver.api, name) for name in _OWN_CALLS}
            # The part of the protocol that the trace calls.
            self._api = cast(DriverApi, SimpleNamespace(**own))
            self._origin_ns = time.perf_counter_ns()
            self._install(driver)
        except BaseException:
            self._uninstall()
            if self._file is not None:
                self._file.close()
            _recording.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._uninstall()
            self._finish_device_spans()
            self._write()
        finally:
            _recording.release()

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Show a `with` block of one's own on the thread that runs it."""
        start = self._begin(name)
        try:
            yield
        finally:
            self._end(name, "span", start)

    def _install(self, driver: Driver) -> None:
        for stream in [found for found in gc.get_objects() if isinstance(found, Stream)]:
            if stream.context.api is driver.api and not stream.closed:
                self._know(stream.handle, stream.context.handle, stream.context.ordinal)
        api = driver.api
        for name, span in _SPANS.items():
            self._substitute(api, name, partial(self._traced, name, span))
        self._substitute(api, "cuStreamCreateWithPriority", self._seeing_streams)
        self._substitute(api, "cuStreamDestroy", self._losing_streams)
        self._substitute(api, "cuCtxDestroy", self._losing_contexts)
        for name in _COMPILERS:
            self._substitute(ptx, name, partial(self._traced, f"ptx.{name}", _Span("compilation")))
        renew_launchers()
        self._restore.append(renew_launchers)

    def _substitute(self, owner: object, name: str, make: Callable[[_Function], _Function]) -> None:
        """Put another function in the place of one of the driver's or a module's."""
        own = vars(owner).get(name)
        setattr(owner, name, make(getattr(owner, name)))
        # What was found through the class comes back by taking the instance's away.
        self._restore.append(
            partial(delattr, owner, name) if own is None else partial(setattr, owner, name, own)
        )

    def _uninstall(self) -> None:
        # In order: launchers take the driver's functions anew after those are back.
        while self._restore:
            self._restore.pop(0)()

    def _traced(self, name: str, span: _Span, function: _Function) -> _Function:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            shown, stream = self._shown(name, span, args)
            lane = None if stream is None else self._lane(stream)
            first = None if lane is None else lane.mark()
            start = self._begin(shown)
            result: Any = None
            try:
                result = function(*args, **kwargs)
            finally:
                flow = 0
                if lane is not None and first is not None:
                    flow = self._device_span(lane, shown, span.category, first)
                nbytes = args[span.nbytes] if span.nbytes is not None else None
                self._end(shown, span.category, start, flow, nbytes, result)
            return result

        return call

    def _shown(self, name: str, span: _Span, args: tuple[Any, ...]) -> tuple[str, CUstream | None]:
        """The name to show, and the stream that the call queues work on."""
        if name == "cuLaunchKernel":
            return self._kernel_name(args[0]), args[8]
        if name == "cuLaunchKernelEx":
            return self._kernel_name(args[1]), args[0].hStream
        return name, None if span.stream is None else args[span.stream]

    def _kernel_name(self, handle: Any) -> str:
        number = int(handle)
        name = self._kernels.get(number)
        if name is None:
            for launcher in live_launchers():
                kernel = launcher.kernel
                if not kernel.module.closed:
                    self._kernels[int(kernel.handle)] = kernel.name
            name = self._kernels.setdefault(number, f"kernel {number:#x}")
        return name

    def _know(self, stream: CUstream, context: CUcontext, ordinal: int) -> None:
        self._streams[int(stream)] = (context, ordinal, stream)

    def _seeing_streams(self, function: _Function) -> _Function:
        def create(flags: int, priority: int) -> Any:
            result = function(flags, priority)
            api = self._api
            code, context = api.cuCtxGetCurrent()
            if not result[0] and not code:
                code, device = api.cuCtxGetDevice()
                if not code:
                    self._know(result[1], context, int(device))
            return result

        return create

    def _losing_streams(self, function: _Function) -> _Function:
        def destroy(stream: CUstream) -> Any:
            with self._lock:
                self._streams.pop(int(stream), None)
                lane = self._lanes.pop(int(stream), None)
            if lane is not None:
                self._close_lane(lane)
            return function(stream)

        return destroy

    def _losing_contexts(self, function: _Function) -> _Function:
        def destroy(context: CUcontext) -> Any:
            # Its events go with it: their times are taken while they are there.
            with self._lock:
                for number, lane in tuple(self._lanes.items()):
                    if int(lane.context) == int(context):
                        self._close_lane(self._lanes.pop(number))
                        self._streams.pop(number, None)
                mine = [span for span in self._pending if int(span.lane.context) == int(context)]
                self._pending = [span for span in self._pending if span not in mine]
                self._place(mine)
            return function(context)

        return destroy

    def _lane(self, stream: CUstream) -> _Lane | None:
        """The stream's place; None for a foreign stream, and one that captures: it runs nothing."""
        api = self._api
        code, status = api.cuStreamIsCapturing(stream)
        if code or status != CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE:
            return None
        number = int(stream)
        lane = self._lanes.get(number)
        if lane is None and number in self._streams:
            with self._lock:
                context, ordinal, known = self._streams[number]
                lane = self._lanes.setdefault(number, _Lane(api, context, ordinal, known))
        return lane

    def _begin(self, name: str) -> int:
        if self._nvtx is not None:
            self._nvtx.push_range(name, domain="cudadrv")
        return time.perf_counter_ns()

    def _end(
        self,
        name: str,
        category: str,
        start: int,
        flow: int = 0,
        nbytes: object = None,
        result: object = None,
    ) -> None:
        end = time.perf_counter_ns()
        if self._nvtx is not None:
            self._nvtx.pop_range(domain="cudadrv")
        thread = threading.get_native_id()
        if thread not in self._threads:
            self._threads[thread] = threading.current_thread().name
        event = _complete(name, category, os.getpid(), thread, self._us(start), (end - start) / 1e3)
        args: dict[str, object] = {}
        if nbytes is not None:
            args["bytes"] = nbytes
        if isinstance(result, tuple) and result[0]:
            args["result"] = int(result[0])
        if args:
            event["args"] = args
        self._events.append(event)
        if flow:
            self._events.append(_flow("s", flow, os.getpid(), thread, self._us(start)))

    def _us(self, ns: float) -> float:
        return (ns - self._origin_ns) / 1e3

    def _device_span(self, lane: _Lane, name: str, category: str, start: CUevent) -> int:
        """Note what was queued between an event and now; gives the number that ties it to it."""
        end = lane.mark()
        if end is None:
            return 0
        with self._lock:
            self._flows += 1
            self._pending.append(_DeviceSpan(lane, name, category, start, end, self._flows))
            if len(self._pending) > _MOST_PENDING:
                self._place(self._pending[: _MOST_PENDING // 2])
                del self._pending[: _MOST_PENDING // 2]
            return self._flows

    def _place(self, spans: list[_DeviceSpan]) -> None:
        """Take the times of spans, waiting for them, and give their events back."""
        api = self._api
        for lane, name, category, start, end, flow in spans:
            (code,) = api.cuEventSynchronize(end)
            if not code and lane.origin is not None:
                since = lane.elapsed_ns(lane.origin, start)
                duration = lane.elapsed_ns(start, end)
                if since is not None and duration is not None:
                    self._placed.append(_Placed(lane, name, category, since, duration, flow))
            api.cuEventDestroy(start)
            api.cuEventDestroy(end)

    def _close_lane(self, lane: _Lane) -> None:
        """Find a lane's place in time while its stream is there."""
        try:
            lane.locate()
        except CudadrvError:
            pass  # a context that has failed has no times; what the host did is still written

    def _finish_device_spans(self) -> None:
        for lane in self._lanes.values():
            self._close_lane(lane)
        with self._lock:
            self._place(self._pending)
            self._pending.clear()

    def _write(self) -> None:
        import json  # needed here alone

        process = os.getpid()
        events = [_name("process_name", process, 0, "host")]
        events += [_name("thread_name", process, *thread) for thread in self._threads.items()]
        events += self._events
        named: set[tuple[int, int]] = set()
        for lane, name, category, since, duration, flow in self._placed:
            if lane.origin_ns is None:
                continue
            place = _DEVICE_PROCESS + lane.ordinal, int(lane.stream) & 0x7FFFFFFF
            if place not in named:
                named.add(place)
                events.append(_name("process_name", place[0], 0, f"device {lane.ordinal}"))
                events.append(_name("thread_name", *place, f"stream {int(lane.stream):#x}"))
            start = self._us(lane.origin_ns + since)
            events.append(_complete(name, category, *place, start, duration / 1e3))
            events.append(_flow("f", flow, *place, start))
        assert self._file is not None
        with self._file as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ns"}, file)


def trace(path: str | os.PathLike[str]) -> Trace:
    """Record what happens in a `with` block in a file that Perfetto and chrome://tracing open.

    Launches, copies, allocations, compilations and waits, each with its thread and host times, and
    what runs on a device also with device times (by events: the trace makes the stream wait for
    nothing, but an event stands before and after each). What a graph replays is one span. Device
    times are exact to about a microsecond in the first ten seconds.

    Args:
        path: the file; it is opened at once and written when the block ends.

    Raises:
        InvalidValueError: a trace is being recorded already.
        OSError: the file cannot be written.
    """
    return Trace(path)


# The package has no types.
def _nvtx() -> Any:
    try:
        return importlib.import_module("nvtx")
    except ImportError:
        return None


def _complete(
    name: str, category: str, process: int, thread: int, start_us: float, duration_us: float
) -> dict[str, object]:
    return {
        "ph": "X", "name": name, "cat": category, "pid": process, "tid": thread,
        "ts": start_us, "dur": duration_us,
    }  # fmt: skip


def _flow(phase: str, number: int, process: int, thread: int, at_us: float) -> dict[str, object]:
    """One end of the arrow from a call to what it started on the device."""
    event: dict[str, object] = {
        "ph": phase, "name": "queued", "cat": "flow", "id": number, "pid": process, "tid": thread,
        "ts": at_us,
    }  # fmt: skip
    if phase == "f":
        event["bp"] = "e"
    return event


def _name(kind: str, process: int, thread: int, name: str) -> dict[str, object]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
