"""Memory pools.

CUDA Driver API: "Stream Ordered Memory Allocator".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ptx.emulate.memory.file_pages import CAN_SHARE, whole_pages

from ...driver._api import (
    CUmemAccess_flags,
    CUmemAccessDesc,
    CUmemAllocationHandleType,
    CUmemAllocationType,
    CUmemLocation,
    CUmemLocationType,
    CUmemoryPool,
    CUmemPool_attribute,
    CUmemPoolProps,
    CUresult,
    cuuint64_t,
)
from ..capture_rules import CaptureRules
from ..emulated_device import DeviceState
from ..interprocess.shared_file import SharedFile
from ..pools import Pool
from ..refusal import OK, SUCCESS, Refusal, invalid_value
from .call import call

_THRESHOLD: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
_RESERVED: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
_RESERVED_HIGH: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
_USED: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
_USED_HIGH: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH)

_PINNED: Final = int(CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED)
_NO_HANDLES: Final = int(CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE)
DESCRIPTORS: Final = int(CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
_NO_ACCESS: Final = int(CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE)
_READ_AND_WRITE: Final = int(CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE)


class PoolCalls(CaptureRules):
    """Memory pools."""

    @call(1)
    def cuMemPoolCreate(
        self, pool_props: CUmemPoolProps | None, /
    ) -> tuple[CUresult, CUmemoryPool]:
        """A pool of a device's memory, which takes `maxSize` bytes at most if that is not 0."""
        if pool_props is None:
            raise invalid_value("the properties of the pool are null")
        self._refuse_unsafe()
        if int(pool_props.allocType) != _PINNED:
            raise invalid_value(f"memory of type {int(pool_props.allocType)} has no pool")
        if int(pool_props.handleTypes) not in (_NO_HANDLES, DESCRIPTORS):
            raise _not_supported("the emulator shares pools by POSIX file descriptors alone")
        where = pool_props.location
        if where.type != CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
            raise _not_supported("the emulator has pools of devices alone")
        device = self._device_at(where.id)
        pool = Pool(next(self._handles), int(pool_props.maxSize))
        if int(pool_props.handleTypes) == DESCRIPTORS:
            pool.file = shared_file("pool", device, device.profile.total_memory)
        with device.lock:
            device.account.pools[pool.handle] = pool
        return SUCCESS, CUmemoryPool(pool.handle)

    @call()
    def cuMemPoolDestroy(self, pool: CUmemoryPool, /) -> tuple[CUresult]:
        """Destroy a pool; what it gave stays until it is freed. A device keeps its own pool."""
        device, found = self._pool(pool)
        self._refuse_unsafe()
        if found is device.pool:
            raise invalid_value("a device's default pool cannot be destroyed")
        with device.lock:
            device.account.destroy(found)
        return OK

    @call(1)
    def cuMemPoolGetAccess(
        self, mem_pool: CUmemoryPool, location: CUmemLocation | None, /
    ) -> tuple[CUresult, CUmemAccess_flags]:
        """What access a device has to a pool."""
        owner, pool = self._pool(mem_pool)
        if location is None or location.type != CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
            raise invalid_value("access to a pool is asked for of a device")
        device = self._device_at(location.id)
        is_open = device is owner or device.ordinal in pool.peers
        return SUCCESS, CUmemAccess_flags(_READ_AND_WRITE if is_open else _NO_ACCESS)

    @call()
    def cuMemPoolTrimTo(self, pool: CUmemoryPool, min_bytes_to_keep: int, /) -> tuple[CUresult]:
        """Give unused memory back, down to `min_bytes_to_keep`."""
        device, account = self._pool(pool)
        self._refuse_unsafe()
        with device.lock:
            account.trim(min_bytes_to_keep)
        return OK

    @call()
    def cuMemPoolSetAttribute(
        self, pool: CUmemoryPool, attr: CUmemPool_attribute, value: cuuint64_t, /
    ) -> tuple[CUresult]:
        """The threshold, a reuse policy, or 0 to reset a high-water mark."""
        device, account = self._pool(pool)
        number, new = int(attr), int(value)
        with device.lock:
            if number == _THRESHOLD:
                account.threshold = new
            elif number in account.reuse:
                account.reuse[number] = int(new != 0)
            elif number == _RESERVED_HIGH and new == 0:
                account.reserved_high = account.reserved
            elif number == _USED_HIGH and new == 0:
                account.used_high = account.used
            else:
                raise invalid_value(f"pool attribute {number} cannot be set to {new}")
        return OK

    @call(1)
    def cuMemPoolGetAttribute(
        self, pool: CUmemoryPool, attr: CUmemPool_attribute, /
    ) -> tuple[CUresult, cuuint64_t]:
        """A policy or an account."""
        _, account = self._pool(pool)
        values = {
            **account.reuse,
            _THRESHOLD: account.threshold,
            _RESERVED: account.reserved,
            _RESERVED_HIGH: account.reserved_high,
            _USED: account.used,
            _USED_HIGH: account.used_high,
        }
        value = values.get(int(attr))
        if value is None:
            raise invalid_value(f"the emulator keeps no pool attribute {int(attr)}")
        return SUCCESS, cuuint64_t(value)

    @call()
    def cuMemPoolSetAccess(
        self, pool: CUmemoryPool, map: Sequence[CUmemAccessDesc], count: int, /
    ) -> tuple[CUresult]:
        """Let other devices access the pool's memory, or not; its own device always does.

        The codes were measured with driver 580 on two H200s, but for devices that are no peers.
        """
        owner, opened = self._pool(pool)
        self._refuse_unsafe()
        if count > len(map):
            raise invalid_value(f"{count} descriptors of access, of which {len(map)} were given")
        asked = [self._access(owner, each) for each in map[:count]]
        with owner.lock:
            for device, is_granted in asked:
                if is_granted:
                    opened.peers.add(device.ordinal)
                else:
                    opened.peers.discard(device.ordinal)
        return OK

    def _access(self, owner: DeviceState, asked: CUmemAccessDesc) -> tuple[DeviceState, bool]:
        """Which device shall have access, and whether."""
        if asked.location.type != CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
            raise _not_supported("access to a pool of a device is given to devices")
        device, flags = self._device_at(asked.location.id), int(asked.flags)
        if flags not in (_NO_ACCESS, _READ_AND_WRITE):
            raise _not_supported(f"access to a pool is none or to read and write, not {flags}")
        if device is owner and flags == _NO_ACCESS:
            raise Refusal(
                CUresult.CUDA_ERROR_INVALID_DEVICE, "a pool's own device has access to it"
            )
        if device is not owner and flags and not owner.can_be_reached_by(device):
            raise Refusal(
                CUresult.CUDA_ERROR_INVALID_DEVICE,
                f"device {device.ordinal} cannot access memory of device {owner.ordinal}",
            )
        return device, bool(flags)

    def _pool(self, handle: CUmemoryPool) -> tuple[DeviceState, Pool]:
        """A pool, and the device whose memory it has."""
        for device in self._devices:
            pool = device.account.pools.get(int(handle))
            if pool is not None and pool.is_open:
                return device, pool
        raise invalid_value(f"{int(handle):#x} is no memory pool")


def shared_file(kind: str, device: DeviceState, nbytes: int) -> SharedFile:
    """A file for what other processes may have.

    Raises:
        Refusal: the system has none.
    """
    if not CAN_SHARE:
        raise _not_supported("the emulator shares memory between processes on Linux alone")
    try:
        return SharedFile.made(kind, device.uuid, whole_pages(nbytes))
    except OSError as error:
        raise Refusal(CUresult.CUDA_ERROR_OPERATING_SYSTEM, f"making a file: {error}") from error


def _not_supported(text: str) -> Refusal:
    return Refusal(CUresult.CUDA_ERROR_NOT_SUPPORTED, text)
