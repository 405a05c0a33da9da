"""What was said of ranges of managed memory: advice, and where it was prefetched to.

CUDA Driver API, cuMemAdvise, cuMemRangeGetAttribute. Here the memory is everywhere at once, so that
it is kept and has no effect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

_PAGE: Final = 4096


class Somewhere(NamedTuple):
    """A CUmemLocation: numbers of its type, and of the device or NUMA node."""

    kind: int
    number: int


@dataclass(frozen=True, slots=True)
class Told:
    """What was said of a page.

    Attributes:
        is_read_mostly: whether copies of it may be in several places.
        preferred: where it would rather be.
        accessed_by: ordinals of devices that access it, -1 for the host.
        prefetched: where it was prefetched to last.
    """

    is_read_mostly: bool = False
    preferred: Somewhere | None = None
    accessed_by: frozenset[int] = frozenset()
    prefetched: Somewhere | None = None


class ManagedRanges:
    """What was said of the pages of one allocation, of which there are few different parts.

    Whoever changes it holds the emulator's lock.
    """

    def __init__(self, nbytes: int, preferred: Somewhere | None) -> None:
        # Where each part begins, in pages, and what was said of it; the last one has no pages.
        self._starts = [0, _pages(nbytes)]
        self._told = [Told(preferred=preferred)]

    def change(self, offset: int, nbytes: int, change: Callable[[Told], Told]) -> None:
        """Say something of bytes, which is said of their pages."""
        first, end = self._cut(offset // _PAGE), self._cut(_pages(offset + nbytes))
        self._told[first:end] = [change(each) for each in self._told[first:end]]

    def _cut(self, page: int) -> int:
        """Let a part begin at a page; which one that is."""
        for at, start in enumerate(self._starts):
            if start == page:
                return at
            if start > page:
                self._starts.insert(at, page)
                self._told.insert(at, self._told[at - 1])
                return at
        return len(self._told)

    def of(self, offset: int, nbytes: int) -> list[Told]:
        """All that was said of some bytes."""
        first, end = offset // _PAGE, _pages(offset + nbytes)
        bounds = zip(self._starts, self._starts[1:], strict=False)
        return [
            told
            for told, (start, stop) in zip(self._told, bounds, strict=True)
            if start < end and first < stop
        ]


def _pages(nbytes: int) -> int:
    return -(-nbytes // _PAGE)
