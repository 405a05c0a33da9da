"""The driver's own memory pool of a device, which stream-ordered allocations come from.

CUDA Driver API, "Stream Ordered Memory Allocator". The default pool is one a device and process:
PyTorch, CuPy and the runtime API allocate from it too.
"""

from __future__ import annotations

from .._api import CUmemoryPool, CUmemPool_attribute, cuuint64_t
from .._driver import failure
from ..device import Device

_THRESHOLD = CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD


def _default_pool(device: Device) -> CUmemoryPool:
    api = device.driver.api
    code, pool = api.cuDeviceGetDefaultMemPool(device.handle)
    if code:
        raise failure(api, code, "cuDeviceGetDefaultMemPool", f"the memory pool of {device!r}")
    return pool


def release_threshold(device: Device) -> int:
    """Bytes that the pool keeps when streams synchronise; asks the driver."""
    api = device.driver.api
    code, value = api.cuMemPoolGetAttribute(_default_pool(device), _THRESHOLD)
    if code:
        raise failure(api, code, "cuMemPoolGetAttribute", f"the pool threshold of {device!r}")
    return int(value)


def set_release_threshold(device: Device, nbytes: int) -> None:
    """Let the pool keep `nbytes` when streams synchronise; it gives back what is above.

    Kept memory makes the next allocation cheap; too much of it fragments, and a large request
    fails beside plenty of free memory.
    """
    api = device.driver.api
    (code,) = api.cuMemPoolSetAttribute(_default_pool(device), _THRESHOLD, cuuint64_t(nbytes))
    if code:
        doing = f"setting the pool threshold of {device!r} to {nbytes} bytes"
        raise failure(api, code, "cuMemPoolSetAttribute", doing)


def trim_pool(device: Device, keep_bytes: int = 0) -> None:
    """Give the pool's unused memory back to the device, down to `keep_bytes`."""
    api = device.driver.api
    (code,) = api.cuMemPoolTrimTo(_default_pool(device), keep_bytes)
    if code:
        raise failure(api, code, "cuMemPoolTrimTo", f"trimming the pool of {device!r}")
