"""Error-free transforms: what a rounded float64 sum or product left behind, exactly."""

from __future__ import annotations

import numpy as np

from ptx.emulate.ieee import lanes
from ptx.emulate.ieee.array_types import F64, Array

_SPLITTER = 2.0**27 + 1.0


def sum_error(x: Array, y: Array, total: Array) -> Array:
    """Give x+y-total exactly (Knuth's TwoSum), where nothing overflows on the way."""
    y_part = total - x
    x_part = total - y_part
    np.subtract(y, y_part, out=y_part)
    np.subtract(x, x_part, out=x_part)
    x_part += y_part
    return x_part


def minus_sum_error(x: Array, y: Array, total: F64) -> F64:
    """Give total-(x+y) exactly, where nothing overflows on the way; +0 where it is zero."""
    y_part = total - x
    x_part = total - y_part
    x_part -= x
    y_part -= y
    x_part += y_part
    return x_part


def halves(x: F64) -> tuple[F64, F64]:
    """Split values below 2^996 into two of at most 26 significant bits each (Veltkamp).

    Cutting bits would be faster, but is wrong for subnormal values, whose leading bit is anywhere.
    """
    high = x * _SPLITTER
    low = high - x
    high -= low
    np.subtract(x, high, out=low)
    return high, low


def minus_product_error(a: F64, b: F64, product: F64) -> F64:
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

    Both are float64 or both float32. Rounding the result again to a format with at least two bits
    less then equals rounding the exact value once (Boldo and Melquiond,
    "Emulation of FMA and correctly rounded sums").
    """
    integer = np.int64 if total.dtype == np.float64 else np.int32
    bits = total.view(integer)
    # False where the sum is not finite, whose error is a NaN.
    inexact = np.abs(error) > 0
    # An odd sum stays: the exact value lies beside it. An even one that lies beyond the exact value
    # steps back, which makes it odd; one that falls short becomes odd by its last bit.
    beyond = (bits ^ error.view(integer)) < 0
    beyond &= inexact
    step = ~bits
    step &= beyond
    odd = bits - step
    odd |= inexact
    return odd.view(total.dtype)


def set_zero_sums_negative(result: Array, total: Array, x: Array, y: Array) -> None:
    """Give sums that are exactly zero the sign of rounding down: plus only for two plus zeros."""
    zeros = lanes.indices_of(total == 0)
    if zeros.size:
        shape = result.shape
        both = np.signbit(lanes.pick(x, shape, zeros)) | np.signbit(lanes.pick(y, shape, zeros))
        opposite = np.where(both, result.dtype.type(-0.0), lanes.pick(result, shape, zeros))
        lanes.put(result, zeros, opposite)
