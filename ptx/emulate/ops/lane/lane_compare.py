"""Comparison and selection of single threads. PTX ISA, "Comparison and Selection Instructions"."""

from __future__ import annotations

from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.lane.lane_table import lane_operation
from ptx.emulate.codegen.table import type_suffix
from ptx.emulate.model.types import kind_of
from ptx.emulate.ops.lane.lane_floating import operands
from ptx.emulate.ops.lane.lane_move import moved
from ptx.isa.model import Instruction, Pair

_INTEGERS = tuple(f"{sign}{bits}" for sign in "bus" for bits in (16, 32, 64))
_FLOATS = ("f32", "f64")
_SIGNS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
          "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}  # fmt: skip
_FLOAT_TESTS = {
    "eq": "{a} == {b}", "lt": "{a} < {b}", "le": "{a} <= {b}", "gt": "{a} > {b}",
    "ge": "{a} >= {b}", "ne": "({a} < {b} or {a} > {b})", "neu": "{a} != {b}",
    "equ": "not ({a} < {b} or {a} > {b})", "ltu": "not {a} >= {b}", "leu": "not {a} > {b}",
    "gtu": "not {a} <= {b}", "geu": "not {a} < {b}", "num": "{a} == {a} and {b} == {b}",
    "nan": "({a} != {a} or {b} != {b})",
}  # fmt: skip
_BOOLEAN = {"and": "&", "or": "|", "xor": "^"}


def test(e: LaneEmitter, i: Instruction, kind: str) -> str:
    """The comparison of the first two sources, and its combination with a predicate."""
    name = next(word for word in i.modifiers if word in _SIGNS or word in _FLOAT_TESTS)
    if kind[0] == "f":
        a, b = operands(e, i, i.operands[1:3], kind)
        found = _FLOAT_TESTS[name].format(a=a, b=b)
    else:
        kind = kind_of(kind)
        read = e.bits if name in ("eq", "ne") else e.ordered
        a, b = (read(operand, kind) for operand in i.operands[1:3])
        found = f"{a} {_SIGNS[name]} {b}"
    boolean = next((_BOOLEAN[word] for word in i.modifiers if word in _BOOLEAN), None)
    if boolean is not None:
        found = f"({found}) {boolean} {e.predicate(i.operands[3])}"
    return found


def _set_predicate(e: LaneEmitter, i: Instruction) -> None:
    if isinstance(i.operands[0], Pair):
        e.refuse()
    e.assign(i.operands[0], "pred", test(e, i, type_suffix(i)))


def _select(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    target, yes, no, condition = i.operands
    (a, a_kind), (b, b_kind) = (moved(e, operand, kind_of(kind)) for operand in (yes, no))
    if a_kind[0] != b_kind[0] and "f" in (a_kind[0], b_kind[0]):
        if kind[0] == "f":
            a, b, a_kind = e.real(yes, kind), e.real(no, kind), kind
        else:
            a, b, a_kind = e.bits(yes, kind), e.bits(no, kind), kind
    e.assign(target, a_kind, f"{a} if {e.predicate(condition)} else {b}")


def _set_value(e: LaneEmitter, i: Instruction) -> None:
    target, source = type_suffix(i).split(".")
    found = test(e, i, source)
    if target == "f32":
        e.assign(i.operands[0], target, f"1.0 if {found} else 0.0")
    else:
        e.assign(i.operands[0], target, f"{e.ones(target)} if {found} else 0")


lane_operation("setp", (*_INTEGERS, *_FLOATS), _set_predicate)
lane_operation("selp", (*_INTEGERS, *_FLOATS), _select)
lane_operation(
    "set", [f"{to}.{of}" for to in ("u32", "s32", "f32") for of in (*_INTEGERS, *_FLOATS)],
    _set_value,
)  # fmt: skip
