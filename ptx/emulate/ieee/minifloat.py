"""Floats of 8 bits and less, packed in pairs (PTX `cvt` with `.e4m3x2` and the like)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ptx.emulate.ieee.array_types import Array, Bits, Float
from ptx.emulate.ieee.encode import encode
from ptx.emulate.ieee.formats import F16, Format
from ptx.emulate.ieee.half import nearest, rectify, widen
from ptx.emulate.ieee.lanes import elementwise
from ptx.emulate.ieee.nan import BF16_NAN
from ptx.emulate.ieee.rounding import Rounding


@elementwise
def to_narrow(
    x: Float, *, target: Format, relu: bool = False, rounding: Rounding = Rounding.RN
) -> Bits:
    """Round float32 to a narrow value, as uint8 bits, clamping to finite ones.

    PTX `cvt.rn.satfinite{.relu}` and `cvt.rz.satfinite`; a NaN gives the format's NaN, or its
    largest number.
    """
    bits = encode(x.astype(np.float64), target, rounding, satfinite=True)
    if relu:
        bits = np.where(np.signbit(x) & ~np.isnan(x), np.uint32(0), bits)
    return bits.astype(np.uint8)


@elementwise
def from_narrow(bits: Bits, *, source: Format, relu: bool = False) -> Bits:
    """Give the `.f16` bits of narrow values, exactly (PTX `cvt.rn{.relu}.f16x2`)."""
    result = _f16_table(source)[bits]
    return rectify(result, F16) if relu else result


def narrow_pair(
    high: Float,
    low: Float,
    *,
    target: Format,
    relu: bool = False,
    rounding: Rounding = Rounding.RN,
) -> Bits:
    """Convert two float32 operands to a pair: uint16, or uint8 for the 4-bit format."""
    upper = np.asarray(to_narrow(high, target=target, relu=relu, rounding=rounding))
    lower = np.asarray(to_narrow(low, target=target, relu=relu, rounding=rounding))
    if target.width == 4:
        return (upper << np.uint8(4) | lower)[()]
    return (upper.astype(np.uint16) << np.uint16(8) | lower)[()]


def narrow_pair_of_halves(
    halves: Bits,
    *,
    source: Format,
    target: Format,
    relu: bool = False,
    rounding: Rounding = Rounding.RN,
) -> Bits:
    """Convert both halves of uint32 words to a pair."""
    words = np.atleast_1d(np.asarray(halves, np.uint32))
    high = widen((words >> np.uint32(16)).astype(np.uint16), source)
    low = widen(words.astype(np.uint16), source)
    pair = narrow_pair(high, low, target=target, relu=relu, rounding=rounding)
    return pair.reshape(np.shape(halves))[()]


def halves_of_narrow_pair(pair: Bits, *, source: Format, relu: bool = False) -> Bits:
    """Convert a pair of narrow values to a uint32 word of two `.f16` halves."""
    bits = np.asarray(pair)
    step = 4 if source.width == 4 else 8
    mask = bits.dtype.type((1 << source.width) - 1)
    high = from_narrow((bits >> bits.dtype.type(step)) & mask, source=source, relu=relu)
    low = from_narrow(bits & mask, source=source, relu=relu)
    return (np.asarray(high, np.uint32) << np.uint32(16) | np.asarray(low, np.uint32))[()]


@lru_cache(maxsize=8)
def _f16_table(source: Format) -> Array:
    """The `.f16` bits of every value of a narrow format, by its bits; one entry a format."""
    bits = np.arange(1 << source.width)
    sign = np.where(bits >> (source.width - 1), -1.0, 1.0)
    magnitude = bits & ((1 << (source.width - 1)) - 1)
    fraction = magnitude & ((1 << (source.precision - 1)) - 1)
    biased = magnitude >> (source.precision - 1)
    significand = fraction + np.where(biased > 0, 1 << (source.precision - 1), 0)
    exponent = np.maximum(biased, 1) - 1 + source.min_exponent - (source.precision - 1)
    value = sign * np.ldexp(significand.astype(np.float64), exponent)
    value[magnitude > source.max_finite] = np.nan
    if source.infinity is not None:
        value[magnitude == source.infinity] = np.inf
        value = np.where(np.isinf(value), sign * np.inf, value)
    table = nearest(value.astype(np.float32), F16)
    table.flags.writeable = False
    return table


@elementwise
def to_ue8m0(x: Float, *, rounding: Rounding, satfinite: bool = False) -> Bits:
    """Give the exponent of |x| as a biased byte (PTX `cvt.frnd3.ue8m0x2.f32`), one value each.

    RZ takes the power of two at or below, RP the one at or above. Byte 0 is 2^-127 and stands for
    all that is less; 255 is NaN and, without `satfinite`, overflow.
    """
    if rounding not in (Rounding.RZ, Rounding.RP):
        raise ValueError(f"{rounding!r} is not a rounding mode of cvt to .ue8m0: RZ or RP")
    magnitude = x.view(np.uint32) & np.uint32(0x7FFF_FFFF)
    exponent = magnitude >> np.uint32(23)
    if rounding is Rounding.RP:
        between = (magnitude & np.uint32(0x7F_FFFF)) != 0
        # The subnormal 2^-127 is a power of two itself, and nothing is smaller.
        exponent += between & (magnitude > np.uint32(0x40_0000)) & (exponent < 255)
    if satfinite:
        exponent = np.where((exponent == 255) & ~np.isnan(x), np.uint32(254), exponent)
    return exponent.astype(np.uint8)


def from_ue8m0_pair(pair: Bits) -> Bits:
    """Give two `.bf16` halves in a uint32 word (PTX `cvt.rn.bf16x2.ue8m0x2`)."""
    bits = np.asarray(pair, np.uint16)
    high = _bf16_of_ue8m0(bits >> np.uint16(8))
    low = _bf16_of_ue8m0(bits & np.uint16(0xFF))
    return (high << np.uint32(16) | low)[()]


def _bf16_of_ue8m0(bits: Array) -> Array:
    normal = bits.astype(np.uint32) << np.uint32(7)
    finite = np.where(bits == 0, np.uint32(0x0040), normal)
    return np.where(bits == 255, np.uint32(BF16_NAN), finite)
