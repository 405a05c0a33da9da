"""Fused multiply-add of float64, by error-free transforms."""

from __future__ import annotations

import numpy as np

from ptx.emulate.ieee import exact, lanes
from ptx.emulate.ieee.array_types import F64, Mask
from ptx.emulate.ieee.directed import towards
from ptx.emulate.ieee.error_free import minus_product_error, minus_sum_error, set_zero_sums_negative
from ptx.emulate.ieee.nan import settle_nans
from ptx.emulate.ieee.rounding import Rounding

SMALL_PRODUCT = 2.0**-900
"""Below this a product's error term may underflow."""
_JUST_OVER_ONE = 1.0 + 2.0**-51


def fma64(a: F64, b: F64, c: F64, rounding: Rounding) -> F64:
    """Give a·b+c with one rounding.

    With a·b = p+pe and p+c = s+se exactly, t = se+pe is rounded, and r = s+t differs from the
    right result only where s+t is an exact tie while t was inexact: rounding is monotone, and
    each tie less s is itself a float64, so t never crosses one. Ties, non-finite results and
    products whose error may underflow are done again in integers.
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
        left = _residual(total, minus_rest, error, minus_sum, result)
        towards(result, left, rounding)
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


def _ties(total: F64, minus_rest: F64, result: F64) -> Mask:
    """Find the lanes whose sum lies on, or next to, a tie."""
    left = total - result
    left -= minus_rest
    left *= _JUST_OVER_ONE
    left += result
    return left != result


def _residual(total: F64, minus_rest: F64, error: F64, minus_sum: F64, result: F64) -> F64:
    """Give the sign of the exact value less `result`."""
    left = total - result
    left -= minus_sum
    # Where the sum came out exactly, what the rest's own rounding lost decides.
    even = lanes.indices_of(left == 0)
    if even.size:
        shape = left.shape
        lost = minus_sum_error(
            lanes.pick(minus_rest, shape, even),
            lanes.pick(error, shape, even),
            lanes.pick(minus_sum, shape, even),
        )
        lanes.put(left, even, lost)
    return left


def add_small_products(risky: Mask, a: F64, b: F64, product: F64) -> None:
    """Mark the lanes whose product may have lost part of its error term."""
    small = np.abs(product) < SMALL_PRODUCT
    if small.any():
        small &= (product != 0) | ((a != 0) & (b != 0))
        risky |= small


def careful_fma(a: F64, b: F64, c: F64, rounding: Rounding) -> F64:
    """Give a·b+c for any values, slowly."""
    finite_factors = np.isfinite(a) & np.isfinite(b)
    # A finite product that overflows must not meet an infinite addend as an infinity.
    result = np.where(finite_factors & np.isinf(c), c, a * b + c)
    finite = lanes.indices_of(finite_factors & np.isfinite(c))
    if finite.size:
        lanes.put(result, finite, exact.exact_fma(a[finite], b[finite], c[finite], rounding))
    return result
