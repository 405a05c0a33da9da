from __future__ import annotations

import pytest

from cudadrv.driver._api import (
    CUarray,
    CUarray_format,
    CUcontext,
    CUdevice,
    CUmipmappedArray,
    CUstream,
    CUstreamCaptureMode,
)
from cudadrv.emulator import Emulator
from cudadrv.emulator.calls.call import state_of
from tests.rows import all_rows

from .calls import OpenApi, code, ok
from .descriptors import CUBEMAP, F32, GATHER, LAYERED, SURFACE, U8, described, extents

GLOBAL = CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
RELAXED = CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED


@all_rows
@pytest.mark.parametrize(
    "given",
    [
        (1,),
        (16,),
        (16, 8),
        (16, 8, 4),
        (16, 0, 3, LAYERED),
        (16, 8, 3, LAYERED),
        (16, 16, 6, CUBEMAP),
        (16, 16, 12, CUBEMAP | LAYERED),
        (16, 8, 0, GATHER | SURFACE),
        (32768, 0, 0, SURFACE),
        (131072, 1),
        (1, 65536),
        (1, 1, 32768),
        (16384, 1, 2, SURFACE),
        (1, 16384, 2),
        (1, 1, 16384),
        (1, 1, 2046, CUBEMAP | LAYERED),
        (32768, 1, 2, LAYERED),
    ],
)
def test_an_array_is_what_it_was_made_of(
    api: OpenApi, context: CUcontext, given: tuple[int, ...]
) -> None:
    array = ok(api.cuArray3DCreate(described(*given, channels=2, format_=U8)))
    assert int(array)
    full = (*given, 0, 0, 0)[:4]
    assert extents(ok(api.cuArray3DGetDescriptor(array))) == (*full, 2, int(U8))
    ok(api.cuArrayDestroy(array))


@all_rows
@pytest.mark.parametrize(
    "given",
    [
        (0,),
        (16, 0, 4),
        (16, 8, 0, LAYERED),
        (16, 0, 0, LAYERED),
        (16, 8, 6, CUBEMAP),
        (16, 16, 5, CUBEMAP),
        (16, 16, 12, CUBEMAP),
        (16, 16, 7, CUBEMAP | LAYERED),
        (16, 0, 0, GATHER),
        (16, 8, 4, GATHER),
        (16, 8, 4, GATHER | LAYERED),
        (32769, 8, 0, GATHER),
        (32769, 0, 0, SURFACE),
        (131073,),
        (131073, 1),
        (1, 65537),
        (16385, 1, 2),
        (1, 16385, 2),
        (1, 1, 32769),
        (8193, 1, 16385),
        (32769, 0, 2, LAYERED),
        (1, 0, 2049, LAYERED),
        (32769, 1, 2, LAYERED),
        (1, 32769, 2, LAYERED),
        (1, 1, 2049, LAYERED),
        (32769, 32769, 6, CUBEMAP),
        (1, 1, 2052, CUBEMAP | LAYERED),
        (16, 8, 0, 0x10),
        (16, 8, 0, 0x1000),
    ],
)
def test_an_array_that_cannot_be_is_rejected(
    api: OpenApi, context: CUcontext, given: tuple[int, ...]
) -> None:
    assert code(api.cuArray3DCreate(described(*given, format_=U8))) == 1


def test_channels_are_one_two_or_four(api: OpenApi, context: CUcontext) -> None:
    for channels in (0, 3, 5, 8):
        assert code(api.cuArray3DCreate(described(16, channels=channels))) == 1
    assert code(api.cuArray3DCreate(None)) == 1


def test_an_array_needs_a_context_to_be_made_and_none_later(
    api: OpenApi, context: CUcontext, device: CUdevice
) -> None:
    first, second = (ok(api.cuArray3DCreate(described(16))) for _ in range(2))
    other = ok(api.cuCtxCreate(None, 0, device))
    assert extents(ok(api.cuArray3DGetDescriptor(first)))[0] == 16
    ok(api.cuArrayDestroy(first))
    while int(ok(api.cuCtxGetCurrent())):
        ok(api.cuCtxPopCurrent())
    assert code(api.cuArray3DCreate(described(16))) == 201
    assert extents(ok(api.cuArray3DGetDescriptor(second)))[0] == 16
    ok(api.cuArrayDestroy(second))
    ok(api.cuCtxDestroy(other))


def test_a_destroyed_array_is_none(api: OpenApi, context: CUcontext) -> None:
    array = ok(api.cuArray3DCreate(described(16)))
    ok(api.cuArrayDestroy(array))
    assert code(api.cuArrayDestroy(array)) == 709
    assert code(api.cuArray3DGetDescriptor(array)) == 709
    assert code(api.cuArrayDestroy(CUarray(0))) == 400
    assert code(api.cuArray3DGetDescriptor(CUarray(0))) == 400


def test_a_destroyed_context_destroys_its_arrays(emulator: Emulator) -> None:
    context = ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    array = ok(emulator.cuArray3DCreate(described(1000, 1000)))
    ok(emulator.cuMipmappedArrayCreate(described(1000, 1000), 4))
    ok(emulator.cuCtxDestroy(context))
    assert code(emulator.cuArray3DGetDescriptor(array)) == 709
    assert code(emulator.cuArrayDestroy(array)) == 709
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    free, total = ok(emulator.cuMemGetInfo())
    assert free == total


