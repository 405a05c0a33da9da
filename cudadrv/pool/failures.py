"""The errors of scattered work: the failures of all tiles, each with its device and range."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence

from ..errors import CudadrvError


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
        what = f"items {tile.start} to {tile.stop} on device {ordinal}{of}"
        self = super().__new__(cls, what, errors)
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
        return f"{self.message}: {type(error).__name__}: {error}"

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
        return f"{self.message}: {'; '.join(str(error) for error in self.exceptions)}"

    @property
    def failures(self) -> tuple[TileError, ...]:
        """The tiles that failed, in the order of their items; empty without a device."""
        return tuple(error for error in self.exceptions if isinstance(error, TileError))

    # The base is generic over the exceptions of a group; these groups hold any type.
    def derive(self, excs: Sequence[Exception], /) -> ScatterError:  # type: ignore[override]
        """The group that `split` and ``except*`` make of some of the failures."""
        return ScatterError(self.message, excs, self.results)
