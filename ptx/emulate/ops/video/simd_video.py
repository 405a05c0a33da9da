"""SIMD video instructions: two halves or four bytes at once. PTX ISA, "SIMD Video Instructions"."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import EmitFunction, operation
from ptx.emulate.model.geometry import Value
from ptx.emulate.ops.video.video import (
    ARITHMETIC,
    COMPARISONS,
    clamp,
    comparison,
    signs,
    split_operand,
    word_of,
)
from ptx.isa.model import Instruction, Operand

_SECTION = "SIMD Video Instructions"


def rounded_average(a: Value, b: Value) -> Value:
    """(a + b) / 2, halves away from zero."""
    total = a + b
    return (total + (total >= 0)) >> 1


_OPERATIONS: dict[str, Callable[[Value, Value], Value]] = {
    **ARITHMETIC,
    "vavrg": rounded_average,
}


@dataclass(frozen=True, slots=True)
class SimdVideo:
    """What one SIMD video instruction does.

    Attributes:
        first: the operation on each pair of elements.
        bits: of an element, 16 or 8.
        a, b: for each element of the result, which of the elements of b:a is its source.
        mask: the elements that are written or added.
        a_signed, b_signed, signed: of the sources' elements and the result's.
        saturate: whether results are clamped; accumulate: whether they are added to c.
    """

    first: Callable[[Value, Value], Value]
    bits: int
    a: tuple[int, ...]
    b: tuple[int, ...]
    mask: tuple[int, ...]
    a_signed: bool
    b_signed: bool
    signed: bool
    saturate: bool
    accumulate: bool

    def __call__(self, a: Value, b: Value, c: Value) -> Value:
        """(n,) uint32 from three words."""
        wide = (b.astype(np.uint64) << np.uint64(32)) | a
        result = c
        for position in self.mask:
            value = self.first(
                self._element(wide, self.a[position], self.a_signed),
                self._element(wide, self.b[position], self.b_signed),
            ).astype(np.int64)
            if self.saturate:
                value = clamp(value, self.bits, self.signed)
            if self.accumulate:
                result = result + word_of(value)
                continue
            low = np.uint32(position * self.bits)
            mask = np.uint32((1 << self.bits) - 1) << low
            result = (result & ~mask) | ((word_of(value) << low) & mask)
        return result

    def _element(self, wide: Value, which: int, signed: bool) -> Value:
        found = (wide >> np.uint64(which * self.bits)) & np.uint64((1 << self.bits) - 1)
        value = found.astype(np.int64)
        if not signed:
            return value
        top = np.int64(1 << (self.bits - 1))
        return (value ^ top) - top


def _selection(e: Emitter, selector: str, count: int, first: int) -> tuple[int, ...]:
    """The elements that a selector names, that of element 0 first; `first` and on without one."""
    if not selector:
        return tuple(range(first, first + count))
    pattern = r"b[0-7]{4}" if count == 4 else r"h[0-3]{2}"
    if not re.fullmatch(pattern, selector):
        raise e.refuse(f".{selector} does not select {count} elements")
    return tuple(int(digit) for digit in reversed(selector[1:]))


def _written(e: Emitter, selector: str, count: int) -> tuple[int, ...]:
    """The elements that a mask names."""
    if not selector:
        return tuple(range(count))
    digits = tuple(int(digit) for digit in reversed(selector[1:]))
    is_mask = selector[0] == ("b" if count == 4 else "h") and digits == tuple(sorted(set(digits)))
    if not is_mask or digits[-1] >= count:
        raise e.refuse(f".{selector} is no mask of {count} elements")
    return digits


def _whole(e: Emitter, operand: Operand) -> tuple[Operand, str]:
    whole, selector, negated = split_operand(operand)
    if negated:
        raise e.refuse("it takes no negation")
    return whole, selector


def _emit(e: Emitter, i: Instruction, first: Callable[[Value, Value], Value], kinds: str) -> None:
    count = int(i.opcode[-1])
    (target, mask), (a, a_selector), (b, b_selector) = (_whole(e, each) for each in i.operands[:3])
    if "sat" in i.modifiers and "add" in i.modifiers:
        raise e.refuse("it saturates or accumulates, not both")
    made = SimdVideo(
        first, 32 // count, _selection(e, a_selector, count, 0),
        _selection(e, b_selector, count, count), _written(e, mask, count),
        kinds[1] == "s", kinds[2] == "s", kinds[0] == "s",
        "sat" in i.modifiers, "add" in i.modifiers,
    )  # fmt: skip
    values = ", ".join(e.value(each, "u32") for each in (a, b, i.operands[3]))
    e.assign(target, "u32", f"{e.scope.bind(made, 'video')}({values})")


def _arithmetic(name: str) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        _emit(e, i, _OPERATIONS[name], signs(i))

    return emit


def _compare(e: Emitter, i: Instruction) -> None:
    _emit(e, i, comparison(e, i), "u" + signs(i))


_SIGNS = ("u32", "s32")
_TRIPLES = [f"{d}.{a}.{b}" for d in _SIGNS for a in _SIGNS for b in _SIGNS]
for _count in (2, 4):
    for _name in _OPERATIONS:
        operation(
            f"{_name}{_count}", _TRIPLES, 4, _arithmetic(_name), modifiers=["sat", "add"],
            section=_SECTION,
        )  # fmt: skip
    operation(
        f"vset{_count}", [f"{a}.{b}" for a in _SIGNS for b in _SIGNS], 4, _compare,
        modifiers=[*COMPARISONS, "add"], section=_SECTION,
    )  # fmt: skip
