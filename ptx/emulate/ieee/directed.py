"""Rounding in a given direction from a nearest result and the sign of its error."""

from __future__ import annotations

import numpy as np

from ptx.emulate.ieee.array_types import F32, F64, Array
from ptx.emulate.ieee.rounding import Rounding


def towards(nearest: Array, error: Array, rounding: Rounding) -> Array:
    """Move round-to-nearest results to those of a directed mode, in place.

    `nearest` is float32 or float64 of shape (n,); `error` has the sign of the exact value less
    `nearest`, and is 0 or NaN where nothing moves. An infinity that came from overflow steps back
    to the largest finite number; a zero steps to the least subnormal.
    """
    integer = np.dtype(np.int32 if nearest.dtype == np.float32 else np.int64).type
    bits = nearest.view(integer)
    # For IEEE bits as an integer, +1 leads away from zero, whatever the sign.
    match rounding:
        case Rounding.RZ:
            bits -= (error < 0) & (bits >= 0)
            bits -= (error > 0) & (bits < 0)
        case Rounding.RM:
            away = (bits >> (8 * bits.itemsize - 1)) | integer(1)
            bits -= away * (error < 0)
        case Rounding.RP:
            away = (bits >> (8 * bits.itemsize - 1)) | integer(1)
            bits += away * (error > 0)
        case _:
            raise ValueError(f"{rounding!r} is not a rounding mode of arithmetic instructions")
    return nearest


def narrow(wide: F64, rest: F64 | None, rounding: Rounding) -> F32:
    """Round float64 values plus a rest to float32.

    The exact value is `wide + rest`, where `rest` is at most half a unit in the last place of
    `wide`; None stands for zero. For RN `wide` must round safely by itself.
    """
    nearest = wide.astype(np.float32)
    if rounding is not Rounding.RN:
        # Exact where it matters: `nearest` lies within 2^-24 of `wide`. The difference is either
        # zero or no less than the whole of `rest`, so the sign of the sum is right.
        error = wide - nearest
        if rest is not None:
            error += rest
        towards(nearest, error, rounding)
    return nearest
