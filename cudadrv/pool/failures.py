"""What scattered work raises: the failures of all tiles, each with its device and range."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from ..errors import CudadrvError


class NotInTileError(CudadrvError, LookupError):
    """`current_tile` was called where no tile runs."""


class TileError(CudadrvError, ExceptionGroup[Exception]):
    """The failure of one tile; the exception that its function raised is in it.

    It is a group of one, so that ``except* ValueError`` around a scatter finds a tile's ValueError.

    Attributes:
        ordinal: the device.
        range: the items of the tile.
    """

    ordinal: int
    range: builtins.range

    def __new__(cls, errors: Sequence[Exception], ordinal: int, tile: builtins.range) -> TileError:
        """A failure of `tile` on device `ordinal`."""
        what = f"items {tile.start} to {tile.stop} on device {ordinal}"
        self = super().__new__(cls, what, errors)
        self.ordinal = ordinal
        self.range = tile
        return self

    def __init__(self, errors: Sequence[Exception], ordinal: int, tile: builtins.range) -> None:
        """A group keeps its arguments in `__new__`."""

    def __str__(self) -> str:
        error = self.error
        return f"{self.message}: {type(error).__name__}: {error}"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.exceptions, self.ordinal, self.range), self.__dict__

    @property
    def error(self) -> Exception:
        """What the tile's function, or the binding of its context, raised."""
        return self.exceptions[0]

    # The base is generic over what a group may hold; these groups hold exceptions of any type.
    def derive(self, excs: Sequence[Exception], /) -> TileError:  # type: ignore[override]
        """The group that `split` and ``except*`` make of this one's exceptions."""
        return TileError(excs, self.ordinal, self.range)


class ScatterError(CudadrvError, ExceptionGroup[Exception]):
    """Some tiles failed, or there was no device to run any.

    The others' work stands: their items hold the results.
    """

    def __new__(cls, message: str, exceptions: Sequence[Exception]) -> ScatterError:
        """The failures under one message."""
        return super().__new__(cls, message, exceptions)

    def __init__(self, message: str, exceptions: Sequence[Exception]) -> None:
        """A group keeps its arguments in `__new__`."""

    def __str__(self) -> str:
        return f"{self.message}: {'; '.join(str(error) for error in self.exceptions)}"

    @property
    def failures(self) -> tuple[TileError, ...]:
        """The tiles that failed, in the order of their items; empty without a device."""
        return tuple(error for error in self.exceptions if isinstance(error, TileError))

    # The base is generic over what a group may hold; these groups hold exceptions of any type.
    def derive(self, excs: Sequence[Exception], /) -> ScatterError:  # type: ignore[override]
        """The group that `split` and ``except*`` make of some of the failures."""
        return ScatterError(self.message, excs)
