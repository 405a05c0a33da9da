"""Arithmetic on two 16-bit integers in one word. PTX ISA, "add", "min", "max"."""

from __future__ import annotations

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import EmitFunction, operation, type_suffix
from ptx.emulate.model.geometry import Value
from ptx.isa.model import Instruction

_SECTION = "Integer Arithmetic Instructions"
_TOPS = np.uint32(0x80008000)
_REST = np.uint32(0x7FFF7FFF)


def add_halves(a: Value, b: Value) -> Value:
    """Two sums modulo 2**16; no carry crosses the middle."""
    return ((a & _REST) + (b & _REST)) ^ ((a ^ b) & _TOPS)


def _halves(word: Value, kind: str) -> tuple[Value, Value]:
    """The lower and the upper half."""
    upper = (word >> np.uint32(16)).astype(np.uint16)
    return word.astype(np.uint16).view(kind), upper.view(kind)


def _joined(low: Value, high: Value) -> Value:
    upper = high.view(np.uint16).astype(np.uint32) << np.uint32(16)
    return upper | low.view(np.uint16)


def least_halves(a: Value, b: Value, kind: str) -> Value:
    """Two minima of halves of kind "u2" or "i2"."""
    (a0, a1), (b0, b1) = _halves(a, kind), _halves(b, kind)
    return _joined(np.minimum(a0, b0), np.minimum(a1, b1))


def greatest_halves(a: Value, b: Value, kind: str) -> Value:
    """Two maxima of halves of kind "u2" or "i2"."""
    (a0, a1), (b0, b1) = _halves(a, kind), _halves(b, kind)
    return _joined(np.maximum(a0, b0), np.maximum(a1, b1))


def _add(e: Emitter, i: Instruction) -> None:
    a, b = (e.value(operand, "u32") for operand in i.operands[1:])
    e.assign(i.operands[0], "u32", f"{e.helper(add_halves)}({a}, {b})")


def _extreme(name: str) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = "i2" if type_suffix(i)[0] == "s" else "u2"
        a, b = (e.value(operand, "u32") for operand in i.operands[1:])
        function = e.helper(least_halves if name == "min" else greatest_halves)
        result = f"{function}({a}, {b}, {kind!r})"
        if "relu" in i.modifiers:
            if kind == "u2":
                raise e.refuse(".relu needs a signed type")
            zero = e.constant(0, "u32")
            result = f"{e.helper(greatest_halves)}({result}, {zero}, {kind!r})"
        e.assign(i.operands[0], "u32", result)

    return emit


_TYPES = ("u16x2", "s16x2")
operation("add", _TYPES, 3, _add, section=_SECTION)
operation("min", _TYPES, 3, _extreme("min"), modifiers=["relu"], section=_SECTION)
operation("max", _TYPES, 3, _extreme("max"), modifiers=["relu"], section=_SECTION)
