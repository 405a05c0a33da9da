"""`MemoryPool`: a pool of the driver's that belongs to its user, with a limit and accounts.

CUDA Driver API, "Stream Ordered Memory Allocator".
"""

from __future__ import annotations

from typing import NamedTuple

from ... import border, errors
from ...driver._api import (
    CUdeviceptr,
    CUmemAccess_flags,
    CUmemAllocationType,
    CUmemLocation,
    CUmemLocationType,
    CUmemoryPool,
    CUmemPool_attribute as _Attribute,
    CUmemPoolProps,
    CUresult,
    cuuint64_t,
)
from ...driver.context_box import ContextBox, Part
from ...driver.device import Device
from ...driver.handle import Closing, check
from ...driver.in_use import failure
from ...errors import PeerAccessUnsupportedError
from ..driver_pool import grant, pool_attribute
from ..resource import MemoryStream, given_stream

_LARGEST = 2**64 - 1


class PoolStatistics(NamedTuple):
    """What a pool holds; sizes in bytes.

    Attributes:
        reserved: taken from the device, in use or not.
        used: of it, what is allocated.
        reserved_high: the most that was reserved since that was reset.
        used_high: the most that was used since that was reset.
    """

    reserved: int
    used: int
    reserved_high: int
    used_high: int


class _PoolBox(Part[CUmemoryPool]):
    """Owns a pool. The driver keeps it until what it gave is freed."""

    __slots__ = ()

    def _destroy(self) -> None:
        (code,) = self.api.cuMemPoolDestroy(self.raw)
        doing = f"destroying a memory pool of device {self.context.ordinal}"
        check(self, code, "cuMemPoolDestroy", doing)


