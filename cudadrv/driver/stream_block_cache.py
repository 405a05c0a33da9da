"""Small blocks of device memory that a stream caches when they are freed, and reuses.

Memory that only its own stream has used is free, in the order of that stream, once nothing refers
to it. Later work of the stream comes after every use. The driver's pool would hand it to the same
stream at once. So the stream may reuse it without a call of the driver, which takes longer than all
the rest of an allocation.
"""

from __future__ import annotations

import os
from typing import Final, TypeAlias

from ._api import CUdeviceptr
from .registry import Registry

LARGEST_BYTES: Final = 64 << 10
"""The largest block that is cached."""
_MOST_BYTES: Final = 64 << 10  # per size, but one block in any case
_MOST_BLOCKS: Final = 16
_MOST_SIZES: Final = 64


# The driver's pointer, and the address as an int: reading it takes as long as a tenth of an
# allocation.
Block: TypeAlias = tuple[CUdeviceptr, int]


class SizeBin(list[Block]):
    """Blocks of one size.

    Attributes:
        most: the most blocks to cache.
    """

    __slots__ = ("most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most: int = most


# Those with bins.
_all: Final[Registry[StreamBlockCache]] = Registry()


class StreamBlockCache(dict[int, SizeBin]):
    """The free blocks of a stream, by size. Each step is one list or dict operation: no lock.

    A size is never removed: memory in use refers to the list that it will return to. So this has
    all lists until the stream is destroyed, which is after all of its memory.

    Attributes:
        is_open: whether there may be blocks of a further size.
    """

    __slots__ = ("__weakref__", "is_open")

    is_open: bool  # set by its stream: a method that does so would be called for each stream

    def of_size(self, nbytes: int) -> SizeBin | None:
        """Return the bin that memory of a size is freed to; None for the driver's pool."""
        size_bin = self.get(nbytes)
        if (
            size_bin is None
            and self.is_open
            and nbytes <= LARGEST_BYTES
            and len(self) < _MOST_SIZES
        ):
            if not self:
                _all.add(self)  # before its first block: a forked child drops the blocks
            most = max(1, min(_MOST_BLOCKS, _MOST_BYTES // nbytes))
            size_bin = self.setdefault(nbytes, SizeBin(most))
        return size_bin

    def close(self) -> None:
        """Cache no block from now on."""
        self.is_open = False
        for size_bin in list(self.values()):
            size_bin.most = 0


def _forget() -> None:
    """Drop the blocks in a forked child: they belong to its parent."""
    for memory in _all.alive():
        memory.close()
        for size_bin in list(memory.values()):
            size_bin.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
