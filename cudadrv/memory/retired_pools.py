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
from ..driver.driver_selection import Driver, failure

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
    """The retired pools of one device. It takes no lock; a pool whose calls fail is abandoned."""

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

    def add_given(self, pool: CUmemoryPool) -> None:
        """Store an emptied pool that other processes may have, until it can be destroyed."""
        self._given.append(pool)

    def take(self, driver: Driver, ordinal: int, kind: Hashable) -> CUmemoryPool | None:
        """Return a pool as the driver makes new ones; None if all have queued frees.

        Raises:
            CudaError: the driver reported an error.
        """
        pools = self._own.get(kind, [])
        for _ in range(len(pools)):
            try:
                pool = pools.pop(0)
            except IndexError:  # another thread was faster
                return None
            if _is_drained(driver.api, pool):
                _make_new(driver, ordinal, pool)
                return pool
            pools.append(pool)
        return None

    def destroy_given(self, api: DriverApi) -> None:
        """Destroy the pools of which the driver has no memory any more.

        Raises:
            CudaError: the driver reported an error.
        """
        for _ in range(len(self._given)):
            try:
                pool = self._given.pop(0)
            except IndexError:
                return
            if _is_drained(api, pool):
                (code,) = api.cuMemPoolDestroy(pool)
                _check(api, code, "cuMemPoolDestroy")
            else:
                self._given.append(pool)


def empty(api: DriverApi, pool: CUmemoryPool) -> None:
    """Free the memory of a pool, and let it retain none that is freed later.

    Raises:
        CudaError: the driver reported an error.
    """
    _set(api, pool, _Attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0)
    (code,) = api.cuMemPoolTrimTo(pool, 0)
    _check(api, code, "cuMemPoolTrimTo")


def _is_drained(api: DriverApi, pool: CUmemoryPool) -> bool:
    """Return whether a pool has no memory. Memory whose free is queued counts as reserved alone."""
    empty(api, pool)
    reserved = _Attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
    code, nbytes = api.cuMemPoolGetAttribute(pool, reserved)
    _check(api, code, "cuMemPoolGetAttribute")
    return not int(nbytes)


def _make_new(driver: Driver, ordinal: int, pool: CUmemoryPool) -> None:
    """Give a pool the attributes of a new one, which no other device may access."""
    api = driver.api
    for attribute, value in _OF_NEW:
        _set(api, pool, attribute, value)
    code, count = api.cuDeviceGetCount()
    _check(api, code, "cuDeviceGetCount")
    for other in range(count):
        if other != ordinal:
            _close_to(api, pool, other)


def _set(api: DriverApi, pool: CUmemoryPool, attribute: CUmemPool_attribute, value: int) -> None:
    (code,) = api.cuMemPoolSetAttribute(pool, attribute, cuuint64_t(value))
    _check(api, code, "cuMemPoolSetAttribute")


def _close_to(api: DriverApi, pool: CUmemoryPool, ordinal: int) -> None:
    """Take the access of a device to a pool away."""
    location = CUmemLocation()
    location.type, location.id = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE, ordinal
    code, flags = api.cuMemPoolGetAccess(pool, location)
    _check(api, code, "cuMemPoolGetAccess")
    if flags == CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE:
        return
    access = CUmemAccessDesc()
    access.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    access.location.id = ordinal
    access.flags = CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE
    (code,) = api.cuMemPoolSetAccess(pool, [access], 1)
    _check(api, code, "cuMemPoolSetAccess")


def _check(api: DriverApi, code: CUresult, call: str) -> None:
    if code:
        raise failure(api, code, call, "emptying a closed memory pool")
