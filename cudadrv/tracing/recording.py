"""`Trace`: a `with` block whose driver calls are recorded, in a file of Chrome's trace format.

While a trace is recorded, a `TracedApi` stands in `Driver.api`, where everything finds the driver's
functions. Launchers cache those functions, so they fetch them again when a trace begins or ends. A
call that is running when the trace ends, or a function that was cached elsewhere, still passes
through the `TracedApi`, and records nothing.
"""

from __future__ import annotations

import importlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO, cast

import ptx
from ptx.ordinary_files import opener
from ptx.read_only import ReadOnly

from .. import border
from ..driver._api import CUfunction, CUmodule, CUresult, CUstream
from ..driver.driver_api import DriverApi
from ..driver.driver_selection import Driver, current
from ..driver.functions import flagged
from ..driver.once_task import complete
from ..driver.types import Dependent
from ..errors import ClosedError, DriverSymbolMissingError, InvalidValueError
from ..launch.launcher import LauncherState
from .device_times import DeviceSpan, DeviceTimes
from .graph_kernels import FOLLOWED, GraphKernels, NodeReader

_DEVICE_PROCESS: Final = (
    1_000_000  # the process number of device 0 in the trace; above any real one
)


class Trace:
    """A trace being recorded; made by `trace`.

    Attributes:
        path: the file; None without one.
        device_spans: the work that ran on devices; empty before the block ends.
        untimed: how many calls queued work that could not be timed, by device.
        symbols: the name in the PTX of each kernel in `device_spans`.

    Raises:
        OSError: it is entered, and the file cannot be written.
    """

    __slots__ = (
        "__weakref__",
        "_begun",
        "_device_spans",
        "_path",
        "_symbols",
        "_traced",
        "_untimed",
    )

    path: ReadOnly[Path | None] = ReadOnly("_path")
    device_spans: ReadOnly[tuple[DeviceSpan, ...]] = ReadOnly("_device_spans")
    untimed: ReadOnly[Mapping[int, int]] = ReadOnly("_untimed")
    symbols: ReadOnly[Mapping[str, str]] = ReadOnly("_symbols")

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._begun: _Recording | None = None
        # The object in place of the driver's functions, while there is one.
        self._traced: TracedApi | None = None
        self._path: Path | None = None if path is None else border.path("trace: path", path)
        self._device_spans: tuple[DeviceSpan, ...] = ()
        self._untimed: Mapping[int, int] = {}
        self._symbols: Mapping[str, str] = {}

    def __enter__(self) -> Trace:
        if self._begun is not None:
            raise InvalidValueError("this trace is already being recorded")
        driver = current()
        traced = self._traced = TracedApi(driver)
        leaving = ExitStack()
        try:
            traced.install()
            file = None
            if self._path is not None:
                file = leaving.enter_context(open(self._path, "w", encoding="utf-8", opener=opener))
            recorder = Recorder(DeviceTimes(driver, traced.inner), keeps_events=file is not None)
            leaving.enter_context(ptx.observe(recorder.compiling))
            self._begun = _Recording(driver, traced, recorder, file, leaving)
            traced.start(recorder)
        except BaseException:
            installed: object = driver.api
            if installed is traced:
                # First: no interrupt comes before a statement without calls.
                driver.api = traced.inner
            complete(traced.remove)
            with leaving:
                self._begun = self._traced = None
            raise
        return self

    def __exit__(self, *_: object) -> None:
        recording = self._begun
        if recording is None:
            return
        traced = recording.traced
        installed: object = recording.driver.api
        if installed is traced:
            recording.driver.api = traced.inner  # first, as above
        try:
            complete(traced.remove)
        finally:
            with recording.leaving:
                try:
                    recording.recorder.devices.finish()
                finally:
                    devices = recording.recorder.devices
                    self._device_spans, self._untimed = tuple(devices.spans()), devices.untimed()
                    self._symbols = traced.symbols
                    if recording.file is not None:
                        _write(recording.recorder, recording.file)
                    self._begun = self._traced = None

    def __del__(self) -> None:
        # An interrupt can come before the first line of `__exit__`, and several can come.
        traced: TracedApi | None = getattr(self, "_traced", None)
        if traced is not None:
            complete(traced.remove)

    def span(self, name: str) -> AbstractContextManager[None]:
        """Show a `with` block on the thread that runs it."""
        border.instance_of("Trace.span: name", name, str)
        recording = self._begun
        return nullcontext() if recording is None else recording.recorder.span(name)


