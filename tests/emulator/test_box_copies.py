from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cudadrv.driver._api import (
    CUarray,
    CUcontext,
    CUdeviceptr,
    CUstream,
    CUstreamCaptureMode,
)
from cudadrv.emulator import Emulator
from tests.rows import all_rows

from .calls import LEGACY, OpenApi, code, download, ok, upload
from .descriptors import ARRAY, DEVICE, F32, HOST, LAYERED, U8, UNIFIED, Fields, copying, described

# What is copied: 4 slices of 8 rows of 16 words.
DATA = np.arange(4 * 8 * 16, dtype=np.uint32).reshape(4, 8, 16)
BOX = Fields(WidthInBytes=64, Height=8, Depth=4)


def from_host(array: CUarray, data: NDArray[np.uint32] = DATA) -> Fields:
    return Fields(
        srcMemoryType=HOST,
        srcHost=data.ctypes.data,
        srcPitch=64,
        srcHeight=8,
        dstMemoryType=ARRAY,
        dstArray=array,
        WidthInBytes=64,
        Height=8,
        Depth=4,
    )


def read(api: OpenApi, stream: CUstream, array: CUarray) -> NDArray[np.uint32]:
    found = np.zeros_like(DATA)
    down = Fields(
        srcMemoryType=ARRAY,
        srcArray=array,
        dstMemoryType=HOST,
        dstHost=found.ctypes.data,
        dstPitch=64,
        dstHeight=8,
    )
    ok(api.cuMemcpy3DAsync(copying(down, BOX), stream))
    ok(api.cuStreamSynchronize(stream))
    return found


@pytest.fixture
def array(api: OpenApi, context: CUcontext) -> CUarray:
    return ok(api.cuArray3DCreate(described(16, 8, 4)))


def test_a_box_goes_in_and_comes_out(api: OpenApi, array: CUarray, stream: CUstream) -> None:
    ok(api.cuMemcpy3DAsync(copying(from_host(array)), stream))
    np.testing.assert_array_equal(read(api, stream, array), DATA)


def test_a_part_goes_to_its_target(api: OpenApi, array: CUarray, stream: CUstream) -> None:
    nothing = np.zeros_like(DATA)
    ok(api.cuMemcpy3DAsync(copying(from_host(array, nothing)), stream))
    part = Fields(
        srcXInBytes=4,
        srcY=2,
        srcZ=1,
        dstXInBytes=8,
        dstY=1,
        dstZ=2,
        WidthInBytes=12,
        Height=3,
        Depth=2,
    )
    ok(api.cuMemcpy3DAsync(copying(from_host(array), part), stream))
    expected = np.zeros_like(DATA)
    expected[2:4, 1:4, 2:5] = DATA[1:3, 2:5, 1:4]
    np.testing.assert_array_equal(read(api, stream, array), expected)


def test_device_memory_of_any_pitch_on_either_side(
    api: OpenApi, array: CUarray, stream: CUstream
) -> None:
    memory = ok(api.cuMemAlloc(4 * 9 * 68))
    padded = np.zeros((4, 9, 17), np.uint32)
    padded[:, :8, :16] = DATA
    upload(api, memory, padded)
    device = Fields(srcMemoryType=DEVICE, srcHost=0, srcDevice=memory, srcPitch=68, srcHeight=9)
    ok(api.cuMemcpy3DAsync(copying(from_host(array), device), stream))
    np.testing.assert_array_equal(read(api, stream, array), DATA)
    ok(api.cuMemsetD8Async(memory, 0, 4 * 9 * 68, stream))
    down = copying(
        Fields(
            srcMemoryType=ARRAY,
            srcArray=array,
            dstMemoryType=UNIFIED,
            dstDevice=memory,
            dstPitch=68,
            dstHeight=9,
        ),
        BOX,
    )
    ok(api.cuMemcpy3DAsync(down, stream))
    ok(api.cuStreamSynchronize(stream))
    np.testing.assert_array_equal(download(api, memory, 4 * 9 * 17).reshape(4, 9, 17), padded)


def test_copies_between_arrays_count_bytes(api: OpenApi, array: CUarray, stream: CUstream) -> None:
    other = ok(api.cuArray3DCreate(described(64, 8, 4, format_=U8)))
    ok(api.cuMemcpy3DAsync(copying(from_host(array)), stream))
    between = copying(
        Fields(srcMemoryType=ARRAY, srcArray=array, dstMemoryType=ARRAY, dstArray=other), BOX
    )
    ok(api.cuMemcpy3DAsync(between, stream))
    np.testing.assert_array_equal(read(api, stream, other), DATA)


