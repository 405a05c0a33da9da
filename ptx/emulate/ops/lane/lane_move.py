"""Moves of single threads, packing, and generic addresses. PTX ISA, "mov", "cvta"."""

from __future__ import annotations

from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.lane.lane_table import lane_operation
from ptx.emulate.codegen.table import type_suffix
from ptx.emulate.memory.generic_addresses import LOCAL_WINDOW, SHARED_WINDOW
from ptx.emulate.model.types import kind_of, width_of
from ptx.isa.model import FloatImmediate, Instruction, Operand, Register, Sink, Vector

_TYPES = tuple(f"{sign}{bits}" for sign in "bus" for bits in (16, 32, 64))
_WINDOWS = {
    "shared": SHARED_WINDOW, "shared::cta": SHARED_WINDOW, "shared::cluster": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
}  # fmt: skip
_FLOAT_OF = {4: "f32", 8: "f64"}


def _move(e: LaneEmitter, i: Instruction) -> None:
    kind = kind_of(type_suffix(i))
    target, source = i.operands
    if kind == "pred":
        e.assign(target, kind, e.predicate(source))
    elif isinstance(source, Vector):
        e.assign(target, kind, _packed(e, kind, source))
    elif isinstance(target, Vector):
        _unpack(e, kind, target, source)
    else:
        value, kind = moved(e, source, kind)
        e.assign(target, kind, value)


def moved(e: LaneEmitter, source: Operand, kind: str) -> tuple[str, str]:
    """What is moved as it is held: a float stays one, even where its bits are asked for."""
    if isinstance(source, Register):
        held = e.held(source)
        if held in ("f32", "f64") and width_of(held) == width_of(kind):
            return e.real(source, held), held
        if e.scope.width[e.scope.number(source)] == width_of(kind) and kind[0] == "f":
            return e.bits(source, f"u{8 * width_of(kind)}"), f"u{8 * width_of(kind)}"
    if kind[0] == "f" or isinstance(source, FloatImmediate):
        kind = _FLOAT_OF[width_of(kind)]
        return e.real(source, kind), kind
    return e.bits(source, kind), kind


def _packed(e: LaneEmitter, kind: str, source: Vector) -> str:
    """The elements side by side, the first lowest."""
    bits = 8 * width_of(kind) // len(source.items)
    if kind[0] == "f" or bits not in (8, 16, 32):
        e.refuse()
    pieces = [e.bits(item, f"u{bits}") for item in source.items]
    return " | ".join(
        f"{piece} << {position * bits}" if position else piece
        for position, piece in enumerate(pieces)
    )


def _unpack(e: LaneEmitter, kind: str, target: Vector, source: Operand) -> None:
    bits = 8 * width_of(kind) // len(target.items)
    if kind[0] == "f" or bits not in (8, 16, 32):
        e.refuse()
    value = e.temporary(e.bits(source, kind))
    for position, item in enumerate(target.items):
        if not isinstance(item, Sink):
            ones = (1 << bits) - 1
            e.assign(item, f"u{bits}", f"{value} >> {position * bits} & {ones}")


def _convert_address(e: LaneEmitter, i: Instruction) -> None:
    """`cvta[.to]`: generic addresses of shared and local memory lie in windows of their own."""
    kind = type_suffix(i)
    value = e.bits(i.operands[1], kind)
    window = next((_WINDOWS[word] for word in i.modifiers if word in _WINDOWS), None)
    if window is not None:
        value = f"{value} {'-' if 'to' in i.modifiers else '+'} {window} & {e.ones(kind)}"
    e.assign(i.operands[0], kind, value)


lane_operation("mov", (*_TYPES, "f32", "f64", "pred"), _move)
lane_operation("cvta", ("u32", "u64"), _convert_address)
