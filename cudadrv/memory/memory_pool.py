"""`MemoryPool`: a pool of the driver's that belongs to its user, with a limit and accounts.

CUDA Driver API, "Stream Ordered Memory Allocator".
"""

from __future__ import annotations

import os
from typing import NamedTuple

from .. import border, errors
from ..driver._api import (
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
from ..driver.context_handle import ContextHandle
from ..driver.device import Device
from ..driver.driver_selection import failure
from ..driver.handle import Closeable
from ..driver.pickling import Reduced, register_reduction, require_descriptors, unshared
from ..errors import PeerAccessUnsupportedError
from .driver_pool import grant, pool_attribute
from .ipc import BY_DESCRIPTOR, PoolHandle, let_memory_go
from .resource import MemoryStream, given_stream

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


class MemoryPool(Closeable):
    """A pool of a device's memory that belongs to its user: a resource for `using_memory`.

    Memory is taken and given back in stream order, as of the driver's own pool, with a limit and
    accounts of its own. What it gave outlives `close`.

    Args:
        device: the device, or its ordinal.
        max_bytes: the most that the pool takes from the device; 0 is no limit. The driver (580)
            rounds it up to a multiple of 32 MiB.
        release_threshold: what the pool keeps reserved when streams synchronise.
        shareable: whether other processes of the host may have it, with its memory: it goes through
            multiprocessing, as arrays over its memory do, or by its `descriptor`.

    Attributes:
        device: the device whose memory it has.
        closed: whether it was closed.
    """

    __slots__ = ("device",)

    device: Device
    _handle: PoolHandle
    _remedy = "make it with shareable=True, and give it to multiprocessing or send its descriptor"

    def __init__(
        self,
        device: Device | int = 0,
        *,
        max_bytes: int = 0,
        release_threshold: int = 0,
        shareable: bool = False,
    ) -> None:
        self.device = Device.get(device)
        most = border.whole("MemoryPool: max_bytes", max_bytes)
        kept = border.whole("MemoryPool: release_threshold", release_threshold, most=_LARGEST)
        properties = CUmemPoolProps()
        properties.allocType = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = self.device.ordinal
        properties.maxSize = most
        if shareable:
            require_descriptors("MemoryPool: shareable")
            properties.handleTypes = BY_DESCRIPTOR
        owner = self.device
        context = ContextHandle(
            owner.driver, owner.primary_context(), owner.ordinal, is_primary=True
        )
        box = PoolHandle(context)
        code = box.make(context.api.cuMemPoolCreate, properties)
        if code:
            doing = f"making a memory pool of {owner!r} with at most {most} bytes"
            raise failure(context.api, code, "cuMemPoolCreate", doing)
        self._own(box)
        if shareable:
            self._share()
        if kept:
            self.set_release_threshold(kept)

    def _share(self) -> None:
        """Have a descriptor of the pool, and let multiprocessing send it with what it gives."""
        box = self._handle
        code = box.share()
        if code:
            doing = f"sharing {self!r}"
            raise failure(box.api, code, "cuMemPoolExportToShareableHandle", doing)
        _let_pools_go()

    @classmethod
    def from_descriptor(cls, device: Device | int, descriptor: int) -> MemoryPool:
        """A pool of another process, whose `descriptor` was sent here; it stays the caller's.

        It gives no memory of its own: `IpcMemoryHandle.open` opens what the other process has
        allocated.

        Raises:
            CudaError: the descriptor is of no pool of the device.
            OSError: it is no descriptor of this process.
        """
        place = Device.get(device)
        where = "MemoryPool.from_descriptor: descriptor"
        number = os.dup(border.whole(where, descriptor, most=2**31 - 1))
        _let_pools_go()
        return cls._over(PoolHandle.imported(place, number))

    @classmethod
    def _over(cls, box: PoolHandle) -> MemoryPool:
        self = cls.__new__(cls)
        self.device = Device.get(box.context.ordinal)
        self._own(box)
        return self

    def __repr__(self) -> str:
        state = (
            " closed" if self.closed else " of another process" if self._handle.is_foreign else ""
        )
        return f"<MemoryPool{state} of device {self.device.ordinal}>"

    @property
    def shareable(self) -> bool:
        """Whether other processes may have it."""
        return self._handle.descriptor >= 0

    @property
    def is_foreign(self) -> bool:
        """Whether it is another process's, which alone allocates from it."""
        return self._handle.is_foreign

    @property
    def descriptor(self) -> int:
        """The file descriptor by which another process may have the pool; it stays the pool's.

        Raises:
            ExportError: the pool was not made to be shared.
        """
        number = self._handle.descriptor
        if number < 0:
            raise unshared(repr(self), "make it with shareable=True")
        return number

    @property
    def _closed_text(self) -> str:
        return f"the memory pool of device {self.device.ordinal} was closed"

    @property
    def handle(self) -> CUmemoryPool:
        """The CUmemoryPool.

        Raises:
            ClosedError: it was closed.
        """
        return self._handle.raw

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Memory of the pool, in the order of a stream.

        Raises:
            OutOfMemoryError: the pool's limit or the device has no room.
            WrongDeviceError: the stream is of another device.
        """
        own, api = given_stream("MemoryPool.allocate", stream, nbytes), self._handle.api
        if own.device != self.device.ordinal:
            raise errors.WrongDeviceError(
                f"memory of {self!r} for a stream of device {own.device}: choose a pool of that"
            )
        if self._handle.is_foreign:
            raise errors.NotPermittedError(
                f"allocating {nbytes} bytes of {self!r}: only the process that made it can"
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
        own = given_stream("MemoryPool.deallocate", stream, nbytes, address)
        api = own._handle.api
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
        box = self._handle
        (code,) = box.api.cuMemPoolTrimTo(box.raw, keep_bytes)
        if code:
            raise failure(box.api, code, "cuMemPoolTrimTo", f"trimming {self!r}")

    def open_to(self, device: Device | int) -> None:
        """Let another device use the pool's memory where it lies, in copies and kernels.

        A kernel's context must have its peer's access as well: `Context.enable_peer_access`.

        Raises:
            PeerAccessUnsupportedError: the hardware has no such way between the devices.
        """
        other, box = Device.get(device), self._handle
        code = grant(box.api, box.raw, other)
        if code == CUresult.CUDA_ERROR_INVALID_DEVICE:
            raise PeerAccessUnsupportedError(f"letting {other!r} use memory of {self!r}")
        if code:
            raise failure(box.api, code, "cuMemPoolSetAccess", f"letting {other!r} use {self!r}")

    def is_open_to(self, device: Device | int) -> bool:
        """Whether a device may use the pool's memory; asks the driver."""
        other, box = Device.get(device), self._handle
        where = CUmemLocation()
        where.type, where.id = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, other.ordinal
        code, flags = box.api.cuMemPoolGetAccess(box.raw, where)
        if code:
            raise failure(box.api, code, "cuMemPoolGetAccess", f"asking {self!r}")
        return flags == CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE

    def _attribute(self, attribute: _Attribute) -> int:
        box = self._handle
        return pool_attribute(box.api, box.raw, attribute, repr(self))

    def _set(self, attribute: _Attribute, value: int) -> None:
        box = self._handle
        (code,) = box.api.cuMemPoolSetAttribute(box.raw, attribute, cuuint64_t(value))
        if code:
            doing = f"setting attribute {int(attribute)} of {self!r} to {value}"
            raise failure(box.api, code, "cuMemPoolSetAttribute", doing)


def _let_pools_go() -> None:
    """Let multiprocessing send pools, with arrays over their memory."""
    register_reduction(MemoryPool, _reduced)
    let_memory_go()


def _reduced(pool: MemoryPool) -> Reduced:
    if not pool.shareable:
        raise unshared(repr(pool), "make it with shareable=True")
    return _received, (pool._handle,)


def _received(box: PoolHandle) -> MemoryPool:
    """A pool that multiprocessing brought."""
    _let_pools_go()
    return MemoryPool._over(box)
