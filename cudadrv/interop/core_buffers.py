"""Buffers and strided views of cuda.core.

Neither says what was queued on its memory: who made a view gave the stream then.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from .reader import Reader


def readers() -> Iterator[tuple[type, Reader]]:
    """The types with their readers."""
    core = sys.modules.get("cuda.core") or sys.modules.get("cuda.core.experimental")
    if core is None:
        return  # other modules have this package, too
    yield core.Buffer, Reader(_address, attrgetter("device_id"))
    utils = sys.modules.get(f"{core.__name__}.utils")
    if utils is not None:
        reader = Reader(attrgetter("ptr"), attrgetter("device_id"), dtype=attrgetter("dtype"))
        yield utils.StridedMemoryView, reader


# Its type has no stubs.
def _address(buffer: Any) -> int:
    handle = buffer.handle
    if handle is None or (not int(handle) and buffer.size):
        raise BufferError("was closed")
    return int(handle)
