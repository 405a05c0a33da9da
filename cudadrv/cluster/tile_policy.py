"""`TilePolicy`: the size of tiles, retries and progress of scattered work, and a progress bar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from .. import border
from ..errors import ArgumentValueError, RuntimeDependencyUnavailable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress, TaskID


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
    """How an executor divides work into tiles, and repeats tiles and calls.

    Attributes:
        items: how many items a tile has; None makes about eight tiles per worker. Set a number if
            the results of tiles must not depend on the number of workers.
        seconds: how long a call may take before its worker counts as hung; None is no limit.
        redone: how often a call is repeated whose worker died, hung or lost its context.
        retried: how often a call that raised is repeated.
        progress: called with a `Progress` when a tile has ended, in the thread that scatters.
    """

    items: int | None = None
    seconds: float | None = None
    redone: int = 2
    retried: int = 0
    progress: Callable[[Progress], None] | None = None

    def __post_init__(self) -> None:
        border.integer_fields(self, "items", least=1)
        if self.seconds is not None and not border.real("TilePolicy: seconds", self.seconds) > 0:
            shown = border.shown(self.seconds)
            raise ArgumentValueError(f"TilePolicy: seconds is {shown}: give more than 0")
        border.integer_fields(self, "redone", "retried", least=0)
        if self.progress is not None:
            border.function("TilePolicy: progress", self.progress)


class TerminalBar:
    """A function for `TilePolicy.progress` that draws one bar per scatter.

    Args:
        title: the text before the bar.
        console: the console to draw on; None takes the terminal.

    Raises:
        RuntimeDependencyUnavailable: rich is not installed.
    """

    __slots__ = ("__weakref__", "_console", "_drawn", "_title")

    def __init__(self, title: str = "tiles", *, console: Console | None = None) -> None:
        if find_spec("rich") is None:
            words = 'a progress bar needs rich: pip install "cudadrv[cli]"'
            raise RuntimeDependencyUnavailable(words)
        self._title = title
        self._console = console
        self._drawn: tuple[RichProgress, TaskID] | None = None

    def __call__(self, progress: Progress) -> None:
        """Draw the progress."""
        bar, task = self._drawn or self._begun(progress)
        notes = [f"{progress.failed} failed"] * bool(progress.failed)
        notes += [f"{progress.repeated} again"] * bool(progress.repeated)
        bar.update(task, completed=progress.done + progress.failed, notes=", ".join(notes))
        if progress.has_ended:
            bar.stop()
            self._drawn = None

    def _begun(self, progress: Progress) -> tuple[RichProgress, TaskID]:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress as RichProgress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[notes]}"),
            console=self._console,
        )
        task = bar.add_task(self._title, total=progress.tiles, notes="")
        bar.start()
        self._drawn = bar, task
        return self._drawn
