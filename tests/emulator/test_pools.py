from __future__ import annotations

import pytest

from cudadrv.driver._api import (
    CUdeviceptr,
    CUmemAllocationType,
    CUmemLocation,
    CUmemLocationType,
    CUmemoryPool,
    CUmemPool_attribute,
    CUmemPoolProps,
    CUpointer_attribute,
    cuuint64_t,
)
from cudadrv.emulator import Emulator

from .calls import LEGACY, code, ok

M = CUmemPool_attribute
MIB = 1 << 20
CHUNK = 32 * MIB
EVERYTHING = cuuint64_t((1 << 64) - 1)


@pytest.fixture
def pool(emulator: Emulator) -> CUmemoryPool:
    device = ok(emulator.cuDeviceGet(0))
    ok(emulator.cuCtxCreate(None, 0, device))
    return ok(emulator.cuDeviceGetDefaultMemPool(device))


def account(emulator: Emulator, pool: CUmemoryPool) -> tuple[int, int, int, int]:
    """Reserved now and at most, used now and at most."""
    return (
        int(ok(emulator.cuMemPoolGetAttribute(pool, M.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT))),
        int(ok(emulator.cuMemPoolGetAttribute(pool, M.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH))),
        int(ok(emulator.cuMemPoolGetAttribute(pool, M.CU_MEMPOOL_ATTR_USED_MEM_CURRENT))),
        int(ok(emulator.cuMemPoolGetAttribute(pool, M.CU_MEMPOOL_ATTR_USED_MEM_HIGH))),
    )


def allocate(emulator: Emulator, nbytes: int) -> CUdeviceptr:
    return ok(emulator.cuMemAllocAsync(nbytes, LEGACY))


def test_the_accounts_are_those_of_an_h100(emulator: Emulator, pool: CUmemoryPool) -> None:
    """The numbers were read on an H100 with driver 580 around the same calls."""
    assert account(emulator, pool) == (0, 0, 0, 0)
    allocate(emulator, 1000)
    assert account(emulator, pool) == (CHUNK, CHUNK, 1000, 1000)
    big = allocate(emulator, 40 * MIB)
    used = 40 * MIB + 1000
    assert account(emulator, pool) == (2 * CHUNK, 2 * CHUNK, used, used)
    ok(emulator.cuMemFreeAsync(big, LEGACY))
    assert account(emulator, pool) == (2 * CHUNK, 2 * CHUNK, 1000, used)
    ok(emulator.cuStreamSynchronize(LEGACY))
    assert account(emulator, pool) == (CHUNK, 2 * CHUNK, 1000, used)


def test_high_water_marks_are_reset_by_0_alone(emulator: Emulator, pool: CUmemoryPool) -> None:
    ok(emulator.cuMemFreeAsync(allocate(emulator, MIB), LEGACY))
    high = M.CU_MEMPOOL_ATTR_USED_MEM_HIGH
    assert code(emulator.cuMemPoolSetAttribute(pool, high, cuuint64_t(1))) == 1
    assert code(emulator.cuMemPoolSetAttribute(pool, high, cuuint64_t(0))) == 0
    assert account(emulator, pool)[2:] == (0, 0)
    current = M.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
    assert code(emulator.cuMemPoolSetAttribute(pool, current, cuuint64_t(0))) == 1


def test_a_threshold_keeps_memory_over_a_synchronisation(
    emulator: Emulator, pool: CUmemoryPool
) -> None:
    allocate(emulator, 1000)
    threshold = M.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    ok(emulator.cuMemPoolSetAttribute(pool, threshold, EVERYTHING))
    assert int(ok(emulator.cuMemPoolGetAttribute(pool, threshold))) == (1 << 64) - 1
    ok(emulator.cuMemFreeAsync(allocate(emulator, 100 * MIB), LEGACY))
    ok(emulator.cuCtxSynchronize())
    assert account(emulator, pool)[0] == 4 * CHUNK
    ok(emulator.cuMemPoolTrimTo(pool, 64 * MIB))
    assert account(emulator, pool)[0] == 2 * CHUNK
    ok(emulator.cuMemPoolTrimTo(pool, 0))
    assert account(emulator, pool)[0] == CHUNK


def test_reserved_memory_is_not_free(emulator: Emulator, pool: CUmemoryPool) -> None:
    before, _ = ok(emulator.cuMemGetInfo())
    allocate(emulator, 1000)
    assert ok(emulator.cuMemGetInfo())[0] == before - CHUNK


