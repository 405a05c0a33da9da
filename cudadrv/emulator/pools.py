"""Memory pools of devices and of the host: their byte counts, and those of device memory.

CUDA Driver API, "Stream Ordered Memory Allocator", cuMemPoolCreate, cuMemSetMemPool. Pure
arithmetic; the bytes themselves are in the device's memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from ptx.emulate import DeviceMemory

from ..driver._api import CUmemLocationType
from .shared_file import SharedFile

DEVICE: Final = int(CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE)
HOST: Final = int(CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST)
HOST_NUMA: Final = int(CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA)
HOST_NUMA_CURRENT: Final = 4  # CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
PINNED, MANAGED = 1, 2  # CU_MEM_ALLOCATION_TYPE_PINNED, _MANAGED
ANYWHERE: Final = 0  # CU_MEM_LOCATION_TYPE_NONE, of managed memory
CHUNK = 32 << 20  # a pool allocates and frees memory in pieces of this size
_PAGE: Final = 4096
_UNKNOWN: Final = (-1, 0, 0)  # sums that are to be added up again
_ENDLESS: Final = 1 << 62  # bytes: the host's allocator reports when memory is exhausted


class PoolLocation(NamedTuple):
    """The location of a pool's memory, and its kind.

    Attributes:
        kind: a number of CUmemLocationType.
        number: of the device or the NUMA node; 0 if there is none.
        is_managed: whether it migrates; then the location is the preferred one.
    """

    kind: int
    number: int = 0
    is_managed: bool = False


@dataclass(eq=False, repr=False, slots=True)
class GraphMemory:
    """Memory that a node of a graph allocates.

    Attributes:
        location: where it is, and its kind.
        live: allocated by a launch and not freed since.
    """

    nbytes: int
    location: PoolLocation
    live: bool = field(default=False, kw_only=True)


def _in_chunks(nbytes: int) -> int:
    return -(-nbytes // CHUNK) * CHUNK


@dataclass(slots=True)
class Pool:
    """One pool.

    Attributes:
        handle: its number.
        most: bytes that it may reserve, rounded up to chunks (driver 580 does so); 0 is no limit.
        is_open: whether it was not destroyed; its memory outlives it.
        threshold: bytes that a synchronisation leaves reserved.
        reserved: bytes allocated from the device, used or not.
        used_high, reserved_high: the highest values since they were reset.
        reuse: the three reuse policies, by attribute number; stored without effect.
        peers: ordinals of the other devices that may access its memory; for a pool of host memory,
            of all devices that may.
        file: the file of its memory, if other processes may open it. For a pool of a device an
            offset there equals the address's offset in the device.
        is_foreign: whether it belongs to another process, and allocates no memory here.
        location: the location of its memory, unless it is a device's own.
    """

    handle: int
    most: int = 0
    is_open: bool = True
    threshold: int = 0
    used_high: int = 0
    reserved: int = 0
    reserved_high: int = 0
    reuse: dict[int, int] = field(default_factory=lambda: {1: 1, 2: 1, 3: 1})
    peers: set[int] = field(default_factory=set)
    file: SharedFile | None = None
    is_foreign: bool = False
    location: PoolLocation | None = None
    _held: dict[int, tuple[int, int]] = field(default_factory=dict)
    _sums: tuple[int, int, int] = (0, 0, 0)

    @property
    def used(self) -> int:
        """Bytes allocated and not freed."""
        return self._counted()[1]

    @property
    def rounded(self) -> int:
        """The same, with the rounding of the allocator."""
        return self._counted()[2]

    def _counted(self) -> tuple[int, int, int]:
        """Return the number of allocations and their bytes, added up again after an interrupt."""
        sums = self._sums
        if sums[0] != len(self._held):
            held = list(self._held.values())
            sums = len(held), sum(nbytes for nbytes, _ in held), sum(size for _, size in held)
            self._sums = sums
        return sums

    @property
    def slack(self) -> int:
        """Bytes that are reserved and not used."""
        return self.reserved - self.rounded

    def growth(self, rounded: int, available: int) -> int | None:
        """Return bytes to reserve for an allocation; None if `available` is too little.

        A multiple of the chunk size if it fits, else just the bytes needed.
        """
        if self.most:
            available = min(available, _in_chunks(self.most) - self.reserved)
        missing = rounded - self.slack
        if missing <= 0:
            return 0
        in_chunks = _in_chunks(missing)
        return in_chunks if in_chunks <= available else (missing if missing <= available else None)

    def take(self, address: int, nbytes: int, rounded: int, growth: int) -> None:
        """Count an allocation."""
        count, used, all_rounded = self._counted()
        self.reserved += growth
        self._held[address] = nbytes, rounded
        self._sums = count + 1, used + nbytes, all_rounded + rounded
        self.used_high = max(self.used_high, self.used)
        self.reserved_high = max(self.reserved_high, self.reserved)

    def count_use(self, address: int, nbytes: int) -> None:
        """Count an allocation's memory as used: none from the call of its free on.

        While the free is queued, the memory stays reserved: measured with driver 580.
        """
        count, used, all_rounded = self._counted()
        former, rounded = self._held[address]
        self._sums = _UNKNOWN
        self._held[address] = nbytes, rounded
        self._sums = count, used - former + nbytes, all_rounded
        self.used_high = max(self.used_high, self.used)

    def give(self, address: int) -> None:
        """Count a free, once: the memory stays reserved."""
        count, used, all_rounded = self._counted()
        nbytes, rounded = self._held.pop(address, (0, 0))
        if len(self._held) < count:
            self._sums = count - 1, used - nbytes, all_rounded - rounded

    def trim(self, keep: int) -> None:
        """Release unused memory, down to `keep` bytes (cuMemPoolTrimTo)."""
        self.reserved = min(self.reserved, _in_chunks(max(self.rounded, keep)))

    def synchronised(self) -> None:
        """Release memory above the threshold, as a synchronisation does."""
        if self.reserved > self.threshold:
            self.trim(self.threshold)


class HostPools:
    """The pools of host memory by handle; callers that change one hold the emulator's lock.

    Attributes:
        by_handle: also the destroyed ones while their memory is in use.
    """

    def __init__(self, handles: Iterator[int]) -> None:
        self._handles = handles
        self.by_handle: dict[int, Pool] = {}
        self._defaults: dict[PoolLocation, Pool] = {}
        self._in_use: dict[PoolLocation, Pool] = {}

    def create(
        self,
        location: PoolLocation,
        max_bytes: int = 0,
        *,
        file: SharedFile | None = None,
        is_foreign: bool = False,
    ) -> Pool:
        """Make a pool, or one that stands for a pool of another process."""
        pool = Pool(
            next(self._handles), max_bytes, file=file, is_foreign=is_foreign, location=location
        )
        self.by_handle[pool.handle] = pool
        return pool

    def default(self, location: PoolLocation) -> Pool:
        """Return the default pool of a location."""
        pool = self._defaults.get(location)
        if pool is None:
            pool = self._defaults[location] = self.create(location)
        return pool

    def in_use(self, location: PoolLocation) -> Pool:
        """Return the pool that was chosen for a location, or the default one."""
        return self._in_use.get(location) or self.default(location)

    def use(self, location: PoolLocation, pool: Pool) -> None:
        """Choose a pool for its location."""
        self._in_use[location] = pool

    def is_default(self, pool: Pool) -> bool:
        """Return whether it is a location's default pool."""
        return pool in self._defaults.values()

    @staticmethod
    def holds_more(pool: Pool, nbytes: int) -> bool:
        """Return whether the pool's limit allows an allocation."""
        return pool.growth(_rounded(nbytes), _ENDLESS) is not None

    @staticmethod
    def take(pool: Pool, address: int, nbytes: int) -> None:
        """Count an allocation that the limit allows."""
        rounded = _rounded(nbytes)
        pool.take(address, nbytes, rounded, pool.growth(rounded, _ENDLESS) or 0)

    @staticmethod
    def open(pool: Pool, address: int, nbytes: int) -> None:
        """Count memory of another process's pool."""
        rounded = _rounded(nbytes)
        pool.take(address, nbytes, rounded, rounded)

    def give(self, pool: Pool, address: int) -> None:
        """Count a free; the last one of a destroyed pool removes it."""
        pool.give(address)
        if not pool.is_open:
            self._drop(pool)

    def destroy(self, pool: Pool) -> None:
        """Destroy a pool; its memory outlives it."""
        pool.is_open = False
        for location, chosen in self._in_use.copy().items():
            if chosen is pool:
                del self._in_use[location]
        self._drop(pool)

    def _drop(self, pool: Pool) -> None:
        pool.reserved = pool.rounded
        if not pool.rounded:
            self.by_handle.pop(pool.handle, None)
            if pool.file is not None:
                pool.file.close()

    def synchronised(self) -> None:
        """Release unused memory above the thresholds, as a synchronisation does."""
        for pool in list(self.by_handle.values()):
            pool.synchronised()


