"""Memory pools.

CUDA Driver API: "Stream Ordered Memory Allocator".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...driver._api import (
    CUmemAccess_flags,
    CUmemAccessDesc,
    CUmemLocationType,
    CUmemoryPool,
    CUmemPool_attribute,
    CUresult,
    cuuint64_t,
)
from ..capture_rules import CaptureRules
from ..emulated_device import DeviceState
from ..refusal import OK, SUCCESS, Refusal, call, invalid_value

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

    @call()
    def cuMemPoolSetAccess(
        self, pool: CUmemoryPool, map: Sequence[CUmemAccessDesc], count: int, /
    ) -> tuple[CUresult]:
        """Let other devices reach the pool's memory; its own device always can."""
        device = self._device_of_pool(pool)
        if count < 1 or count > len(map):
            raise invalid_value(f"{count} access descriptions of {len(map)}")
        for description in map[:count]:
            self._set_access(device, description)
        return OK

    def _set_access(self, device: DeviceState, description: CUmemAccessDesc) -> None:
        flags = description.flags
        none = flags == CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE
        if description.location.type != CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE:
            raise Refusal(
                CUresult.CUDA_ERROR_NOT_SUPPORTED, "only devices can be given access to a pool"
            )
        other = self._device_at(description.location.id)
        if other is device:
            if none:
                raise Refusal(
                    CUresult.CUDA_ERROR_INVALID_DEVICE,
                    "a device keeps the access to its own pool",
                )
            if flags != CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE:
                raise Refusal(
                    CUresult.CUDA_ERROR_NOT_SUPPORTED, "a device's access to its pool is to write"
                )
            return
        if not (device.profile.peer_access and other.profile.peer_access):
            raise Refusal(
                CUresult.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
                f"device {other.ordinal} cannot access the memory of device {device.ordinal}",
            )
        peers = other.model.peers
        if none and device.memory in peers:
            peers.remove(device.memory)
        elif not none and device.memory not in peers:
            peers.append(device.memory)

    def _device_of_pool(self, pool: CUmemoryPool) -> DeviceState:
        for device in self._devices:
            if device.pool_handle == int(pool):
                return device
        raise invalid_value(f"{int(pool):#x} is no memory pool")