def test_reuse_policies_are_stored_as_flags(emulator: Emulator, pool: CUmemoryPool) -> None:
    policy = M.CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC
    assert int(ok(emulator.cuMemPoolGetAttribute(pool, policy))) == 1
    ok(emulator.cuMemPoolSetAttribute(pool, policy, cuuint64_t(0)))
    assert int(ok(emulator.cuMemPoolGetAttribute(pool, policy))) == 0
    ok(emulator.cuMemPoolSetAttribute(pool, policy, cuuint64_t(77)))
    assert int(ok(emulator.cuMemPoolGetAttribute(pool, policy))) == 1


def test_a_number_that_is_no_pool_is_rejected(emulator: Emulator) -> None:
    stray = CUmemoryPool(0)
    assert code(emulator.cuMemPoolTrimTo(stray, 0)) == 1
    attribute = M.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    assert code(emulator.cuMemPoolGetAttribute(stray, attribute)) == 1


def a_pool(emulator: Emulator, most: int = 0) -> CUmemoryPool:
    properties = CUmemPoolProps()
    properties.allocType = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.maxSize = most
    return ok(emulator.cuMemPoolCreate(properties))


def test_pools_have_accounts_of_their_own(emulator: Emulator, pool: CUmemoryPool) -> None:
    other = a_pool(emulator)
    memory = ok(emulator.cuMemAllocFromPoolAsync(1000, other, LEGACY))
    assert account(emulator, other) == (CHUNK, CHUNK, 1000, 1000)
    assert account(emulator, pool) == (0, 0, 0, 0)
    handle = CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE
    (of,) = ok(emulator.cuPointerGetAttributes(1, (handle,), int(memory)))
    assert isinstance(of, CUmemoryPool)
    assert int(of) == int(other)
    ok(emulator.cuMemFreeAsync(memory, LEGACY))
    ok(emulator.cuStreamSynchronize(LEGACY))
    assert account(emulator, other)[0] == 0


def test_a_pool_reserves_its_limit_at_most_rounded_up_to_chunks(
    emulator: Emulator, pool: CUmemoryPool
) -> None:
    for limit, room in ((1, 32), (32 * MIB, 32), (33 * MIB, 64), (64 * MIB, 64)):
        other = a_pool(emulator, limit)
        first = ok(emulator.cuMemAllocFromPoolAsync((room - 5) * MIB, other, LEGACY))
        assert code(emulator.cuMemAllocFromPoolAsync(6 * MIB, other, LEGACY)) == 2
        ok(emulator.cuMemAllocFromPoolAsync(4 * MIB, other, LEGACY))
        ok(emulator.cuMemFreeAsync(first, LEGACY))
        ok(emulator.cuMemAllocFromPoolAsync(6 * MIB, other, LEGACY))


def test_a_destroyed_pool_goes_with_what_it_gave(emulator: Emulator, pool: CUmemoryPool) -> None:
    other = a_pool(emulator)
    free, _ = ok(emulator.cuMemGetInfo())
    memory = ok(emulator.cuMemAllocFromPoolAsync(1000, other, LEGACY))
    ok(emulator.cuMemPoolDestroy(other))
    assert code(emulator.cuMemPoolDestroy(other)) == 1
    assert code(emulator.cuMemAllocFromPoolAsync(8, other, LEGACY)) == 1
    ok(emulator.cuMemsetD8Async(memory, 1, 1000, LEGACY))
    ok(emulator.cuMemFreeAsync(memory, LEGACY))
    ok(emulator.cuStreamSynchronize(LEGACY))
    assert ok(emulator.cuMemGetInfo())[0] == free


def test_what_is_no_pool_of_a_device_is_rejected(emulator: Emulator, pool: CUmemoryPool) -> None:
    assert code(emulator.cuMemPoolDestroy(pool)) == 1
    assert code(emulator.cuMemPoolCreate(None)) == 1
    assert code(emulator.cuMemPoolCreate(CUmemPoolProps())) == 1
    properties = CUmemPoolProps()
    properties.allocType = CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT
    assert code(emulator.cuMemPoolCreate(properties)) == 1
    properties.location.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    properties.location.id = 99
    assert code(emulator.cuMemPoolCreate(properties)) == 1


def test_a_pool_reports_which_devices_have_access(emulator: Emulator, pool: CUmemoryPool) -> None:
    where = CUmemLocation()
    where.type = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    assert int(ok(emulator.cuMemPoolGetAccess(pool, where))) == 3
    where.id = 1
    assert int(ok(emulator.cuMemPoolGetAccess(pool, where))) == 0
