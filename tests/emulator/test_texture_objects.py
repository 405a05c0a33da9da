from __future__ import annotations

import numpy as np
import pytest

from cudadrv.driver._api import (
    CUarray,
    CUcontext,
    CUdevice,
    CUmipmappedArray,
    CUstream,
    CUstreamCaptureMode,
    CUsurfObject,
    CUtexObject,
)
from cudadrv.emulator import Emulator

from .calls import OpenApi, code, ok
from .descriptors import (
    CUBEMAP,
    SURFACE,
    described,
    over_array,
    over_linear,
    over_mipmap,
    over_rows,
    reading,
)

NORMALIZED, SEAMLESS = 2, 64


@pytest.fixture
def array(api: OpenApi, context: CUcontext) -> CUarray:
    return ok(api.cuArray3DCreate(described(16, 8, 0, SURFACE)))


def test_objects_have_numbers_of_their_own(api: OpenApi, array: CUarray) -> None:
    textures = [
        int(ok(api.cuTexObjectCreate(over_array(array), reading(mode=mode), None)))
        for mode in range(4)
    ]
    surface = int(ok(api.cuSurfObjectCreate(over_array(array))))
    assert len({*textures, surface, 0}) == 6
    for handle in textures:
        ok(api.cuTexObjectDestroy(CUtexObject(handle)))
    ok(api.cuSurfObjectDestroy(CUsurfObject(surface)))


def test_only_a_live_object_of_the_current_context_is_destroyed(emulator: Emulator) -> None:
    """A GPU's driver answers success, and does nothing."""
    device = ok(emulator.cuDeviceGet(0))
    ok(emulator.cuCtxCreate(None, 0, device))
    array = ok(emulator.cuArray3DCreate(described(16, 8, 0, SURFACE)))
    texture = ok(emulator.cuTexObjectCreate(over_array(array), reading(), None))
    surface = ok(emulator.cuSurfObjectCreate(over_array(array)))
    for handle in (CUtexObject(0), CUtexObject(1 << 60), CUtexObject(int(surface))):
        assert code(emulator.cuTexObjectDestroy(handle)) == 1
    assert code(emulator.cuSurfObjectDestroy(CUsurfObject(int(texture)))) == 1
    other = ok(emulator.cuCtxCreate(None, 0, device))
    assert code(emulator.cuTexObjectDestroy(texture)) == 1
    ok(emulator.cuCtxDestroy(other))
    ok(emulator.cuTexObjectDestroy(texture))
    assert code(emulator.cuTexObjectDestroy(texture)) == 1
    ok(emulator.cuSurfObjectDestroy(surface))


def test_objects_need_a_current_context(api: OpenApi, array: CUarray) -> None:
    texture = ok(api.cuTexObjectCreate(over_array(array), reading(), None))
    ok(api.cuCtxPopCurrent())
    assert code(api.cuTexObjectDestroy(texture)) == 201
    assert code(api.cuSurfObjectDestroy(CUsurfObject(0))) == 201
    assert code(api.cuTexObjectCreate(over_array(array), reading(), None)) == 201


def test_arrays_may_go_before_their_objects(api: OpenApi, array: CUarray) -> None:
    texture = ok(api.cuTexObjectCreate(over_array(array), reading(), None))
    surface = ok(api.cuSurfObjectCreate(over_array(array)))
    ok(api.cuArrayDestroy(array))
    ok(api.cuTexObjectDestroy(texture))
    ok(api.cuSurfObjectDestroy(surface))
    assert code(api.cuTexObjectCreate(over_array(array), reading(), None)) == 1


def test_an_array_of_another_context_is_rejected(
    api: OpenApi, array: CUarray, device: CUdevice
) -> None:
    ok(api.cuCtxCreate(None, 0, device))
    assert code(api.cuTexObjectCreate(over_array(array), reading(), None)) == 705
    ok(api.cuCtxDestroy(ok(api.cuCtxGetCurrent())))


def test_descriptors_are_checked(api: OpenApi, array: CUarray) -> None:
    good = over_array(array)
    assert code(api.cuTexObjectCreate(None, reading(), None)) == 1
    assert code(api.cuTexObjectCreate(good, None, None)) == 1
    assert code(api.cuTexObjectCreate(over_array(CUarray(0)), reading(), None)) == 1
    assert code(api.cuTexObjectCreate(over_mipmap(CUmipmappedArray(0)), reading(), None)) == 1
    assert code(api.cuTexObjectCreate(good, reading(128), None)) == 1
    assert code(api.cuTexObjectCreate(good, reading(SEAMLESS), None)) == 1
    assert code(api.cuSurfObjectCreate(None)) == 1
    assert code(api.cuSurfObjectCreate(over_array(CUarray(0)))) == 1
    flagged = over_array(array)
    flagged.flags = 1
    assert code(api.cuTexObjectCreate(flagged, reading(), None)) == 1


def test_only_a_cubemap_is_seamless(api: OpenApi, context: CUcontext) -> None:
    cube = ok(api.cuArray3DCreate(described(16, 16, 6, CUBEMAP)))
    ok(api.cuTexObjectCreate(over_array(cube), reading(SEAMLESS | NORMALIZED), None))


