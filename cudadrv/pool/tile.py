"""`Tile`: a part of scattered work, with its device, stream and arena."""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from ..errors import ClosedError, CudadrvError
from ..stream import Context, Stream
from .failures import NotInTileError

if TYPE_CHECKING:
    from ..memory.reuse.arena import DeviceArena


class Workplace:
    """A worker's stream and arena, made at the first use and reused by its next tiles."""

    def __init__(self) -> None:
        self.stream: Stream | None = None
        self.arena: DeviceArena | None = None

    def stream_of(self, context: Context) -> Stream:
        """Return the stream, on the context of the worker's device."""
        if self.stream is None or self.stream.closed:
            self.stream = context.new_stream()
        return self.stream

    def own_arena(self) -> DeviceArena:
        """Return the arena."""
        if self.arena is None:
            from ..memory.reuse.arena import DeviceArena  # few tiles have one

            self.arena = DeviceArena()
        return self.arena

    def clear(self) -> None:
        """Close both: after a failure, which leaves their state unknown, or at the end."""
        arena, stream = self.arena, self.stream
        self.arena = self.stream = None
        # The failure has been reported; a lost device has nothing to free.
        with contextlib.suppress(CudadrvError):
            if arena is not None:
                arena.close()
        if stream is not None:
            stream.close()


class Tile:
    """The part of scattered work that the calling thread runs; see `current_tile`.

    Attributes:
        ordinal: the device.
        range: the indices of its items.
        context: the device's primary context, current on this thread.
    """

    __slots__ = ("_workplace", "context", "ordinal", "range")

    def __init__(self, ordinal: int, items: range, context: Context, workplace: Workplace) -> None:
        self.ordinal: int = ordinal
        self.range: range = items
        self.context: Context = context
        self._workplace: Workplace | None = workplace

    def __repr__(self) -> str:
        return f"<Tile of items {self.range.start} to {self.range.stop} on device {self.ordinal}>"

    @property
    def stream(self) -> Stream:
        """The tile's own stream, made at the first use; the tile ends when its work is done.

        Raises:
            ClosedError: the tile has ended.
        """
        return self._open().stream_of(self.context)

    @property
    def arena(self) -> DeviceArena:
        """An arena of float64 device memory, the tile's alone while it runs.

        Raises:
            ClosedError: the tile has ended.
        """
        return self._open().own_arena()

    def finish(self) -> None:
        """Wait for the stream, if one was used, and end the tile.

        Raises:
            CudaError: work on the stream failed.
        """
        workplace = self._open()
        if workplace.stream is not None and not workplace.stream.closed:
            workplace.stream.synchronize()
        self._workplace = None

    def abandon(self) -> None:
        """End the tile after a failure, without waiting."""
        self._workplace = None

    def _open(self) -> Workplace:
        if self._workplace is None:
            raise ClosedError(f"{self!r} has ended")
        return self._workplace


running: Final[ContextVar[Tile]] = ContextVar("cudadrv tile")
"""The tile of each thread that runs one."""


def current_tile() -> Tile:
    """Return the tile that the calling function runs, with its stream, arena, context and range.

    Raises:
        NotInTileError: no function of `scatter_batched` or `scatter_map` is running here.
    """
    try:
        return running.get()
    except LookupError:
        raise NotInTileError(
            "no tile runs here: current_tile is for functions given to scatter_batched or "
            "scatter_map"
        ) from None
