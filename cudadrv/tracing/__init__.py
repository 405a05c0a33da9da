"""`trace`: record the driver's calls and the device's work, in a file for Perfetto.

While a trace is recorded, an object that times calls wraps the driver's functions; before and
after, it does not exist. The file has Chrome's trace format ("Trace Event Format"), which
https://ui.perfetto.dev and chrome://tracing open. If the nvtx package is installed, the same
spans are NVTX ranges for Nsight Systems.
"""

from __future__ import annotations

import os

from .device_times import DeviceSpan as DeviceSpan
from .recording import Trace as Trace

__all__ = ["DeviceSpan", "Trace", "trace"]


def trace(path: str | os.PathLike[str] | None = None) -> Trace:
    """Record a `with` block, in a file that Perfetto and chrome://tracing open.

    Launches, copies, allocations, compilations and waits appear with their thread and host times.
    Work on a device also has device times, by an event before and after it. The trace makes the
    stream wait for nothing. The replay of a graph is one span, with the names of its kernels if the
    graph was instantiated in the trace. Device times are exact to about a microsecond in the first
    ten seconds. Calls whose work could not be timed, as on a context that has failed, are counted
    in the file's "otherData".

    Args:
        path: the file; it is opened at once and written when the block ends. Without one, read
            `Trace.device_spans` after the block.

    Raises:
        InvalidValueError: a trace is being recorded already.
        OSError: the file cannot be written.
    """
    return Trace(path)
