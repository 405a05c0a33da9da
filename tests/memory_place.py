"""The place of memory on a stream, as memory resources receive it."""

from __future__ import annotations

import cudadrv
from cudadrv import Stream
from cudadrv.memory import DriverMemory, MemoryStream


class _Receiver(DriverMemory):
    def __init__(self) -> None:
        self.received: list[MemoryStream] = []

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        self.received.append(stream)
        return super().allocate(nbytes, stream)


def place_on(stream: Stream) -> MemoryStream:
    """Return the place that a memory resource receives with an allocation on a stream."""
    receiver = _Receiver()
    with cudadrv.using_memory(receiver):
        stream.alloc(1).close()
    return receiver.received[0]