class MemoryPool(Closing):
    """A pool of a device's memory that belongs to its user: a resource for `using_memory`.

    Memory is taken and given back in stream order, as of the driver's own pool, with a limit and
    accounts of its own. What it gave outlives `close`.

    Args:
        device: the device, or its ordinal.
        max_bytes: the most that the pool takes from the device; 0 is no limit.
        release_threshold: what the pool keeps reserved when streams synchronise.

    Attributes:
        device: the device whose memory it has.
        closed: whether it was closed.
    """

    __slots__ = ("device",)

    device: Device
    _box: _PoolBox

    def __init__(
        self, device: Device | int = 0, *, max_bytes: int = 0, release_threshold: int = 0
    ) -> None:
        self.device = device if isinstance(device, Device) else Device.get(device)
        most = border.whole("MemoryPool: max_bytes", max_bytes)
        kept = border.whole("MemoryPool: release_threshold", release_threshold, most=_LARGEST)
        properties = CUmemPoolProps()
        properties.allocType = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = self.device.ordinal
        properties.maxSize = most
        owner = self.device
        context = ContextBox(owner.driver, owner.primary_context(), owner.ordinal, is_primary=True)
        box = _PoolBox(context)
        code = box.make(context.api.cuMemPoolCreate, properties)
        if code:
            doing = f"making a memory pool of {owner!r} with at most {most} bytes"
            raise failure(context.api, code, "cuMemPoolCreate", doing)
        self._box = box
        if kept:
            self.set_release_threshold(kept)

    def __repr__(self) -> str:
        return f"<MemoryPool{' closed' if self.closed else ''} of device {self.device.ordinal}>"

    @property
    def _closed_text(self) -> str:
        return f"the memory pool of device {self.device.ordinal} was closed"

    @property
    def handle(self) -> CUmemoryPool:
        """The CUmemoryPool.

        Raises:
            ClosedError: it was closed.
        """
        return self._box.raw

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Memory of the pool, in the order of a stream.

        Raises:
            OutOfMemoryError: the pool's limit or the device has no room.
            WrongDeviceError: the stream is of another device.
        """
        own, api = given_stream("MemoryPool.allocate", stream), self._box.api
        if own.device != self.device.ordinal:
            raise errors.WrongDeviceError(
                f"memory of {self!r} for a stream of device {own.device}: choose a pool of that"
            )
        code, pointer = api.cuMemAllocFromPoolAsync(nbytes, self.handle, own.handle)
        if code == CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            now = self.statistics()
            raise errors.OutOfMemoryError(
                f"allocating {nbytes} bytes of {self!r}, which has {now.used} of {now.reserved} "
                "reserved bytes in use",
                call="cuMemAllocFromPoolAsync",
            )
        if code:
            doing = f"allocating {nbytes} bytes of {self!r}"
            raise failure(api, code, "cuMemAllocFromPoolAsync", doing)
        return int(pointer)

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Give memory back to the pool, closed or not."""
        own = given_stream("MemoryPool.deallocate", stream)
        api = own._box.api
        (code,) = api.cuMemFreeAsync(CUdeviceptr(address), own.handle)
        if code:
            raise failure(api, code, "cuMemFreeAsync", f"giving back {nbytes} bytes to {self!r}")

    def statistics(self) -> PoolStatistics:
        """What the pool holds now, and the most that it held; asks the driver."""
        return PoolStatistics(
            self._attribute(_Attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
            self._attribute(_Attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
            self._attribute(_Attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH),
            self._attribute(_Attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH),
        )

    def reset_high_water(self) -> None:
        """Let the highest counts of `statistics` begin at what is held now."""
        self._set(_Attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0)
        self._set(_Attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0)

    def release_threshold(self) -> int:
        """Bytes that the pool keeps reserved when streams synchronise; asks the driver."""
        return self._attribute(_Attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)

    def set_release_threshold(self, nbytes: int) -> None:
        """Let the pool keep `nbytes` when streams synchronise; it gives back what is above."""
        where = "MemoryPool.set_release_threshold: nbytes"
        nbytes = border.whole(where, nbytes, most=_LARGEST)
        self._set(_Attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nbytes)

    def trim(self, keep_bytes: int = 0) -> None:
        """Give the pool's unused memory back to the device, down to `keep_bytes`."""
        keep_bytes = border.whole("MemoryPool.trim: keep_bytes", keep_bytes, most=_LARGEST)
        box = self._box
        (code,) = box.api.cuMemPoolTrimTo(box.raw, keep_bytes)
        if code:
            raise failure(box.api, code, "cuMemPoolTrimTo", f"trimming {self!r}")

    def open_to(self, device: Device | int) -> None:
        """Let another device use the pool's memory where it lies, in copies and kernels.

        A kernel's context must have its peer's access as well: `Context.enable_peer_access`.

        Raises:
            PeerAccessUnsupportedError: the hardware has no such way between the devices.
        """
        other, box = device if isinstance(device, Device) else Device.get(device), self._box
        code = grant(box.api, box.raw, other)
        if code == CUresult.CUDA_ERROR_INVALID_DEVICE:
            raise PeerAccessUnsupportedError(f"letting {other!r} use memory of {self!r}")
        if code:
            raise failure(box.api, code, "cuMemPoolSetAccess", f"letting {other!r} use {self!r}")

    def is_open_to(self, device: Device | int) -> bool:
        """Whether a device may use the pool's memory; asks the driver."""
        other, box = device if isinstance(device, Device) else Device.get(device), self._box
        where = CUmemLocation()
        where.type, where.id = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, other.ordinal
        code, flags = box.api.cuMemPoolGetAccess(box.raw, where)
        if code:
            raise failure(box.api, code, "cuMemPoolGetAccess", f"asking {self!r}")
        return flags == CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE

    def _attribute(self, attribute: _Attribute) -> int:
        box = self._box
        return pool_attribute(box.api, box.raw, attribute, repr(self))

    def _set(self, attribute: _Attribute, value: int) -> None:
        box = self._box
        (code,) = box.api.cuMemPoolSetAttribute(box.raw, attribute, cuuint64_t(value))
        if code:
            doing = f"setting attribute {int(attribute)} of {self!r} to {value}"
            raise failure(box.api, code, "cuMemPoolSetAttribute", doing)
