from __future__ import annotations

import ctypes

import numpy as np
import pytest

from cudadrv.driver._api import CUcontext, CUdeviceptr, CUresult
from cudadrv.emulator import Emulator

from .calls import Parameters, code, download, functions, launch, load, ok
from .kernels import INCREMENT


@pytest.fixture(params=["immediate", "late"])
def api(request: pytest.FixtureRequest) -> Emulator:
    """An emulator with a current context, in two orders."""
    emulator = Emulator(order=request.param)
    ok(emulator.cuInit(0))
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    return emulator


def test_copies_come_after_the_work_of_blocking_streams_and_are_done(api: Emulator) -> None:
    (increment,) = functions(api, load(api, INCREMENT), "increment")
    first, second = ok(api.cuMemAlloc(4)), ok(api.cuMemAlloc(4))
    ok(api.cuMemsetD32(first, 40, 1))
    stream = ok(api.cuStreamCreate(0))
    ok(api.cuStreamSynchronize(stream))
    ok(launch(api, increment, Parameters(ctypes.c_uint64(int(first))), stream=stream))
    ok(api.cuMemcpyDtoD(second, first, 4))
    found = np.zeros(1, np.uint32)
    ok(api.cuMemcpyDtoH(found.ctypes.data, second, 4))
    assert found.tolist() == [41]


def test_host_memory_may_change_once_a_copy_from_it_returned(api: Emulator) -> None:
    memory, host = ok(api.cuMemAlloc(8)), np.array([1, 2], np.uint32)
    ok(api.cuMemcpyHtoD(memory, host.ctypes.data, 8))
    host[:] = 0
    assert download(api, memory, 2).tolist() == [1, 2]


def test_a_copy_finds_out_where_its_addresses_lie(api: Emulator) -> None:
    memory, host = ok(api.cuMemAlloc(8)), np.array([3, 4], np.uint32)
    back = np.zeros(2, np.uint32)
    ok(api.cuMemcpy(memory, CUdeviceptr(host.ctypes.data), 8))
    ok(api.cuMemcpy(CUdeviceptr(back.ctypes.data), memory, 8))
    assert back.tolist() == [3, 4]


@pytest.mark.parametrize(("width", "value"), [(8, 0x7F), (16, 0x1234), (32, 0x12345678)])
def test_fills_of_each_width(api: Emulator, width: int, value: int) -> None:
    memory = ok(api.cuMemAlloc(8))
    fill = {8: api.cuMemsetD8, 16: api.cuMemsetD16, 32: api.cuMemsetD32}[width]
    ok(fill(memory, value, 64 // width))
    whole = int.from_bytes(value.to_bytes(width // 8, "little") * (64 // width), "little")
    assert download(api, memory, 2).tolist() == [whole & 0xFFFFFFFF, whole >> 32]


def test_memory_of_the_callers_is_page_locked_and_reached_by_kernels(api: Emulator) -> None:
    (increment,) = functions(api, load(api, INCREMENT), "increment")
    host = np.array([9, 9], np.uint32)
    address = host.ctypes.data
    ok(api.cuMemHostRegister(address, host.nbytes, 0))
    pointer = ok(api.cuMemHostGetDevicePointer(address, 0))
    ok(launch(api, increment, Parameters(ctypes.c_uint64(int(pointer)))))
    ok(api.cuMemHostUnregister(address))
    assert host.tolist() == [10, 9]
    again = api.cuMemHostUnregister(address)
    assert code(again) == CUresult.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
    absent = api.cuMemHostGetDevicePointer(address, 0)
    assert code(absent) == CUresult.CUDA_ERROR_INVALID_VALUE


def test_memory_is_page_locked_once_and_not_freed_by_the_driver(api: Emulator) -> None:
    host = np.zeros(16, np.uint8)
    ok(api.cuMemHostRegister(host.ctypes.data, 16, 0))
    overlapping = api.cuMemHostRegister(host.ctypes.data + 8, 4, 0)
    assert code(overlapping) == CUresult.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
    assert code(api.cuMemFreeHost(host.ctypes.data)) == CUresult.CUDA_ERROR_INVALID_VALUE
    ok(api.cuMemHostUnregister(host.ctypes.data))


def test_an_address_range_is_that_of_the_allocation(api: Emulator) -> None:
    memory, pinned = ok(api.cuMemAlloc(100)), ok(api.cuMemAllocHost(50))
    start, nbytes = ok(api.cuMemGetAddressRange(CUdeviceptr(int(memory) + 60)))
    assert (int(start), nbytes) == (int(memory), 100)
    start, nbytes = ok(api.cuMemGetAddressRange(CUdeviceptr(pinned + 9)))
    assert (int(start), nbytes) == (pinned, 50)
    ok(api.cuMemFree(memory))
    assert code(api.cuMemGetAddressRange(memory)) == CUresult.CUDA_ERROR_NOT_FOUND


def test_a_streams_callback_gets_the_stream_and_runs_in_its_order(api: Emulator) -> None:
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    host, seen = np.zeros(1, np.uint32), []
    callback = kind(lambda *given: seen.append((*given, int(host[0]))))
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    memory, stream = ok(api.cuMemAlloc(4)), ok(api.cuStreamCreate(1))
    ok(api.cuMemsetD32Async(memory, 6, 1, stream))
    ok(api.cuMemcpyDtoHAsync(host.ctypes.data, memory, 4, stream))
    ok(api.cuStreamAddCallback(stream, address, 77, 0))
    ok(api.cuStreamSynchronize(stream))
    assert seen == [(int(stream), 0, 77, 6)]


def test_a_reset_destroys_what_the_primary_context_holds(api: Emulator) -> None:
    device = ok(api.cuDeviceGet(0))
    assert ok(api.cuDevicePrimaryCtxGetState(device)) == (0, 0)
    context = ok(api.cuDevicePrimaryCtxRetain(device))
    ok(api.cuDevicePrimaryCtxRetain(device))
    ok(api.cuCtxPushCurrent(context))
    memory = ok(api.cuMemAlloc(4))
    ok(api.cuDevicePrimaryCtxReset(device))
    assert ok(api.cuDevicePrimaryCtxGetState(device)) == (0, 0)
    assert int(ok(api.cuDevicePrimaryCtxRetain(device))) == int(context)
    assert code(api.cuMemFree(memory)) == CUresult.CUDA_ERROR_INVALID_VALUE


def test_streams_and_contexts_have_numbers_of_their_own(api: Emulator) -> None:
    streams = [ok(api.cuStreamCreate(flags)) for flags in (0, 1)]
    assert [ok(api.cuStreamGetFlags(each)) for each in streams] == [0, 1]
    assert len({ok(api.cuStreamGetId(each)) for each in streams}) == 2
    assert ok(api.cuStreamGetId(streams[0])) == ok(api.cuStreamGetId(streams[0]))
    assert [int(ok(api.cuStreamGetDevice(each))) for each in streams] == [0, 0]
    other = ok(api.cuDevicePrimaryCtxRetain(ok(api.cuDeviceGet(0))))
    assert ok(api.cuCtxGetId(CUcontext(0))) != ok(api.cuCtxGetId(other))


def test_dynamic_shared_memory_that_leaves_room_for_the_blocks(api: Emulator) -> None:
    (function,) = functions(api, load(api, INCREMENT), "increment")
    ask = api.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
    for blocks in (4, 8, 16):
        most = ok(api.cuOccupancyAvailableDynamicSMemPerBlock(function, blocks, 64))
        assert ok(ask(function, 64, most, 0)) >= blocks
        assert most == 49152 or ok(ask(function, 64, most + 1, 0)) < blocks
