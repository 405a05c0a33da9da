"""Conversions between floats and integers (PTX `cvt`)."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from ptx.emulate.ieee.array_types import F64, Array, Bits, Float, Integer
from ptx.emulate.ieee.directed import narrow, towards
from ptx.emulate.ieee.encode import encode
from ptx.emulate.ieee.error_free import round_to_odd
from ptx.emulate.ieee.formats import Format
from ptx.emulate.ieee.lanes import elementwise
from ptx.emulate.ieee.rounding import Rounding

_INTEGRAL = MappingProxyType(
    {
        Rounding.RN: np.rint,
        Rounding.RZ: np.trunc,
        Rounding.RM: np.floor,
        Rounding.RP: np.ceil,
    }
)
"""What `.rni`, `.rzi`, `.rmi` and `.rpi` do."""


def integral(x: Array, rounding: Rounding) -> Array:
    """Round floats to integral floats; a zero result keeps the operand's sign."""
    return _INTEGRAL[rounding](x)


@elementwise
def float_to_integer(
    x: Float, *, dtype: np.dtype[np.integer], rounding: Rounding, from_f64: bool | None = None
) -> Integer:
    """Convert floats to an integer dtype, clamping what is out of range (PTX `cvt.irnd`).

    A NaN gives 0, but `1 << (bits - 1)` where the source is `.f64` or the destination has 64
    bits (PTX ISA, `cvt`, "Integer Notes"). `from_f64` tells the source where it is not x's dtype.
    """
    info = np.iinfo(dtype)
    whole = integral(x, rounding)
    low = x.dtype.type(float(info.min))
    end = x.dtype.type(2.0 ** (info.bits - (info.min < 0)))
    least, most = whole.min(initial=low), whole.max(initial=low)
    if least >= low and most < end:
        return whole.astype(dtype)
    fits = (whole >= low) & (whole < end)
    result = np.where(fits, whole, x.dtype.type(0)).astype(dtype)
    result[whole >= end] = info.max
    result[whole < low] = info.min
    if x.dtype == np.float64 if from_f64 is None else from_f64:
        wide_rule = True
    else:
        wide_rule = info.bits == 64
    if wide_rule:
        result[np.isnan(x)] = info.min if info.min < 0 else 1 << (info.bits - 1)
    return result


@elementwise
def integer_to_float(
    x: Integer, *, dtype: np.dtype[np.floating], rounding: Rounding = Rounding.RN
) -> Float:
    """Convert integers to float32 or float64 with one rounding (PTX `cvt.frnd`)."""
    if rounding is Rounding.RN:
        return x.astype(dtype)
    wide, rest = _widen(x)
    if dtype == np.float32:
        return narrow(wide, rest, rounding)
    return wide if rest is None else towards(wide, rest, rounding)


@elementwise
def integer_to_bits(x: Integer, *, target: Format, rounding: Rounding = Rounding.RN) -> Bits:
    """Convert integers to a narrow format's bits, as uint16, with one rounding."""
    wide, rest = _widen(x)
    if rest is not None:
        wide = round_to_odd(wide, rest)
    return encode(wide, target, rounding).astype(np.uint16)


def _widen(x: Array) -> tuple[F64, F64 | None]:
    """Give the nearest float64 values and what they leave, None where they are exact."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64), None
    high = (x >> x.dtype.type(32)).astype(np.float64) * 2.0**32
    low = (x & x.dtype.type(0xFFFF_FFFF)).astype(np.float64)
    wide = high + low
    return wide, low - (wide - high)
