"""Half-precision arithmetic against exact rationals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ptx.emulate import ieee
from ptx.emulate.ieee import BF16, F16, F32, F64, Format
from tests.emulator.engine.ieee import reference, samples

EDGES = {
    "f16": [0, 1, 2, 0x3FF, 0x400, 0x401, 0x3BFF, 0x3C00, 0x3C01, 0x4000, 0x6BFF, 0x7BFF],
    "bf16": [0, 1, 2, 0x7F, 0x80, 0x81, 0x3F7F, 0x3F80, 0x3F81, 0x4000, 0x7E80, 0x7F7F],
}
KINDS = [F16, BF16]


def operands(kind: Format, count: int) -> list[samples.Values]:
    rng = np.random.default_rng(14)
    edges = np.array(EDGES[kind.name], np.uint16)
    edges = np.concatenate([edges, edges | np.uint16(0x8000)])
    columns = []
    for _ in range(count):
        near = samples.short(np.float32, 800, 11, 9, rng)
        columns.append(
            np.concatenate(
                [
                    rng.choice(edges, 800),
                    rng.integers(0, 65536, 800).astype(np.uint16),
                    ieee.convert_float(near, source=F32, target=kind),
                ]
            )
        )
    if count == 3:
        # Addends far below a product that sits on a tie, which only their sign breaks.
        a = ieee.convert_float(1 + np.arange(1, 129) / np.float32(128), source=F32, target=kind)
        tiny = np.full(a.size, 0x0001, np.uint16) | (np.arange(a.size) % 2 << 15).astype(np.uint16)
        columns = [np.concatenate([c, d]) for c, d in zip(columns, (a, a, tiny), strict=True)]
    return columns


def exact(kind: Format, bits: samples.Values) -> list[float]:
    values: list[float] = ieee.convert_float(bits, source=kind, target=F64).tolist()
    return values


@pytest.mark.parametrize("kind", KINDS, ids=lambda f: f.name)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "fma"])
def test_a_half_operation_rounds_once(name: str, kind: Format) -> None:
    columns = operands(kind, 3 if name == "fma" else 2)
    got = getattr(ieee, f"half_{name}")(*columns, kind=kind)
    exponent_bits = 5 if kind is F16 else 8
    for i, row in enumerate(zip(*(exact(kind, c) for c in columns), strict=True)):
        if not all(map(np.isfinite, row)):
            continue
        x = [Fraction(v) for v in row]
        signs = [bool(np.signbit(v)) for v in row]
        match name:
            case "add":
                value, zero = x[0] + x[1], signs[0] and signs[1]
            case "sub":
                value, zero = x[0] - x[1], signs[0] and not signs[1]
            case "mul":
                value, zero = x[0] * x[1], signs[0] ^ signs[1]
            case _:
                value = x[0] * x[1] + x[2]
                zero = (signs[0] ^ signs[1]) and signs[2]
        want = reference.encode(value, "RN", kind.precision, exponent_bits, zero_negative=zero)
        assert int(got[i]) == want, row


@pytest.mark.parametrize("kind", KINDS, ids=lambda f: f.name)
def test_invalid_half_operations_give_the_canonical_nan(kind: Format) -> None:
    infinity, one = np.uint16(kind.infinity or 0), np.uint16(EDGES[kind.name][7])
    nan = np.uint16(0xFFFF)
    assert int(ieee.half_sub(infinity, infinity, kind=kind)) == 0x7FFF
    assert int(ieee.half_mul(infinity, np.uint16(0), kind=kind)) == 0x7FFF
    assert int(ieee.half_fma(nan, one, one, kind=kind)) == 0x7FFF
    assert int(ieee.half_neg(nan, kind=kind)) == int(ieee.half_abs(nan, kind=kind)) == 0x7FFF
    assert int(ieee.half_fma(np.uint16(0x7FF7), one, one, kind=kind, oob=True)) == 0


def test_modifiers_of_half_operations() -> None:
    one, minus_two, tiny = np.uint16(0x3C00), np.uint16(0xC000), np.uint16(0x0001)
    assert int(ieee.half_add(one, one, kind=F16, sat=True)) == 0x3C00
    assert int(ieee.half_fma(one, minus_two, one, kind=F16, relu=True)) == 0
    assert int(ieee.half_add(tiny, tiny, kind=F16, ftz=True)) == 0
    assert int(ieee.half_neg(tiny, kind=F16, ftz=True)) == 0x8000
    # Rounds to the least normal number, but only as a subnormal's last place is coarser.
    assert int(ieee.half_mul(np.uint16(0x3BFF), np.uint16(0x0400), kind=F16)) == 0x0400
    assert int(ieee.half_mul(np.uint16(0x3BFF), np.uint16(0x0400), kind=F16, ftz=True)) == 0


@pytest.mark.parametrize("kind", KINDS, ids=lambda f: f.name)
@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_half_extremes_agree_with_those_of_float32(name: str, kind: Format) -> None:
    a, b = operands(kind, 2)
    x, y = (ieee.convert_float(v, source=kind, target=F32) for v in (a, b))
    for options in ({}, {"nan": True}, {"xorsign": True}, {"nan": True, "xorsign": True}):
        narrow: Any = getattr(ieee, f"half_{name}")(a, b, kind=kind, **options)
        wide = getattr(ieee, name)(x, y, **options)
        # Widening drops a NaN's sign, which the product of the signs counts.
        comparable = ~(np.isnan(x) | np.isnan(y)) if "xorsign" in options else np.full(x.size, True)
        want = ieee.convert_float(wide, source=F32, target=kind)
        assert (narrow == want)[comparable].all()


def test_packed_words_hold_two_independent_values() -> None:
    rng = np.random.default_rng(15)
    a, b = (rng.integers(0, 2**32, 64, dtype=np.uint32) for _ in range(2))
    got = ieee.packed(ieee.half_add, a, b, kind=F16)
    (ah, al), (bh, bl) = (
        ((x >> np.uint32(16)).astype(np.uint16), x.astype(np.uint16)) for x in (a, b)
    )
    high, low = ieee.half_add(ah, bh, kind=F16), ieee.half_add(al, bl, kind=F16)
    assert (got == ieee.pack(high, low)).all()
    uniform = ieee.packed(ieee.half_add, a, b[0], kind=F16)
    assert (uniform == ieee.packed(ieee.half_add, a, np.full(64, b[0]), kind=F16)).all()
    scalar = ieee.packed(ieee.half_add, a[0], b[0], kind=F16)
    assert scalar == got[0]
    assert isinstance(scalar, np.uint32)
