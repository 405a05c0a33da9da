"""The events of Chrome's trace format ("Trace Event Format"), and their file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from .device_times import DeviceSpan

_DEVICE_PROCESS: Final = 1_000_000  # the trace's process number of device 0; above any real one


def device_events(
    spans: Iterable[DeviceSpan], microseconds: Callable[[float], float]
) -> Iterator[dict[str, object]]:
    """The spans of devices, and the names of their processes and threads.

    Args:
        spans: the spans.
        microseconds: turns nanoseconds of the host's clock into the trace's time.
    """
    named: set[tuple[int, int]] = set()
    for span in spans:
        place = _DEVICE_PROCESS + span.ordinal, span.stream & 0x7FFFFFFF
        if place not in named:
            named.add(place)
            yield naming("process_name", place[0], 0, f"device {span.ordinal}")
            yield naming("thread_name", *place, f"stream {span.stream:#x}")
        start_us = microseconds(span.start_ns)
        yield complete_event(span.name, span.category, *place, start_us, span.duration_ns / 1e3)
        yield flow_event("f", span.flow, *place, start_us)


def complete_event(
    name: str, category: str, process: int, thread: int, start_us: float, duration_us: float
) -> dict[str, object]:
    """A span of a thread of the host, or of a stream of a device."""
    return {
        "ph": "X", "name": name, "cat": category, "pid": process, "tid": thread,
        "ts": start_us, "dur": duration_us,
    }  # fmt: skip


def flow_event(
    phase: str, number: int, process: int, thread: int, at_us: float
) -> dict[str, object]:
    """One end of the arrow from a call to what it started on the device."""
    event: dict[str, object] = {
        "ph": phase, "name": "queued", "cat": "flow", "id": number, "pid": process, "tid": thread,
        "ts": at_us,
    }  # fmt: skip
    if phase == "f":
        event["bp"] = "e"
    return event


def naming(kind: str, process: int, thread: int, name: str) -> dict[str, object]:
    """The name of a process or a thread."""
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
