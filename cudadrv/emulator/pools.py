"""The accounts of a memory pool: what is used, what is reserved, what may be kept.

CUDA Driver API, "Stream Ordered Memory Allocator". Pure arithmetic; the bytes themselves are in
the device's memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .interprocess.shared_file import SharedFile

CHUNK = 32 << 20  # a pool takes and gives back memory in pieces of this size


@dataclass(frozen=True, slots=True)
class PoolPlace:
    """Where the memory of a pool is, and of what kind it is.

    Attributes:
        kind: a number of CUmemLocationType.
        number: of the device or the NUMA node; 0 where there is none.
        is_managed: whether it moves; then the place is where it would rather be.
    """

    kind: int
    number: int = 0
    is_managed: bool = False


def _in_chunks(nbytes: int) -> int:
    return -(-nbytes // CHUNK) * CHUNK


@dataclass(slots=True)
class Pool:
    """One pool.

    Attributes:
        handle: its number.
        most: bytes that it may reserve, rounded up to chunks (driver 580 does so); 0 is no limit.
        is_open: whether it was not destroyed; what it gave lives on.
        threshold: bytes that a synchronisation leaves reserved.
        used: bytes asked for and not freed.
        held: the same, with the rounding of the allocator.
        reserved: bytes taken from the device, used or not.
        used_high, reserved_high: the most since they were reset.
        reuse: the three reuse policies, by attribute number; kept, and without effect here.
        peers: ordinals of the other devices that may access its memory; of a pool of host memory
            those of all that may.
        file: where its memory is, if other processes may have it: as far from the beginning as its
            addresses are from that of the device.
        is_foreign: whether it is another process's, and gives no memory here.
        place: where its memory is, if that is not a device's own.
    """

    handle: int
    most: int = 0
    is_open: bool = True
    threshold: int = 0
    used: int = 0
    used_high: int = 0
    held: int = 0
    reserved: int = 0
    reserved_high: int = 0
    reuse: dict[int, int] = field(default_factory=lambda: {1: 1, 2: 1, 3: 1})
    peers: set[int] = field(default_factory=set)
    file: SharedFile | None = None
    is_foreign: bool = False
    place: PoolPlace | None = None

    @property
    def slack(self) -> int:
        """Bytes that are reserved and not used."""
        return self.reserved - self.held

    def growth(self, held: int, available: int) -> int | None:
        """Bytes to reserve for an allocation that holds `held`; None if `available` is too little.

        A whole number of chunks where they fit, else just what is needed.
        """
        if self.most:
            available = min(available, _in_chunks(self.most) - self.reserved)
        missing = held - self.slack
        if missing <= 0:
            return 0
        whole = _in_chunks(missing)
        return whole if whole <= available else (missing if missing <= available else None)

    def take(self, nbytes: int, held: int, growth: int) -> None:
        """Account for an allocation."""
        self.used += nbytes
        self.held += held
        self.reserved += growth
        self.used_high = max(self.used_high, self.used)
        self.reserved_high = max(self.reserved_high, self.reserved)

    def give(self, nbytes: int, held: int) -> None:
        """Account for a free: the memory stays reserved."""
        self.used -= nbytes
        self.held -= held

    def trim(self, keep: int) -> None:
        """Give back what is not used, down to `keep` bytes (cuMemPoolTrimTo)."""
        self.reserved = min(self.reserved, _in_chunks(max(self.held, keep)))

    def synchronised(self) -> None:
        """What a synchronisation does: give back what is above the threshold."""
        if self.reserved > self.threshold:
            self.trim(self.threshold)
