"""Which memory goes with its context, and which is the device's; measured with driver 580."""

from __future__ import annotations

from cudadrv.driver._api import CUcontext, CUdevice, CUmemPool_attribute, CUstream
from cudadrv.emulator import Emulator

from .calls import LEGACY, OpenApi, code, ok


def test_memory_of_a_pool_outlives_its_context(
    api: OpenApi, device: CUdevice, context: CUcontext, stream: CUstream
) -> None:
    other = ok(api.cuCtxCreate(None, 0, device))
    memory = ok(api.cuMemAllocAsync(64, ok(api.cuStreamCreateWithPriority(1, 0))))
    ok(api.cuCtxDestroy(other))
    assert code(api.cuMemsetD8Async(memory, 7, 64, stream)) == 0
    assert code(api.cuMemFreeAsync(memory, stream)) == 0
    assert code(api.cuMemFreeAsync(memory, stream)) == 1


def test_memory_of_a_pool_is_accounted_until_it_is_freed(emulator: Emulator) -> None:
    device = ok(emulator.cuDeviceGet(0))
    other = ok(emulator.cuCtxCreate(None, 0, device))
    memory = ok(emulator.cuMemAllocAsync(64, LEGACY))
    ok(emulator.cuCtxDestroy(other))
    ok(emulator.cuCtxCreate(None, 0, device))
    pool = ok(emulator.cuDeviceGetDefaultMemPool(device))
    used = CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
    assert int(ok(emulator.cuMemPoolGetAttribute(pool, used))) == 64
    ok(emulator.cuMemFreeAsync(memory, LEGACY))
    assert int(ok(emulator.cuMemPoolGetAttribute(pool, used))) == 0


def test_other_memory_goes_with_its_context(api: OpenApi, device: CUdevice) -> None:
    lasting = ok(api.cuCtxCreate(None, 0, device))
    other = ok(api.cuCtxCreate(None, 0, device))
    plain, managed = ok(api.cuMemAlloc(64)), ok(api.cuMemAllocManaged(64, 1))
    pinned = ok(api.cuMemHostAlloc(64, 0))
    ok(api.cuCtxDestroy(other))
    assert code(api.cuMemFree(plain)) == 1
    assert code(api.cuMemFree(managed)) == 1
    assert code(api.cuMemFreeHost(pinned)) == 1
    ok(api.cuCtxDestroy(lasting))


def test_memory_is_freed_in_any_stream_of_its_device(
    api: OpenApi, device: CUdevice, context: CUcontext, stream: CUstream
) -> None:
    other = ok(api.cuCtxCreate(None, 0, device))
    foreign = ok(api.cuStreamCreateWithPriority(1, 0))
    memory = ok(api.cuMemAllocAsync(64, stream))
    ok(api.cuCtxPopCurrent())
    assert code(api.cuMemFreeAsync(memory, foreign)) == 0
    ok(api.cuCtxDestroy(other))


def test_the_emulator_frees_in_no_stream_of_another_device(emulator: Emulator) -> None:
    """The driver does, and nothing then orders the free after the memory's uses."""
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    own = ok(emulator.cuStreamCreateWithPriority(1, 0))
    memory, plain = ok(emulator.cuMemAllocAsync(64, own)), ok(emulator.cuMemAlloc(64))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(1))))
    foreign = ok(emulator.cuStreamCreateWithPriority(1, 0))
    for address in (memory, plain):
        assert code(emulator.cuMemFreeAsync(address, foreign)) == 1
        assert code(emulator.cuMemFreeAsync(address, LEGACY)) == 1
        assert code(emulator.cuMemFreeAsync(address, own)) == 0


def test_an_inactive_primary_context_may_be_made_current(emulator: Emulator) -> None:
    """Its handle stays; what is then called says that it is destroyed."""
    device = ok(emulator.cuDeviceGet(0))
    primary = ok(emulator.cuDevicePrimaryCtxRetain(device))
    ok(emulator.cuDevicePrimaryCtxRelease(device))
    assert code(emulator.cuCtxPushCurrent(primary)) == 0
    assert code(emulator.cuCtxSetCurrent(primary)) == 0
    assert code(emulator.cuCtxSynchronize()) == 709
    assert code(emulator.cuMemAlloc(4)) == 709
    ok(emulator.cuCtxPopCurrent())


def test_the_emulator_makes_no_destroyed_context_current(emulator: Emulator) -> None:
    """The driver does, and then answers 709 to every call."""
    device = ok(emulator.cuDeviceGet(0))
    dead = ok(emulator.cuCtxCreate(None, 0, device))
    ok(emulator.cuCtxDestroy(dead))
    own = ok(emulator.cuCtxCreate(None, 0, device))
    assert code(emulator.cuCtxPushCurrent(dead)) == 709
    assert code(emulator.cuCtxSetCurrent(dead)) == 709
    assert int(ok(emulator.cuCtxGetCurrent())) == int(own)
