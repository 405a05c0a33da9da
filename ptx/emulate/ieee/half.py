"""Half-precision values and arithmetic on them, as bits in uint16 arrays: `.f16`, `.bf16`.

Arithmetic is exact in every case, with one rounding to nearest. Operands and results are bits in
uint16 arrays or scalars; `kind` is `F16` or `BF16`. PTX ISA, "Half Precision Floating Point
Instructions". For pairs in words of 32 bits see `packed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptx.emulate.ieee import lanes
from ptx.emulate.ieee.exact import round_to_odd, sum_error
from ptx.emulate.ieee.formats import BF16, F16, Format, Rounding, encode
from ptx.emulate.ieee.lanes import BF16_NAN, F16_NAN, Array, Bits, Singles, elementwise

_SIGN = np.uint16(0x8000)
_MAGNITUDE = np.uint16(0x7FFF)


def widen(bits: Array, source: Format) -> Singles:
    """Give half-precision values as float32, exactly; NaNs keep their payload."""
    if source is F16:
        with np.errstate(invalid="ignore"):  # of a signalling NaN, on aarch64
            return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def nearest(x: Singles, target: Format) -> Array:
    """Round float32 values to the nearest half-precision bits, NaN to the canonical one."""
    if target is F16:
        bits = x.astype(np.float16).view(np.uint16)
        nan = F16_NAN
    else:
        words = x.view(np.uint32)
        odd = (words >> np.uint32(16)) & np.uint32(1)
        odd += np.uint32(0x7FFF)
        odd += words
        odd >>= np.uint32(16)
        bits = odd.astype(np.uint16)
        nan = BF16_NAN
    nans = np.isnan(x)
    if nans.any():
        bits[nans] = nan
    return bits


def is_nan(bits: Array, kind: Format) -> Array:
    """Return a mask of the bits that are a NaN."""
    return (bits & _MAGNITUDE) > np.uint16(_infinity(kind))


def flush(bits: Array, kind: Format) -> Array:
    """Replace subnormal values by zeros of the same sign."""
    exponent = bits & np.uint16(_infinity(kind))
    return np.where(exponent == 0, bits & _SIGN, bits)


def clamp(bits: Array, kind: Format) -> Array:
    """Clamp to [0, 1], NaN to +0 (`.sat`)."""
    one_bits = np.uint16(0x3C00 if kind is F16 else 0x3F80)
    drop = (bits >= _SIGN) | is_nan(bits, kind)
    return np.where(drop, np.uint16(0), np.minimum(bits, one_bits))


def rectify(bits: Array, kind: Format) -> Array:
    """Replace negative values and -0 by +0 (`.relu`); a NaN stays."""
    return np.where((bits >= _SIGN) & ~is_nan(bits, kind), np.uint16(0), bits)


def canonical(bits: Array, kind: Format) -> Array:
    """Replace every NaN by the canonical one."""
    nans = is_nan(bits, kind)
    if not nans.any():
        return bits
    return np.where(nans, np.uint16(F16_NAN if kind is F16 else BF16_NAN), bits)


def _infinity(kind: Format) -> int:
    if kind.infinity is None or kind.width != 16:
        raise ValueError(f"{kind.name} is no half-precision format: use F16 or BF16")
    return kind.infinity


def packed(operation: Callable[..., Bits], *operands: Bits, **options: Any) -> Bits:
    """Apply an operation on halves to both halves of 32-bit words.

    The operands are uint32 arrays or scalars that broadcast; so is the result. Options are handed
    on (`Any`: they are the operation's own).
    """
    shape = np.broadcast_shapes(*(np.shape(x) for x in operands))
    halves = [
        np.ascontiguousarray(np.broadcast_to(x, shape), np.uint32).reshape(-1).view(np.uint16)
        for x in operands
    ]
    return operation(*halves, **options).view(np.uint32).reshape(shape)[()]


def pack(high: Bits, low: Bits) -> Bits:
    """Join halves into 32-bit words, the first operand above (PTX `cvt` to an `x2` type)."""
    upper = np.asarray(high, np.uint32) << np.uint32(16)
    return (upper | np.asarray(low, np.uint32))[()]


_LEAST_NORMAL = np.uint16(0x0400)
_OUT_OF_BOUNDS = np.uint16(0x7FF7)
"""The NaN, of either sign, that tensor copies put outside a tensor's bounds."""


@elementwise
def half_add(a: Bits, b: Bits, *, kind: Format, ftz: bool = False, sat: bool = False) -> Bits:
    """Give a+b.

    float32 has more than twice the bits of either format and two more, so that rounding its sum
    again is safe. The same holds for products. Source: Figueroa, "When is double rounding
    innocuous?".
    """
    x, y = _operands(kind, ftz, a, b)
    return _modified(nearest(x + y, kind), kind, ftz, sat)


@elementwise
def half_sub(a: Bits, b: Bits, *, kind: Format, ftz: bool = False, sat: bool = False) -> Bits:
    """Give a-b."""
    x, y = _operands(kind, ftz, a, b)
    return _modified(nearest(x - y, kind), kind, ftz, sat)


@elementwise
def half_mul(a: Bits, b: Bits, *, kind: Format, ftz: bool = False, sat: bool = False) -> Bits:
    """Give a·b."""
    x, y = _operands(kind, ftz, a, b)
    product = x * y
    return _modified(_nearest(product, kind, ftz), kind, ftz, sat)


@elementwise
def half_fma(
    a: Bits,
    b: Bits,
    c: Bits,
    *,
    kind: Format,
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    oob: bool = False,
) -> Bits:
    """Give a·b+c with one rounding; with `oob`, zero where a or b is the out-of-bounds NaN."""
    x, y, z = _operands(kind, ftz, a, b, c)
    bits = _fma_f16(x, y, z, ftz) if kind is F16 else _fma_bf16(x, y, z)
    if oob:
        outside = ((a & _MAGNITUDE) == _OUT_OF_BOUNDS) | ((b & _MAGNITUDE) == _OUT_OF_BOUNDS)
        bits = np.where(outside, np.uint16(0), bits)
    return _modified(bits, kind, ftz, sat, relu)


def _fma_f16(x: Array, y: Array, z: Array, ftz: bool) -> Array:
    """Multiply exactly in float32, and round the sum there to odd."""
    product = x * y
    total = product + z
    return _nearest(round_to_odd(total, sum_error(product, z, total)), F16, ftz)


def _nearest(value: Array, kind: Format, ftz: bool) -> Array:
    """Round, and flush what only rounds up to the least normal number as a subnormal would.

    As with float32, the hardware flushes what is below that number when rounded without a lower
    bound on exponents. Scaling by a power of two gives that rounding.
    """
    bits = nearest(value, kind)
    if ftz and kind is F16:
        edge = (bits & _MAGNITUDE) == _LEAST_NORMAL
        if edge.any():
            low = edge & (np.abs((value * np.float32(2.0**8)).astype(np.float16)) < 2.0**-6)
            bits[low] &= _SIGN
    return bits


def _fma_bf16(x: Array, y: Array, z: Array) -> Array:
    """Round twice, and again where the float32 in between sits on a tie."""
    product = np.multiply(x, y, dtype=np.float64)
    total = product + z
    single = total.astype(np.float32)
    result = nearest(single, BF16)
    ties = (single.view(np.uint32) & np.uint32(0xFFFF)) == np.uint32(0x8000)
    if ties.any():
        indices = lanes.indices_of(ties)
        shape = result.shape
        wide = lanes.pick(total, shape, indices)
        residual = sum_error(
            lanes.pick(product, shape, indices),
            lanes.pick(z, shape, indices).astype(np.float64),
            wide,
        )
        lanes.put(result, indices, encode(round_to_odd(wide, residual), BF16, Rounding.RN))
    return result


@elementwise
def half_neg(x: Bits, *, kind: Format, ftz: bool = False) -> Bits:
    """Flip the sign; a NaN gives the canonical one."""
    return canonical(flush(x, kind) ^ _SIGN if ftz else x ^ _SIGN, kind)


@elementwise
def half_abs(x: Bits, *, kind: Format, ftz: bool = False) -> Bits:
    """Clear the sign; a NaN gives the canonical one."""
    return canonical((flush(x, kind) if ftz else x) & _MAGNITUDE, kind)


@elementwise
def half_minimum(
    *operands: Bits, kind: Format, ftz: bool = False, nan: bool = False, xorsign: bool = False
) -> Bits:
    """Give the least of two or three values, -0 below +0; the options are those of `minimum`."""
    return _extreme(operands, np.minimum, kind, ftz, nan, xorsign)


@elementwise
def half_maximum(
    *operands: Bits, kind: Format, ftz: bool = False, nan: bool = False, xorsign: bool = False
) -> Bits:
    """Give the greatest of two or three values; the options are those of `minimum`."""
    return _extreme(operands, np.maximum, kind, ftz, nan, xorsign)


def _operands(kind: Format, ftz: bool, *operands: Array) -> list[Array]:
    return [widen(flush(x, kind) if ftz else x, kind) for x in operands]


def _modified(bits: Array, kind: Format, ftz: bool, sat: bool = False, relu: bool = False) -> Array:
    if ftz:
        bits = flush(bits, kind)
    if sat:
        bits = clamp(bits, kind)
    if relu:
        bits = rectify(bits, kind)
    return bits


def _extreme(
    operands: tuple[Array, ...], choose: np.ufunc, kind: Format, ftz: bool, nan: bool, xorsign: bool
) -> Array:
    if ftz:
        operands = tuple(flush(x, kind) for x in operands)
    terms = [x & _MAGNITUDE for x in operands] if xorsign else list(operands)
    result = terms[0]
    for term in terms[1:]:
        chosen = _from_key(choose(_key(result), _key(term)))
        first, second = is_nan(result, kind), is_nan(term, kind)
        if first.any() or second.any():
            chosen = np.where(first, result if nan else term, chosen)
            chosen = np.where(second, term if nan else result, chosen)
        result = chosen
    if xorsign:
        sign = operands[0]
        for x in operands[1:]:
            sign = sign ^ x
        result = result | (sign & _SIGN)
    return canonical(result, kind)


def _key(bits: Array) -> Array:
    """Map bits to int16 that order as the values do, -0 below +0."""
    signed = bits.view(np.int16)
    return signed ^ ((signed >> np.int16(15)) & np.int16(0x7FFF))


def _from_key(key: Array) -> Array:
    """Map the ordered integers back: the mapping is its own inverse."""
    return (key ^ ((key >> np.int16(15)) & np.int16(0x7FFF))).view(np.uint16)
