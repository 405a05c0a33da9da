"""What an emulator that checks bounds is told of memory that is reused, in place of nothing.

The accounts of allocators are plain dicts and lists, which these stand in for; so an allocator that
nobody watches does nothing more for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsIndex

from ...driver._api import MemoryWatch


class WatchedBlocks(dict[int, int]):
    """The blocks in callers' hands, address to size."""

    def __init__(self, watch: MemoryWatch) -> None:
        super().__init__()
        self._watch = watch

    def __setitem__(self, address: int, nbytes: int) -> None:
        super().__setitem__(address, nbytes)
        self._watch.lend(address, nbytes)

    def pop(self, address: int, default: object = None) -> int | None:  # type: ignore[override]  # as it is called here
        """The size of a block that is in use no more; None if it was not."""
        size = super().pop(address, None)
        if size is not None:
            self._watch.take_back(address)
        return size


class WatchedHold(list[bool]):
    """Whether a slab is in a caller's hands: not empty while it is."""

    def __init__(self, held: Iterable[bool], watch: MemoryWatch, address: int, nbytes: int) -> None:
        super().__init__(held)
        self._watch = watch
        self._address = address
        self._nbytes = nbytes

    def append(self, held: bool) -> None:
        """It is in a caller's hands."""
        super().append(held)
        self._watch.lend(self._address, self._nbytes)

    def pop(self, at: SupportsIndex = -1, /) -> bool:
        """It is nobody's any more.

        Raises:
            IndexError: it was nobody's before.
        """
        held = super().pop(at)
        self._watch.take_back(self._address)
        return held
