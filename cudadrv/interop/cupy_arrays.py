"""CuPy's arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from .reader import Reader


def readers() -> Iterator[tuple[type, Reader]]:
    """The types with their readers."""
    cupy = sys.modules["cupy"]
    if cupy.cuda.runtime.is_hip:
        return  # memory of another driver
    # `device_id` is of the memory, as `ptr` is; the device object of `x.device` costs more.
    reader = Reader(
        attrgetter("data.ptr"),
        attrgetter("data.device_id"),
        _current_stream_of(cupy),
        attrgetter("dtype"),
    )
    yield cupy.ndarray, reader


# The library need not be installed where types are checked; so it is Any here.
def _current_stream_of(cupy: Any) -> Callable[[int], int]:
    """What gives the number of CuPy's current stream on a device, in the calling thread."""
    current_stream = cupy.cuda.get_current_stream

    def current(ordinal: int) -> int:
        number: int = current_stream(ordinal).ptr
        return number

    return current
