from __future__ import annotations

import ctypes

import numpy as np
import pytest

from cudadrv.driver._api import CUcontext, CUdevice, CUdeviceptr, CUstream
from cudadrv.emulator import Emulator

from .calls import LEGACY, OpenApi, code, download, ok, upload

NOWHERE = CUdeviceptr(0x1000)


def past(memory: CUdeviceptr, nbytes: int) -> CUdeviceptr:
    return CUdeviceptr(int(memory) + nbytes)


def test_what_goes_up_comes_down(api: OpenApi, context: CUcontext) -> None:
    data = np.arange(1000, dtype=np.uint32)
    memory = ok(api.cuMemAlloc(data.nbytes))
    upload(api, memory, data)
    np.testing.assert_array_equal(download(api, memory, 1000), data)
    np.testing.assert_array_equal(download(api, past(memory, 40), 5), data[10:15])


def test_copies_are_held_to_their_allocation(
    api: OpenApi, context: CUcontext, stream: CUstream
) -> None:
    host = np.zeros(1 << 20, np.uint8)
    at = host.ctypes.data
    memory, other = ok(api.cuMemAlloc(4096)), ok(api.cuMemAlloc(1 << 20))
    assert code(api.cuMemcpyHtoDAsync(memory, at, 4097, stream)) == 1
    assert code(api.cuMemcpyHtoDAsync(past(memory, 4092), at, 8, stream)) == 1
    assert code(api.cuMemcpyHtoDAsync(NOWHERE, at, 8, stream)) == 1
    assert code(api.cuMemcpyHtoDAsync(CUdeviceptr(0), at, 8, stream)) == 1
    assert code(api.cuMemcpyHtoDAsync(memory, 0, 8, stream)) == 1
    assert code(api.cuMemcpyDtoHAsync(at, memory, 4097, stream)) == 1
    assert code(api.cuMemcpyDtoHAsync(at, NOWHERE, 8, stream)) == 1
    assert code(api.cuMemcpyDtoHAsync(0, memory, 8, stream)) == 1
    assert code(api.cuMemcpyDtoDAsync(memory, other, 4097, stream)) == 1
    assert code(api.cuMemcpyDtoDAsync(other, memory, 4097, stream)) == 1
    assert code(api.cuMemcpyDtoDAsync(CUdeviceptr(at), memory, 8, stream)) == 1
    assert code(api.cuMemcpyPeerAsync(memory, context, other, context, 4097, stream)) == 1


def test_no_bytes_are_copied_anywhere(api: OpenApi, context: CUcontext, stream: CUstream) -> None:
    assert code(api.cuMemcpyHtoDAsync(NOWHERE, 0, 0, stream)) == 0
    assert code(api.cuMemsetD32Async(NOWHERE, 1, 0, stream)) == 0


