"""The driver's own memory pool of a device, which stream-ordered allocations come from.

CUDA Driver API, "Stream Ordered Memory Allocator". Each device and process has one default pool:
PyTorch, CuPy and the runtime API allocate from it too.
"""

from __future__ import annotations

from typing import NamedTuple

from .. import border, errors
from ..driver._api import (
    CUmemAccess_flags,
    CUmemAccessDesc,
    CUmemLocationType,
    CUmemoryPool,
    CUmemPool_attribute,
    CUresult,
    cuuint64_t,
)
from ..driver.context import BaseContext
from ..driver.deferred_release import run_deferred
from ..driver.device import Device, can_access_peer
from ..driver.driver_api import DriverApi
from ..driver.driver_selection import failure
from ..driver.stream_handle import free_cached_blocks

_THRESHOLD = CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD


class PoolInfo(NamedTuple):
    """Sizes of a device's pool, in bytes.

    Attributes:
        reserved: allocated from the device, in use or not.
        used: the part of it that is in use.
        release_threshold: the bytes that the pool retains when streams synchronise.
    """

    reserved: int
    used: int
    release_threshold: int


def pool_info(device: Device) -> PoolInfo:
    """Return the current sizes of the pool that serves a device's stream-ordered memory."""
    border.instance_of("pool_info: device", device, Device)
    run_deferred()
    free_cached_blocks(device.driver, device.ordinal)
    api, pool = device.driver.api, device.default_pool()
    attributes = (
        CUmemPool_attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
        CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
        _THRESHOLD,
    )
    name = f"the pool of {device!r}"
    return PoolInfo(*(pool_attribute(api, pool, attribute, name) for attribute in attributes))


def pool_attribute(
    api: DriverApi, pool: CUmemoryPool, attribute: CUmemPool_attribute, name: str
) -> int:
    """Read an attribute of a pool; `name` is for the text of an error."""
    code, value = api.cuMemPoolGetAttribute(pool, attribute)
    if code:
        raise failure(api, code, "cuMemPoolGetAttribute", f"querying {name}")
    return int(value)


def release_threshold(device: Device) -> int:
    """Query the bytes that the pool retains when streams synchronise."""
    return pool_info(device).release_threshold


def set_release_threshold(device: Device, nbytes: int) -> None:
    """Let the pool retain up to `nbytes` when streams synchronise; it frees the rest.

    Retained memory makes the next allocation cheap. Too much of it fragments the device's memory: a
    large request then fails although much memory is free.
    """
    border.instance_of("set_release_threshold: device", device, Device)
    nbytes = border.int_in_range("set_release_threshold: nbytes", nbytes, most=2**64 - 1)
    api = device.driver.api
    (code,) = api.cuMemPoolSetAttribute(device.default_pool(), _THRESHOLD, cuuint64_t(nbytes))
    if code:
        doing = f"setting the pool threshold of {device!r} to {nbytes} bytes"
        raise failure(api, code, "cuMemPoolSetAttribute", doing)


def request_release_threshold(device: Device, nbytes: int) -> None:
    """Set the threshold where the device has a pool; do nothing where the driver has none.

    Raises:
        CudaError: earlier work has failed, so that no call works any more.
    """
    try:
        set_release_threshold(device, nbytes)
    except errors.CudaError as error:
        if error.sticky:
            raise


def trim_pool(device: Device, keep_bytes: int = 0) -> None:
    """Free the pool's unused memory, down to `keep_bytes`."""
    border.instance_of("trim_pool: device", device, Device)
    keep_bytes = border.int_in_range("trim_pool: keep_bytes", keep_bytes, most=2**64 - 1)
    free_cached_blocks(device.driver, device.ordinal)
    api = device.driver.api
    (code,) = api.cuMemPoolTrimTo(device.default_pool(), keep_bytes)
    if code:
        raise failure(api, code, "cuMemPoolTrimTo", f"trimming the pool of {device!r}")


class _PoolAccess:
    """The devices that can access a device's pool, or cannot; it lives as long as the driver.

    Attributes:
        decided: by ordinal, whether the device has access.
    """

    def __init__(self) -> None:
        self.decided: dict[int, bool] = {}


def open_pool(owner: Device, device: Device) -> bool:
    """Let a device access the memory of another one's pool; return whether it can.

    The driver is queried once. Without access a copy between the two runs at a tenth of the link's
    speed, and kernels of `device` cannot use the memory.
    """
    access = owner.driver.one_of(_PoolAccess, owner.ordinal)
    decided = access.decided.get(device.ordinal)
    if decided is None:
        decided = can_access_peer(device, owner)
        if decided:
            api = owner.driver.api
            code = grant(api, owner.default_pool(), device)
            if code:
                doing = f"letting device {device.ordinal} access the pool of {owner!r}"
                raise failure(api, code, "cuMemPoolSetAccess", doing)
        access.decided[device.ordinal] = decided
    return decided


def grant(api: DriverApi, pool: CUmemoryPool, device: Device) -> CUresult:
    """Let a device read and write a pool's memory; return the driver's result."""
    descriptor = CUmemAccessDesc()
    descriptor.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    descriptor.location.id = device.ordinal
    descriptor.flags = CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    (code,) = api.cuMemPoolSetAccess(pool, [descriptor], 1)
    return code


def out_of_memory(context: BaseContext, nbytes: int, call: str) -> errors.OutOfMemoryError:
    """Return the error for a request that did not fit, with the current free and total bytes."""
    free, total = context.memory_info()
    return errors.OutOfMemoryError(
        f"allocating {nbytes} bytes on device {context.ordinal}, "
        f"which has {free} bytes free of {total}",
        call=call,
    )
