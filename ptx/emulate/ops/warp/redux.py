"""Reductions over the lanes of a warp. PTX ISA, "redux.sync"."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import Effect, operation, type_suffix
from ptx.emulate.codegen.undefined_writer import BROUGHT, follow_exchange
from ptx.emulate.exec.sync.warp_group import Group
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.model.types import NUMPY, kind_of
from ptx.emulate.ops.warp.lane_sync import brought_by_any, sync_lanes
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

_UFUNCS: dict[str, Any] = {  # NumPy's stubs give `reduce` no dtype of its own
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "min": np.minimum, "max": np.maximum,
}  # fmt: skip
_CANONICAL_NAN = np.uint32(0x7FFFFFFF).view(np.float32)


def _neutral(name: str, kind: str) -> Value:
    """What changes no reduction."""
    dtype = NUMPY[kind]
    if name in ("min", "max"):
        info = np.iinfo(kind.replace("u", "uint").replace("s", "int"))
        return dtype(info.max if name == "min" else info.min)
    return dtype(0xFFFFFFFF if name == "and" else 0)


def reduce_integers(fibre: Fibre, group: Group, name: str, kind: str, value: Value) -> Value:
    """`redux.sync` of 32-bit integers; a sum wraps."""
    grid = group.grid(fibre, "value", value, fill=_neutral(name, kind)).reshape(-1, WARP)
    return group.each(_UFUNCS[name].reduce(grid, axis=1, dtype=grid.dtype))


def reduce_floats(
    fibre: Fibre, group: Group, name: str, absolute: bool, nan: bool, value: Value
) -> Value:
    """`redux.sync.min` and `.max` of f32: -0 is below +0.

    A NaN counts only if all are, or with `.NaN` if one is; then the result is the canonical NaN.
    """
    grid = group.grid(fibre, "value", value, fill=np.float32("nan")).reshape(-1, WARP)
    if absolute:
        grid = np.abs(grid)
    taken = group.present().reshape(-1, WARP)
    is_nan = np.isnan(grid)
    # In this order of integers the floats are ordered, signed zeros too.
    bits = grid.view(np.int32)
    order = np.where(bits < 0, bits ^ np.int32(0x7FFFFFFF), bits)
    edge = np.iinfo(np.int32)
    last = np.int32(edge.max if name == "min" else edge.min)
    best = _UFUNCS[name].reduce(np.where(is_nan | ~taken, last, order), axis=1)
    result = np.where(best < 0, best ^ np.int32(0x7FFFFFFF), best).view(np.float32)
    wrong = (is_nan & taken).any(axis=1) if nan else (is_nan | ~taken).all(axis=1)
    return group.each(np.where(wrong, _CANONICAL_NAN, result))


def _emit_integer(e: Emitter, i: Instruction) -> None:
    ptx_type = type_suffix(i)
    value = e.temporary(e.value(i.operands[1], ptx_type))
    group = sync_lanes(e, i, i.operands[2], {"value": value})
    _follow(e, i, group)
    call = f"{e.helper(reduce_integers)}(f, {group}, {i.modifiers[1]!r}, {kind_of(ptx_type)!r}"
    e.assign(i.operands[0], ptx_type, f"{call}, {value})")


def _emit_float(e: Emitter, i: Instruction) -> None:
    value = e.temporary(e.value(i.operands[1], "f32"))
    group = sync_lanes(e, i, i.operands[2], {"value": value})
    name, absolute, nan = i.modifiers[1], "abs" in i.modifiers, "NaN" in i.modifiers
    _follow(e, i, group)
    call = f"{e.helper(reduce_floats)}(f, {group}, {name!r}, {absolute}, {nan}, {value})"
    e.assign(i.operands[0], "f32", call)


def _follow(e: Emitter, i: Instruction, group: str) -> None:
    follow_exchange(e, i, i.operands[0], f"{e.helper(brought_by_any)}(f, {group}, {BROUGHT})")


_operation = partial(operation, arity=3, effect=Effect.SYNCS, section="redux.sync")
for _name in ("add", "min", "max"):
    _operation(f"redux.sync.{_name}", ("u32", "s32"), emit=_emit_integer)
for _name in ("and", "or", "xor"):
    _operation(f"redux.sync.{_name}", ("b32",), emit=_emit_integer)
for _name in ("min", "max"):
    _operation(f"redux.sync.{_name}", ("f32",), emit=_emit_float, modifiers=("abs", "NaN"))
