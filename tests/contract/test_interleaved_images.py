"""Interleaved arrays as an H200 copies them: pixels under a filter, fill, rounding, sums."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

import cudadrv
from cudadrv.tensor_map import TensorElement, TensorFill, TensorInterleave, TensorMap, TensorSwizzle

from .conftest import compile_module
from .slice_kernels import PIECE, SOURCE, Slices, brought, put, swizzled
from .tensor_kernels import needs_tensor_maps

Point = tuple[int, ...]
NONE, BY_32, BY_128 = TensorSwizzle.NONE, TensorSwizzle.BYTES_32, TensorSwizzle.BYTES_128
# Shapes (N, C/8, D, H, W), and (N, C/16, ...) for slices of 32 bytes, by the number of coordinates.
SHAPES = {3: (5, 40, 8), 4: (3, 20, 6, 8), 5: (2, 10, 3, 4, 8)}


@pytest.fixture(scope="module")
def kernels(context: cudadrv.Context) -> cudadrv.Module:
    needs_tensor_maps(context)
    return compile_module(context, SOURCE)


def walked(
    shape: Point, lower: Point, upper: Point, steps: Point, offsets: Point, start: Point, count: int
) -> list[Point | None]:
    """The indices of the slices under a filter; None outside of the array.

    The innermost dimension goes on first; one that is over begins at its lower corner again.
    """
    *pixel, number, image = start
    found: list[Point | None] = []
    for _ in range(count):
        at = tuple(p + o for p, o in zip(pixel, offsets, strict=True))
        index = (image, number, *at[::-1])
        found.append(index if all(0 <= i < n for i, n in zip(index, shape, strict=True)) else None)
        for d, extent in enumerate(shape[:1:-1]):
            pixel[d] += steps[d]
            if pixel[d] <= extent - 1 + upper[d]:
                break
            pixel[d] = lower[d]
        else:
            image += 1
    return found


# The bytes of a slice, swizzle, lower and upper corner, steps and offsets {w, h, d}, the start
# {w, ..., slice, image}, pixels.
IMAGES = {
    "to the next image": (16, NONE, (0, 0), (0, 0), (1, 1), (0, 0), (2, 4, 1, 0), 20),
    "behind the last image": (16, NONE, (0, 0), (0, 0), (1, 1), (0, 0), (2, 4, 1, 2), 20),
    "offsets": (16, NONE, (-1, -1), (-1, -1), (1, 1), (1, 2), (-1, -1, 3, 0), 40),
    "border": (16, NONE, (-1, -1), (-1, -1), (1, 1), (0, 0), (-1, -1, 3, 0), 40),
    "corners that differ": (16, NONE, (1, 0), (2, -2), (1, 1), (0, 1), (2, 1, 3, 0), 40),
    "steps along W": (16, NONE, (0, 0), (0, 0), (2, 1), (0, 0), (1, 0, 0, 0), 20),
    "steps along H": (16, NONE, (0, 0), (0, 0), (1, 3), (0, 0), (0, 1, 0, 0), 20),
    "behind the last slice": (16, NONE, (0, 0), (0, 0), (1, 1), (0, 0), (0, 0, 20, 0), 8),
    "3d": (16, NONE, (-1,), (-1,), (1,), (1,), (0, 2, 0), 20),
    "5d": (16, NONE, (-1, 0, -1), (-1, 0, -1), (1,) * 3, (1, 0, 2), (-1, 1, 0, 2, 0), 40),
    "32 bytes": (32, BY_32, (0, 0), (0, 0), (1, 1), (0, 0), (2, 4, 1, 0), 20),
    "32 bytes, border": (32, BY_32, (-1, -1), (-1, -1), (1, 1), (1, 1), (-1, -1, 1, 0), 20),
    "swizzle": (16, BY_128, (0, 0), (0, 0), (1, 1), (0, 0), (2, 3, 1, 0), 40),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nbytes", "swizzle", "lower", "upper", "steps", "offsets", "start", "pixels"),
    IMAGES.values(),
    ids=IMAGES,
)
def test_pixels_under_a_filter_are_those_of_other_images_in_one_slice(
    stream: cudadrv.Stream,
    kernels: cudadrv.Module,
    nbytes: int,
    swizzle: TensorSwizzle,
    lower: Point,
    upper: Point,
    steps: Point,
    offsets: Point,
    start: Point,
    pixels: int,
) -> None:
    shape = SHAPES[len(start)]
    slices = Slices(nbytes, "u2", shape)
    tensor_map = TensorMap.im2col(
        slices.array(stream),
        lower[::-1],
        upper[::-1],
        nbytes // 2,
        pixels,
        swizzle=swizzle,
        element_strides=(1, 1, *steps[::-1], 1),
        interleave=TensorInterleave[f"BYTES_{nbytes}"],
    )
    wanted = np.zeros((pixels, nbytes), np.uint8)
    walk = walked(shape, lower, upper, steps, offsets, start, pixels)
    for row, index in zip(wanted, walk, strict=True):
        if index is not None:
            row[:] = slices.whole[index].view(np.uint8)
    found = brought(stream, kernels, tensor_map, start, offsets)
    assert np.array_equal(found, swizzled(wanted.reshape(-1, PIECE), swizzle))


def test_pixels_are_written_to_the_next_image_and_not_past_the_last(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    slices, count = Slices(16, "u2", SHAPES[4]), 20
    given = np.arange(8 * count, dtype=np.uint16).reshape(count, 8)
    for start in ((2, 4, 1, 0), (2, 4, 1, 2)):
        array = stream.to_device(slices.whole)
        tensor_map = TensorMap.im2col(
            array[..., :8, :], (0, 0), (0, 0), 8, count, interleave=TensorInterleave.BYTES_16
        )
        put(stream, kernels.kernel("store_images"), tensor_map, given, start)
        wanted = slices.whole.copy()
        walk = walked(SHAPES[4], (0, 0), (0, 0), (1, 1), (0, 0), start, count)
        for row, index in zip(given, walk, strict=True):
            if index is not None:
                wanted[index] = row
        assert np.array_equal(stream.to_host(array), wanted)


def rounded(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Finite float32 as tf32: the nearest of 10 bits, of two the even one."""
    return (words + 0xFFF + (words >> 13 & 1)) & np.uint32(0xFFFFE000)


