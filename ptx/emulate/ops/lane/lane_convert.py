"""Conversions of single threads. PTX ISA, "cvt"."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, copysign, floor, trunc
from typing import Any, Final

import numpy as np

from ptx.emulate import ieee
from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.lane.lane_table import lane_operation
from ptx.emulate.codegen.table import type_suffix
from ptx.emulate.ieee import Rounding
from ptx.emulate.model.types import NUMPY
from ptx.emulate.ops.lane.asking import asked
from ptx.emulate.ops.lane.lane_floating import saturated
from ptx.isa.model import Instruction

_INTEGERS = tuple(f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64))
_FORMATS = {"f32": ieee.F32, "f64": ieee.F64}
_MODES: Final[dict[str, Callable[[float], int]]] = {
    "rni": round,
    "rzi": trunc,
    "rmi": floor,
    "rpi": ceil,
}
_ROUNDINGS = {f"{mode.name.lower()}i": mode for mode in Rounding}
_FLAGS = frozenset({"ftz", "sat", "relu", "satfinite", "rz", "rm", "rp"})
_INTEGRAL = 2.0**52  # from here on every float64 is one


def _check(e: LaneEmitter, i: Instruction) -> None:
    if not _FLAGS.isdisjoint(i.modifiers):
        e.refuse()


def _among_integers(e: LaneEmitter, i: Instruction) -> None:
    _check(e, i)
    target, source = type_suffix(i).split(".")
    read = e.bits if target[1:] == source[1:] else e.integer
    e.assign(i.operands[0], target, f"{read(i.operands[1], source)} & {e.ones(target)}")


def _from_integer(e: LaneEmitter, i: Instruction) -> None:
    _check(e, i)
    target, source = type_suffix(i).split(".")
    if target == "f32" and source[1:] == "64":
        e.refuse()  # rounded to float64 first, it would be rounded twice
    result = e.temporary(f"float({e.integer(i.operands[1], source)})")
    if target == "f32":
        e.line(f"{e.bench('F')}[0] = {result}")
        e.line(f"{result} = F[0]")
    e.assign(i.operands[0], target, result)


def _to_integer(e: LaneEmitter, i: Instruction) -> None:
    _check(e, i)
    target, source = type_suffix(i).split(".")
    mode = next(word for word in i.modifiers if word in _MODES)
    x = e.real(i.operands[1], source)
    dtype: np.dtype[Any] = np.dtype(NUMPY[target])
    ask = e.helper(asked(ieee.float_to_integer, source, dtype=dtype, rounding=_ROUNDINGS[mode]))
    most = e.ones(target) >> (target[0] == "s")
    least = -most - 1 if target[0] == "s" else 0
    if most >= 2**53:
        most >>= 1  # so that it is a float
    inside = f"{float(least)!r} <= {x} <= {float(most)!r}"
    value = f"{e.helper(_MODES[mode])}({x}) & {e.ones(target)}"
    e.assign(i.operands[0], target, f"{value} if {inside} else {ask}({x})")


def _among_floats(e: LaneEmitter, i: Instruction) -> None:
    target, source = type_suffix(i).split(".")
    if i.modifiers[:-2] != ("sat",):
        _check(e, i)
    elif (target, source) != ("f32", "f32"):
        e.refuse()
    x = e.real(i.operands[1], source)
    mode = next((word for word in i.modifiers if word in _MODES), None)
    if mode is not None:
        if target != source:
            e.refuse()
        ask = e.helper(asked(ieee.round_to_integral, source, source=_FORMATS[source],
                             rounding=_ROUNDINGS[mode]))  # fmt: skip
        whole = f"{e.helper(copysign)}(float({e.helper(_MODES[mode])}({x})), {x})"
        inside = f"-{_INTEGRAL} < {x} < {_INTEGRAL}"
        e.assign(i.operands[0], target, f"{whole} if {inside} else {ask}({x})")
        return
    if (target, source) == ("f32", "f32"):
        e.assign(i.operands[0], target, saturated(i, x))
        return
    ask = e.helper(asked(ieee.convert_float, source, source=_FORMATS[source],
                         target=_FORMATS[target]))  # fmt: skip
    if (target, source) == ("f32", "f64"):
        result = e.temporary(x)
        e.line(f"{e.bench('F')}[0] = {x}")
        e.line(f"{result} = F[0] if {x} == {x} else {ask}({x})")
        e.assign(i.operands[0], target, result)
        return
    e.assign(i.operands[0], target, f"{x} if {x} == {x} else {ask}({x})")


lane_operation("cvt", [f"{to}.{of}" for to in _INTEGERS for of in _INTEGERS], _among_integers)
for _float in _FORMATS:
    lane_operation("cvt", [f"{_float}.{of}" for of in _INTEGERS], _from_integer)
    lane_operation("cvt", [f"{to}.{_float}" for to in _INTEGERS], _to_integer)
    lane_operation("cvt", [f"{to}.{_float}" for to in _FORMATS], _among_floats)
