from __future__ import annotations

import ctypes

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cudadrv.driver._api import (
    CUcontext,
    CUdevice,
    CUdeviceptr,
    CUmemoryPool,
    CUmemorytype,
    CUpointer_attribute,
    CUstream,
)
from cudadrv.emulator import EmulatedDevice, Emulator
from ptx.emulate.model.errors import UseAfterFree

from .calls import (
    LEGACY,
    OpenApi,
    Parameters,
    attribute,
    code,
    download,
    functions,
    launch,
    load,
    ok,
    upload,
)
from .kernels import EMPTY, INCREMENT, VARIABLE

P = CUpointer_attribute
MIB = 1 << 20


def small(total: int = 4 * MIB) -> Emulator:
    """An emulator with one small device and a current context."""
    emulator = Emulator([EmulatedDevice(total_memory=total)])
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    return emulator


def test_no_bytes_and_too_many_are_rejected(api: OpenApi, context: CUcontext) -> None:
    assert code(api.cuMemAlloc(0)) == 1
    assert code(api.cuMemAlloc(1 << 46)) == 2
    assert code(api.cuMemAlloc((1 << 64) - 1)) == 2


def test_an_allocation_is_aligned_as_the_driver_aligns(
    api: OpenApi, context: CUcontext, stream: CUstream
) -> None:
    for nbytes in (1, 100, 512, 513, 5000):
        assert int(ok(api.cuMemAlloc(nbytes))) % 512 == 0
        assert int(ok(api.cuMemAllocAsync(nbytes, stream))) % 512 == 0


def test_large_memory_begins_at_a_page_of_the_driver_where_there_is_room() -> None:
    api = small(8 * MIB)
    ok(api.cuMemAlloc(512))
    assert int(ok(api.cuMemAlloc(2 * MIB))) % (2 * MIB) == 0
    assert 0 < int(ok(api.cuMemAlloc(3 * MIB))) % (2 * MIB) < MIB


def test_only_the_start_of_a_live_allocation_is_freed(api: OpenApi, context: CUcontext) -> None:
    memory = ok(api.cuMemAlloc(100))
    assert code(api.cuMemFree(CUdeviceptr(int(memory) + 4))) == 1
    assert code(api.cuMemFree(CUdeviceptr(0x1000))) == 1
    assert code(api.cuMemFree(CUdeviceptr(0))) == 0
    assert code(api.cuMemFree(memory)) == 0
    assert code(api.cuMemFree(memory)) == 1


def test_freed_memory_counts_as_free_and_can_all_be_had_again() -> None:
    emulator = small()
    before = ok(emulator.cuMemGetInfo())
    for _ in range(5):
        memory = ok(emulator.cuMemAlloc(3 * MIB))
        many = [ok(emulator.cuMemAlloc(1000)) for _ in range(300)]
        for each in (memory, *many):
            ok(emulator.cuMemFree(each))
        assert ok(emulator.cuMemGetInfo()) == before
    ok(emulator.cuMemAlloc(before[0] - 4096))


def test_freed_memory_is_known_as_such_after_further_allocations() -> None:
    emulator = small()
    freed = ok(emulator.cuMemAlloc(64))
    ok(emulator.cuMemFree(freed))
    assert all(int(ok(emulator.cuMemAlloc(64))) != int(freed) for _ in range(50))
    (increment,) = functions(emulator, load(emulator, INCREMENT), "increment")
    assert code(launch(emulator, increment, Parameters(ctypes.c_uint64(int(freed))))) == 700
    assert isinstance(emulator.last_fault, UseAfterFree)
    assert f"64 bytes at {int(freed):#x}" in str(emulator.last_fault)


def test_a_double_free_is_reported_as_one() -> None:
    emulator = small()
    memory = ok(emulator.cuMemAlloc(100))
    ok(emulator.cuMemFree(memory))
    (result,) = emulator.cuMemFree(memory)
    said = ok(emulator.cuGetErrorString(result))
    assert said is not None
    assert b"was freed before" in said
    assert b"100 bytes" in said


