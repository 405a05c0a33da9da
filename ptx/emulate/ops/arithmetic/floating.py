"""Arithmetic on f32 and f64, exact in every rounding mode. PTX ISA, "Floating Point Instructions".

Rounding to nearest without `.ftz` is what NumPy's operators do, but for NaNs: see `settled`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptx.emulate import ieee
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import EmitFunction, operation, type_suffix
from ptx.emulate.ieee import Rounding
from ptx.emulate.ieee.fma32 import fma32, uniform_fma32
from ptx.emulate.ieee.half import widen
from ptx.emulate.ieee.nan import F32_NAN, settle_nans
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.arithmetic.lanewise import (
    ROUNDINGS,
    call_of,
    flushed_values,
    lanewise_packed,
    rounding_of,
)
from ptx.isa.model import Instruction, Operand, Register

_TYPES = ("f32", "f64")
_SECTION = "Floating Point Instructions"
_CANONICAL = np.uint32(F32_NAN).view(np.float32)
_HALVES = {"f16": ieee.F16, "bf16": ieee.BF16}


def settled(result: Value) -> Value:
    """A new float32 result with the canonical NaN where it is one."""
    if result.ndim:
        return settle_nans(result)
    return result if result == result else _CANONICAL


def settled64(result: Value, *operands: Value) -> Value:
    """A new float64 result with the NaN that hardware takes from the operands, first ones first."""
    if result.ndim:
        return settle_nans(result, *operands)
    if result == result:
        return result
    return settle_nans(result.reshape(1), *(x.reshape(1) for x in operands))[0]


def settle(e: Emitter, target: Operand, kind: str, expression: str, *operands: str) -> str:
    """The expression of a result whose NaNs have the hardware's bits wherever they can be seen.

    `operands` are those whose NaN a float64 result takes, in the hardware's order.
    """
    if kind == "f64":
        return f"{e.helper(settled64)}({', '.join((expression, *operands))})"
    if not _shows_nans(e, target):
        return expression
    return f"{e.helper(settled)}({expression})"


def finish(e: Emitter, i: Instruction, kind: str, expression: str) -> None:
    """Assign a result, saturated if the instruction says so."""
    if "sat" in i.modifiers:
        expression = call_of(e, ieee.saturate, expression)
    e.assign(i.operands[0], kind, expression)


def _is_plain(i: Instruction) -> bool:
    """Whether NumPy's operators do it."""
    return rounding_of(i) in (None, Rounding.RN) and "ftz" not in i.modifiers


def options_of(i: Instruction) -> dict[str, bool | Rounding]:
    """The options of the functions of `ieee` for an instruction's modifiers."""
    options: dict[str, bool | Rounding] = {"rounding": rounding_of(i) or Rounding.RN}
    if "ftz" in i.modifiers:
        options["ftz"] = True
    return options


def _shows_nans(e: Emitter, target: Operand) -> bool:
    return not isinstance(target, Register) or target.name in e.scope.visible_bits


def _flushed_options(e: Emitter, i: Instruction) -> dict[str, bool | Rounding]:
    """The options where the operands are those of `_values`."""
    options = options_of(i)
    if "ftz" in options:
        options["flushed"] = True
    if type_suffix(i) == "f32" and not _shows_nans(e, i.operands[0]):
        options["nans"] = False
    return options


def _values(e: Emitter, i: Instruction, kind: str) -> list[str]:
    """The source operands, subnormal ones as zeros if the instruction says `.ftz`."""
    return flushed_values(e, i.operands[1:], kind, "ftz" in i.modifiers)


def _sum_or_product(sign: str, function: Callable[..., Value]) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        a, b = _values(e, i, kind)
        if not _is_plain(i):
            result = call_of(e, function, a, b, **_flushed_options(e, i))
        elif "sat" in i.modifiers:
            result = f"({a} {sign} {b})"
        else:
            result = settle(e, i.operands[0], kind, f"({a} {sign} {b})", b, a)
        finish(e, i, kind, result)

    return emit


def fused(a: Value, b: Value, c: Value, nans: bool) -> Value:
    """a·b+c of float32 rounded once to nearest, fast for arrays and for scalars.

    `nans`: a NaN gets the canonical bits.
    """
    if a.ndim or b.ndim or c.ndim:
        return fma32(
            a if a.ndim else a.reshape(1),
            b if b.ndim else b.reshape(1),
            c if c.ndim else c.reshape(1),
            Rounding.RN,
            nans=nans,
        )
    return uniform_fma32(a, b, c)


