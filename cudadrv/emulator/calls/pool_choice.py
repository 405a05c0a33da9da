"""Which pool is in use for a device, for the host, for managed memory.

CUDA Driver API: cuMemGetMemPool, cuMemSetMemPool, cuMemGetDefaultMemPool, cuDeviceSetMemPool.
"""

from __future__ import annotations

from ...driver._api import CUdevice, CUmemoryPool, CUresult
from ..pools import Location, Pool, PoolPlace
from ..refusal import OK, SUCCESS, invalid_value
from .call import call
from .pool import DEVICE, PoolCalls


class PoolChoiceCalls(PoolCalls):
    """Default pools, and those in use."""

    @call(1)
    def cuDeviceGetDefaultMemPool(self, dev: CUdevice, /) -> tuple[CUresult, CUmemoryPool]:
        """The pool that a device has from the beginning."""
        return SUCCESS, CUmemoryPool(self._device(dev).pool.handle)

    @call(1)
    def cuDeviceGetMemPool(self, dev: CUdevice, /) -> tuple[CUresult, CUmemoryPool]:
        """The pool that cuMemAllocAsync takes from."""
        return SUCCESS, CUmemoryPool(self._device(dev).pool_in_use.handle)

    @call()
    def cuDeviceSetMemPool(self, dev: CUdevice, pool: CUmemoryPool, /) -> tuple[CUresult]:
        """Let cuMemAllocAsync take from another pool of the device."""
        self._use_pool(PoolPlace(DEVICE, self._device(dev).ordinal), pool)
        return OK

    @call(1)
    def cuMemGetDefaultMemPool(
        self, location: Location | None, typename: int, /
    ) -> tuple[CUresult, CUmemoryPool]:
        """The pool that a place has from the beginning for a kind of memory."""
        place = self._place_of_chosen_pools(location, typename)
        if self._is_of_device(place):
            return SUCCESS, CUmemoryPool(self._device_at(place.number).pool.handle)
        with self._lock:
            return SUCCESS, CUmemoryPool(self._host_pools.default(place).handle)

    @call(1)
    def cuMemGetMemPool(
        self, location: Location | None, typename: int, /
    ) -> tuple[CUresult, CUmemoryPool]:
        """The pool in use for a place and a kind of memory."""
        place = self._place_of_chosen_pools(location, typename)
        return SUCCESS, CUmemoryPool(self._pool_in_use(place).handle)

    @call()
    def cuMemSetMemPool(
        self, location: Location | None, typename: int, pool: CUmemoryPool, /
    ) -> tuple[CUresult]:
        """Choose a pool for the place and the kind of memory that it was made for."""
        self._use_pool(self._place_of_chosen_pools(location, typename), pool)
        return OK

    def _pool_in_use(self, place: PoolPlace) -> Pool:
        if self._is_of_device(place):
            return self._device_at(place.number).pool_in_use
        with self._lock:
            return self._host_pools.in_use(place)

    def _use_pool(self, place: PoolPlace, handle: CUmemoryPool) -> None:
        device, pool = self._pool(handle)
        if pool.is_foreign:
            raise invalid_value("a pool of another process gives no memory here")
        if self._place_of_pool(device, pool) != place:
            raise invalid_value("a pool is used for the place and the kind of memory it is of")
        if device is not None:
            device.pool_in_use = pool
            return
        with self._lock:
            self._host_pools.use(place, pool)
