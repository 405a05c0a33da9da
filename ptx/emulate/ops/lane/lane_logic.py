"""Logic, shifts and bit fields of single threads. PTX ISA, "Logic and Shift Instructions"."""

from __future__ import annotations

from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.lane.lane_table import EmitLane, lane_operation
from ptx.emulate.codegen.table import type_suffix
from ptx.emulate.model.types import kind_of, width_of
from ptx.isa.model import Immediate, Instruction

_TYPES = ("b16", "b32", "b64")
_NONE = 0xFFFFFFFF


def _infix(sign: str) -> EmitLane:
    def emit(e: LaneEmitter, i: Instruction) -> None:
        kind = type_suffix(i)
        if kind == "pred":
            a, b = (e.predicate(operand) for operand in i.operands[1:])
        else:
            a, b = (e.bits(operand, kind) for operand in i.operands[1:])
        e.assign(i.operands[0], kind, f"{a} {sign} {b}")

    return emit


def _not(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    if kind == "pred":
        e.assign(i.operands[0], kind, f"not {e.predicate(i.operands[1])}")
    else:
        e.assign(i.operands[0], kind, f"{e.bits(i.operands[1], kind)} ^ {e.ones(kind)}")


def _logical_not(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    e.assign(i.operands[0], kind, f"0 if {e.bits(i.operands[1], kind)} else 1")


def _shift_left(e: LaneEmitter, i: Instruction) -> None:
    kind = kind_of(type_suffix(i))
    width = 8 * width_of(kind)
    value, by = e.bits(i.operands[1], kind), e.bits(i.operands[2], "u32")
    if isinstance(i.operands[2], Immediate):
        shifted = f"{value} << {by} & {e.ones(kind)}" if int(by) < width else "0"
    else:
        shifted = f"{value} << {by} & {e.ones(kind)} if {by} < {width} else 0"
    e.assign(i.operands[0], kind, shifted)


def _shift_right(e: LaneEmitter, i: Instruction) -> None:
    """An amount of the width or more moves all bits out, and leaves those of the sign."""
    kind = kind_of(type_suffix(i))
    value, by = e.integer(i.operands[1], kind), e.bits(i.operands[2], "u32")
    if kind[0] == "s":
        e.assign(i.operands[0], kind, f"{value} >> {by} & {e.ones(kind)}")
    else:
        e.assign(i.operands[0], kind, f"{value} >> {by}")


def _count(e: LaneEmitter, i: Instruction) -> None:
    e.assign(i.operands[0], "u32", f"({e.bits(i.operands[1], type_suffix(i))}).bit_count()")


def _leading_zeros(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    found = f"({e.bits(i.operands[1], kind)}).bit_length()"
    e.assign(i.operands[0], "u32", f"{8 * width_of(kind_of(kind))} - {found}")


def field(a: int, start: int, length: int, width: int) -> int:
    """`bfe.u32`, `bfe.u64`: `length` bits from bit `start` on."""
    if width == 32:
        start, length = start & 255, length & 255
    return a >> start & (1 << min(length, width)) - 1


def _extract(e: LaneEmitter, i: Instruction) -> None:
    kind = type_suffix(i)
    a = e.bits(i.operands[1], kind)
    start, length = (e.bits(operand, "u32") for operand in i.operands[2:])
    e.assign(i.operands[0], kind, f"{e.helper(field)}({a}, {start}, {length}, {kind[1:]})")


for _word, _sign in (("and", "&"), ("or", "|"), ("xor", "^")):
    lane_operation(_word, (*_TYPES, "pred"), _infix(_sign))
lane_operation("not", (*_TYPES, "pred"), _not)
lane_operation("cnot", _TYPES, _logical_not)
lane_operation("shl", _TYPES, _shift_left)
lane_operation("shr", [f"{sign}{bits}" for sign in "bus" for bits in (16, 32, 64)], _shift_right)
lane_operation("popc", ("b32", "b64"), _count)
lane_operation("clz", ("b32", "b64"), _leading_zeros)
lane_operation("bfe", ("u32", "u64"), _extract)
