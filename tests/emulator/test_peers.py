"""Access to the memory of another device, by the driver's rules."""

from __future__ import annotations

import ctypes

import pytest

from cudadrv.driver._api import (
    CUcontext,
    CUdeviceptr,
    CUmemAccess_flags,
    CUmemAccessDesc,
    CUmemLocationType,
    CUmemoryPool,
    CUpointer_attribute,
    CUstreamCaptureMode,
)
from cudadrv.emulator import Emulator
from cudadrv.emulator.profiles import T4

from .calls import LEGACY, Parameters, code, download, functions, launch, load, ok
from .kernels import INCREMENT

READ_AND_WRITE = CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
NONE = CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_NONE


class Two:
    """A context on each of two devices; that of the first one is current."""

    def __init__(self) -> None:
        self.api = api = Emulator(2)
        ok(api.cuInit(0))
        self.there = ok(api.cuCtxCreate(None, 0, ok(api.cuDeviceGet(1))))
        self.plain, self.pooled = ok(api.cuMemAlloc(4)), ok(api.cuMemAllocAsync(4, LEGACY))
        for memory in (self.plain, self.pooled):
            ok(api.cuMemsetD32Async(memory, 7, 1, LEGACY))
        self.here = ok(api.cuCtxCreate(None, 0, ok(api.cuDeviceGet(0))))
        self.pool = ok(api.cuDeviceGetDefaultMemPool(ok(api.cuDeviceGet(1))))

    def increment(self, memory: CUdeviceptr) -> int:
        """What a kernel of the first device answers that adds one to memory."""
        module = load(self.api, INCREMENT)
        (function,) = functions(self.api, module, "increment")
        return code(launch(self.api, function, Parameters(ctypes.c_uint64(int(memory)))))

    def value(self, memory: CUdeviceptr) -> int:
        ok(self.api.cuCtxPushCurrent(self.there))
        (found,) = download(self.api, memory, 1)
        ok(self.api.cuCtxPopCurrent())
        return int(found)


@pytest.fixture
def two() -> Two:
    return Two()


def access(
    ordinal: int,
    flags: CUmemAccess_flags = READ_AND_WRITE,
    kind: CUmemLocationType = CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE,
) -> CUmemAccessDesc:
    asked = CUmemAccessDesc()
    asked.location.type, asked.location.id, asked.flags = kind, ordinal, flags
    return asked


def grant(api: Emulator, pool: CUmemoryPool, asked: CUmemAccessDesc) -> int:
    return code(api.cuMemPoolSetAccess(pool, [asked], 1))


@pytest.mark.parametrize("which", ["plain", "pooled"])
def test_a_kernel_that_uses_memory_of_a_device_not_opened_to_it_faults(
    two: Two, which: str
) -> None:
    assert two.increment(getattr(two, which)) == 700
    text = ok(two.api.cuGetErrorString(two.api.cuCtxSynchronize()[0])) or b""
    assert b"in memory of device 1, 4 bytes" in text
    assert b"Context.enable_peer_access opens it to device 0" in text


def test_an_opened_pool_is_used_and_other_memory_of_its_device_is_not(two: Two) -> None:
    assert grant(two.api, two.pool, access(0)) == 0
    assert two.increment(two.pooled) == 0
    assert two.value(two.pooled) == 8
    assert two.increment(two.plain) == 700


def test_a_peers_memory_is_used_and_its_devices_pool_is_not(two: Two) -> None:
    ok(two.api.cuCtxEnablePeerAccess(two.there, 0))
    assert two.increment(two.plain) == 0
    assert two.value(two.plain) == 8
    assert two.increment(two.pooled) == 700


def test_a_pool_may_be_shut_again(two: Two) -> None:
    grant(two.api, two.pool, access(0))
    assert grant(two.api, two.pool, access(0, NONE)) == 0
    assert two.increment(two.pooled) == 700


def test_another_context_of_a_peers_device_is_no_peer(two: Two) -> None:
    api = two.api
    other = ok(api.cuCtxCreate(None, 0, ok(api.cuDeviceGet(1))))
    ok(api.cuCtxPopCurrent())
    ok(api.cuCtxEnablePeerAccess(other, 0))
    assert two.increment(two.plain) == 700


