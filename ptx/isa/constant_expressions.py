"""Constant expressions, with the types and values that NVIDIA's assembler gives them.

PTX ISA, "Constants", "Constant Expressions". Where the ISA and the assembler differ, this follows
the assembler: `&`, `|` and `^` of two signed numbers are signed, and `%` is unsigned.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ptx.isa.errors import shortened
from ptx.isa.lexer import Cursor
from ptx.isa.model import FloatImmediate

_MASK: Final = (1 << 64) - 1
_TOP_BIT: Final = 1 << 63
_WARP_SIZE: Final = 32
_DOUBLE: Final = struct.Struct("<d")
_SMALLEST_NORMAL: Final = 2.2250738585072014e-308


@dataclass(frozen=True, slots=True)
class _Value:
    """An integer of 64 bits, or a float64."""

    number: int | float
    is_signed: bool = True


def _integer(number: int, *, is_signed: bool) -> _Value:
    """An integer, wrapped to 64 bits."""
    bits = number & _MASK
    return _Value(bits - (1 << 64) if is_signed and bits & _TOP_BIT else bits, is_signed)


def constant(cursor: Cursor) -> int | FloatImmediate:
    """`expression`, or `0f…`, which is no part of an expression.

    Raises:
        PtxSyntaxError: it is none.
    """
    if cursor.kind == "float" or cursor.word == "(":
        value = _float32(cursor)
        if value is not None:
            return value
    if cursor.kind == "integer" and cursor.words[cursor.index + 1] not in _CONTINUE:
        return integer_literal(cursor)
    number = _conditional(cursor).number
    if isinstance(number, float):
        return FloatImmediate(int.from_bytes(_DOUBLE.pack(number), "little"), 64)
    return number


def _float32(cursor: Cursor) -> FloatImmediate | None:
    """`0f…`, in parentheses or not, that stands alone."""
    depth, first = 0, cursor.index
    while cursor.accept("("):
        depth += 1
    if cursor.kind == "float" and cursor.word[1] in "fF":
        value = FloatImmediate(int(cursor.advance()[2:], 16), 32)
        while depth and cursor.accept(")"):
            depth -= 1
        if not depth and (cursor.words[first] != "(" or cursor.word not in _CONTINUE):
            return value
    cursor.index = first
    return None


def integer_constant(cursor: Cursor) -> int:
    """`expression` that is an integer."""
    first = cursor.index
    value = constant(cursor)
    if isinstance(value, FloatImmediate):
        raise cursor.error("expected an integer", first)
    return value


def integer_literal(cursor: Cursor) -> int:
    """One integer or `WARP_SZ`, as for a count, an extent, an alignment or a line."""
    if cursor.accept("WARP_SZ"):
        return _WARP_SIZE
    word = cursor.expect_kind("integer")
    value = digits_value(word)
    if value is None:
        reason = f"{shortened(word, 24)} is not an integer constant of 64 bits"
        raise cursor.error(reason, cursor.index - 1)
    return value


def source_number(cursor: Cursor) -> int:
    """The number of a file, a line or a column: an integer of 32 bits."""
    value = integer_literal(cursor)
    if value >> 32:
        raise cursor.error(f"{value} has over 32 bits", cursor.index - 1)
    return value


def digits_value(word: str) -> int | None:
    """The value of decimal, hexadecimal, octal or binary digits, None if there is none.

    Digits beyond 64 bits wrap, until a digit follows a number whose highest bit is set.
    """
    digits, base = word.rstrip("U").lower(), 10
    if digits[:2] in ("0x", "0b"):
        digits, base = digits[2:], 16 if digits[1] == "x" else 2
    elif digits[0] == "0":
        base = 8
    try:
        value = int(digits, base)
    except ValueError:  # such as 089, or more digits than Python reads
        return None
    if value <= _MASK:
        return value
    value = 0
    for digit in digits:
        if value & _TOP_BIT:
            return None
        value = (value * base + int(digit, base)) & _MASK
    return value


def _conditional(cursor: Cursor) -> _Value:
    """`binary [? conditional : conditional]`, of the type of the chosen one."""
    first = cursor.index
    condition = _binary(cursor, 0)
    if not cursor.accept("?"):
        return condition
    _require_integers(cursor, first, condition)
    chosen = _conditional(cursor)
    cursor.expect(":")
    other = _conditional(cursor)
    _require_integers(cursor, first, chosen, other)
    return chosen if condition.number else other


def _binary(cursor: Cursor, level: int) -> _Value:
    """`operand {operator operand}`, from left to right, of one level and all that bind tighter."""
    if level == len(_LEVELS):
        return _unary(cursor)
    left = _binary(cursor, level + 1)
    while (function := _LEVELS[level].get(cursor.word)) is not None:
        place = cursor.index
        cursor.advance()
        left = function(cursor, place, left, _binary(cursor, level + 1))
    return left


def _unary(cursor: Cursor) -> _Value:
    """`[+|-|!|~|cast] unary`, a constant, or an expression in parentheses."""
    word, place = cursor.word, cursor.index
    if word in ("+", "-", "!", "~"):
        cursor.advance()
        return _signed(cursor, word, place, _unary(cursor))
    if word != "(":
        return _literal(cursor)
    cursor.advance()
    if cursor.kind != "directive":
        value = _bits_of_float32(cursor) or _conditional(cursor)
        cursor.expect(")")
        return value
    cast = cursor.advance()
    if cast not in (".s64", ".u64"):
        raise cursor.error(f"{cast} is no type of a cast: .s64 and .u64 are", cursor.index - 1)
    cursor.expect(")")
    operand = _unary(cursor)
    _require_integers(cursor, place, operand)
    return _integer(int(operand.number), is_signed=cast == ".s64")


def _bits_of_float32(cursor: Cursor) -> _Value | None:
    """`0f…` in parentheses: its bits are those of a subnormal float64."""
    if cursor.kind != "float" or cursor.word[1] not in "fF":
        return None
    (number,) = _DOUBLE.unpack(int(cursor.advance()[2:], 16).to_bytes(8, "little"))
    return _Value(number)


def _signed(cursor: Cursor, sign: str, place: int, operand: _Value) -> _Value:
    if sign == "+":
        return operand
    if sign == "-":
        if isinstance(operand.number, float):
            return _Value(-operand.number)
        return _integer(-operand.number, is_signed=operand.is_signed)
    _require_integers(cursor, place, operand)
    if sign == "!":
        return _Value(int(not operand.number))
    return _integer(~int(operand.number), is_signed=False)


def _literal(cursor: Cursor) -> _Value:
    """An integer, signed if it fits and has no U; a double."""
    if cursor.kind == "decimal":
        number = float(cursor.advance())
        digits = cursor.words[cursor.index - 1].lower().partition("e")[0].strip("0.")
        if abs(number) == float("inf") or (abs(number) < _SMALLEST_NORMAL and digits):
            raise cursor.error("this is no float64", cursor.index - 1)
        return _Value(number)
    if cursor.kind == "float" and cursor.word[1] in "dD":
        (number,) = _DOUBLE.unpack(int(cursor.advance()[2:], 16).to_bytes(8, "little"))
        return _Value(number)
    if cursor.kind != "integer" and cursor.word != "WARP_SZ":
        cursor.fail(f"expected a constant{cursor.found}")
    is_signed = not cursor.word.endswith("U")
    value = integer_literal(cursor)
    return _Value(value, is_signed and value < _TOP_BIT)


_Operator = Callable[[Cursor, int, _Value, _Value], _Value]


def _require_integers(cursor: Cursor, place: int, *operands: _Value) -> None:
    if any(isinstance(operand.number, float) for operand in operands):
        raise cursor.error("expected integers", place)


def _usual(left: _Value, right: _Value) -> tuple[int, int, bool]:
    """Two integers of one type: signed if both are; and whether it is."""
    is_signed = left.is_signed and right.is_signed
    a = _integer(int(left.number), is_signed=is_signed)
    b = _integer(int(right.number), is_signed=is_signed)
    return int(a.number), int(b.number), is_signed


def _arithmetic(
    of_integers: Callable[[int, int], int], of_floats: Callable[[float, float], float]
) -> _Operator:
    def compute(cursor: Cursor, place: int, left: _Value, right: _Value) -> _Value:
        if isinstance(left.number, float) and isinstance(right.number, float):
            return _Value(of_floats(left.number, right.number))
        _require_integers(cursor, place, left, right)
        a, b, is_signed = _usual(left, right)
        return _integer(of_integers(a, b), is_signed=is_signed)

    return compute


def _division(cursor: Cursor, place: int, left: _Value, right: _Value) -> _Value:
    """The quotient, rounded towards zero of integers."""
    if not right.number:
        raise cursor.error("a division by zero", place)
    return _QUOTIENT(cursor, place, left, right)


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) if (a < 0) == (b < 0) else -(abs(a) // abs(b))


_QUOTIENT: Final = _arithmetic(_truncated, operator.truediv)


def _remainder(cursor: Cursor, place: int, left: _Value, right: _Value) -> _Value:
    _require_integers(cursor, place, left, right)
    divisor = int(right.number) & _MASK
    if not divisor:
        raise cursor.error("a division by zero", place)
    return _Value((int(left.number) & _MASK) % divisor, is_signed=False)


def _comparison(compare: Callable[[float, float], bool]) -> _Operator:
    def compute(cursor: Cursor, place: int, left: _Value, right: _Value) -> _Value:
        if isinstance(left.number, float) and isinstance(right.number, float):
            return _Value(int(compare(left.number, right.number)))
        _require_integers(cursor, place, left, right)
        a, b, _ = _usual(left, right)
        return _Value(int(compare(a, b)))

    return compute


def _shift(cursor: Cursor, place: int, left: _Value, right: _Value, *, is_left: bool) -> _Value:
    """A shift by the low six bits, of the left operand's type."""
    _require_integers(cursor, place, left, right)
    number, count = int(left.number), int(right.number) & 63
    shifted = number << count if is_left else number >> count
    return _integer(shifted, is_signed=left.is_signed)


