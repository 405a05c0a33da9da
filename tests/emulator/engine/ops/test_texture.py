"""Texture instructions: against plain references, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate import UnsupportedInstruction
from ptx.emulate.model.errors import InvalidTextureHandle, UnsupportedFetch, UseAfterFree
from tests.emulator.engine.kernel_runner import KernelRunner, ptx_text
from tests.emulator.engine.ops.fetches import (
    HANDLE,
    Words,
    fetched,
    kernel_text,
    results_of,
    texture_of,
)
from tests.rows import all_rows

TEX_2D = "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [H, {F0,F1}]; mov.b32 R0, %f0; mov.b32 R1, %f1;"
WORDS_2D = "tex.2d.v4.u32.f32 D, [H, {F0,F1}];"
BASE_1D = "tex.1d.v4.u32.s32 D, [H, {I0}];"


def rows_of(*columns: Any) -> Words:
    """(n, 8) words: floats and integers of each thread."""
    count = max(len(np.atleast_1d(column)) for column in columns)
    found = np.zeros((count, 8), np.uint32)
    for k, column in enumerate(columns):
        kind = np.float32 if np.asarray(column).dtype.kind == "f" else np.int32
        found[:, k] = np.broadcast_to(np.asarray(column).astype(kind).view(np.uint32), (count,))
    return found


def test_the_nearest_texel_is_the_one_that_holds_the_coordinates() -> None:
    rng = np.random.default_rng(1)
    image = rng.uniform(-1, 1, (7, 13, 2)).astype(np.float32)
    x, y = rng.uniform(0, 13, 500), rng.uniform(0, 7, 500)
    found = fetched(TEX_2D, "2d", [image], {}, rows_of(x, y)).view(np.float32)
    at = image[y.astype(np.float32).astype(int), x.astype(np.float32).astype(int)]
    assert np.array_equal(found[:, :2], at)


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2"])
def test_filtered_integers_are_near_the_real_interpolation(dtype: str) -> None:
    rng = np.random.default_rng(2)
    info = np.iinfo(dtype)
    image = rng.integers(-info.max if info.min else 0, info.max, (6, 9, 1)).astype(dtype)
    x, y = rng.uniform(0.5, 8.5, 800), rng.uniform(0.5, 5.5, 800)
    found = fetched(WORDS_2D, "2d", [image], {"linear": True}, rows_of(x, y)).view(np.float32)
    real = image[..., 0] / info.max
    i, j = np.floor(x - 0.5).astype(int), np.floor(y - 0.5).astype(int)
    a, b = x - 0.5 - i, y - 0.5 - j
    ip, jp = np.minimum(i + 1, 8), np.minimum(j + 1, 5)
    top = (1 - a) * real[j, i] + a * real[j, ip]
    low = (1 - a) * real[jp, i] + a * real[jp, ip]
    # A weight has 8 bits, and so has a fraction: half a step each, over a range of 2.
    assert np.abs(found[:, 0] - ((1 - b) * top + b * low)).max() < 4 / 256


def test_missing_channels_are_zero_and_integers_keep_their_bits() -> None:
    image = np.array([[-5], [7], [2**31 - 1]], np.int32)
    found = fetched(BASE_1D, "lin", [image], {"as_integer": True}, rows_of(np.arange(-1, 4)))
    expected = np.zeros((5, 4), np.uint32)
    expected[1:4, 0] = image[:, 0].view(np.uint32)
    assert np.array_equal(found, expected)


_SHAPES = {"2d": (4, 8), "3d": (4, 4, 8), "a1d": (3, 8), "a2d": (3, 4, 8)}
_NUMBERS = {"2d": "I1,I0", "3d": "I2,I1,I0,I0", "a1d": "I0,I1", "a2d": "I0,I2,I1,I1"}


@pytest.mark.parametrize("kind", _SHAPES)
@pytest.mark.parametrize(
    "how", [{}, {"mip_bias": 1.0, "max_level": 0.5, "address_modes": (3,) * 3}]
)
def test_integer_coordinates_are_clamped_to_the_level(kind: str, how: dict[str, Any]) -> None:
    shape, layered = _SHAPES[kind], kind[0] == "a"
    axes = [slice(None)] * layered + [slice(None, None, 2)] * (len(shape) - layered)
    finest = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(*shape, 1)
    levels = [finest, np.ascontiguousarray(finest[tuple(axes)] * 1000)]
    rng = np.random.default_rng(5)
    level = rng.choice([-(2**31), -1, 0, 1, 2, 256], 300)
    at = [rng.integers(-2, extent + 2, 300) for extent in shape]
    rows = rows_of(*at, *[np.zeros(300, int)] * (3 - len(at)), level)
    line = f"tex.level.{kind}.v4.u32.s32 D, [H, {{{_NUMBERS[kind]}}}], I3;"
    found = fetched(line, kind, levels, how, rows)[:, 0].view(np.float32)
    if layered:
        at[0] = np.where(at[0] < 0, shape[0], at[0])  # a layer has no sign
    for thread, number in enumerate(level):
        if number not in (0, 1):
            assert found[thread] == 0
            continue
        image = levels[number]
        place = [min(max(k[thread], 0), n - 1) for k, n in zip(at, image.shape, strict=False)]
        assert found[thread] == image[tuple(place)][0]


def test_threads_may_read_different_textures() -> None:
    images = [np.full((2, 2, 1), value, np.float32) for value in (1, 2, 3)]
    text = kernel_text("add.u64 H, H, B2; " + WORDS_2D)
    runner = KernelRunner(text, 1 << 22)
    for k, image in enumerate(images):
        runner.device.textures[HANDLE + k] = texture_of(runner, "2d", [image], {})
    which = np.arange(200) % 3
    rows = rows_of(np.full(200, 0.5), np.full(200, 1.5), which, np.zeros(200, int))
    assert results_of(runner, rows)[:, 0].view(np.float32).tolist() == (which + 1.0).tolist()


def test_a_uniform_fetch_gives_one_value_for_all_threads() -> None:
    text = kernel_text("mov.f32 %f8, 0f3F000000; tex.2d.v4.u32.f32 D, [H, {%f8, %f8}];")
    runner = KernelRunner(text, 1 << 22)
    image = np.array([[[41.0], [1.0]]], np.float32)
    runner.device.textures[HANDLE] = texture_of(runner, "2d", [image], {})
    found = results_of(runner, rows_of(np.zeros(300)))
    assert (found[:, 0].view(np.float32) == 41).all()


def test_a_guard_leaves_the_others_as_they_were() -> None:
    guarded = "setp.gt.f32 %q, F0, 0f40000000; mov.u32 R0, 5; @%q " + WORDS_2D
    image = np.arange(1, 5, dtype=np.float32).reshape(1, 4, 1)
    x = np.array([0.5, 1.5, 2.5, 3.5])
    found = fetched(guarded, "2d", [image], {}, rows_of(x, np.full(4, 0.5)))
    assert found[:, 0].tolist() == [5, 5, *np.array([3, 4], np.float32).view(np.uint32)]


def test_an_unknown_handle_is_named_with_the_live_ones() -> None:
    runner = KernelRunner(kernel_text(WORDS_2D), 1 << 22)
    runner.device.textures[0x77] = texture_of(runner, "2d", [np.zeros((2, 2, 1), "f4")], {})
    with pytest.raises(InvalidTextureHandle, match=r"0x100000007 is no texture.*0x77") as caught:
        results_of(runner, rows_of(np.zeros(4)))
    assert caught.value.handle == HANDLE
    assert caught.value.where.thread == (0, 0, 0)
    assert caught.value.where.instruction == "tex.2d.v4.u32.f32"


def test_a_surface_handle_is_no_texture() -> None:
    runner = KernelRunner(kernel_text(WORDS_2D), 1 << 22)
    texture = texture_of(runner, "2d", [np.zeros((2, 2, 1), "f4")], {})
    runner.device.surfaces[HANDLE] = texture.levels[0]
    with pytest.raises(InvalidTextureHandle, match="there is no live texture object"):
        results_of(runner, rows_of(np.zeros(4)))


def test_a_freed_image_is_a_use_after_free() -> None:
    runner = KernelRunner(kernel_text(WORDS_2D), 1 << 22)
    texture = texture_of(runner, "2d", [np.zeros((2, 2, 1), "f4")], {})
    runner.device.textures[HANDLE] = texture
    rows, out = runner.put(rows_of(np.zeros(4))), runner.put(np.zeros((4, 4), np.uint32))
    runner.memory.free(texture.levels[0].address)
    with pytest.raises(UseAfterFree, match="an image of 16 bytes") as caught:
        runner.launch("k", 1, 4, HANDLE, rows, out, 4)
    assert caught.value.where.instruction == "tex.2d.v4.u32.f32"


_MIPS: list[NDArray[Any]] = [np.zeros((4 >> k, 4 >> k, 1), np.float32) for k in range(3)]


@pytest.mark.parametrize(
    ("instruction", "kind", "levels", "how", "words"),
    [
        (BASE_1D, "1d", [np.zeros((4, 1), "f4")], {}, "tex1Dfetch"),
        (WORDS_2D, "1d", [np.zeros((4, 1), "f4")], {}, "a 1d texture is read by"),
        (WORDS_2D, "2d", [np.zeros((2, 2, 1), "u4")], {"linear": True}, "linear filtering needs"),
        (
            "tex.level.2d.v4.u32.f32 D, [H, {F0,F1}], F2;", "2d", _MIPS,
            {"max_anisotropy": 8, "max_level": 2.0}, "anisotropic",
        ),
        (
            "tex.level.1d.v4.u32.s32 D, [H, {I0}], 0;", "lin", [np.zeros((4, 1), "f4")], {},
            "a level of linear memory",
        ),
        (
            "tex.grad.cube.v4.u32.f32 D, [H, {F0,F1,F2,F2}], {F0,F1,F2,F2}, {F0,F1,F2,F2};",
            "cube", [np.zeros((6, 4 >> k, 4 >> k, 1), "f4") for k in range(3)],
            {"max_level": 2.0}, "gradients of a cubemap",
        ),
        (
            "tld4.r.cube.v4.u32.f32 D, [H, {F0,F1,F2,F2}];", "cube",
            [np.zeros((6, 4, 4, 1), "f4")], {"seamless_cube": True}, "gathering across",
        ),
    ],
)  # fmt: skip
def test_a_fetch_whose_result_is_not_known_stops_the_kernel(
    instruction: str, kind: str, levels: list[NDArray[Any]], how: dict[str, Any], words: str
) -> None:
    with pytest.raises(UnsupportedFetch, match=words):
        fetched(instruction, kind, levels, how, rows_of(np.ones(4), np.ones(4), np.ones(4)))


@all_rows
@pytest.mark.parametrize(
    "line",
    [
        "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [image, {%f0, %f1}];",
        "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%rd0, %rd1, {%f0, %f1}];",
        "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%rd0, {%f0, %f1}], %f2;",
        "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%rd0, {%f0}];",
        "tex.2d.v4.f32.f32 {%f0,%f1,%f2}, [%rd0, {%f0, %f1}];",
        "tex.2dms.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%rd0, {%r0, %r1, %r2, %r2}];",
        "tex.cube.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%rd0, {%r0, %r1, %r2, %r2}];",
        "tex.level.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%rd0, {%f0, %f1}];",
        "tex.grad.2d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%rd0, {%r0, %r1}], {%f0, %f1}, {%f0, %f1};",
        "tex.level.cube.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%rd0, {%r0, %r1, %r2, %r2}], %r3;",
        "tex.2d.v4.f32.f32 {%f0,%f1,%f2,%f3}, [%r0, {%f0, %f1}];",
        "txq.channel_order.b32 %r0, [%rd0];",
        "txq.num_mipmap_levels.b32 %r0, [%rd0];",
        "suq.memory_layout.b32 %r0, [%rd0];",
        "suld.b.2d.v4.b64.trap {%rd0,%rd1,%rd2,%rd3}, [%rd0, {%r0, %r1}];",
        "sured.b.add.a2d.u32.trap [%rd0, {%r0, %r1, %r2, %r2}], %r1;",
        "sust.p.2d.f32.trap [%rd0, {%r0, %r1}], {%f0};",
    ],
)
def test_other_forms_are_rejected_with_opcode_and_line(line: str) -> None:
    body = f".reg .b32 %r<4>; .reg .f32 %f<4>; .reg .b64 %rd<4>;\n{line}\nret;"
    text = ptx_text(body, before=".global .texref image;")
    with pytest.raises(UnsupportedInstruction) as raised:
        KernelRunner(text, 1 << 20).program.kernel("k")
    assert raised.value.opcode == line.split()[0]
    assert text.splitlines()[raised.value.line - 1] == line
