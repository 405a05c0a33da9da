"""`HookedMemory`: a resource that tells what it gives and takes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from ... import border
from ..resource import DriverMemory, MemoryResource, MemoryStream, checked_resource, given_stream

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
