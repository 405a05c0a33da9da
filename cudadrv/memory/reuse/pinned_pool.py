"""`PinnedPool`: pinned memory that is reused, as pinning takes milliseconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ... import border
from ...driver.driver_selection import Driver, current
from ...driver.handle import NotCopyable
from ...driver.locks import process_lock
from ..dtypes import AnyArray, TypedDType
from ..layout import Shape
from ..pinned import array_over, source_of_pages, wait_for_contexts
from .free_lists import FreeLists

_ScalarT = TypeVar("_ScalarT", bound=np.generic)
_LEAST_BYTES = 1 << 12
_MIB = 1 << 20


class PinnedStatistics(NamedTuple):
    """Sizes and counts of a pool of pinned memory; sizes in bytes.

    Attributes:
        cached: pinned, and not in use.
        pinned: how often memory was pinned.
        reused: how often memory was reused instead.
    """

    cached: int
    pinned: int
    reused: int


class _Blocks:
    """The free blocks of a pool on one driver, each with the time when it was freed.

    Work on any device may still use a freed block. So a request that reuses one waits for all
    contexts, unless they were waited for since.
    """

    def __init__(self, driver: Driver, cap_bytes: int | None) -> None:
        self.driver: Driver = driver
        self.lists: FreeLists[tuple[AnyArray, int]] = FreeLists(cap_bytes)
        self._waited = 0

    def give(self, block: AnyArray, now: Callable[[], int] = time.monotonic_ns) -> None:
        """Cache a block, unless that exceeds the limit; a step of a finalizer."""
        blocks = self.lists.of_size(block.nbytes)
        blocks.append((block, now()))
        if len(blocks) > blocks.room:
            self.lists.overflowed(blocks)

    def take(self, nbytes: int) -> AnyArray | None:
        """Return a block that no work uses any more, or None."""
        try:
            block, came_back = self.lists.of_size(nbytes).popleft()
        except IndexError:
            return None
        if came_back >= self._waited:
            begin = time.monotonic_ns()
            wait_for_contexts(self.driver)
            self._waited = begin
        return block


class _Lease:
    """Holds a block for the arrays over it, and returns it to the pool with the last of them."""

    __slots__ = ("_block", "_blocks")

    def __init__(self, block: AnyArray, blocks: _Blocks) -> None:
        self._block = block
        self._blocks = blocks

    @property
    def __array_interface__(self) -> dict[str, object]:
        """The bytes in NumPy's protocol: the array made from it keeps this object."""
        return self._block.__array_interface__

    def __del__(self) -> None:
        self._blocks.give(self._block)


class PinnedPool(NotCopyable):
    """Pinned host memory that is reused when the arrays over it have been freed.

    Sizes are rounded up to powers of two, and from 1 MiB on to whole MiB. Memory is reused only
    after all work that any context had queued when it was freed. The first request that finds such
    memory waits for that work.

    Args:
        max_cached_bytes: the most bytes that may be cached; None is no limit. Above it the largest
            blocks are freed first.
        numa_node: the number of the NUMA node of the host whose memory it is, as of `pinned_empty`.

    Raises:
        UnsupportedError: `numa_node` was given, and the driver has no pools of NUMA nodes.
    """

    __slots__ = ("__weakref__", "_blocks", "_lock", "_most", "_pin", "_pinned", "_reused")

    def __init__(
        self, max_cached_bytes: int | None = None, *, numa_node: int | None = None
    ) -> None:
        if max_cached_bytes is not None:
            max_cached_bytes = border.int_in_range("PinnedPool: max_cached_bytes", max_cached_bytes)
        self._most = max_cached_bytes
        self._pin = source_of_pages("PinnedPool", numa_node)
        self._blocks: _Blocks | None = None
        self._pinned = self._reused = 0
        self._lock = process_lock()

    @overload
    def empty(self, shape: Shape, dtype: TypedDType[_ScalarT]) -> npt.NDArray[_ScalarT]: ...
    # A dtype given as text has no static type.
    @overload
    def empty(self, shape: Shape, dtype: npt.DTypeLike) -> AnyArray: ...
    def empty(self, shape: Shape, dtype: npt.DTypeLike) -> AnyArray:
        """Return a C-contiguous host array in pinned memory, not initialised, as `pinned_empty`
        does.

        Raises:
            OutOfMemoryError: the system cannot pin so much.
            DTypeError: the dtype holds Python objects.
        """
        return array_over(shape, dtype, self._memory)

    def _memory(self, nbytes: int) -> npt.NDArray[np.uint8]:
        if nbytes > border.LARGEST:
            return self._pin(nbytes)  # raises for it
        blocks, driver = self._blocks, current()
        if blocks is None or blocks.driver is not driver:  # such as after an emulator has ended
            blocks = self._blocks = _Blocks(driver, self._most)
        size = _rounded(nbytes)
        block = blocks.take(size)
        if block is None:
            block = self._pin(size)
            with self._lock:
                self._pinned += 1
        else:
            with self._lock:
                self._reused += 1
        memory: npt.NDArray[np.uint8] = np.asarray(_Lease(block, blocks))
        return memory[:nbytes]

    def __repr__(self) -> str:
        cached, pinned, reused = self.statistics()
        return f"<PinnedPool {cached} bytes cached, pinned {pinned} times, reused {reused} times>"

    def statistics(self) -> PinnedStatistics:
        """The cached bytes, and how often memory was pinned or reused."""
        blocks = self._blocks
        cached = 0 if blocks is None else blocks.lists.cached_bytes
        return PinnedStatistics(cached, self._pinned, self._reused)

    def trim(self) -> None:
        """Free all cached memory, which waits for the work of all contexts.

        Arrays in use are unaffected; the pool may be used again.
        """
        self._blocks = None


def _rounded(nbytes: int) -> int:
    if nbytes <= _MIB:
        return max(_LEAST_BYTES, 1 << (nbytes - 1).bit_length())
    return -(-nbytes // _MIB) * _MIB
