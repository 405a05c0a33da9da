"""`MemoryPool`: a memory pool of the driver's, with a limit and statistics of its own.

CUDA Driver API, "Stream Ordered Memory Allocator".
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ptx.read_only import ReadOnly

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
from ..ipc import BY_DESCRIPTOR, PoolHandle, register_memory_reductions
from .driver_pool import grant, pool_attribute
from .resource import MemoryStream, given_stream

_LARGEST = 2**64 - 1


class PoolStatistics(NamedTuple):
    """Sizes of a pool, in bytes.

    Attributes:
        reserved: allocated from the device, in use or not.
        used: the part of it that is in use.
        reserved_high: the highest `reserved` since the last reset.
        used_high: the highest `used` since the last reset.
    """

    reserved: int
    used: int
    reserved_high: int
    used_high: int


class MemoryPool(Closeable):
    """A separate pool of a device's memory: a resource for `using_memory`.

    Memory is allocated and freed in stream order, as by the driver's own pool, with a limit and
    statistics of its own. Memory allocated from it outlives `close`. With the last of it the
    driver's pool is emptied, and a later `MemoryPool` of the same limit takes it.

    Args:
        device: the device, or its ordinal.
        max_bytes: the most bytes that the pool takes from the device; 0 is no limit. The driver
            (580) rounds it up to a multiple of 32 MiB.
        release_threshold: the bytes that the pool retains when streams synchronise.
        shareable: whether other processes of the host may open it, with its memory. It can be sent
            through multiprocessing, as arrays over its memory can, or by its `descriptor`.

    Attributes:
        device: the device of its memory.
        closed: whether it was closed.
    """

    __slots__ = ("_device",)

    _device: Device
    device: ReadOnly[Device] = ReadOnly("_device")
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
        self._device = Device.get(device)
        limit = border.int_in_range("MemoryPool: max_bytes", max_bytes)
        threshold = border.int_in_range(
            "MemoryPool: release_threshold", release_threshold, most=_LARGEST
        )
        properties = CUmemPoolProps()
        properties.allocType = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        properties.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        properties.location.id = self._device.ordinal
        properties.maxSize = limit
        if shareable:
            require_descriptors("MemoryPool: shareable")
            properties.handleTypes = BY_DESCRIPTOR
        owner = self._device
        context = ContextHandle(
            owner.driver, owner.primary_context(), owner.ordinal, is_primary=True
        )
        handle = PoolHandle(context)
        code = handle.make_own(properties)
        if code:
            doing = f"making a memory pool of {owner!r} with at most {limit} bytes"
            raise failure(context.api, code, "cuMemPoolCreate", doing)
        self._own(handle)
        if shareable:
            self._share()
        if threshold:
            self.set_release_threshold(threshold)

    def _share(self) -> None:
        """Open a descriptor of the pool, and let multiprocessing send it and its memory."""
        handle = self._handle
        code = handle.share()
        if code:
            doing = f"sharing {self!r}"
            raise failure(handle.api, code, "cuMemPoolExportToShareableHandle", doing)
        _register_reductions()

    @classmethod
    def from_descriptor(cls, device: Device | int, descriptor: int) -> MemoryPool:
        """Open another process's pool by its `descriptor`, which the caller still owns.

        It allocates no memory: `IpcMemoryHandle.open` opens memory that the other process has
        allocated.

        Raises:
            CudaError: the descriptor does not refer to a pool of the device.
            OSError: it is not open in this process.
        """
        owner = Device.get(device)
        where = "MemoryPool.from_descriptor: descriptor"
        number = os.dup(border.descriptor(where, descriptor))
        _register_reductions()
        return cls._over(PoolHandle.imported(owner, number))

    @classmethod
    def _over(cls, handle: PoolHandle) -> MemoryPool:
        self = cls.__new__(cls)
        self._device = Device.get(handle.context.ordinal)
        self._own(handle)
        return self

    def __repr__(self) -> str:
        state = (
            " closed" if self.closed else " of another process" if self._handle.is_foreign else ""
        )
        return f"<MemoryPool{state} of device {self._device.ordinal}>"

    @property
    def shareable(self) -> bool:
        """Whether other processes may open it."""
        return self._handle.descriptor >= 0

    @property
    def is_foreign(self) -> bool:
        """Whether it belongs to another process, which alone allocates from it."""
        return self._handle.is_foreign

    @property
    def descriptor(self) -> int:
        """The file descriptor by which another process may open the pool; the pool owns it.

        Raises:
            ExportError: the pool was not made to be shared.
        """
        number = self._handle.descriptor
        if number < 0:
            raise unshared(repr(self), "make it with shareable=True")
        self._handle.destroyer.is_given = True
        return number

    @property
    def _closed_text(self) -> str:
        return f"the memory pool of device {self._device.ordinal} was closed"

    @property
    def handle(self) -> CUmemoryPool:
        """The CUmemoryPool.

        Raises:
            ClosedError: it was closed.
        """
        return self._handle.raw

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Allocate memory of the pool, in the order of a stream.

        Raises:
            OutOfMemoryError: the pool's limit or the device's memory is reached.
            WrongDeviceError: the stream is of another device.
        """
        owner, api = given_stream("MemoryPool.allocate", stream, nbytes), self._handle.api
        if owner.device != self._device.ordinal:
            raise errors.WrongDeviceError(
                f"memory of {self!r} for a stream of device {owner.device}: choose a pool of that"
            )
        if self._handle.is_foreign:
            raise errors.NotPermittedError(
                f"allocating {nbytes} bytes of {self!r}: only the process that made it can"
            )
        stream._sources.add(self._handle.destroyer)
        allocate = api.cuMemAllocFromPoolAsync
        code, pointer = owner._handle.submit(allocate, nbytes, self.handle, owner.handle)
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
        """Return memory to the pool, closed or not."""
        queue = given_stream("MemoryPool.deallocate", stream, nbytes, address)._handle
        code = queue.free(CUdeviceptr(address))
        if code:
            raise failure(
                queue.api, code, "cuMemFreeAsync", f"giving back {nbytes} bytes to {self!r}"
            )

    def statistics(self) -> PoolStatistics:
        """Query the current and the highest sizes of the pool."""
        return PoolStatistics(
            self._attribute(_Attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
            self._attribute(_Attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
            self._attribute(_Attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH),
            self._attribute(_Attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH),
        )

    def reset_high_water(self) -> None:
        """Restart the highest counts of `statistics` at the current sizes."""
        self._set(_Attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0)
        self._set(_Attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0)

    def release_threshold(self) -> int:
        """Query the bytes that the pool retains when streams synchronise."""
        return self._attribute(_Attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)

    def set_release_threshold(self, nbytes: int) -> None:
        """Let the pool retain up to `nbytes` when streams synchronise; it frees the rest."""
        where = "MemoryPool.set_release_threshold: nbytes"
        nbytes = border.int_in_range(where, nbytes, most=_LARGEST)
        self._set(_Attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, nbytes)

    def trim(self, keep_bytes: int = 0) -> None:
        """Free the pool's unused memory, down to `keep_bytes`."""
        keep_bytes = border.int_in_range("MemoryPool.trim: keep_bytes", keep_bytes, most=_LARGEST)
        handle = self._handle
        (code,) = handle.api.cuMemPoolTrimTo(handle.raw, keep_bytes)
        if code:
            raise failure(handle.api, code, "cuMemPoolTrimTo", f"trimming {self!r}")

    def open_to(self, device: Device | int) -> None:
        """Let another device use the pool's memory in place, in copies and kernels.

        A kernel's context needs access to its peer as well: `Context.enable_peer_access`.

        Raises:
            PeerAccessUnsupportedError: the hardware does not connect the two devices in that way.
        """
        pool = self.handle
        user, handle = Device.get(device), self._handle
        code = grant(handle.api, pool, user)
        if code == CUresult.CUDA_ERROR_INVALID_DEVICE:
            raise PeerAccessUnsupportedError(f"letting {user!r} use memory of {self!r}")
        if code:
            raise failure(handle.api, code, "cuMemPoolSetAccess", f"letting {user!r} use {self!r}")

    def is_open_to(self, device: Device | int) -> bool:
        """Query whether a device may use the pool's memory."""
        pool = self.handle
        user, handle = Device.get(device), self._handle
        location = CUmemLocation()
        location.type, location.id = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, user.ordinal
        code, flags = handle.api.cuMemPoolGetAccess(pool, location)
        if code:
            raise failure(handle.api, code, "cuMemPoolGetAccess", f"querying {self!r}")
        return flags == CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE

    def _attribute(self, attribute: _Attribute) -> int:
        handle = self._handle
        return pool_attribute(handle.api, handle.raw, attribute, repr(self))

    def _set(self, attribute: _Attribute, value: int) -> None:
        handle = self._handle
        (code,) = handle.api.cuMemPoolSetAttribute(handle.raw, attribute, cuuint64_t(value))
        if code:
            doing = f"setting attribute {int(attribute)} of {self!r} to {value}"
            raise failure(handle.api, code, "cuMemPoolSetAttribute", doing)


def _register_reductions() -> None:
    """Register pools, and arrays over their memory, with multiprocessing."""
    register_reduction(MemoryPool, _reduced)
    register_memory_reductions()


def _reduced(pool: MemoryPool) -> Reduced:
    if not pool.shareable:
        raise unshared(repr(pool), "make it with shareable=True")
    return _received, (pool._handle,)


def _received(handle: PoolHandle) -> MemoryPool:
    """Return a pool received by multiprocessing."""
    _register_reductions()
    return MemoryPool._over(handle)