@all_rows
@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        (Fields(WidthInBytes=68), 1),
        (Fields(WidthInBytes=62), 0),
        (Fields(Height=9), 1),
        (Fields(Depth=5), 1),
        (Fields(WidthInBytes=0, Height=99), 0),
        (Fields(Height=0), 0),
        (Fields(Depth=0), 0),
        (Fields(dstXInBytes=4), 1),
        (Fields(dstXInBytes=4, WidthInBytes=60), 0),
        (Fields(dstXInBytes=2, WidthInBytes=4), 0),
        (Fields(dstY=1), 1),
        (Fields(dstY=1, Height=7), 0),
        (Fields(dstZ=1), 1),
        (Fields(dstZ=1, Depth=3), 0),
        (Fields(srcPitch=0), 0),
        (Fields(srcPitch=60), 1),
        (Fields(srcHeight=0), 0),
        (Fields(srcHeight=0, Depth=1), 0),
        (Fields(srcHeight=7), 1),
        (Fields(srcXInBytes=4), 1),
        (Fields(srcXInBytes=4, WidthInBytes=60), 0),
        (Fields(srcY=1), 1),
        (Fields(srcY=1, Height=7, Depth=3), 0),
        (Fields(srcHost=0), 1),
        (Fields(dstArray=CUarray(0)), 1),
        (Fields(dstLOD=1), 1),
        (Fields(srcLOD=1), 0),
        (Fields(srcMemoryType=DEVICE, srcDevice=CUdeviceptr(0)), 1),
        (Fields(srcMemoryType=DEVICE, srcDevice=CUdeviceptr(DATA.ctypes.data)), 1),
        (Fields(srcMemoryType=UNIFIED, srcDevice=CUdeviceptr(DATA.ctypes.data)), 0),
    ],
    # An address differs from worker to worker, and they must find the same tests.
    ids=lambda each: str(each).replace(str(DATA.ctypes.data), "DATA"),
)
def test_copies_are_checked(
    api: OpenApi, array: CUarray, stream: CUstream, fields: Fields, answer: int
) -> None:
    assert code(api.cuMemcpy3DAsync(copying(from_host(array), fields), stream)) == answer
    assert code(api.cuMemcpy3DAsync(None, stream)) == 1
    ok(api.cuStreamSynchronize(stream))


def test_a_copy_is_held_to_its_allocation(api: OpenApi, array: CUarray, stream: CUstream) -> None:
    memory = ok(api.cuMemAlloc(4096))
    beyond = Fields(srcMemoryType=DEVICE, srcDevice=CUdeviceptr(int(memory) + 4096 - 100))
    assert code(api.cuMemcpy3DAsync(copying(from_host(array), beyond), stream)) == 1


def test_one_dimension_and_layers(api: OpenApi, context: CUcontext, stream: CUstream) -> None:
    row = ok(api.cuArray3DCreate(described(16)))
    layers = ok(api.cuArray3DCreate(described(16, 0, 3, LAYERED)))
    for target, height, depth, answer in (
        (row, 1, 1, 0), (row, 2, 1, 1), (row, 1, 2, 1),
        (layers, 1, 3, 0), (layers, 3, 1, 1), (layers, 1, 4, 1),
    ):  # fmt: skip
        given = copying(from_host(target), Fields(Height=height, Depth=depth, srcHeight=height))
        assert code(api.cuMemcpy3DAsync(given, stream)) == answer
    ok(api.cuStreamSynchronize(stream))


def test_a_captured_copy_reads_when_it_is_replayed(
    api: OpenApi, array: CUarray, stream: CUstream
) -> None:
    data = DATA.copy()
    ok(api.cuStreamBeginCapture(stream, CUstreamCaptureMode(2)))
    ok(api.cuMemcpy3DAsync(copying(from_host(array, data)), stream))
    # A copy that is refused leaves the capture as it was.
    assert code(api.cuMemcpy3DAsync(copying(from_host(array, data), Fields(Height=9)), stream)) == 1
    graph = ok(api.cuStreamEndCapture(stream))
    executable = ok(api.cuGraphInstantiate(graph, 0))
    for value in (1, 2):
        data[...] = value
        ok(api.cuGraphLaunch(executable, stream))
        assert (read(api, stream, array) == value).all()
    ok(api.cuGraphExecDestroy(executable))
    ok(api.cuGraphDestroy(graph))


def test_a_replayed_copy_of_a_destroyed_array_is_rejected(emulator: Emulator) -> None:
    """Driver 580 crashes in this."""
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    stream = ok(emulator.cuStreamCreateWithPriority(1, 0))
    array = ok(emulator.cuArray3DCreate(described(16, 8, 4, format_=F32)))
    ok(emulator.cuStreamBeginCapture(stream, CUstreamCaptureMode(2)))
    ok(emulator.cuMemcpy3DAsync(copying(from_host(array)), stream))
    executable = ok(emulator.cuGraphInstantiate(ok(emulator.cuStreamEndCapture(stream)), 0))
    ok(emulator.cuArrayDestroy(array))
    assert code(emulator.cuGraphLaunch(executable, stream)) == 1


def test_copies_between_arrays_of_two_devices(emulator: Emulator) -> None:
    arrays = []
    for ordinal in range(2):
        ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(ordinal))))
        arrays.append(ok(emulator.cuArray3DCreate(described(16, 8, 4))))
    ok(emulator.cuMemcpy3DAsync(copying(from_host(arrays[0])), LEGACY))
    between = copying(
        Fields(srcMemoryType=ARRAY, srcArray=arrays[0], dstMemoryType=ARRAY, dstArray=arrays[1]),
        BOX,
    )
    ok(emulator.cuMemcpy3DAsync(between, LEGACY))
    np.testing.assert_array_equal(read(emulator, LEGACY, arrays[1]), DATA)
