"""Warp's arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from .reader import Reader


def readers() -> Iterator[tuple[type, Reader]]:
    """The types with their readers."""
    warp = sys.modules["warp"]
    stream, dtype = _current_stream_of(warp), attrgetter("dtype")
    yield warp.array, Reader(_address, attrgetter("device.ordinal"), stream, dtype)


# The library need not be installed where types are checked; so it is Any here.
def _address(array: Any) -> int:
    return array.ptr or 0  # None where there are no elements


def _current_stream_of(warp: Any) -> Callable[[int], int]:
    """What gives the number of Warp's current stream on a device."""
    get_cuda_device = warp.get_cuda_device

    def current(ordinal: int) -> int:
        number: int | None = get_cuda_device(ordinal).stream.cuda_stream
        return number or 0

    return current
