"""Approximate functions of single threads. PTX ISA, "Floating Point Instructions".

They are computed in float64 and rounded, as `ieee/approximate.py` does for arrays. What is more
than a quotient or a root is NumPy's, whose last bits are its own.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

import numpy as np

from ptx.emulate import ieee
from ptx.emulate.codegen.lane.lane_emitter import LaneEmitter
from ptx.emulate.codegen.lane.lane_table import EmitLane, lane_operation
from ptx.emulate.codegen.table import type_suffix
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.lane.asking import asked
from ptx.emulate.ops.lane.lane_floating import finish, operands
from ptx.isa.model import Instruction

_MOST_DIVISOR = 2.0**126  # of `div.approx`


def _ask(e: LaneEmitter, i: Instruction, function: Callable[..., Value], values: list[str]) -> str:
    options = {"ftz": True} if "ftz" in i.modifiers and i.opcode != "tanh" else {}
    return f"{e.helper(asked(function, type_suffix(i), **options))}({', '.join(values)})"


def _root(form: str, function: Callable[..., Value]) -> EmitLane:
    """A quotient or a root of a positive number."""

    def emit(e: LaneEmitter, i: Instruction) -> None:
        (x,) = operands(e, i, i.operands[1:], "f32")
        ask = _ask(e, i, function, [x])
        value = form.format(x=x, sqrt=e.helper(sqrt))
        test = x if function is ieee.rcp_approx else f"{x} > 0.0"
        finish(e, i, "f32", f"{value} if {test} else {ask}", ask)

    return emit


def _through_numpy(ufunc: Callable[[float], float], function: Callable[..., Value]) -> EmitLane:
    def emit(e: LaneEmitter, i: Instruction) -> None:
        (x,) = operands(e, i, i.operands[1:], "f32")
        finish(e, i, "f32", f"{e.helper(ufunc)}({x})", _ask(e, i, function, [x]))

    return emit


def _divide(function: Callable[..., Value]) -> EmitLane:
    def emit(e: LaneEmitter, i: Instruction) -> None:
        a, b = operands(e, i, i.operands[1:], "f32")
        ask = _ask(e, i, function, [a, b])
        test = f"{b} and -{_MOST_DIVISOR} <= {b} <= {_MOST_DIVISOR}"
        finish(e, i, "f32", f"{a} / {b} if {test} else {ask}", ask)

    return emit


def _upper_reciprocal(e: LaneEmitter, i: Instruction) -> None:
    """`rcp.approx.ftz.f64`: 1/x of the upper words, where neither is small or large."""
    x = e.real(i.operands[1], "f64")
    ask = f"{e.helper(asked(ieee.rcp_approx_f64, 'f64'))}({x})"
    e.bench("Q"), e.bench("D")
    upper, least, most = 0xFFFF_FFFF << 32, 2.0**-1021, 2.0**1021
    e.line(f"D[0] = {x}")
    e.line(f"Q[0] &= {upper}")
    result = e.temporary("D[0]")
    e.line(f"if {least} < {result} < {most} or -{least} > {result} > -{most}:")
    e.line(f"    D[0] = 1.0 / {result}")
    e.line(f"    Q[0] &= {upper}")
    e.line(f"    {result} = D[0]")
    e.line(f"else: {result} = {ask}")
    e.assign(i.operands[0], "f64", result)


lane_operation("rcp.approx", ("f32",), _root("1.0 / {x}", ieee.rcp_approx))
lane_operation("sqrt.approx", ("f32",), _root("{sqrt}({x})", ieee.sqrt_approx))
lane_operation("rsqrt.approx", ("f32",), _root("1.0 / {sqrt}({x})", ieee.rsqrt_approx))
lane_operation("lg2.approx", ("f32",), _through_numpy(np.log2, ieee.lg2_approx))
lane_operation("ex2.approx", ("f32",), _through_numpy(np.exp2, ieee.ex2_approx))
lane_operation("tanh.approx", ("f32",), _through_numpy(np.tanh, ieee.tanh_approx))
lane_operation("div.approx", ("f32",), _divide(ieee.div_approx))
lane_operation("div.full", ("f32",), _divide(ieee.div_full))
lane_operation("rcp.approx.ftz", ("f64",), _upper_reciprocal)
