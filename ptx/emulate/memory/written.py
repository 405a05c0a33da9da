"""Which bytes of a device's memory were written since they were allocated: a flag beside each."""

from __future__ import annotations

from enum import IntEnum
from mmap import PAGESIZE, mmap
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[Any]  # unsigned, of as many bytes as the elements that they stand for

MADV_DONTNEED: Final = 4  # Linux; named in mmap only there
WORD: Final = 4
"""Fewer bytes that are copied may be padding alone, as code for debuggers copies each by itself."""
_MANY: Final = 1 << 20  # bytes that are worth a call of the system
_UNSIGNED: Final[dict[int, type[np.unsignedinteger[Any]]]] = {
    1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64,
}  # fmt: skip
WRITTEN: Final[dict[int, np.unsignedinteger[Any]]] = {
    nbytes: kind(int.from_bytes(b"\1" * nbytes, "little")) for nbytes, kind in _UNSIGNED.items()
}
"""The flags of an element whose bytes were all written, by its size."""


class Use(IntEnum):
    """What becomes of a value that was loaded."""

    NONE = 0
    COPIED = 1
    USED = 2


class WrittenBytes:
    """One flag for each byte of a memory; offsets are from its beginning.

    Args:
        flags: (nbytes,) uint8 zeros, committed where they are written.
        pages: what they lie in, where the system can take it back; None if it cannot.

    Attributes:
        version: changes when bytes become unwritten that were written.
    """

    def __init__(self, flags: NDArray[np.uint8], pages: mmap | None) -> None:
        self._flags = flags
        self._pages = pages
        self._views: dict[int, Flags] = {
            nbytes: flags.view(kind) for nbytes, kind in _UNSIGNED.items()
        }
        self._reached = 0  # nothing from here on was ever written
        self.version: int = 0

    def elements(self, nbytes: int) -> Flags:
        """The flags of all elements of so many bytes."""
        return self._views[nbytes]

    def of(self, start: int, nbytes: int) -> NDArray[np.uint8]:
        """The flags of some bytes."""
        return self._flags[start : start + nbytes]

    def begin(self, start: int, nbytes: int) -> None:
        """These bytes are fresh: nothing has written them."""
        self.version += 1
        end = min(start + nbytes, self._reached)
        if end - start > _MANY and self._pages is not None:
            first, last = -(-start // PAGESIZE) * PAGESIZE, end // PAGESIZE * PAGESIZE
            self._pages.madvise(MADV_DONTNEED, first, last - first)  # they read as zeros then
            self._flags[start:first] = 0
            self._flags[last:end] = 0
        elif start < end:
            self._flags[start:end] = 0
        self._reached = max(self._reached, start + nbytes)

    def settle(self) -> None:
        """Find out what others have written that do not say so; nobody here."""

    def mark(self, start: int, nbytes: int) -> None:
        """These bytes were written."""
        self._flags[start : start + nbytes] = 1

    def put(self, start: int, flags: NDArray[np.uint8]) -> None:
        """These bytes were copied from elsewhere, with their flags."""
        self._flags[start : start + len(flags)] = flags
        if not flags.all():
            self.version += 1