class _Recording(NamedTuple):
    driver: Driver
    traced: TracedApi
    recorder: Recorder
    file: TextIO | None
    leaving: ExitStack


def _write(recorder: Recorder, file: TextIO) -> None:
    json.dump(recorder.document(), file)


class TracedCall(NamedTuple):
    """A recorded function: its category, and the positions of its stream and size arguments.

    Work on the device has a stream; a wait on the host has none. The size of a wider memset is a
    number of elements.
    """

    category: str
    stream: int | None = None
    nbytes: int | None = None


def _traced_calls() -> Iterator[tuple[str, TracedCall]]:
    """Yield the functions that have a category in the table, by name."""
    for category in ("launch", "copy", "allocation", "compilation", "wait"):
        for name, form in flagged(category).items():
            c_parameters = [word for word in form.parameters if not word.startswith(">")]
            stream = c_parameters.index("stream") if "stream" in c_parameters else None
            nbytes = c_parameters.index("bytes") if "bytes" in c_parameters else None
            is_device_work = category in ("launch", "copy")
            yield name, TracedCall(category, stream if is_device_work else None, nbytes)


SPANS: Final = dict(_traced_calls())


class TracedApi:
    """The functions of a driver; those of `SPANS` are timed while there is a recorder.

    Attributes:
        inner: the driver's own functions.
        symbols: the name in the PTX of each kernel that was launched, by the name it has here.
    """

    def __init__(self, driver: Driver) -> None:
        self.inner: DriverApi = driver.api
        self.symbols: dict[str, str] = {}
        self._driver = driver
        self._recorder: Recorder | None = None
        self._is_installed = False
        self._kernels: dict[int, str] = {}
        self._graphs = GraphKernels()

    def install(self) -> None:
        """Replace the driver's functions, which `Driver.api` holds.

        Raises:
            InvalidValueError: a trace is being recorded already.
        """
        driver = self._driver
        with driver.lock:
            if isinstance(driver.api, TracedApi):
                raise InvalidValueError("another trace is already being recorded: end it first")
            self.inner = driver.api
            self._is_installed = True
            # `__getattr__` gives the functions that a class would have to name for the checker.
            driver.api = cast(DriverApi, self)

    def start(self, recorder: Recorder) -> None:
        """Report the calls to a recorder from now on."""
        self._recorder = recorder
        _reset_all(iter(self._driver.launchers.alive()))

    def remove(self) -> None:
        """Stop recording, and restore the driver's functions. Idempotent."""
        self._recorder = None
        if self._is_installed:
            driver = self._driver
            if cast(object, driver.api) is self:
                driver.api = self.inner
            _reset_all(iter(driver.launchers.alive()))
            self._is_installed = False
            self._kernels.clear()

    def __getattr__(self, name: str) -> Any:
        """Return a function of the driver, or another attribute of the driver's object."""
        if self._recorder is not None:
            span = SPANS.get(name)
            if span is not None:
                return partial(self._call, name, span)
            if name in FOLLOWED:
                return partial(self._follow, name)
            if name == "cuModuleUnload":
                return self._unload_module
        return getattr(self.inner, name)

    def _unload_module(self, module: CUmodule) -> tuple[CUresult]:
        """Forget names, as the driver may reuse the handles of kernels from now on."""
        self._kernels.clear()
        return self.inner.cuModuleUnload(module)

    # The functions of the driver have no signature in common.
    def _follow(self, name: str, /, *args: Any) -> Any:
        """Call a function that changes an executable graph."""
        result = getattr(self.inner, name)(*args)
        if not result[0]:
            self._graphs.follow(name, args, result, NodeReader(self.inner, self._kernel_name))
        return result

    def _call(self, name: str, span: TracedCall, /, *args: Any) -> Any:
        """Call a function of the driver, timed on the host and on its stream, if it has one."""
        function = partial(self._follow, name) if name in FOLLOWED else getattr(self.inner, name)
        recorder = self._recorder
        if recorder is None:
            return function(*args)
        title, stream = self._shown(name, span, args)
        kernels = self._graphs.of(args[0]) if name == "cuGraphLaunch" else ()
        queued = None
        if stream is not None:
            queued = recorder.devices.begin(title, span.category, stream, kernels)
        start = recorder.begin(title)
        code, flow = 0, None
        try:
            result = function(*args)
            code = result[0]
            if queued is not None and not code:
                flow = recorder.devices.end(queued)
        finally:
            nbytes = None if span.nbytes is None else args[span.nbytes]
            recorder.end(title, span.category, start, flow=flow, nbytes=nbytes, code=int(code))
        return result

    def _shown(
        self, name: str, span: TracedCall, args: tuple[Any, ...]
    ) -> tuple[str, CUstream | None]:
        """Return the name to show, and the stream that the call queues work on."""
        if name == "cuLaunchKernelEx":
            return self._kernel_name(args[1]), args[0].hStream
        return name, None if span.stream is None else args[span.stream]

    def _kernel_name(self, function: CUfunction) -> str:
        """Return the name of a kernel that a launcher was made for."""
        handle = int(function)
        name = self._kernels.get(handle)
        if name is None:
            for launcher in self._driver.launchers.alive():
                if isinstance(launcher, LauncherState):
                    try:
                        number, kernel = launcher.kernel_name()
                    except ClosedError:
                        continue
                    self._kernels[number] = kernel
            symbol = self._symbol(function)
            # A kernel without a launcher is in a graph, or of another library.
            name = self._kernels.get(handle) or symbol or f"kernel {handle:#x}"
            self.symbols.setdefault(name, symbol or name)
        return name

    def _symbol(self, function: CUfunction) -> str:
        """Return the name of a kernel in its PTX; "" if the driver is older than CUDA 12.3."""
        try:
            code, symbol = self.inner.cuFuncGetName(function)
        except DriverSymbolMissingError:
            return ""
        return "" if code or symbol is None else symbol.decode()


