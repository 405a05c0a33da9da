"""Conversions among integers, floats, and packed floats of 8 bits and less (PTX `cvt`)."""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType

import numpy as np

from ptx.emulate.ieee import half
from ptx.emulate.ieee.arithmetic import flush_result, flush_subnormals, saturate
from ptx.emulate.ieee.exact import narrow, round_to_odd, towards
from ptx.emulate.ieee.formats import F16, F32, F64, Format, Rounding, encode
from ptx.emulate.ieee.half import nearest, rectify, widen
from ptx.emulate.ieee.lanes import (
    BF16_NAN,
    F32_NAN,
    Array,
    Bits,
    Doubles,
    Float,
    Integer,
    elementwise,
    quiet,
    settle_nans,
)

_INTEGRAL = MappingProxyType(
    {Rounding.RN: np.rint, Rounding.RZ: np.trunc, Rounding.RM: np.floor, Rounding.RP: np.ceil}
)
"""The functions of `.rni`, `.rzi`, `.rmi` and `.rpi`."""


def integral(x: Array, rounding: Rounding) -> Array:
    """Round floats to integral floats; a zero result keeps the operand's sign."""
    return _INTEGRAL[rounding](x)


@elementwise
def float_to_integer(
    x: Float, *, dtype: np.dtype[np.integer], rounding: Rounding, from_f64: bool | None = None
) -> Integer:
    """Convert floats to an integer dtype, clamping values out of range (PTX `cvt.irnd`).

    A NaN gives 0, but `1 << (bits - 1)` where the source is `.f64` or the destination has 64 bits
    (PTX ISA, `cvt`, "Integer Notes"). `from_f64` gives the source if it is not x's dtype.
    """
    info = np.iinfo(dtype)
    integers = integral(x, rounding)
    low = x.dtype.type(float(info.min))
    end = x.dtype.type(2.0 ** (info.bits - (info.min < 0)))
    least, most = integers.min(initial=low), integers.max(initial=low)
    if least >= low and most < end:
        return integers.astype(dtype)
    fits = (integers >= low) & (integers < end)
    result = np.where(fits, integers, x.dtype.type(0)).astype(dtype)
    result[integers >= end] = info.max
    result[integers < low] = info.min
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
    wide, remainder = _widen(x)
    if dtype == np.float32:
        return narrow(wide, remainder, rounding)
    return wide if remainder is None else towards(wide, remainder, rounding)


@elementwise
def integer_to_bits(x: Integer, *, target: Format, rounding: Rounding = Rounding.RN) -> Bits:
    """Convert integers to a narrow format's bits, as uint16, with one rounding."""
    wide, remainder = _widen(x)
    if remainder is not None:
        wide = round_to_odd(wide, remainder)
    return encode(wide, target, rounding).astype(np.uint16)


