"""Operations on a float's bits: sign, magnitude, class."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ptx.emulate.ieee.array_types import Float, Mask
from ptx.emulate.ieee.lanes import elementwise
from ptx.emulate.ieee.nan import settle_nans

Property = Literal["finite", "infinite", "number", "notanumber", "normal", "subnormal"]


@elementwise
def neg(x: Float) -> Float:
    """Flip the sign (PTX `neg.f32`, `neg.f64`); a NaN comes out as from arithmetic."""
    return settle_nans(np.negative(x), x)


@elementwise
def absolute(x: Float) -> Float:
    """Clear the sign (PTX `abs.f32`, `abs.f64`); a NaN comes out as from arithmetic.

    So a float64 NaN keeps its sign.
    """
    return settle_nans(np.abs(x), x)


@elementwise
def copysign(sign: Float, magnitude: Float) -> Float:
    """Give the second operand with the first one's sign, in PTX's order; NaNs keep their bits."""
    return np.copysign(magnitude, sign)


@elementwise
def testp(x: Float, *, which: Property) -> Mask:
    """Tell whether a float has a property (PTX `testp`); zeros are normal numbers here."""
    match which:
        case "finite":
            return np.isfinite(x)
        case "infinite":
            return np.isinf(x)
        case "number":
            return ~np.isnan(x)
        case "notanumber":
            return np.isnan(x)
        case "normal":
            return np.isfinite(x) & ((np.abs(x) >= np.finfo(x.dtype).tiny) | (x == 0))
        case "subnormal":
            return (np.abs(x) < np.finfo(x.dtype).tiny) & (x != 0)
