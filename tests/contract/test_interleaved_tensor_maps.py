"""Tensor maps of interleaved arrays: which slices of channels an H200 brought where."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import cudadrv
from cudadrv.errors import TensorMapError
from cudadrv.tensor_map import TensorInterleave, TensorMap, TensorSwizzle
from tests.rows import all_rows

from .conftest import compile_module
from .slice_kernels import PIECE, SOURCE, AnyArray, Slices, brought, put, swizzled
from .tensor_kernels import needs_tensor_maps


@pytest.fixture(scope="module")
def kernels(context: cudadrv.Context) -> cudadrv.Module:
    needs_tensor_maps(context)
    return compile_module(context, SOURCE)


def numbers(text: str) -> list[int]:
    """Numbers of pieces: `3..7` goes on by 1, `0..6/2` by 2; `z*8` are eight of zeros, -1 here."""
    found: list[int] = []
    for word in text.split():
        if word[0] == "z":
            found += [-1] * int(word[2:] or 1)
            continue
        span, _, step = word.partition("/")
        first, _, last = span.partition("..")
        found += range(int(first), int(last or first) + 1, int(step or 1))
    return found


def expected(slices: Slices, text: str) -> NDArray[np.uint8]:
    chosen = np.array(numbers(text))
    return np.where(chosen[:, None] < 0, 0, slices.pieces()[chosen]).astype(np.uint8)


# What follows is what an H200 with driver 580 brought. Shapes are (N, C/8, D, H, W) without the
# channels of a slice, boxes likewise; along C/8 all take one. Starts are {x, y, ...}, innermost
# first, counted by slices; steps are of N, and of W. Texts are the numbers of 16 bytes of memory
# that came, in the order of shared memory. Rows lie 29 slices apart, so along W it goes on by 1 and
# along the next axis by 29.
THREE, FOUR, FIVE = (5, 40, 8), (3, 20, 6, 8), (2, 20, 3, 4, 8)
BY_16 = [
    ("u2", THREE, (2, 8), (0, 0, 0), "0..7 1160..1167"),
    ("u2", THREE, (5, 8), (0, 0, 0), "0..7 1160..1167 2320..2327 3480..3487 4640..4647"),
    ("u2", THREE, (2, 16), (0, 0, 0), "0..7 z*8 1160..1167 z*8"),
    ("u2", THREE, (1, 24), (0, 0, 0), "0..7 z*16"),
    ("u2", THREE, (2, 8), (0, 7, 0), "203..210 1363..1370"),
    ("u2", THREE, (2, 8), (0, 36, 0), "1044..1051 2204..2211"),
    ("u2", THREE, (2, 8), (0, 39, 4), "5771..5778 z*8"),
    ("u2", THREE, (2, 8), (0, 40, 0), "z*16"),
    ("u2", THREE, (2, 8), (0, -1, 0), "z*16"),
    ("u2", THREE, (2, 8), (3, 0, 0), "3..7 z*3 1163..1167 z*3"),
    ("u2", THREE, (2, 8), (-1, 0, 0), "z*1 0..6 z*1 1160..1166"),
    ("u2", THREE, (2, 8), (-3, 8, 0), "z*3 232..236 z*3 1392..1396"),
    ("u2", THREE, (2, 8), (0, 0, -1), "z*8 0..7"),
    ("u2", THREE, (2, 8), (7, 0, 4), "4647 z*15"),
    ("u2", FOUR, (2, 4, 8), (0, 0, 0, 0), "0..7 29..36 58..65 87..94 "
     "3480..3487 3509..3516 3538..3545 3567..3574"),
    ("u2", FOUR, (2, 1, 8), (0, 0, 0, 0), "0..7 3480..3487"),
    ("u2", FOUR, (1, 3, 8), (0, 1, 0, 0), "29..36 58..65 87..94"),
    ("u2", FOUR, (1, 3, 8), (0, 0, 1, 0), "174..181 203..210 232..239"),
    ("u2", FOUR, (1, 3, 8), (2, 4, 19, 1), "6904..6909 z*2 6933..6938 z*10"),
    ("u2", FOUR, (2, 3, 8), (0, 0, 0, 2), "6960..6967 6989..6996 7018..7025 z*24"),
    ("u2", FIVE, (2, 2, 3, 8), (0, 0, 0, 0, 0), "0..7 29..36 58..65 116..123 145..152 174..181 "
     "6960..6967 6989..6996 7018..7025 7076..7083 7105..7112 7134..7141"),
    ("u2", FIVE, (1, 1, 2, 8), (0, 1, 0, 0, 0), "29..36 58..65"),
    ("u2", FIVE, (1, 1, 2, 8), (0, 0, 1, 0, 0), "116..123 145..152"),
    ("u2", FIVE, (1, 1, 2, 8), (0, 0, 0, 1, 0), "348..355 377..384"),
    ("u2", FIVE, (1, 1, 2, 8), (0, 0, 0, 0, 1), "6960..6967 6989..6996"),
    ("u4", (5, 40, 4), (2, 4), (0, 1, 0), "29..32 1189..1192"),
    ("u4", (5, 40, 4), (2, 4), (1, 0, 0), "1..3 z*1 1161..1163 z*1"),
    ("u4", (5, 40, 4), (2, 8), (0, 0, 0), "0..3 z*4 1160..1163 z*4"),
    ("u1", (5, 40, 16), (2, 16), (0, 0, 0), "0..15 1160..1175"),
    ("u1", (5, 40, 16), (2, 16), (0, 1, 0), "29..44 1189..1204"),
    ("f8", (5, 40, 2), (2, 2), (0, 1, 0), "29..30 1189..1190"),
    ("f8", (5, 40, 2), (2, 4), (0, 0, 0), "0..1 z*2 1160..1161 z*2"),
]  # fmt: skip
WIDE, WIDER = (5, 40, 16), (3, 40, 6, 16)
# Slices of 32 bytes have two numbers; the swizzle exchanges them in every other 128 bytes.
BY_32 = [
    ("u2", WIDE, (2, 8), (0, 0, 0), "0..7 9 8 11 10 13 12 15 14 "
     "2320..2327 2329 2328 2331 2330 2333 2332 2335 2334"),
    ("u2", WIDE, (2, 16), (0, 0, 0), "0..7 9 8 11 10 13 12 15 14 16..23 25 24 27 26 29 28 31 30 "
     "2320..2327 2329 2328 2331 2330 2333 2332 2335 2334 2336..2343 2345 2344 2347 2346 2349 2348 "
     "2351 2350"),
    ("u2", WIDE, (1, 8), (0, 1, 0), "58..65 67 66 69 68 71 70 73 72"),
    ("u2", WIDE, (1, 8), (0, 16, 0), "928..935 937 936 939 938 941 940 943 942"),
    ("u2", WIDE, (1, 8), (1, 0, 0), "2..9 11 10 13 12 15 14 17 16"),
    ("u2", WIDE, (1, 8), (12, 0, 0), "24..31 z*8"),
    ("u2", WIDE, (1, 8), (0, 39, 4),
     "11542..11549 11551 11550 11553 11552 11555 11554 11557 11556"),
    ("u2", WIDER, (1, 4, 8), (0, 0, 0, 0), "0..7 9 8 11 10 13 12 15 14 "
     "58..65 67 66 69 68 71 70 73 72 116..123 125 124 127 126 129 128 131 130 "
     "174..181 183 182 185 184 187 186 189 188"),
    ("u2", WIDER, (1, 3, 8), (0, 1, 0, 0), "58..65 67 66 69 68 71 70 73 72 "
     "116..123 125 124 127 126 129 128 131 130 174..181 183 182 185 184 187 186 189 188"),
    ("u2", WIDER, (1, 3, 8), (0, 0, 1, 0), "348..355 357 356 359 358 361 360 363 362 "
     "406..413 415 414 417 416 419 418 421 420 464..471 473 472 475 474 477 476 479 478"),
    ("u4", (5, 40, 8), (2, 4), (0, 0, 0), "0..7 2321 2320 2323 2322 2325 2324 2327 2326"),
    ("u4", (5, 40, 8), (1, 8), (0, 1, 0), "58..65 67 66 69 68 71 70 73 72"),
]  # fmt: skip
STEPS = [
    ((1, 2), (0, 0, 0), "0..6/2 1160..1166/2"),
    ((2, 1), (0, 0, 0), "0..7"),
    ((1, 3), (1, 0, 0), "1 4 7 1161 1164 1167"),
]
IM2COL = [
    (8, (0, 0, 0, 0), "0..7"),
    (16, (0, 0, 0, 0), "0..7 29..36"),
    (9, (0, 1, 0, 0), "29..36 58"),
    (8, (1, 0, 0, 0), "1..7 29"),
    (8, (0, 0, 1, 0), "174..181"),
    (8, (0, 0, 0, 1), "3480..3487"),
]


def map_of(
    array: AnyArray,
    box: tuple[int, ...],
    interleave: str,
    swizzle: str,
    steps: tuple[int, int] = (1, 1),
) -> TensorMap:
    """Of a box and steps that do not name the axis of slices nor their channels."""
    first, *others = box
    strides = (steps[0], *(1,) * (array.ndim - 3), steps[1], 1)
    return TensorMap(
        array,
        (first, 1, *others, array.shape[-1]),
        element_strides=strides,
        interleave=TensorInterleave[interleave],
        swizzle=TensorSwizzle[swizzle],
    )


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize(("dtype", "shape", "box", "start", "text"), BY_16)
def test_slices_of_16_bytes_lie_side_by_side_along_the_last_axis_of_pixels(
    stream: cudadrv.Stream,
    kernels: cudadrv.Module,
    dtype: str,
    shape: tuple[int, ...],
    box: tuple[int, ...],
    start: tuple[int, ...],
    text: str,
) -> None:
    slices = Slices(16, dtype, shape)
    tensor_map = map_of(slices.array(stream), box, "BYTES_16", "NONE")
    found = brought(stream, kernels, tensor_map, start)
    assert np.array_equal(found, expected(slices, text))


@pytest.mark.parametrize(("dtype", "shape", "box", "start", "text"), BY_32)
def test_slices_of_32_bytes_have_halves_that_the_swizzle_exchanges(
    stream: cudadrv.Stream,
    kernels: cudadrv.Module,
    dtype: str,
    shape: tuple[int, ...],
    box: tuple[int, ...],
    start: tuple[int, ...],
    text: str,
) -> None:
    slices = Slices(32, dtype, shape)
    tensor_map = map_of(slices.array(stream), box, "BYTES_32", "BYTES_32")
    found = brought(stream, kernels, tensor_map, start)
    assert np.array_equal(found, expected(slices, text))


@pytest.mark.parametrize(("steps", "start", "text"), STEPS)
def test_steps_leave_out_slices_along_all_other_axes_than_theirs(
    stream: cudadrv.Stream,
    kernels: cudadrv.Module,
    steps: tuple[int, int],
    start: tuple[int, ...],
    text: str,
) -> None:
    slices = Slices(16, "u2", THREE)
    tensor_map = map_of(slices.array(stream), (2, 8), "BYTES_16", "NONE", steps)
    found = brought(stream, kernels, tensor_map, start)
    assert np.array_equal(found, expected(slices, text))


@pytest.mark.parametrize("swizzle", ["BYTES_32", "BYTES_64", "BYTES_128"])
def test_the_swizzle_of_slices_of_16_bytes_goes_by_their_place_alone(
    stream: cudadrv.Stream, kernels: cudadrv.Module, swizzle: str
) -> None:
    slices = Slices(16, "u2", THREE)
    tensor_map = map_of(slices.array(stream), (5, 8), "BYTES_16", swizzle)
    found = brought(stream, kernels, tensor_map, (0, 2, 0))
    wanted = slices.whole[:, 2, :8].view(np.uint8).reshape(-1, PIECE)
    assert np.array_equal(found, swizzled(wanted, TensorSwizzle[swizzle]))


@pytest.mark.parametrize(("pixels", "start", "text"), IM2COL)
def test_positions_of_images_go_along_rows_of_slices(
    stream: cudadrv.Stream, kernels: cudadrv.Module, pixels: int, start: tuple[int, ...], text: str
) -> None:
    slices = Slices(16, "u2", FOUR)
    tensor_map = TensorMap.im2col(
        slices.array(stream), (0, 0), (0, 0), 8, pixels, interleave=TensorInterleave.BYTES_16
    )
    assert tensor_map.box_nbytes == 16 * pixels
    found = brought(stream, kernels, tensor_map, start, (0, 0))
    assert np.array_equal(found, expected(slices, text))


@pytest.mark.parametrize(
    ("start", "text", "source"),
    [
        ((0, 0, 0), "0..7 1160..1167", "0..15"),
        ((1, 1, 0), "30..36 1190..1196", "0..6 8..14"),
        ((3, 36, 4), "5687..5691", "0..4"),
        ((0, 40, 0), "", ""),
    ],
)
def test_slices_are_written_where_the_box_is_within_the_tensor(
    stream: cudadrv.Stream, kernels: cudadrv.Module, start: tuple[int, ...], text: str, source: str
) -> None:
    slices = Slices(16, "u2", THREE)
    array = stream.to_device(slices.whole)
    tensor_map = map_of(array[:, :, :8], (2, 8), "BYTES_16", "NONE")
    given = np.arange(256, dtype=np.uint8)
    put(stream, kernels.kernel("store"), tensor_map, given, start)
    wanted = slices.pieces().copy()
    wanted[numbers(text)] = given.reshape(-1, PIECE)[numbers(source)]
    assert stream.to_host(array).tobytes() == wanted.tobytes()


def test_slices_of_32_bytes_are_written_from_where_loads_bring_them(
    stream: cudadrv.Stream, kernels: cudadrv.Module
) -> None:
    slices = Slices(32, "u4", (5, 40, 8))
    array = stream.zeros(slices.whole.shape, "u4")
    boxes = [
        map_of(each[:, :, :8], (2, 8), "BYTES_32", "BYTES_32")
        for each in (stream.to_device(slices.whole), array)
    ]
    box = brought(stream, kernels, boxes[0], (0, 3, 1))
    put(stream, kernels.kernel("store"), boxes[1], box, (0, 5, 2))
    wanted = np.zeros_like(slices.whole)
    wanted[2:4, 5, :8] = slices.whole[1:3, 3, :8]
    assert np.array_equal(stream.to_host(array), wanted)


# Shape with the channels of a slice, box, other arguments, what is said.
REFUSED = [
    ((5, 40, 8), (2, 1, 8), {}, "it needs 4 to 6 axes, not 3"),
    ((5, 40, 8, 16), (2, 1, 8, 16), {}, r"a slice of 8 channels of UINT16, as in \(N, C/8"),
    ((5, 40, 8, 8), (2, 3, 8, 8), {}, "give 1 for axis 1, and 8 for the last axis"),
    ((5, 40, 8, 8), (2, 1, 8, 16), {}, "give 1 for axis 1, and 8 for the last axis"),
    ((5, 40, 16, 8), (1, 1, 12, 8), {}, "slices of UINT16 are not a multiple of 8"),
    ((5, 40, 16, 8), (1, 1, 9, 8), {}, "slices of UINT16 are not a multiple of 8"),
    ((5, 40, 8, 8), (2, 1, 8, 8), {"element_strides": (1, 2, 1, 1)}, "ignores that of slices"),
    ((5, 40, 8, 8), (2, 1, 8, 8), {"element_strides": (1, 1, 1, 2)}, "that of the last axis"),
    ((5, 40, 8, 8), (2, 1, 8, 8), {"interleave": TensorInterleave.BYTES_32}, "goes with"),
]


@pytest.mark.parametrize(("shape", "box", "options", "words"), REFUSED)
def test_arrays_and_boxes_that_are_not_of_slices_are_rejected(
    context: cudadrv.Context,
    stream: cudadrv.Stream,
    shape: tuple[int, ...],
    box: tuple[int, ...],
    options: dict[str, object],
    words: str,
) -> None:
    needs_tensor_maps(context)
    given = {"interleave": TensorInterleave.BYTES_16} | options
    with pytest.raises(TensorMapError, match=words):
        TensorMap(stream.empty(shape, "u2"), box, **given)  # type: ignore[arg-type]  # of several types


def test_slices_apart_and_more_than_one_of_images_are_rejected(
    context: cudadrv.Context, stream: cudadrv.Stream
) -> None:
    needs_tensor_maps(context)
    array, mode = stream.empty((3, 20, 6, 16, 8), "u2"), TensorInterleave.BYTES_16
    with pytest.raises(TensorMapError, match="do not lie side by side"):
        TensorMap(array[:, :, :, ::2], (1, 1, 3, 8, 8), interleave=mode)
    with pytest.raises(TensorMapError, match="channels=16: one slice is copied, of 8"):
        TensorMap.im2col(array, (0, 0), (0, 0), 16, 8, interleave=mode)
    with pytest.raises(TensorMapError, match="give 2 numbers, not 3"):
        TensorMap.im2col(array, (0, 0, 0), (0, 0, 0), 8, 8, interleave=mode)
