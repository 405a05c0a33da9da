"""Fused multiply-add of float32, through float64."""

from __future__ import annotations

import numpy as np

from ptx.emulate.ieee import lanes
from ptx.emulate.ieee.directed import narrow, towards
from ptx.emulate.ieee.nan import settle_nans
from ptx.emulate.ieee.rounding import Rounding
from ptx.emulate.ieee.types import F32, F64, Array

_LEAST_NORMAL = np.float32(2.0**-126)
_DROPPED = np.int64((1 << 29) - 1)
_TIE = np.int64(1 << 28)


def fma32(a: F32, b: F32, c: F32, rounding: Rounding) -> F32:
    """Give a·b+c with one rounding.

    The product is exact in float64 and the sum is rounded there once; rounding it again to
    float32 is wrong only where that sum sits on a tie without being exact. Those lanes, and the
    ones with subnormal results, are rounded to odd in float64 first.
    """
    product = np.multiply(a, b, dtype=np.float64)
    wide = product + c
    if rounding is not Rounding.RN:
        return _directed(product, c, wide, rounding)
    result = wide.astype(np.float32)
    risky = (wide.view(np.int64) & _DROPPED) == _TIE
    if risky.any():
        _repair(result, product, c, wide, lanes.indices_of(risky))
    small = np.abs(result) < _LEAST_NORMAL
    if small.any():
        small &= wide != 0
        _repair(result, product, c, wide, lanes.indices_of(small))
    return settle_nans(result, a, b, c)


def _repair(result: F32, product: Array, c: Array, wide: F64, indices: lanes.Indices) -> None:
    """Round the lanes again from a float64 sum that is rounded to odd."""
    if not indices.size:
        return
    shape = result.shape
    total = lanes.pick(wide, shape, indices)
    error = sum_error(
        lanes.pick(product, shape, indices),
        lanes.pick(c, shape, indices).astype(np.float64),
        total,
    )
    lanes.put(result, indices, round_to_odd(total, error).astype(np.float32))


def _directed(product: Array, c: Array, wide: F64, rounding: Rounding) -> F32:
    error = sum_error(product, c.astype(np.float64), wide)
    result = narrow(wide, error, rounding)
    if rounding is Rounding.RM:
        set_zero_sums_negative(result, wide, product, c)
    return settle_nans(result)


def sum_error(x: Array, y: Array, total: Array) -> Array:
    """Give x+y-total exactly (Knuth's TwoSum), where nothing overflows."""
    y_part = total - x
    x_part = total - y_part
    np.subtract(y, y_part, out=y_part)
    np.subtract(x, x_part, out=x_part)
    x_part += y_part
    return x_part


def round_to_odd(total: F64, error: F64) -> F64:
    """Make a rounded sum's last bit odd where it was inexact, on the exact value's side."""
    even = (total.view(np.int64) & 1) == 0
    # Truncate, then set the last bit: truncating only ever leaves an even one short of the value.
    nudge = np.where(even & (np.abs(total) < np.inf), error, 0.0)
    down = towards(total.copy(), nudge, Rounding.RZ)
    return (down.view(np.int64) | (nudge != 0)).view(np.float64)


def set_zero_sums_negative(result: Array, total: Array, x: Array, y: Array) -> None:
    """Give sums that are exactly zero the sign of rounding down: plus only for two plus zeros."""
    zeros = lanes.indices_of(total == 0)
    if zeros.size:
        shape = result.shape
        both = np.signbit(lanes.pick(x, shape, zeros)) | np.signbit(lanes.pick(y, shape, zeros))
        opposite = np.where(both, result.dtype.type(-0.0), lanes.pick(result, shape, zeros))
        lanes.put(result, zeros, opposite)
