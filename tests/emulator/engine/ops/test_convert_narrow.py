"""Conversions to and from packed and narrow formats, against values counted out by hand."""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

from tests.emulator.engine.ieee.reference import encode
from tests.emulator.engine.ops.lanes import Bits, Case, run_lanes
from tests.rows import all_rows

# Exponent bits, fraction bits, bias, the codes above zero that are no finite numbers.
FORMATS = {
    "e2m1x2": (2, 1, 1, ()),
    "e2m3x2": (2, 3, 1, ()),
    "e3m2x2": (3, 2, 3, ()),
    "e4m3x2": (4, 3, 7, (0x7F,)),
    "e5m2x2": (5, 2, 15, (0x7C, 0x7D, 0x7E, 0x7F)),
}
NAN = {"e4m3x2": 0x7F, "e5m2x2": 0x7F}


@cache
def table(name: str) -> list[Fraction]:
    """The values of the codes from 0 up, as far as they are finite."""
    exponent_bits, fraction_bits, bias, missing = FORMATS[name]
    values = []
    for code in range((1 << exponent_bits + fraction_bits) - len(missing)):
        exponent, fraction = code >> fraction_bits, code & ((1 << fraction_bits) - 1)
        whole = fraction + ((1 << fraction_bits) if exponent else 0)
        values.append(Fraction(2) ** (max(exponent, 1) - bias - fraction_bits) * whole)
    return values


def nearest(name: str, x: float, cut: bool) -> int:
    """The code for a number: nearest, a tie to the even code, clamped; `cut`: towards zero."""
    exponent_bits, fraction_bits, *_ = FORMATS[name]
    values = table(name)
    sign = (1 << exponent_bits + fraction_bits) if math.copysign(1, x) < 0 else 0
    if math.isnan(x):
        return NAN.get(name, len(values) - 1)
    if abs(x) >= values[-1]:
        return sign | len(values) - 1
    magnitude = Fraction(abs(x))
    below = bisect_right(values, magnitude) - 1
    left, right = magnitude - values[below], values[below + 1] - magnitude
    up = not cut and (right < left or (right == left and below % 2 == 1))
    return sign | below + up


def samples(name: str) -> Bits:
    """Every value and every midpoint of a format, their neighbours, and the ends of float32."""
    values = [float(value) for value in table(name)]
    middles = [(a + b) / 2 for a, b in pairwise(values)]
    exact = np.array([*values, *middles, 2 * values[-1], 1e-45, 1e-38, 3e38, math.inf], np.float32)
    around = np.concatenate(
        [exact, np.nextafter(exact, np.float32(0)), np.nextafter(exact, np.float32(math.inf))]
    )
    found = np.concatenate([around, -around, np.array([math.nan], np.float32)])
    return found.astype(np.float32).view(np.uint32)


def joined(name: str, high: int, low: int) -> int:
    return high << (4 if name == "e2m1x2" else 8) | low


@all_rows
@pytest.mark.parametrize(
    ("name", "form"),
    [
        *product(FORMATS, ["rn", "relu"]),
        *product(["e2m1x2", "e2m3x2", "e3m2x2"], ["rz"]),
    ],
)
def test_two_floats_become_a_pair(name: str, form: str) -> None:
    high = samples(name)
    low = high[::-1].copy()
    modifiers = {"rn": "rn.satfinite", "rz": "rz.satfinite", "relu": "rn.satfinite.relu"}[form]
    target = "8" if name == "e2m1x2" else "16"
    (got,) = run_lanes([Case(f"cvt.{modifiers}.{name}.f32", target, ("f32", "f32"))], [high, low])
    want = []
    for a, b in zip(high.view(np.float32), low.view(np.float32), strict=True):
        if form == "relu":
            # A negative number and -0 become +0, a NaN stays.
            a, b = (x if math.isnan(x) or math.copysign(1, x) > 0 else 0.0 for x in (a, b))
        want.append(joined(name, *(nearest(name, float(x), form == "rz") for x in (a, b))))
    assert got.tolist() == want


