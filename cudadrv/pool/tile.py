"""`Tile`: a part of scattered work, with its device, stream and arena; and its failures."""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from ptx.base_errors import shown
from ptx.read_only import ReadOnly

from ..errors import ClosedError, CudadrvError
from ..stream import Context, Stream

if TYPE_CHECKING:
    import numpy as np

    from ..memory.reuse.arena import DeviceArena


class NotInTileError(CudadrvError, LookupError):
    """`current_tile` was called outside of a tile."""


class TileError(CudadrvError, ExceptionGroup[Exception]):
    """The failure of one tile; the exception that its function raised is in it.

    It is a group of one, so that ``except* ValueError`` around a scatter finds a tile's ValueError.

    Attributes:
        ordinal: the device.
        range: the items of the tile.
        worker: the name of the worker that has the device; "" for this process.
    """

    ordinal: int
    range: builtins.range
    worker: str

    def __new__(
        cls, errors: Sequence[Exception], ordinal: int, tile: builtins.range, worker: str = ""
    ) -> TileError:
        """A failure of `tile` on device `ordinal`."""
        of = f" of worker {worker}" if worker else ""
        subject = f"items {tile.start} to {tile.stop} on device {ordinal}{of}"
        self = super().__new__(cls, subject, errors)
        self.ordinal = ordinal
        self.range = tile
        self.worker = worker
        return self

    def __init__(
        self, errors: Sequence[Exception], ordinal: int, tile: builtins.range, worker: str = ""
    ) -> None:
        """A group keeps its arguments in `__new__`."""

    def __str__(self) -> str:
        error = self.error
        return shown(f"{self.message}: {type(error).__name__}: {error}")

    def __reduce__(self) -> tuple[object, ...]:
        arguments = (self.exceptions, self.ordinal, self.range, self.worker)
        return type(self), arguments, self.__dict__

    @property
    def error(self) -> Exception:
        """The error of the tile's function, or of binding its context."""
        return self.exceptions[0]

    # The base is generic over the exceptions of a group; these groups hold any type.
    def derive(self, excs: Sequence[Exception], /) -> TileError:  # type: ignore[override]
        """The group that `split` and ``except*`` make of this one's exceptions."""
        return TileError(excs, self.ordinal, self.range, self.worker)


class ScatterError(CudadrvError, ExceptionGroup[Exception]):
    """Some tiles failed, or there was no device to run any.

    The other tiles' work is kept: their items hold the results.

    Attributes:
        results: the result of each tile that succeeded, by its items in their order; None where
            the items were changed in place.
    """

    results: dict[builtins.range, object]

    def __new__(
        cls,
        message: str,
        exceptions: Sequence[Exception],
        results: Mapping[builtins.range, object] | None = None,
    ) -> ScatterError:
        """The failures under one message."""
        self = super().__new__(cls, message, exceptions)
        self.results = dict(results or {})
        return self

    def __init__(
        self,
        message: str,
        exceptions: Sequence[Exception],
        results: Mapping[builtins.range, object] | None = None,
    ) -> None:
        """A group keeps its arguments in `__new__`."""

    def __str__(self) -> str:
        return shown(f"{self.message}: {'; '.join(str(error) for error in self.exceptions)}")

    @property
    def failures(self) -> tuple[TileError, ...]:
        """The tiles that failed, in the order of their items; empty without a device."""
        return tuple(error for error in self.exceptions if isinstance(error, TileError))

    # The base is generic over the exceptions of a group; these groups hold any type.
    def derive(self, excs: Sequence[Exception], /) -> ScatterError:  # type: ignore[override]
        """The group that `split` and ``except*`` make of some of the failures."""
        return ScatterError(self.message, excs, self.results)


class Workplace:
    """A worker's stream and arena, made at the first use and reused by its next tiles."""

    def __init__(self) -> None:
        self.stream: Stream | None = None
        self.arena: DeviceArena[np.float64] | None = None

    def stream_of(self, context: Context) -> Stream:
        """Return the stream, on the context of the worker's device."""
        if self.stream is None or self.stream.closed:
            self.stream = context.new_stream()
        return self.stream

    def own_arena(self) -> DeviceArena[np.float64]:
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

    __slots__ = ("_context", "_ordinal", "_range", "_workplace")

    context: ReadOnly[Context] = ReadOnly("_context")
    ordinal: ReadOnly[int] = ReadOnly("_ordinal")
    range: ReadOnly[builtins.range] = ReadOnly("_range")

    def __init__(
        self, ordinal: int, items: builtins.range, context: Context, workplace: Workplace
    ) -> None:
        self._ordinal: int = ordinal
        self._range: builtins.range = items
        self._context: Context = context
        self._workplace: Workplace | None = workplace

    def __repr__(self) -> str:
        return (
            f"<Tile of items {self._range.start} to {self._range.stop} on device {self._ordinal}>"
        )

    @property
    def stream(self) -> Stream:
        """The tile's own stream, made at the first use; the tile ends when its work is done.

        Raises:
            ClosedError: the tile has ended.
        """
        return self._open().stream_of(self._context)

    @property
    def arena(self) -> DeviceArena[np.float64]:
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
            "no tile runs here: call current_tile in a function given to scatter_batched or "
            "scatter_map"
        ) from None
