"""A tiny reference: exact rationals, rounded once, in plain Python integers."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

Mode = Literal["RN", "RZ", "RM", "RP", "RNA"]


def floor_log2(x: Fraction) -> int:
    """Give e with 2^e <= x < 2^(e+1), for x > 0."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def round_to_integer(x: Fraction, mode: Mode) -> int:
    low = x.numerator // x.denominator
    if x == low:
        return low
    match mode:
        case "RZ":
            return low if x > 0 else low + 1
        case "RM":
            return low
        case "RP":
            return low + 1
        case "RNA":
            nearest = Fraction(1, 2)
            return (
                (low if x - low < nearest else low + 1)
                if x > 0
                else (low if x - low <= nearest else low + 1)
            )
        case _:
            twice = 2 * (x - low)
            return low if twice < 1 or (twice == 1 and low % 2 == 0) else low + 1


def encode(
    x: Fraction,
    mode: Mode,
    precision: int,
    exponent_bits: int,
    *,
    zero_negative: bool = False,
    bias: int | None = None,
    max_finite: int | None = None,
    overflow: int | None = None,
) -> int:
    """Round to a binary format's bits; the default is an IEEE format with infinities."""
    width = precision + exponent_bits
    sign = 1 << (width - 1)
    if x == 0:
        return sign if zero_negative else 0
    bias = (1 << (exponent_bits - 1)) - 1 if bias is None else bias
    if max_finite is None:
        max_finite = (((1 << exponent_bits) - 1) << (precision - 1)) - 1
        overflow = max_finite + 1
    assert overflow is not None
    e = max(floor_log2(abs(x)), 1 - bias)
    quantum = Fraction(2) ** (e - precision + 1)
    n = round_to_integer(x / quantum, mode)
    magnitude = abs(n) + ((e + bias - 1) << (precision - 1))
    negative = x < 0
    if magnitude > max_finite:
        outward = mode in ("RN", "RNA") or mode == ("RM" if negative else "RP")
        magnitude = overflow if outward else max_finite
    return magnitude | (sign if negative else 0)
