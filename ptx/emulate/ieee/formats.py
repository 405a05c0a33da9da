"""The floating-point formats of PTX, its rounding modes, and rounding into any of the formats."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from ptx.emulate.ieee.lanes import I64, U64, Array, Doubles, Mask


class Rounding(IntEnum):
    """Modes of rounding an inexact result to a value of its format.

    PTX ISA, "Rounding Modifiers": `.rn`, `.rz`, `.rm`, `.rp`; `.rna` and `.rs` exist for some
    forms of `cvt` only.
    """

    RN = 0
    """To nearest, ties to even."""
    RZ = 1
    """Towards zero."""
    RM = 2
    """Towards minus infinity."""
    RP = 3
    """Towards plus infinity."""
    RNA = 4
    """To nearest, ties away from zero."""
    RS = 5
    """Stochastic: random bits are added below the last kept bit, then truncated."""


@dataclass(frozen=True, slots=True)
class Format:
    """A binary floating-point format with a sign bit.

    `precision` counts the hidden bit, `min_exponent` is that of the least normal number, and
    `max_finite` and `infinity` are bit patterns; a format without infinities has None.
    """

    name: str
    width: int
    precision: int
    min_exponent: int
    max_finite: int
    infinity: int | None
    nan: int | None


F64 = Format("f64", 64, 53, -1022, 0x7FEF_FFFF_FFFF_FFFF, 0x7FF0 << 48, 0x7FF8 << 48)
F32 = Format("f32", 32, 24, -126, 0x7F7F_FFFF, 0x7F80_0000, 0x7FFF_FFFF)
F16 = Format("f16", 16, 11, -14, 0x7BFF, 0x7C00, 0x7FFF)
BF16 = Format("bf16", 16, 8, -126, 0x7F7F, 0x7F80, 0x7FFF)
E4M3 = Format("e4m3", 8, 4, -6, 0x7E, None, 0x7F)
E5M2 = Format("e5m2", 8, 3, -14, 0x7B, 0x7C, 0x7F)
E2M3 = Format("e2m3", 6, 4, 0, 0x1F, None, None)
E3M2 = Format("e3m2", 6, 3, -2, 0x1F, None, None)
E2M1 = Format("e2m1", 4, 2, 0, 0x7, None, None)

_ONE = np.uint64(1)


def leading_zeros(x: U64) -> I64:
    """Count the zero bits above the highest set bit of non-zero words."""
    # Clearing the bit below the highest one keeps the conversion from rounding up to a power.
    _, exponent = np.frexp((x & ~(x >> _ONE)).astype(np.float64))
    return np.asarray(64 - exponent.astype(np.int64))


def round_to_format(
    negative: Mask,
    exponent: I64,
    significand: U64,
    sticky: Mask,
    target: Format,
    rounding: Rounding,
) -> U64:
    """Round ±significand·2^exponent to a format's bits, with the overflow of the mode.

    All arguments have shape (n,). The significand's bit 63 is set; `sticky` means that the true
    magnitude lies above it by less than one unit of bit 0. Overflow gives the infinity, or
    `max_finite` where the mode rounds towards zero.
    """
    top = exponent + 63
    short = np.maximum(target.min_exponent - top, 0)
    drop = np.minimum(64 - target.precision + short, 65)
    biased = np.maximum(top - target.min_exponent, 0)
    biased = np.minimum(biased, (target.max_finite >> (target.precision - 1)) + 1)

    shift = np.minimum(drop, 63).astype(np.uint64)
    shifted = np.where(drop >= 64, np.uint64(0), significand >> shift)
    dropped_bits = np.where(drop >= 64, significand, significand - (shifted << shift))
    half = _ONE << (np.minimum(drop, 64) - 1).astype(np.uint64)
    # Dropping 65 bits or more leaves less than half a unit for every significand.
    above_half = (dropped_bits > half) & (drop < 65)
    tie = (dropped_bits == half) & (drop < 65)
    inexact = (dropped_bits != 0) | sticky

    up: Mask
    match rounding:
        case Rounding.RN:
            up = above_half | (tie & (sticky | ((shifted & _ONE) == _ONE)))
        case Rounding.RNA:
            up = above_half | tie
        case Rounding.RM:
            up = inexact & negative
        case Rounding.RP:
            up = inexact & ~negative
        case _:
            up = np.zeros_like(negative)
    magnitude = (biased.astype(np.uint64) << np.uint64(target.precision - 1)) + shifted + up
    _overflow(magnitude, negative, target, rounding)
    return magnitude | (negative.astype(np.uint64) << np.uint64(target.width - 1))


def _overflow(magnitude: U64, negative: Mask, target: Format, rounding: Rounding) -> None:
    """Replace magnitudes above the largest finite number, in place."""
    overflows = magnitude > np.uint64(target.max_finite)
    if not overflows.any():
        return
    infinity = target.max_finite if target.infinity is None else target.infinity
    match rounding:
        case Rounding.RN | Rounding.RNA:
            magnitude[overflows] = infinity
        case Rounding.RM:
            magnitude[overflows & negative] = infinity
            magnitude[overflows & ~negative] = target.max_finite
        case Rounding.RP:
            magnitude[overflows & ~negative] = infinity
            magnitude[overflows & negative] = target.max_finite
        case _:
            magnitude[overflows] = target.max_finite


_EXPONENT_BITS = np.int64(0x7FF << 52)


def encode(
    x: Doubles,
    target: Format,
    rounding: Rounding,
    *,
    satfinite: bool = False,
    random_bits: tuple[Array, int] | None = None,
) -> Array:
    """Round to a format's bits, as uint32 of shape (n,), NaN giving the format's NaN.

    `x` must be exact, or rounded to odd with two bits to spare. `satfinite` clamps overflow and
    infinities to the largest finite number. `random_bits` are the bits and their count for RS.
    """
    scaled, base = _in_units(x, target)
    magnitude = np.abs(_to_integer(scaled, rounding, random_bits)).astype(np.int64)
    magnitude += base
    negative = np.signbit(x)
    overflows = (magnitude > target.max_finite) | ~np.isfinite(x)
    if overflows.any():
        limit = _overflowed(negative, np.isinf(x), target, rounding, satfinite)
        magnitude = np.where(overflows, limit, magnitude)
    result = magnitude | (negative.astype(np.int64) << (target.width - 1))
    nans = np.isnan(x)
    if nans.any():
        # A format without a NaN gives its largest number, with a plus sign.
        result[nans] = target.max_finite if target.nan is None else target.nan
    return result.astype(np.uint32)


def _in_units(x: Doubles, target: Format) -> tuple[Doubles, I64]:
    """Give x in units of its last place in the format, and the bits that its binade adds."""
    lowest = np.int64((target.min_exponent + 1023) << 52)
    exponent = x.view(np.int64) & _EXPONENT_BITS
    np.maximum(exponent, lowest, out=exponent)
    inverse = (_wrapped((2046 + target.precision - 1) << 52) - exponent).view(np.float64)
    exponent -= lowest
    exponent >>= 52 - (target.precision - 1)
    return x * inverse, exponent


def _wrapped(bits: int) -> np.int64:
    """Give 64 bits as a signed integer; the subtraction that follows wraps back."""
    return np.uint64(bits).astype(np.int64)


def _to_integer(x: Doubles, rounding: Rounding, random_bits: tuple[Array, int] | None) -> Doubles:
    match rounding:
        case Rounding.RN:
            return np.rint(x)
        case Rounding.RZ:
            return np.trunc(x)
        case Rounding.RM:
            return np.floor(x)
        case Rounding.RP:
            return np.ceil(x)
        case Rounding.RNA:
            truncated = np.trunc(x)
            return truncated + np.copysign(np.abs(x - truncated) >= 0.5, x)
        case Rounding.RS:
            if random_bits is None:
                raise ValueError("stochastic rounding needs random bits: pass random_bits")
            bits, count = random_bits
            truncated = np.trunc(x)
            dropped = np.floor(np.abs(x - truncated) * 2.0**count)
            return truncated + np.copysign(dropped + bits >= 2.0**count, x)


def _overflowed(
    negative: Mask, infinite: Mask, target: Format, rounding: Rounding, satfinite: bool
) -> Array:
    """Give the magnitudes of results that overflow or come from an infinity."""
    finite = np.int64(target.max_finite)
    if satfinite:
        return finite
    infinity = finite + 1 if target.infinity is None else np.int64(target.infinity)
    match rounding:
        case Rounding.RN | Rounding.RNA:
            return infinity
        case Rounding.RM:
            return np.where(negative | infinite, infinity, finite)
        case Rounding.RP:
            return np.where(~negative | infinite, infinity, finite)
        case _:
            return np.where(infinite, infinity, finite)
