"""Memory outside of a device that its kernels may access: mapped host memory, and peer memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.address_ranges import Allocation
from ptx.emulate.memory.device_memory import DeviceMemory, WrittenBytes

_ALIGN = 16  # of the first element of a view: the size of the largest element


class MappedHostMemory:
    """`nbytes` of existing host memory at `address`, seen as `DeviceMemory` is by accesses.

    The caller keeps the memory alive.

    Attributes:
        written: which bytes were written, counted from `base`, where that is checked.
        is_open: whether the device has access to it.
    """

    def __init__(
        self,
        address: int,
        nbytes: int,
        origin: str = "page-locked host memory",
        written: WrittenBytes | None = None,
        *,
        is_open: bool = True,
    ) -> None:
        self.written: WrittenBytes | None = written
        self.is_open: bool = is_open
        if address <= 0 or nbytes <= 0:
            raise ValueError(f"there is no memory of {nbytes} bytes at {address:#x}")
        self.base: int = address // _ALIGN * _ALIGN
        self.nbytes: int = -(-(address + nbytes - self.base) // _ALIGN) * _ALIGN
        self._allocation = Allocation(address, nbytes, origin)
        # The few bytes around the allocation are part of the view; the checks keep accesses off.
        self._data: NDArray[np.uint8] = np.frombuffer(
            memoryview((ctypes.c_uint8 * self.nbytes).from_address(self.base)), dtype=np.uint8
        )

    def view(self, dtype: type[np.generic]) -> NDArray[Any]:
        """All of it as elements of `dtype`, from `base` on."""
        return self._data.view(dtype)

    def find(self, address: int) -> Allocation | None:
        """The allocation, if it holds `address` and may be accessed."""
        allocation = self._allocation
        return (
            allocation if self.is_open and allocation.address <= address < allocation.end else None
        )

    def find_freed(self, address: int) -> None:
        """Return None: nothing in this memory is ever freed."""

    def nearest(self, address: int) -> Allocation:
        """The only allocation."""
        return self._allocation

    def bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Its start and end, as arrays of one element, or of none where there is no access."""
        allocation = self._allocation
        if not self.is_open:
            return np.array([], np.int64), np.array([], np.int64)
        return np.array([allocation.address], np.int64), np.array([allocation.end], np.int64)


class PeerMemory:
    """Another device's memory, seen as `DeviceMemory` is by accesses.

    Attributes:
        base, nbytes: where it lies.
    """

    def __init__(self, memory: DeviceMemory, is_open: Callable[[Allocation], bool]) -> None:
        """Take `is_open`, which returns whether kernels may access an allocation."""
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
        allocation = self._memory.find(address)
        return allocation if allocation is not None and self._is_open(allocation) else None

    def find_of_team(self, address: int) -> Allocation | None:
        """The live allocation that holds `address`, for instructions on a multicast object."""
        return self._memory.find(address)

    def find_freed(self, address: int) -> Allocation | None:
        """The allocation freed last that held `address`."""
        return self._memory.find_freed(address)

    def nearest(self, address: int) -> Allocation | None:
        """The live allocation whose bounds are nearest to `address`."""
        return self._memory.nearest(address)

    def bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts and ends of all live allocations that may be accessed, in order."""
        starts, ends = self._memory.bounds()
        is_open = [self.find(int(start)) is not None for start in starts]
        return starts[is_open], ends[is_open]

    def bounds_of_team(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts and ends of all live allocations, for instructions on a multicast object."""
        return self._memory.bounds()