@pytest.mark.parametrize(
    ("element", "fill", "x"),
    [
        ("FLOAT32", TensorFill.NAN, 4),
        ("TFLOAT32", TensorFill.ZERO, 0),
        ("FLOAT32_FTZ", TensorFill.ZERO, 0),
    ],
)
def test_slices_of_float32_are_filled_and_rounded_as_others(
    stream: cudadrv.Stream, kernels: cudadrv.Module, element: str, fill: TensorFill, x: int
) -> None:
    shape = (5, 40, 11, 4)
    words = np.random.default_rng(1).integers(0, 1 << 32, shape, dtype=np.uint32)
    words &= np.uint32(0xBFFFFFFF)  # finite
    assert (words[:, 3, :8] << 1 < 1 << 24).any()  # subnormal
    array = stream.to_device(words.view(np.float32))[:, :, :8]
    tensor_map = TensorMap(
        array,
        (5, 1, 8, 4),
        element=TensorElement[element],
        fill=fill,
        interleave=TensorInterleave.BYTES_16,
    )
    wanted = np.full((5, 8, 4), 0x7FF77FF7 if fill else 0, np.uint32)
    wanted[:, : 8 - x] = words[:, 3, x:8]
    wanted = rounded(wanted) if element == "TFLOAT32" else wanted
    found = brought(stream, kernels, tensor_map, (x, 3, 0)).reshape(-1).view(np.uint32)
    assert found.tolist() == wanted.reshape(-1).tolist()


@pytest.mark.parametrize(
    ("kernel", "dtype", "nbytes", "start"),
    [
        ("add", "f4", 16, (1, 2, 0)),
        ("add", "u4", 32, (1, 2, 0)),
        ("store", "u2", 32, (1, 2, 0)),
        ("store", "u2", 32, (3, 36, 4)),
    ],
)
def test_sums_and_stores_of_slices_leave_out_what_is_outside(
    stream: cudadrv.Stream,
    kernels: cudadrv.Module,
    kernel: str,
    dtype: str,
    nbytes: int,
    start: Point,
) -> None:
    channels, (x, y, z) = nbytes // np.dtype(dtype).itemsize, start
    rng = np.random.default_rng(1)
    before = rng.integers(1, 99, (5, 40, 11, channels)).astype(dtype)
    given = rng.integers(1, 60, (2, 8, channels)).astype(dtype)
    array, swizzle = stream.to_device(before), BY_32 if nbytes == 32 else NONE
    tensor_map = TensorMap(
        array[:, :, :8],
        (2, 1, 8, channels),
        swizzle=swizzle,
        interleave=TensorInterleave[f"BYTES_{nbytes}"],
    )
    box = swizzled(given.view(np.uint8).reshape(-1, PIECE), swizzle)
    put(stream, kernels.kernel(kernel), tensor_map, box, start)
    wanted = before.copy()
    for n, w in itertools.product(range(z, min(z + 2, 5)), range(x, 8)):
        old = before[n, y, w] if kernel == "add" else 0
        wanted[n, y, w] = old + given[n - z, w - x]
    assert np.array_equal(stream.to_host(array), wanted)
