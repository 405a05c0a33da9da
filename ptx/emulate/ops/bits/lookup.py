"""Any logic function of three words, given by its table of eight bits. PTX ISA, "lop3"."""

from __future__ import annotations

from functools import lru_cache

from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.table import operation
from ptx.isa.model import Immediate, Instruction, Pair

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
    others = [weight for position, weight in enumerate(_WEIGHTS) if position != fixed]
    found = 0
    for x in (0, 1):
        for y in (0, 1):
            index = value * _WEIGHTS[fixed] + x * others[0] + y * others[1]
            found |= (table >> index & 1) << (x + 2 * y)
    return found


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
    if not isinstance(table, Immediate) or not 0 <= table.value <= 255:
        raise e.refuse("it needs a table from 0 to 255")
    found = expression(table.value)
    if found in "01":
        result = e.constant(-int(found), "u32")
    else:
        values = [e.value(source, "u32") for source in sources]
        result = "".join(
            values[_VARIABLES.index(each)] if each in _VARIABLES else each for each in found
        )
    boolean = {"and": "&", "or": "|"}.get(i.modifiers[0])
    if boolean is None:
        if isinstance(target, Pair) or len(i.operands) != 5:
            raise e.refuse("a predicate needs .and or .or")
        e.assign(target, "u32", result)
        return
    if not isinstance(target, Pair) or len(i.operands) != 6:
        raise e.refuse(".and and .or need two destinations and a predicate")
    result = e.temporary(result)
    predicate = e.temporary(f"({result} != {e.constant(0, 'u32')})")
    other = e.value(i.operands[5], "pred")
    combined = e.temporary(f"{predicate} {boolean} {other}")
    e.assign(target.first, "u32", result)
    e.assign(target.second, "pred", combined)


operation("lop3", ("b32",), (5, 6), _logic, modifiers=["and", "or"], section="lop3")