@pytest.mark.parametrize("half", ["f16", "bf16"])
@pytest.mark.parametrize("name", FORMATS)
def test_packed_halves_become_a_pair(name: str, half: str) -> None:
    rng = np.random.default_rng(1)
    patterns = rng.integers(0, 1 << 16, 800, dtype=np.uint16)
    exact = samples(name)[rng.integers(0, 40, 400)]
    if half == "f16":
        with np.errstate(over="ignore"):
            patterns[::2] = exact.view(np.float32).astype(np.float16).view(np.uint16)
    else:
        patterns[::2] = exact >> 16
    target = "8" if name == "e2m1x2" else "16"
    words = patterns.view(np.uint32)
    (got,) = run_lanes([Case(f"cvt.rn.satfinite.{name}.{half}x2", target, ("32",))], [words])
    if half == "f16":
        values = patterns.view(np.float16).astype(np.float32)
    else:
        values = (patterns.astype(np.uint32) << 16).view(np.float32)
    codes = [nearest(name, float(x), False) for x in values]
    want = [joined(name, high, low) for low, high in zip(codes[::2], codes[1::2], strict=True)]
    assert got.tolist() == want


@pytest.mark.parametrize("half", ["f16", "bf16"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_pair_becomes_packed_halves(name: str, half: str) -> None:
    exponent_bits, fraction_bits, _, _ = FORMATS[name]
    width = exponent_bits + fraction_bits + 1
    values = table(name)
    codes = list(range(1 << width))
    high, low = np.array(codes), np.array(codes[::-1])
    pair = joined(name, high, low)  # type: ignore[arg-type]  # arrays shift as integers do
    bits = np.asarray(pair).astype(np.uint8 if name == "e2m1x2" else np.uint16)
    source = "8" if name == "e2m1x2" else "16"
    (got,) = run_lanes([Case(f"cvt.rn.{half}x2.{name}", "32", (source,))], [bits])

    def decoded(code: int) -> int:
        magnitude = code & ((1 << width - 1) - 1)
        sign = 0x8000 if code >> width - 1 else 0
        if magnitude >= len(values):
            infinite = name == "e5m2x2" and magnitude == 0x7C
            return sign | (0x7C00 if half == "f16" else 0x7F80) if infinite else 0x7FFF
        shape = (11, 5) if half == "f16" else (8, 8)
        return sign | encode(values[magnitude], "RN", *shape)

    want = [decoded(a) << 16 | decoded(b) for a, b in zip(codes, codes[::-1], strict=True)]
    assert got.tolist() == want


def test_scales_are_powers_of_two_at_or_around() -> None:
    floats = np.array([0.0, 1.0, 1.5, 2.0, 3.0, 2.0**-127, 2.0**-128, 1e-45, 2.0**127, 3e38, -5.0,
                       math.inf, math.nan, 0.75], np.float32)  # fmt: skip
    bits = floats.view(np.uint32)
    cases = [
        Case(f"cvt.{mode}.satfinite.ue8m0x2.f32", "16", ("f32", "f32")) for mode in ("rz", "rp")
    ]
    down, up = run_lanes(cases, [bits, bits])
    low = [0, 127, 127, 128, 128, 0, 0, 0, 254, 254, 129, 254, 255, 126]
    high = [0, 127, 128, 128, 129, 0, 0, 0, 254, 254, 130, 254, 255, 127]
    assert down.tolist() == [x << 8 | x for x in low]
    assert up.tolist() == [x << 8 | x for x in high]
    (halves,) = run_lanes(
        [Case("cvt.rz.satfinite.ue8m0x2.bf16x2", "16", ("32",))],
        [np.array([0x3FC03F80, 0x7FFFC0A0], np.uint32)],
    )
    assert halves.tolist() == [127 << 8 | 127, 255 << 8 | 129]
    (back,) = run_lanes(
        [Case("cvt.rn.bf16x2.ue8m0x2", "32", ("16",))],
        [np.array([127 << 8 | 128, 255 << 8, 1], np.uint16)],
    )
    assert back.tolist() == [0x3F804000, 0x7FFF0040, 0x00400080]


def test_integers_are_clamped_and_packed() -> None:
    rng = np.random.default_rng(2)
    a, b, c = (rng.integers(-300, 300, 100).astype(np.int32) for _ in range(3))
    a[:4], b[:4] = [2**31 - 1, -(2**31), 70000, -70000], [-(2**31), 2**31 - 1, 40000, -40000]
    operands = [x.view(np.uint32) for x in (a, b, c)]
    kinds = ["s2", "u2", "s4", "u4", "s8", "u8"]
    cases = [Case(f"cvt.pack.sat.{kind}.s32.b32", "32", ("32",) * 3) for kind in kinds]
    cases += [Case(f"cvt.pack.sat.{kind}.s32", "32", ("32",) * 2) for kind in ("s16", "u16")]
    for case, got in zip(cases, run_lanes(cases, operands), strict=True):
        kind = case.instruction.split(".")[3]
        bits = int(kind[1:])
        low, high = (
            (-(1 << bits - 1), (1 << bits - 1) - 1) if kind[0] == "s" else (0, (1 << bits) - 1)
        )

        def clamped(x: int, low: int = low, high: int = high, bits: int = bits) -> int:
            return min(max(x, low), high) & ((1 << bits) - 1)

        want = []
        for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True):
            above = z << 2 * bits if bits < 16 else 0
            want.append((above | clamped(x) << bits | clamped(y)) & 0xFFFFFFFF)
        assert got.tolist() == want, case.instruction


@pytest.mark.parametrize("half", ["f16", "bf16"])
def test_mixed_precision_rounds_once(half: str) -> None:
    rng = np.random.default_rng(3)
    shape = (11, 5) if half == "f16" else (8, 8)
    halves = [rng.integers(0, 1 << 16, 300, dtype=np.uint16) for _ in range(2)]
    floats = rng.integers(0, 1 << 32, 300, dtype=np.uint32)
    floats[:200] = rng.normal(size=200).astype(np.float32).view(np.uint32)

    def exact(bits: int, precision: int, exponent_bits: int) -> Fraction | None:
        fraction_bits = precision - 1
        exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1)
        if exponent == (1 << exponent_bits) - 1:
            return None
        whole = (bits & ((1 << fraction_bits) - 1)) + ((1 << fraction_bits) if exponent else 0)
        bias = (1 << exponent_bits - 1) - 1
        sign = -1 if bits >> (fraction_bits + exponent_bits) else 1
        return sign * whole * Fraction(2) ** (max(exponent, 1) - bias - fraction_bits)

    for mode in ("rn", "rz", "rm", "rp"):
        two = [Case(f"{name}.{mode}.f32.{half}", "f32", ("16", "f32")) for name in ("add", "sub")]
        sums, differences = run_lanes(two, [halves[0], floats])
        (fused,) = run_lanes(
            [Case(f"fma.{mode}.f32.{half}", "f32", ("16", "16", "f32"))], [*halves, floats]
        )
        checked = 0
        for lane in range(300):
            a, b = (exact(int(x[lane]), *shape) for x in halves)
            c = exact(int(floats[lane]), 24, 8)
            if a is None or b is None or c is None:
                continue
            for got, want in ((sums, a + c), (differences, a - c), (fused, a * b + c)):
                if want:
                    rounding = {"rn": "RN", "rz": "RZ", "rm": "RM", "rp": "RP"}[mode]
                    assert int(got[lane]) == encode(want, rounding, 24, 8)  # type: ignore[arg-type]  # one of the four
                    checked += 1
        assert checked > 500
