"""The texture and surface functions of CUDA C++, compiled by NVRTC in both of its dialects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptx.emulate.texture.sampling import level_of
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.emulator.engine.ops.corpus import text_of
from tests.emulator.engine.ops.fetches import HANDLE, image_of, texture_of
from tests.rows import all_rows

TARGETS = ("compute_90", "compute_100")
_RNG = np.random.default_rng(5)


def _floats(*shape: int) -> NDArray[np.float32]:
    return _RNG.uniform(-1, 1, (*shape, 4)).astype(np.float32)


def _run(
    target: str, kernel: str, kind: str, levels: list[NDArray[Any]], *arguments: float, count: int
) -> NDArray[np.float32]:
    runner = KernelRunner(text_of("textures.cu", target), 1 << 22)
    how = {"mip_linear": True, "max_level": 9.0, "normalized_coordinates": len(levels) > 1}
    runner.device.textures[HANDLE] = texture_of(runner, kind, levels, how)
    out = runner.put(np.zeros((count, 4), np.float32))
    runner.launch(kernel, 1, 1, HANDLE, out, *arguments)
    return runner.get(out, 4 * count, np.float32).reshape(count, 4)


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("kernel", "kind", "shape", "place", "layer", "texel"),
    [
        ("line", "1d", (9,), (3.5,), None, (3,)),
        ("lines", "a1d", (3, 9), (3.5,), 2, (2, 3)),
        ("plane", "2d", (5, 9), (3.5, 1.5), None, (1, 3)),
        ("planes", "a2d", (3, 5, 9), (3.5, 1.5), 2, (2, 1, 3)),
        ("volume", "3d", (4, 5, 9), (3.5, 1.5, 2.5), None, (2, 1, 3)),
        ("cube", "cube", (6, 4, 4), (0.3, -1.0, 0.1), None, (3, 1, 2)),
        ("cubes", "acube", (12, 4, 4), (0.3, -1.0, 0.1), 1, (9, 1, 2)),
    ],
)
def test_each_way_to_read_finds_the_texel(
    target: str,
    kernel: str,
    kind: str,
    shape: tuple[int, ...],
    place: tuple[float, ...],
    layer: int | None,
    texel: tuple[int, ...],
) -> None:
    image = _floats(*shape)
    rest = () if layer is None else (layer,)
    count = 5 if kernel == "plane" else 3
    found = _run(target, kernel, kind, [image], *place, 0.0, *rest, count=count)
    expected = image[texel]
    assert found[:3].tolist() == [expected.tolist()] * 3
    if kernel == "plane":
        assert found[3].tolist() == expected.tolist()
        assert found[4].tolist() == [1.0, expected[0], expected[1], 0.0]


@pytest.mark.parametrize("target", TARGETS)
def test_a_level_between_two_combines_both(target: str) -> None:
    levels = [np.full((8 >> k, 8 >> k, 4), k, np.float32) for k in range(4)]
    found = _run(target, "plane", "2d", levels, 0.4, 0.6, 1.25, count=5)
    assert found[:3, 0].tolist() == [0.0, 1.25, 0.0]


@pytest.mark.parametrize("target", TARGETS)
def test_a_gather_goes_round_the_four_texels(target: str) -> None:
    image = _floats(5, 9)
    found = _run(target, "gathers", "2d", [image], 4.0, 2.0, count=4)
    corners = [image[2, 3], image[2, 4], image[1, 4], image[1, 3]]
    assert found.tolist() == np.array(corners).T.tolist()


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "f4"])
def test_tex1dfetch_gives_elements_of_each_type(target: str, channels: int, dtype: str) -> None:
    array = _RNG.integers(-(2**31), 2**31, (20, channels)).astype(np.int32).astype(dtype)
    runner = KernelRunner(text_of("textures.cu", target), 1 << 22)
    texture = texture_of(runner, "lin", [array], {"as_integer": dtype != "f4"})
    runner.device.textures[HANDLE] = texture
    out = runner.put(np.zeros(channels, dtype))
    runner.launch(f"fetch_{dtype}x{channels}", 1, 1, HANDLE, out, 7)
    assert runner.get(out, channels, dtype).tolist() == array[7].tolist()


_SURFACES = (
    ("1d", (9,)),
    ("2d", (5, 9)),
    ("3d", (4, 5, 9)),
    ("a1d", (3, 9)),
    ("a2d", (3, 5, 9)),
    ("cube", (6, 4, 4)),
    ("acube", (12, 4, 4)),
)


@pytest.mark.slow
@all_rows
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "element",
    ["u1x1", "u1x2", "u1x4", "u2x1", "u2x2", "u2x4", "u4x1", "u4x2", "u4x4", "i1x1", "i2x2",
     "i4x4", "f4x1", "f4x2", "f4x4"],
)  # fmt: skip
def test_surfaces_of_each_geometry_are_read_and_written(target: str, element: str) -> None:
    dtype, channels = element.split("x")
    runner = KernelRunner(text_of("textures.cu", target), 1 << 22)
    for geometry, (kind, shape) in enumerate(_SURFACES):
        array = _RNG.integers(0, 100, (*shape, int(channels))).astype(dtype)
        image = runner.device.surfaces[HANDLE] = image_of(runner, kind, array)
        runner.launch(f"move_{element}", 1, 1, HANDLE, geometry)
        place = (1,) * (len(shape) - 1)
        array[(*place, 0)] = array[(*place, 1)]
        after = runner.get(image.address, array.size, array.dtype).reshape(array.shape)
        assert np.array_equal(after, array), kind


def test_a_fetch_without_a_level_ignores_the_bias() -> None:
    runner = KernelRunner(text_of("textures.cu", "compute_90"), 1 << 22)
    levels = [np.zeros((4 >> k, 1), np.float32) for k in range(3)]
    how = {"mip_bias": 1.0, "max_level": 2.0, "normalized_coordinates": True}
    texture = texture_of(runner, "1d", levels, how)
    assert level_of(texture, 1, None, None)[0].tolist() == [0]
    assert level_of(texture, 1, np.zeros(1, np.float32), None)[0].tolist() == [1]
