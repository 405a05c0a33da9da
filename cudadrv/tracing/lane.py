"""What a trace knows of the device: streams' places in time, and the spans measured on them."""

from __future__ import annotations

import time
from typing import NamedTuple

from ..driver._api import CUcontext, CUevent, CUstream, DriverApi
from ..driver.in_use import Bound


class Lane:
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


class DeviceSpan(NamedTuple):
    """What was queued between two events; `flow` ties it to the call that queued it."""

    lane: Lane
    name: str
    category: str
    start: CUevent
    end: CUevent
    flow: int


class Placed(NamedTuple):
    """A span of the device, in nanoseconds from its lane's origin."""

    lane: Lane
    name: str
    category: str
    start_ns: float
    duration_ns: float
    flow: int
