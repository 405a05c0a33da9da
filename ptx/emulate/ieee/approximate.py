"""The approximate functions: computed in float64 and rounded, within PTX's error bounds.

Special values follow the tables of the PTX ISA, "Floating Point Instructions". `ftz` flushes
subnormal inputs and results.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptx.emulate.ieee import half
from ptx.emulate.ieee.arithmetic import flush_exactly, flush_result, flush_subnormals
from ptx.emulate.ieee.exact import narrow
from ptx.emulate.ieee.formats import Format, Rounding
from ptx.emulate.ieee.lanes import F64_APPROXIMATE_NAN, Array, Bits, Float, elementwise, settle_nans

_TURNS_PER_RADIAN = np.float32(0.15915494)
_UPPER_WORD = np.uint64(0xFFFF_FFFF_0000_0000)


def _through_float64(x: Array, function: Callable[[Array], Array], ftz: bool) -> Array:
    if ftz:
        x = flush_subnormals(x)
    wide = function(x.astype(np.float64))
    result = settle_nans(wide.astype(np.float32))
    return flush_result(result, lambda at: wide.reshape(-1)[at]) if ftz else result


@elementwise
def rcp_approx(x: Float, *, ftz: bool = False) -> Float:
    """Give 1/x (`rcp.approx.f32`), at most 1 ulp off."""
    return _through_float64(x, np.reciprocal, ftz)


@elementwise
def sqrt_approx(x: Float, *, ftz: bool = False) -> Float:
    """Give the square root (`sqrt.approx.f32`)."""
    return _through_float64(x, np.sqrt, ftz)


@elementwise
def rsqrt_approx(x: Float, *, ftz: bool = False) -> Float:
    """Give 1/√x (`rsqrt.approx.f32`); ∓0 give ∓infinity."""
    return _through_float64(x, lambda v: 1.0 / np.sqrt(v), ftz)


@elementwise
def sin_approx(x: Float, *, ftz: bool = False) -> Float:
    """Give the sine of radians (`sin.approx.f32`)."""
    return _through_float64(_turns(x, ftz), _sin_of_turns, ftz)


@elementwise
def cos_approx(x: Float, *, ftz: bool = False) -> Float:
    """Give the cosine of radians (`cos.approx.f32`)."""
    return _through_float64(_turns(x, ftz), _cos_of_turns, ftz)


def _turns(x: Array, ftz: bool) -> Array:
    """Give the angle in turns as the hardware does, by one float32 product rounded to zero.

    Within a turn or two this error is below the error bound. For large angles it determines the
    result, which would otherwise be unrelated to the hardware's.
    """
    if ftz:
        x = flush_subnormals(x)
    return narrow(np.multiply(x, _TURNS_PER_RADIAN, dtype=np.float64), None, Rounding.RZ)


def _sin_of_turns(turns: Array) -> Array:
    return np.sin(_angle(turns))


def _cos_of_turns(turns: Array) -> Array:
    return np.cos(_angle(turns))


def _angle(turns: Array) -> Array:
    """Reduce turns to radians within half a turn, in the hardware's steps of 2^-25 turns."""
    part = np.trunc((turns - np.rint(turns)) * 2.0**25)
    return np.copysign(part, np.where(part == 0, turns, part)) * (np.pi * 2.0**-24)


@elementwise
def lg2_approx(x: Float, *, ftz: bool = False) -> Float:
    """Give the binary logarithm (`lg2.approx.f32`); ±0 give -infinity."""
    return _through_float64(x, np.log2, ftz)


@elementwise
def ex2_approx(x: Float, *, ftz: bool = False) -> Float:
    """Give 2^x (`ex2.approx.f32`)."""
    return _through_float64(x, np.exp2, ftz)


@elementwise
def tanh_approx(x: Float) -> Float:
    """Give the hyperbolic tangent (`tanh.approx.f32`), subnormal numbers kept."""
    return _through_float64(x, np.tanh, False)


