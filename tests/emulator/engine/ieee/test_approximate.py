"""Approximate functions: inside the PTX ISA's bounds, and its tables of special values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptx.emulate import ieee
from ptx.emulate.ieee import BF16, F16, F32
from tests.emulator.engine.ieee import samples

INF, NAN = math.inf, math.nan
TINY = 2.0**-140


def single(*values: float) -> samples.Values:
    return np.array(values, np.float32)


def identical(got: Any, want: samples.Values) -> bool:
    return bool(
        ((got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(want)).all()
    ) and (np.isnan(got).tolist() == np.isnan(want).tolist())


def positive(n: int) -> samples.Values:
    rng = np.random.default_rng(16)
    return np.exp2(rng.uniform(-126, 126, n)).astype(np.float32)


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("rcp_approx", lambda x: 1 / x),
        ("sqrt_approx", math.sqrt),
        ("rsqrt_approx", lambda x: 1 / math.sqrt(x)),
    ],
)
def test_algebraic_functions_are_within_an_ulp(name: str, exact: Callable[[float], float]) -> None:
    x = positive(2000)
    got = getattr(ieee, name)(x)
    for value, result in zip(x.tolist(), got.tolist(), strict=True):
        assert abs(result / exact(value) - 1) <= 2.0**-23


def test_ex2_lg2_and_tanh_are_within_their_bounds() -> None:
    x = np.linspace(-120, 120, 2001, dtype=np.float32)
    for value, result in zip(x.tolist(), ieee.ex2_approx(x).tolist(), strict=True):
        assert abs(result / 2.0**value - 1) <= 2.0**-22
    near = np.linspace(0.5, 2, 1001, dtype=np.float32)
    for value, result in zip(near.tolist(), ieee.lg2_approx(near).tolist(), strict=True):
        assert abs(result - math.log2(value)) <= 2.0**-22
    for value, result in zip(near.tolist(), ieee.tanh_approx(near).tolist(), strict=True):
        assert abs(result / math.tanh(value) - 1) <= 2.0**-11


def test_sine_and_cosine_are_within_their_absolute_bounds() -> None:
    for reach, bound in ((2 * math.pi, 2.0**-20.5), (100 * math.pi, 2.0**-14.7)):
        x = np.linspace(-reach, reach, 4001, dtype=np.float32)
        for function, exact in ((ieee.sin_approx, math.sin), (ieee.cos_approx, math.cos)):
            for value, result in zip(x.tolist(), function(x).tolist(), strict=True):
                assert abs(result - exact(value)) <= bound


def test_special_values_follow_the_tables() -> None:
    x = single(-INF, -1, -TINY, -0.0, 0.0, TINY, INF, NAN)
    assert identical(ieee.sqrt_approx(x, ftz=True), single(NAN, NAN, -0.0, -0.0, 0, 0, INF, NAN))
    assert identical(ieee.rsqrt_approx(x, ftz=True), single(NAN, NAN, -INF, -INF, INF, INF, 0, NAN))
    assert identical(ieee.rcp_approx(x, ftz=True), single(-0.0, -1, -INF, -INF, INF, INF, 0, NAN))
    assert identical(
        ieee.lg2_approx(x, ftz=True), single(NAN, NAN, -INF, -INF, -INF, -INF, INF, NAN)
    )
    assert identical(ieee.ex2_approx(x), single(0, 0.5, 1, 1, 1, 1, INF, NAN))
    assert identical(ieee.tanh_approx(x[[0, 3, 4, 6, 7]]), single(-1, -0.0, 0, 1, NAN))
    edges = x[[0, 3, 4, 6, 7]]
    assert identical(ieee.sin_approx(edges), single(NAN, -0.0, 0, NAN, NAN))
    assert identical(ieee.cos_approx(edges), single(NAN, 1, 1, NAN, NAN))


def test_subnormal_numbers_remain_without_ftz() -> None:
    assert ieee.sqrt_approx(np.float32(2.0**-140)) == np.float32(2.0**-70)
    assert ieee.lg2_approx(np.float32(2.0**-149)) == -149
    assert ieee.ex2_approx(np.float32(-140)) == np.float32(2.0**-140)
    assert ieee.ex2_approx(np.float32(-140), ftz=True) == 0


def test_a_divisor_near_overflow_gives_zero_or_nan() -> None:
    a = single(1, -1, INF, NAN, 2.0**127)
    huge = np.float32(2.0**126 * 1.5)
    assert identical(ieee.div_approx(a, huge), single(0, -0.0, NAN, NAN, 0))
    assert ieee.div_full(np.float32(2.0**127), huge) == np.float32(4 / 3)
    assert ieee.div_approx(np.float32(1), np.float32(2.0**126)) == np.float32(2.0**-126)


def test_flushed_quotients_are_normal_or_zero() -> None:
    x = np.uint32(0x3F7F_FFFF).view(np.float32)
    assert ieee.div_full(x, np.float32(2.0**126), ftz=True) == 0
    assert ieee.div(x, np.float32(2.0**126), ftz=True) == 0
    assert ieee.div(x, np.float32(2.0**126)) == np.float32(2.0**-126)


def test_double_approximations_fill_the_upper_word() -> None:
    x = np.array([3.0, -0.0, INF, NAN, 5e-324])
    got = ieee.rcp_approx_f64(x)
    assert (got.view(np.uint64) & np.uint64(0xFFFF_FFFF) == 0).all()
    assert abs(got[0] * 3 - 1) < 2.0**-19
    assert got[1:3].tolist() == [-INF, 0]
    assert int(got[3].view(np.uint64)) == 0x7FFF_FFFF_0000_0000
    assert got[4] == INF
    assert abs(ieee.rsqrt_approx_f64(np.float64(4)) * 2 - 1) < 2.0**-50


@pytest.mark.parametrize("kind", [F16, BF16], ids=lambda f: f.name)
def test_half_functions_are_within_an_ulp_of_their_format(kind: Any) -> None:
    x = np.linspace(-8, 8, 999, dtype=np.float32)
    bits = ieee.convert_float(x, source=F32, target=kind)
    wide = ieee.convert_float(bits, source=kind, target=F32).astype(np.float64)
    unit = 2.0 ** -(kind.precision - 1)
    for got, want in (
        (ieee.half_ex2_approx(bits, kind=kind), np.exp2(wide)),
        (ieee.half_tanh_approx(bits, kind=kind), np.tanh(wide)),
    ):
        result = ieee.convert_float(got, source=kind, target=F32).astype(np.float64)
        assert (np.abs(result - want) <= unit * np.abs(want) + 2.0**-24).all()
