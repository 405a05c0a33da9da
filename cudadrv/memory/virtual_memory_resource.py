"""`VirtualMemoryResource`: a resource that maps each allocation at addresses of its own."""

from __future__ import annotations

from collections.abc import Sequence

from ptx.read_only import ReadOnly

from .. import border
from ..driver.device import Device
from ..driver.driver_selection import failure
from ..errors import NotPermittedError, OutOfMemoryError
from .address_range import AllocationHandle, ReservedRange, granularity
from .driver_pool import out_of_memory
from .physical_memory import HandleType, allocation_properties, creation_error, mapping_error
from .resource import MemoryStream, given_stream


class VirtualMemoryResource:
    """Memory of cuMemCreate, mapped at addresses of its own, for `using_memory`.

    Each allocation can be open to chosen devices, and lie in memory of the host. Libraries that
    have its address can export it, as NCCL and UCX do by cuMemRetainAllocationHandle. Sizes are
    rounded up to 2 MiB, and freeing waits for the work of the stream.

    Args:
        open_to: other devices that may use the memory, or their ordinals. Their kernels need no
            `Context.enable_peer_access`.
        numa_node: the number of a NUMA node of the host; None for memory of the stream's device.
        handle_type: "posix_fd" or "fabric", as of `PhysicalMemory`; or None.

    Attributes:
        open_devices: the ordinals of the other devices.
    """

    __slots__ = ("__weakref__", "_handle_type", "_numa_node", "_open_devices", "_ranges")

    open_devices: ReadOnly[frozenset[int]] = ReadOnly("_open_devices")

    def __init__(
        self,
        *,
        open_to: Sequence[Device | int] = (),
        numa_node: int | None = None,
        handle_type: HandleType | None = None,
    ) -> None:
        other_devices = border.instance_of("VirtualMemoryResource: open_to", open_to, Sequence)
        self._open_devices: frozenset[int] = frozenset(
            Device.get(device).ordinal for device in other_devices
        )
        self._numa_node, self._handle_type = numa_node, handle_type
        self._ranges: dict[int, ReservedRange] = {}

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Allocate memory of the stream's device, or of the host.

        Raises:
            OutOfMemoryError: with the request and the free and total bytes.
            UnsupportedError: the device or the driver has no such memory.
        """
        queue = given_stream("VirtualMemoryResource.allocate", stream, nbytes)._handle
        device = Device.get(queue.context.ordinal)
        properties = allocation_properties(
            "VirtualMemoryResource", device, self._numa_node, self._handle_type
        )
        unit = granularity(queue.context, properties)
        size = -(-nbytes // unit) * unit
        memory = AllocationHandle(queue.context)
        code = memory.make(queue.api.cuMemCreate, size, properties, 0)
        if code == OutOfMemoryError.result:
            raise out_of_memory(stream.owner.context, size, "cuMemCreate")
        if code:
            raise creation_error(device, code, size)
        reserved = ReservedRange.reserved(queue, size)
        reserved.destroyer.waits = False
        reserved.others = self._open_devices - {device.ordinal}
        code, call = reserved.map(memory, size)
        if code:
            raise mapping_error(reserved, code, call, f"{size} bytes")
        address = int(reserved.raw)
        self._ranges[address] = reserved
        return address

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Wait for the work of the stream, then unmap and free memory."""
        function = "VirtualMemoryResource.deallocate"
        queue = given_stream(function, stream, nbytes, address)._handle
        (waited,) = queue.wait_for_work_at_once()
        # If no call may wait here, a finalizer tries later. Otherwise the memory is freed even
        # if the stream's work failed: nothing else frees it.
        if waited != NotPermittedError.result:
            self._ranges.pop(address, None)
        if waited:
            doing = f"giving back {nbytes} bytes"
            raise failure(queue.api, waited, "cuStreamSynchronize", doing)