@elementwise
def div_approx(a: Float, b: Float, *, ftz: bool = False) -> Float:
    """Give a/b (`div.approx.f32`); for 2^126 < |b| < 2^128 zero, or NaN where a is infinite."""
    if ftz:
        a, b = flush_subnormals(a), flush_subnormals(b)
    result = a / b
    magnitude = np.abs(b)
    huge = (magnitude > 2.0**126) & (magnitude < np.inf)
    if huge.any():
        result = np.where(huge, a * np.copysign(np.float32(0), b), result)
    settle_nans(result)
    return flush_exactly(result, np.divide, (a, b)) if ftz else result


@elementwise
def div_full(a: Float, b: Float, *, ftz: bool = False) -> Float:
    """Give a/b over the full range (`div.full.f32`), at most 2 ulp off."""
    if ftz:
        a, b = flush_subnormals(a), flush_subnormals(b)
    result = settle_nans(a / b)
    return flush_exactly(result, np.divide, (a, b)) if ftz else result


@elementwise
def rcp_approx_f64(x: Float) -> Float:
    """Give 1/x in the upper word alone (`rcp.approx.ftz.f64`), subnormal numbers flushed."""
    return _to_upper_word(1.0 / flush_subnormals(_upper_word(x)))


@elementwise
def rsqrt_approx_f64(x: Float, *, ftz: bool = False) -> Float:
    """Give 1/√x (`rsqrt.approx.f64`), rounded to nearest; with `ftz` in the upper word alone."""
    if ftz:
        return _to_upper_word(1.0 / np.sqrt(flush_subnormals(_upper_word(x))))
    result = 1.0 / np.sqrt(x)
    taken = (x > 0) & (x < np.inf)
    result[taken] = _rsqrt(x[taken])
    return settle_nans(result, x)


def _rsqrt(x: Array) -> Array:
    """Give 1/√x of positive numbers, rounded to nearest.

    Two roundings are up to 1.5 ulp off. So a step of Halley follows, whose residual is exact.
    """
    fraction, exponent = np.frexp(x)
    odd = exponent & 1
    fraction, exponent = np.ldexp(fraction, odd), exponent - odd
    first = 1.0 / np.sqrt(fraction)
    square, square_rest = _product(first, first)
    product, rest = _product(fraction, square)
    residual = 1.0 - product - rest - fraction * square_rest
    step = first * residual * (0.5 + 0.375 * residual)
    return np.ldexp(first + step, -(exponent >> 1))


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """Give a product and its rounding error (Dekker, 1971)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = (_halves(a), _halves(b))
    return product, a_low * b_low - (product - a_high * b_high - a_low * b_high - a_high * b_low)


def _halves(x: Array) -> tuple[Array, Array]:
    """Split numbers into two of 26 bits (Veltkamp)."""
    scaled = x * 134217729.0
    high = scaled - (scaled - x)
    return high, x - high


def _upper_word(x: Array) -> Array:
    """Clear the lower 32 bits, which these instructions do not read: a NaN may become infinite."""
    return (x.view(np.uint64) & _UPPER_WORD).view(np.float64)


def _to_upper_word(x: Array) -> Array:
    """Flush, and cut to the upper 32 bits."""
    result = _upper_word(flush_subnormals(x))
    nans = np.isnan(x)
    if nans.any():
        result.view(np.uint64)[nans] = F64_APPROXIMATE_NAN
    return result


@elementwise
def half_ex2_approx(x: Bits, *, kind: Format, ftz: bool = False) -> Bits:
    """Give 2^x of half-precision bits (`ex2.approx.f16`, `ex2.approx.ftz.bf16`)."""
    return _half_through_float64(x, np.exp2, kind, ftz)


@elementwise
def half_tanh_approx(x: Bits, *, kind: Format) -> Bits:
    """Give the hyperbolic tangent of half-precision bits (`tanh.approx.f16`, `.bf16`)."""
    return _half_through_float64(x, np.tanh, kind, False)


def _half_through_float64(
    x: Array, function: Callable[[Array], Array], kind: Format, ftz: bool
) -> Array:
    if ftz:
        x = half.flush(x, kind)
    wide = function(half.widen(x, kind).astype(np.float64))
    bits = half.nearest(wide.astype(np.float32), kind)
    return half.flush(bits, kind) if ftz else bits