def _widen(x: Array) -> tuple[Doubles, Doubles | None]:
    """Give the nearest float64 values and their errors, None if they are exact."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64), None
    high = (x >> x.dtype.type(32)).astype(np.float64) * 2.0**32
    low = (x & x.dtype.type(0xFFFF_FFFF)).astype(np.float64)
    wide = high + low
    return wide, low - (wide - high)


_AWAY = (Rounding.RM, Rounding.RP)
"""The modes in which `cvt.ftz.f16.f32` was seen not to flush its operand (capability 9.0)."""
_RANDOM_BITS = MappingProxyType({"f16": 13, "bf16": 16, "e2m1": 8})
"""Number of random bits that `.rs` adds to discarded bits; 16 for formats of 6 and 8 bits."""
_TF32_DROPPED = np.uint32(0x1FFF)
_TF32_HALF = np.uint32(0x1000)


@elementwise
def convert_float(
    x: Float,
    *,
    source: Format,
    target: Format,
    rounding: Rounding = Rounding.RN,
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
    satfinite: bool = False,
) -> Float:
    """Convert between two of F16, BF16, F32 and F64 (PTX `cvt`, `cvt.frnd`, `cvt.frnd2`).

    `ftz` flushes `.f32` inputs and results. A NaN keeps its payload from and to `.f64` and from
    `.bf16` to `.f32`, as the hardware does; any other is canonical.
    """
    if ftz and source is F32 and not (target is F16 and rounding in _AWAY):
        # Flushing is an operation of its own, whose NaN is canonical.
        x = settle_nans(flush_subnormals(x).copy())
    if target.width == 16:
        return _to_half(x, source, target, rounding, sat, relu, satfinite)
    if source.width == 16:
        x = half.widen(x, source)
        if target is F32 and (source is F16 or ftz):
            settle_nans(x)
    result = _to_float(x, source, target, rounding)
    if ftz and target is F32:
        wide = x.reshape(-1)
        result = flush_result(result, lambda at: wide[at].astype(np.float64), rounding)
    return saturate(result) if sat else result


def _to_float(x: Array, source: Format, target: Format, rounding: Rounding) -> Array:
    if target is F64:
        return quiet(x.astype(np.float64)) if source is not F64 else x
    if source is F64:
        return narrow(x, None, rounding)
    return x


def _to_half(
    x: Array,
    source: Format,
    target: Format,
    rounding: Rounding,
    sat: bool,
    relu: bool,
    satfinite: bool,
) -> Array:
    if source is target:
        bits = half.canonical(x, target)
    else:
        value = half.widen(x, source) if source.width == 16 else x
        if rounding is Rounding.RN and not satfinite and source is not F64:
            bits = half.nearest(value, target)
        else:
            wide = value.astype(np.float64)
            bits = encode(wide, target, rounding, satfinite=satfinite).astype(np.uint16)
        if source is F64:
            _keep_payload(bits, x, target)
    if sat:
        bits = half.clamp(bits, target)
    return half.rectify(bits, target) if relu else bits


def _keep_payload(bits: Array, x: Array, target: Format) -> None:
    """Give NaN lanes the sign and the top of the payload of a float64, made quiet."""
    nans = np.isnan(x)
    if nans.any():
        words = x.view(np.uint64)[nans] >> np.uint64(53 - target.precision)
        payload = words & np.uint64((1 << (target.precision - 1)) - 1)
        sign = (words >> np.uint64(target.precision + 10)) << np.uint64(15)
        quiet_bit = np.uint64((target.infinity or 0) | 1 << (target.precision - 2))
        bits[nans] = payload | sign | quiet_bit


@elementwise
def round_stochastically(
    x: Float, random: Bits, *, target: Format, relu: bool = False, satfinite: bool = False
) -> Bits:
    """Round float32 by adding random bits to the dropped ones and keeping the carry (PTX `.rs`).

    `random` holds one value's bits in its low end, as many as the format takes (PTX ISA, `cvt`,
    figures of the `rbits` layout). Gives uint16 bits, uint8 for formats of 8 bits and less. No
    hardware result was at hand to compare with.
    """
    count = _RANDOM_BITS.get(target.name, 16)
    addend = (random & random.dtype.type((1 << count) - 1)).astype(np.float64)
    bits = encode(
        x.astype(np.float64), target, Rounding.RS, satfinite=satfinite, random_bits=(addend, count)
    )
    if relu:
        bits = np.where(np.signbit(x) & ~np.isnan(x), np.uint32(0), bits)
    return bits.astype(np.uint16 if target.width == 16 else np.uint8)


@elementwise
def round_to_integral(
    x: Float, *, source: Format, rounding: Rounding, ftz: bool = False, sat: bool = False
) -> Float:
    """Round to an integral value of the same format (PTX `cvt.rni.f32.f32` and the like)."""
    if source.width == 16:
        bits = half.nearest(integral(half.widen(x, source), rounding), source)
        return half.clamp(bits, source) if sat else bits
    if ftz:
        x = flush_subnormals(x)
    result = settle_nans(integral(x, rounding), x)
    return saturate(result) if sat else result


@elementwise
def to_tf32(x: Float, *, rounding: Rounding, relu: bool = False, satfinite: bool = False) -> Bits:
    """Round float32 to the 10-bit fractions of `.tf32`, as uint32 bits (PTX `cvt.tf32.f32`).

    RN and RZ give one NaN. RNA only cuts a NaN's payload, to an infinity if need be, and its
    `satfinite` takes one unit from a result that reaches infinity, as the hardware does.
    """
    bits = x.view(np.uint32)
    match rounding:
        case Rounding.RNA:
            result = (bits + _TF32_HALF) & ~_TF32_DROPPED
        case Rounding.RN:
            odd = (bits >> np.uint32(13)) & np.uint32(1)
            result = (bits + (_TF32_HALF - np.uint32(1)) + odd) & ~_TF32_DROPPED
        case Rounding.RZ:
            result = bits & ~_TF32_DROPPED
        case _:
            raise ValueError(f"{rounding!r} is not a rounding mode of cvt.tf32: RN, RZ or RNA")
    nans = np.isnan(x)
    if nans.any():
        cut = bits & ~_TF32_DROPPED
        canonical = np.uint32(F32_NAN) & ~_TF32_DROPPED
        result = np.where(nans, cut if rounding is Rounding.RNA else canonical, result)
    if satfinite:
        overflows = (result & np.uint32(0x7FFF_FFFF)) >= np.uint32(0x7F80_0000)
        result = np.where(overflows, result - (_TF32_DROPPED + np.uint32(1)), result)
    if relu:
        result = np.where(np.signbit(x) & ~nans, np.uint32(0), result)
    return result


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
    high: Float, low: Float, *, target: Format, relu: bool = False, rounding: Rounding = Rounding.RN
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
        is_inexact = (magnitude & np.uint32(0x7F_FFFF)) != 0
        # The subnormal 2^-127 is a power of two itself, and nothing is smaller.
        exponent += is_inexact & (magnitude > np.uint32(0x40_0000)) & (exponent < 255)
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
