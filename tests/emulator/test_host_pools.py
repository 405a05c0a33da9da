"""Pools of page-locked and managed memory, as other libraries make them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray

from cudadrv.driver._api import (
    CUDA_MEMCPY3D,
    CUdeviceptr,
    CUmemAccess_flags,
    CUmemAccessDesc,
    CUmemLocationType,
    CUmemoryPool,
    CUmemorytype,
    CUmemPool_attribute as M,
    CUpointer_attribute as P,
    CUresult,
    CUstream,
    cuuint64_t,
)
from cudadrv.emulator import Emulator

from .calls import LEGACY, Parameters, attribute, code, functions, launch, load, ok
from .handles import RELAXED, a_stream
from .kernels import FILL

PINNED, MANAGED = 1, 2
NONE, DEVICE, HOST, HOST_NUMA, HOST_NUMA_CURRENT = range(5)
DEFAULTS: Final = (
    (PINNED, HOST), (PINNED, HOST_NUMA), (MANAGED, NONE), (MANAGED, DEVICE), (MANAGED, HOST),
    (MANAGED, HOST_NUMA),
)  # fmt: skip


@dataclass(frozen=True)
class Place:
    """A CUmemLocation of any number."""

    type: int
    id: int = 0


@dataclass(frozen=True)
class Properties:
    """A CUmemPoolProps of any numbers, as those of CUDA 12 take no managed memory."""

    allocType: int  # noqa: N815  # the driver's name
    location: Place
    maxSize: int = 0  # noqa: N815  # the driver's name
    handleTypes: int = 0  # noqa: N815  # the driver's name


def made(api: Emulator, kind: int, where: int, most: int = 0) -> CUmemoryPool:
    return ok(api.cuMemPoolCreate(Properties(kind, Place(where), most)))


def access(flags: int) -> CUmemAccessDesc:
    found = CUmemAccessDesc()
    found.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    found.flags = CUmemAccess_flags(flags)
    return found


def account(api: Emulator, pool: CUmemoryPool) -> list[int]:
    """Reserved now and at most, used now and at most."""
    return [int(ok(api.cuMemPoolGetAttribute(pool, M(number)))) for number in (5, 6, 7, 8)]


def why(api: Emulator, code: CUresult) -> str:
    return (api.cuGetErrorString(code)[1] or b"").decode()


@pytest.fixture
def api(in_either_order: Emulator) -> Emulator:
    return in_either_order


def bytes_at(address: CUdeviceptr, nbytes: int) -> NDArray[np.uint8]:
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(int(address)))


def test_every_place_has_a_default_pool_of_its_own(api: Emulator) -> None:
    found = [int(ok(api.cuMemGetDefaultMemPool(Place(where), kind))) for kind, where in DEFAULTS]
    own = [int(ok(api.cuDeviceGetDefaultMemPool(ok(api.cuDeviceGet(n))))) for n in (0, 1)]
    assert len({*found, *own}) == len(DEFAULTS) + 2
    for (kind, where), pool in zip(DEFAULTS, found, strict=True):
        assert int(ok(api.cuMemGetMemPool(Place(where), kind))) == pool
        assert code(api.cuMemPoolDestroy(CUmemoryPool(pool))) == 1
    assert [int(ok(api.cuMemGetMemPool(Place(DEVICE, n), PINNED))) for n in (0, 1)] == own


def test_a_pool_in_use_is_the_chosen_one_until_it_is_destroyed(api: Emulator) -> None:
    for kind, where in (*DEFAULTS, (PINNED, DEVICE)):
        default = int(ok(api.cuMemGetMemPool(Place(where), kind)))
        pool = made(api, kind, where)
        ok(api.cuMemSetMemPool(Place(where), kind, pool))
        assert int(ok(api.cuMemGetMemPool(Place(where), kind))) == int(pool)
        assert int(ok(api.cuMemGetDefaultMemPool(Place(where), kind))) == default
        ok(api.cuMemPoolDestroy(pool))
        assert int(ok(api.cuMemGetMemPool(Place(where), kind))) == default


def test_memory_of_a_device_comes_from_its_pool_in_use(api: Emulator) -> None:
    device, pool = ok(api.cuDeviceGet(0)), made(api, PINNED, DEVICE)
    ok(api.cuDeviceSetMemPool(device, pool))
    assert int(ok(api.cuDeviceGetMemPool(device))) == int(pool)
    memory = ok(api.cuMemAllocAsync(64, LEGACY))
    found = attribute(api, P.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, int(memory))
    assert isinstance(found, CUmemoryPool)
    assert int(found) == int(pool)
    ok(api.cuMemFreeAsync(memory, LEGACY))
    ok(api.cuMemPoolDestroy(pool))
    assert int(ok(api.cuDeviceGetMemPool(device))) == int(ok(api.cuDeviceGetDefaultMemPool(device)))


def test_a_pool_is_used_for_what_it_was_made_for(api: Emulator) -> None:
    pool = made(api, PINNED, HOST)
    for where, kind in ((HOST_NUMA, PINNED), (HOST, MANAGED), (DEVICE, PINNED)):
        assert code(api.cuMemSetMemPool(Place(where), kind, pool)) == 1
    assert code(api.cuDeviceSetMemPool(ok(api.cuDeviceGet(0)), pool)) == 1
    other = ok(api.cuDeviceGetDefaultMemPool(ok(api.cuDeviceGet(1))))
    assert code(api.cuDeviceSetMemPool(ok(api.cuDeviceGet(0)), other)) == 1


def test_places_without_pools_are_rejected(api: Emulator) -> None:
    for kind, where in (
        (PINNED, Place(NONE)),
        (PINNED, Place(HOST_NUMA, 1)),
        (PINNED, Place(DEVICE, 2)),
        (0, Place(DEVICE)),
        (3, Place(DEVICE)),
        (MANAGED, Place(DEVICE, -1)),
        (PINNED, None),
    ):
        assert code(api.cuMemGetMemPool(where, kind)) == 1
        assert code(api.cuMemGetDefaultMemPool(where, kind)) == 1
        if where is not None:
            assert code(api.cuMemPoolCreate(Properties(kind, where))) == 1
    assert code(api.cuMemGetMemPool(Place(DEVICE, 2), PINNED)) == 1
    assert "no device 2 of 2" in why(api, CUresult.CUDA_ERROR_INVALID_VALUE)
    for kind, created in ((PINNED, 1), (MANAGED, 0)):
        current = Place(HOST_NUMA_CURRENT)
        assert code(api.cuMemGetMemPool(current, kind)) == 801
        assert "name the node" in why(api, CUresult.CUDA_ERROR_NOT_SUPPORTED)
        assert code(api.cuMemGetDefaultMemPool(current, kind)) == 801
        assert code(api.cuMemPoolCreate(Properties(kind, current))) == created
    assert code(api.cuMemPoolCreate(Properties(PINNED, Place(HOST), handleTypes=1))) == 1
    assert code(api.cuMemPoolCreate(Properties(MANAGED, Place(DEVICE), handleTypes=1))) == 1
    assert code(api.cuMemPoolCreate(Properties(MANAGED, Place(DEVICE), 1 << 20))) == 1


def test_the_host_writes_what_a_copy_reads_and_reads_what_a_fill_writes(api: Emulator) -> None:
    for kind, where in DEFAULTS:
        pool, stream = made(api, kind, where), a_stream(api)
        memory = ok(api.cuMemAllocFromPoolAsync(4096, pool, stream))
        bytes_at(memory, 4096)[:] = 7
        other = ok(api.cuMemAlloc(4096))
        ok(api.cuMemcpyAsync(other, memory, 4096, stream))
        if kind == PINNED:
            assert code(api.cuMemsetD8Async(memory, 9, 4096, stream)) == 1
            assert "has not opened to device 0" in why(api, CUresult.CUDA_ERROR_INVALID_VALUE)
            ok(api.cuMemPoolSetAccess(pool, [access(3)], 1))
        ok(api.cuMemsetD8Async(memory, 9, 4096, stream))
        found = np.zeros(4096, np.uint8)
        ok(api.cuMemcpyDtoHAsync(found.ctypes.data, other, 4096, stream))
        ok(api.cuStreamSynchronize(stream))
        assert (found == 7).all()
        assert (bytes_at(memory, 4096) == 9).all()
        ok(api.cuMemFreeAsync(memory, stream))
        ok(api.cuStreamSynchronize(stream))


def test_memory_is_there_until_its_stream_has_freed_it(api: Emulator) -> None:
    pool, stream = made(api, PINNED, HOST), a_stream(api)
    memory, target = ok(api.cuMemAllocFromPoolAsync(64, pool, stream)), ok(api.cuMemAlloc(64))
    bytes_at(memory, 64)[:] = 3
    ok(api.cuMemcpyHtoDAsync(target, int(memory), 64, stream))
    ok(api.cuMemFreeAsync(memory, stream))
    assert code(api.cuMemFreeAsync(memory, stream)) == 1
    assert code(api.cuMemFree(memory)) == 1
    found = np.zeros(64, np.uint8)
    ok(api.cuMemcpyDtoHAsync(found.ctypes.data, target, 64, stream))
    ok(api.cuStreamSynchronize(stream))
    assert (found == 3).all()
    assert int(ok(api.cuMemPoolGetAttribute(pool, M.CU_MEMPOOL_ATTR_USED_MEM_CURRENT))) == 0
    assert attribute(api, P.CU_POINTER_ATTRIBUTE_RANGE_SIZE, int(memory)) == 0


def test_memory_is_freed_at_once_without_a_stream_and_only_where_it_begins(api: Emulator) -> None:
    pool = made(api, MANAGED, NONE)
    memory = ok(api.cuMemAllocFromPoolAsync(64, pool, LEGACY))
    assert code(api.cuMemFree(CUdeviceptr(int(memory) + 8))) == 1
    assert code(api.cuMemFreeHost(int(memory))) == 1
    ok(api.cuMemFree(memory))
    assert int(ok(api.cuMemPoolGetAttribute(pool, M.CU_MEMPOOL_ATTR_USED_MEM_CURRENT))) == 0
    assert code(api.cuMemFree(memory)) == 1
    assert int(ok(api.cuMemAllocFromPoolAsync(0, pool, LEGACY))) == 0


def test_pools_of_the_host_have_accounts_and_a_limit(api: Emulator) -> None:
    pool = made(api, PINNED, HOST, most=1 << 20)
    first = ok(api.cuMemAllocFromPoolAsync(1000, pool, LEGACY))
    assert code(api.cuMemAllocFromPoolAsync(32 << 20, pool, LEGACY)) == 2
    assert account(api, pool) == [32 << 20, 32 << 20, 1000, 1000]
    ok(api.cuMemPoolSetAttribute(pool, M.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, cuuint64_t(1 << 30)))
    ok(api.cuMemFreeAsync(first, LEGACY))
    ok(api.cuCtxSynchronize())
    assert account(api, pool) == [32 << 20, 32 << 20, 0, 1000]
    ok(api.cuMemPoolTrimTo(pool, 0))
    assert int(ok(api.cuMemPoolGetAttribute(pool, M.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT))) == 0


def test_what_a_destroyed_pool_gave_lives_on(api: Emulator) -> None:
    pools = api.live_objects()["memory pool"]
    pool = made(api, MANAGED, DEVICE)
    memory = ok(api.cuMemAllocFromPoolAsync(64, pool, LEGACY))
    ok(api.cuMemPoolDestroy(pool))
    assert api.live_objects()["memory pool"] == pools + 1
    assert code(api.cuMemAllocFromPoolAsync(64, pool, LEGACY)) == 1
    ok(api.cuMemsetD8Async(memory, 5, 64, LEGACY))
    ok(api.cuStreamSynchronize(LEGACY))
    assert (bytes_at(memory, 64) == 5).all()
    ok(api.cuMemFreeAsync(memory, LEGACY))
    ok(api.cuStreamSynchronize(LEGACY))
    assert api.live_objects()["memory pool"] == pools


def test_a_pool_returns_what_it_was_made_with(api: Emulator) -> None:
    pools = [made(api, PINNED, HOST, most=1 << 20), made(api, MANAGED, NONE)]
    pools.append(ok(api.cuDeviceGetDefaultMemPool(ok(api.cuDeviceGet(1)))))
    told = [
        [int(ok(api.cuMemPoolGetAttribute(pool, number))) for number in range(9, 15)]
        for pool in pools
    ]
    assert told == [[1, 0, 0, HOST, 1 << 20, 0], [2, 0, 0, NONE, 0, 0], [1, 0, 1, DEVICE, 0, 0]]


def kernel_fills(api: Emulator, memory: CUdeviceptr, stream: CUstream) -> int:
    (fill,) = functions(api, load(api, FILL), "fill")
    given = Parameters(ctypes.c_uint64(int(memory)), ctypes.c_uint32(3), ctypes.c_uint32(5))
    result = code(launch(api, fill, given, block=(4, 1, 1), stream=stream))
    return result or code(api.cuStreamSynchronize(stream))


def test_kernels_reach_page_locked_memory_of_a_pool_once_it_is_opened_to_them(
    api: Emulator,
) -> None:
    pool, stream = made(api, PINNED, HOST), a_stream(api)
    assert int(ok(api.cuMemPoolGetAccess(pool, Place(DEVICE)))) == 0
    assert int(ok(api.cuMemPoolGetAccess(pool, Place(HOST)))) == 3
    ok(api.cuMemPoolSetAccess(pool, [access(3)], 1))
    assert int(ok(api.cuMemPoolGetAccess(pool, Place(DEVICE)))) == 3
    assert int(ok(api.cuMemPoolGetAccess(pool, Place(DEVICE, 1)))) == 0
    memory = ok(api.cuMemAllocFromPoolAsync(64, pool, stream))
    assert kernel_fills(api, memory, stream) == 0
    ok(api.cuMemPoolSetAccess(pool, [access(0)], 1))
    assert kernel_fills(api, memory, stream) == 700
    assert "cuMemPoolSetAccess opens to device 0" in str(api.last_fault)


def test_kernels_of_every_device_reach_managed_memory_of_a_pool(api: Emulator) -> None:
    pool, stream = made(api, MANAGED, HOST), a_stream(api)
    memory = ok(api.cuMemAllocFromPoolAsync(64, pool, stream))
    assert attribute(api, P.CU_POINTER_ATTRIBUTE_IS_MANAGED, int(memory)) is True
    for place in (Place(DEVICE), Place(DEVICE, 1), Place(HOST)):
        assert int(ok(api.cuMemPoolGetAccess(pool, place))) == 0
    assert kernel_fills(api, memory, stream) == 0
    for flags in (3, 0):
        ok(api.cuMemPoolSetAccess(pool, [access(flags)], 1))
        assert int(ok(api.cuMemPoolGetAccess(pool, Place(DEVICE)))) == flags
        assert kernel_fills(api, memory, stream) == 0


def test_page_locked_memory_of_a_pool_is_the_hosts_side_of_a_copy(api: Emulator) -> None:
    """The codes were measured with driver 580, before and after access was given."""
    pool, stream, context = made(api, PINNED, HOST), a_stream(api), ok(api.cuCtxGetCurrent())
    memory, other = ok(api.cuMemAllocFromPoolAsync(64, pool, stream)), ok(api.cuMemAlloc(64))
    host, address = np.full(64, 8, np.uint8), int(memory)
    for flags in (0, 3):
        ok(api.cuMemPoolSetAccess(pool, [access(flags)], 1))
        for refused in (
            api.cuMemcpyDtoDAsync(other, memory, 64, stream),
            api.cuMemcpyDtoDAsync(memory, other, 64, stream),
            api.cuMemcpyHtoDAsync(memory, host.ctypes.data, 64, stream),
            api.cuMemcpyDtoHAsync(host.ctypes.data, memory, 64, stream),
            api.cuMemcpyPeerAsync(memory, context, other, context, 64, stream),
        ):
            assert code(refused) == 1
        assert "cuMemcpyAsync" in why(api, CUresult.CUDA_ERROR_INVALID_VALUE)
        bytes_at(memory, 64)[:] = 4 + flags
        ok(api.cuMemcpyHtoDAsync(other, address, 64, stream))
        ok(api.cuStreamSynchronize(stream))
        bytes_at(memory, 64)[:] = 0
        ok(api.cuMemcpyDtoHAsync(address, other, 32, stream))
        ok(api.cuMemcpyAsync(CUdeviceptr(address + 32), other, 32, stream))
        ok(api.cuStreamSynchronize(stream))
        assert (bytes_at(memory, 64) == 4 + flags).all()
    rows = rows_between(other, memory)
    assert code(api.cuMemcpy3DAsync(rows, stream)) == 1
    rows.srcMemoryType = CUmemorytype.CU_MEMORYTYPE_UNIFIED
    ok(api.cuMemcpy3DAsync(rows, stream))
    assert code(api.cuMemPoolSetAccess(pool, [access(1)], 1)) == 801


def rows_between(target: CUdeviceptr, source: CUdeviceptr) -> CUDA_MEMCPY3D:
    found = CUDA_MEMCPY3D()
    found.srcMemoryType = found.dstMemoryType = CUmemorytype.CU_MEMORYTYPE_DEVICE
    found.srcDevice, found.dstDevice = source, target
    found.srcPitch = found.dstPitch = found.WidthInBytes = 32
    found.Height, found.Depth = 2, 1
    return found


def test_a_capture_records_allocations_of_host_memory(api: Emulator) -> None:
    pool, stream = made(api, PINNED, HOST), a_stream(api)
    ok(api.cuStreamBeginCapture(stream, RELAXED))
    memory = ok(api.cuMemAllocFromPoolAsync(64, pool, stream))
    ok(api.cuMemsetD32Async(memory, 5, 16, stream))
    graph = ok(api.cuStreamEndCapture(stream))
    assert account(api, pool)[2] == 0  # a graph has memory of its own
    ok(api.cuGraphLaunch(ok(api.cuGraphInstantiate(graph, 0)), stream))
    ok(api.cuStreamSynchronize(stream))
    assert ctypes.c_uint.from_address(int(memory) + 60).value == 5
    ok(api.cuMemFreeAsync(memory, stream))
    assert code(api.cuMemFreeAsync(memory, stream)) == 1
