"""`Chunk`: a part of a large copy, and `Slot`: the pinned buffer that it goes through."""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import memmove
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..driver.stream_box import EventBox, StreamBox
from .copy_threads import Share
from .dtypes import AnyArray

# A chunk costs some 60 microseconds of the interpreter's lock, which the threads hand around:
# smaller ones (measured: 2 MiB) lose half of the bandwidth, larger ones leave the caches.
CHUNK_BYTES: Final = 4 << 20
"""The most that a chunk has, and what a slot has room for."""
_LEAST_BYTES: Final = 1 << 20
_FEWEST: Final = 6
# Where other copies are under way, larger ones: in a scatter of 64 MiB over four devices the
# interpreter's own work takes half of the time so.
_FEWEST_BESIDE_OTHERS: Final = 4


class Slot:
    """One pinned buffer.

    Attributes:
        memory: its bytes.
        address: of the first byte.
        event: recorded after the transfer that last used it.
        busy: whether that transfer may still be under way.
        stream: where one may be under way after which no event was recorded.
    """

    __slots__ = ("address", "busy", "event", "memory", "stream")

    def __init__(self, memory: npt.NDArray[np.uint8], event: EventBox) -> None:
        self.memory: npt.NDArray[np.uint8] = memory
        self.address: int = memory.ctypes.data
        self.event: EventBox = event
        self.busy: bool = False
        self.stream: StreamBox | None = None


class Chunk(NamedTuple):
    """A part of a copy: bytes from `offset` in C order, at a host address or as a strided view."""

    offset: int
    nbytes: int
    address: int
    view: AnyArray | None

    def fill(self, slot: Slot) -> None:
        """Copy from the host array to the pinned buffer."""
        if self.view is None:
            memmove(slot.address, self.address, self.nbytes)
        else:
            np.copyto(self._in(slot, self.view), self.view)

    def empty(self, slot: Slot) -> None:
        """Copy from the pinned buffer to the host array."""
        if self.view is None:
            memmove(self.address, slot.address, self.nbytes)
        else:
            np.copyto(self.view, self._in(slot, self.view))

    def _in(self, slot: Slot, view: AnyArray) -> AnyArray:
        return slot.memory[: self.nbytes].view(view.dtype).reshape(view.shape)


def chunks_of(array: AnyArray, share: Share) -> list[Chunk]:
    """An array in C order, cut into chunks that fit a slot."""
    part = -(-array.nbytes // (_FEWEST if share.is_alone else _FEWEST_BESIDE_OTHERS))
    limit = min(CHUNK_BYTES, max(_LEAST_BYTES, -(-part // 4096) * 4096))
    if array.flags.c_contiguous:
        base = array.ctypes.data
        return [
            Chunk(offset, min(limit, array.nbytes - offset), base + offset, None)
            for offset in range(0, array.nbytes, limit)
        ]
    chunks, offset = [], 0
    for view in _pieces(array, limit):
        chunks.append(Chunk(offset, view.nbytes, 0, view))
        offset += view.nbytes
    return chunks


def _pieces(array: AnyArray, limit: int) -> Iterator[AnyArray]:
    """Views that make up a strided array in C order, of at most `limit` bytes each."""
    if array.nbytes <= limit:
        yield array
        return
    row_bytes = array.nbytes // array.shape[0]
    if row_bytes > limit:
        for row in array:
            yield from _pieces(row, limit)
        return
    rows = limit // row_bytes
    for first in range(0, array.shape[0], rows):
        yield array[first : first + rows]
