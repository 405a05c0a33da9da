"""Exact results rounded once: error-free transforms, directed rounding, fused multiply-add.

Error-free transforms give the rounding error of a float64 sum or product. Rounding in a given
direction needs only the sign of that error. The functions `exact_...` compute in integers: slow,
but right at the extremes, for the finite float64 lanes of shape (n,) that need it.
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.ieee import formats, lanes
from ptx.emulate.ieee.formats import Rounding
from ptx.emulate.ieee.lanes import I64, U64, Array, Doubles, Float, Mask, Singles, settle_nans

_SPLITTER = 2.0**27 + 1.0


def sum_error(x: Array, y: Array, total: Array) -> Array:
    """Give x+y-total exactly (Knuth's TwoSum), where nothing overflows on the way."""
    y_part = total - x
    x_part = total - y_part
    np.subtract(y, y_part, out=y_part)
    np.subtract(x, x_part, out=x_part)
    x_part += y_part
    return x_part


def minus_sum_error(x: Array, y: Array, total: Doubles) -> Doubles:
    """Give total-(x+y) exactly, where nothing overflows on the way; +0 where it is zero."""
    y_part = total - x
    x_part = total - y_part
    x_part -= x
    y_part -= y
    x_part += y_part
    return x_part


def halves(x: Doubles) -> tuple[Doubles, Doubles]:
    """Split values below 2^996 into two of at most 26 significant bits each (Veltkamp).

    Cutting bits would be faster, but is wrong for subnormal values, whose leading bit is anywhere.
    """
    high = x * _SPLITTER
    low = high - x
    high -= low
    np.subtract(x, high, out=low)
    return high, low


def minus_product_error(a: Doubles, b: Doubles, product: Doubles) -> Doubles:
    """Give product-a·b exactly (Dekker), where nothing overflows or underflows."""
    a_high, a_low = halves(a)
    b_high, b_low = halves(b)
    work = a_high * b_high
    error = product - work
    np.multiply(a_high, b_low, out=work)
    error -= work
    np.multiply(a_low, b_high, out=work)
    error -= work
    np.multiply(a_low, b_low, out=work)
    error -= work
    return error


def round_to_odd(total: Array, error: Array) -> Array:
    """Make a rounded sum's last bit odd where it was inexact, on the exact value's side.

    Both are float64 or both float32. Rounding the result again, to a format with at least two bits
    less, equals rounding the exact value once. Source: Boldo and Melquiond, "Emulation of FMA and
    correctly rounded sums".
    """
    integer = np.int64 if total.dtype == np.float64 else np.int32
    bits = total.view(integer)
    # False where the sum is not finite, whose error is a NaN.
    inexact = np.abs(error) > 0
    # An odd sum stays: the exact value lies beside it. An even one that lies beyond the exact value
    # steps back, which makes it odd; one that falls short becomes odd by its last bit.
    is_farther = (bits ^ error.view(integer)) < 0
    is_farther &= inexact
    step = ~bits
    step &= is_farther
    odd = bits - step
    odd |= inexact
    return odd.view(total.dtype)


def set_zero_sums_negative(result: Array, total: Array, x: Array, y: Array) -> None:
    """Give sums that are exactly zero the sign of rounding down: plus only for two plus zeros."""
    zeros = lanes.indices_of(total == 0)
    if zeros.size:
        shape = result.shape
        is_negative = np.signbit(lanes.pick(x, shape, zeros)) | np.signbit(
            lanes.pick(y, shape, zeros)
        )
        opposite = np.where(is_negative, result.dtype.type(-0.0), lanes.pick(result, shape, zeros))
        lanes.put(result, zeros, opposite)


def towards(nearest: Array, error: Array, rounding: Rounding) -> Array:
    """Move round-to-nearest results to those of a directed mode, in place.

    `nearest` is float32 or float64 of shape (n,); `error` has the sign of the exact value less
    `nearest`, and is 0 or NaN where nothing moves. An infinity that came from overflow steps back
    to the largest finite number; a zero steps to the least subnormal.
    """
    integer = np.dtype(np.int32 if nearest.dtype == np.float32 else np.int64).type
    bits = nearest.view(integer)
    # For IEEE bits as an integer, +1 leads away from zero for both signs.
    match rounding:
        case Rounding.RZ:
            bits -= (error < 0) & (bits >= 0)
            bits -= (error > 0) & (bits < 0)
        case Rounding.RM:
            away = (bits >> (8 * bits.itemsize - 1)) | integer(1)
            bits -= away * (error < 0)
        case Rounding.RP:
            away = (bits >> (8 * bits.itemsize - 1)) | integer(1)
            bits += away * (error > 0)
        case _:
            raise ValueError(f"{rounding!r} is not a rounding mode of arithmetic instructions")
    return nearest


def narrow(wide: Doubles, remainder: Doubles | None, rounding: Rounding) -> Singles:
    """Round float64 values plus a rest to float32.

    The exact value is `wide + remainder`, where `remainder` is at most half a unit in the last
    place of `wide`; None means zero. For RN `wide` must round safely by itself.
    """
    nearest = wide.astype(np.float32)
    if rounding is not Rounding.RN:
        # Exact where it matters: `nearest` lies within 2^-24 of `wide`. The difference is either
        # zero or no less than the whole of `remainder`, so the sign of the sum is right.
        error = wide - nearest
        if remainder is not None:
            error += remainder
        towards(nearest, error, rounding)
    return nearest


_LOW32 = np.uint64(0xFFFF_FFFF)
_ONE = np.uint64(1)
_FAR = -20_000
"""The exponent of a zero: below that of any product, so that it never decides an alignment."""


def split(x: Doubles) -> tuple[U64, I64]:
    """Give significands in [2^52, 2^53) and exponents with |x| = significand·2^exponent."""
    mantissa, exponent = np.frexp(np.abs(x))
    significand = np.ldexp(mantissa, 53).astype(np.uint64)
    return significand, np.where(x == 0, _FAR, exponent.astype(np.int64) - 53)


def exact_fma(a: Doubles, b: Doubles, c: Doubles, rounding: Rounding) -> Doubles:
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
    return _exact_sum(
        np.signbit(a) ^ np.signbit(b), ph, pl, np.signbit(c), ch, cl, exponent, rounding
    )


def _exact_sum(
    p_negative: Mask,
    ph: U64,
    pl: U64,
    c_negative: Mask,
    ch: U64,
    cl: U64,
    exponent: I64,
    rounding: Rounding,
) -> Doubles:
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
    """Round signed 128-bit magnitudes in units of 2^exponent to bits of f64; not those of zeros."""
    empty = high == 0
    high = np.where(empty, low, high)
    low = np.where(empty, np.uint64(0), low)
    # A zero keeps any significand through the rounding and is replaced after it.
    high = np.where(zero, _ONE, high)
    shift = formats.leading_zeros(high)
    left_shift = shift.astype(np.uint64)
    carried = np.where(shift > 0, low >> np.uint64(64) - np.maximum(left_shift, _ONE), np.uint64(0))
    exponent = exponent + np.where(empty, 0, 64) - shift
    return formats.round_to_format(
        negative,
        exponent,
        (high << left_shift) | carried,
        (low << left_shift) != 0,
        formats.F64,
        rounding,
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
    by_word = count >= 64
    lost = np.where(by_word, low, np.uint64(0))
    low = np.where(by_word, high, low)
    high = np.where(by_word, np.uint64(0), high)
    # The remaining shift is 0 to 64; a count of 128 or more empties both words.
    bits_left = np.where(by_word, np.minimum(count - 64, 64), count)
    empty = bits_left >= 64
    lost = lost | np.where(empty, low, np.uint64(0))
    low = np.where(empty, np.uint64(0), low)
    right = np.minimum(bits_left, 63).astype(np.uint64)
    left_shift = np.uint64(64) - np.maximum(right, _ONE)
    is_shifted = right > 0
    lost = lost | np.where(is_shifted, low << left_shift, np.uint64(0))
    low = np.where(is_shifted, (low >> right) | (high << left_shift), low)
    return high >> right, low | (lost != 0)


def exact_quotient(a: Doubles, b: Doubles, rounding: Rounding) -> Doubles:
    """Give a/b with one rounding, for non-zero operands."""
    ma, ea = np.frexp(np.abs(a))
    mb, eb = np.frexp(np.abs(b))
    quotient = ma / mb
    product = quotient * mb
    remainder = (ma - product) + minus_product_error(quotient, mb, product)
    exponent = ea.astype(np.int64) - eb
    return _round_estimate(np.signbit(a) ^ np.signbit(b), quotient, remainder, exponent, rounding)


def exact_root(x: Doubles, rounding: Rounding) -> Doubles:
    """Give the square root of positive values with one rounding."""
    mantissa, exponent = np.frexp(x)
    exponent = exponent.astype(np.int64)
    odd = exponent & 1
    mantissa = np.ldexp(mantissa, -odd)
    root = np.sqrt(mantissa)
    product = root * root
    remainder = (mantissa - product) + minus_product_error(root, root, product)
    return _round_estimate(np.signbit(x), root, remainder, (exponent + odd) >> 1, rounding)


def _round_estimate(
    negative: Mask, estimate: Doubles, remainder: Doubles, exponent: I64, rounding: Rounding
) -> Doubles:
    """Round estimate·2^exponent, given the sign of the exact value less the estimate.

    The estimate lies in (1/4, 2) and is the nearest float64 to its exact value.
    """
    significand, unit = split(estimate)
    significand = (significand << np.uint64(11)) - (remainder < 0)
    exponent = exponent + unit - 11
    # Taking one from a power of two clears the top bit.
    shift = formats.leading_zeros(significand)
    bits = formats.round_to_format(
        negative,
        exponent - shift,
        significand << shift.astype(np.uint64),
        remainder != 0,
        formats.F64,
        rounding,
    )
    return bits.view(np.float64)


_LEAST_SINGLE = np.float32(2.0**-126)
_BELOW_SINGLE = np.int64((1 << 29) - 1)
_TIE = np.int64(1 << 28)


def fma32(a: Singles, b: Singles, c: Singles, rounding: Rounding, *, nans: bool = True) -> Singles:
    """Give a·b+c with one rounding.

    The product is exact in float64 and the sum is rounded there once. Rounding it again to float32
    is wrong only if that sum is a tie without being exact. Those lanes, and the ones with subnormal
    results, are rounded to odd in float64 first. `nans`: a NaN gets the canonical bits.
    """
    if rounding is not Rounding.RN:
        product = np.multiply(a, b, dtype=np.float64)
        return _directed(product, c, product + c, rounding)
    wide, other = a.astype(np.float64), b.astype(np.float64)
    if a.shape == b.shape == c.shape:  # in the same two arrays, which stay in the caches
        wide *= other
        np.copyto(other, c)
        wide += other
    else:
        other = wide * other
        wide = other + c.astype(np.float64)
        if other.shape != wide.shape:
            other = np.empty_like(wide)
    result = wide.astype(np.float32)
    dropped = np.bitwise_and(wide.view(np.int64), _BELOW_SINGLE, out=other.view(np.int64))
    risky = dropped == _TIE
    if risky.any():
        _repair(result, a, b, c, wide, lanes.indices_of(risky))
    magnitude = np.abs(result)
    if not lanes.least(magnitude) >= _LEAST_SINGLE:  # not for a NaN either
        small = (magnitude < _LEAST_SINGLE) & (wide != 0)
        _repair(result, a, b, c, wide, lanes.indices_of(small))
        if nans:
            settle_nans(result)
    return result


def _repair(
    result: Singles, a: Singles, b: Singles, c: Singles, wide: Doubles, indices: lanes.Indices
) -> None:
    """Round the lanes again from a float64 sum that is rounded to odd."""
    if not indices.size:
        return
    shape = result.shape
    total = lanes.pick(wide, shape, indices)
    product = np.multiply(
        lanes.pick(a, shape, indices), lanes.pick(b, shape, indices), dtype=np.float64
    )
    error = sum_error(product, lanes.pick(c, shape, indices).astype(np.float64), total)
    if error.any():  # where no sum was rounded, the result was rounded once
        lanes.put(result, indices, round_to_odd(total, error).astype(np.float32))


def _directed(product: Array, c: Array, wide: Doubles, rounding: Rounding) -> Singles:
    error = sum_error(product, c.astype(np.float64), wide)
    result = narrow(wide, error, rounding)
    if rounding is Rounding.RM:
        set_zero_sums_negative(result, wide, product, c)
    return settle_nans(result)


def uniform_fma32(a: Float, b: Float, c: Float) -> Float:
    """Give a·b+c of three float32 scalars, rounded to nearest, in Python's floats.

    Double rounding is safe if the sum is neither a float32 nor half way between two. To detect a
    tie, the function mirrors the float32 result at the sum: only for a tie is the mirrored value a
    float32, too.
    """
    total = float(a) * float(b) + float(c)
    result = np.float32(total)
    nearest = float(result)
    if nearest == total:
        return result
    mirrored = 2.0 * total - nearest
    if mirrored == mirrored and float(np.float32(mirrored)) != mirrored:
        return result
    return fma32(a.reshape(1), b.reshape(1), c.reshape(1), Rounding.RN)[0]


SMALL_PRODUCT = 2.0**-900
"""Below this a product's error term may underflow."""
_JUST_OVER_ONE = 1.0 + 2.0**-51


def fma64(a: Doubles, b: Doubles, c: Doubles, rounding: Rounding) -> Doubles:
    """Give a·b+c with one rounding.

    Let a·b = p+pe and p+c = s+se exactly, and let t = se+pe be rounded. Then r = s+t differs from
    the correct result only if s+t is an exact tie while t was inexact. The reason: rounding is
    monotone, and each tie less s is itself a float64, so t never crosses one. Ties, non-finite
    results and products whose error may underflow are done again in integers.
    """
    product = a * b
    minus_rest = minus_product_error(a, b, product)
    total = product + c
    error = minus_sum_error(product, c, total)
    # Negated, so that adding a zero rest keeps the sign of a zero total.
    if rounding is Rounding.RN:
        minus_rest = np.add(minus_rest, error, out=error)
        result = total - minus_rest
        risky = _ties(total, minus_rest, result)
    else:
        minus_sum = minus_rest + error
        result = total - minus_sum
        residual = _residual(total, minus_rest, error, minus_sum, result)
        towards(result, residual, rounding)
        if rounding is Rounding.RM:
            set_zero_sums_negative(result, result, product, c)
        risky = np.zeros(result.shape, np.bool_)
    risky |= ~np.isfinite(result)
    add_small_products(risky, a, b, product)
    if risky.any():
        indices = lanes.indices_of(risky)
        shape = result.shape
        repaired = careful_fma(
            lanes.pick(a, shape, indices),
            lanes.pick(b, shape, indices),
            lanes.pick(c, shape, indices),
            rounding,
        )
        lanes.put(result, indices, repaired)
        settle_nans(result, b, c, a)
    return result


def _ties(total: Doubles, minus_rest: Doubles, result: Doubles) -> Mask:
    """Find the lanes whose sum lies on, or next to, a tie."""
    difference = total - result
    difference -= minus_rest
    difference *= _JUST_OVER_ONE
    difference += result
    return difference != result


def _residual(
    total: Doubles, minus_rest: Doubles, error: Doubles, minus_sum: Doubles, result: Doubles
) -> Doubles:
    """Give the sign of the exact value less `result`."""
    residual = total - result
    residual -= minus_sum
    # If the sum is exact, the rounding error of the rest decides.
    even = lanes.indices_of(residual == 0)
    if even.size:
        shape = residual.shape
        lost = minus_sum_error(
            lanes.pick(minus_rest, shape, even),
            lanes.pick(error, shape, even),
            lanes.pick(minus_sum, shape, even),
        )
        lanes.put(residual, even, lost)
    return residual


def add_small_products(risky: Mask, a: Doubles, b: Doubles, product: Doubles) -> None:
    """Mark the lanes whose product may have lost part of its error term."""
    small = np.abs(product) < SMALL_PRODUCT
    if small.any():
        small &= (product != 0) | ((a != 0) & (b != 0))
        risky |= small


def careful_fma(a: Doubles, b: Doubles, c: Doubles, rounding: Rounding) -> Doubles:
    """Give a·b+c for any values, slowly."""
    finite_factors = np.isfinite(a) & np.isfinite(b)
    # A finite product that overflows must not meet an infinite addend as an infinity.
    result = np.where(finite_factors & np.isinf(c), c, a * b + c)
    finite = lanes.indices_of(finite_factors & np.isfinite(c))
    if finite.size:
        lanes.put(result, finite, exact_fma(a[finite], b[finite], c[finite], rounding))
    return result
