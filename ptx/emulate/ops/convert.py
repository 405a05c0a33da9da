"""Conversions among integers, and the plain ones between integers, f32 and f64. PTX ISA, "cvt"."""

from __future__ import annotations

import numpy as np

from ptx.emulate.emitter import Emitter
from ptx.emulate.geometry import Value
from ptx.emulate.table import operation, type_suffix
from ptx.isa.model import Instruction

_INTEGERS = tuple(f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64))
_SECTION = "cvt"


def saturate_integer(value: Value, dtype: type[np.generic]) -> Value:
    """An integer clamped to the range of another integer type."""
    limits = np.iinfo(np.dtype(dtype))
    own = np.iinfo(value.dtype)
    low, high = max(limits.min, own.min), min(limits.max, own.max)
    clipped = np.clip(value, value.dtype.type(low), value.dtype.type(high))
    result: Value = clipped.astype(dtype)
    return result


def _among_integers(e: Emitter, i: Instruction) -> None:
    target, source = type_suffix(i).split(".")
    value = e.value(i.operands[1], source)
    if "sat" in i.modifiers:
        e.assign(i.operands[0], target, f"{e.helper(saturate_integer)}({value}, {e.dtype(target)})")
    elif target[1:] == source[1:]:
        e.assign(i.operands[0], target, f"({value}).view({e.dtype(target)})")
    else:
        e.assign(i.operands[0], target, f"({value}).astype({e.dtype(target)})")


operation(
    "cvt",
    [f"{to}.{of}" for to in _INTEGERS for of in _INTEGERS],
    2,
    _among_integers,
    modifiers=["sat"],
    section=_SECTION,
)


def _to_float(e: Emitter, i: Instruction) -> None:
    """`cvt.rn` from an integer, or f32 to f64 and back: NumPy rounds to nearest even."""
    target, source = type_suffix(i).split(".")
    value = e.value(i.operands[1], source)
    e.assign(i.operands[0], target, f"({value}).astype({e.dtype(target)})")


operation(
    "cvt.rn",
    [f"{to}.{of}" for to in ("f32", "f64") for of in _INTEGERS],
    2,
    _to_float,
    section=_SECTION,
)
operation("cvt.rn", ("f32.f64",), 2, _to_float, section=_SECTION)
operation("cvt", ("f64.f32",), 2, _to_float, section=_SECTION)


def to_integer(value: Value, dtype: type[np.generic]) -> Value:
    """A float cut towards zero and clamped to an integer type; NaN gives 0 in 8 to 32 bits.

    For 64 bits NaN gives 2**63 (PTX ISA, "cvt", and what hardware does).
    """
    limits = np.iinfo(np.dtype(dtype))
    wide = np.trunc(value.astype(np.float64))
    least, beyond = float(limits.min), float(limits.max // 2 + 1) * 2
    inside = (wide >= least) & (wide < beyond)
    plain = np.where(inside, wide, 0.0).astype(dtype)
    result = np.where(wide >= beyond, dtype(limits.max), plain)
    result = np.where(wide < least, dtype(limits.min), result)
    if limits.bits == 64:
        result = np.where(np.isnan(wide), np.uint64(1 << 63).astype(dtype), result)
    found: Value = result[()]
    return found


def _to_integer(e: Emitter, i: Instruction) -> None:
    target, source = type_suffix(i).split(".")
    value = e.value(i.operands[1], source)
    e.assign(i.operands[0], target, f"{e.helper(to_integer)}({value}, {e.dtype(target)})")


operation(
    "cvt.rzi",
    [f"{to}.{of}" for to in _INTEGERS for of in ("f32", "f64")],
    2,
    _to_integer,
    modifiers=["sat"],
    section=_SECTION,
)
