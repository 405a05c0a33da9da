"""Conversions between floating-point formats (PTX `cvt`).

`.f32` and `.f64` values are float32 and float64; `.f16` and `.bf16` values are bits in uint16.
"""

from __future__ import annotations

from types import MappingProxyType

import numpy as np

from ptx.emulate.ieee import half
from ptx.emulate.ieee.array_types import Array, Bits, Float
from ptx.emulate.ieee.directed import narrow
from ptx.emulate.ieee.encode import encode
from ptx.emulate.ieee.formats import F16, F32, F64, Format
from ptx.emulate.ieee.integer_conversion import integral
from ptx.emulate.ieee.lanes import elementwise
from ptx.emulate.ieee.modifiers import flush_result, flush_subnormals, saturate
from ptx.emulate.ieee.nan import F32_NAN, quiet, settle_nans
from ptx.emulate.ieee.rounding import Rounding

_AWAY = (Rounding.RM, Rounding.RP)
"""The modes in which `cvt.ftz.f16.f32` was seen not to flush its operand (capability 9.0)."""
_RANDOM_BITS = MappingProxyType({"f16": 13, "bf16": 16, "e2m1": 8})
"""How many random bits `.rs` adds below the last kept bit; formats of 6 and 8 bits take 16."""
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
        x.astype(np.float64),
        target,
        Rounding.RS,
        satfinite=satfinite,
        random_bits=(addend, count),
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
    `satfinite` takes one unit from whatever reaches infinity: so does the hardware.
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
        over = (result & np.uint32(0x7FFF_FFFF)) >= np.uint32(0x7F80_0000)
        result = np.where(over, result - (_TF32_DROPPED + np.uint32(1)), result)
    if relu:
        result = np.where(np.signbit(x) & ~nans, np.uint32(0), result)
    return result
