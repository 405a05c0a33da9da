"""`Recorder`: what a trace has seen, and the events that show it."""

from __future__ import annotations

import importlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .device_times import DeviceTimes
from .events import complete_event, device_events, flow_event, naming


class Recorder:
    """The spans of the host's threads, and with `devices` those of the devices.

    Attributes:
        devices: the times of what runs on devices.
    """

    def __init__(self, devices: DeviceTimes) -> None:
        self.devices = devices
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
        """Begin a span on this thread; gives the time for `end`."""
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
            category: what the viewer filters by.
            start_ns: what `begin` gave.
            flow: the number that ties it to a span of a device.
            nbytes: the size of what it worked on.
            code: the result of the driver's function.
        """
        duration_us = (time.perf_counter_ns() - start_ns) / 1e3
        if self._nvtx is not None:
            self._nvtx.pop_range(domain="cudadrv")
        thread = threading.get_native_id()
        if thread not in self._threads:
            self._threads[thread] = threading.current_thread().name
        at = self._process, thread, self._microseconds(start_ns)
        event = complete_event(name, category, *at, duration_us)
        args = {} if nbytes is None else {"bytes": nbytes}
        if code:
            args["result"] = code
        if args:
            event["args"] = args
        self._events.append(event)
        if flow is not None:
            self._events.append(flow_event("s", flow, *at))

    def document(self) -> dict[str, object]:
        """The trace as the JSON object that the format asks for."""
        events = [naming("process_name", self._process, 0, "host")]
        # Copies, as a call that was under way when the trace ended may still add to them.
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
