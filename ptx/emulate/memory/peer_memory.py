"""Memory of another device, as far as kernels may access it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.device_memory import Allocation, DeviceMemory
from ptx.emulate.memory.written import WrittenBytes


class PeerMemory:
    """Another device's memory, seen as `DeviceMemory` is by accesses.

    Attributes:
        base, nbytes: where it lies.
    """

    def __init__(self, memory: DeviceMemory, is_open: Callable[[Allocation], bool]) -> None:
        """`is_open` says whether kernels may access an allocation."""
        self.base: int = memory.base
        self.nbytes: int = memory.nbytes
        self._memory = memory
        self._is_open = is_open

    @property
    def written(self) -> WrittenBytes | None:
        """Which bytes were written, where that is checked."""
        return self._memory.written

    def view(self, dtype: type[np.generic]) -> NDArray[Any]:
        """All of it as elements of `dtype`, from `base` on."""
        return self._memory.view(dtype)

    def find(self, address: int) -> Allocation | None:
        """The live allocation that holds `address`, if it may be accessed."""
        found = self._memory.find(address)
        return found if found is not None and self._is_open(found) else None

    def find_freed(self, address: int) -> Allocation | None:
        """The allocation freed last that held `address`."""
        return self._memory.find_freed(address)

    def nearest(self, address: int) -> Allocation | None:
        """The live allocation whose bounds are nearest to `address`."""
        return self._memory.nearest(address)

    def bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts and ends of all live allocations that may be accessed, in order."""
        starts, ends = self._memory.bounds()
        found = [self.find(int(start)) is not None for start in starts]
        return starts[found], ends[found]
