"""Dependencies between consecutive launches. PTX ISA, "griddepcontrol"."""

from __future__ import annotations

from collections.abc import Iterable


class GridDependency:
    """A launch that may begin before its predecessor has ended.

    Attributes:
        ahead: the launch that it depends on; None if it began after that one's end.
        is_done: whether it has ended.
        permits_dependents: whether all of its blocks have released the next launch, or have ended.
    """

    def __init__(self) -> None:
        self.ahead: GridDependency | None = None
        self.is_done: bool = False
        self.permits_dependents: bool = False
        self._blocks: set[int] = set()

    @property
    def may_go_on(self) -> bool:
        """True if `griddepcontrol.wait` waits no longer."""
        if self.ahead is not None and self.ahead.is_done:
            self.ahead = None
        return self.ahead is None

    def release_dependents(self, blocks: Iterable[int], grid: int) -> bool:
        """Record that blocks release the next launch; return whether one of them is new.

        `grid` is the number of blocks in the grid.
        """
        before = len(self._blocks)
        self._blocks.update(blocks)
        self.permits_dependents = len(self._blocks) == grid
        return len(self._blocks) > before
