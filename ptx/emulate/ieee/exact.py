"""float64 arithmetic in integers: slow, exact at the extremes, for the lanes that need it.

Every function takes finite float64 arrays of shape (n,) and rounds once, in any direction.
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.ieee import formats
from ptx.emulate.ieee.array_types import F64, I64, U64, Mask
from ptx.emulate.ieee.error_free import minus_product_error
from ptx.emulate.ieee.rounding import Rounding

_LOW32 = np.uint64(0xFFFF_FFFF)
_ONE = np.uint64(1)
_FAR = -20_000
"""The exponent of a zero: below that of any product, so that it never decides an alignment."""


def split(x: F64) -> tuple[U64, I64]:
    """Give significands in [2^52, 2^53) and exponents with |x| = significand·2^exponent."""
    mantissa, exponent = np.frexp(np.abs(x))
    significand = np.ldexp(mantissa, 53).astype(np.uint64)
    return significand, np.where(x == 0, _FAR, exponent.astype(np.int64) - 53)


def exact_fma(a: F64, b: F64, c: F64, rounding: Rounding) -> F64:
    """Give a·b+c with one rounding."""
    sa, ea = split(a)
    sb, eb = split(b)
    sc, ec = split(c)
    # The product then lies in [2^124, 2^126) and c in [2^125, 2^126): the sum needs 127 bits.
    ph, pl = _multiply(sa << np.uint64(10), sb << np.uint64(10))
    ep = ea + eb - 20
    ch, cl = sc << np.uint64(9), np.zeros_like(sc)
    ec = ec - 73
    exponent = np.maximum(ep, ec)
    ph, pl = _shift_right_sticky(ph, pl, exponent - ep)
    ch, cl = _shift_right_sticky(ch, cl, exponent - ec)
    return _sum(np.signbit(a) ^ np.signbit(b), ph, pl, np.signbit(c), ch, cl, exponent, rounding)


def _sum(
    p_negative: Mask,
    ph: U64,
    pl: U64,
    c_negative: Mask,
    ch: U64,
    cl: U64,
    exponent: I64,
    rounding: Rounding,
) -> F64:
    """Add two signed 128-bit magnitudes in units of 2^exponent, and round."""
    swap = (ph < ch) | ((ph == ch) & (pl < cl))
    bigh: U64 = np.where(swap, ch, ph)
    bigl: U64 = np.where(swap, cl, pl)
    smallh: U64 = np.where(swap, ph, ch)
    smalll: U64 = np.where(swap, pl, cl)
    negative: Mask = np.where(swap, c_negative, p_negative)
    opposite = p_negative ^ c_negative

    low_sum = bigl + smalll
    high_sum = bigh + smallh + (low_sum < bigl)
    low_difference = bigl - smalll
    high_difference = bigh - smallh - (bigl < smalll)
    high: U64 = np.where(opposite, high_difference, high_sum)
    low: U64 = np.where(opposite, low_difference, low_sum)

    zero = (high == 0) & (low == 0)
    negative = np.where(zero & opposite, rounding is Rounding.RM, negative)
    bits = _rounded(negative, high, low, exponent, zero, rounding)
    return np.where(zero, negative.astype(np.uint64) << np.uint64(63), bits).view(np.float64)


def _rounded(
    negative: Mask, high: U64, low: U64, exponent: I64, zero: Mask, rounding: Rounding
) -> U64:
    """Round signed 128-bit magnitudes in units of 2^exponent to bits of F64; not those of zeros."""
    empty = high == 0
    high = np.where(empty, low, high)
    low = np.where(empty, np.uint64(0), low)
    # A zero keeps any significand through the rounding and is replaced after it.
    high = np.where(zero, _ONE, high)
    shift = formats.leading_zeros(high)
    left = shift.astype(np.uint64)
    carried = np.where(shift > 0, low >> np.uint64(64) - np.maximum(left, _ONE), np.uint64(0))
    exponent = exponent + np.where(empty, 0, 64) - shift
    return formats.round_to_format(
        negative, exponent, (high << left) | carried, (low << left) != 0, formats.F64, rounding
    )


def _multiply(x: U64, y: U64) -> tuple[U64, U64]:
    """Give the high and low words of 64 by 64 bit products."""
    half = np.uint64(32)
    x1, x0, y1, y0 = x >> half, x & _LOW32, y >> half, y & _LOW32
    low = x0 * y0
    middle = x1 * y0 + (low >> half)
    cross = x0 * y1 + (middle & _LOW32)
    high = x1 * y1 + (middle >> half) + (cross >> half)
    return high, (cross << half) | (low & _LOW32)


def _shift_right_sticky(high: U64, low: U64, count: I64) -> tuple[U64, U64]:
    """Shift 128-bit magnitudes right; bit 0 keeps whether anything fell out."""
    whole = count >= 64
    lost = np.where(whole, low, np.uint64(0))
    low = np.where(whole, high, low)
    high = np.where(whole, np.uint64(0), high)
    # What is left to shift is 0 to 64; a count of 128 or more empties both words.
    left = np.where(whole, np.minimum(count - 64, 64), count)
    empty = left >= 64
    lost = lost | np.where(empty, low, np.uint64(0))
    low = np.where(empty, np.uint64(0), low)
    right = np.minimum(left, 63).astype(np.uint64)
    back = np.uint64(64) - np.maximum(right, _ONE)
    moves = right > 0
    lost = lost | np.where(moves, low << back, np.uint64(0))
    low = np.where(moves, (low >> right) | (high << back), low)
    return high >> right, low | (lost != 0)


def exact_quotient(a: F64, b: F64, rounding: Rounding) -> F64:
    """Give a/b with one rounding, for non-zero operands."""
    ma, ea = np.frexp(np.abs(a))
    mb, eb = np.frexp(np.abs(b))
    quotient = ma / mb
    product = quotient * mb
    rest = (ma - product) + minus_product_error(quotient, mb, product)
    exponent = ea.astype(np.int64) - eb
    return _round_estimate(np.signbit(a) ^ np.signbit(b), quotient, rest, exponent, rounding)


def exact_root(x: F64, rounding: Rounding) -> F64:
    """Give the square root of positive values with one rounding."""
    mantissa, exponent = np.frexp(x)
    exponent = exponent.astype(np.int64)
    odd = exponent & 1
    mantissa = np.ldexp(mantissa, -odd)
    root = np.sqrt(mantissa)
    product = root * root
    rest = (mantissa - product) + minus_product_error(root, root, product)
    return _round_estimate(np.signbit(x), root, rest, (exponent + odd) >> 1, rounding)


def _round_estimate(
    negative: Mask, estimate: F64, rest: F64, exponent: I64, rounding: Rounding
) -> F64:
    """Round estimate·2^exponent, given the sign of the exact value less the estimate.

    The estimate lies in (1/4, 2) and is the nearest float64 to its exact value.
    """
    significand, unit = split(estimate)
    significand = (significand << np.uint64(11)) - (rest < 0)
    exponent = exponent + unit - 11
    # Taking one from a power of two clears the top bit.
    shift = formats.leading_zeros(significand)
    bits = formats.round_to_format(
        negative,
        exponent - shift,
        significand << shift.astype(np.uint64),
        rest != 0,
        formats.F64,
        rounding,
    )
    return bits.view(np.float64)
