"""Sign, class, minimum and maximum of f32 and f64. PTX ISA, "Floating Point Instructions"."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptx.emulate import ieee
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import EmitFunction, operation, type_suffix
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.arithmetic.floating import settle
from ptx.emulate.ops.arithmetic.lanewise import call_of, flushed_values
from ptx.isa.model import Instruction

_SECTION = "Floating Point Instructions"
_PROPERTIES = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")


def _values(e: Emitter, i: Instruction, kind: str) -> list[str]:
    """The source operands, subnormal ones as zeros if the instruction says `.ftz`."""
    return flushed_values(e, i.operands[1:], kind, "ftz" in i.modifiers)


def _negate(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    (x,) = _values(e, i, kind)
    e.assign(i.operands[0], kind, settle(e, i.operands[0], kind, f"(-{x})", x))


def _absolute(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    (x,) = _values(e, i, kind)
    magnitude = f"{e.helper(np.absolute)}({x})"
    e.assign(i.operands[0], kind, settle(e, i.operands[0], kind, magnitude, x))


def _copy_sign(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    sign, magnitude = (e.value(operand, kind) for operand in i.operands[1:])
    e.assign(i.operands[0], kind, f"{e.helper(np.copysign)}({magnitude}, {sign})")


def _test(e: Emitter, i: Instruction) -> None:
    which = next(word for word in i.modifiers if word in _PROPERTIES)
    value = e.value(i.operands[1], type_suffix(i))
    e.assign(i.operands[0], "pred", call_of(e, ieee.testp, value, which=which))


def _extreme(function: Callable[..., Value]) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        words = i.modifiers
        if "xorsign" in words and ("abs" not in words or len(i.operands) == 4):
            raise e.refuse(".xorsign goes with .abs and two operands")
        options: dict[str, bool] = {}
        if "NaN" in words:
            options["nan"] = True
        if "xorsign" in words:
            options["xorsign"] = True
        elif "abs" in words:
            options["magnitudes"] = True
        e.assign(i.operands[0], kind, call_of(e, function, *_values(e, i, kind), **options))

    return emit


for _name, _emit in (("neg", _negate), ("abs", _absolute)):
    operation(_name, ("f32",), 2, _emit, modifiers=("ftz",), section=_SECTION)
    operation(_name, ("f64",), 2, _emit, section=_SECTION)
for _name, _function in (("min", ieee.minimum), ("max", ieee.maximum)):
    operation(
        _name, ("f32",), (3, 4), _extreme(_function), modifiers=("ftz", "NaN", "xorsign", "abs"),
        section=_SECTION,
    )  # fmt: skip
    operation(_name, ("f64",), 3, _extreme(_function), section=_SECTION)
operation("copysign", ("f32", "f64"), 3, _copy_sign, section=_SECTION)
for _property in _PROPERTIES:
    operation(f"testp.{_property}", ("f32", "f64"), 2, _test, section=_SECTION)
