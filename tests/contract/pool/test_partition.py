from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from cudadrv import GpuRuntime, balanced_partition

from ..runtime.devices import device_with, runtime_with, scored


def assert_covers(tiles: tuple[tuple[int, range], ...], n_units: int) -> None:
    cursor = 0
    for _, part in tiles:
        assert part.start == cursor
        assert part.stop > part.start
        assert part.step == 1
        cursor = part.stop
    assert cursor == n_units


def test_single_device_one_full_tile() -> None:
    assert balanced_partition(runtime_with(device_with(0, 80, 16.0)), 100) == ((0, range(100)),)


def test_three_devices_even_split_when_scores_equal() -> None:
    rt = runtime_with(*(device_with(ordinal, 80, 16.0) for ordinal in range(3)))
    assert balanced_partition(rt, 99) == (
        (0, range(33)),
        (1, range(33, 66)),
        (2, range(66, 99)),
    )
    assert balanced_partition(rt, 100) == (
        (0, range(34)),
        (1, range(34, 67)),
        (2, range(67, 100)),
    )


def test_three_devices_weighted_by_unequal_scores() -> None:
    devices = [device_with(0, 132, 40.0), device_with(1, 40, 8.0), device_with(2, 40, 8.0)]
    tiles = balanced_partition(runtime_with(*devices), 1000)
    assert_covers(tiles, 1000)
    widths = [len(part) for _, part in tiles]
    assert tiles[0][0] == 0
    assert widths[0] > max(widths[1:])
    assert widths[1] == widths[2]
    total = sum(device.score() for device in devices)
    for device, width in zip(devices, widths, strict=True):
        assert abs(width - device.score() / total * 1000) <= 1


def test_fewer_units_than_devices_drops_empty_tiles() -> None:
    rt = runtime_with(
        device_with(0, 132, 40.0),
        device_with(1, 100, 24.0),
        device_with(2, 80, 16.0),
        device_with(3, 60, 12.0),
        device_with(4, 40, 8.0),
    )
    tiles = balanced_partition(rt, 2)
    assert_covers(tiles, 2)
    assert [ordinal for ordinal, _ in tiles] == [0, 1]


def test_zero_units_yields_no_tiles() -> None:
    rt = runtime_with(device_with(0, 80, 16.0), device_with(1, 80, 16.0))
    assert balanced_partition(rt, 0) == ()


def test_no_device_yields_no_tiles() -> None:
    rt = GpuRuntime(device=device_with(0, 80, 16.0), devices=())
    assert balanced_partition(rt, 10) == ()


def test_a_negative_count_is_rejected() -> None:
    with pytest.raises(ValueError, match="-1 units"):
        balanced_partition(runtime_with(device_with(0, 80, 16.0)), -1)


def test_devices_given_in_any_order_are_served_by_score() -> None:
    rt = runtime_with(device_with(7, 10, 1.0), device_with(3, 100, 10.0), device_with(5, 10, 1.0))
    assert [ordinal for ordinal, _ in balanced_partition(rt, 1000)] == [3, 7, 5]


def test_more_units_than_a_float_counts_are_shared_exactly() -> None:
    n = (1 << 63) + 1
    rt = runtime_with(scored(0, 3.0), scored(1, 2.0), scored(2, 1.0))
    assert balanced_partition(rt, n) == (
        (0, range(n // 2 + 1)),
        (1, range(n // 2 + 1, n // 2 + 1 + n // 3)),
        (2, range(n // 2 + 1 + n // 3, n)),
    )


@given(st.lists(st.floats(), min_size=1, max_size=64), st.integers(0, 1 << 40))
def test_any_scores_cover_everything_in_order_and_near_the_ideal(
    scores: list[float], n_units: int
) -> None:
    rt = runtime_with(*(scored(ordinal, score) for ordinal, score in enumerate(scores)))
    tiles = balanced_partition(rt, n_units)
    assert_covers(tiles, n_units)
    assert len({ordinal for ordinal, _ in tiles}) == len(tiles)

    weights = [score if score > 0 else 0.0 for score in scores]
    served = [ordinal for ordinal, _ in tiles]
    assert served == sorted(served, key=lambda ordinal: (-weights[ordinal], ordinal))

    if not 0 < sum(weights) < math.inf:
        weights = [1.0] * len(weights)
    whole = sum(map(Fraction, weights))
    widths = dict.fromkeys(range(len(scores)), 0)
    widths.update({ordinal: len(part) for ordinal, part in tiles})
    for ordinal, width in widths.items():
        assert abs(width - Fraction(weights[ordinal]) * n_units / whole) < 1
