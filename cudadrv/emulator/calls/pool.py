"""Memory pools.

CUDA Driver API: "Stream Ordered Memory Allocator".
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final

from ptx.emulate.memory.file_pages import CAN_SHARE, whole_pages

from ...driver._api import (
    CUmemAccess_flags,
    CUmemAccessDesc,
    CUmemAllocationHandleType,
    CUmemAllocationType,
    CUmemLocationType,
    CUmemoryPool,
    CUmemPool_attribute,
    CUresult,
    cuuint64_t,
)
from ..call_rules import CallRules
from ..device_state import DeviceState
from ..pools import Location, Pool, PoolPlace, PoolProperties
from ..refusal import OK, SUCCESS, Refusal, invalid_value
from ..shared_file import SharedFile
from .call import call

_THRESHOLD: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
_RESERVED: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
_RESERVED_HIGH: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
_USED: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
_USED_HIGH: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH)
# What a pool was made with, which the bindings of CUDA 12 have no names for.
_TYPE, _HANDLE_TYPES, _LOCATION, _LOCATION_TYPE, _MOST, _DECOMPRESSES = range(9, 15)

_PINNED: Final = int(CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED)
_MANAGED: Final = 2  # CU_MEM_ALLOCATION_TYPE_MANAGED
_NO_HANDLES: Final = int(CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_NONE)
DESCRIPTORS: Final = int(CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
_NO_ACCESS: Final = int(CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE)
_READ_AND_WRITE: Final = int(CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE)

_ANYWHERE: Final = 0  # CU_MEM_LOCATION_TYPE_NONE
DEVICE: Final = int(CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE)
HOST: Final = int(CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST)
HOST_NUMA: Final = int(CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA)
HOST_NUMA_CURRENT: Final = 4  # CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
_THE_HOST: Final = -1  # among the ordinals of who may access a pool


class PoolCalls(CallRules):
    """Memory pools."""

    @call(1)
    def cuMemPoolCreate(
        self, pool_props: PoolProperties | None, /
    ) -> tuple[CUresult, CUmemoryPool]:
        """A pool, which takes `maxSize` bytes at most if that is not 0.

        It is of a device's memory, of page-locked memory of the host, or of managed memory, whose
        place is where it would rather be.
        """
        if pool_props is None:
            raise invalid_value("the properties of the pool are null")
        self._refuse_unsafe()
        try:
            kind, handles = int(pool_props.allocType), int(pool_props.handleTypes)
            place = self._place_of_pools(pool_props.location, kind)
        except ValueError as error:
            raise invalid_value(f"the properties of the pool: {error}") from None
        most = int(pool_props.maxSize)
        if handles not in (_NO_HANDLES, DESCRIPTORS):
            raise _not_supported("the emulator shares pools by POSIX file descriptors alone")
        if not self._is_of_device(place):
            return SUCCESS, CUmemoryPool(self._pool_of_host(place, handles, most).handle)
        device = self._device_at(place.number)
        pool = Pool(next(self._handles), most)
        if handles == DESCRIPTORS:
            pool.file = shared_file("pool", device, device.profile.total_memory)
        with device.lock:
            device.account.pools[pool.handle] = pool
        return SUCCESS, CUmemoryPool(pool.handle)

    def _pool_of_host(self, place: PoolPlace, handles: int, most: int) -> Pool:
        if place.is_managed and (handles or most):
            raise invalid_value("a pool of managed memory has no limit, and is not shared")
        if place.kind == HOST and handles:
            raise invalid_value("only a pool of a NUMA node of the host is shared")
        if handles:
            raise _not_supported(
                "the emulator shares pools of devices, and none of page-locked memory: make the "
                "pool without handle types"
            )
        with self._lock:
            return self._host_pools.made(place, most)

    @call()
    def cuMemPoolDestroy(self, pool: CUmemoryPool, /) -> tuple[CUresult]:
        """Destroy a pool; what it gave stays until it is freed. Those of the beginning stay."""
        device, found = self._pool(pool)
        self._refuse_unsafe()
        if device is None:
            with self._lock:
                if self._host_pools.is_default(found):
                    raise invalid_value("a default pool cannot be destroyed")
                self._host_pools.destroy(found)
            return OK
        if found is device.pool:
            raise invalid_value("a device's default pool cannot be destroyed")
        with device.lock:
            if device.pool_in_use is found:
                device.pool_in_use = device.pool
            device.account.destroy(found)
        return OK

    @call(1)
    def cuMemPoolGetAccess(
        self, mem_pool: CUmemoryPool, location: Location | None, /
    ) -> tuple[CUresult, CUmemAccess_flags]:
        """What access a device has to a pool, or the host to one of its memory.

        To a pool of managed memory that is what cuMemPoolSetAccess said, though everybody reaches
        its memory: measured with driver 580.
        """
        owner, pool = self._pool(mem_pool)
        if location is None:
            raise invalid_value("access to a pool is asked for of a device")
        if owner is None and int(location.type) in (HOST, HOST_NUMA):
            is_open = not _is_managed(pool) or _THE_HOST in pool.peers
        elif location.type != CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
            raise invalid_value("access to a pool is asked for of a device")
        else:
            device = self._device_at(location.id)
            is_open = device is owner or device.ordinal in pool.peers
        return SUCCESS, CUmemAccess_flags(_READ_AND_WRITE if is_open else _NO_ACCESS)

    @call()
    def cuMemPoolTrimTo(self, pool: CUmemoryPool, min_bytes_to_keep: int, /) -> tuple[CUresult]:
        """Give unused memory back, down to `min_bytes_to_keep`."""
        device, account = self._pool(pool)
        self._refuse_unsafe()
        with self._lock_of_pool(device):
            account.trim(min_bytes_to_keep)
        return OK

    @call()
    def cuMemPoolSetAttribute(
        self, pool: CUmemoryPool, attr: CUmemPool_attribute, value: cuuint64_t, /
    ) -> tuple[CUresult]:
        """The threshold, a reuse policy, or 0 to reset a high-water mark."""
        device, account = self._pool(pool)
        number, new = int(attr), int(value)
        with self._lock_of_pool(device):
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
        self, pool: CUmemoryPool, attr: CUmemPool_attribute | int, /
    ) -> tuple[CUresult, cuuint64_t]:
        """A policy, an account, or what the pool was made with."""
        device, account = self._pool(pool)
        place = self._place_of_pool(device, account)
        values = {
            **account.reuse,
            _THRESHOLD: account.threshold,
            _RESERVED: account.reserved,
            _RESERVED_HIGH: account.reserved_high,
            _USED: account.used,
            _USED_HIGH: account.used_high,
            _TYPE: _MANAGED if place.is_managed else _PINNED,
            _HANDLE_TYPES: DESCRIPTORS if account.file and not account.is_foreign else _NO_HANDLES,
            _LOCATION: place.number,
            _LOCATION_TYPE: place.kind,
            _MOST: account.most,
            _DECOMPRESSES: 0,
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
        asked = [self._access(owner, opened, each) for each in map[:count]]
        with self._lock_of_pool(owner):
            for ordinal, is_granted in asked:
                if is_granted:
                    opened.peers.add(ordinal)
                else:
                    opened.peers.discard(ordinal)
        return OK

    def _access(
        self, owner: DeviceState | None, pool: Pool, asked: CUmemAccessDesc
    ) -> tuple[int, bool]:
        """The ordinal of who shall have access, and whether."""
        flags, kind = int(asked.flags), int(asked.location.type)
        if flags not in (_NO_ACCESS, _READ_AND_WRITE):
            raise _not_supported(f"access to a pool is none or to read and write, not {flags}")
        if owner is None and kind in (HOST, HOST_NUMA):
            if flags == _NO_ACCESS and not _is_managed(pool):
                raise _not_supported("the host has access to its own memory")
            return _THE_HOST, bool(flags)
        if kind != DEVICE:
            raise _not_supported("access to a pool of a device is given to devices")
        device = self._device_at(asked.location.id)
        if device is owner and flags == _NO_ACCESS:
            raise Refusal(
                CUresult.CUDA_ERROR_INVALID_DEVICE, "a pool's own device has access to it"
            )
        if owner not in (None, device) and flags and not owner.can_be_reached_by(device):
            raise Refusal(
                CUresult.CUDA_ERROR_INVALID_DEVICE,
                f"device {device.ordinal} cannot access memory of device {owner.ordinal}",
            )
        return device.ordinal, bool(flags)

    def _pool(self, handle: CUmemoryPool) -> tuple[DeviceState | None, Pool]:
        """A pool, and the device whose memory it has; None of the host's."""
        number = int(handle)
        for device in self._devices:
            pool = device.account.pools.get(number)
            if pool is not None and pool.is_open:
                return device, pool
        pool = self._host_pools.by_handle.get(number)
        if pool is not None and pool.is_open:
            return None, pool
        raise invalid_value(f"{number:#x} is no memory pool")

    def _lock_of_pool(self, device: DeviceState | None) -> AbstractContextManager[object]:
        """What guards the account of a device's pool, or of one of the host."""
        return self._lock if device is None else device.lock

    def _place_of_pools(self, location: Location | None, typename: int) -> PoolPlace:
        """What a location and a type of allocation mean.

        The codes were measured with driver 580.

        Raises:
            Refusal: there are no pools of that.
        """
        if location is None:
            raise invalid_value("the location of the pool is null")
        kind, number = int(location.type), int(location.id)
        is_managed = int(typename) == _MANAGED
        if not is_managed and int(typename) != _PINNED:
            raise invalid_value(f"memory of type {int(typename)} has no pool")
        if kind == DEVICE:
            if not 0 <= number < len(self._devices):
                raise invalid_value(f"there is no device {number} of {len(self._devices)}")
            return PoolPlace(kind, number, is_managed)
        if kind == HOST_NUMA and number:
            raise invalid_value(f"the emulated host has NUMA node 0, and no node {number}")
        if kind in (HOST, HOST_NUMA) or (is_managed and kind in (_ANYWHERE, HOST_NUMA_CURRENT)):
            return PoolPlace(kind, 0, is_managed)
        raise invalid_value(f"there are no pools of memory at locations of type {kind}")

    def _place_of_chosen_pools(self, location: Location | None, typename: int) -> PoolPlace:
        """The same, of a place that has a pool in use: that of a thread is not one."""
        if location is not None and int(location.type) == HOST_NUMA_CURRENT:
            raise _not_supported("the NUMA node of a thread has no pool in use: name the node")
        return self._place_of_pools(location, typename)

    @staticmethod
    def _is_of_device(place: PoolPlace) -> bool:
        return place.kind == DEVICE and not place.is_managed

    @staticmethod
    def _place_of_pool(device: DeviceState | None, pool: Pool) -> PoolPlace:
        if device is not None:
            return PoolPlace(DEVICE, device.ordinal)
        assert pool.place is not None
        return pool.place


def _is_managed(pool: Pool) -> bool:
    return pool.place is not None and pool.place.is_managed


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
