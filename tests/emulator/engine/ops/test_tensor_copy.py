"""Copies of tensors against NumPy: every rank, swizzles, what is out of bounds, both ways."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.model.errors import (
    EmulationFault,
    InvalidTensorMap,
    Misaligned,
    OutOfBounds,
    SynchronisationFault,
    UninitialisedRead,
    UnsupportedInstruction,
)
from ptx.emulate.model.tensor_map import PixelBox
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.emulator.engine.ops.tensor_device import (
    BACK,
    HEAD,
    PARAMS,
    SIGNAL,
    WAIT,
    Device,
    arrive,
    box_of,
    load,
    loading,
    noise,
    swizzled,
)
from tests.rows import all_rows


@pytest.mark.parametrize(("shape", "box", "start", "dtype"), [
    ((40,), (16,), (16,), "u1"), ((37,), (16,), (32,), "u1"), ((40,), (32,), (-16,), "u1"),
    ((9, 20), (4, 8), (2, 8), "f2"), ((9, 19), (4, 8), (-2, 16), "f2"),
    ((9, 20), (4, 8), (7, -4), "i4"), ((5, 6, 7), (2, 3, 4), (4, -1, 4), "u4"),
    ((3, 5, 6, 11), (2, 2, 2, 8), (2, 4, 5, 8), "u2"),
    ((3, 3, 4, 5, 7), (2, 2, 2, 3, 4), (2, -1, 3, 4, 4), "f4"),
    ((6, 7), (3, 2), (5, 6), "f8"), ((6, 8), (3, 4), (20, 30), "u8"),
])  # fmt: skip
def test_a_box_of_every_rank_is_brought_with_zeros_out_of_bounds(
    shape: tuple[int, ...], box: tuple[int, ...], start: tuple[int, ...], dtype: str
) -> None:
    x = noise(shape, dtype)
    expected = box_of(x, start, box, (1,) * len(shape))
    device = Device(loading(start[::-1], expected.nbytes), x, box)
    assert device.launched(expected.nbytes).tobytes() == expected.tobytes()


def test_element_strides_leave_elements_out_but_in_the_innermost_dimension() -> None:
    x = noise((9, 7, 16), "f2")
    expected = box_of(x, (1, -1, 8), (5, 4, 8), (2, 3, 1))
    body = loading((8, -1, 1), expected.nbytes)
    device = Device(body, x, (5, 4, 8), steps=(2, 3, 8))
    assert device.launched(expected.nbytes).tobytes() == expected.tobytes()


@all_rows
@pytest.mark.parametrize(
    ("swizzle", "width"),
    [(0, 48), (1, 16), (2, 32), (3, 64), (1, 8), (2, 16), (2, 24), (3, 8), (3, 40)],
)
@pytest.mark.parametrize("columns", [72, 69], ids=["pieces", "elements"])
def test_a_swizzle_puts_pieces_where_the_documented_pattern_does(
    swizzle: int, width: int, columns: int
) -> None:
    column = 72 - width  # beyond the edge, if there are fewer columns
    x = noise((20, columns), "f2")
    box = box_of(x, (3, column), (18, width), (1, 1))
    rows = np.zeros((18, max(16 << swizzle, 2 * width)), np.uint8)  # as long as the swizzle
    rows[:, : 2 * width] = np.ascontiguousarray(box).view(np.uint8)
    expected = swizzled(rows.reshape(-1), swizzle)
    body = f"""{arrive(box.nbytes)} {load((column, 3))} {WAIT}
        {BACK} [%rd2], [%r5], {len(expected)};"""
    found = Device(body, x, (18, width), swizzle=swizzle).launched(len(expected))
    assert found.tobytes() == expected.tobytes()


def test_a_box_that_is_stored_is_unswizzled_and_clipped() -> None:
    # The box at (-2, 8) comes back at (5, 40), where a part of it is beyond the tensor.
    x = noise((10, 96), "f2")
    body = f"""{arrive(8 * 128)} {load((8, -2))} {WAIT} fence.proxy.async;
        cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {{40, 5}}], [%r5];
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""
    expected = x.copy()
    expected[5:10, 40:96] = box_of(x, (-2, 8), (8, 64), (1, 1))[:5, :56]
    device = Device(body, x, (8, 64), swizzle=3)
    device.launched(16)
    assert device.tensor().tolist() == expected.tolist()


