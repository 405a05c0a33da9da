"""Integer arithmetic of single threads. PTX ISA, "Integer Arithmetic Instructions"."""

from __future__ import annotations

from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.lane.lane_table import EmitLane, lane_operation
from ptx.emulate.codegen.table import type_suffix
from ptx.isa.model import Instruction, Operand

_U, _S = ("u16", "u32", "u64"), ("s16", "s32", "s64")


def _twice(kind: str) -> str:
    return f"{kind[0]}{2 * int(kind[1:])}"


def _sum(sign: str) -> EmitLane:
    def emit(e: LaneEmitter, i: Instruction) -> None:
        if "sat" in i.modifiers:
            e.refuse()
        kind = type_suffix(i)
        a, b = (e.bits(operand, kind) for operand in i.operands[1:])
        e.assign(i.operands[0], kind, f"{a} {sign} {b} & {e.ones(kind)}")

    return emit


def _product(e: LaneEmitter, i: Instruction) -> tuple[str, str]:
    """The product that `.lo`, `.hi` or `.wide` asks for, of any size, and its kind."""
    kind = type_suffix(i)
    a, b = i.operands[1:3]
    if "wide" in i.modifiers:
        return f"{e.integer(a, kind)} * {e.integer(b, kind)}", _twice(kind)
    if "hi" in i.modifiers:
        return f"({e.integer(a, kind)} * {e.integer(b, kind)} >> {kind[1:]})", kind
    return f"{e.bits(a, kind)} * {e.bits(b, kind)}", kind


def _multiply(e: LaneEmitter, i: Instruction) -> None:
    product, kind = _product(e, i)
    e.assign(i.operands[0], kind, f"{product} & {e.ones(kind)}")


def _multiply_add(e: LaneEmitter, i: Instruction) -> None:
    if "sat" in i.modifiers:
        e.refuse()
    product, kind = _product(e, i)
    e.assign(i.operands[0], kind, f"{product} + {e.bits(i.operands[3], kind)} & {e.ones(kind)}")


def quotient(a: int, b: int, ones: int) -> int:
    """a / b towards zero, as unsigned bits; all ones where b is zero."""
    if b == 0:
        return ones
    found = abs(a) // abs(b)
    return (found if (a < 0) == (b < 0) else -found) & ones


def remainder_of(a: int, b: int, ones: int) -> int:
    """What a / b towards zero leaves, with the sign of a, as unsigned bits; a where b is zero."""
    if b == 0:
        return a & ones
    found = abs(a) % abs(b)
    return (found if a >= 0 else -found) & ones


def _divide(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    a, b = (e.integer(operand, kind) for operand in i.operands[1:])
    function = e.helper(quotient if i.opcode == "div" else remainder_of)
    e.assign(i.operands[0], kind, f"{function}({a}, {b}, {e.ones(kind)})")


def _negate(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    e.assign(i.operands[0], kind, f"-{e.bits(i.operands[1], kind)} & {e.ones(kind)}")


def _absolute(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    value = _name(e, i.operands[1], kind)
    ones = e.ones(kind)
    e.assign(i.operands[0], kind, f"{value} if {value} <= {ones >> 1} else -{value} & {ones}")


def _extreme(sign: str) -> EmitLane:
    def emit(e: LaneEmitter, i: Instruction) -> None:
        if "relu" in i.modifiers:
            e.refuse()
        kind = type_suffix(i)
        a, b = i.operands[1:]
        test = f"{e.ordered(a, kind)} {sign} {e.ordered(b, kind)}"
        e.assign(i.operands[0], kind, f"{e.bits(a, kind)} if {test} else {e.bits(b, kind)}")

    return emit


def _name(e: LaneEmitter, operand: Operand, kind: str) -> str:
    """An operand's bits under a name that may be used twice."""
    found = e.bits(operand, kind)
    return found if found.isalnum() else e.temporary(found)


lane_operation("add", (*_U, *_S), _sum("+"))
lane_operation("sub", (*_U, *_S), _sum("-"))
lane_operation("mul", (*_U, *_S), _multiply)
lane_operation("mad", (*_U, *_S), _multiply_add)
lane_operation("div", (*_U, *_S), _divide)
lane_operation("rem", (*_U, *_S), _divide)
lane_operation("neg", _S, _negate)
lane_operation("abs", _S, _absolute)
lane_operation("min", (*_U, *_S), _extreme("<"))
lane_operation("max", (*_U, *_S), _extreme(">"))
