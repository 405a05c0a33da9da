"""Builds whose approximate instructions are as far off as PTX allows."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ptx.isa.model import Instruction, Register

from .example_run import CompiledCase
from .ptx_edit import EditablePtx, written_name

# The largest relative errors by the PTX ISA. For sin, cos and lg2 it has larger absolute ones.
_BOUNDS: Final = {
    "tanh": 2**-11, "ex2": 2**-22, "div": 2**-22, "rcp": 2**-23, "sqrt": 2**-23, "rsqrt": 2**-22.9,
    "sin": 2**-20.5, "cos": 2**-20.5, "lg2": 2**-22,
}  # fmt: skip
_FRACTION: Final = 0x7FFFFF  # of a float's bits


def approximations(compiled: CompiledCase) -> Iterator[CompiledCase]:
    """Yield builds with the largest and the least results that PTX allows.

    Only approximate instructions of `f32` are changed. Without one there are no builds.
    """
    editable = EditablePtx(compiled)
    for sign in (1, -1):
        lines = {
            instruction.line: f"{editable.line(instruction)} {_shift(instruction, sign)}"
            for body in editable.functions.values()
            for instruction in body
            if _is_approximate(instruction)
        }
        if lines:
            yield replace(editable.with_lines(lines), checks=())


def _is_approximate(instruction: Instruction) -> bool:
    modifiers = instruction.modifiers
    return (
        instruction.opcode in _BOUNDS
        and ("approx" in modifiers or "full" in modifiers)
        and modifiers[-1] == "f32"
        and isinstance(instruction.operands[0], Register)
    )


def _shift(instruction: Instruction, sign: int) -> str:
    """Return the instructions that move a result by the bound of its error.

    Powers of two are exact for `ex2`: CUDA's `tanh` of `double` relies on it.
    """
    factor = struct.pack(">f", 1 + sign * _BOUNDS[instruction.opcode]).hex().upper()
    # A subnormal result is flushed, or not, as by the instruction.
    flush = ".ftz" if "ftz" in instruction.modifiers else ""
    register, guard, before = instruction.operands[0], instruction.guard, ""
    assert isinstance(register, Register)
    result = written_name(register)
    if guard is not None:
        before = f"@{'!' if guard.negated else ''}{written_name(guard.register)} "
    if instruction.opcode != "ex2":
        return f"{before}mul.rn{flush}.f32 {result}, {result}, 0f{factor};"
    return (
        "{ .reg .b32 %fraction, %by; .reg .pred %inexact; "
        f"mov.b32 %fraction, {result}; and.b32 %fraction, %fraction, {_FRACTION}; "
        "setp.ne.u32 %inexact, %fraction, 0; "
        f"selp.b32 %by, 0x{factor}, 0x3F800000, %inexact; "
        f"{before}mul.rn{flush}.f32 {result}, {result}, %by; }}"
    )
