"""Moves between registers, packing, and generic addresses. PTX ISA, "mov", "cvta", "isspacep"."""

from __future__ import annotations

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import operation, type_suffix
from ptx.emulate.memory.generic_addresses import (
    LOCAL_WINDOW,
    PARAM_WINDOW,
    SHARED_WINDOW,
    WINDOW_BYTES,
)
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import kind_of, width_of
from ptx.isa.model import Instruction, Sink, SpecialRegister, Vector

_AXES = "xyzw"
_TYPES = tuple(f"{sign}{bits}" for sign in "bus" for bits in (16, 32, 64))
_WINDOWS = {
    "shared": SHARED_WINDOW, "shared::cta": SHARED_WINDOW, "shared::cluster": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
}  # fmt: skip
_SPACES = ("global", "const", "param", "param::entry", *_WINDOWS)


def _move(e: Emitter, i: Instruction) -> None:
    kind = kind_of(type_suffix(i))
    target, source = i.operands
    if kind[0] == "f" and (isinstance(source, Vector) or isinstance(target, Vector)):
        raise e.refuse("registers are packed and unpacked as bits: .b32, .b64")
    if isinstance(source, Vector):
        e.assign(target, kind, _packed(e, kind, source))
    elif isinstance(target, Vector):
        _unpack(e, kind, target, e.temporary(e.value(source, kind)))
    else:
        e.assign(target, kind, e.value(source, kind))


def _packed(e: Emitter, kind: str, source: Vector) -> str:
    """The elements side by side, the first lowest."""
    bits = 8 * width_of(kind) // len(source.items)
    part = f"u{bits}"
    pieces: list[str] = []
    for position, item in enumerate(source.items):
        piece = f"{e.value(item, part)}.astype({e.dtype(kind)})"
        if position:
            piece = f"({piece} << {e.constant(position * bits, kind)})"
        pieces.append(piece)
    return " | ".join(pieces)


def _unpack(e: Emitter, kind: str, target: Vector, value: str) -> None:
    bits = 8 * width_of(kind) // len(target.items)
    part = f"u{bits}"
    for position, item in enumerate(target.items):
        if isinstance(item, Sink):
            continue
        piece = f"({value} >> {e.constant(position * bits, kind)})" if position else value
        e.assign(item, part, f"{piece}.astype({e.dtype(part)})")


def _move_special(e: Emitter, i: Instruction) -> None:
    """`mov.v4.u32`: the elements of a special register such as %tid."""
    target, source = i.operands
    items = target.items if isinstance(target, Vector) else ()
    if len(items) != len(_AXES) or not isinstance(source, SpecialRegister):
        raise e.refuse("it moves a special register's elements to four registers in braces")
    for axis, item in zip(_AXES, items, strict=True):
        if not isinstance(item, Sink):
            e.assign(item, "u32", e.value(SpecialRegister(f"{source.name}.{axis}"), "u32"))


def _space(e: Emitter, i: Instruction) -> str:
    found = next((word for word in i.modifiers if word in _SPACES), None)
    if found is None:
        raise e.refuse("it needs a state space")
    return found


def _convert_address(e: Emitter, i: Instruction) -> None:
    """`cvta[.to]`: generic addresses of shared and local memory lie in windows of their own."""
    kind, space = type_suffix(i), _space(e, i)
    value = e.value(i.operands[1], kind)
    window = _WINDOWS.get(space)
    if window is not None:
        sign = "-" if "to" in i.modifiers else "+"
        value = f"{value} {sign} {e.constant(window, kind)}"
    e.assign(i.operands[0], kind, value)


def within(addresses: Value, low: int, high: int) -> Value:
    """Whether 64-bit addresses lie in low <= a < high."""
    values = addresses.astype(np.uint64)
    inside: Value = (values >= np.uint64(low)) & (values < np.uint64(high))
    return inside


def _is_in_space(e: Emitter, i: Instruction) -> None:
    """Whatever lies in no other window is global; the parameters' window is a part of it."""
    source, space = i.operands[1], _space(e, i)
    value = e.temporary(e.value(source, "u64"))
    test = e.helper(within)
    windows = {name: [(start, start + WINDOW_BYTES)] for name, start in _WINDOWS.items()}
    windows["const"] = e.scope.const_ranges()
    if space.startswith("param"):
        ranges = [(PARAM_WINDOW, PARAM_WINDOW + WINDOW_BYTES)]
    elif space == "global":
        ranges = [*windows["shared"], *windows["local"], *windows["const"]]
    else:
        ranges = windows[space] or [(0, 0)]
    inside = " | ".join(f"{test}({value}, {low}, {high})" for low, high in ranges)
    e.assign(i.operands[0], "pred", f"~({inside})" if space == "global" else inside)


operation("mov", (*_TYPES, "f32", "f64", "pred"), 2, _move, section="mov")
operation("mov.v4", ("u32", "b32"), 2, _move_special, section="mov")
operation("cvta", ("u32", "u64"), 2, _convert_address, modifiers=["to", *_SPACES], section="cvta")
operation("isspacep", ("",), 2, _is_in_space, modifiers=_SPACES, section="isspacep")
