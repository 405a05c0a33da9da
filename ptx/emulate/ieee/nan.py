"""The NaN that each operation gives: the only place that knows.

PTX ISA, "Floating Point Instructions": operations on `.f32`, `.f16` and `.bf16` give a canonical
NaN; "NaN payloads are supported" for `.f64`, without a word on which operand's survives. What is
here is what a GPU of compute capability 9.0 gave.
"""

from __future__ import annotations

import numpy as np

from ptx.emulate.ieee import lanes
from ptx.emulate.ieee.array_types import Array

F32_NAN = 0x7FFF_FFFF
"""The canonical NaN of `.f32`."""
F64_NAN = 0xFFF8_0000_0000_0000
"""The NaN of an invalid operation on `.f64` whose operands are numbers."""
F64_APPROXIMATE_NAN = 0x7FFF_FFFF_0000_0000
"""The NaN of the `.f64` approximations, which compute the upper word only."""
F16_NAN = 0x7FFF
"""The canonical NaN of `.f16`."""
BF16_NAN = 0x7FFF
"""The canonical NaN of `.bf16`."""

_F64_QUIET = np.uint64(1 << 51)


def settle_nans(result: Array, *operands: Array) -> Array:
    """Give a float32 or float64 result's NaN lanes the bits that the hardware gives.

    Changes `result` in place and returns it. float32: the canonical NaN. float64: the first of
    `operands` that is a NaN, made quiet, else `F64_NAN`; callers list the operands in the order in
    which the hardware prefers them.
    """
    if not lanes.has_nan(result):
        return result
    nans = np.isnan(result)
    if result.dtype == np.float32:
        result.view(np.uint32)[nans] = F32_NAN
        return result
    bits = np.full(result.shape, F64_NAN, np.uint64)
    for operand in reversed(operands):
        bits = np.where(np.isnan(operand), operand.view(np.uint64) | _F64_QUIET, bits)
    result.view(np.uint64)[nans] = bits[nans]
    return result


def quiet(x: Array) -> Array:
    """Give float64 values with their signalling NaNs made quiet."""
    nans = np.isnan(x)
    if not nans.any():
        return x
    return np.where(nans, x.view(np.uint64) | _F64_QUIET, x.view(np.uint64)).view(np.float64)
