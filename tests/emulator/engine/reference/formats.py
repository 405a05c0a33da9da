"""Binary floating-point formats: bits to exact values, and exact values rounded once to bits.

A finite value is m·2^e in plain integers, so that sums and products stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Dyadic(NamedTuple):
    """m·2^e."""

    m: int
    e: int


@dataclass(frozen=True)
class Form:
    """A format of IEEE 754; `nan` is the canonical NaN that instructions on it give."""

    name: str
    precision: int
    exponent_bits: int
    nan: int

    @property
    def width(self) -> int:
        return self.precision + self.exponent_bits

    @property
    def sign(self) -> int:
        """The sign's bit."""
        return 1 << (self.width - 1)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent_bits) - 1) << (self.precision - 1)

    @property
    def quiet(self) -> int:
        """The bit that makes a NaN quiet."""
        return 1 << (self.precision - 2)

    @property
    def least(self) -> int:
        """The exponent of the least normal number."""
        return 2 - (1 << (self.exponent_bits - 1))

    @property
    def one(self) -> int:
        return ((1 << (self.exponent_bits - 1)) - 1) << (self.precision - 1)

    def is_nan(self, bits: int) -> bool:
        return bits & (self.sign - 1) > self.infinity

    def is_infinite(self, bits: int) -> bool:
        return bits & (self.sign - 1) == self.infinity

    def is_negative(self, bits: int) -> bool:
        return bool(bits & self.sign)

    def is_zero(self, bits: int) -> bool:
        return not bits & (self.sign - 1)

    def is_subnormal(self, bits: int) -> bool:
        return not bits & self.infinity and not self.is_zero(bits)

    def flushed(self, bits: int) -> int:
        """A subnormal number as a zero of its sign."""
        return bits & self.sign if self.is_subnormal(bits) else bits

    def exact(self, bits: int) -> Dyadic:
        """The value of finite bits."""
        fraction = bits & ((1 << (self.precision - 1)) - 1)
        biased = (bits & self.infinity) >> (self.precision - 1)
        m = fraction | (1 << (self.precision - 1) if biased else 0)
        return Dyadic(
            -m if self.is_negative(bits) else m,
            max(biased, 1) - 1 + self.least - (self.precision - 1),
        )


F16 = Form("f16", 11, 5, 0x7FFF)
BF16 = Form("bf16", 8, 8, 0x7FFF)
F32 = Form("f32", 24, 8, 0x7FFFFFFF)
F64 = Form("f64", 53, 11, 0xFFF8_0000_0000_0000)
FORMS = {form.name: form for form in (F16, BF16, F32, F64)}


def rounded(
    form: Form,
    mode: str,
    value: Dyadic,
    *,
    negative_zero: bool = False,
    more: bool = False,
    flush: bool = False,
) -> int:
    """A value in a format, rounded by "rn", "rz", "rm" or "rp".

    `more`: the magnitude is larger than the value's, by less than its last place. `flush`: what
    would be below the least normal number if exponents had no lower bound becomes a zero.
    """
    negative = value.m < 0 if value.m else negative_zero
    sign = form.sign if negative else 0
    if not value.m:
        assert not more
        return sign
    m, top = abs(value.m), abs(value.m).bit_length() - 1 + value.e
    if flush and _whole(m, value.e, top - form.precision + 1, mode, negative, more).bit_length() - (
        form.precision
    ) + top < (form.least):
        return sign
    top = max(top, form.least)
    magnitude = _whole(m, value.e, top - form.precision + 1, mode, negative, more)
    magnitude += (top - form.least) << (form.precision - 1)
    if magnitude >= form.infinity:
        away = mode == "rn" or mode == ("rm" if negative else "rp")
        magnitude = form.infinity if away else form.infinity - 1
    return sign | magnitude


def whole(value: Dyadic, mode: str) -> int:
    """A value rounded to an integer."""
    found = _whole(abs(value.m), value.e, 0, mode, value.m < 0, more=False)
    return -found if value.m < 0 else found


def _whole(m: int, e: int, place: int, mode: str, negative: bool, more: bool) -> int:
    """How many units of 2^place a magnitude m·2^e has, rounded."""
    shift = place - e
    if shift <= 0:
        assert not more
        return m << -shift
    kept, rest, half = m >> shift, m & ((1 << shift) - 1), 1 << (shift - 1)
    if mode == "rn":
        return kept + (rest > half or (rest == half and (more or kept & 1 == 1)))
    outward = mode == ("rm" if negative else "rp")
    return kept + (outward and (rest > 0 or more))
