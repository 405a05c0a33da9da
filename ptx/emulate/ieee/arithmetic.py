"""Addition, multiplication, division, square root and fused multiply-add, correctly rounded.

Every function takes float32 or float64 arrays or scalars of one dtype and gives that dtype, for any
inputs, in the four modes of PTX's arithmetic. `ftz`, for float32 only, flushes subnormal operands
and results to zeros of their sign; `flushed` says that no operand is subnormal, and without `nans`
a NaN may come out with any bits. PTX ISA, "Floating Point Instructions", `.ftz`, `.sat`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptx.emulate.ieee import lanes
from ptx.emulate.ieee.exact import (
    add_small_products,
    careful_fma,
    exact_quotient,
    exact_root,
    fma32,
    fma64,
    minus_product_error,
    narrow,
    round_to_odd,
    set_zero_sums_negative,
    sum_error,
    towards,
)
from ptx.emulate.ieee.formats import Rounding
from ptx.emulate.ieee.lanes import Array, Doubles, Float, Mask, Singles, elementwise, settle_nans

_LEAST_NORMAL = np.float32(2.0**-126)
_LEAST_NORMAL_64 = np.float64(2.0**-1022)


@elementwise
def flush_subnormals(x: Float) -> Float:
    """Replace subnormal numbers by zeros of the same sign (PTX `.ftz`).

    The result may be `x` itself where nothing is subnormal.
    """
    least = _LEAST_NORMAL if x.dtype == np.float32 else _LEAST_NORMAL_64
    magnitude = np.abs(x)
    if lanes.least(magnitude) >= least:
        return x
    return _flush_lanes(x, magnitude, least)


def _flush_lanes(x: Float, magnitude: Float, least: Float) -> Float:
    """Flush where there may be something to flush; zeros alone are common and cost no copy."""
    indices = lanes.indices_of((magnitude < least) & (magnitude != 0))
    if not indices.size:
        return x
    result = x.copy()
    lanes.put(result, indices, np.copysign(x.dtype.type(0), lanes.pick(x, x.shape, indices)))
    return result


@elementwise
def saturate(x: Float) -> Float:
    """Clamp to [0, 1]; NaN and -0 give +0 (PTX `.sat`)."""
    result = np.maximum(x, x.dtype.type(0))
    np.minimum(result, x.dtype.type(1), out=result)
    if lanes.has_nan(result):
        result[np.isnan(result)] = 0
    # Of two zeros `maximum` may give the negative one.
    result += x.dtype.type(0)
    return result


def flush_result(
    result: Singles, exact: Callable[[lanes.Indices], Doubles], rounding: Rounding = Rounding.RN
) -> Singles:
    """Flush an operation's float32 results as the hardware does.

    It flushes what would be below the least normal number if exponents had no lower bound. So a
    result that only reached that number by rounding to a subnormal's coarser last place is flushed
    too. `exact` gives, for flat indices, float64 values that round as the exact ones do.
    """
    magnitude = np.abs(result)
    if lanes.least(magnitude) > _LEAST_NORMAL:
        return result
    edge = magnitude == _LEAST_NORMAL
    if edge.any():
        indices = lanes.indices_of(edge)
        scaled = narrow(exact(indices) * 2.0**64, None, rounding)
        low = indices[np.abs(scaled) < 2.0**-62]
        lanes.put(result, low, np.copysign(np.float32(0), lanes.pick(result, result.shape, low)))
    return _flush_lanes(result, np.abs(result), _LEAST_NORMAL)


@elementwise
def fma(
    a: Float,
    b: Float,
    c: Float,
    *,
    rounding: Rounding = Rounding.RN,
    ftz: bool = False,
    flushed: bool = False,
    nans: bool = True,
) -> Float:
    """Give a·b+c with one rounding (PTX `fma`, and `mad` on floats)."""
    if a.dtype == np.float64:
        return fma64(a, b, c, rounding)
    if not ftz:
        return fma32(a, b, c, rounding, nans=nans)
    x, y, z = (a, b, c) if flushed else map(flush_subnormals, (a, b, c))
    result = fma32(x, y, z, rounding, nans=nans)

    def exact(at: lanes.Indices) -> Doubles:
        product = np.multiply(
            lanes.pick(x, result.shape, at), lanes.pick(y, result.shape, at), dtype=np.float64
        )
        addend = lanes.pick(z, result.shape, at).astype(np.float64)
        total = product + addend
        return round_to_odd(total, sum_error(product, addend, total))

    return flush_result(result, exact, rounding)


@elementwise
def add(
    a: Float,
    b: Float,
    *,
    rounding: Rounding = Rounding.RN,
    ftz: bool = False,
    flushed: bool = False,
    nans: bool = True,
) -> Float:
    """Give a+b (PTX `add`)."""
    if ftz and not flushed:
        a, b = flush_subnormals(a), flush_subnormals(b)
    result = _sum(a, b, rounding)
    if nans:
        settle_nans(result, b, a)
    # Sums of normal numbers are exact where they are small: flushing needs no more care.
    return flush_subnormals(result) if ftz else result


@elementwise
def sub(
    a: Float,
    b: Float,
    *,
    rounding: Rounding = Rounding.RN,
    ftz: bool = False,
    flushed: bool = False,
    nans: bool = True,
) -> Float:
    """Give a-b (PTX `sub`)."""
    if ftz and not flushed:
        a, b = flush_subnormals(a), flush_subnormals(b)
    result = a - b if rounding is Rounding.RN else _sum(a, np.negative(b), rounding)
    # The NaN that comes out is that of b, not of -b.
    if nans:
        settle_nans(result, b, a)
    return flush_subnormals(result) if ftz else result


@elementwise
def mul(
    a: Float,
    b: Float,
    *,
    rounding: Rounding = Rounding.RN,
    ftz: bool = False,
    flushed: bool = False,
    nans: bool = True,
) -> Float:
    """Give a·b (PTX `mul`)."""
    if ftz and not flushed:
        a, b = flush_subnormals(a), flush_subnormals(b)
    if rounding is Rounding.RN:
        result = a * b
    elif a.dtype == np.float32:
        result = narrow(np.multiply(a, b, dtype=np.float64), None, rounding)
    else:
        result = _directed_product(a, b, rounding)
    if nans:
        settle_nans(result, b, a)
    return _flushed(np.multiply, result, a, b, rounding) if ftz else result


@elementwise
def div(
    a: Float,
    b: Float,
    *,
    rounding: Rounding = Rounding.RN,
    ftz: bool = False,
    flushed: bool = False,
    nans: bool = True,
) -> Float:
    """Give a/b (PTX `div.rnd`)."""
    if ftz and not flushed:
        a, b = flush_subnormals(a), flush_subnormals(b)
    result = _quotient(a, b, rounding)
    if nans:
        settle_nans(result, a, b)
    return _flushed(np.divide, result, a, b, rounding) if ftz else result


@elementwise
def rcp(
    x: Float,
    *,
    rounding: Rounding = Rounding.RN,
    ftz: bool = False,
    flushed: bool = False,
    nans: bool = True,
) -> Float:
    """Give 1/x (PTX `rcp.rnd`)."""
    if ftz and not flushed:
        x = flush_subnormals(x)
    one = np.ones(1, x.dtype)
    result = _quotient(one, x, rounding)
    if nans:
        settle_nans(result, x)
    return _flushed(np.divide, result, one, x, rounding) if ftz else result


@elementwise
def sqrt(
    x: Float,
    *,
    rounding: Rounding = Rounding.RN,
    ftz: bool = False,
    flushed: bool = False,
    nans: bool = True,
) -> Float:
    """Give the square root (PTX `sqrt.rnd`); that of -0 is -0."""
    if ftz and not flushed:
        x = flush_subnormals(x)
    if rounding is Rounding.RN:
        result = np.sqrt(x)
    elif x.dtype == np.float32:
        # No root of a float32 lies within a float64's error of a float32 without being it.
        result = narrow(np.sqrt(x, dtype=np.float64), None, rounding)
    else:
        result = np.sqrt(x)
        indices = lanes.indices_of((x > 0) & (x < np.inf))
        if indices.size:
            lanes.put(result, indices, exact_root(x.reshape(-1)[indices], rounding))
    return settle_nans(result, x) if nans else result


def _flushed(operation: np.ufunc, result: Array, a: Array, b: Array, rounding: Rounding) -> Array:
    """Flush products and quotients, which float64 holds exactly or to more than enough bits."""

    def exact(at: lanes.Indices) -> Doubles:
        shape = result.shape
        return operation(lanes.pick(a, shape, at), lanes.pick(b, shape, at), dtype=np.float64)

    return flush_result(result, exact, rounding)


def _sum(a: Array, b: Array, rounding: Rounding) -> Array:
    if rounding is Rounding.RN:
        return a + b
    if a.dtype == np.float32:
        a, b = a.astype(np.float64), b.astype(np.float64)
        total = a + b
        result = narrow(total, sum_error(a, b, total), rounding)
    else:
        result = total = a + b
        error = sum_error(a, b, total)
        lost = ~np.isfinite(error)
        if lost.any():
            error = np.where(lost, _error_near_overflow(a, b, total), error)
        result = towards(total.copy(), error, rounding)
    if rounding is Rounding.RM:
        set_zero_sums_negative(result, total, a, b)
    return result


def _error_near_overflow(a: Doubles, b: Doubles, total: Doubles) -> Doubles:
    """Give the sign of a+b-total where a step of TwoSum overflows, and 0 for infinite terms."""
    a_larger = np.abs(a) >= np.abs(b)
    larger, smaller = np.where(a_larger, a, b), np.where(a_larger, b, a)
    # An infinity made of finite terms lies beyond the exact value; any other is exact.
    error = np.where(np.isinf(total), -total, smaller - (total - larger))
    return np.where(np.isfinite(larger), error, 0.0)


def _directed_product(a: Doubles, b: Doubles, rounding: Rounding) -> Doubles:
    product = a * b
    minus_error = minus_product_error(a, b, product)
    risky: Mask = ~np.isfinite(minus_error)
    add_small_products(risky, a, b, product)
    result = towards(product.copy(), np.negative(minus_error), rounding)
    if risky.any():
        indices = lanes.indices_of(risky)
        x, y = lanes.pick(a, result.shape, indices), lanes.pick(b, result.shape, indices)
        # A zero of the product's sign adds nothing, not even to the sign of a zero.
        zero = np.copysign(0.0, lanes.pick(product, result.shape, indices))
        lanes.put(result, indices, careful_fma(x, y, zero, rounding))
    return result


def _quotient(a: Array, b: Array, rounding: Rounding) -> Array:
    if rounding is Rounding.RN:
        return a / b
    if a.dtype == np.float32:
        # No quotient of float32 lies within a float64's error of a float32 without being it.
        return narrow(np.divide(a, b, dtype=np.float64), None, rounding)
    result = a / b
    shape = result.shape
    finite = np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0)
    indices = lanes.indices_of(finite)
    if indices.size:
        x, y = lanes.pick(a, shape, indices), lanes.pick(b, shape, indices)
        lanes.put(result, indices, exact_quotient(x, y, rounding))
    return result
