"""`TilePolicy`: the size of tiles, retries and progress of scattered work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .. import border
from ..errors import ArgumentValueError


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of scattered work.

    Attributes:
        tiles: how many tiles the work has.
        done: how many have succeeded.
        failed: how many have failed for good.
        items: how many items the work has.
        items_done: how many items belong to tiles that have succeeded.
        repeated: how often a tile was begun again.
        seconds: the time since the beginning.
        has_ended: whether this is the last report, also where an error ended the work.
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
        items: how many items a tile has; None makes some eight tiles a worker. Give a number where
            the results of tiles have to be the same for any number of workers.
        seconds: how long a call may take before its worker counts as hung; None waits for ever.
        redone: how often a call is begun again whose worker died, hung or lost its context.
        retried: how often a call that raised is begun again.
        progress: called with a `Progress` when a tile has ended, in the thread that scatters.
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
