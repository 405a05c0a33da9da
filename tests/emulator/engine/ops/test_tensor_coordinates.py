"""Boxes begin at a multiple of 16 bytes of a row; an H200 ends other kernels."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.model.errors import MisalignedCoordinate, NegativeCoordinate
from ptx.emulate.model.tensor_map import PixelBox
from tests.emulator.engine.ops.tensor_device import STORE, Device, arrive, load, loading, noise

PREFETCH = "cp.async.bulk.prefetch.tensor"
REDUCE = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
PIXELS = PixelBox((0, 0), (0, 0), 8, 4)
KINDS = {
    "load": (load((3, 0)), "cp.async.bulk.tensor.2d", 3, 6),
    "load outside": (load((-5, 0)), "cp.async.bulk.tensor.2d", -5, -10),
    "store": (f"{STORE} [%rd1, {{4, 0}}], [%r5];", "cp.async.bulk.tensor.2d", 4, 8),
    "reduction": (f"{REDUCE} [%rd1, {{12, 0}}], [%r5];", "cp.reduce.async.bulk", 12, 24),
    "prefetch": (f"{PREFETCH}.2d.L2.global.tile [%rd1, {{60, 0}}];", PREFETCH, 60, 120),
}


@pytest.mark.parametrize("name", KINDS)
def test_a_box_between_16_bytes_of_a_row_is_a_fault(name: str) -> None:
    line, instruction, coordinate, nbytes = KINDS[name]
    device = Device(f"{arrive(512)} {line}", noise((16, 64), "f2"), (16, 16))
    with pytest.raises(MisalignedCoordinate) as raised:
        device.launched(16)
    said = str(raised.value)
    assert f"innermost coordinate is {coordinate}, {nbytes} bytes of f16" in said
    assert "a multiple of 8" in said
    assert instruction in raised.value.where.instruction


@pytest.mark.parametrize(
    "line",
    [
        f"{STORE} [%rd1, {{-8, 2}}], [%r5];",
        f"{STORE} [%rd1, {{8, -1}}], [%r5];",
        f"{REDUCE} [%rd1, {{-64, 2}}], [%r5];",
        f"{REDUCE} [%rd1, {{0, -1}}], [%r5];",
    ],
)
def test_a_box_is_not_written_from_before_the_tensor(line: str) -> None:
    device = Device(line, noise((16, 64), "f2"), (16, 16))
    start = line[line.index("{") + 1 : line.index("}")]
    with pytest.raises(NegativeCoordinate, match=rf"written from \({start}\) on"):
        device.launched(16)


@pytest.mark.parametrize("start", [(0, 0, 0, -1), (-8, 0, 0, 0), (0, 0, 0, 0)])
def test_pixels_are_not_written_from_before_an_image(start: tuple[int, ...]) -> None:
    where = ", ".join(map(str, start))
    line = (
        f"{STORE.replace('2d', '4d').replace('tile', 'im2col_no_offs')} [%rd1, {{{where}}}], [%r5];"
    )
    pixels = PixelBox((0, 0), (0, 0), 8, 4) if any(start) else PixelBox((-1, -1), (-1, -1), 8, 4)
    device = Device(line, noise((2, 4, 4, 16), "f2"), (), pixels=pixels)
    with pytest.raises(NegativeCoordinate, match="a box is written from"):
        device.launched(16)


@pytest.mark.parametrize("words", ["im2col", "im2col_no_offs", "prefetch"])
def test_channels_of_images_begin_so_too(words: str) -> None:
    offsets = "mov.u16 %rs3, 0; mov.u16 %rs4, 0;"
    lines = {
        "im2col": load((4, 0, 0, 0), words="im2col", tail=", {%rs3, %rs4}"),
        "im2col_no_offs": f"{STORE.replace('2d', '4d').replace('tile', words)}"
        " [%rd1, {4, 0, 0, 0}], [%r5];",
        "prefetch": f"{PREFETCH}.4d.L2.global.im2col [%rd1, {{4, 0, 0, 0}}], {{%rs3, %rs4}};",
    }
    body = f"{arrive(64)} {offsets} {lines[words]}"
    device = Device(body, noise((1, 4, 4, 16), "f2"), (), pixels=PIXELS)
    with pytest.raises(MisalignedCoordinate, match="innermost coordinate is 4, 8 bytes of f16"):
        device.launched(16)


def test_the_thread_with_the_wrong_coordinate_is_named() -> None:
    # Of four threads in two blocks, the last one loads from the odd column.
    body = f"""@!%p1 bra I; mbarrier.init.shared.b64 [m], 1; I: bar.sync 0;
        mad.lo.u32 %r7, %r2, 2, %r1; shl.b32 %r7, %r7, 2; setp.eq.u32 %p3, %r7, 12;
        selp.u32 %r8, 13, %r7, %p3; {load(("%r8", 0))}"""
    device = Device(body, noise((4, 64), "f4"), (1, 4))
    with pytest.raises(MisalignedCoordinate, match="is 13, 52 bytes of f32") as raised:
        device.launched(16, 2, 2)
    assert (raised.value.where.block, raised.value.where.thread) == ((1, 0, 0), (1, 0, 0))


@pytest.mark.parametrize(
    ("dtype", "start"), [("u1", 16), ("u1", -32), ("f2", 8), ("f4", 4), ("f4", -4), ("f8", 2)]
)
def test_other_coordinates_than_the_innermost_one_may_be_odd(dtype: str, start: int) -> None:
    x = noise((9, 64), dtype)
    columns = 32 // x.itemsize
    expected = np.zeros((3, columns), dtype)
    width = min(columns, columns + start)
    if width > 0:
        expected[:, columns - width :] = x[5:8, max(start, 0) : max(start, 0) + width]
    body = loading((start, 5), expected.nbytes)
    assert Device(body, x, (3, columns)).launched(expected.nbytes).tobytes() == expected.tobytes()


def test_a_prefetch_changes_nothing() -> None:
    x = noise((8, 16), "f2")
    device = Device(f"{PREFETCH}.2d.L2.global.tile [%rd1, {{8, 3}}];", x, (2, 16))
    assert not device.launched(16).any()
    assert device.tensor().tobytes() == x.tobytes()