@pytest.mark.parametrize(("dtype", "element"), [("f2", ""), ("f4", ""), ("f8", ""), ("u2", "bf16")])
def test_floats_out_of_bounds_are_nan_where_the_map_requests_it(dtype: str, element: str) -> None:
    x = noise((4, 16), dtype)
    body = loading((-16, 0), 32 * x.itemsize)
    found = Device(body, x, (1, 32), nan=True, element=element).launched(32 * x.itemsize)
    words = found.view(dtype)
    assert words[16:].tobytes() == x[0].tobytes()
    if element:
        assert ((words[:16] & 0x7FFF) > 0x7F80).all()
    else:
        assert np.isnan(words[:16].astype("f8")).all()


def test_elements_of_tf32_are_rounded_and_what_is_outside_is_zero() -> None:
    words = np.array([[0x3F801001, 0x3F800FFF, 0x3F801000, 0x3F803000, 0x7F800001, 0xFF7FFFFF,
                       0x00001001]], np.uint32)  # fmt: skip
    rounded = [0x3F802000, 0x3F800000, 0x3F800000, 0x3F804000, 0x7FFFE000, 0xFF800000, 0x00002000]
    device = Device(loading((0, 0), 32), words.view("f4"), (1, 8), element="tf32")
    assert device.launched(32).view(np.uint32).tolist() == [*rounded, 0]
    one = np.full((1, 16), np.uint32(0x3F801001)).view("f4")  # the same bits for all pieces
    found = Device(loading((0, 0), 64), one, (1, 16), element="tf32").launched(64)
    assert (found.view(np.uint32) == 0x3F802000).all()


@pytest.mark.parametrize("chunk", [3, 65536])
def test_threads_of_many_blocks_bring_boxes_of_their_own(chunk: int) -> None:
    # Block b brings the box at row 2 * b, whatever else is brought at once.
    x = noise((24, 16), "u2")
    body = f"""shl.b32 %r7, %r2, 1; {arrive(64)} {load((0, "%r7"))} {WAIT}
        mul.wide.u32 %rd5, %r2, 64; add.u64 %rd6, %rd2, %rd5; {BACK} [%rd6], [%r5], 64;"""
    device = Device(body, x, (2, 16))
    found = device.launched(12 * 64, 12, limits=Limits(chunk_threads=chunk))
    assert found.tobytes() == x.tobytes()


def test_a_box_for_all_blocks_of_a_cluster_signals_each() -> None:
    # Blocks 0 and 1 send a row each, to the same place in all four.
    x = noise((4, 64), "u2")
    body = f"""{arrive(256)} barrier.cluster.arrive; barrier.cluster.wait;
        mov.u32 %r7, %cluster_ctarank; shl.b32 %r8, %r7, 7; add.u32 %r5, %r5, %r8;
        setp.gt.u32 %p3, %r7, 1; mov.u16 %rs2, 15;
        @!%p3 {load((0, "%r7"), signal=SIGNAL + ".multicast::cluster", tail=", %rs2")}
        {WAIT} mov.u32 %r5, s; mul.wide.u32 %rd5, %r2, 256; add.u64 %rd6, %rd2, %rd5;
        {BACK} [%rd6], [%r5], 256; barrier.cluster.arrive; barrier.cluster.wait;"""
    device = Device(body, x, (1, 64), cluster=4)
    found = device.launched(4 * 256, 4)
    assert found.tobytes() == x[:2].tobytes() * 4


@pytest.mark.parametrize(("dtype", "name", "element"), [
    ("u4", "add", ""), ("i4", "min", ""), ("u8", "max", ""), ("i8", "add", ""), ("f4", "add", ""),
    ("f8", "add", ""), ("f2", "add", ""), ("f2", "max", ""), ("u4", "and", ""), ("i8", "xor", ""),
    ("u4", "inc", ""),
])  # fmt: skip
def test_a_box_is_combined_into_the_tensor(dtype: str, name: str, element: str) -> None:
    # Two blocks combine the box at (0, 0) into the one at (2, 8), beyond the edge.
    x = noise((4, 16), dtype)
    body = f"""{arrive(2 * 16 * x.itemsize)} {load((0, 0))} {WAIT}
        cp.reduce.async.bulk.tensor.2d.global.shared::cta.{name}.tile.bulk_group
        [%rd1, {{8, 3}}], [%r5]; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"""
    functions: dict[str, Callable[..., NDArray[np.generic]]] = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "xor": np.bitwise_xor,
        "inc": lambda old, most: np.where(old >= most, 0, old + 1),
    }
    expected = x.copy()
    for _ in range(2):
        part = functions[name](expected[3:4, 8:16], x[0:1, 0:8])
        expected[3:4, 8:16] = part.astype(dtype)
    device = Device(body, x, (2, 16), element=element)
    device.launched(16, 2)
    assert device.tensor().tobytes() == expected.tobytes()


