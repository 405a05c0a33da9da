"""f32 and f64 arithmetic, rounded to nearest even. PTX ISA, "Floating-Point Instructions"."""

from __future__ import annotations

import numpy as np

from ptx.emulate import ieee
from ptx.emulate.emitter import Emitter
from ptx.emulate.table import EmitFunction, operation, type_suffix
from ptx.isa.model import Instruction

_TYPES = ("f32", "f64")
_SECTION = "Floating-Point Instructions"


def _infix(sign: str) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        a, b = (e.value(operand, kind) for operand in i.operands[1:])
        e.assign(i.operands[0], kind, f"{a} {sign} {b}")

    return emit


def _fused(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    a, b, c = (e.value(operand, kind) for operand in i.operands[1:])
    e.assign(i.operands[0], kind, f"{e.helper(ieee.fma)}({a}, {b}, {c})")


def _negate(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    e.assign(i.operands[0], kind, f"-{e.value(i.operands[1], kind)}")


def _absolute(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    e.assign(i.operands[0], kind, f"{e.helper(np.fabs)}({e.value(i.operands[1], kind)})")


def _root(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    e.assign(i.operands[0], kind, f"{e.helper(np.sqrt)}({e.value(i.operands[1], kind)})")


for _name, _sign in (("add", "+"), ("sub", "-"), ("mul", "*")):
    operation(_name, _TYPES, 3, _infix(_sign), modifiers=["rn"], section=_SECTION)
operation("div.rn", _TYPES, 3, _infix("/"), section=_SECTION)
operation("fma.rn", _TYPES, 4, _fused, section=_SECTION)
operation("mad.rn", _TYPES, 4, _fused, section=_SECTION)
operation("neg", _TYPES, 2, _negate, section=_SECTION)
operation("abs", _TYPES, 2, _absolute, section=_SECTION)
operation("sqrt.rn", _TYPES, 2, _root, section=_SECTION)