def _reset_all(launchers: Iterator[Dependent]) -> None:
    """Make each launcher fetch the driver's functions again, even if one raises."""
    for launcher in launchers:
        try:
            launcher.reset()
        except ClosedError:
            continue  # it launches no more
        except BaseException:
            _reset_all(launchers)
            raise


class Recorder:
    """The recorded spans of the host's threads, and with `devices` those of the devices.

    Args:
        devices: the times of work on devices.
        keeps_events: whether the host's spans are for a file.

    Attributes:
        devices: the times of work on devices.
    """

    def __init__(self, devices: DeviceTimes, *, keeps_events: bool) -> None:
        self.devices = devices
        self._keeps_events = keeps_events
        self._events: list[dict[str, object]] = []
        self._threads: dict[int, str] = {}
        self._process = os.getpid()
        self._nvtx = _nvtx()
        self._origin_ns = time.perf_counter_ns()

    @contextmanager
    def span(self, name: str, category: str = "span") -> Iterator[None]:
        """Show a `with` block on the thread that runs it."""
        start = self.begin(name)
        try:
            yield
        finally:
            self.end(name, category, start)

    def compiling(self, verb: str) -> Any:
        """Show a call of `ptx.compile` or `ptx.link`; an observer of these."""
        return self.span(f"ptx.{verb}", "compilation")

    def begin(self, name: str) -> int:
        """Begin a span on this thread; return the time for `end`."""
        if self._nvtx is not None:
            self._nvtx.push_range(name, domain="cudadrv")
        return time.perf_counter_ns()

    def end(
        self,
        name: str,
        category: str,
        start_ns: int,
        *,
        flow: int | None = None,
        nbytes: int | None = None,
        code: int = 0,
    ) -> None:
        """End a span.

        Args:
            name: as given to `begin`.
            category: the viewer filters by it.
            start_ns: the result of `begin`.
            flow: the number that connects it to a span of a device.
            nbytes: the size of its memory.
            code: the result of the driver's function.
        """
        duration_us = (time.perf_counter_ns() - start_ns) / 1e3
        if self._nvtx is not None:
            self._nvtx.pop_range(domain="cudadrv")
        if not self._keeps_events:
            return
        thread = threading.get_native_id()
        if thread not in self._threads:
            self._threads[thread] = threading.current_thread().name
        position = self._process, thread, self._microseconds(start_ns)
        event = complete_event(name, category, *position, duration_us)
        args = {} if nbytes is None else {"bytes": nbytes}
        if code:
            args["result"] = code
        if args:
            event["args"] = args
        self._events.append(event)
        if flow is not None:
            self._events.append(flow_event("s", flow, *position))

    def document(self) -> dict[str, object]:
        """Return the trace as the JSON object of the format."""
        events = [naming("process_name", self._process, 0, "host")]
        # Copies, as a call that was running when the trace ended may still add to them.
        for thread, name in self._threads.copy().items():
            events.append(naming("thread_name", self._process, thread, name))
        events += self._events
        events += device_events(self.devices.spans(), self._microseconds)
        document: dict[str, object] = {"traceEvents": events, "displayTimeUnit": "ns"}
        untimed = self.devices.untimed()
        if untimed:
            document["otherData"] = {
                f"device {ordinal}": f"{count} calls queued work that could not be timed"
                for ordinal, count in untimed.items()
            }
        return document

    def _microseconds(self, ns: float) -> float:
        return (ns - self._origin_ns) / 1e3


