"""Integer arithmetic. PTX ISA, "Integer Arithmetic Instructions"."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptx.emulate.codegen.emitter import Emitter, choose
from ptx.emulate.codegen.table import EmitFunction, operation, type_suffix
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import width_of
from ptx.isa.model import Immediate, Instruction

_U = ("u16", "u32", "u64")
_S = ("s16", "s32", "s64")
_SECTION = "Integer Arithmetic Instructions"


def _twice(kind: str) -> str:
    return f"{kind[0]}{2 * int(kind[1:])}"


def divide(a: Value, b: Value) -> Value:
    """Quotient rounded towards zero; all ones where b is zero, as the hardware gives."""
    zero = b == 0
    b = choose(zero, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        quotient = a // b
    else:
        quotient = a // b
        quotient = quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)
    ones = ~a.dtype.type(0)
    return choose(zero, np.broadcast_to(ones, np.shape(quotient))[()], quotient)


def remainder(a: Value, b: Value) -> Value:
    """a - b * divide(a, b), with the sign of a; a where b is zero."""
    return choose(b == 0, a, a - divide(a, b) * b)


def high_product(a: Value, b: Value) -> Value:
    """The upper half of the product of two 64-bit values, by halves of 32 bits."""
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    x, y = a.view(np.uint64), b.view(np.uint64)
    x0, x1, y0, y1 = x & low, x >> half, y & low, y >> half
    middle = x1 * y0 + ((x0 * y0) >> half)
    other = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> half) + (other >> half)
    if a.dtype.kind == "i":
        zero = np.uint64(0)
        high = high - choose(a < 0, y, zero) - choose(b < 0, x, zero)
    return high.view(a.dtype)


def saturated_sum(a: Value, b: Value) -> Value:
    """a + b in 32 bits, clamped to the range of s32."""
    total = a.astype(np.int64) + b.astype(np.int64)
    return np.clip(total, -(2**31), 2**31 - 1).astype(np.int32)


def saturated_difference(a: Value, b: Value) -> Value:
    """a - b in 32 bits, clamped to the range of s32."""
    total = a.astype(np.int64) - b.astype(np.int64)
    return np.clip(total, -(2**31), 2**31 - 1).astype(np.int32)


def _sum(sign: str) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        target, left, right = i.operands
        if "sat" in i.modifiers:
            if kind != "s32":
                raise e.refuse(".sat needs .s32")
            helper = e.helper(saturated_sum if sign == "+" else saturated_difference)
            a, b = e.value(left, kind), e.value(right, kind)
            e.assign(target, kind, f"{helper}({a}, {b})")
            return
        if sign == "+" and kind[1:] in ("32", "64") and e.add_later(target, left, right):
            return
        a, b = e.value(left, kind), e.value(right, kind)
        e.assign(target, kind, f"{a} {sign} {b}")

    return emit


def _wide(e: Emitter, i: Instruction, kind: str) -> str:
    """The product of the first two sources in twice the width."""
    twice = _twice(kind)
    a, factor = i.operands[1], i.operands[2]
    wide = f"{e.value(a, kind)}.astype({e.dtype(twice)})"
    if isinstance(factor, Immediate) and factor.value > 0 and factor.value.bit_count() == 1:
        shift = e.constant(factor.value.bit_length() - 1, twice)
        return f"({wide} << {shift})"
    if isinstance(factor, Immediate):
        return f"({wide} * {e.constant(_as_kind(factor.value, kind), twice)})"
    return f"({wide} * {e.value(factor, kind)}.astype({e.dtype(twice)}))"


def _as_kind(value: int, kind: str) -> int:
    """An immediate as a value of a kind."""
    bits = 8 * width_of(kind)
    value &= (1 << bits) - 1
    return value - (1 << bits) if kind[0] == "s" and value >> (bits - 1) else value


def _high(e: Emitter, i: Instruction, kind: str) -> str:
    if kind[1:] == "64":
        a, b = e.value(i.operands[1], kind), e.value(i.operands[2], kind)
        return f"{e.helper(high_product)}({a}, {b})"
    shift = e.constant(8 * width_of(kind), _twice(kind))
    return f"({_wide(e, i, kind)} >> {shift}).astype({e.dtype(kind)})"


def product_of(e: Emitter, i: Instruction) -> tuple[str, str]:
    """The product that `.lo`, `.hi` or `.wide` asks for, and its kind."""
    kind = type_suffix(i)
    if "wide" in i.modifiers:
        if kind[1:] == "64":
            raise e.refuse(".wide needs 16 or 32 bits")
        return _wide(e, i, kind), _twice(kind)
    if "hi" in i.modifiers:
        return _high(e, i, kind), kind
    a, b = i.operands[1], i.operands[2]
    if isinstance(b, Immediate) and b.value > 0 and b.value.bit_count() == 1:
        return f"({e.value(a, kind)} << {e.constant(b.value.bit_length() - 1, kind)})", kind
    return f"({e.value(a, kind)} * {e.value(b, kind)})", kind


def _multiply(e: Emitter, i: Instruction) -> None:
    product, kind = product_of(e, i)
    e.assign(i.operands[0], kind, product)


def _multiply_add(e: Emitter, i: Instruction) -> None:
    product, kind = product_of(e, i)
    addend = e.value(i.operands[3], kind)
    if "sat" in i.modifiers:
        if "hi" not in i.modifiers or kind != "s32":
            raise e.refuse(".sat needs .hi.s32")
        e.assign(i.operands[0], kind, f"{e.helper(saturated_sum)}({product}, {addend})")
        return
    e.assign(i.operands[0], kind, f"{product} + {addend}")


def product24(a: Value, b: Value) -> Value:
    """The 48-bit product of the low 24 bits of two 32-bit values, signed where they are."""
    if a.dtype.kind == "i":
        eight = np.int32(8)
        return ((a << eight) >> eight).astype(np.int64) * ((b << eight) >> eight).astype(np.int64)
    low = np.uint32(0xFFFFFF)
    return (a & low).astype(np.uint64) * (b & low).astype(np.uint64)


def _multiply24(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    a, b = e.value(i.operands[1], kind), e.value(i.operands[2], kind)
    shift = e.constant(16 if "hi" in i.modifiers else 0, _twice(kind))
    part = f"({e.helper(product24)}({a}, {b}) >> {shift}).astype({e.dtype(kind)})"
    if i.opcode == "mad24":
        addend = e.value(i.operands[3], kind)
        if "sat" in i.modifiers:
            part = f"{e.helper(saturated_sum)}({part}, {addend})"
        else:
            part = f"{part} + {addend}"
    e.assign(i.operands[0], kind, part)


def _called(function: Callable[..., Value]) -> EmitFunction:
    """An operation that is one call of a Python function."""

    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        arguments = ", ".join(e.value(operand, kind) for operand in i.operands[1:])
        e.assign(i.operands[0], kind, f"{e.helper(function)}({arguments})")

    return emit


def _negate(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    e.assign(i.operands[0], kind, f"{e.constant(0, kind)} - {e.value(i.operands[1], kind)}")


def absolute(a: Value) -> Value:
    """|a|, where the least value stays as it is."""
    return choose(a < 0, a.dtype.type(0) - a, a)


def _extreme(name: str) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        a, b = (e.value(operand, kind) for operand in i.operands[1:])
        function = e.helper(np.minimum if name == "min" else np.maximum)
        result = f"{function}({a}, {b})"
        if "relu" in i.modifiers:
            result = f"{e.helper(np.maximum)}({result}, {e.constant(0, kind)})"
        e.assign(i.operands[0], kind, result)

    return emit


operation("add", (*_U, *_S), 3, _sum("+"), modifiers=["sat"], section=_SECTION)
operation("sub", (*_U, *_S), 3, _sum("-"), modifiers=["sat"], section=_SECTION)
operation("mul", (*_U, *_S), 3, _multiply, modifiers=["lo", "hi", "wide"], section=_SECTION)
operation(
    "mad", (*_U, *_S), 4, _multiply_add, modifiers=["lo", "hi", "wide", "sat"], section=_SECTION
)
operation("mul24", ("u32", "s32"), 3, _multiply24, modifiers=["lo", "hi"], section=_SECTION)
operation("mad24", ("u32", "s32"), 4, _multiply24, modifiers=["lo", "hi", "sat"], section=_SECTION)
operation("div", (*_U, *_S), 3, _called(divide), section=_SECTION)
operation("rem", (*_U, *_S), 3, _called(remainder), section=_SECTION)
operation("neg", _S, 2, _negate, section=_SECTION)
operation("abs", _S, 2, _called(absolute), section=_SECTION)
operation("min", (*_U, *_S), 3, _extreme("min"), modifiers=["relu"], section=_SECTION)
operation("max", (*_U, *_S), 3, _extreme("max"), modifiers=["relu"], section=_SECTION)