def test_im2col_brings_the_pixels_under_a_filter() -> None:
    # A filter of 3 x 3 pixels over images with a border of 1, by steps of 2 along a row.
    x = noise((2, 5, 6, 16), "f2")
    lower, upper, steps = (-1, -1), (-1, -1), (2, 1)  # width, height
    positions = [
        (n, h, w)
        for n in range(2)
        for h in range(lower[1], 5 + upper[1])
        for w in range(lower[0], 6 + upper[0], steps[0])
    ]
    first = positions.index((0, 2, 1))
    body = f"""{arrive(12 * 16)} mov.u16 %rs3, 2; mov.u16 %rs4, 1;
        {load((8, 1, 2, 0), words="im2col", tail=", {%rs3, %rs4}")} {WAIT}
        {BACK} [%rd2], [%r5], {12 * 16};"""
    pixels = PixelBox(lower, upper, 8, 12)
    found = Device(body, x, (), pixels=pixels, steps=(1, 1, 2, 1)).launched(12 * 16)
    expected = np.zeros((12, 8), "f2")
    for k, (n, h, w) in enumerate(positions[first : first + 12]):
        if 0 <= h + 1 < 5 and 0 <= w + 2 < 6:
            expected[k] = x[n, h + 1, w + 2, 8:16]
    assert found.tobytes() == expected.tobytes()


def test_a_map_that_a_kernel_changes_is_the_one_that_is_used() -> None:
    # The map is copied to shared memory, changed there, and published in its place.
    x = noise((8, 32), "f2")
    body = f""".shared .align 128 .b8 c[128]; cvt.u64.u32 %rd3, %r1;
        shl.b64 %rd4, %rd3, 2; add.u64 %rd5, %rd1, %rd4; ld.global.u32 %r7, [%rd5];
        mov.u32 %r8, c; cvt.u32.u64 %r9, %rd4; add.u32 %r9, %r8, %r9; st.shared.u32 [%r9], %r7;
        bar.warp.sync -1; @!%p1 bra G;
        tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r8], 0, 20;
        tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r8], 1, 3;
        tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r8], 0, 128;
        tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r8], 1, 4;
        tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r8], 1;
        G: bar.warp.sync -1;
        tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
            [%rd1], [%r8], 128;
        fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128; prefetch.tensormap [%rd1];
        @!%p1 bra E; {arrive(256)} {load((0, 0))} {WAIT} {BACK} [%rd2], [%r5], 256; E:"""
    found = Device(body, x, (2, 32)).launched(256, 1, 32).view("f2").reshape(4, 32)
    expected = np.full((4, 32), np.nan, "f2")
    expected[:3, :20] = x[0:6:2, :20]
    assert np.array_equal(found, expected, equal_nan=True)


@all_rows
@pytest.mark.parametrize(("body", "error", "words"), [
    (load((0,)), InvalidTensorMap, "of 2 dimensions, but the instruction is for 1"),
    (load((0, 0, 0), words="im2col", tail=", {%rs1}"), InvalidTensorMap, "2 dimensions"),
    (load((0, 0)).replace("[%rd1,", "[%rd2,"), InvalidTensorMap, "holds no tensor map"),
    (load((0, 0)).replace("[%rd1,", "[%rd1+8,"), Misaligned, "misaligned read of 64 bytes"),
    (load((0, 0)).replace("[%r5]", "[%r5+16]"), Misaligned, "no multiple of 128"),
    (load((0, 0)).replace("[%r5]", "[%r5+16256]"), OutOfBounds, "shared address"),
    (load((0, 0)).replace("[m]", "[%r5+64]"), SynchronisationFault, "never initialised"),
    (f"tensormap.replace.tile.global_dim.global.b1024.b32 [%rd1], 1, 9999; {load((0, 9000))}",
     OutOfBounds, "past the end|no memory"),
    ("tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%rd1], 1;"
     f"tensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], 0, 24; {load((0, 0))}",
     InvalidTensorMap, "rows of 48 bytes, not a multiple of 16 up to the 32"),
    (f"tensormap.replace.tile.swizzle_atomicity.global.b1024.b32 [%rd1], 1; {load((0, 0))}",
     InvalidTensorMap, "swizzle 0 and swizzle atomicity 1"),
    (f"tensormap.replace.tile.interleave_layout.global.b1024.b32 [%rd1], 1; {load((0, 0))}",
     InvalidTensorMap, "interleave 1, rank 2"),
    ("cp.reduce.async.bulk.tensor.2d.global.shared::cta.inc.bulk_group [%rd1, {0, 0}], [%r5];",
     InvalidTensorMap, "reduction by `inc` into a tensor of f16, which takes u32"),
])  # fmt: skip
def test_wrong_copies_are_found(body: str, error: type[EmulationFault], words: str) -> None:
    device = Device(f"{arrive(512)} {body}", noise((16, 16), "f2"), (16, 16))
    with pytest.raises(error, match=words) as raised:
        device.launched(128)
    assert raised.value.where.ptx_line > 0


