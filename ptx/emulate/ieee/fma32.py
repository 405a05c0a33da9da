"""Fused multiply-add of float32, through float64."""

from __future__ import annotations

import numpy as np

from ptx.emulate.ieee import lanes
from ptx.emulate.ieee.directed import narrow
from ptx.emulate.ieee.error_free import round_to_odd, set_zero_sums_negative, sum_error
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
    return settle_nans(result)


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
