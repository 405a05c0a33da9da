"""The formats of 8, 6 and 4 bits: every value, and rounding to the nearest with clamping."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from ptx.emulate import ieee
from ptx.emulate.ieee import E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32, Format, Rounding
from tests.emulator.engine.ieee import reference, samples

# Exponent bits and bias, from the formats' definition (Open Compute Project, OFP8 and MX).
LAYOUT = {"e4m3": (4, 7), "e5m2": (5, 15), "e2m3": (2, 1), "e3m2": (3, 3), "e2m1": (2, 1)}
FORMATS = [E4M3, E5M2, E2M3, E3M2, E2M1]


def value_of(bits: int, source: Format) -> Fraction:
    _, bias = LAYOUT[source.name]
    fraction_bits = source.precision - 1
    magnitude = bits & ((1 << (source.width - 1)) - 1)
    biased, fraction = magnitude >> fraction_bits, magnitude & ((1 << fraction_bits) - 1)
    significand = fraction + ((1 << fraction_bits) if biased else 0)
    value = significand * Fraction(2) ** (max(biased, 1) - bias - fraction_bits)
    return -value if bits >> (source.width - 1) else value


@pytest.mark.parametrize("source", FORMATS, ids=lambda f: f.name)
def test_every_narrow_value_widens_exactly_and_comes_back(source: Format) -> None:
    bits = np.arange(1 << source.width, dtype=np.uint8)
    halves = ieee.from_narrow(bits, source=source)
    wide = ieee.convert_float(halves, source=F16, target=F32)
    top = (1 << (source.width - 1)) - 1
    finite = (bits & top) <= source.max_finite
    for word in bits[finite].tolist():
        assert Fraction(float(wide[word])) == value_of(word, source)
    back = ieee.to_narrow(wide[finite], target=source)
    assert back.tolist() == bits[finite].tolist()


@pytest.mark.parametrize("target", FORMATS, ids=lambda f: f.name)
def test_narrowing_rounds_to_nearest_and_clamps(target: Format) -> None:
    rng = np.random.default_rng(13)
    x = np.concatenate(
        [
            samples.specials(np.float32),
            samples.random_bits(np.float32, 300, rng),
            *(samples.short(np.float32, 400, digits, 9, rng) for digits in (3, 5, 8)),
            samples.near_powers(np.float32, 300, 18, rng),
        ]
    )
    exponent_bits, bias = LAYOUT[target.name]
    got = ieee.to_narrow(x, target=target)
    for i, value in enumerate(x.tolist()):
        sign = int(np.signbit(value)) << (target.width - 1)
        if np.isnan(value):
            want = target.max_finite if target.nan is None else target.nan
        elif np.isinf(value):
            want = target.max_finite | sign
        else:
            want = reference.encode(
                Fraction(value),
                "RN",
                target.precision,
                exponent_bits,
                bias=bias,
                zero_negative=bool(sign),
                max_finite=target.max_finite,
                overflow=target.max_finite,
            )
        assert int(got[i]) == want, value


def test_pairs_hold_the_first_operand_above() -> None:
    one, two = np.float32(1), np.float32(-2)
    assert int(ieee.narrow_pair(one, two, target=E4M3)) == 0x38C0
    assert int(ieee.narrow_pair(one, two, target=E4M3, relu=True)) == 0x3800
    assert int(ieee.narrow_pair(one, two, target=E2M1)) == 0x2C
    words = ieee.halves_of_narrow_pair(np.array([0x38C0], np.uint16), source=E4M3)
    assert words.tolist() == [0x3C00_C000]
    assert int(ieee.halves_of_narrow_pair(np.uint8(0x2C), source=E2M1)) == 0x3C00_C000
    assert ieee.narrow_pair_of_halves(words, source=F16, target=E5M2).tolist() == [0x3CC0]


def test_not_a_number_and_infinity_survive_where_the_format_has_them() -> None:
    wide = ieee.from_narrow(np.array([0x7F, 0xFF, 0x7E], np.uint8), source=E4M3)
    assert wide.tolist() == [0x7FFF, 0x7FFF, 0x5F00]
    assert ieee.from_narrow(np.array([0x7C, 0xFC, 0x7D], np.uint8), source=E5M2).tolist() == [
        0x7C00,
        0xFC00,
        0x7FFF,
    ]


def test_exponent_bytes_round_magnitudes_to_powers_of_two() -> None:
    x = np.array([1, -3, 0, 2.0**-127, 2.0**-126 * 1.5, 3e38, np.inf, np.nan], np.float32)
    down = ieee.to_ue8m0(x, rounding=Rounding.RZ)
    assert down.tolist() == [127, 128, 0, 0, 1, 254, 255, 255]
    up = ieee.to_ue8m0(x, rounding=Rounding.RP, satfinite=True)
    assert up.tolist() == [127, 129, 0, 0, 2, 254, 254, 255]
    assert int(ieee.from_ue8m0_pair(np.uint16(0x7FFF))) == 0x3F80_7FFF
    assert int(ieee.from_ue8m0_pair(np.uint16(0x0001))) == 0x0040_0080
    with pytest.raises(ValueError, match="RZ or RP"):
        ieee.to_ue8m0(x, rounding=Rounding.RN)