def test_stream_ordered_memory_is_freed_in_a_stream_or_at_once(
    api: OpenApi, context: CUcontext, stream: CUstream
) -> None:
    a, b = ok(api.cuMemAllocAsync(100, stream)), ok(api.cuMemAllocAsync(MIB, stream))
    assert code(api.cuMemFreeAsync(CUdeviceptr(int(a) + 4), stream)) == 1
    assert code(api.cuMemFreeAsync(a, stream)) == 0
    assert code(api.cuMemFreeAsync(a, stream)) == 1
    assert code(api.cuMemFree(b)) == 0
    assert code(api.cuMemFree(b)) == 1
    assert int(ok(api.cuMemAllocAsync(0, stream))) == 0
    assert code(api.cuMemFreeAsync(CUdeviceptr(0), stream)) == 0
    assert code(api.cuMemAllocAsync(1 << 46, stream)) == 2


def test_memory_of_cumemalloc_can_be_freed_in_a_stream(
    api: OpenApi, context: CUcontext, stream: CUstream
) -> None:
    assert code(api.cuMemFreeAsync(ok(api.cuMemAlloc(100)), stream)) == 0


def test_the_device_runs_out_at_its_total() -> None:
    emulator = small(4 * MIB)
    free, total = ok(emulator.cuMemGetInfo())
    assert free == total == 4 * MIB
    first = ok(emulator.cuMemAlloc(3 * MIB))
    free, _ = ok(emulator.cuMemGetInfo())
    assert 0 < free < MIB
    assert code(emulator.cuMemAlloc(MIB)) == 2
    assert code(emulator.cuMemAllocAsync(MIB, LEGACY)) == 2
    ok(emulator.cuMemFree(first))
    assert ok(emulator.cuMemGetInfo()) == (total, total)
    ok(emulator.cuMemAlloc(3 * MIB))


def test_out_of_memory_states_the_request_and_what_is_free() -> None:
    emulator = small(4 * MIB)
    ok(emulator.cuMemAlloc(MIB))
    result, _ = emulator.cuMemAlloc(5 * MIB)
    said = ok(emulator.cuGetErrorString(result))
    free, _ = ok(emulator.cuMemGetInfo())
    asked, total = 5 * MIB, 4 * MIB
    assert (
        said
        == (
            f"out of memory: {asked} bytes asked for on device 0, {free} of {total} bytes are free"
        ).encode()
    )


def test_an_allocation_reuses_what_a_pool_has_unused() -> None:
    emulator = small(4 * MIB)
    pooled = ok(emulator.cuMemAllocAsync(3 * MIB, LEGACY))
    ok(emulator.cuMemFreeAsync(pooled, LEGACY))
    free, _ = ok(emulator.cuMemGetInfo())
    assert free < 2 * MIB
    ok(emulator.cuMemAlloc(3 * MIB))


def test_a_pointer_returns_its_device() -> None:
    emulator = Emulator(3)
    ok(emulator.cuInit(0))
    for ordinal in range(3):
        ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(ordinal))))
        memory = int(ok(emulator.cuMemAlloc(64)))
        assert attribute(emulator, P.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory + 63) == ordinal
        assert attribute(emulator, P.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 64) == 0
        pooled = int(ok(emulator.cuMemAllocAsync(64, LEGACY)))
        assert attribute(emulator, P.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pooled) == ordinal


