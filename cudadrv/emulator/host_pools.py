"""Pools of host memory, page-locked or managed, and which of them is in use for a place.

CUDA Driver API, cuMemPoolCreate, cuMemGetDefaultMemPool, cuMemSetMemPool.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .pools import Pool, PoolPlace

_PAGE: Final = 4096
_ENDLESS: Final = 1 << 62  # bytes: that the host has no more, its allocator says


class HostPools:
    """The pools of host memory by handle; whoever changes one holds the emulator's lock.

    Attributes:
        by_handle: also the destroyed ones while their memory is in use.
    """

    def __init__(self, handles: Iterator[int]) -> None:
        self._handles = handles
        self.by_handle: dict[int, Pool] = {}
        self._defaults: dict[PoolPlace, Pool] = {}
        self._in_use: dict[PoolPlace, Pool] = {}

    def made(self, place: PoolPlace, most: int = 0) -> Pool:
        """A new pool."""
        pool = Pool(next(self._handles), most, place=place)
        self.by_handle[pool.handle] = pool
        return pool

    def default(self, place: PoolPlace) -> Pool:
        """The pool that a place has from the beginning."""
        found = self._defaults.get(place)
        if found is None:
            found = self._defaults[place] = self.made(place)
        return found

    def in_use(self, place: PoolPlace) -> Pool:
        """The pool that was chosen for a place, or the default one."""
        return self._in_use.get(place) or self.default(place)

    def use(self, place: PoolPlace, pool: Pool) -> None:
        """Choose a pool for its place."""
        self._in_use[place] = pool

    def is_default(self, pool: Pool) -> bool:
        """Whether a place has it from the beginning."""
        return pool in self._defaults.values()

    def take(self, pool: Pool, nbytes: int) -> bool:
        """Account for an allocation; False where the pool may not have as much."""
        held = _held(nbytes)
        growth = pool.growth(held, _ENDLESS)
        if growth is None:
            return False
        pool.take(nbytes, held, growth)
        return True

    def give(self, pool: Pool, nbytes: int) -> None:
        """Account for a free; the last one of a destroyed pool ends it."""
        pool.give(nbytes, _held(nbytes))
        if not pool.is_open:
            self._drop(pool)

    def destroy(self, pool: Pool) -> None:
        """Take a pool away; what it gave lives on."""
        pool.is_open = False
        for place, chosen in list(self._in_use.items()):
            if chosen is pool:
                del self._in_use[place]
        self._drop(pool)

    def _drop(self, pool: Pool) -> None:
        pool.reserved = pool.held
        if not pool.held:
            self.by_handle.pop(pool.handle, None)

    def synchronised(self) -> None:
        """What a synchronisation does: unused memory above the threshold goes back."""
        for pool in tuple(self.by_handle.values()):
            pool.synchronised()


def _held(nbytes: int) -> int:
    """Bytes with the rounding to pages."""
    return -(-nbytes // _PAGE) * _PAGE
