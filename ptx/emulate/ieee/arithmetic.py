"""Addition, multiplication, division, square root and fused multiply-add, correctly rounded.

Every function takes float32 or float64 arrays or scalars of one dtype and gives that dtype, for
any inputs, in the four modes of PTX's arithmetic. PTX ISA, "Floating Point Instructions".
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.ieee import exact, lanes
from ptx.emulate.ieee.directed import narrow, towards
from ptx.emulate.ieee.error_free import minus_product_error, set_zero_sums_negative, sum_error
from ptx.emulate.ieee.fma32 import fma32
from ptx.emulate.ieee.fma64 import add_small_products, careful_fma, fma64
from ptx.emulate.ieee.lanes import elementwise
from ptx.emulate.ieee.nan import settle_nans
from ptx.emulate.ieee.rounding import Rounding
from ptx.emulate.ieee.types import F64, Array, Float, Mask


@elementwise
def fma(a: Float, b: Float, c: Float, *, rounding: Rounding = Rounding.RN) -> Float:
    """Give a·b+c with one rounding (PTX `fma`, and `mad` on floats)."""
    if a.dtype == np.float32:
        return fma32(a, b, c, rounding)
    return fma64(a, b, c, rounding)


@elementwise
def add(a: Float, b: Float, *, rounding: Rounding = Rounding.RN) -> Float:
    """Give a+b (PTX `add`)."""
    return settle_nans(_sum(a, b, rounding), b, a)


@elementwise
def sub(a: Float, b: Float, *, rounding: Rounding = Rounding.RN) -> Float:
    """Give a-b (PTX `sub`)."""
    return settle_nans(_sum(a, np.negative(b), rounding), b, a)


@elementwise
def mul(a: Float, b: Float, *, rounding: Rounding = Rounding.RN) -> Float:
    """Give a·b (PTX `mul`)."""
    if rounding is Rounding.RN:
        result = a * b
    elif a.dtype == np.float32:
        result = narrow(np.multiply(a, b, dtype=np.float64), None, rounding)
    else:
        result = _directed_product(a, b, rounding)
    return settle_nans(result, b, a)


@elementwise
def div(a: Float, b: Float, *, rounding: Rounding = Rounding.RN) -> Float:
    """Give a/b (PTX `div.rnd`)."""
    return settle_nans(_quotient(a, b, rounding), a, b)


@elementwise
def rcp(x: Float, *, rounding: Rounding = Rounding.RN) -> Float:
    """Give 1/x (PTX `rcp.rnd`)."""
    return settle_nans(_quotient(np.ones(1, x.dtype), x, rounding), x)


@elementwise
def sqrt(x: Float, *, rounding: Rounding = Rounding.RN) -> Float:
    """Give the square root (PTX `sqrt.rnd`); that of -0 is -0."""
    if rounding is Rounding.RN:
        result = np.sqrt(x)
    elif x.dtype == np.float32:
        # No root of a float32 lies within a float64's error of a float32 without being it.
        result = narrow(np.sqrt(x, dtype=np.float64), None, rounding)
    else:
        result = np.sqrt(x)
        indices = lanes.indices_of((x > 0) & (x < np.inf))
        if indices.size:
            lanes.put(result, indices, exact.exact_root(x.reshape(-1)[indices], rounding))
    return settle_nans(result, x)


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
        over = np.isinf(total)
        if over.any():
            # An infinity made of finite terms lies beyond the exact value; any other is exact.
            error = np.where(over & np.isfinite(a) & np.isfinite(b), -total, error)
        result = towards(total.copy(), error, rounding)
    if rounding is Rounding.RM:
        set_zero_sums_negative(result, total, a, b)
    return result


def _directed_product(a: F64, b: F64, rounding: Rounding) -> F64:
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
        lanes.put(result, indices, exact.exact_quotient(x, y, rounding))
    return result