def _left_shift(cursor: Cursor, place: int, left: _Value, right: _Value) -> _Value:
    return _shift(cursor, place, left, right, is_left=True)


def _right_shift(cursor: Cursor, place: int, left: _Value, right: _Value) -> _Value:
    return _shift(cursor, place, left, right, is_left=False)


def _bitwise(function: Callable[[int, int], int]) -> _Operator:
    def compute(cursor: Cursor, place: int, left: _Value, right: _Value) -> _Value:
        _require_integers(cursor, place, left, right)
        a, b, is_signed = _usual(left, right)
        return _integer(function(a, b), is_signed=is_signed)

    return compute


def _logical(function: Callable[[bool, bool], bool]) -> _Operator:
    def compute(cursor: Cursor, place: int, left: _Value, right: _Value) -> _Value:
        _require_integers(cursor, place, left, right)
        return _Value(int(function(bool(left.number), bool(right.number))))

    return compute


_LEVELS: Final[tuple[dict[str, _Operator], ...]] = (
    {"||": _logical(operator.or_)},
    {"&&": _logical(operator.and_)},
    {"|": _bitwise(operator.or_)},
    {"^": _bitwise(operator.xor)},
    {"&": _bitwise(operator.and_)},
    {"==": _comparison(operator.eq), "!=": _comparison(operator.ne)},
    {
        "<": _comparison(operator.lt),
        "<=": _comparison(operator.le),
        ">": _comparison(operator.gt),
        ">=": _comparison(operator.ge),
    },
    {"<<": _left_shift, ">>": _right_shift},
    {
        "+": _arithmetic(operator.add, operator.add),
        "-": _arithmetic(operator.sub, operator.sub),
    },
    {"*": _arithmetic(operator.mul, operator.mul), "/": _division, "%": _remainder},
)
_CONTINUE: Final = frozenset().union(*_LEVELS) | {"?"}