def _rounded(nbytes: int) -> int:
    """Return bytes rounded up to pages."""
    return -(-nbytes // _PAGE) * _PAGE


class DeviceAccount:
    """The bytes of a device in use, by purpose; callers hold the device's lock.

    Attributes:
        pools: those of the device by handle, also destroyed ones while their memory is in use.
        limit: bytes that may be in use, if a test set a smaller number.
    """

    def __init__(self, memory: DeviceMemory, total: int, own: Pool) -> None:
        self._memory = memory
        self._total = total
        self.pools: dict[int, Pool] = {own.handle: own}
        self.limit: int | None = None

    @property
    def capacity(self) -> int:
        """Bytes that may be in use."""
        return self._total if self.limit is None else min(self._total, self.limit)

    @property
    def free_bytes(self) -> int:
        """Bytes that neither an allocation nor a pool's reserve uses."""
        return max(0, self.capacity - self._memory.used_bytes - self._slack)

    @property
    def _slack(self) -> int:
        """Bytes that pools reserve and do not use."""
        return sum(pool.slack for pool in self.pools.values())

    def take(self, address: int, nbytes: int, rounded: int, pool: Pool | None) -> bool:
        """Count `rounded` bytes, already allocated; False if they exceed the capacity."""
        available = self.capacity - (self._memory.used_bytes - rounded) - self._slack
        growth = None if pool is None else pool.growth(rounded, available)
        if growth is None and rounded > available:
            # The driver frees the unused reserves of others before it reports failure.
            for other in self.pools.values():
                if other is not pool:
                    available += other.slack
                    other.trim(0)
                    available -= other.slack
            growth = None if pool is None else pool.growth(rounded, available)
        if pool is None:
            return rounded <= available
        if growth is None:
            return False
        pool.take(address, nbytes, rounded, growth)
        return True

    def give(self, address: int, pool: Pool | None) -> None:
        """Count a free; the last one of a destroyed pool removes it."""
        if pool is not None:
            pool.give(address)
            if not pool.is_open:
                self._drop(pool)

    def destroy(self, pool: Pool) -> None:
        """Destroy a pool, with its unused reserve; its memory outlives it."""
        pool.is_open = False
        self._drop(pool)

    def _drop(self, pool: Pool) -> None:
        pool.reserved = pool.rounded
        if not pool.rounded:
            self.pools.pop(pool.handle, None)
            if pool.file is not None:
                pool.file.close()

    def out_of_memory(self, nbytes: int, ordinal: int) -> str:
        """Return the reason why an allocation fails."""
        return (
            f"out of memory: {nbytes} bytes asked for on device {ordinal}, "
            f"{self.free_bytes} of {self._total} bytes are free"
            + ("" if self.limit is None else f" within the limit of {self.limit}")
        )


class Location(Protocol):
    """The used fields of a CUmemLocation."""

    @property
    def type(self) -> int:
        """A CUmemLocationType."""

    @property
    def id(self) -> int:
        """The number of the device or the NUMA node."""


class PoolProperties(Protocol):
    """The used fields of a CUmemPoolProps."""

    @property
    def allocType(self) -> int:
        """A CUmemAllocationType."""

    @property
    def handleTypes(self) -> int:
        """The kind of handle for other processes."""

    @property
    def location(self) -> Location:
        """The location of its memory."""

    @property
    def maxSize(self) -> int:
        """Bytes that it may have; 0 is no limit."""
