"""Conversions among integers and f16, bf16, f32 and f64. PTX ISA, "cvt"."""

from __future__ import annotations

import numpy as np

from ptx.emulate import ieee
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import operation, type_suffix
from ptx.emulate.ieee import Format, Rounding
from ptx.emulate.ieee.half import widen
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import NUMPY
from ptx.emulate.ops.arithmetic.lanewise import INTEGRAL_ROUNDINGS, ROUNDINGS, call_of, rounding_of
from ptx.isa.model import Instruction

_INTEGERS = tuple(f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64))
_SECTION = "cvt"
FORMATS: dict[str, Format] = {
    "f16": ieee.F16, "bf16": ieee.BF16, "f32": ieee.F32, "f64": ieee.F64
}  # fmt: skip
HALVES = ("f16", "bf16")
_FLAGS = ("ftz", "sat", "relu", "satfinite")


def held(ptx_type: str) -> str:
    """The type as which a float is read and written: halves are their bits."""
    return "b16" if ptx_type in HALVES else ptx_type


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


def _from_integer(e: Emitter, i: Instruction) -> None:
    target, source = type_suffix(i).split(".")
    mode = rounding_of(i)
    if mode is None:
        raise e.refuse("it needs a rounding mode")
    value = e.value(i.operands[1], source)
    if target in HALVES:
        result = call_of(e, ieee.integer_to_bits, value, target=FORMATS[target], rounding=mode)
        if "sat" in i.modifiers:
            kind = FORMATS[target]
            result = call_of(e, ieee.convert_float, result, source=kind, target=kind, sat=True)
    else:
        if mode is Rounding.RN:
            result = f"({value}).astype({e.dtype(target)})"
        else:
            dtype = np.dtype(NUMPY[target])
            result = call_of(e, ieee.integer_to_float, value, dtype=dtype, rounding=mode)
        if "sat" in i.modifiers:
            result = call_of(e, ieee.saturate, result)
    e.assign(i.operands[0], held(target), result)


def _to_integer(e: Emitter, i: Instruction) -> None:
    """What is out of range is clamped, with `.sat` or without."""
    target, source = type_suffix(i).split(".")
    mode = rounding_of(i, INTEGRAL_ROUNDINGS)
    if mode is None:
        raise e.refuse("it needs a mode of rounding to an integer")
    value = e.value(i.operands[1], held(source))
    if source in HALVES:
        value = f"{e.helper(widen)}({value}, {e.scope.bind(FORMATS[source])})"
    elif "ftz" in i.modifiers:
        value = call_of(e, ieee.flush_subnormals, value)
    dtype = np.dtype(NUMPY[target])
    result = call_of(e, ieee.float_to_integer, value, dtype=dtype, rounding=mode)
    e.assign(i.operands[0], target, result)


def _may_lack_mode(target: str, source: str) -> bool:
    """Whether the target holds every value; between the halves hardware rounds to nearest."""
    to, of = FORMATS[target], FORMATS[source]
    if to.width == of.width:
        return True
    return to.precision >= of.precision and to.min_exponent <= of.min_exponent


def float_conversion(e: Emitter, i: Instruction, target: str, source: str, value: str) -> str:
    """The expression of a value converted from one float type to another.

    Raises:
        UnsupportedInstruction: there is no rounding mode, and one is needed, or a wrong one.
    """
    integral = rounding_of(i, INTEGRAL_ROUNDINGS)
    flags = {word: True for word in _FLAGS if word in i.modifiers}
    if integral is not None:
        if target != source or "relu" in flags or "satfinite" in flags:
            raise e.refuse("rounding to an integral value keeps the type")
        kind = FORMATS[source]
        return call_of(e, ieee.round_to_integral, value, source=kind, rounding=integral, **flags)
    mode = rounding_of(i)
    if mode is None and not _may_lack_mode(target, source):
        raise e.refuse("it needs a rounding mode")
    if (target, source) == ("f64", "f32") and not flags:
        return f"({value}).astype({e.dtype('f64')})"
    return call_of(
        e, ieee.convert_float, value, source=FORMATS[source], target=FORMATS[target],
        rounding=Rounding.RN if mode is None else mode, **flags,
    )  # fmt: skip


def _among_floats(e: Emitter, i: Instruction) -> None:
    target, source = type_suffix(i).split(".")
    value = e.value(i.operands[1], held(source))
    e.assign(i.operands[0], held(target), float_conversion(e, i, target, source, value))


operation(
    "cvt",
    [f"{to}.{of}" for to in _INTEGERS for of in _INTEGERS],
    2,
    _among_integers,
    modifiers=("sat",),
    section=_SECTION,
)
for _float in FORMATS:
    _ftz = ("ftz",) if _float == "f32" else ()
    operation(
        "cvt",
        [f"{_float}.{of}" for of in _INTEGERS],
        2,
        _from_integer,
        modifiers=(*ROUNDINGS, *_ftz, "sat"),
        section=_SECTION,
    )
    operation(
        "cvt",
        [f"{to}.{_float}" for to in _INTEGERS],
        2,
        _to_integer,
        modifiers=(*INTEGRAL_ROUNDINGS, *_ftz, "sat"),
        section=_SECTION,
    )
    for _source in FORMATS:
        _flags = ("sat", "relu", "satfinite") if _float in HALVES else ("sat",)
        if "f32" in (_float, _source):
            _flags = (*_flags, "ftz")
        operation(
            "cvt",
            (f"{_float}.{_source}",),
            2,
            _among_floats,
            modifiers=(*ROUNDINGS, *INTEGRAL_ROUNDINGS, *_flags),
            section=_SECTION,
        )
