"""The events of Chrome's trace format ("Trace Event Format"), and their file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from .lane import Placed

_DEVICE_PROCESS: Final = 1_000_000  # the trace's process number of device 0; above any real one


def device_events(
    placed: Iterable[Placed], microseconds: Callable[[float], float]
) -> Iterator[dict[str, object]]:
    """The spans of devices and the names of their lanes.

    Args:
        placed: the spans; those of a lane whose origin was not found are left out.
        microseconds: turns nanoseconds of the host's clock into the trace's time.
    """
    named: set[tuple[int, int]] = set()
    for lane, name, category, since, duration, flow in placed:
        if lane.origin_ns is None:
            continue
        place = _DEVICE_PROCESS + lane.ordinal, int(lane.stream) & 0x7FFFFFFF
        if place not in named:
            named.add(place)
            yield naming("process_name", place[0], 0, f"device {lane.ordinal}")
            yield naming("thread_name", *place, f"stream {int(lane.stream):#x}")
        start = microseconds(lane.origin_ns + since)
        yield complete_event(name, category, *place, start, duration / 1e3)
        yield flow_event("f", flow, *place, start)


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
