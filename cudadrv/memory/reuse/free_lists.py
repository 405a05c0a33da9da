"""Free lists under one cap: integer counts that need no lock while a list stays in its room.

`collections.deque` appends and pops atomically, with and without the GIL, so blocks come and go
without a lock. The cap holds all the same, because every list has *room*: a number of blocks that
is reserved for it. The room of all lists together stays within the cap. Only an append past its
list's room takes the lock, to reserve more room or to choose a block to evict.
"""

from __future__ import annotations

import sys
import threading
from bisect import insort
from collections import deque
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

_T = TypeVar("_T")

NO_LIMIT: Final = sys.maxsize
MOST_SIZES: Final = 4096
"""Above this number of sizes, the lists without a free block are dropped."""


class FreeList(deque[_T]):
    """Free blocks of one size, oldest first.

    The caller of an append calls `FreeLists.overflowed` if there are more than `room` then.

    Attributes:
        nbytes: the size of one block.
        room: how many blocks may stay without a check; -1 while it is being changed.
        retired: no longer part of its `FreeLists`; appended blocks are returned at once.
    """

    __slots__ = ("nbytes", "retired", "room")

    def __init__(self, nbytes: int, room: int) -> None:
        super().__init__()
        self.nbytes: int = nbytes
        self.room: int = room
        self.retired: bool = False


class FreeLists(Generic[_T]):
    """The free lists of one cache, and their common cap.

    Args:
        cap_bytes: the most bytes that may be cached; None is no limit.
        limit: the most blocks of a list; above it the oldest is evicted.

    Attributes:
        by_size: the lists of `of_size`; for reading.
    """

    def __init__(self, cap_bytes: int | None = None, limit: int = NO_LIMIT) -> None:
        self._cap_bytes = cap_bytes
        self._limit = limit
        self._unbounded = cap_bytes is None and limit == NO_LIMIT
        # Reentrant: a finalizer that frees a block may run while it is held.
        self._lock = threading.RLock()
        self._lists: list[FreeList[_T]] = []  # in the order of sizes
        self.by_size: dict[int, FreeList[_T]] = {}
        self._room_bytes = 0

    def __len__(self) -> int:
        return len(self._lists)

    @property
    def cap_bytes(self) -> int | None:
        """The most bytes that may be cached, or None."""
        return self._cap_bytes

    @property
    def cached_bytes(self) -> int:
        """Current bytes in free lists."""
        return sum(len(blocks) * blocks.nbytes for blocks in self._lists.copy())

    def new_list(self, nbytes: int) -> FreeList[_T]:
        """Return an empty list for blocks of `nbytes`, under the cap."""
        blocks: FreeList[_T] = FreeList(nbytes, NO_LIMIT if self._unbounded else 0)
        with self._lock:
            insort(self._lists, blocks, key=_block_bytes)
        return blocks

    def of_size(self, nbytes: int) -> FreeList[_T]:
        """Return the one list for blocks of `nbytes`, made at the first call."""
        blocks = self.by_size.get(nbytes)
        if blocks is not None:
            return blocks
        with self._lock:
            if len(self.by_size) >= MOST_SIZES:
                self.retire_empty()
                for size, free_list in self.by_size.copy().items():
                    if free_list.retired:
                        del self.by_size[size]
            if nbytes not in self.by_size:
                self.by_size[nbytes] = self.new_list(nbytes)
            return self.by_size[nbytes]

    def overflowed(self, blocks: FreeList[_T]) -> list[_T]:
        """Make room for a list with more blocks than room; return the blocks to free instead.

        In a list at its limit the oldest block is evicted. Over the cap the largest blocks are
        evicted first, whichever list they are in.
        """
        evicted: list[_T] = []
        with self._lock:
            while len(blocks) > blocks.room:
                if blocks.retired or blocks.room >= self._limit:
                    _take(blocks, evicted)
                elif self._has_room(blocks.nbytes):
                    blocks.room += 1
                    self._room_bytes += blocks.nbytes
                else:
                    self._evict_largest(evicted)
        return evicted

    def drain(self, keep_bytes: int = 0) -> list[_T]:
        """Take blocks out, the largest first, until at most `keep_bytes` are cached."""
        blocks_out: list[_T] = []
        with self._lock:
            excess = self.cached_bytes - keep_bytes
            for blocks in reversed(self._lists):
                while excess > 0 and _take(blocks, blocks_out):
                    excess -= blocks.nbytes
                self._shrink(blocks)
        return blocks_out

    def take_out(self, selected: set[_T]) -> list[_T]:
        """Remove and return the blocks of `selected` that are in a list."""
        removed: list[_T] = []
        with self._lock:
            # Each block is popped and appended again: other threads change a list meanwhile, so
            # that it cannot be iterated.
            for blocks in self._lists.copy():
                for _ in range(len(blocks)):
                    oldest: list[_T] = []
                    if not _take(blocks, oldest):
                        break
                    if oldest[0] in selected:
                        removed += oldest
                    else:
                        blocks.extend(oldest)
        return removed

    def retire_empty(self, among: Iterable[FreeList[_T]] | None = None) -> None:
        """Remove empty lists from the records, and mark them `retired`.

        Args:
            among: the lists to look at; None is all.
        """
        with self._lock:
            for blocks in self._lists.copy() if among is None else tuple(among):
                room, blocks.room = blocks.room, -1
                if blocks:
                    blocks.room = room
                else:
                    blocks.retired, blocks.room = True, 0
                    self._room_bytes -= 0 if self._unbounded else room * blocks.nbytes
            self._lists = [blocks for blocks in self._lists if not blocks.retired]

    def _has_room(self, nbytes: int) -> bool:
        """Return whether `nbytes` more may be reserved, after reclaiming unused room if need be."""
        if self._cap_bytes is None:
            return True
        for blocks in reversed(self._lists):
            if self._room_bytes + nbytes <= self._cap_bytes:
                break
            self._shrink(blocks)
        return self._room_bytes + nbytes <= self._cap_bytes

    def _shrink(self, blocks: FreeList[_T]) -> None:
        """Reclaim the room that a list does not use; `_lock` is held.

        Room becomes -1 before the length is read. An append that this reading misses comes after
        it; so its own check finds too little room and waits for the lock.
        """
        if self._unbounded:
            return
        room, blocks.room = blocks.room, -1
        reserved = min(room, len(blocks))
        self._room_bytes -= (room - reserved) * blocks.nbytes
        blocks.room = reserved

    def _evict_largest(self, evicted: list[_T]) -> None:
        """Evict one of the largest blocks, with its room; `_lock` is held."""
        for blocks in reversed(self._lists):
            if _take(blocks, evicted):
                self._shrink(blocks)
                return


def _take(blocks: FreeList[_T], into: list[_T]) -> bool:
    """Move the oldest block to `into`; return whether there was one."""
    try:
        into.append(blocks.popleft())
    except IndexError:
        return False  # another thread took it first
    return True


def _block_bytes(blocks: FreeList[_T]) -> int:
    return blocks.nbytes
