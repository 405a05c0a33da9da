"""Rounding float64 values into formats of at most 24 significant bits."""

from __future__ import annotations

import numpy as np

from ptx.emulate.ieee.array_types import F64, I64, Array, Mask
from ptx.emulate.ieee.formats import Format
from ptx.emulate.ieee.rounding import Rounding

_EXPONENT = np.int64(0x7FF << 52)


def encode(
    x: F64,
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
    over = (magnitude > target.max_finite) | ~np.isfinite(x)
    if over.any():
        limit = _overflowed(negative, np.isinf(x), target, rounding, satfinite)
        magnitude = np.where(over, limit, magnitude)
    result = magnitude | (negative.astype(np.int64) << (target.width - 1))
    nans = np.isnan(x)
    if nans.any():
        # A format without a NaN gives its largest number, with a plus sign.
        result[nans] = target.max_finite if target.nan is None else target.nan
    return result.astype(np.uint32)


def _in_units(x: F64, target: Format) -> tuple[F64, I64]:
    """Give x in units of its last place in the format, and the bits that its binade adds."""
    lowest = np.int64((target.min_exponent + 1023) << 52)
    exponent = x.view(np.int64) & _EXPONENT
    np.maximum(exponent, lowest, out=exponent)
    inverse = (_wrapped((2046 + target.precision - 1) << 52) - exponent).view(np.float64)
    exponent -= lowest
    exponent >>= 52 - (target.precision - 1)
    return x * inverse, exponent


def _wrapped(bits: int) -> np.int64:
    """Give 64 bits as a signed integer; the subtraction that follows wraps back."""
    return np.uint64(bits).astype(np.int64)


def _to_integer(x: F64, rounding: Rounding, random_bits: tuple[Array, int] | None) -> F64:
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
            whole = np.trunc(x)
            return whole + np.copysign(np.abs(x - whole) >= 0.5, x)
        case Rounding.RS:
            if random_bits is None:
                raise ValueError("stochastic rounding needs random bits: pass random_bits")
            bits, count = random_bits
            whole = np.trunc(x)
            dropped = np.floor(np.abs(x - whole) * 2.0**count)
            return whole + np.copysign(dropped + bits >= 2.0**count, x)


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
