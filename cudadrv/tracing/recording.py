"""`Trace`: substitutes the driver's functions while it records, and writes what they did."""

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
from typing import Any, Final, TextIO, TypeAlias, cast

import ptx

from ..driver._api import CUcontext, CUevent, CUstream, CUstreamCaptureStatus, DriverApi
from ..driver.in_use import Driver, current
from ..errors import CudadrvError, InvalidValueError
from ..launch.launcher import live_launchers, renew_launchers
from ..stream import Stream
from .calls import COMPILERS, OWN_CALLS, SPANS, Span
from .events import complete_event, device_events, flow_event, naming
from .lane import DeviceSpan, Lane, Placed

# The functions of the driver have no signature in common.
_Function: TypeAlias = Callable[..., Any]


_MOST_PENDING: Final = 4096
_recording: Final = threading.Lock()


class Trace:
    """A trace being recorded; made by `trace`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file: TextIO | None = None
        self._events: list[dict[str, object]] = []
        self._threads: dict[int, str] = {}
        self._lanes: dict[int, Lane] = {}
        self._streams: dict[int, tuple[CUcontext, int, CUstream]] = {}
        self._pending: list[DeviceSpan] = []
        self._placed: list[Placed] = []
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
            own = {name: getattr(driver.api, name) for name in OWN_CALLS}
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
        for name, span in SPANS.items():
            self._substitute(api, name, partial(self._traced, name, span))
        self._substitute(api, "cuStreamCreateWithPriority", self._seeing_streams)
        self._substitute(api, "cuStreamDestroy", self._losing_streams)
        self._substitute(api, "cuCtxDestroy", self._losing_contexts)
        for name in COMPILERS:
            self._substitute(ptx, name, partial(self._traced, f"ptx.{name}", Span("compilation")))
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

    def _traced(self, name: str, span: Span, function: _Function) -> _Function:
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

    def _shown(self, name: str, span: Span, args: tuple[Any, ...]) -> tuple[str, CUstream | None]:
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

    def _lane(self, stream: CUstream) -> Lane | None:
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
                lane = self._lanes.setdefault(number, Lane(api, context, ordinal, known))
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
        event = complete_event(
            name, category, os.getpid(), thread, self._us(start), (end - start) / 1e3
        )
        args: dict[str, object] = {}
        if nbytes is not None:
            args["bytes"] = nbytes
        # A driver's function gives a plain tuple; a compiler's image is a tuple of another type.
        if type(result) is tuple and result[0]:
            args["result"] = int(result[0])
        if args:
            event["args"] = args
        self._events.append(event)
        if flow:
            self._events.append(flow_event("s", flow, os.getpid(), thread, self._us(start)))

    def _us(self, ns: float) -> float:
        return (ns - self._origin_ns) / 1e3

    def _device_span(self, lane: Lane, name: str, category: str, start: CUevent) -> int:
        """Note what was queued between an event and now; gives the number that ties it to it."""
        end = lane.mark()
        if end is None:
            return 0
        with self._lock:
            self._flows += 1
            self._pending.append(DeviceSpan(lane, name, category, start, end, self._flows))
            if len(self._pending) > _MOST_PENDING:
                self._place(self._pending[: _MOST_PENDING // 2])
                del self._pending[: _MOST_PENDING // 2]
            return self._flows

    def _place(self, spans: list[DeviceSpan]) -> None:
        """Take the times of spans, waiting for them, and give their events back."""
        api = self._api
        for lane, name, category, start, end, flow in spans:
            (code,) = api.cuEventSynchronize(end)
            if not code and lane.origin is not None:
                since = lane.elapsed_ns(lane.origin, start)
                duration = lane.elapsed_ns(start, end)
                if since is not None and duration is not None:
                    self._placed.append(Placed(lane, name, category, since, duration, flow))
            api.cuEventDestroy(start)
            api.cuEventDestroy(end)

    def _close_lane(self, lane: Lane) -> None:
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
        events = [naming("process_name", process, 0, "host")]
        events += [naming("thread_name", process, *thread) for thread in self._threads.items()]
        events += self._events
        events += device_events(self._placed, self._us)
        assert self._file is not None
        with self._file as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ns"}, file)


# The package has no types.
def _nvtx() -> Any:
    try:
        return importlib.import_module("nvtx")
    except ImportError:
        return None
