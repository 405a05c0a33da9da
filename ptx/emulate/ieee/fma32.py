"""Fused multiply-add of float32, through float64."""

from __future__ import annotations

import numpy as np

from ptx.emulate.ieee import lanes
from ptx.emulate.ieee.array_types import F32, F64, Array, Float
from ptx.emulate.ieee.directed import narrow
from ptx.emulate.ieee.error_free import round_to_odd, set_zero_sums_negative, sum_error
from ptx.emulate.ieee.nan import settle_nans
from ptx.emulate.ieee.rounding import Rounding

_LEAST_NORMAL = np.float32(2.0**-126)
_DROPPED = np.int64((1 << 29) - 1)
_TIE = np.int64(1 << 28)


def fma32(a: F32, b: F32, c: F32, rounding: Rounding, *, nans: bool = True) -> F32:
    """Give a·b+c with one rounding.

    The product is exact in float64 and the sum is rounded there once; rounding it again to
    float32 is wrong only where that sum sits on a tie without being exact. Those lanes, and the
    ones with subnormal results, are rounded to odd in float64 first. `nans`: a NaN gets the
    canonical bits.
    """
    if rounding is not Rounding.RN:
        product = np.multiply(a, b, dtype=np.float64)
        return _directed(product, c, product + c, rounding)
    product = a.astype(np.float64) * b.astype(np.float64)
    wide = product + c.astype(np.float64)
    result = wide.astype(np.float32)
    if product.shape == wide.shape:
        dropped = np.bitwise_and(wide.view(np.int64), _DROPPED, out=product.view(np.int64))
    else:
        dropped = wide.view(np.int64) & _DROPPED
    risky = dropped == _TIE
    if risky.any():
        _repair(result, a, b, c, wide, lanes.indices_of(risky))
    magnitude = np.abs(result)
    if not lanes.least(magnitude) >= _LEAST_NORMAL:
        small = (magnitude < _LEAST_NORMAL) & (wide != 0)
        _repair(result, a, b, c, wide, lanes.indices_of(small))
    return settle_nans(result) if nans else result


def _repair(result: F32, a: F32, b: F32, c: F32, wide: F64, indices: lanes.Indices) -> None:
    """Round the lanes again from a float64 sum that is rounded to odd."""
    if not indices.size:
        return
    shape = result.shape
    total = lanes.pick(wide, shape, indices)
    product = np.multiply(
        lanes.pick(a, shape, indices), lanes.pick(b, shape, indices), dtype=np.float64
    )
    error = sum_error(product, lanes.pick(c, shape, indices).astype(np.float64), total)
    lanes.put(result, indices, round_to_odd(total, error).astype(np.float32))


def _directed(product: Array, c: Array, wide: F64, rounding: Rounding) -> F32:
    error = sum_error(product, c.astype(np.float64), wide)
    result = narrow(wide, error, rounding)
    if rounding is Rounding.RM:
        set_zero_sums_negative(result, wide, product, c)
    return settle_nans(result)


def uniform_fma32(a: Float, b: Float, c: Float) -> Float:
    """Give a·b+c of three float32 scalars, rounded to nearest, in Python's floats.

    A sum that is neither a float32 nor half way between two of them rounds safely twice; what lies
    as far on the other side of it as its float32 tells.
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