def test_freed_memory_is_reported_as_freed(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    host = np.zeros(8, np.uint8)
    memory = ok(emulator.cuMemAlloc(8))
    ok(emulator.cuMemFree(memory))
    (result,) = emulator.cuMemcpyHtoDAsync(memory, host.ctypes.data, 8, LEGACY)
    assert int(result) == 1
    said = ok(emulator.cuGetErrorString(result))
    assert said is not None
    assert b"now freed" in said


def test_a_device_pointer_may_stand_where_a_host_pointer_does(
    api: OpenApi, context: CUcontext, stream: CUstream
) -> None:
    """Unified addressing: the driver sees from the address what it is."""
    a, b = ok(api.cuMemAlloc(16)), ok(api.cuMemAlloc(16))
    upload(api, a, np.arange(4, dtype=np.uint32))
    ok(api.cuMemcpyHtoDAsync(b, int(a), 16, stream))
    ok(api.cuStreamSynchronize(stream))
    assert download(api, b, 4).tolist() == [0, 1, 2, 3]
    ok(api.cuMemsetD8Async(a, 0, 16, stream))
    ok(api.cuMemcpyDtoHAsync(int(a), b, 16, stream))
    ok(api.cuStreamSynchronize(stream))
    assert download(api, a, 4).tolist() == [0, 1, 2, 3]


def test_pinned_memory_may_stand_where_a_device_pointer_does(
    api: OpenApi, context: CUcontext, stream: CUstream
) -> None:
    pinned = ok(api.cuMemHostAlloc(16, 0))
    memory = ok(api.cuMemAlloc(16))
    ok(api.cuMemsetD8Async(CUdeviceptr(pinned), 9, 16, stream))
    ok(api.cuMemcpyDtoDAsync(memory, CUdeviceptr(pinned), 16, stream))
    ok(api.cuStreamSynchronize(stream))
    assert ctypes.string_at(pinned, 16) == b"\t" * 16
    assert download(api, memory, 4).tolist() == [0x09090909] * 4
    assert code(api.cuMemcpyDtoDAsync(memory, CUdeviceptr(pinned + 8), 16, stream)) == 1
    ok(api.cuMemFreeHost(pinned))


def test_copies_between_devices(emulator: Emulator) -> None:
    first = ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    a = ok(emulator.cuMemAlloc(16))
    upload(emulator, a, np.arange(4, dtype=np.uint32))
    second = ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(1))))
    b = ok(emulator.cuMemAlloc(16))
    ok(emulator.cuMemcpyPeerAsync(b, second, a, first, 16, LEGACY))
    assert download(emulator, b, 4).tolist() == [0, 1, 2, 3]
    ok(emulator.cuMemsetD8Async(a, 0, 16, LEGACY))
    ok(emulator.cuMemcpyDtoDAsync(a, b, 8, LEGACY))
    assert download(emulator, a, 4).tolist() == [0, 1, 0, 0]


def test_overlapping_copies_move(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    memory = ok(emulator.cuMemAlloc(40))
    upload(emulator, memory, np.arange(10, dtype=np.uint32))
    ok(emulator.cuMemcpyDtoDAsync(past(memory, 4), memory, 36, LEGACY))
    assert download(emulator, memory, 10).tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("value", [0, 0x7F, 0xAB])
def test_fills_of_bytes(api: OpenApi, context: CUcontext, value: int) -> None:
    memory = ok(api.cuMemAlloc(16))
    ok(api.cuMemsetD8Async(memory, 0x11, 16, LEGACY))
    ok(api.cuMemsetD8Async(past(memory, 1), value, 2, LEGACY))
    assert download(api, memory, 1).tolist() == [0x11000011 | value << 8 | value << 16]


def test_fills_of_words(api: OpenApi, context: CUcontext) -> None:
    memory = ok(api.cuMemAlloc(4000))
    ok(api.cuMemsetD16Async(memory, 0xBEEF, 2000, LEGACY))
    assert (download(api, memory, 1000) == 0xBEEFBEEF).all()
    ok(api.cuMemsetD32Async(past(memory, 4), 0xDEADBEEF, 998, LEGACY))
    found = download(api, memory, 1000)
    assert (found[1:-1] == 0xDEADBEEF).all()
    assert found[[0, -1]].tolist() == [0xBEEFBEEF] * 2


def test_fills_are_checked(api: OpenApi, context: CUcontext, stream: CUstream) -> None:
    memory = ok(api.cuMemAlloc(1000))
    assert code(api.cuMemsetD8Async(memory, 1, 1001, stream)) == 1
    assert code(api.cuMemsetD16Async(past(memory, 1), 1, 4, stream)) == 1
    assert code(api.cuMemsetD32Async(past(memory, 2), 1, 4, stream)) == 1
    assert code(api.cuMemsetD32Async(NOWHERE, 1, 1, stream)) == 1
    host = np.zeros(8, np.uint8)
    assert code(api.cuMemsetD8Async(CUdeviceptr(host.ctypes.data), 1, 8, stream)) == 1
    with pytest.raises(OverflowError):
        api.cuMemsetD8Async(memory, 256, 1, stream)


def test_a_copy_names_a_dead_context(emulator: Emulator, device: CUdevice) -> None:
    dead = ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    ok(emulator.cuCtxDestroy(dead))
    alive = ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    memory = ok(emulator.cuMemAlloc(16))
    assert code(emulator.cuMemcpyPeerAsync(memory, dead, memory, alive, 8, LEGACY)) == 709
