"""Memory pools.

CUDA Driver API: "Stream Ordered Memory Allocator".
"""

from __future__ import annotations

from typing import Final

from ...driver._api import (
    CUmemoryPool,
    CUmemPool_attribute,
    CUresult,
    cuuint64_t,
)
from ..capture_rules import CaptureRules
from ..emulated_device import DeviceState
from ..refusal import OK, SUCCESS, call, invalid_value

_THRESHOLD: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
_RESERVED: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
_RESERVED_HIGH: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
_USED: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
_USED_HIGH: Final = int(CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_HIGH)


class PoolCalls(CaptureRules):
    """Memory pools."""

    @call()
    def cuMemPoolTrimTo(self, pool: CUmemoryPool, min_bytes_to_keep: int, /) -> tuple[CUresult]:
        """Give unused memory back, down to `min_bytes_to_keep`."""
        device = self._device_of_pool(pool)
        self._refuse_unsafe()
        with device.lock:
            device.pool.trim(min_bytes_to_keep)
        return OK

    @call()
    def cuMemPoolSetAttribute(
        self, pool: CUmemoryPool, attr: CUmemPool_attribute, value: cuuint64_t, /
    ) -> tuple[CUresult]:
        """The threshold, a reuse policy, or 0 to reset a high-water mark."""
        device = self._device_of_pool(pool)
        account, number, new = device.pool, int(attr), int(value)
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
        account = self._device_of_pool(pool).pool
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

    def _device_of_pool(self, pool: CUmemoryPool) -> DeviceState:
        for device in self._devices:
            if device.pool_handle == int(pool):
                return device
        raise invalid_value(f"{int(pool):#x} is no memory pool")
