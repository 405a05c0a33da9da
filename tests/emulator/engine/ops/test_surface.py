"""Surface instructions: against plain references, and their faults."""

from __future__ import annotations

import numpy as np
import pytest

from ptx.emulate.model.errors import InvalidTextureHandle, Misaligned, OutOfBounds, UnsupportedFetch
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.ops.fetches import HANDLE, accessed, image_of, kernel_text, results_of
from tests.emulator.engine.ops.test_texture import rows_of

SHAPE = (5, 9, 1)


def _image(dtype: str = "u4") -> np.ndarray[tuple[int, ...], np.dtype[np.uint32]]:
    rng = np.random.default_rng(3)
    return rng.integers(0, 2**31, SHAPE).astype(dtype)


def test_a_surface_counts_bytes_along_x() -> None:
    image = _image()
    x, y = np.array([0, 3, 8]), np.array([0, 4, 2])
    found, _ = accessed("suld.b.2d.b32.trap {R0}, [H, {I0, I1}];", "2d", image, rows_of(4 * x, y))
    assert found[:, 0].tolist() == image[y, x, 0].tolist()


@pytest.mark.parametrize("mode", ["clamp", "zero"])
def test_outside_is_the_edge_or_zero(mode: str) -> None:
    image = _image()
    x, y = np.array([-1, 9, 4, 100]), np.array([0, 2, -1, 7])
    form = f"suld.b.2d.b32.{mode} {{R0}}, [H, {{I0, I1}}];"
    found, _ = accessed(form, "2d", image, rows_of(4 * x, y))
    edge = image[np.clip(y, 0, 4), np.clip(x, 0, 8), 0]
    assert found[:, 0].tolist() == (edge.tolist() if mode == "clamp" else [0] * 4)


def test_a_store_outside_writes_nothing_with_zero_mode() -> None:
    image = np.zeros(SHAPE, np.uint32)
    rows = rows_of(np.array([0, -4, 36]), np.array([1, 1, 1]), np.array([7, 8, 9]))
    _, after = accessed("sust.b.2d.b32.zero [H, {I0, I1}], {I2};", "2d", image, rows)
    assert int(after[1, 0, 0]) == 7
    assert np.count_nonzero(after) == 1


@pytest.mark.parametrize(
    ("operation", "ptx_type", "function"),
    [
        ("add", "u32", np.add), ("add", "s32", np.add), ("min", "s32", np.minimum),
        ("max", "u32", np.maximum), ("and", "b32", np.bitwise_and), ("or", "b32", np.bitwise_or),
    ],
)  # fmt: skip
def test_reductions_combine_what_all_threads_bring(
    operation: str, ptx_type: str, function: np.ufunc
) -> None:
    image = _image()
    rng = np.random.default_rng(4)
    x, y = rng.integers(0, 9, 400), rng.integers(0, 5, 400)
    value = rng.integers(-(2**31), 2**31, 400)
    form = f"sured.b.{operation}.2d.{ptx_type}.trap [H, {{I0, I1}}], I2;"
    _, after = accessed(form, "2d", image, rows_of(4 * x, y, value))
    dtype = np.int32 if ptx_type == "s32" else np.uint32
    expected = image[..., 0].view(dtype).copy()
    function.at(expected, (y, x), value.astype(np.int32).view(dtype))
    assert np.array_equal(after[..., 0], expected.view(np.uint32))


def test_a_reduction_of_64_bits_needs_no_aligned_rows() -> None:
    image = np.zeros((3, 5, 2), np.uint32)
    rows = rows_of(np.array([16, 16]), np.array([2, 2]), np.array([1, 2]), np.array([3, 4]))
    _, after = accessed("sured.b.add.2d.u64.trap [H, {I0, I1}], B2;", "2d", image, rows)
    assert after[2, 2].tolist() == [3, 7]


def test_formatted_stores_saturate() -> None:
    image = np.zeros((1, 4, 4), np.int8)
    values = np.array([-500, 500, -1, 127])
    rows = rows_of(np.arange(4), np.zeros(4, int), values)
    _, after = accessed("sust.p.2d.b32.trap [H, {I0, I1}], {I2};", "2d", image, rows)
    assert after[0, :, 0].tolist() == [-128, 127, -1, 127]
    assert not after[..., 1:].any()


def test_trap_mode_stops_the_kernel_with_the_thread_and_the_place() -> None:
    rows = rows_of(np.array([0, 4, 36]), np.array([0, 0, 0]))
    with pytest.raises(OutOfBounds, match=r"surface read at \(9, 0\).*9 x 5 x 1") as caught:
        accessed("suld.b.2d.b32.trap {R0}, [H, {I0, I1}];", "2d", _image(), rows)
    assert caught.value.where.thread == (2, 0, 0)


def test_x_must_be_a_multiple_of_what_is_accessed() -> None:
    rows = rows_of(np.array([0, 2]), np.array([0, 0]))
    with pytest.raises(Misaligned, match="counts bytes"):
        accessed("suld.b.2d.b32.clamp {R0}, [H, {I0, I1}];", "2d", _image(), rows)


def test_a_texture_handle_is_no_surface() -> None:
    runner = KernelRunner(kernel_text("suld.b.2d.b32.trap {R0}, [H, {I0, I1}];"), 1 << 22)
    runner.device.surfaces[0x55] = image_of(runner, "2d", _image())
    with pytest.raises(InvalidTextureHandle, match=r"is no surface object.*0x55") as caught:
        results_of(runner, rows_of(np.array([0])))
    assert caught.value.handle == HANDLE


def test_an_image_of_another_geometry_stops_the_kernel() -> None:
    with pytest.raises(UnsupportedFetch, match="a 2d surface is accessed by"):
        accessed("suld.b.1d.b32.trap {R0}, [H, {I0}];", "2d", _image(), rows_of(np.array([0])))
