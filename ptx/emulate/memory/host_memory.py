"""Host memory that kernels may access at its own address, as page-locked memory is."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.device_memory import Allocation
from ptx.emulate.memory.written import WrittenBytes

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
        found = self._allocation
        return found if self.is_open and found.address <= address < found.end else None

    def find_freed(self, address: int) -> None:
        """Nothing here was freed."""

    def nearest(self, address: int) -> Allocation:
        """The only allocation."""
        return self._allocation

    def bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Its start and end, as arrays of one element, or of none where there is no access."""
        found = self._allocation
        if not self.is_open:
            return np.array([], np.int64), np.array([], np.int64)
        return np.array([found.address], np.int64), np.array([found.end], np.int64)
