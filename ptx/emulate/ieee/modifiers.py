"""The instruction modifiers `.ftz` and `.sat`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptx.emulate.ieee import lanes
from ptx.emulate.ieee.array_types import F32, F64, Float
from ptx.emulate.ieee.directed import narrow
from ptx.emulate.ieee.lanes import elementwise
from ptx.emulate.ieee.rounding import Rounding

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
    return _flushed(x, magnitude, least)


def _flushed(x: Float, magnitude: Float, least: Float) -> Float:
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
    result: F32, exact: Callable[[lanes.Indices], F64], rounding: Rounding = Rounding.RN
) -> F32:
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
    return _flushed(result, np.abs(result), _LEAST_NORMAL)
