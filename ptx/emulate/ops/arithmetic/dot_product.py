"""Sums of small products and of absolute differences. PTX ISA, "dp4a", "dp2a", "sad"."""

from __future__ import annotations

import numpy as np

from ptx.emulate.codegen.emitter import Emitter, choose
from ptx.emulate.codegen.table import operation, type_suffix
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import unsigned
from ptx.isa.model import Instruction

_SECTION = "Integer Arithmetic Instructions"


def field(word: Value, bits: int, position: int) -> Value:
    """Field number `position` of `bits` bits, extended to 32 by its sign if the word is signed."""
    kind = word.dtype.type
    return (word << kind(32 - bits * (position + 1))) >> kind(32 - bits)


def dot4(a: Value, b: Value, c: Value) -> Value:
    """c plus the four products of bytes, modulo 2**32."""
    total = c
    for position in range(4):
        x, y = field(a, 8, position), field(b, 8, position)
        total = total + x.view(np.uint32) * y.view(np.uint32)
    return total


def dot2(a: Value, b: Value, c: Value, high: bool) -> Value:
    """c plus two products of a's halves with the lower or upper two bytes of b, modulo 2**32."""
    total = c
    for position in range(2):
        x, y = field(a, 16, position), field(b, 8, position + 2 * high)
        total = total + x.view(np.uint32) * y.view(np.uint32)
    return total


def _dot(e: Emitter, i: Instruction) -> None:
    target, first, second, third = i.operands
    kinds = type_suffix(i).split(".")
    arguments = f"{e.value(first, kinds[0])}, {e.value(second, kinds[1])}, {e.value(third, 'u32')}"
    if i.opcode == "dp4a":
        e.assign(target, "u32", f"{e.helper(dot4)}({arguments})")
        return
    halves = [word for word in i.modifiers if word in ("lo", "hi")]
    if len(halves) != 1:
        raise e.refuse("it needs .lo or .hi")
    e.assign(target, "u32", f"{e.helper(dot2)}({arguments}, {halves[0] == 'hi'})")


def distance(a: Value, b: Value) -> Value:
    """|a - b| as an unsigned value of the same width."""
    kind = f"u{a.dtype.itemsize}"
    difference = a.view(kind) - b.view(kind)
    return choose(a < b, difference.dtype.type(0) - difference, difference)


def _sum_of_differences(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    target, a, b, c = i.operands
    call = f"{e.helper(distance)}({e.value(a, kind)}, {e.value(b, kind)})"
    e.assign(target, unsigned(kind), f"{call} + {e.value(c, unsigned(kind))}")


_PAIRS = tuple(f"{a}.{b}" for a in ("u32", "s32") for b in ("u32", "s32"))
operation("dp4a", _PAIRS, 4, _dot, section=_SECTION)
operation("dp2a", _PAIRS, 4, _dot, modifiers=["lo", "hi"], section=_SECTION)
operation(
    "sad",
    tuple(f"{sign}{bits}" for sign in "us" for bits in (16, 32, 64)),
    4,
    _sum_of_differences,
    section=_SECTION,
)
