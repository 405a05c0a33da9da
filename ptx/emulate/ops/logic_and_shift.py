"""Logic, shifts, and any logic function of three words by its table.

PTX ISA, "Logic and Shift Instructions".
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import EmitFunction, operation, type_suffix
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import kind_of, width_of
from ptx.isa.model import Immediate, Instruction, Pair

_operation = partial(operation, section="Logic and Shift Instructions")
_TYPES = ("b16", "b32", "b64", "pred")


def _infix(sign: str) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = type_suffix(i)
        a, b = (e.value(operand, kind) for operand in i.operands[1:])
        e.assign(i.operands[0], kind, f"{a} {sign} {b}")

    return emit


def _not(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    e.assign(i.operands[0], kind, f"~{e.value(i.operands[1], kind)}")


def _logical_not(e: Emitter, i: Instruction) -> None:
    kind = type_suffix(i)
    zero = e.constant(0, kind_of(kind))
    source = e.value(i.operands[1], kind)
    e.assign(i.operands[0], kind, f"({source} == {zero}).astype({e.dtype(kind)})")


def amount(shift: Value, dtype: np.dtype[np.generic]) -> Value:
    """A shift amount as the shifted type; above the width every amount acts alike."""
    return np.minimum(shift, np.uint32(64)).astype(dtype)


def _shift(sign: str) -> EmitFunction:
    def emit(e: Emitter, i: Instruction) -> None:
        kind = kind_of(type_suffix(i))
        bits = 8 * width_of(kind)
        source, by = i.operands[1:]
        value = e.value(source, kind)
        if isinstance(by, Immediate):
            steps = by.value & 0xFFFFFFFF
            if steps >= bits and kind[0] == "u":
                # All bits leave, yet the result has the shape of the source.
                e.assign(i.operands[0], kind, f"{value} & {e.constant(0, kind)}")
                return
            by_value = e.constant(min(steps, bits - 1), kind)
        elif bits == 32:
            by_value = e.value(by, kind)
        else:
            by_value = f"{e.helper(amount)}({e.value(by, 'u32')}, {e.dtype(kind)})"
        e.assign(i.operands[0], kind, f"{value} {sign} {by_value}")

    return emit


for _name, _sign in (("and", "&"), ("or", "|"), ("xor", "^")):
    _operation(_name, _TYPES, 3, _infix(_sign))
_operation("not", _TYPES, 2, _not)
_operation("cnot", ("b16", "b32", "b64"), 2, _logical_not)
_operation("shl", ("b16", "b32", "b64"), 3, _shift("<<"))
_operation("shr", (*(f"{sign}{bits}" for sign in "bus" for bits in (16, 32, 64)),), 3, _shift(">>"))


# Functions of two values x, y by their table: bit x + 2 * y is the result for those bits.
_PAIRS = (
    "0", "~({x} | {y})", "({x} & ~{y})", "~{y}", "({y} & ~{x})", "~{x}", "({x} ^ {y})",
    "~({x} & {y})", "({x} & {y})", "~({x} ^ {y})", "{x}", "({x} | ~{y})", "{y}", "({y} | ~{x})",
    "({x} | {y})", "1",
)  # fmt: skip
_VARIABLES = ("a", "b", "c")
_WEIGHTS = (4, 2, 1)  # of a, b and c in the index into the table (PTX ISA: 0xF0, 0xCC, 0xAA)


def _half(table: int, fixed: int, value: int) -> int:
    """The function of the other two values that is left where one is fixed."""
    other_weights = [weight for position, weight in enumerate(_WEIGHTS) if position != fixed]
    half = 0
    for x in (0, 1):
        for y in (0, 1):
            index = value * _WEIGHTS[fixed] + x * other_weights[0] + y * other_weights[1]
            half |= (table >> index & 1) << (x + 2 * y)
    return half


def _split(table: int, fixed: int) -> str:
    """An expression that decides on one of the values last."""
    off, on = _half(table, fixed, 0), _half(table, fixed, 1)
    x, y = (name for position, name in enumerate(_VARIABLES) if position != fixed)
    last = _VARIABLES[fixed]

    def pair(function: int) -> str:
        return _PAIRS[function].format(x=x, y=y)

    if off == on:
        return pair(off)
    if off == 0:
        return last if on == 15 else f"({pair(on)} & {last})"
    if on == 0:
        return f"~{last}" if off == 15 else f"({pair(off)} & ~{last})"
    if off ^ on == 15:
        return f"({pair(off)} ^ {last})"
    if off & on == off:
        return f"({pair(off)} | {last})" if on == 15 else f"({pair(off)} | ({pair(on)} & {last}))"
    if off & on == on:
        return f"({pair(on)} | ({pair(off)} & ~{last}))" if off != 15 else f"({pair(on)} | ~{last})"
    return f"({pair(off)} ^ ({pair(off ^ on)} & {last}))"


@lru_cache(maxsize=256)  # one entry a table
def expression(table: int) -> str:
    """A short expression in a, b and c for a table of eight bits; "0" or "1" for the constants."""
    candidates = (_split(table, fixed) for fixed in range(3))
    return min(candidates, key=lambda text: sum(text.count(sign) for sign in "&|^~"))


def _logic(e: Emitter, i: Instruction) -> None:
    target, *sources, table = i.operands[:5]
    if not isinstance(table, Immediate):
        raise e.reject("it needs a constant table")
    tokens = expression(table.value & 0xFF)  # as ptxas has it
    if tokens in "01":
        result = e.constant(-int(tokens), "u32")
    else:
        values = [e.value(source, "u32") for source in sources]
        result = "".join(
            values[_VARIABLES.index(token)] if token in _VARIABLES else token for token in tokens
        )
    boolean = {"and": "&", "or": "|"}.get(i.modifiers[0])
    if boolean is None:
        if isinstance(target, Pair) or len(i.operands) != 5:
            raise e.reject("a predicate needs .and or .or")
        e.assign(target, "u32", result)
        return
    if not isinstance(target, Pair) or len(i.operands) != 6:
        raise e.reject(".and and .or need two destinations and a predicate")
    result = e.temporary(result)
    predicate = e.temporary(f"({result} != {e.constant(0, 'u32')})")
    other = e.value(i.operands[5], "pred")
    combined = e.temporary(f"{predicate} {boolean} {other}")
    e.assign(target.first, "u32", result)
    e.assign(target.second, "pred", combined)


operation("lop3", ("b32",), (5, 6), _logic, modifiers=["and", "or"], section="lop3")


def funnel_left(a: Value, b: Value, amount: Value) -> Value:
    """The upper word of b:a shifted to the left by 0 to 32."""
    wide = (b.astype(np.uint64) << np.uint64(32)) | a
    return ((wide << amount.astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)


def funnel_right(a: Value, b: Value, amount: Value) -> Value:
    """The lower word of b:a shifted to the right by 0 to 32."""
    wide = (b.astype(np.uint64) << np.uint64(32)) | a
    return (wide >> amount.astype(np.uint64)).astype(np.uint32)


def _funnel(e: Emitter, i: Instruction) -> None:
    directions = [word for word in i.modifiers if word in ("l", "r")]
    modes = [word for word in i.modifiers if word in ("clamp", "wrap")]
    if len(directions) != 1 or len(modes) != 1:
        raise e.reject("it needs a direction and a mode")
    kind = kind_of(type_suffix(i))
    target, *sources, by = i.operands
    a, b = (e.value(source, kind) for source in sources)
    left, clamp = directions[0] == "l", modes[0] == "clamp"
    if isinstance(by, Immediate):
        steps = by.value & 0xFFFFFFFF
        steps = min(steps, 32) if clamp else steps & 31
        if 0 < steps < 32:
            up, down = (steps, 32 - steps) if left else (32 - steps, steps)
            shifted = f"({b} << {e.constant(up, kind)}) | ({a} >> {e.constant(down, kind)})"
            e.assign(target, kind, shifted)
        else:
            e.assign(target, kind, a if left == (steps == 32) else b)
        return
    amount = e.value(by, "u32")
    limit = e.constant(32 if clamp else 31, "u32")
    amount = f"{e.helper(np.minimum)}({amount}, {limit})" if clamp else f"({amount} & {limit})"
    function = e.helper(funnel_left if left else funnel_right)
    e.assign(target, kind, f"{function}({a}, {b}, {amount})")


operation("shf", ("b32",), 4, _funnel, modifiers=["l", "r", "clamp", "wrap"], section="shf")
