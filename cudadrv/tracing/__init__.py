"""`trace`: what the driver was asked to do and what the device did, as a file for Perfetto.

While a trace is recorded an object that times calls stands around the driver's functions; before
and after, nothing of it is there. The file is Chrome's trace format ("Trace Event Format"), which
https://ui.perfetto.dev and chrome://tracing open. Where the nvtx package is installed, the same
spans are NVTX ranges for Nsight Systems.
"""

from __future__ import annotations

import os

from .recording import Trace as Trace


def trace(path: str | os.PathLike[str]) -> Trace:
    """Record what happens in a `with` block in a file that Perfetto and chrome://tracing open.

    Launches, copies, allocations, compilations and waits, each with its thread and host times, and
    what runs on a device also with device times (by events: the trace makes the stream wait for
    nothing, but an event stands before and after each). What a graph replays is one span. Device
    times are exact to about a microsecond in the first ten seconds. Calls whose work could not be
    timed, as on a context that has failed, are counted in the file's "otherData".

    Args:
        path: the file; it is opened at once and written when the block ends.

    Raises:
        InvalidValueError: a trace is being recorded already.
        OSError: the file cannot be written.
    """
    return Trace(path)
