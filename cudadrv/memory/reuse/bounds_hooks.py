"""Hooks that report reused memory to an emulator that checks bounds or unwritten memory.

They replace the plain dicts and lists of an allocator's records; so an allocator without an
observer does no extra work.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsIndex

from ...driver._api import MemoryWatch


class WatchedBlocks(dict[int, int]):
    """The blocks in use, address to size."""

    def __init__(self, watch: MemoryWatch) -> None:
        super().__init__()
        self._watch = watch

    def __setitem__(self, address: int, nbytes: int) -> None:
        super().__setitem__(address, nbytes)
        self._watch.lend(address, nbytes)

    def pop(self, address: int, default: object = None) -> int | None:  # type: ignore[override]  # as it is called here
        """Remove a block and return its size; None if it was not in use."""
        size = super().pop(address, None)
        if size is not None:
            self._watch.take_back(address)
        return size


class WatchedHold(list[bool]):
    """Whether a caller holds a slab: not empty while one does."""

    def __init__(
        self, holds: Iterable[bool], watch: MemoryWatch, address: int, nbytes: int
    ) -> None:
        super().__init__(holds)
        self._watch = watch
        self._address = address
        self._nbytes = nbytes

    def append(self, hold: bool) -> None:
        """Record that a caller holds it."""
        super().append(hold)
        self._watch.lend(self._address, self._nbytes)

    def pop(self, index: SupportsIndex = -1, /) -> bool:
        """Record that no caller holds it.

        Raises:
            IndexError: no caller held it before.
        """
        hold = super().pop(index)
        self._watch.take_back(self._address)
        return hold
