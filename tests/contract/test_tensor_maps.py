"""Tensor maps: what kernels copy by them, bit for bit, and which there cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import cudadrv
import ptx
from cudadrv import LaunchConfig
from cudadrv.errors import (
    ArgumentError,
    ArgumentTypeError,
    ClosedError,
    DTypeError,
    TensorMapError,
    WrongDeviceError,
)
from cudadrv.tensor_map import TensorElement, TensorFill, TensorInterleave, TensorMap, TensorSwizzle

from .conftest import compile_module, ptx_for_driver
from .tensor_atoms import TABLES, require_atoms_in_place
from .tensor_kernels import BARRIER, BOXES, PRODUCT, dumped, needs_tensor_maps

HALF, SINGLE = np.float16, np.float32


@pytest.fixture(scope="module")
def kernels(context: cudadrv.Context) -> cudadrv.Module:
    needs_tensor_maps(context)
    return compile_module(context, BOXES)


def noise(*shape: int, dtype: type[np.generic] = HALF) -> NDArray[np.generic]:
    return np.random.default_rng(7).integers(1, 100, shape).astype(dtype)


def box_at(
    x: NDArray[np.generic], y: int, start: int, rows: int, columns: int, fill: object = 0
) -> NDArray[np.generic]:
    """A box of a matrix, with what is outside filled."""
    padded = np.pad(x, 64, constant_values=np.asarray(fill, x.dtype).item())
    return np.ascontiguousarray(padded[64 + y :, 64 + start :][:rows, :columns])


def test_a_product_of_tiles_in_a_pipeline_has_the_bits_of_exact_arithmetic(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    if context.device.compute_capability != (9, 0):
        pytest.skip("needs a device of compute capability 9.0 and no other")
    rng = np.random.default_rng(5)
    # Neither side is a whole number of tiles; sums of such products are exact in float32.
    a, b = rng.integers(-9, 10, (120, 280)).astype(HALF), rng.integers(-9, 10, (88, 280))
    left, right = stream.to_device(a), stream.to_device(b.astype(HALF))
    out = stream.zeros((120, 88), SINGLE)
    swizzle = TensorSwizzle.BYTES_128
    maps = (
        TensorMap(left, (64, 64), swizzle=swizzle),
        TensorMap(right, (64, 64), swizzle=swizzle),
        TensorMap(out, (64, 64)),
    )
    with context.load_module(ptx.Image.from_ptx(ptx_for_driver(context, PRODUCT, "a"))) as module:
        kernel = module.kernel("product")
        for _ in range(3):  # code is generated for the kinds that come again
            kernel.launch(stream, LaunchConfig((2, 2), 160), *maps, 5)
        found = stream.to_host(out)
    assert np.array_equal(found, a.astype(SINGLE) @ b.T.astype(SINGLE))


@pytest.mark.slow
@pytest.mark.parametrize(("swizzle", "columns"), [
    ("NONE", 40), ("BYTES_32", 16), ("BYTES_64", 32), ("BYTES_128", 64),
    ("BYTES_32", 8), ("BYTES_64", 8), ("BYTES_64", 24), ("BYTES_128", 32), ("BYTES_128", 56),
])  # fmt: skip
def test_pieces_of_rows_change_places_as_the_swizzle_specifies(
    stream: cudadrv.Stream, kernels: cudadrv.Module, swizzle: str, columns: int
) -> None:
    x = noise(20, 80)
    tensor_map = TensorMap(stream.to_device(x), (16, columns), swizzle=TensorSwizzle[swizzle])
    box = box_at(x, 2, 8, 16, columns)
    # Rows are as long as the swizzle in shared memory; what they do not fill is not counted.
    width = max(tensor_map.swizzle.nbytes, 2 * columns)
    assert (tensor_map.box_nbytes, tensor_map.shared_nbytes) == (box.nbytes, 16 * width)
    total = -(-16 * width // 1024) * 1024
    pieces = np.zeros((total // 128, 8, 16), np.uint8)
    lines = pieces.reshape(-1)[: 16 * width].reshape(16, width)
    lines[:, : 2 * columns] = box.view(np.uint8)
    # CUDA Programming Guide, "Shared Memory Bank Swizzling": within the span, the number of a piece
    # of 16 bytes is combined by XOR with that of the row of 128 bytes.
    rows, places = np.arange(total // 128)[:, None], np.arange(8)
    expected = np.zeros_like(pieces)
    expected[rows, places ^ rows % max(tensor_map.swizzle.nbytes // 16, 1)] = pieces
    found = dumped(stream, kernels, tensor_map, 8, 2, total)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", TABLES)
def test_larger_atoms_than_16_bytes_change_places(context: cudadrv.Context, name: str) -> None:
    if context.device.compute_capability < (10, 0):
        pytest.skip("needs swizzles of larger atoms (compute capability 10.0)")
    require_atoms_in_place(context, name)


# The innermost coordinate is a multiple of 16 bytes, outside too; rows begin anywhere.
@pytest.mark.parametrize(
    ("x", "y"), [(-8, 3), (-24, 0), (-32, 1), (56, -2), (64, 15), (8, -8), (8, 21), (200, 0)]
)
@pytest.mark.parametrize("columns", [72, 69])
def test_what_is_outside_is_zero(
    stream: cudadrv.Stream, kernels: cudadrv.Module, x: int, y: int, columns: int
) -> None:
    data = noise(20, 72)
    # Of 69 columns the last ones are no whole 16 bytes; what lies behind them is not copied.
    tensor_map = TensorMap(stream.to_device(data)[:, :columns], (8, 32))
    expected = np.zeros((8, 32), HALF)
    for row in range(8):
        for column in range(32):
            if 0 <= y + row < 20 and 0 <= x + column < columns:
                expected[row, column] = data[y + row, x + column]
    assert dumped(stream, kernels, tensor_map, x, y, 512).tobytes() == expected.tobytes()


def test_what_is_outside_is_nan_where_it_is_requested(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    data = noise(20, 72, dtype=SINGLE)
    tensor_map = TensorMap(stream.to_device(data), (8, 32), fill=TensorFill.NAN)
    found = dumped(stream, kernels, tensor_map, 56, 16, 1024).view(SINGLE).reshape(8, 32)
    assert np.array_equal(found[:4, :16], data[16:, 56:])
    outside = found.view(np.uint32).copy()
    outside[:4, :16] = 0x7FF77FF7
    assert (outside == 0x7FF77FF7).all()


def test_what_short_rows_leave_of_the_swizzle_is_not_filled(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    array = stream.to_device(np.ones((8, 32), HALF))
    swizzle = TensorSwizzle.BYTES_128
    tensor_map = TensorMap(array, (4, 32), swizzle=swizzle, fill=TensorFill.NAN)
    found = dumped(stream, kernels, tensor_map, 16, 6, 1024).view(np.uint16).reshape(8, 8, 8)
    one, nan = 0x3C00, 0x7FF7
    expected = np.zeros((8, 8), np.uint16)
    expected[0, :4], expected[1, :4] = (one, one, nan, nan), (one, one, nan, nan)
    expected[2, :4], expected[3, :4] = nan, nan
    for row in range(4):
        expected[row] = expected[row][np.arange(8) ^ row]
    assert np.array_equal(found, np.repeat(expected, 8).reshape(8, 8, 8))


def test_rows_that_are_padded_and_element_strides_are_followed(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    data = noise(20, 72)
    array = stream.to_device(data)
    tensor_map = TensorMap(array[2:18:2, 8:64], (7, 16), element_strides=(3, 1))
    assert tensor_map.box_nbytes == 3 * 32
    found = dumped(stream, kernels, tensor_map, 8, 1, 128)
    assert found[:96].tobytes() == data[2:18:2, 8:64][1:8:3, 8:24].tobytes()


def test_boxes_are_written_and_added_but_not_beyond_the_edge(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    data = noise(20, 12).astype(SINGLE)
    array = stream.to_device(data)
    tensor_map = TensorMap(array, (8, 16))
    config = LaunchConfig(3, 32, shared_bytes=512 + BARRIER)
    kernels.kernel("increase").launch(stream, config, tensor_map, 512)
    expected = data + 1
    assert np.array_equal(stream.to_host(array), expected)
    put = LaunchConfig(1, 32, shared_bytes=512 + BARRIER)
    kernels.kernel("put").launch(stream, put, tensor_map, 4, 15, 512, 512, True)
    expected[15:, 4:] += expected[:5, :8]
    assert np.array_equal(stream.to_host(array), expected)
    kernels.kernel("put").launch(stream, put, tensor_map, 8, 16, 512, 512, False)
    expected[16:, 8:] = expected[:4, :4]
    assert np.array_equal(stream.to_host(array), expected)


@pytest.mark.parametrize("sums", [False, True])
def test_boxes_with_shorter_rows_than_the_swizzle_are_written(
    stream: cudadrv.Stream, kernels: cudadrv.Module, sums: bool
) -> None:
    data = noise(20, 32).astype(SINGLE)
    array = stream.to_device(data)
    tensor_map = TensorMap(array, (8, 16), swizzle=TensorSwizzle.BYTES_128)
    assert (tensor_map.box_nbytes, tensor_map.shared_nbytes) == (512, 1024)
    config = LaunchConfig(1, 32, shared_bytes=1024 + BARRIER)
    kernels.kernel("put").launch(stream, config, tensor_map, 8, 9, 512, 1024, sums)
    expected = data.copy()
    expected[9:17, 8:24] = data[:8, :16] + (data[9:17, 8:24] if sums else 0)
    assert np.array_equal(stream.to_host(array), expected)


@pytest.mark.parametrize("swizzle", ["NONE", "BYTES_32"])
def test_pixels_under_a_filter_are_brought_row_by_row(
    stream: cudadrv.Stream, kernels: cudadrv.Module, swizzle: str
) -> None:
    # A filter of 3 by 3 over images with a border of one pixel.
    images = noise(2, 5, 6, 4, dtype=SINGLE)
    tensor_map = TensorMap.im2col(
        stream.to_device(images), (-1, -1), (-1, -1), 4, 40, swizzle=TensorSwizzle[swizzle]
    )
    assert (tensor_map.box, tensor_map.box_nbytes) == ((40, 4), 640)
    total = tensor_map.shared_nbytes
    out = stream.empty(total // 4, SINGLE)
    config = LaunchConfig(1, 32, shared_bytes=total + BARRIER)
    kernels.kernel("pixels").launch(stream, config, tensor_map, out, -1, -1, 2, 1, 640, total)
    found = stream.to_host(out).reshape(-1, 4)
    if swizzle == "BYTES_32":  # a pixel takes two pieces, which every other 128 bytes exchange
        found = found.reshape(-1, 2, 4)[np.arange(40), np.arange(40) // 4 % 2]
    bordered = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    # The pixel of the filter at (1, 2), for each of its 5 by 6 positions.
    assert np.array_equal(found, bordered[:, 1 : 1 + 5, 2 : 2 + 6].reshape(-1, 4)[:40])


def test_a_map_is_an_argument_of_every_launch_and_moves_to_another_array(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    first, second = (stream.zeros((8, 16), SINGLE) for _ in range(2))
    kernel, config = kernels.kernel("increase"), LaunchConfig(1, 32, shared_bytes=512 + BARRIER)
    launcher = kernel.bind(stream, config)
    tensor_map = TensorMap(first, (8, 16))
    moved = tensor_map.replace(second)
    prepared = launcher.prepare(moved, 512)
    for _ in range(4):
        kernel.launch(stream, config, tensor_map, 512)
        launcher(moved, 512)
        prepared()
    assert stream.to_host(first)[0, 0] == 4
    assert (stream.to_host(second) == 8).all()
    assert moved.array is second
    assert bytes(moved) != bytes(tensor_map)
    with pytest.raises(TensorMapError, match="cannot be over"):
        moved.replace(stream.zeros((8, 32), SINGLE))


def test_streams_follow_each_other_where_they_use_one_array_by_a_map(
    context: cudadrv.Context, stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    array = stream.zeros((8, 16), SINGLE)
    kernel, config = kernels.kernel("increase"), LaunchConfig(1, 32, shared_bytes=512 + BARRIER)
    tensor_map = TensorMap(array, (8, 16))
    with context.new_stream() as other:
        for number in range(20):
            kernel.launch(other if number % 2 else stream, config, tensor_map, 512)
        assert (stream.to_host(array) == 20).all()


def test_a_map_keeps_its_array_and_a_launch_keeps_the_memory(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    kernel, config = kernels.kernel("dump"), LaunchConfig(1, 64, shared_bytes=512 + BARRIER)
    data = noise(8, 32)
    tensor_map = TensorMap(stream.to_device(data), (8, 32))
    out = stream.empty(512, np.uint8)
    kernel.launch(stream, config, tensor_map, out, 0, 0, 512, 512)
    array = tensor_map.array
    del tensor_map
    array.close()
    stream.zeros((8, 32), HALF)  # may get the same memory
    assert stream.to_host(out).tobytes() == data.tobytes()


def test_a_graph_uses_the_array_of_a_map_at_each_replay(
    context: cudadrv.Context, stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    array = stream.zeros((8, 16), SINGLE)
    kernel, config = kernels.kernel("increase"), LaunchConfig(1, 32, shared_bytes=512 + BARRIER)
    with stream.capture() as graph:
        kernel.launch(stream, config, TensorMap(array, (8, 16)), 512)
    with graph.instantiate() as executable, context.new_stream() as other:
        for _ in range(3):
            executable.launch(other)
        assert (stream.to_host(array) == 3).all()


def test_the_map_of_closed_memory_is_rejected(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    kernel, config = kernels.kernel("increase"), LaunchConfig(1, 32, shared_bytes=512 + BARRIER)
    array = stream.zeros((8, 16), SINGLE)
    tensor_map = TensorMap(array, (8, 16))
    for _ in range(3):
        kernel.launch(stream, config, tensor_map, 512)
    array.close()
    with pytest.raises(ClosedError, match="closed"):
        kernel.launch(stream, config, tensor_map, 512)
    assert "closed memory" in repr(tensor_map)


def test_a_map_of_another_device_or_in_another_place_is_rejected(
    stream: cudadrv.Stream, kernels: cudadrv.Module, second_context: cudadrv.Context
) -> None:
    config = LaunchConfig(1, 32, shared_bytes=512 + BARRIER)
    there = second_context.default_stream.zeros((8, 16), SINGLE)
    with pytest.raises(WrongDeviceError, match="argument 0"):
        kernels.kernel("increase").launch(stream, config, TensorMap(there, (8, 16)), 512)
    here = TensorMap(stream.zeros((8, 16), SINGLE), (8, 16))
    with pytest.raises(ArgumentError, match="argument 1"):
        kernels.kernel("dump").launch(stream, config, here, here, 0, 0, 512, 512)
    with pytest.raises(ArgumentTypeError, match="cannot be copied or pickled"):
        here.__reduce_ex__(2)


@pytest.mark.parametrize(("shape", "dtype", "box", "options", "words"), [
    ((8, 16), "f4", (8,), {}, "give 2 numbers, not 1"),
    ((8, 16), "f4", (8, 0), {}, "each is 1 to 256"),
    ((8, 512), "f4", (8, 257), {}, "each is 1 to 256"),
    ((8, 16), "f4", (8, 6), {}, "24 bytes is not a multiple of 16"),
    ((8, 6), "f4", (8, 4), {}, "must be multiples of 16 bytes"),
    ((2, 2, 2, 2, 2, 8), "f4", (1,) * 5 + (8,), {}, "1 to 5 axes, not 6"),
    ((), "f4", (), {}, "1 to 5 axes, not 0"),
    ((0, 16), "f4", (8, 16), {}, "1 to 2\\*\\*31 elements"),
    ((8, 16), "f4", (8, 16), {"swizzle": TensorSwizzle.BYTES_32}, "64 bytes is longer than the 32"),
    ((8, 16), "f4", (8, 16), {"swizzle": TensorSwizzle.BYTES_128_ATOM_32}, "compute capability"),
    ((8, 16), "f4", (8, 16), {"element_strides": (9, 1)}, "each is 1 to 8"),
    ((8, 16), "f4", (8, 16), {"element_strides": (1, 2)}, "ignores that of the last axis"),
    ((8, 16), "i4", (8, 16), {"fill": TensorFill.NAN}, "not for INT32"),
    ((8, 16), "f4", (8, 16), {"element": TensorElement.FLOAT16}, "FLOAT16 has 2 bytes"),
    ((8, 16), "f4", (8, 16), {"interleave": TensorInterleave.BYTES_16}, "4 to 6 axes, not 2"),
    ((2, 8, 16), "f4", (1, 8, 16), {"interleave": TensorInterleave.BYTES_32}, "goes with"),
])  # fmt: skip
def test_what_cuda_does_not_take_is_reported(
    context: cudadrv.Context,
    stream: cudadrv.Stream,
    shape: tuple[int, ...],
    dtype: str,
    box: tuple[int, ...],
    options: dict[str, object],
    words: str,
) -> None:
    needs_tensor_maps(context)
    if "ATOM" in str(options.get("swizzle")) and context.device.compute_capability >= (10, 0):
        pytest.skip("needs a device older than compute capability 10.0")
    array = stream.empty(shape, dtype)
    with pytest.raises(TensorMapError, match=words):
        TensorMap(array, box, **options)  # type: ignore[arg-type]  # of several types


def test_rows_of_images_need_a_newer_device(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    needs_tensor_maps(context)
    if context.device.compute_capability >= (10, 0):
        pytest.skip("needs a device older than compute capability 10.0")
    with pytest.raises(TensorMapError, match="im2col_wide needs compute capability 10.0"):
        TensorMap.im2col_wide(stream.zeros((2, 6, 16), HALF), 0, 0, 16, 8)


def test_arrays_that_lie_otherwise_are_rejected(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    needs_tensor_maps(context)
    array = stream.zeros((16, 16), SINGLE)
    with pytest.raises(TensorMapError, match="are not contiguous"):
        TensorMap(array.T, (8, 16))
    with pytest.raises(TensorMapError, match="not a multiple of 16 bytes"):
        TensorMap(array[:, 1:], (8, 8))
    with pytest.raises(DTypeError, match="complex"):
        TensorMap(stream.zeros((16, 16), np.complex64), (8, 16))
    with pytest.raises(ArgumentTypeError, match="array"):
        TensorMap(np.zeros((16, 16), SINGLE), (8, 16))  # type: ignore[arg-type]  # no device array
    images = stream.zeros((2, 5, 6, 4), SINGLE)
    with pytest.raises(TensorMapError, match="no position in an axis of 5"):
        TensorMap.im2col(images, (3, 0), (-3, 0), 4, 8)
    with pytest.raises(TensorMapError, match="each is -128 to 127"):
        TensorMap.im2col(images, (-200, 0), (0, 0), 4, 8)
    with pytest.raises(TensorMapError, match="each is 1 to 1024"):
        TensorMap.im2col(images, (0, 0), (0, 0), 4, 2000)
    with pytest.raises(TensorMapError, match="3 to 5 axes, not 2"):
        TensorMap.im2col(array, (0,), (0,), 4, 8)
