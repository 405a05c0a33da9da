"""Memory resources that count, or call functions around, another resource."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from .. import border
from ..driver.handle import NotCopyable
from ..driver.locks import process_lock
from .resource import DriverMemory, MemoryResource, MemoryStream, checked_resource, given_stream

_MOST_EVENTS: Final = 4096


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """Usage counts of a resource; sizes in bytes.

    Attributes:
        in_use_bytes: allocated and not freed.
        high_water_bytes: the most that was in use at once.
        total_bytes: allocated so far.
        allocations: the number of allocations.
        releases: the number of deallocations.
    """

    in_use_bytes: int = 0
    high_water_bytes: int = 0
    total_bytes: int = 0
    allocations: int = 0
    releases: int = 0


class CountedMemory(NotCopyable):
    """A resource that counts another one's allocations.

    Args:
        resource: the other resource; the driver's pool if None.
    """

    __slots__ = ("__weakref__", "_counted", "_events", "_lock", "_resource")

    def __init__(self, resource: MemoryResource | None = None) -> None:
        self._resource: MemoryResource = DriverMemory()
        if resource is not None:
            self._resource = checked_resource("CountedMemory: resource", resource)
        # Sizes; freed memory is negative. Releases touch only this, as they may come in the middle
        # of any operation.
        self._events: deque[int] = deque()
        self._lock = process_lock()
        self._counted = MemoryStatistics()

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Allocate memory of the other resource."""
        given_stream("CountedMemory.allocate", stream, nbytes)
        address = self._resource.allocate(nbytes, stream)
        self._events.append(nbytes)
        if len(self._events) > _MOST_EVENTS:
            self.statistics()
        return address

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Return memory to the other resource."""
        given_stream("CountedMemory.deallocate", stream, nbytes, address)
        self._events.append(-nbytes)  # first: the other resource may hand it out at once
        self._resource.deallocate(address, nbytes, stream)

    def statistics(self) -> MemoryStatistics:
        """The memory in use, and the totals so far."""
        with self._lock:
            now = self._counted
            used, high_water, total = now.in_use_bytes, now.high_water_bytes, now.total_bytes
            n_allocated, n_released = now.allocations, now.releases
            for _ in range(len(self._events)):
                nbytes = self._events.popleft()
                used += nbytes
                high_water = max(high_water, used)
                total += max(nbytes, 0)
                n_allocated, n_released = n_allocated + (nbytes > 0), n_released + (nbytes < 0)
            self._counted = MemoryStatistics(used, high_water, total, n_allocated, n_released)
            return self._counted


Hook: TypeAlias = Callable[[int, int, MemoryStream], object]
"""A function of an address, a number of bytes and the stream in whose order they are."""


class HookedMemory:
    """A resource that calls functions around another one's, such as for a log or a limit.

    Args:
        resource: the other resource; the driver's pool if None.
        allocated: called with address, bytes and stream after each allocation. An error that it
            raises reaches the caller of the allocation, and the memory is freed.
        released: called with the same before memory is freed. It may run in any thread and in a
            garbage collection: it must not wait for another thread. An error that it raises reaches
            `sys.unraisablehook`.
    """

    __slots__ = ("__weakref__", "_allocated", "_released", "_resource")

    def __init__(
        self,
        resource: MemoryResource | None = None,
        *,
        allocated: Hook | None = None,
        released: Hook | None = None,
    ) -> None:
        self._resource: MemoryResource = DriverMemory()
        if resource is not None:
            self._resource = checked_resource("HookedMemory: resource", resource)
        for name, hook in (("allocated", allocated), ("released", released)):
            if hook is not None:
                border.function(f"HookedMemory: {name}", hook)
        self._allocated, self._released = allocated, released

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Allocate memory of the other resource."""
        given_stream("HookedMemory.allocate", stream, nbytes)
        address = self._resource.allocate(nbytes, stream)
        if self._allocated is not None:
            try:
                self._allocated(address, nbytes, stream)
            except BaseException:
                self._resource.deallocate(address, nbytes, stream)
                raise
        return address

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Return memory to the other resource."""
        given_stream("HookedMemory.deallocate", stream, nbytes, address)
        try:
            if self._released is not None:
                self._released(address, nbytes, stream)
        finally:
            self._resource.deallocate(address, nbytes, stream)