@pytest.mark.parametrize("name", ["cuMemcpyDtoD", "cuMemcpyDtoDAsync", "cuMemcpy", "cuMemcpyAsync"])
def test_a_copy_with_another_device_current_accepts_memory_of_an_opened_pool(
    two: Two, name: str
) -> None:
    here = ok(two.api.cuMemAllocAsync(4, LEGACY))
    stream = (LEGACY,) if name.endswith("Async") else ()
    copy = getattr(two.api, name)
    assert code(copy(here, two.pooled, 4, *stream)) == 1
    grant(two.api, two.pool, access(0))
    assert code(copy(here, two.pooled, 4, *stream)) == 0
    assert download(two.api, here, 1).tolist() == [7]


def test_an_address_returns_what_the_current_device_may_do_there(two: Two) -> None:
    api, flags = two.api, [CUpointer_attribute.CU_POINTER_ATTRIBUTE_ACCESS_FLAGS]

    def told(*memory: CUdeviceptr) -> list[object]:
        return [ok(api.cuPointerGetAttributes(1, flags, int(each)))[0] for each in memory]

    managed, own = ok(api.cuMemAllocManaged(64, 1)), ok(api.cuMemAlloc(64))
    assert told(managed, own, two.pooled, two.plain, CUdeviceptr(1)) == [3, 3, 0, 0, 0]
    grant(api, two.pool, access(0))
    ok(api.cuCtxEnablePeerAccess(two.there, 0))
    assert told(two.pooled, two.plain) == [3, 3]


def test_what_is_no_peer_is_rejected_with_the_drivers_code(two: Two) -> None:
    api = two.api
    assert code(api.cuCtxEnablePeerAccess(two.here, 0)) == 217
    assert code(api.cuCtxEnablePeerAccess(CUcontext(0), 0)) == 201
    assert code(api.cuCtxEnablePeerAccess(two.there, 1)) == 1
    ok(api.cuCtxEnablePeerAccess(two.there, 0))
    assert code(api.cuCtxEnablePeerAccess(two.there, 0)) == 704
    same = ok(api.cuCtxCreate(None, 0, ok(api.cuDeviceGet(0))))
    ok(api.cuCtxPopCurrent())
    assert code(api.cuCtxEnablePeerAccess(same, 0)) == 217


def test_access_that_a_pool_cannot_give_is_rejected(two: Two) -> None:
    api, pool = two.api, two.pool
    host = CUmemLocationType.CU_MEM_LOCATION_TYPE_HOST
    read = CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READ
    assert grant(api, pool, access(0, kind=host)) == 801
    assert grant(api, pool, access(0, read)) == 801
    assert grant(api, pool, access(1, NONE)) == 101
    assert grant(api, pool, access(1)) == 0
    assert grant(api, pool, access(2)) == 101
    assert code(api.cuMemPoolSetAccess(pool, [access(0)], 2)) == 1


def test_devices_without_peer_access_reach_neither_pools_nor_contexts() -> None:
    api = Emulator([T4, T4])
    ok(api.cuInit(0))
    there = ok(api.cuCtxCreate(None, 0, ok(api.cuDeviceGet(1))))
    ok(api.cuCtxCreate(None, 0, ok(api.cuDeviceGet(0))))
    assert code(api.cuCtxEnablePeerAccess(there, 0)) == 217
    assert grant(api, ok(api.cuDeviceGetDefaultMemPool(ok(api.cuDeviceGet(1)))), access(0)) == 101


def test_opening_a_pool_breaks_a_capture_that_forbids_such_calls(two: Two) -> None:
    stream = ok(two.api.cuStreamCreateWithPriority(1, 0))
    ok(two.api.cuStreamBeginCapture(stream, CUstreamCaptureMode(0)))
    assert grant(two.api, two.pool, access(0)) == 900
    assert code(two.api.cuStreamEndCapture(stream)) == 901
