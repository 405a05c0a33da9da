from __future__ import annotations

import numpy as np

from cudadrv.driver._api import CUDA_MEMCPY3D_PEER, CUcontext, CUstream
from cudadrv.emulator import Emulator

from .calls import LEGACY, OpenApi, code, download, ok, upload
from .descriptors import DEVICE
from .test_copies import past


def test_rows_are_filled_and_what_is_between_them_is_not(api: OpenApi, context: CUcontext) -> None:
    memory = ok(api.cuMemAlloc(48))
    ok(api.cuMemsetD8Async(memory, 0, 48, LEGACY))
    ok(api.cuMemsetD2D8Async(past(memory, 1), 12, 0xAB, 2, 4, LEGACY))
    ok(api.cuMemsetD2D16Async(past(memory, 4), 24, 0x1234, 1, 2, LEGACY))
    ok(api.cuMemsetD2D32Async(past(memory, 8), 36, 0x5678, 1, 2, LEGACY))
    expected = np.zeros((4, 12), np.uint8)
    expected[:, 1:3] = 0xAB
    expected[::2, 4:6] = (0x34, 0x12)
    expected[::3, 8:12] = (0x78, 0x56, 0, 0)
    assert download(api, memory, 12).tobytes() == expected.tobytes()


def test_the_pitch_of_one_row_does_not_matter(api: OpenApi, context: CUcontext) -> None:
    memory = ok(api.cuMemAlloc(16))
    ok(api.cuMemsetD2D32Async(memory, 0, 5, 4, 1, LEGACY))
    assert download(api, memory, 4).tolist() == [5] * 4


def test_fills_of_rows_are_checked(api: OpenApi, context: CUcontext, stream: CUstream) -> None:
    memory = ok(api.cuMemAlloc(40))
    assert code(api.cuMemsetD2D8Async(memory, 20, 1, 20, 2, stream)) == 0
    assert code(api.cuMemsetD2D8Async(memory, 20, 1, 20, 3, stream)) == 1
    assert code(api.cuMemsetD2D8Async(memory, 10, 1, 11, 2, stream)) == 1
    assert code(api.cuMemsetD2D32Async(past(memory, 2), 8, 1, 1, 2, stream)) == 1
    assert code(api.cuMemsetD2D32Async(memory, 10, 1, 1, 2, stream)) == 1
    assert code(api.cuMemsetD2D16Async(memory, 8, 1, 0, 2, stream)) == 0


def test_boxes_go_between_devices(emulator: Emulator) -> None:
    devices = [ok(emulator.cuDeviceGet(ordinal)) for ordinal in (0, 1)]
    first = ok(emulator.cuCtxCreate(None, 0, devices[0]))
    of = ok(emulator.cuMemAlloc(48))
    upload(emulator, of, np.arange(12, dtype=np.uint32))
    second = ok(emulator.cuCtxCreate(None, 0, devices[1]))
    to = ok(emulator.cuMemAlloc(24))
    copy = CUDA_MEMCPY3D_PEER()
    copy.srcMemoryType = copy.dstMemoryType = DEVICE
    copy.srcContext, copy.srcDevice, copy.srcPitch, copy.srcHeight = first, past(of, 4), 16, 3
    copy.dstContext, copy.dstDevice, copy.dstPitch, copy.dstHeight = second, to, 8, 3
    copy.WidthInBytes, copy.Height, copy.Depth = 8, 3, 1
    ok(emulator.cuMemcpy3DPeerAsync(copy, LEGACY))
    assert download(emulator, to, 6).tolist() == [1, 2, 5, 6, 9, 10]
    ok(emulator.cuCtxDestroy(first))
    assert code(emulator.cuMemcpy3DPeerAsync(copy, LEGACY)) == 709


def test_a_copy_without_parameters_is_rejected(emulator: Emulator) -> None:
    # The bindings' own function ends the process here.
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    assert code(emulator.cuMemcpy3DPeerAsync(None, LEGACY)) == 1
