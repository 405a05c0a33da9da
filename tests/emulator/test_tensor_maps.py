"""Tensor maps by the emulated driver's functions, as Python and as C call them."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from cuda.bindings import driver

import cudadrv
from cudadrv.driver._api import CUdeviceptr, CUresult
from cudadrv.emulator import EmulatedDevice, Emulator, session
from cudadrv.emulator.calls.tensor_map import FUNCTIONS, TensorMapFunctions
from cudadrv.errors import NotSupportedError, TensorMapError
from cudadrv.tensor_map import TensorMap, TensorSwizzle
from ptx.emulate.model.tensor_map import NBYTES, TensorLayout
from tests.rows import all_rows

from .calls import code, ok

INVALID, UNSUPPORTED = CUresult.CUDA_ERROR_INVALID_VALUE, CUresult.CUDA_ERROR_NOT_SUPPORTED
TILED = {
    "type": 7, "rank": 2, "address": 1 << 20, "extents": [32, 8], "strides": [128],
    "box": [16, 4], "steps": [1, 1], "interleave": 0, "swizzle": 0, "promotion": 0, "fill": 0,
}  # fmt: skip
IM2COL = {
    "type": 7, "rank": 4, "address": 1 << 20, "extents": [4, 6, 5, 2], "strides": [16, 96, 480],
    "lower": [-1, -1], "upper": [-1, -1], "channels": 4, "pixels": 40, "steps": [1, 1, 1, 1],
    "interleave": 0, "swizzle": 0, "promotion": 0, "fill": 0,
}  # fmt: skip

WIDE = {
    "type": 7, "rank": 4, "address": 1 << 20, "extents": [4, 6, 5, 2], "strides": [16, 96, 480],
    "lower": -1, "upper": -1, "channels": 4, "pixels": 40, "steps": [1, 1, 1, 1],
    "interleave": 0, "mode": 0, "swizzle": 3, "promotion": 0, "fill": 0,
}  # fmt: skip


def with_context(emulator: Emulator) -> Emulator:
    ok(emulator.cuCtxSetCurrent(ok(emulator.cuDevicePrimaryCtxRetain(ok(emulator.cuDeviceGet(0))))))
    return emulator


def as_bindings(values: dict[str, Any]) -> list[Any]:
    """The arguments as cuda.bindings takes them."""
    kinds: dict[str, type[driver.cuuint64_t | driver.cuuint32_t]] = {
        "extents": driver.cuuint64_t,
        "strides": driver.cuuint64_t,
    }
    kinds |= {"box": driver.cuuint32_t, "steps": driver.cuuint32_t}
    return [
        [kinds[name](each) for each in value] if name in kinds else value
        for name, value in values.items()
    ]


def test_a_map_reports_what_it_was_made_of(emulator: Emulator) -> None:
    found = ok(with_context(emulator).cuTensorMapEncodeTiled(*as_bindings(TILED)))
    layout = TensorLayout.decode(ctypes.string_at(found.getPtr(), NBYTES))
    assert (layout.address, layout.type.name, layout.extents) == (1 << 20, "f32", (32, 8))
    assert (layout.strides, layout.box, layout.steps) == ((128,), (16, 4), (1, 1))
    ok(emulator.cuTensorMapReplaceAddress(found, 1 << 21))
    assert TensorLayout.decode(ctypes.string_at(found.getPtr(), NBYTES)).address == 1 << 21
    assert code(emulator.cuTensorMapReplaceAddress(found, (1 << 21) + 8)) == INVALID
    assert code(emulator.cuTensorMapReplaceAddress(driver.CUtensorMap(), 1 << 21)) == INVALID
    assert code(emulator.cuTensorMapReplaceAddress(None, 1 << 21)) == INVALID


@all_rows
@pytest.mark.parametrize(("change", "result"), [
    ({"type": 16}, INVALID), ({"type": 10}, None), ({"type": 13}, UNSUPPORTED),
    ({"type": 11}, None), ({"type": 11, "fill": 1}, None), ({"type": 12}, None),
    ({"rank": 0}, INVALID), ({"rank": 6}, INVALID), ({"address": 8}, INVALID),
    ({"extents": [0, 8]}, INVALID), ({"extents": [1 << 31, 8]}, None), ({"extents": [32]}, INVALID),
    ({"extents": [(1 << 31) + 1, 8]}, INVALID), ({"strides": [100]}, INVALID),
    ({"strides": [1 << 40]}, INVALID), ({"box": [0, 4]}, INVALID), ({"box": [16, 257]}, INVALID),
    ({"box": [3, 4]}, INVALID), ({"steps": [1, 9]}, INVALID), ({"steps": [1, 0]}, INVALID),
    ({"swizzle": 1}, INVALID), ({"swizzle": 2}, None), ({"swizzle": 7}, INVALID),
    ({"swizzle": 4}, UNSUPPORTED), ({"swizzle": 5}, UNSUPPORTED), ({"interleave": 1}, INVALID),
    ({"interleave": 3}, INVALID),
    ({"promotion": 4}, INVALID), ({"fill": 1}, None), ({"fill": 1, "type": 2}, INVALID),
])  # fmt: skip
def test_what_the_manual_does_not_allow_is_rejected(
    emulator: Emulator, change: dict[str, Any], result: CUresult | None
) -> None:
    found = with_context(emulator).cuTensorMapEncodeTiled(*as_bindings(TILED | change))
    assert code(found) == (result or CUresult.CUDA_SUCCESS)


@pytest.mark.parametrize(("change", "result"), [
    ({}, None), ({"rank": 2}, INVALID), ({"lower": [-129, 0]}, INVALID),
    ({"upper": [-7, -1]}, INVALID), ({"channels": 257}, INVALID), ({"channels": 3}, INVALID),
    ({"pixels": 1025}, INVALID), ({"swizzle": 3}, None),
])  # fmt: skip
def test_images_have_rules_of_their_own(
    emulator: Emulator, change: dict[str, Any], result: CUresult | None
) -> None:
    found = with_context(emulator).cuTensorMapEncodeIm2col(*as_bindings(IM2COL | change))
    assert code(found) == (result or CUresult.CUDA_SUCCESS)


SLICES = {
    "type": 1, "rank": 3, "address": 1 << 20, "extents": [8, 40, 5], "strides": [464, 18560],
    "box": [8, 3, 2], "steps": [1, 1, 1], "interleave": 1, "swizzle": 0, "promotion": 0, "fill": 0,
}  # fmt: skip
SLICED_IMAGES = IM2COL | {
    "type": 1, "extents": [8, 6, 20, 3], "strides": [464, 2784, 55680], "lower": [0, 0],
    "upper": [0, 0], "channels": 8, "pixels": 9, "interleave": 1,
}  # fmt: skip


# Those that are INVALID with a box or channels are measured: the manual has no such rule.
@pytest.mark.parametrize(("change", "result"), [
    ({}, None), ({"box": [16, 40, 2]}, None), ({"box": [12, 8, 1]}, INVALID),
    ({"box": [9, 8, 1]}, INVALID), ({"rank": 2}, INVALID), ({"interleave": 2}, INVALID),
    ({"interleave": 2, "swizzle": 1}, INVALID),  # the stride of 464 bytes
    ({"interleave": 2, "swizzle": 1, "strides": [928, 37120]}, None),
    ({"interleave": 2, "swizzle": 1, "strides": [928, 37120], "address": 16}, INVALID),
    ({"swizzle": 3, "box": [256, 1, 1]}, None), ({"steps": [3, 2, 2]}, None),
    ({"type": 11}, None), ({"type": 6, "fill": 1}, None), ({"type": 1, "fill": 1}, INVALID),
])  # fmt: skip
def test_interleaved_tensors_have_rules_of_their_own(
    emulator: Emulator, change: dict[str, Any], result: CUresult | None
) -> None:
    found = with_context(emulator).cuTensorMapEncodeTiled(*as_bindings(SLICES | change))
    assert code(found) == (result or CUresult.CUDA_SUCCESS)


@pytest.mark.parametrize(
    ("change", "result"),
    [
        ({}, None),
        ({"channels": 3}, INVALID),
        ({"channels": 16}, UNSUPPORTED),
        ({"swizzle": 1, "interleave": 2, "strides": [928, 5568, 111360], "channels": 16}, None),
        ({"swizzle": 1, "interleave": 2, "strides": [928, 5568, 111360]}, UNSUPPORTED),
    ],
)
def test_interleaved_images_are_copied_one_slice_at_once(
    emulator: Emulator, change: dict[str, Any], result: CUresult | None
) -> None:
    found = with_context(emulator).cuTensorMapEncodeIm2col(*as_bindings(SLICED_IMAGES | change))
    assert code(found) == (result or CUresult.CUDA_SUCCESS)


def test_interleaved_tensors_go_with_atoms_of_16_bytes() -> None:
    new = Emulator([EmulatedDevice(compute_capability=(10, 0))])
    ok(new.cuInit(0))
    for given, atoms in ((SLICES, UNSUPPORTED), (TILED, CUresult.CUDA_SUCCESS)):
        found = with_context(new).cuTensorMapEncodeTiled(*as_bindings(given | {"swizzle": 4}))
        assert code(found) == atoms


def test_older_devices_are_rejected(emulator: Emulator) -> None:
    old = Emulator([EmulatedDevice(compute_capability=(8, 0))])
    ok(old.cuInit(0))
    assert code(with_context(old).cuTensorMapEncodeTiled(*as_bindings(TILED))) == UNSUPPORTED
    wide = with_context(emulator).cuTensorMapEncodeIm2colWide(*as_bindings(WIDE))  # 9.0
    assert code(wide) == INVALID  # as an H200's driver
    assert code(with_context(old).cuTensorMapEncodeIm2colWide(*as_bindings(WIDE))) == UNSUPPORTED


@pytest.mark.parametrize(("change", "result"), [
    ({}, UNSUPPORTED), ({"mode": 1}, UNSUPPORTED), ({"mode": 2}, INVALID),
    ({"interleave": 1}, INVALID), ({"swizzle": 0}, INVALID), ({"lower": -32769}, INVALID),
    ({"lower": -200}, UNSUPPORTED), ({"upper": -7}, INVALID), ({"channels": 36}, INVALID),
    ({"pixels": 1025}, INVALID),
])  # fmt: skip
def test_rows_of_images_are_looked_at_and_rejected(
    change: dict[str, Any], result: CUresult
) -> None:
    new = Emulator([EmulatedDevice(compute_capability=(10, 0))])
    ok(new.cuInit(0))
    found = with_context(new).cuTensorMapEncodeIm2colWide(*as_bindings(WIDE | change))
    assert code(found) == result


def test_a_map_of_rows_reaches_the_driver_number_by_number() -> None:
    with session([EmulatedDevice(compute_capability=(10, 0))]):
        stream = cudadrv.cuda_context_for(0).default_stream
        array = stream.zeros((2, 5, 6, 16), "f4")
        make = TensorMap.im2col_wide
        with pytest.raises(NotSupportedError, match="im2col::w\\): from -3 to 2, 9 pixels of 8 "):
            make(array, -3, 2, 8, 9)
        with pytest.raises(NotSupportedError, match="w::128\\): from -3 to 2, 128 pixels of 8 "):
            make(array, -3, 2, 8, None, swizzle=TensorSwizzle.BYTES_64)
        for words, given, swizzle in (
            ("NONE does not go", (0, 0, 8, 9), TensorSwizzle.NONE),
            ("each is -32768", (-40000, 0, 8, 9), TensorSwizzle.BYTES_64),
            ("leave no position in an axis of 6", (3, -3, 8, 9), TensorSwizzle.BYTES_64),
            ("each is 1 to 1024", (0, 0, 8, 1025), TensorSwizzle.BYTES_64),
            ("is longer than the 64", (0, 0, 20, 9), TensorSwizzle.BYTES_64),
        ):
            with pytest.raises(TensorMapError, match=words):
                make(array, *given, swizzle=swizzle)


def test_c_finds_the_functions(emulator: Emulator) -> None:
    with_context(emulator)
    _, address, _ = emulator.cuGetProcAddress(b"cuTensorMapEncodeTiled", 12000, 0)
    size, word = ctypes.c_size_t, ctypes.c_uint
    form = ctypes.CFUNCTYPE(ctypes.c_int, size, word, word, *(size,) * 5, *(word,) * 4)
    memory = ctypes.create_string_buffer(256)
    start = ctypes.addressof(memory) + -ctypes.addressof(memory) % 64
    extents, strides = (ctypes.c_uint64 * 2)(32, 8), (ctypes.c_uint64 * 1)(128)
    box, steps = (word * 2)(16, 4), (word * 2)(1, 1)
    arrays = [ctypes.addressof(each) for each in (extents, strides, box, steps)]
    assert form(address)(start, 7, 2, 1 << 20, *arrays, 0, 0, 0, 0) == 0
    assert TensorLayout.decode(ctypes.string_at(start, NBYTES)).box == (16, 4)
    assert form(address)(0, 7, 2, 1 << 20, *arrays, 0, 0, 0, 0) == INVALID
    assert form(address)(start, 7, 2, 1 << 20, 0, *arrays[1:], 0, 0, 0, 0) == INVALID
    not_found = CUresult.CUDA_ERROR_NOT_FOUND
    assert code(emulator.cuGetProcAddress(b"cuNothing", 12000, 0)) == not_found
    assert isinstance(ok(emulator.cuMemAlloc(16)), CUdeviceptr)


def test_an_interrupt_in_a_function_of_c_ends_the_call_with_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setitem(FUNCTIONS, "cuTensorMapReplaceAddress", interrupted)
    with session() as machine:
        address = TensorMapFunctions(machine).address("cuTensorMapReplaceAddress")
        function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(address)
        assert function(0, 0) == CUresult.CUDA_ERROR_UNKNOWN


def test_an_unknown_result_of_a_function_of_c_raises_an_error_of_the_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # An interrupt at the beginning of a function of Python leaves any number in C.
    monkeypatch.setitem(FUNCTIONS, "cuTensorMapEncodeTiled", lambda *_: 1380097621)
    with session():
        tiles = cudadrv.cuda_context_for(0).default_stream.zeros((16, 16), "f4")
        with pytest.raises(cudadrv.CudaError, match="CUDA_ERROR_UNKNOWN"):
            TensorMap(tiles, (4, 8))