def _fused(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    a, b, c = _values(e, i, kind)
    if kind == "f32" and _is_plain(i):
        nans = _shows_nans(e, i.operands[0])
        result = f"{e.helper(fused)}({a}, {b}, {c}, {nans})"
    else:
        result = call_of(e, ieee.fma, a, b, c, **_flushed_options(e, i))
    finish(e, i, kind, result)


def _divide(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    a, b = _values(e, i, kind)
    if _is_plain(i):
        result = settle(e, i.operands[0], kind, f"({a} / {b})", a, b)
    else:
        result = call_of(e, ieee.div, a, b, **_flushed_options(e, i))
    e.assign(i.operands[0], kind, result)


def _of_one(plain: Callable[[Emitter, str, str], str], exact: Callable[..., Value]) -> EmitFunction:
    """An operation on one value: `plain` gives NumPy's text for it, of the value and its type."""

    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        (x,) = _values(e, i, kind)
        if _is_plain(i):
            result = settle(e, i.operands[0], kind, plain(e, x, kind), x)
        else:
            result = call_of(e, exact, x, **_flushed_options(e, i))
        e.assign(i.operands[0], kind, result)

    return emit


_reciprocal = _of_one(lambda e, x, kind: f"({e.constant(1.0, kind)} / {x})", ieee.rcp)
_root = _of_one(lambda e, x, kind: f"{e.helper(np.sqrt)}({x})", ieee.sqrt)


def _packed(function: Callable[..., Value]) -> EmitFunction:
    """`f32x2`: two operations on the halves of 64-bit words."""

    def emit(e: Emitter, i: Instruction) -> None:
        words = [e.value(operand, "b64") for operand in i.operands[1:]]
        call = lanewise_packed(function, "float32", "uint64", **options_of(i))
        e.assign(i.operands[0], "b64", f"{e.helper(call)}({', '.join(words)})")

    return emit


def _mixed(function: Callable[..., Value]) -> EmitFunction:
    """`add.f32.f16` and the like: the halves are widened, which is exact."""

    def emit(e: Emitter, i: Instruction) -> None:
        half = type_suffix(i).split(".")[1]
        name, kind = e.helper(widen), e.scope.bind(_HALVES[half])
        *halves, last = i.operands[1:]
        values = [f"{name}({e.value(operand, 'b16')}, {kind})" for operand in halves]
        result = call_of(e, function, *values, e.value(last, "f32"), **options_of(i))
        finish(e, i, "f32", result)

    return emit


_MIXED = ("f32.f16", "f32.bf16")
for _name, _sign, _function in (
    ("add", "+", ieee.add), ("sub", "-", ieee.sub), ("mul", "*", ieee.mul),
):  # fmt: skip
    operation(
        _name, ("f32",), 3, _sum_or_product(_sign, _function), modifiers=(*ROUNDINGS, "ftz", "sat"),
        section=_SECTION,
    )  # fmt: skip
    operation(
        _name, ("f64",), 3, _sum_or_product(_sign, _function), modifiers=ROUNDINGS,
        section=_SECTION,
    )  # fmt: skip
    operation(
        _name, ("f32x2",), 3, _packed(_function), modifiers=(*ROUNDINGS, "ftz"), section=_SECTION
    )
    if _name != "mul":
        operation(
            _name, _MIXED, 3, _mixed(_function), modifiers=(*ROUNDINGS, "sat"),
            section="Mixed Precision Floating Point Instructions",
        )  # fmt: skip
for _mode in ROUNDINGS:
    operation(f"fma.{_mode}", ("f32",), 4, _fused, modifiers=("ftz", "sat"), section=_SECTION)
    operation(f"mad.{_mode}", ("f32",), 4, _fused, modifiers=("ftz", "sat"), section=_SECTION)
    operation(f"fma.{_mode}", ("f64",), 4, _fused, section=_SECTION)
    operation(f"mad.{_mode}", ("f64",), 4, _fused, section=_SECTION)
    operation(
        f"fma.{_mode}", ("f32x2",), 4, _packed(ieee.fma), modifiers=("ftz",), section=_SECTION
    )
    operation(
        f"fma.{_mode}", _MIXED, 4, _mixed(ieee.fma), modifiers=("sat",),
        section="Mixed Precision Floating Point Instructions",
    )  # fmt: skip
    for _name, _arity, _emit in (("div", 3, _divide), ("rcp", 2, _reciprocal), ("sqrt", 2, _root)):
        operation(f"{_name}.{_mode}", ("f32",), _arity, _emit, modifiers=("ftz",), section=_SECTION)
        operation(f"{_name}.{_mode}", ("f64",), _arity, _emit, section=_SECTION)
