"""`HookedMemory`: a resource that tells what it gives and takes back."""

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
    """How a resource was used; sizes in bytes.

    Attributes:
        in_use_bytes: given out and not given back.
        high_water_bytes: the most that was in use at once.
        total_bytes: given out so far.
        allocations: how often memory was given out.
        releases: how often it was given back.
    """

    in_use_bytes: int = 0
    high_water_bytes: int = 0
    total_bytes: int = 0
    allocations: int = 0
    releases: int = 0


class CountedMemory(NotCopyable):
    """A resource that counts what another one gives.

    Args:
        resource: the other one; the driver's pool without it.
    """

    def __init__(self, resource: MemoryResource | None = None) -> None:
        self._resource: MemoryResource = DriverMemory()
        if resource is not None:
            self._resource = checked_resource("CountedMemory: resource", resource)
        # Sizes, of what was given back less than 0. Only this is touched while memory goes, which
        # may be in the middle of anything.
        self._events: deque[int] = deque()
        self._lock = process_lock()
        self._counted = MemoryStatistics()

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Memory of the other resource."""
        given_stream("CountedMemory.allocate", stream, nbytes)
        address = self._resource.allocate(nbytes, stream)
        self._events.append(nbytes)
        if len(self._events) > _MOST_EVENTS:
            self.statistics()
        return address

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Give memory back to the other resource."""
        given_stream("CountedMemory.deallocate", stream, nbytes, address)
        self._events.append(-nbytes)  # first: the other one may hand it out at once
        self._resource.deallocate(address, nbytes, stream)

    def statistics(self) -> MemoryStatistics:
        """What is in use, and how much was."""
        with self._lock:
            now = self._counted
            used, most, total = now.in_use_bytes, now.high_water_bytes, now.total_bytes
            taken, given = now.allocations, now.releases
            for _ in range(len(self._events)):
                nbytes = self._events.popleft()
                used += nbytes
                most = max(most, used)
                total += max(nbytes, 0)
                taken, given = taken + (nbytes > 0), given + (nbytes < 0)
            self._counted = MemoryStatistics(used, most, total, taken, given)
            return self._counted


Hook: TypeAlias = Callable[[int, int, MemoryStream], object]
"""Takes an address, a number of bytes and the stream in whose order they are."""


class HookedMemory:
    """A resource that calls functions around another one's, such as for a log or a limit.

    Args:
        resource: the other one; the driver's pool without it.
        allocated: called with address, bytes and stream once memory was taken. What it raises goes
            to who allocates, and the memory goes back.
        released: the same before memory goes back. It may come in any thread and in a garbage
            collection: it must wait for nobody. What it raises reaches `sys.unraisablehook`.
    """

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
        """Memory of the other resource."""
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
        """Give memory back to the other resource."""
        given_stream("HookedMemory.deallocate", stream, nbytes, address)
        try:
            if self._released is not None:
                self._released(address, nbytes, stream)
        finally:
            self._resource.deallocate(address, nbytes, stream)
