"""Parts of a texture fetch: places, weights, levels and faces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.texture_object import AddressMode, TexelImage, TextureObject
from ptx.emulate.texture import sampling
from ptx.emulate.texture.sampling import biased_level, gradient_level
from ptx.emulate.texture.texels import (
    Slice,
    TexelAxis,
    blend_floats,
    blend_normalized,
    nearest,
    pair,
    slice_weights,
    split_weight,
)

BYTE = st.integers(0, 255)


def _numbers(*values: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (AddressMode.WRAP, [3, 0, 4, 0, 1]),
        (AddressMode.CLAMP, [0, 0, 4, 4, 4]),
        (AddressMode.MIRROR, [1, 0, 4, 4, 3]),
    ],
)
def test_numbers_outside_come_back_by_the_address_mode(
    mode: AddressMode, expected: list[int]
) -> None:
    place, inside = TexelAxis(5, mode, normalized=True).inside(_numbers(-2, 0, 4, 5, 6))
    assert (place.tolist(), inside) == (expected, None)


def test_texel_coordinates_do_not_wrap() -> None:
    assert TexelAxis(5, AddressMode.WRAP, normalized=False).effective is AddressMode.CLAMP
    assert TexelAxis(5, AddressMode.BORDER, normalized=False).effective is AddressMode.BORDER


def test_a_normalised_coordinate_is_cut_before_it_is_scaled() -> None:
    # 0.05 in float32 is a little above 1/20, and what is left of it after 21 places a little below.
    axis = TexelAxis(100, AddressMode.CLAMP, normalized=True)
    assert nearest(axis, np.array([0.05], np.float32)).tolist() == [4]


def test_nan_is_the_first_texel() -> None:
    axis = TexelAxis(7, AddressMode.BORDER, normalized=False)
    assert nearest(axis, np.array([np.nan], np.float32)).tolist() == [0]


def test_a_fraction_has_eight_bits_and_rounds_up() -> None:
    axis = TexelAxis(9, AddressMode.WRAP, normalized=False)
    x = np.array([2.5, 2.5 + 1 / 512, 2.5 + 1 / 513, 3.499], np.float32)
    number, weight = pair(axis, x)
    assert (number.tolist(), weight.tolist()) == ([2, 2, 2, 3], [0, 1, 0, 0])


@pytest.mark.slow
@given(share=st.integers(0, 256), x=BYTE, y=BYTE)
def test_weights_of_a_slice_sum_to_its_share(share: int, x: int, y: int) -> None:
    weights = slice_weights(_numbers(share), _numbers(x), _numbers(y))
    assert sum(int(weight[0]) for weight in weights) == share
    assert all(int(weight[0]) >= 0 for weight in weights)
    for weight, a, b in zip(
        weights, (256 - x, x, 256 - x, x), (256 - y, 256 - y, y, y), strict=True
    ):
        assert abs(int(weight[0]) - share * a * b / 65536) <= 1
    assert sum(int(part[0]) for part in split_weight(_numbers(share), _numbers(x))) == share


@pytest.mark.slow
@given(a=BYTE, b=BYTE, weight=st.integers(0, 256))
def test_bytes_are_combined_to_the_nearest_of_16_bits(a: int, b: int, weight: int) -> None:
    texels = [np.array([[value]], np.uint8) for value in (a, b)]
    weights = [_numbers(256 - weight), _numbers(weight)]
    part = Slice(texels, weights, [w > 0 for w in weights])
    found = float(blend_normalized([part], np.dtype(np.uint8))[0, 0])
    real = (a * (256 - weight) + b * weight) / 256 / 255
    assert abs(found - real) <= 0.5 / 65535 + 1e-7


@pytest.mark.slow
@given(
    a=st.floats(-1000, 1000, width=32),
    b=st.floats(-1000, 1000, width=32),
    weight=st.integers(0, 256),
)
def test_floats_are_combined_with_four_guard_bits(a: float, b: float, weight: int) -> None:
    texels = [np.array([[value]], np.float32) for value in (a, b)]
    weights = [_numbers(256 - weight), _numbers(weight)]
    part = Slice(texels, weights, [w > 0 for w in weights])
    found = float(blend_floats([part], 24)[0, 0])
    real = (a * (256 - weight) + b * weight) / 256
    assert abs(found - real) <= max(abs(a), abs(b)) * 2.0**-23 + 2.0**-126  # no subnormals


def _texture(levels: int, *, mip_bias: float = 0.0, min_level: float = 0.0) -> TextureObject:
    memory = DeviceMemory(1 << 40, 1 << 16)
    dtype = np.dtype(np.float32)
    images = [TexelImage(memory, 1 << 40, dtype, 1, 64 >> k, 64 >> k) for k in range(levels)]
    clamp = AddressMode.CLAMP
    return TextureObject(
        tuple(images),
        (clamp, clamp, clamp),
        linear=True,
        normalized_coordinates=True,
        as_integer=False,
        mip_linear=True,
        max_level=20.0,
        mip_bias=mip_bias,
        min_level=min_level,
    )


def test_levels_count_in_256ths_and_stay_within_the_mipmap() -> None:
    asked = np.array([-3.0, 0.25, 1.0 + 1 / 512, 5.75, 9.0, np.nan], np.float32)
    first, share = biased_level(_texture(7), asked)
    assert first.tolist() == [0, 0, 1, 5, 6, 0]
    assert share.tolist() == [0, 64, 0, 192, 0, 0]


def test_bias_and_bounds_move_the_level() -> None:
    first, share = biased_level(
        _texture(7, mip_bias=0.5, min_level=1.0), np.array([0.0, 2.0], np.float32)
    )
    assert (first.tolist(), share.tolist()) == ([1, 2], [0, 128])


@given(st.floats(1 / 64, 1.0, width=32), st.floats(0, 6.28))
def test_the_level_of_a_gradient_is_near_the_logarithm_of_its_length(
    length: float, angle: float
) -> None:
    dx = (
        np.array([length * np.cos(angle)], np.float32),
        np.array([length * np.sin(angle)], np.float32),
    )
    none = (np.zeros(1, np.float32),) * 2
    first, share = gradient_level(_texture(7), dx, none)
    level = float(first[0] + share[0] / 256)
    assert abs(level - np.clip(np.log2(64 * length), 0, 6)) < 0.11  # the estimate of a length


def test_each_axis_points_at_the_middle_of_its_face() -> None:
    axes = np.repeat(np.eye(3, dtype=np.float32), 2, axis=0)
    axes[1::2] *= -1
    face, across, along = sampling.face_place(*axes.T)
    assert face.tolist() == [0, 1, 2, 3, 4, 5]
    assert across.tolist() == along.tolist() == [0.5] * 6


def test_a_step_across_an_edge_and_back_returns() -> None:
    extent = 5
    for face in range(6):
        for number in range(extent):
            for column, row in ((-1, number), (extent, number), (number, -1), (number, extent)):
                there = sampling.neighbour(_numbers(face), _numbers(column), _numbers(row), extent)
                other, x, y = (int(each[0]) for each in there)
                assert other // 2 != face // 2
                around = [(-1, y), (extent, y), (x, -1), (x, extent)]
                back = {
                    tuple(
                        int(each[0])
                        for each in sampling.neighbour(
                            _numbers(other), _numbers(a), _numbers(b), extent
                        )
                    )
                    for a, b in around
                }
                inner = (face, min(max(column, 0), extent - 1), min(max(row, 0), extent - 1))
                assert inner in back
