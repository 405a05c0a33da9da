"""Approximate functions of f32 and f64. PTX ISA, "Floating Point Instructions"."""

from __future__ import annotations

from collections.abc import Callable

from ptx.emulate import ieee
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import EmitFunction, operation, type_suffix
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.arithmetic.lanewise import call_of
from ptx.isa.model import Instruction

_SECTION = "Floating Point Instructions"


def _call(function: Callable[..., Value], *, flushes: bool = True) -> EmitFunction:
    """An operation that one function does; `flushes`: `.ftz` is an option of it."""

    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        operands = [e.value(operand, kind) for operand in i.operands[1:]]
        options = {"ftz": True} if flushes and "ftz" in i.modifiers else {}
        e.assign(i.operands[0], kind, call_of(e, function, *operands, **options))

    return emit


for _name, _function in (
    ("rcp", ieee.rcp_approx),
    ("sqrt", ieee.sqrt_approx),
    ("rsqrt", ieee.rsqrt_approx),
    ("sin", ieee.sin_approx),
    ("cos", ieee.cos_approx),
    ("lg2", ieee.lg2_approx),
    ("ex2", ieee.ex2_approx),
):
    operation(
        f"{_name}.approx", ("f32",), 2, _call(_function), modifiers=("ftz",), section=_SECTION
    )
operation("tanh.approx", ("f32",), 2, _call(ieee.tanh_approx, flushes=False), section=_SECTION)
operation("div.approx", ("f32",), 3, _call(ieee.div_approx), modifiers=("ftz",), section=_SECTION)
operation("div.full", ("f32",), 3, _call(ieee.div_full), modifiers=("ftz",), section=_SECTION)
operation(
    "rcp.approx.ftz", ("f64",), 2, _call(ieee.rcp_approx_f64, flushes=False), section=_SECTION
)
operation(
    "rsqrt.approx", ("f64",), 2, _call(ieee.rsqrt_approx_f64), modifiers=("ftz",), section=_SECTION
)
