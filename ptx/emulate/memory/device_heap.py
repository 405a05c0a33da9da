"""The heap of device code. CUDA C++ Programming Guide, "Dynamic Global Memory Allocation"."""

from __future__ import annotations

from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.model.errors import BadFree, OutOfMemory

DEFAULT_HEAP_BYTES = 8 << 20  # cudaLimitMallocHeapSize
_GRANULE = 16  # pointers are aligned to it


class DeviceHeap:
    """What `malloc` in kernels takes from; each piece is an allocation that the checker knows.

    Attributes:
        limit: bytes that may be live at once; allocations live on from launch to launch.
    """

    def __init__(self, memory: DeviceMemory, limit: int = DEFAULT_HEAP_BYTES) -> None:
        self.limit = limit
        self._memory = memory
        self._live: dict[int, int] = {}
        self._used = 0

    @property
    def used_bytes(self) -> int:
        """Bytes that are live."""
        return self._used

    def allocate(self, nbytes: int, origin: str) -> int:
        """The address of fresh bytes, 0 where the heap is full.

        A request for 0 bytes gets an address, as on an H100.
        """
        nbytes = max(nbytes, 1)
        held = -(-nbytes // _GRANULE) * _GRANULE
        if held > self.limit - self._used:
            return 0
        try:
            address = self._memory.allocate(nbytes, origin=origin)
        except OutOfMemory:
            return 0
        self._live[address] = held
        self._used += held
        return address

    def free(self, address: int) -> None:
        """Give a piece back.

        Raises:
            BadFree: it is no live piece of this heap.
        """
        held = self._live.pop(address, None)
        if held is None:
            raise BadFree(address, self._why_not(address))
        self._used -= held
        self._memory.free(address)

    def clear(self) -> None:
        """Give everything back, as the end of a context does."""
        for address in list(self._live):
            self.free(address)

    def _why_not(self, address: int) -> str:
        found = self._memory.find(address)
        if found is not None and found.address != address:
            return f"it lies inside the allocation of {found}"
        if found is not None:
            return f"{found} was not allocated by device code"
        freed = self._memory.find_freed(address)
        if freed is not None and freed.address == address:
            return f"the allocation of {freed} was freed before"
        return "nothing was allocated there"