# The package has no types.
def _nvtx() -> Any:
    try:
        return importlib.import_module("nvtx")
    except ImportError:
        return None


def device_events(
    spans: Iterable[DeviceSpan], microseconds: Callable[[float], float]
) -> Iterator[dict[str, object]]:
    """Yield the spans of devices, and the names of their processes and threads.

    Args:
        spans: the spans.
        microseconds: turns nanoseconds of the host's clock into the trace's time.
    """
    named_tracks: set[tuple[int, int]] = set()
    for span in spans:
        track = _DEVICE_PROCESS + span.ordinal, span.stream & 0x7FFFFFFF
        if track not in named_tracks:
            named_tracks.add(track)
            yield naming("process_name", track[0], 0, f"device {span.ordinal}")
            yield naming("thread_name", *track, f"stream {span.stream:#x}")
        start_us = microseconds(span.start_ns)
        event = complete_event(span.name, span.category, *track, start_us, span.duration_ns / 1e3)
        if span.kernels:
            event["args"] = {"kernels": dict(span.kernels)}
        yield event
        yield flow_event("f", span.flow, *track, start_us)


def complete_event(
    name: str, category: str, process: int, thread: int, start_us: float, duration_us: float
) -> dict[str, object]:
    """Return a span of a thread of the host, or of a stream of a device."""
    return {
        "ph": "X", "name": name, "cat": category, "pid": process, "tid": thread,
        "ts": start_us, "dur": duration_us,
    }  # fmt: skip


def flow_event(
    phase: str, number: int, process: int, thread: int, at_us: float
) -> dict[str, object]:
    """Return one end of the arrow from a call to its work on the device."""
    event: dict[str, object] = {
        "ph": phase, "name": "queued", "cat": "flow", "id": number, "pid": process, "tid": thread,
        "ts": at_us,
    }  # fmt: skip
    if phase == "f":
        event["bp"] = "e"
    return event


def naming(kind: str, process: int, thread: int, name: str) -> dict[str, object]:
    """Return the name of a process or a thread."""
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
