"""Addition, multiplication, division, square root and fused multiply-add, correctly rounded.

Every function takes float32 or float64 arrays or scalars of one dtype and gives that dtype, for any
inputs, in the four modes of PTX's arithmetic. `ftz`, for float32 only, flushes subnormal operands
and results to zeros of their sign; `flushed` promises that no operand is subnormal, and without
`nans` a resulting NaN may have any bits. PTX ISA, "Floating Point Instructions", `.ftz`, `.sat`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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


def flush_exactly(
    result: Singles,
    operation: np.ufunc,
    operands: Sequence[Singles],
    rounding: Rounding = Rounding.RN,
) -> Singles:
    """Flush what float64 holds exactly or to more than enough bits, as products and quotients."""

    def exact(at: lanes.Indices) -> Doubles:
        picked = (lanes.pick(operand, result.shape, at) for operand in operands)
        return operation(*picked, dtype=np.float64)

    return flush_result(result, exact, rounding)


def _rounded(
    *nan_order: int, operation: np.ufunc | None = None
) -> Callable[[Callable[..., Array]], Callable[..., Any]]:
    """Make a PTX operation of a function that computes it for a rounding mode.

    `nan_order`: the operands whose NaN a float64 result takes, in the hardware's order.
    `operation`: what float64 does for `flush_exactly`; None where a result is exact if it is small.
    """

    def decorate(compute: Callable[..., Array]) -> Callable[..., Any]:
        def call(
            *operands: Float,
            rounding: Rounding = Rounding.RN,
            ftz: bool = False,
            flushed: bool = False,
            nans: bool = True,
        ) -> Float:
            if ftz and not flushed:
                operands = tuple(flush_subnormals(x) for x in operands)
            result = compute(*operands, rounding)
            if nans:
                settle_nans(result, *(operands[k] for k in nan_order))
            if not ftz:
                return result
            if operation is None:
                return flush_subnormals(result)
            return flush_exactly(result, operation, operands, rounding)

        call.__name__, call.__doc__ = compute.__name__, compute.__doc__
        return elementwise(call)

    return decorate


@_rounded(1, 0)
def add(a: Float, b: Float, rounding: Rounding) -> Float:
    """Give a+b (PTX `add`)."""
    return _sum(a, b, rounding)


@_rounded(1, 0)
def sub(a: Float, b: Float, rounding: Rounding) -> Float:
    """Give a-b (PTX `sub`); the NaN that comes out is that of b, not of -b."""
    return a - b if rounding is Rounding.RN else _sum(a, np.negative(b), rounding)


@_rounded(1, 0, operation=np.multiply)
def mul(a: Float, b: Float, rounding: Rounding) -> Float:
    """Give a·b (PTX `mul`)."""
    if rounding is Rounding.RN:
        return a * b
    if a.dtype == np.float32:
        return narrow(np.multiply(a, b, dtype=np.float64), None, rounding)
    return _directed_product(a, b, rounding)


@_rounded(0, 1, operation=np.divide)
def div(a: Float, b: Float, rounding: Rounding) -> Float:
    """Give a/b (PTX `div.rnd`)."""
    return _quotient(a, b, rounding)


@_rounded(0, operation=np.reciprocal)
def rcp(x: Float, rounding: Rounding) -> Float:
    """Give 1/x (PTX `rcp.rnd`)."""
    return _quotient(np.ones(1, x.dtype), x, rounding)


@_rounded(0)
def sqrt(x: Float, rounding: Rounding) -> Float:
    """Give the square root (PTX `sqrt.rnd`); that of -0 is -0."""
    if rounding is Rounding.RN:
        return np.sqrt(x)
    if x.dtype == np.float32:
        # No root of a float32 lies within a float64's error of a float32 without being it.
        return narrow(np.sqrt(x, dtype=np.float64), None, rounding)
    result = np.sqrt(x)
    indices = lanes.indices_of((x > 0) & (x < np.inf))
    if indices.size:
        lanes.put(result, indices, exact_root(x.reshape(-1)[indices], rounding))
    return result


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
