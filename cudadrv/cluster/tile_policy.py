"""How scattered work is cut into tiles, when it is done again, and who is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import border
from ..errors import ArgumentValueError


@dataclass(frozen=True, slots=True)
class Progress:
    """How far scattered work is.

    Attributes:
        tiles: how many there are.
        done: how many have succeeded.
        failed: how many have failed for good.
        items: how many items there are.
        items_done: how many are of tiles that have succeeded.
        repeated: how often a tile was begun again.
        seconds: since the beginning.
        has_ended: whether nothing more comes, also where an error ended it.
    """

    tiles: int
    done: int
    failed: int
    items: int
    items_done: int
    repeated: int
    seconds: float
    has_ended: bool


@dataclass(frozen=True, slots=True)
class TilePolicy:
    """What an executor does with tiles, and with calls.

    Attributes:
        items: how many items a tile has; None makes some eight tiles a worker. Give it where the
            results of tiles are to be the same for any number of workers.
        seconds: how long a call may take before its worker counts as hung; None waits for ever.
        redone: how often a call is begun again whose worker died, hung or lost its context.
        retried: how often a call is begun again that raised.
        progress: is told of each tile that is done, in the thread that scatters.
    """

    items: int | None = None
    seconds: float | None = None
    redone: int = 2
    retried: int = 0
    progress: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        if self.items is not None:
            border.whole("TilePolicy: items", self.items, least=1)
        if self.seconds is not None and not border.real("TilePolicy: seconds", self.seconds) > 0:
            raise ArgumentValueError(f"TilePolicy: seconds is {self.seconds}: give more than 0")
        border.whole("TilePolicy: redone", self.redone)
        border.whole("TilePolicy: retried", self.retried)
        if self.progress is not None:
            border.function("TilePolicy: progress", self.progress)
