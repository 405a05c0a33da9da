"""What a device's memory is taken for: allocations, and what pools reserve."""

from __future__ import annotations

from ptx.emulate.memory.device_memory import DeviceMemory

from .pools import Pool


class DeviceAccount:
    """How many bytes of a device are in use, and for what; whoever asks holds the device's lock.

    Attributes:
        pools: those of the device by handle, also destroyed ones while their memory is in use.
        limit: bytes that may be in use, where a test set fewer than there are.
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
        """Bytes that neither an allocation nor a pool's reserve takes."""
        return max(0, self.capacity - self._memory.used_bytes - self._slack)

    @property
    def _slack(self) -> int:
        """Bytes that pools reserve and do not use."""
        return sum(pool.slack for pool in self.pools.values())

    def take(self, nbytes: int, held: int, pool: Pool | None) -> bool:
        """Account for `held` bytes, already allocated; False if they do not fit beside the rest."""
        left = self.capacity - (self._memory.used_bytes - held) - self._slack
        growth = None if pool is None else pool.growth(held, left)
        if growth is None and held > left:
            # The driver takes the unused reserves of others before it gives up.
            for other in self.pools.values():
                if other is not pool:
                    left += other.slack
                    other.trim(0)
                    left -= other.slack
            growth = None if pool is None else pool.growth(held, left)
        if pool is None:
            return held <= left
        if growth is None:
            return False
        pool.take(nbytes, held, growth)
        return True

    def give(self, nbytes: int, held: int, pool: Pool | None) -> None:
        """Account for a free; the last one of a destroyed pool ends it."""
        if pool is not None:
            pool.give(nbytes, held)
            if not pool.is_open:
                self._drop(pool)

    def destroy(self, pool: Pool) -> None:
        """Take a pool away, with what it reserves; what it gave lives on."""
        pool.is_open = False
        self._drop(pool)

    def _drop(self, pool: Pool) -> None:
        pool.reserved = pool.held
        if not pool.held:
            self.pools.pop(pool.handle, None)
            if pool.file is not None:
                pool.file.close()

    def refusal(self, nbytes: int, ordinal: int) -> str:
        """Why so much cannot be had."""
        return (
            f"out of memory: {nbytes} bytes asked for on device {ordinal}, "
            f"{self.free_bytes} of {self._total} bytes are free"
            + ("" if self.limit is None else f" within the limit of {self.limit}")
        )