def test_memory_in_a_row_is_aligned(api: OpenApi, context: CUcontext, stream: CUstream) -> None:
    memory = int(ok(api.cuMemAlloc(1 << 16)))
    pooled = int(ok(api.cuMemAllocAsync(1 << 16, stream)))
    for address in (memory, pooled, memory + 512):
        ok(api.cuTexObjectCreate(over_linear(address), reading(), None))
    for offset in (1, 4, 16, 32, 64, 128, 256):
        assert code(api.cuTexObjectCreate(over_linear(memory + offset), reading(), None)) == 1
    assert code(api.cuTexObjectCreate(over_linear(0), reading(), None)) == 1
    assert code(api.cuTexObjectCreate(over_linear(memory, 1 << 40), reading(), None)) == 1
    for channels, answer in ((0, 1), (1, 0), (2, 0), (3, 1), (4, 0), (5, 1)):
        resource = over_linear(memory, channels=channels)
        assert code(api.cuTexObjectCreate(resource, reading(), None)) == answer
    assert code(api.cuSurfObjectCreate(over_linear(memory))) == 1


def test_memory_in_rows_is_aligned(api: OpenApi, context: CUcontext) -> None:
    memory = int(ok(api.cuMemAlloc(1 << 23)))
    for pitch, answer in (
        (64, 0), (96, 0), (256, 0), (2097120, 0),
        (60, 1), (65, 1), (68, 1), (80, 1), (112, 1), (2097121, 1), (2097152, 1),
    ):  # fmt: skip
        resource = over_rows(memory, pitch=pitch)
        assert code(api.cuTexObjectCreate(resource, reading(), None)) == answer, pitch
    for width, height, pitch, answer in (
        (16, 1, 64, 0), (1, 1, 32, 0), (16, 65000, 64, 0), (131072, 1, 524288, 0),
        (1, 1, 4, 1), (16, 65001, 64, 1), (131073, 1, 524320, 1),
    ):  # fmt: skip
        resource = over_rows(memory, width, height, pitch)
        assert code(api.cuTexObjectCreate(resource, reading(), None)) == answer, (width, height)
    assert code(api.cuTexObjectCreate(over_rows(memory + 32), reading(), None)) == 1
    assert code(api.cuTexObjectCreate(over_rows(0), reading(), None)) == 1


def test_the_emulator_holds_textures_to_their_allocation(emulator: Emulator) -> None:
    """A GPU looks at the address alone, and faults when a kernel reads beyond."""
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    memory = int(ok(emulator.cuMemAlloc(1024)))
    host = np.zeros(1024, np.uint8)
    assert code(emulator.cuTexObjectCreate(over_linear(memory, 1028), reading(), None)) == 1
    assert code(emulator.cuTexObjectCreate(over_rows(memory, 16, 17), reading(), None)) == 1
    assert code(emulator.cuTexObjectCreate(over_rows(memory, 17, 1, 64), reading(), None)) == 1
    pageable = over_linear(host.ctypes.data // 512 * 512)
    assert code(emulator.cuTexObjectCreate(pageable, reading(), None)) == 801


def test_surfaces_are_of_any_array(api: OpenApi, context: CUcontext) -> None:
    """As on an H200, though the manual requires CUDA_ARRAY3D_SURFACE_LDST."""
    layered, gather = 1, 8
    for extents, flags in (
        ((16, 0, 0), 0),
        ((16, 8, 0), 0),
        ((16, 8, 0), gather),
        ((16, 8, 0), SURFACE | gather),
        ((16, 8, 4), 0),
        ((16, 8, 4), layered),
        ((8, 8, 6), CUBEMAP),
    ):
        array = ok(api.cuArray3DCreate(described(*extents, flags)))
        surface = ok(api.cuSurfObjectCreate(over_array(array)))
        ok(api.cuSurfObjectDestroy(surface))
        described_so = over_array(array)
        described_so.flags = 1
        assert code(api.cuSurfObjectCreate(described_so)) == 1, (extents, flags)
        ok(api.cuArrayDestroy(array))


def test_mipmapped_arrays_and_their_levels(api: OpenApi, context: CUcontext) -> None:
    mipmapped = ok(api.cuMipmappedArrayCreate(described(16, 8, 0, SURFACE), 3))
    ok(api.cuTexObjectCreate(over_mipmap(mipmapped), reading(NORMALIZED), None))
    level = ok(api.cuMipmappedArrayGetLevel(mipmapped, 1))
    ok(api.cuTexObjectCreate(over_array(level), reading(), None))
    ok(api.cuSurfObjectCreate(over_array(level)))
    assert code(api.cuSurfObjectCreate(over_mipmap(mipmapped))) == 1


def test_a_capture_that_forbids_it_makes_and_destroys_no_objects(
    api: OpenApi, array: CUarray, stream: CUstream
) -> None:
    texture = ok(api.cuTexObjectCreate(over_array(array), reading(), None))
    for call in (
        lambda: api.cuTexObjectCreate(over_array(array), reading(), None),
        lambda: api.cuSurfObjectCreate(over_array(array)),
        lambda: api.cuTexObjectDestroy(texture),
    ):
        ok(api.cuStreamBeginCapture(stream, CUstreamCaptureMode(0)))
        assert code(call()) == 900
        assert code(api.cuStreamEndCapture(stream)) == 901
    ok(api.cuStreamBeginCapture(stream, CUstreamCaptureMode(2)))
    ok(api.cuTexObjectDestroy(texture))
    ok(api.cuTexObjectCreate(over_array(array), reading(), None))
    ok(api.cuGraphDestroy(ok(api.cuStreamEndCapture(stream))))


def test_a_destroyed_context_destroys_its_objects(emulator: Emulator) -> None:
    context = ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    array = ok(emulator.cuArray3DCreate(described(16, 8, 0, SURFACE)))
    texture = ok(emulator.cuTexObjectCreate(over_array(array), reading(), None))
    ok(emulator.cuSurfObjectCreate(over_array(array)))
    assert emulator.live_objects()["texture or surface"] == 2
    ok(emulator.cuCtxDestroy(context))
    assert emulator.live_objects()["texture or surface"] == 0
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    assert code(emulator.cuTexObjectDestroy(texture)) == 709
