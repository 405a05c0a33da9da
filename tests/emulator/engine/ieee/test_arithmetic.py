"""Arithmetic in every mode against exact rationals, and its special values by PTX's rules."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ptx.emulate import ieee
from ptx.emulate.ieee import Rounding
from tests.emulator.engine.ieee import reference, samples
from tests.rows import all_rows

LAYOUT = {np.float32: (24, 8, np.uint32), np.float64: (53, 11, np.uint64)}
MODES: list[reference.Mode] = ["RN", "RZ", "RM", "RP"]


def root(x: Fraction) -> Fraction:
    """The square root, or a value between the same two neighbours of any format here."""
    shift = 2400
    scaled = (x.numerator << shift) // x.denominator
    low = math.isqrt(scaled)
    exact = low * low == scaled and (x.numerator << shift) % x.denominator == 0
    return Fraction(2 * low + (not exact), 2 << (shift // 2))


def exact_value(name: str, x: list[Fraction]) -> Fraction:
    match name:
        case "add":
            return x[0] + x[1]
        case "sub":
            return x[0] - x[1]
        case "mul":
            return x[0] * x[1]
        case "div":
            return x[0] / x[1]
        case "rcp":
            return 1 / x[0]
        case _:
            return root(x[0])


def zero_is_negative(name: str, operands: list[Any], mode: reference.Mode) -> bool:
    signs = [bool(np.signbit(x)) for x in operands]
    match name:
        case "add" | "sub":
            second = signs[1] ^ (name == "sub")
            return signs[0] if signs[0] == second else mode == "RM"
        case "mul" | "div":
            return signs[0] ^ signs[1]
        case _:
            return signs[0]


def expected_bits(
    name: str, operands: list[Any], mode: reference.Mode, dtype: type[Any]
) -> int | None:
    """The bits that are right, or None where an operand or the result is not a number."""
    if not all(map(np.isfinite, operands)):
        return None
    x = [Fraction(float(v)) for v in operands]
    if name in ("div", "rcp") and x[-1] == 0:
        return None
    if name == "sqrt" and x[0] < 0:
        return None
    precision, exponent_bits, _ = LAYOUT[dtype]
    value = exact_value(name, x)
    negative = zero_is_negative(name, operands, mode)
    return reference.encode(value, mode, precision, exponent_bits, zero_negative=negative)


def families(dtype: type[Any], n: int, count: int) -> list[list[samples.Values]]:
    rng = np.random.default_rng(7)
    reach = 140 if dtype is np.float32 else 1060
    digits = 12 if dtype is np.float32 else 27
    made = [samples.combinations(dtype, count)]
    made.append([samples.random_bits(dtype, n, rng) for _ in range(count)])
    for spread in (2, digits, reach):
        made.append([samples.short(dtype, n, digits, spread, rng) for _ in range(count)])
        made.append([samples.near_powers(dtype, n, spread, rng) for _ in range(count)])
    return made


@all_rows
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "rcp", "sqrt"])
def test_an_operation_rounds_its_exact_value_once(name: str, dtype: type[Any]) -> None:
    count = 1 if name in ("rcp", "sqrt") else 2
    for operands in families(dtype, 120, count):
        for mode in MODES:
            got = getattr(ieee, name)(*operands, rounding=Rounding[mode])
            bits = got.view(LAYOUT[dtype][2])
            for i in range(len(bits)):
                row = [x[i] for x in operands]
                want = expected_bits(name, row, mode, dtype)
                assert want is None or int(bits[i]) == want, (mode, [float(v).hex() for v in row])


@all_rows
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("name", "row"),
    [
        # A step of the error-free sum overflows although the sum does not.
        ("add", "-0x1.ffffffffffffep1021 0x1.fffffffffffffp1023"),
        ("sub", "0x1.fffffffffffffp1023 0x1.ffffffffffffep1021"),
        # A subnormal factor whose only bit lies where a normal one would be split.
        ("mul", "0x0.0000004p-1022 -0x1.fffffffffffffp162"),
        ("mul", "0x1.fffffffffffffp1023 0x1.0000000000001p-1"),
        ("mul", "0x1.fffffffffffffp1000 -0x1.0000000000001p1000"),
    ],
)
def test_operands_at_the_ends_of_the_range_round_once(
    name: str, row: str, mode: reference.Mode
) -> None:
    operands = [np.float64(float.fromhex(v)) for v in row.split()]
    got = getattr(ieee, name)(*operands, rounding=Rounding[mode])
    assert int(got.view(np.uint64)) == expected_bits(name, operands, mode, np.float64)


@given(
    x=st.integers(0, 2**64 - 1),
    y=st.integers(0, 2**64 - 1),
    name=st.sampled_from(["add", "sub", "mul", "div"]),
    mode=st.sampled_from(MODES),
    width=st.sampled_from([32, 64]),
)
@settings(max_examples=300, deadline=None)
def test_any_two_bit_patterns_round_once(
    x: int, y: int, name: str, mode: reference.Mode, width: int
) -> None:
    dtype = np.float32 if width == 32 else np.float64
    unsigned: type[Any] = LAYOUT[dtype][2]
    a, b = (unsigned(v & ((1 << width) - 1)).view(dtype) for v in (x, y))
    got = getattr(ieee, name)(a, b, rounding=Rounding[mode])
    want = expected_bits(name, [a, b], mode, dtype)
    assert want is None or int(got.view(unsigned)) == want


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinities_and_zero_divisors_are_exact_in_every_mode(
    dtype: type[Any], mode: reference.Mode
) -> None:
    rounding = Rounding[mode]
    inf, one, zero = dtype(np.inf), dtype(1), dtype(0)
    assert ieee.add(inf, one, rounding=rounding) == inf
    assert ieee.mul(inf, -one, rounding=rounding) == -inf
    assert ieee.div(one, -zero, rounding=rounding) == -inf
    assert ieee.div(one, -inf, rounding=rounding).tobytes() == (-zero).tobytes()
    assert ieee.rcp(-zero, rounding=rounding) == -inf
    assert ieee.sqrt(inf, rounding=rounding) == inf
    assert ieee.sqrt(-zero, rounding=rounding).tobytes() == (-zero).tobytes()
    assert ieee.fma(inf, one, one, rounding=rounding) == inf


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_a_float32_nan_is_canonical(name: str) -> None:
    payload = np.array([0x7F800001, 0xFFC12345, 0x7FFFFFFF], np.uint32).view(np.float32)
    got = getattr(ieee, name)(payload, np.float32(1))
    assert (got.view(np.uint32) == 0x7FFFFFFF).all()


def test_an_invalid_operation_gives_the_default_nan() -> None:
    inf = np.array([np.inf, -np.inf])
    for got in (ieee.sub(inf, inf), ieee.mul(inf, 0.0), ieee.div(inf, inf), ieee.sqrt(inf[1:])):
        assert (got.view(np.uint64) == 0xFFF8_0000_0000_0000).all()
    single = ieee.sqrt(np.float32(-1))
    assert int(single.view(np.uint32)) == 0x7FFF_FFFF


def test_a_float64_nan_keeps_the_payload_of_the_operand_that_the_hardware_prefers() -> None:
    first, second, third = np.array(
        [0x7FF0_0000_0000_0001, 0xFFF8_0000_0000_0002, 0x7FF0_0000_0000_0003], np.uint64
    ).view(np.float64)
    one = np.float64(1)

    def payload(x: Any) -> tuple[int, int]:
        return int(x.view(np.uint64)) & 0xFF, int(x.view(np.uint64)) >> 51

    assert payload(ieee.add(first, second)) == (2, 0x1FFF)
    assert payload(ieee.mul(first, one)) == (1, 0xFFF)
    assert payload(ieee.div(first, second)) == (1, 0xFFF)
    assert payload(ieee.fma(first, second, third)) == (2, 0x1FFF)
    assert payload(ieee.fma(first, one, third)) == (3, 0xFFF)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_flushing_keeps_signs_and_normal_numbers(dtype: type[Any]) -> None:
    tiny = np.finfo(dtype).tiny
    x = np.array([tiny, -tiny, tiny / 2, -tiny / 2, 0, 1, np.inf], dtype)
    want = np.array([tiny, -tiny, 0, -0.0, 0, 1, np.inf], dtype)
    assert ieee.flush_subnormals(x).tobytes() == want.tobytes()
    assert np.isnan(ieee.flush_subnormals(dtype(np.nan)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_saturation_clamps_to_the_unit_interval_and_drops_nan(dtype: type[Any]) -> None:
    x = np.array([-np.inf, -1, -0.0, 0.25, 1, 3, np.inf, np.nan], dtype)
    want = np.array([0, 0, 0, 0.25, 1, 1, 1, 0], dtype)
    assert ieee.saturate(x).tobytes() == want.tobytes()
    assert isinstance(ieee.saturate(dtype(2)), dtype)
