"""Half-precision values as bits in uint16 arrays: `.f16`, `.bf16` and their packed pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ptx.emulate.ieee.array_types import F32, Array, Bits
from ptx.emulate.ieee.formats import F16, Format
from ptx.emulate.ieee.nan import BF16_NAN, F16_NAN

_SIGN = np.uint16(0x8000)
_MAGNITUDE = np.uint16(0x7FFF)


def widen(bits: Array, source: Format) -> F32:
    """Give half-precision values as float32, exactly; NaNs keep their payload."""
    if source is F16:
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def nearest(x: F32, target: Format) -> Array:
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
    """Tell which bits are a NaN."""
    return (bits & _MAGNITUDE) > np.uint16(_infinity(kind))


def flush(bits: Array, kind: Format) -> Array:
    """Replace subnormal values by zeros of the same sign."""
    exponent = bits & np.uint16(_infinity(kind))
    return np.where(exponent == 0, bits & _SIGN, bits)


def clamp(bits: Array, kind: Format) -> Array:
    """Clamp to [0, 1], NaN to +0 (`.sat`)."""
    one = np.uint16(0x3C00 if kind is F16 else 0x3F80)
    drop = (bits >= _SIGN) | is_nan(bits, kind)
    return np.where(drop, np.uint16(0), np.minimum(bits, one))


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


def unpack(words: Bits) -> tuple[Bits, Bits]:
    """Split 32-bit words into their high and low halves."""
    bits = np.asarray(words, np.uint32)
    return (bits >> np.uint32(16)).astype(np.uint16)[()], bits.astype(np.uint16)[()]
