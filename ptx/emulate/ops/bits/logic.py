"""Logic and shifts. PTX ISA, "Logic and Shift Instructions"."""

from __future__ import annotations

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import EmitFunction, operation, type_suffix
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import kind_of, width_of
from ptx.isa.model import Immediate, Instruction

_SECTION = "Logic and Shift Instructions"
_TYPES = ("b16", "b32", "b64", "pred")


def _infix(sign: str) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        a, b = (e.value(operand, kind) for operand in i.operands[1:])
        e.assign(i.operands[0], kind, f"{a} {sign} {b}")

    return emit


def _not(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    e.assign(i.operands[0], kind, f"~{e.value(i.operands[1], kind)}")


def _logical_not(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    zero = e.constant(0, kind_of(kind))
    source = e.value(i.operands[1], kind)
    e.assign(i.operands[0], kind, f"({source} == {zero}).astype({e.dtype(kind)})")


def amount(shift: Value, dtype: np.dtype[np.generic]) -> Value:
    """A shift amount as the shifted type; above the width every amount acts alike."""
    return np.minimum(shift, np.uint32(64)).astype(dtype)


def _shift(sign: str) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = kind_of(type_suffix(i))
        bits = 8 * width_of(kind)
        source, by = i.operands[1:]
        value = e.value(source, kind)
        if isinstance(by, Immediate):
            steps = by.value & 0xFFFFFFFF
            if steps >= bits and kind[0] == "u":
                # All bits leave, yet the result has the shape of the source.
                e.assign(i.operands[0], kind, f"{value} & {e.constant(0, kind)}")
                return
            by_value = e.constant(min(steps, bits - 1), kind)
        elif bits == 32:
            by_value = e.value(by, kind)
        else:
            by_value = f"{e.helper(amount)}({e.value(by, 'u32')}, {e.dtype(kind)})"
        e.assign(i.operands[0], kind, f"{value} {sign} {by_value}")

    return emit


for _name, _sign in (("and", "&"), ("or", "|"), ("xor", "^")):
    operation(_name, _TYPES, 3, _infix(_sign), section=_SECTION)
operation("not", _TYPES, 2, _not, section=_SECTION)
operation("cnot", ("b16", "b32", "b64"), 2, _logical_not, section=_SECTION)
operation("shl", ("b16", "b32", "b64"), 3, _shift("<<"), section=_SECTION)
operation(
    "shr",
    (*(f"{sign}{bits}" for sign in "bus" for bits in (16, 32, 64)),),
    3,
    _shift(">>"),
    section=_SECTION,
)
