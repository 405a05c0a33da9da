"""`PinnedPool`: pinned memory that is lent again, as pinning takes milliseconds."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ... import border
from ...driver.driver_selection import Driver, current
from ...driver.handle import NotCopyable
from ..dtypes import AnyArray, TypedDType
from ..host.pinned import array_over, pinned_empty, wait_for_contexts
from ..layout import Shape

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_LEAST_BYTES = 1 << 12
_MIB = 1 << 20


class PinnedStatistics(NamedTuple):
    """What a pool of pinned memory holds; sizes in bytes.

    Attributes:
        cached: pinned, and not in use.
        pinned: how often memory was pinned.
        reused: how often memory was lent again instead.
    """

    cached: int
    pinned: int
    reused: int


class _Shelves:
    """The free blocks of a pool, by size, of one driver.

    What comes back may still be used by work on any device, which nobody knows of. So it lies apart
    until all contexts were waited for.

    Attributes:
        most: bytes that may lie here; None is no limit.
    """

    def __init__(self, driver: Driver, most: int | None) -> None:
        self.driver: Driver = driver
        self.most: int | None = most
        self.ready: dict[int, deque[AnyArray]] = {}
        self.back: dict[int, deque[AnyArray]] = {}

    def cached_bytes(self) -> int:
        """Bytes that lie here."""
        shelves = (*tuple(self.ready.items()), *tuple(self.back.items()))
        return sum(nbytes * len(blocks) for nbytes, blocks in shelves)

    def take_back(self, block: AnyArray) -> None:
        """Keep a block, unless there are too many; a step of a finalizer, without a lock."""
        if self.most is None or self.cached_bytes() + block.nbytes <= self.most:
            self.back.setdefault(block.nbytes, deque()).append(block)

    def take(self, nbytes: int) -> AnyArray | None:
        """A block of a size that no work uses any more."""
        ready = self.ready.setdefault(nbytes, deque())
        try:
            return ready.popleft()
        except IndexError:
            pass
        if not self.back.get(nbytes):
            return None
        taken = [(size, blocks, len(blocks)) for size, blocks in tuple(self.back.items())]
        wait_for_contexts(self.driver)
        for size, blocks, count in taken:  # what comes back meanwhile was not waited for
            for _ in range(count):
                try:
                    self.ready.setdefault(size, deque()).append(blocks.popleft())
                except IndexError:
                    break  # another thread took it
        try:
            return ready.popleft()
        except IndexError:
            return None


class _Lease:
    """Holds a block for the arrays over it, and gives it back with the last of them."""

    __slots__ = ("_block", "_shelves")

    def __init__(self, block: AnyArray, shelves: _Shelves) -> None:
        self._block = block
        self._shelves = shelves

    @property
    def __array_interface__(self) -> dict[str, object]:
        """The bytes, as NumPy takes them: the array made from it keeps this object."""
        return self._block.__array_interface__

    def __del__(self) -> None:
        self._shelves.take_back(self._block)


class PinnedPool(NotCopyable):
    """Pinned host memory that is lent again when the arrays over it have gone.

    Sizes are rounded up to powers of two, and from 1 MiB on to whole MiB. Memory is lent again only
    after the work of every context that was queued when it was given back: the first request that
    finds such memory waits for that.

    Args:
        max_cached_bytes: the most that may lie unused; None is no limit.
    """

    def __init__(self, max_cached_bytes: int | None = None) -> None:
        if max_cached_bytes is not None:
            max_cached_bytes = border.whole("PinnedPool: max_cached_bytes", max_cached_bytes)
        self._most = max_cached_bytes
        self._shelves: _Shelves | None = None
        self._pinned = self._reused = 0

    @overload
    def empty(self, shape: Shape, dtype: TypedDType[_ScalarT]) -> npt.NDArray[_ScalarT]: ...
    # A dtype given as text says nothing to a type checker.
    @overload
    def empty(self, shape: Shape, dtype: npt.DTypeLike) -> AnyArray: ...
    def empty(self, shape: Shape, dtype: npt.DTypeLike) -> AnyArray:
        """A C-contiguous host array in pinned memory, not initialised: as of `pinned_empty`.

        Raises:
            OutOfMemoryError: the system cannot pin so much.
            DTypeError: the dtype holds Python objects.
        """
        return array_over(shape, dtype, self._lent)

    def _lent(self, nbytes: int) -> npt.NDArray[np.uint8]:
        if nbytes > border.LARGEST:
            return pinned_empty(nbytes, np.uint8)  # which refuses it
        shelves, driver = self._shelves, current()
        if shelves is None or shelves.driver is not driver:  # such as of an emulator that ended
            shelves = self._shelves = _Shelves(driver, self._most)
        size = _rounded(nbytes)
        block = shelves.take(size)
        if block is None:
            block = pinned_empty(size, np.uint8)
            self._pinned += 1
        else:
            self._reused += 1
        memory: npt.NDArray[np.uint8] = np.asarray(_Lease(block, shelves))
        return memory[:nbytes]

    def __repr__(self) -> str:
        cached, pinned, reused = self.statistics()
        return f"<PinnedPool {cached} bytes cached, pinned {pinned} times, reused {reused} times>"

    def statistics(self) -> PinnedStatistics:
        """What lies unused, and how often memory was pinned or lent again."""
        shelves = self._shelves
        cached = 0 if shelves is None else shelves.cached_bytes()
        return PinnedStatistics(cached, self._pinned, self._reused)

    def trim(self) -> None:
        """Give all that lies unused back to the system, which waits for the work of all contexts.

        What is in use goes on; the pool may be used again.
        """
        self._shelves = None


def _rounded(nbytes: int) -> int:
    if nbytes <= _MIB:
        return max(_LEAST_BYTES, 1 << (nbytes - 1).bit_length())
    return -(-nbytes // _MIB) * _MIB
