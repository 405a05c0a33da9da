"""Minimum, maximum and sign operations by PTX's tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ptx.emulate import ieee
from ptx.emulate.ieee.comparison import Property
from tests.emulator.engine.ieee import samples
from tests.rows import all_rows

CANONICAL = 0x7FFF_FFFF


def bits(x: Any) -> int:
    return int(x.view(np.uint32 if x.dtype == np.float32 else np.uint64))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_extremes_prefer_numbers_and_order_signed_zeros(name: str, dtype: type[Any]) -> None:
    a, b = samples.combinations(dtype, 2)
    got = getattr(ieee, name)(a, b)
    pick = min if name == "minimum" else max
    for i in range(len(a)):
        numbers = [v for v in (a[i], b[i]) if not np.isnan(v)]
        if not numbers:
            assert np.isnan(got[i])
            continue
        want = pick(numbers, key=lambda v: (float(v), not np.signbit(v)))
        assert bits(got[i]) == bits(want)


def test_an_extreme_of_two_nans_is_the_canonical_nan() -> None:
    x = np.uint32(0xFFC0_1234).view(np.float32)
    assert bits(ieee.minimum(x, x)) == CANONICAL
    assert bits(ieee.maximum(x, np.float32(1), nan=True)) == CANONICAL


def test_the_modifiers_of_extremes_act_on_magnitudes() -> None:
    a, b, c = np.float32(-3), np.float32(2), np.float32(-1)
    assert ieee.maximum(a, b, xorsign=True) == -3
    assert ieee.minimum(a, b, xorsign=True) == -2
    assert ieee.maximum(a, b, magnitudes=True) == 3
    assert ieee.minimum(a, b, c) == -3
    assert ieee.maximum(a, np.float32(np.nan), c) == -1
    assert bits(ieee.maximum(a, np.float32(np.nan), c, nan=True)) == CANONICAL


def test_sign_operations_change_the_sign_bit_only() -> None:
    x = np.array([1.5, -0.0, -np.inf, 5e-324])
    assert ieee.neg(x).tobytes() == (-x).tobytes()
    assert ieee.absolute(x).tobytes() == np.array([1.5, 0.0, np.inf, 5e-324]).tobytes()
    assert ieee.copysign(np.float32(-0.0), np.float32(7)) == -7


def test_sign_operations_give_the_nan_of_arithmetic() -> None:
    single = np.uint32(0xFF80_0001).view(np.float32)
    double = np.uint64(0xFFF0_0000_0000_0001).view(np.float64)
    assert bits(ieee.neg(single)) == bits(ieee.absolute(single)) == CANONICAL
    assert bits(ieee.neg(double)) == bits(ieee.absolute(double)) == 0xFFF8_0000_0000_0001
    assert bits(ieee.copysign(np.float32(1), single)) == 0x7F80_0001


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_value_has_its_properties(dtype: type[Any]) -> None:
    tiny = np.finfo(dtype).tiny
    x = np.array([0, -1, tiny, tiny / 2, np.inf, np.nan], dtype)
    expected: dict[Property, list[int]] = {
        "finite": [1, 1, 1, 1, 0, 0],
        "infinite": [0, 0, 0, 0, 1, 0],
        "number": [1, 1, 1, 1, 1, 0],
        "notanumber": [0, 0, 0, 0, 0, 1],
        "normal": [1, 1, 1, 0, 0, 0],
        "subnormal": [0, 0, 0, 1, 0, 0],
    }
    for which, want in expected.items():
        assert ieee.testp(x, which=which).astype(int).tolist() == want


@all_rows
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 64])
@pytest.mark.parametrize("signalling", [0x7F80_0001, 0xFF80_0001, 0x7FBF_FFFF])
def test_a_signalling_nan_loses_among_any_number_of_lanes(count: int, signalling: int) -> None:
    nan = np.full(count, signalling, np.uint32).view(np.float32)
    number = np.full(count, -2, np.float32)
    for function in (ieee.minimum, ieee.maximum):
        assert function(number, nan).tolist() == number.tolist()
        assert function(nan, number).tolist() == number.tolist()
        assert bits(function(number, nan, nan=True)[0]) == CANONICAL
    assert ieee.saturate(nan).tobytes() == bytes(4 * count)
    mixed = np.append(np.float32(1e-40), np.append(nan, np.float32(3)))
    assert ieee.flush_subnormals(mixed)[0] == 0