@pytest.mark.parametrize("column", [-1, 6])
def test_im2col_begins_within_the_positions_of_its_filter(column: int) -> None:
    line = load((0, column, 0, 0), words="im2col", tail=", {%rs3, %rs4}")
    body = f"{arrive(64)} mov.u16 %rs3, 0; mov.u16 %rs4, 0; {line}"
    pixels = PixelBox((0, 0), (0, 0), 8, 4)
    device = Device(body, noise((1, 4, 6, 8), "f2"), (), steps=(1, 1, 2, 1), pixels=pixels)
    words = "which is no position of a filter between 0 and 5"
    with pytest.raises(InvalidTensorMap, match=words):
        device.launched(64)


# As an H200 gave them: (image, row, column) of each pixel, from (row, column) on.
@pytest.mark.parametrize(
    ("start", "steps", "pixels"),
    [
        ((0, 0), (1, 2), "000 002 004 010 012 014 020 022 024 030"),
        ((0, 1), (1, 2), "001 003 005 010 012 014 020 022 024 030"),
        ((0, 5), (1, 2), "005 010 012 014 020 022 024 030 032 034"),
        ((0, 2), (1, 3), "002 005 010 013 020 023 030 033 040 043"),
        ((1, 0), (2, 1), "010 011 012 013 014 015 030 031 032 033"),
        ((3, 1), (2, 2), "031 033 035 050 052 054 100 102 104 120"),
    ],
)
def test_im2col_goes_on_from_between_positions_and_begins_rows_at_the_corner(
    start: tuple[int, int], steps: tuple[int, int], pixels: str
) -> None:
    row, column = start
    line = load((0, column, row, 0), words="im2col", tail=", {%rs3, %rs4}")
    body = (
        f"{arrive(160)} mov.u16 %rs3, 0; mov.u16 %rs4, 0; {line} {WAIT} {BACK} [%rd2], [%r5], 160;"
    )
    images = noise((2, 7, 6, 8), "f2")
    box = PixelBox((0, 0), (0, 0), 8, 10)
    device = Device(body, images, (), steps=(1, *steps, 1), pixels=box)
    found = device.launched(160).view("f2").reshape(10, 8)
    places = [tuple(map(int, each)) for each in pixels.split()]
    assert np.array_equal(found, [images[place] for place in places])


def test_bytes_that_a_copy_brought_count_as_written() -> None:
    limits = Limits(checks={"undefined"})
    x = noise((4, 16), "f2")
    body = f"{arrive(128)} {load((0, 0))} {WAIT} {BACK} [%rd2], [%r5], %r7;"
    whole = Device("mov.u32 %r7, 128;" + body, x, (4, 16))
    assert whole.launched(144, limits=limits)[:128].tobytes() == x.tobytes()
    with pytest.raises(UninitialisedRead):
        Device("mov.u32 %r7, 144;" + body, x, (4, 16)).launched(144, limits=limits)


@pytest.mark.parametrize("line", [
    "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [%r5],"
    " [%rd1, {%r1, %r1, %r1, %r1, %r1}], [m];",
    "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes.cta_group::1"
    " [%r5], [%rd1, {%r1, %r1}], [m];",
    "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r5],"
    " [%rd1, {%r1}], [m];",
    "cp.async.bulk.tensor.3d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r5],"
    " [%rd1, {%r1, %r1, %r1}], [m];",
    "tensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], 5, 1;",
    "tensormap.replace.tile.global_address.global.b1024.b32 [%rd1], 5;",
])  # fmt: skip
def test_other_forms_are_rejected_when_the_kernel_is_loaded(line: str) -> None:
    source = ptx_text(HEAD + "\n" + line, PARAMS)
    with pytest.raises(UnsupportedInstruction) as raised:
        KernelRunner(source, 1 << 20).program.kernel("k")
    assert raised.value.opcode == line.split()[0]