def test_arrays_take_memory_and_give_it_back(api: OpenApi, context: CUcontext) -> None:
    free, _ = ok(api.cuMemGetInfo())
    array = ok(api.cuArray3DCreate(described(4096, 4096)))
    mipmapped = ok(api.cuMipmappedArrayCreate(described(4096, 4096), 99))
    with_both, _ = ok(api.cuMemGetInfo())
    alone = isinstance(api, Emulator)  # other processes use the memory of a GPU too
    assert not alone or free - with_both >= (64 << 20) + (85 << 20)
    ok(api.cuArrayDestroy(array))
    ok(api.cuMipmappedArrayDestroy(mipmapped))
    assert not alone or ok(api.cuMemGetInfo())[0] == free
    # The largest there may be is 128 GiB: no device has room for three.
    made = [api.cuArray3DCreate(described(131072, 65536, channels=4)) for _ in range(3)]
    assert code(made[-1]) == 2
    for found in made:
        if not code(found):
            ok(api.cuArrayDestroy(ok(found)))


def test_an_array_is_named_where_memory_is_reported(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    ok(emulator.cuArray3DCreate(described(16)))
    device = state_of(emulator).devices.visible[0]
    nearest = device.memory.nearest(device.memory.base)
    assert nearest is not None
    assert nearest.origin.startswith("cuArray3DCreate at ")
    assert "test_arrays.py" in nearest.origin


def test_levels_are_halves_of_each_other(api: OpenApi, context: CUcontext) -> None:
    for given, levels, last in (
        ((16, 8), 3, (4, 2, 0, 0)),
        ((16, 8), 0, (16, 8, 0, 0)),
        ((17, 9), 99, (1, 1, 0, 0)),
        ((16,), 99, (1, 0, 0, 0)),
        ((16, 8, 4), 99, (1, 1, 1, 0)),
        ((16, 8, 3, LAYERED), 4, (2, 1, 3, LAYERED)),
        ((16, 16, 6, CUBEMAP), 5, (1, 1, 6, CUBEMAP)),
    ):
        mipmapped = ok(api.cuMipmappedArrayCreate(described(*given), levels))
        count = min(max(levels, 1), given[0].bit_length())
        handles = [ok(api.cuMipmappedArrayGetLevel(mipmapped, k)) for k in range(count)]
        assert extents(ok(api.cuArray3DGetDescriptor(handles[-1]))) == (*last, 1, int(F32))
        assert extents(ok(api.cuArray3DGetDescriptor(handles[0])))[:1] == given[:1]
        assert int(ok(api.cuMipmappedArrayGetLevel(mipmapped, 0))) == int(handles[0])
        assert code(api.cuMipmappedArrayGetLevel(mipmapped, count)) == 1
        ok(api.cuArrayDestroy(handles[-1]))  # which leaves the level as it is
        ok(api.cuArray3DGetDescriptor(handles[-1]))
        ok(api.cuMipmappedArrayDestroy(mipmapped))


def test_mipmapped_arrays_are_checked(api: OpenApi, context: CUcontext) -> None:
    assert code(api.cuMipmappedArrayCreate(described(32769), 2)) == 1
    assert code(api.cuMipmappedArrayCreate(described(32769, 1), 2)) == 1
    assert code(api.cuMipmappedArrayCreate(described(16, channels=3), 2)) == 1
    assert code(api.cuMipmappedArrayDestroy(CUmipmappedArray(0))) == 400
    assert code(api.cuMipmappedArrayGetLevel(CUmipmappedArray(0), 0)) == 400


def test_a_capture_that_forbids_it_makes_and_destroys_no_arrays(
    api: OpenApi, context: CUcontext, stream: CUstream
) -> None:
    array = ok(api.cuArray3DCreate(described(16)))
    for make in (
        lambda: api.cuArray3DCreate(described(16)),
        lambda: api.cuMipmappedArrayCreate(described(16), 2),
        lambda: api.cuArrayDestroy(array),
    ):
        ok(api.cuStreamBeginCapture(stream, GLOBAL))
        assert code(make()) == 900
        assert code(api.cuStreamEndCapture(stream)) == 901
    ok(api.cuStreamBeginCapture(stream, RELAXED))
    ok(api.cuArrayDestroy(ok(api.cuArray3DCreate(described(16)))))
    ok(api.cuArrayDestroy(array))
    ok(api.cuGraphDestroy(ok(api.cuStreamEndCapture(stream))))


def test_the_emulator_reports_what_it_lacks(emulator: Emulator) -> None:
    ok(emulator.cuCtxCreate(None, 0, ok(emulator.cuDeviceGet(0))))
    compressed = described(16, 16, channels=4, format_=CUarray_format.CU_AD_FORMAT_BC1_UNORM)
    for given in (compressed, described(16, 8, 0, 0x40)):
        result, _ = emulator.cuArray3DCreate(given)
        assert int(result) == 801
        assert b"the emulator has no arrays of" in (ok(emulator.cuGetErrorString(result)) or b"")