def test_the_attributes_of_device_memory(
    api: OpenApi, context: CUcontext, stream: CUstream
) -> None:
    start = int(ok(api.cuMemAlloc(1000)))

    def given(which: CUpointer_attribute, address: int = start + 8) -> object:
        return attribute(api, which, address)

    memory_type = given(P.CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
    assert memory_type == CUmemorytype.CU_MEMORYTYPE_DEVICE
    assert given(P.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) == 0
    owner = given(P.CU_POINTER_ATTRIBUTE_CONTEXT)
    assert isinstance(owner, CUcontext)
    assert int(owner) == int(context)
    pointer = given(P.CU_POINTER_ATTRIBUTE_DEVICE_POINTER)
    assert isinstance(pointer, CUdeviceptr)
    assert int(pointer) == start + 8
    begin = given(P.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
    assert isinstance(begin, CUdeviceptr)
    assert int(begin) == start
    assert given(P.CU_POINTER_ATTRIBUTE_RANGE_SIZE) == 1000
    assert given(P.CU_POINTER_ATTRIBUTE_IS_MANAGED) is False
    assert given(P.CU_POINTER_ATTRIBUTE_MAPPED) is True
    assert given(P.CU_POINTER_ATTRIBUTE_HOST_POINTER) == 0
    other = int(ok(api.cuMemAlloc(8)))
    buffer_id = P.CU_POINTER_ATTRIBUTE_BUFFER_ID
    assert given(buffer_id) == given(buffer_id, start)
    assert given(buffer_id) != given(buffer_id, other)


def test_stream_ordered_memory_belongs_to_a_pool_and_to_no_context(
    api: OpenApi, device: CUdevice, context: CUcontext, stream: CUstream
) -> None:
    memory = int(ok(api.cuMemAllocAsync(1000, stream)))
    owner = attribute(api, P.CU_POINTER_ATTRIBUTE_CONTEXT, memory)
    assert isinstance(owner, CUcontext)
    assert int(owner) == 0
    pool = attribute(api, P.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory)
    assert isinstance(pool, CUmemoryPool)
    assert int(pool) == int(ok(api.cuDeviceGetDefaultMemPool(device)))


def test_the_attributes_of_pinned_memory(api: OpenApi, context: CUcontext) -> None:
    start = ok(api.cuMemHostAlloc(1000, 0))

    def given(which: CUpointer_attribute) -> object:
        return attribute(api, which, start + 8)

    memory_type = given(P.CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
    assert memory_type == CUmemorytype.CU_MEMORYTYPE_HOST
    assert given(P.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) == 0
    owner = given(P.CU_POINTER_ATTRIBUTE_CONTEXT)
    assert isinstance(owner, CUcontext)
    assert int(owner) == int(context)
    assert given(P.CU_POINTER_ATTRIBUTE_HOST_POINTER) == start + 8
    assert given(P.CU_POINTER_ATTRIBUTE_RANGE_SIZE) == 1000
    ok(api.cuMemFreeHost(start))


def test_memory_that_the_driver_does_not_know_has_no_attributes(
    api: OpenApi, context: CUcontext
) -> None:
    host = np.zeros(8)
    freed = ok(api.cuMemAlloc(8))
    ok(api.cuMemFree(freed))
    for address in (host.ctypes.data, int(freed), 0):
        assert attribute(api, P.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == 0
        pool = attribute(api, P.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address)
        assert isinstance(pool, CUmemoryPool)
        assert int(pool) == 0


def test_attributes_are_requested_together(api: OpenApi, context: CUcontext) -> None:
    start = int(ok(api.cuMemAlloc(1000)))
    asked = (P.CU_POINTER_ATTRIBUTE_RANGE_SIZE, P.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    assert ok(api.cuPointerGetAttributes(2, asked, start)) == [1000, 0]
    assert ok(api.cuPointerGetAttributes(1, asked[:1], start)) == [1000]
    assert code(api.cuPointerGetAttributes(0, asked, start)) == 1


@pytest.mark.parametrize("allocate", ["cuMemAlloc", "cuMemAllocManaged", "cuMemHostAlloc"])
def test_the_flag_of_synchronous_copies_is_set_and_cleared(
    api: OpenApi, context: CUcontext, allocate: str
) -> None:
    flags = (1,) if allocate != "cuMemAlloc" else ()
    start = int(ok(getattr(api, allocate)(100, *flags)))
    for value in (True, False):
        ok(api.cuPointerSetAttribute(value, P.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, start + 5))
        assert attribute(api, P.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, start) is value


def test_only_that_flag_of_memory_can_be_set(api: OpenApi, context: CUcontext) -> None:
    start = int(ok(api.cuMemAlloc(100)))
    assert code(api.cuPointerSetAttribute(1, P.CU_POINTER_ATTRIBUTE_MAPPED, start)) == 1
    assert code(api.cuPointerSetAttribute(1, P.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, start + 512)) == 1
    assert code(api.cuPointerSetAttribute(1, P.CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 0)) == 1


def test_a_variable_of_a_module_is_device_memory_that_cannot_be_freed(
    api: OpenApi, context: CUcontext
) -> None:
    module = load(api, EMPTY, VARIABLE)
    address, nbytes = ok(api.cuModuleGetGlobal(module, b"gv"))
    assert nbytes == 16
    size = attribute(api, P.CU_POINTER_ATTRIBUTE_RANGE_SIZE, int(address))
    assert size == 16
    owner = attribute(api, P.CU_POINTER_ATTRIBUTE_CONTEXT, int(address))
    assert isinstance(owner, CUcontext)
    assert int(owner) == int(context)
    assert code(api.cuMemFree(address)) == 1
    ok(api.cuModuleUnload(module))
    assert attribute(api, P.CU_POINTER_ATTRIBUTE_RANGE_SIZE, int(address)) == 0


def test_pinned_memory_is_checked_and_can_be_written(api: OpenApi, context: CUcontext) -> None:
    assert ok(api.cuMemHostAlloc(0, 0)) == 0
    assert code(api.cuMemHostAlloc(64, 0x100)) == 1
    assert code(api.cuMemHostAlloc(1 << 50, 0)) == 2
    start = ok(api.cuMemHostAlloc(64, 0))
    ctypes.memset(start, 7, 64)
    assert ctypes.string_at(start, 64) == b"\7" * 64
    assert code(api.cuMemFreeHost(start + 8)) == 1
    assert code(api.cuMemFreeHost(0)) == 0
    assert code(api.cuMemFreeHost(0x1000)) == 1
    assert code(api.cuMemFreeHost(start)) == 0
    assert code(api.cuMemFreeHost(start)) == 1


def test_managed_memory_has_one_address_for_host_and_device(
    api: OpenApi, context: CUcontext
) -> None:
    assert code(api.cuMemAllocManaged(0, 1)) == 1
    assert code(api.cuMemAllocManaged(64, 0)) == 1
    pointer = ok(api.cuMemAllocManaged(64, 1))
    address = int(pointer)
    ctypes.memset(address, 7, 64)
    assert ctypes.string_at(address, 64) == b"\7" * 64
    assert attribute(api, P.CU_POINTER_ATTRIBUTE_IS_MANAGED, address + 8)
    assert attribute(api, P.CU_POINTER_ATTRIBUTE_HOST_POINTER, address) == address
    ok(api.cuMemFree(pointer))
    assert code(api.cuMemFree(pointer)) == 1


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["plain", "pool"]), st.integers(1, 300_000)),
        st.tuples(st.just("free"), st.integers(0, 100)),
        st.tuples(st.just("sync"), st.just(0)),
    ),
    max_size=40,
)


@pytest.mark.slow
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=50,
)
@given(_STEPS)
def test_allocations_never_overlap_lose_data_or_leak(steps: list[tuple[str, int]]) -> None:
    emulator = small(1 * MIB)
    live: list[tuple[CUdeviceptr, int, int]] = []
    for number, (action, size) in enumerate(steps):
        if action == "free":
            if live:
                address, words, value = live.pop(size % len(live))
                assert (download(emulator, address, words) == value).all()
                ok(emulator.cuMemFree(address))
        elif action == "sync":
            ok(emulator.cuCtxSynchronize())
        else:
            allocate = (
                emulator.cuMemAlloc
                if action == "plain"
                else lambda n: emulator.cuMemAllocAsync(n, LEGACY)
            )
            result, memory = allocate(4 * (size // 4 + 1))
            if int(result) == 2:
                continue
            words = size // 4 + 1
            for other, count, _ in live:
                begin, end = int(other), int(other) + 4 * count
                assert int(memory) + 4 * words <= begin or end <= int(memory)
            upload(emulator, memory, np.full(words, number, np.uint32))
            live.append((memory, words, number))
    for address, words, value in live:
        assert (download(emulator, address, words) == value).all()
        ok(emulator.cuMemFree(address))
    ok(emulator.cuCtxSynchronize())
    assert ok(emulator.cuMemGetInfo()) == (MIB, MIB)
