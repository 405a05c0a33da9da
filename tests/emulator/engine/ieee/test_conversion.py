"""Conversions against exact rationals, for every pair of formats and every mode."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ptx.emulate import ieee
from ptx.emulate.ieee import BF16, F16, F32, F64, Format, Rounding
from tests.emulator.engine.ieee import reference, samples
from tests.rows import all_rows

MODES: list[reference.Mode] = ["RN", "RZ", "RM", "RP"]
EXPONENT_BITS = {"f16": 5, "bf16": 8, "f32": 8, "f64": 11}
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def bits_of(x: Any) -> samples.Values:
    array = np.asarray(x)
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))


def encoded(value: Fraction, mode: reference.Mode, target: Format, negative: bool) -> int:
    return reference.encode(
        value, mode, target.precision, EXPONENT_BITS[target.name], zero_negative=negative
    )


def floats(dtype: type[Any], n: int) -> samples.Values:
    rng = np.random.default_rng(11)
    made = [samples.specials(dtype), samples.random_bits(dtype, n, rng)]
    made += [samples.near_powers(dtype, n, spread, rng) for spread in (8, 30, 66, 150)]
    made += [samples.short(dtype, n, digits, 12, rng) for digits in (4, 9, 12, 17)]
    # Few bits after a tie of each narrow format.
    ties = np.ldexp(rng.integers(0, 1 << 14, n) * 2 + 1.0, rng.integers(-40, 6, n))
    made.append((ties * (1 + rng.integers(-1, 2, n) * 2.0**-22)).astype(dtype))
    return np.concatenate(made)


@all_rows
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("source", "target"),
    [(F32, F16), (F32, BF16), (F64, F16), (F64, BF16), (F64, F32)],
    ids=lambda f: f.name,
)
def test_a_narrower_format_gets_the_value_rounded_once(
    source: Format, target: Format, mode: reference.Mode
) -> None:
    x = floats(np.float32 if source is F32 else np.float64, 150)
    got = bits_of(ieee.convert_float(x, source=source, target=target, rounding=Rounding[mode]))
    for i, value in enumerate(x.tolist()):
        if np.isfinite(value):
            want = encoded(Fraction(value), mode, target, bool(np.signbit(value)))
            assert int(got[i]) == want, value.hex()
        elif np.isinf(value):
            assert int(got[i]) == (target.infinity or 0) | (value < 0) << (target.width - 1)


@pytest.mark.parametrize("target", [F16, BF16], ids=lambda f: f.name)
def test_a_tie_goes_away_from_zero_where_that_mode_is_requested(target: Format) -> None:
    x = floats(np.float32, 50)
    x = x[np.isfinite(x)]
    got = bits_of(ieee.convert_float(x, source=F32, target=target, rounding=Rounding.RNA))
    for i, value in enumerate(x.tolist()):
        want = encoded(Fraction(value), "RNA", target, bool(np.signbit(value)))
        assert int(got[i]) == want, value.hex()


@pytest.mark.parametrize("source", [F16, BF16], ids=lambda f: f.name)
def test_widening_is_exact_for_every_value(source: Format) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    single = ieee.convert_float(bits, source=source, target=F32)
    double = ieee.convert_float(bits, source=source, target=F64)
    finite = np.isfinite(double)
    assert (single[finite] == double[finite]).all()
    assert (np.isnan(single) == np.isnan(double)).all()
    bias, fraction = (15, 10) if source is F16 else (127, 7)
    for word in range(0, 65536, 7):
        if finite[word]:
            biased, low = (word & 0x7FFF) >> fraction, word & ((1 << fraction) - 1)
            significand = low + (1 << fraction if biased else 0)
            value = Fraction(significand) * Fraction(2) ** (max(biased, 1) - bias - fraction)
            assert Fraction(float(double[word])) == (-value if word >> 15 else value)


@all_rows
@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_to_integer_rounds_and_clamps(dtype: type[Any], name: str) -> None:
    info = np.iinfo(name)
    x = floats(dtype, 100)
    edges = np.array([float(info.min), float(info.max), 0.5, 1.5, 2.5, -0.5, 254.5], dtype)
    x = np.concatenate([x, edges, np.nextafter(edges, dtype(0)), edges + dtype(1)])
    for mode in MODES:
        got = ieee.float_to_integer(x, dtype=np.dtype(name), rounding=Rounding[mode])
        assert got.dtype == name
        for i, value in enumerate(x.tolist()):
            if np.isnan(value):
                wide = dtype is np.float64 or info.bits == 64
                want = (info.min or 1 << (info.bits - 1)) if wide else 0
            elif np.isinf(value):
                want = info.max if value > 0 else info.min
            else:
                whole = reference.round_to_integer(Fraction(value), mode)
                want = min(max(whole, info.min), info.max)
            assert int(got[i]) == want, (mode, value.hex())


@all_rows
@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("target", [F16, BF16, F32, F64], ids=lambda f: f.name)
def test_integer_to_float_rounds_once(target: Format, name: str) -> None:
    info = np.iinfo(name)
    rng = np.random.default_rng(12)
    x = rng.integers(info.min, info.max, 150, dtype=name, endpoint=True)
    shifted = x >> rng.integers(0, info.bits - 1, x.size).astype(name)
    # A single bit far below a tie decides.
    powers = [
        min(info.max, (1 << k) + (1 << max(k - d, 0)) + e)
        for k in range(info.bits - 1)
        for d in (8, 11, 24, 53)
        for e in (-1, 0, 1)
    ]
    x = np.concatenate([x, shifted, np.array([*powers, info.min, info.max, 0], name)])
    for mode in MODES:
        if target.width == 16:
            got = ieee.integer_to_bits(x, target=target, rounding=Rounding[mode])
        else:
            kind = "f4" if target is F32 else "f8"
            got = bits_of(ieee.integer_to_float(x, dtype=np.dtype(kind), rounding=Rounding[mode]))
        for i, value in enumerate(x.tolist()):
            assert int(got[i]) == encoded(Fraction(value), mode, target, False), (mode, value)


def test_rounding_to_integral_values_keeps_the_sign_of_zero() -> None:
    x = np.array([-0.5, 0.5, 1.5, -2.5, 3e38, -0.0], np.float32)
    got = ieee.round_to_integral(x, source=F32, rounding=Rounding.RN)
    assert got.tobytes() == np.array([-0.0, 0.0, 2, -2, 3e38, -0.0], np.float32).tobytes()
    halves = ieee.convert_float(x, source=F32, target=F16)
    up = ieee.round_to_integral(halves, source=F16, rounding=Rounding.RP)
    assert ieee.convert_float(up[:4], source=F16, target=F32).tolist() == [0, 1, 2, -2]


def test_tf32_keeps_ten_fraction_bits() -> None:
    x = np.array([0x3F80_1000, 0x3F80_3000, 0x3F80_0FFF, 0xBF80_1001, 0x7F7F_FFFF], np.uint32)
    single = x.view(np.float32)
    nearest = ieee.to_tf32(single, rounding=Rounding.RN)
    assert nearest.tolist() == [0x3F80_0000, 0x3F80_4000, 0x3F80_0000, 0xBF80_2000, 0x7F80_0000]
    away = ieee.to_tf32(single, rounding=Rounding.RNA, satfinite=True)
    assert away.tolist() == [0x3F80_2000, 0x3F80_4000, 0x3F80_0000, 0xBF80_2000, 0x7F7F_E000]
    cut = ieee.to_tf32(single, rounding=Rounding.RZ, relu=True)
    assert cut.tolist() == [0x3F80_0000, 0x3F80_2000, 0x3F80_0000, 0, 0x7F7F_E000]


def test_saturation_relu_and_satfinite_bound_the_result() -> None:
    x = np.array([-2, 0.25, 7e4, np.inf, np.nan, -np.inf], np.float32)
    unit = ieee.convert_float(x, source=F32, target=F16, sat=True)
    assert unit.tolist() == [0, 0x3400, 0x3C00, 0x3C00, 0, 0]
    finite = ieee.convert_float(x, source=F32, target=F16, satfinite=True)
    assert finite.tolist() == [0xC000, 0x3400, 0x7BFF, 0x7BFF, 0x7FFF, 0xFBFF]
    positive = ieee.convert_float(x, source=F32, target=F16, relu=True)
    assert positive.tolist() == [0, 0x3400, 0x7C00, 0x7C00, 0x7FFF, 0]


def test_a_nan_keeps_its_payload_only_to_and_from_the_double_format() -> None:
    single = np.uint32(0xFF80_0001).view(np.float32)
    wide = ieee.convert_float(single, source=F32, target=F64)
    assert int(wide.view(np.uint64)) == 0xFFF8_0000_2000_0000
    back = ieee.convert_float(wide, source=F64, target=F32)
    assert int(back.view(np.uint32)) == 0xFFC0_0001
    assert int(ieee.convert_float(single, source=F32, target=BF16)) == 0x7FFF
    half = ieee.convert_float(np.uint16(0xFC01), source=F16, target=F32)
    assert int(half.view(np.uint32)) == 0x7FFF_FFFF


def test_flushing_conversions_drop_subnormal_operands_and_results() -> None:
    tiny = np.float64(-1e-40)
    assert ieee.convert_float(tiny, source=F64, target=F32, ftz=True).tobytes() == (
        np.float32(-0.0).tobytes()
    )
    assert ieee.convert_float(np.float32(1e-40), source=F32, target=F64, ftz=True) == 0


@pytest.mark.parametrize(("target", "count"), [(F16, 13), (BF16, 16)], ids=lambda v: str(v)[:12])
def test_stochastic_rounding_carries_as_often_as_the_dropped_part_is_large(
    target: Format, count: int
) -> None:
    quarter = np.float32(1 + 0.25 * 2.0 ** (1 - target.precision))
    random = np.arange(1 << count, dtype=np.uint32)
    x = np.full(random.size, -quarter)
    bits = ieee.round_stochastically(x, random, target=target)
    low, high = np.unique(bits).tolist()
    assert high == low + 1
    assert (bits == high).mean() == 0.25
    assert ieee.convert_float(np.uint16(low), source=target, target=F32) == -1
    exact = ieee.round_stochastically(np.float32(1.5), np.uint32(0xFFFF_FFFF), target=target)
    assert ieee.convert_float(exact, source=target, target=F32) == 1.5


def test_rounding_modes_that_an_instruction_lacks_are_rejected() -> None:
    one = np.float32(1)
    with pytest.raises(ValueError, match="not a rounding mode of arithmetic"):
        ieee.add(one, one, rounding=Rounding.RNA)
    with pytest.raises(ValueError, match=r"cvt\.tf32"):
        ieee.to_tf32(one, rounding=Rounding.RM)
    with pytest.raises(ValueError, match="random"):
        ieee.convert_float(one, source=F32, target=F16, rounding=Rounding.RS)
