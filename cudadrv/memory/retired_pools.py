"""Pools of memory that nothing uses any more. New ones of the same kind take them.

Driver 580 crashes in later calls, or in calls of other threads, after it has destroyed a pool that
streams have used: docs/contributing/invariants.md. So pools are emptied, and not destroyed. Those
that other processes may have are destroyed when they have no memory any more.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from ..driver._api import (
    CUmemAccess_flags,
    CUmemAccessDesc,
    CUmemLocation,
    CUmemLocationType,
    CUmemoryPool,
    CUmemPool_attribute,
    CUresult,
    cuuint64_t,
)
from ..driver.driver_api import DriverApi
from ..driver.driver_selection import Driver

_Attribute: Final = CUmemPool_attribute
# As a new pool has them. Zero starts the highest sizes again.
_OF_NEW: Final = (
    (_Attribute.CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 1),
    (_Attribute.CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 1),
    (_Attribute.CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 1),
    (_Attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0),
    (_Attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0),
)


class RetiredPools:
    """The retired pools of one device. It takes no lock."""

    def __init__(self) -> None:
        self._own: dict[Hashable, list[CUmemoryPool]] = {}
        self._given: list[CUmemoryPool] = []

    @classmethod
    def of(cls, driver: Driver, ordinal: int) -> RetiredPools:
        """Return the retired pools of a device; a reset of its context forgets them."""
        return driver.one_of(cls, ordinal)

    def add(self, pool: CUmemoryPool, kind: Hashable) -> None:
        """Store an emptied pool for later ones of its kind."""
        self._own.setdefault(kind, []).append(pool)

    def add_given(self, api: DriverApi, pool: CUmemoryPool) -> CUresult:
        """Store an emptied pool that other processes may have; return as `destroy_given`."""
        self._given.append(pool)
        return self.destroy_given(api)

    def take(self, driver: Driver, ordinal: int, kind: Hashable) -> CUmemoryPool | None:
        """Return a pool as the driver makes new ones; None if all have queued frees."""
        pools = self._own.get(kind, [])
        for _ in range(len(pools)):
            try:
                pool = pools.pop(0)
            except IndexError:  # another thread was faster
                return None
            if _is_made_new(driver, ordinal, pool):
                return pool
            pools.append(pool)
        return None

    def destroy_given(self, api: DriverApi) -> CUresult:
        """Destroy the pools of which the driver has no memory any more; return its result."""
        for _ in range(len(self._given)):
            try:
                pool = self._given.pop(0)
            except IndexError:
                break
            if _is_drained(api, pool):
                (code,) = api.cuMemPoolDestroy(pool)
                if code:
                    return code
            else:
                self._given.append(pool)
        return CUresult.CUDA_SUCCESS


def empty(api: DriverApi, pool: CUmemoryPool) -> tuple[CUresult, str]:
    """Free the memory of a pool, and let it retain none that is freed later.

    Returns: the result, and the name of the call that failed.
    """
    threshold = _Attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    (code,) = api.cuMemPoolSetAttribute(pool, threshold, cuuint64_t(0))
    if code:
        return code, "cuMemPoolSetAttribute"
    (code,) = api.cuMemPoolTrimTo(pool, 0)
    return code, "cuMemPoolTrimTo"


def _is_drained(api: DriverApi, pool: CUmemoryPool) -> bool:
    """Return whether a pool has no memory. Memory whose free is queued counts as reserved alone."""
    if empty(api, pool)[0]:
        return False
    code, reserved = api.cuMemPoolGetAttribute(
        pool, _Attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
    )
    return not code and not int(reserved)


def _is_made_new(driver: Driver, ordinal: int, pool: CUmemoryPool) -> bool:
    """Give a pool the attributes of a new one; return False if frees are queued or a call fails."""
    api = driver.api
    if not _is_drained(api, pool):
        return False
    for attribute, value in _OF_NEW:
        (code,) = api.cuMemPoolSetAttribute(pool, attribute, cuuint64_t(value))
        if code:
            return False
    code, count = api.cuDeviceGetCount()
    others = [other for other in range(count) if other != ordinal]
    return not code and all(_is_closed_to(api, pool, other) for other in others)


def _is_closed_to(api: DriverApi, pool: CUmemoryPool, ordinal: int) -> bool:
    """Take the access of a device to a pool away; return False if a call fails."""
    location = CUmemLocation()
    location.type, location.id = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, ordinal
    code, flags = api.cuMemPoolGetAccess(pool, location)
    if code or flags == CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE:
        return not code
    access = CUmemAccessDesc()
    access.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = ordinal
    access.flags = CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE
    (code,) = api.cuMemPoolSetAccess(pool, [access], 1)
    return not code
