"""`TerminalBar`: the progress of scattered work in the terminal."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..errors import RuntimeDependencyUnavailable
from .tile_policy import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as RichProgress, TaskID


class TerminalBar:
    """A function for `TilePolicy.progress` that draws one bar a scatter.

    Args:
        title: the text before the bar.
        console: the console to draw on; None takes the terminal.

    Raises:
        RuntimeDependencyUnavailable: rich is not installed.
    """

    def __init__(self, title: str = "tiles", *, console: Console | None = None) -> None:
        if find_spec("rich") is None:
            raise RuntimeDependencyUnavailable('a bar needs rich: pip install "cudadrv[cli]"')
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
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[notes]}"),
            console=self._console,
        )  # fmt: skip
        task = bar.add_task(self._title, total=progress.tiles, notes="")
        bar.start()
        self._drawn = bar, task
        return self._drawn
