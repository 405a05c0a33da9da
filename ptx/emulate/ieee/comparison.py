"""Sign, class, minimum and maximum, by PTX's rules for NaN and signed zeros."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ptx.emulate.ieee import lanes
from ptx.emulate.ieee.lanes import Array, Float, Mask, elementwise, settle_nans

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
    """Return whether a float has a property (PTX `testp`); zeros are normal numbers here."""
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


@elementwise
def minimum(
    *operands: Float, nan: bool = False, xorsign: bool = False, magnitudes: bool = False
) -> Float:
    """Give the least of two or three floats (PTX `min`), with -0 below +0.

    A NaN loses against a number unless `nan` (`.NaN`); `xorsign` (`.xorsign.abs`) compares
    magnitudes and gives the result the product of the signs, `magnitudes` (`.abs`) only compares
    magnitudes.
    """
    return _extreme(operands, np.minimum, np.bitwise_or, nan, xorsign, magnitudes)


@elementwise
def maximum(
    *operands: Float, nan: bool = False, xorsign: bool = False, magnitudes: bool = False
) -> Float:
    """Give the greatest of two or three floats (PTX `max`); see `minimum`."""
    return _extreme(operands, np.maximum, np.bitwise_and, nan, xorsign, magnitudes)


def _extreme(
    operands: tuple[Array, ...],
    choose: np.ufunc,
    join_signs: np.ufunc,
    nan: bool,
    xorsign: bool,
    magnitudes: bool,
) -> Array:
    integer = np.uint32 if operands[0].dtype == np.float32 else np.uint64
    terms = [np.abs(x) for x in operands] if xorsign or magnitudes else operands
    result = terms[0]
    for term in terms[1:]:
        chosen = choose(result, term)
        if not nan and lanes.has_nan(chosen):
            # Not `fmin` and `fmax`, for which a signalling NaN wins, in some lanes.
            chosen = np.where(np.isnan(result), term, np.where(np.isnan(term), result, chosen))
        if not (xorsign or magnitudes):
            zero = chosen == 0
            if zero.any():
                zero &= (result == 0) & (term == 0)
                signs = join_signs(result.view(integer), term.view(integer)).view(result.dtype)
                chosen = np.where(zero, signs, chosen)
        result = chosen
    if xorsign:
        sign = operands[0].view(integer)
        for x in operands[1:]:
            sign = sign ^ x.view(integer)
        result = np.copysign(result, sign.view(result.dtype))
    return settle_nans(result, *reversed(operands))
