"""Conversions that round by random bits which the program brings. PTX ISA, "cvt" with `.rs`.

A result is rounded away from zero where the sum of the random bits and of the bits that are cut
away carries. Where a word has the bits of each value, the ISA says: for two halves in the half of
the word, of which `f16` takes 13 bits; for four values of 8 or 6 bits the two upper ones share the
upper half, the two lower ones the lower half; for four values of 4 bits the upper ones have the
upper bytes of both halves, and the lower ones the lower bytes. That the first of such two takes the
byte of the upper half is read into that; no GPU was asked.
"""

from __future__ import annotations

import numpy as np

from ptx.emulate import ieee
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import operation, type_suffix
from ptx.emulate.ieee import Format
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.arithmetic.lanewise import lanewise
from ptx.isa.model import Instruction, Vector

_HALVES = {"f16x2": ieee.F16, "bf16x2": ieee.BF16}
_FOURS: dict[str, Format] = {
    "e4m3x4": ieee.E4M3, "e5m2x4": ieee.E5M2, "e2m3x4": ieee.E2M3, "e3m2x4": ieee.E3M2,
    "e2m1x4": ieee.E2M1,
}  # fmt: skip
_SHARED = (16, 16, 0, 0)
_BYTES = (24, 8, 16, 0)
"""From which bit on a word has the random bits of each of four values."""


def round_together(
    target: Format, relu: bool, satfinite: bool, random: Value, *values: Value
) -> Value:
    """Two or four values side by side, the first one in the highest bits."""
    shifts = (16, 0) if len(values) == 2 else _BYTES if target.width == 4 else _SHARED
    step = 16 if len(values) == 2 else 4 if target.width == 4 else 8
    call = lanewise(ieee.round_stochastically, target=target, relu=relu, satfinite=satfinite)
    found: Value = np.uint32(0)
    for value, shift in zip(values, shifts, strict=True):
        rounded = call(value, random >> np.uint32(shift))
        found = found << np.uint32(step) | rounded.astype(np.uint32)
    return found


def _emit(e: Emitter, i: Instruction) -> None:
    name = next((word for word in i.modifiers if word in _FOURS), type_suffix(i).split(".")[0])
    target = _HALVES.get(name) or _FOURS[name]
    given = i.operands[1].items if isinstance(i.operands[1], Vector) else i.operands[1:-1]
    if len(given) != (2 if name in _HALVES else 4):
        raise e.refuse("it rounds two values to halves, and a vector of four to narrow floats")
    values = [e.value(operand, "f32") for operand in given]
    random = e.temporary(e.value(i.operands[-1], "b32"))
    flags = f"{'relu' in i.modifiers}, {'satfinite' in i.modifiers}"
    call = f"{e.helper(round_together)}({e.scope.bind(target)}, {flags}, {random}"
    call = f"{call}, {', '.join(values)})"
    if name == "e2m1x4":
        e.assign(i.operands[0], "b16", f"({call}).astype({e.dtype('u16')})")
    else:
        e.assign(i.operands[0], "b32", call)


operation(
    "cvt.rs", [f"{name}.f32" for name in _HALVES], 4, _emit, modifiers=("relu", "satfinite"),
    section="cvt",
)  # fmt: skip
for _name in _FOURS:
    operation(
        f"cvt.rs.satfinite.{_name}", ("f32",), 3, _emit, modifiers=("relu",), section="cvt"
    )  # fmt: skip
