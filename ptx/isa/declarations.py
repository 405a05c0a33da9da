"""Declarations: variables with their initialisers, parameters.

PTX ISA, "Variable Declarations", "Initializers", "Kernel Function Parameters".
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from math import prod

from ptx.isa.errors import shortened
from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.lexer import Cursor, integer_value
from ptx.isa.model import (
    Element,
    FloatImmediate,
    Linkage,
    Parameter,
    Space,
    SymbolValue,
    Variable,
)

SPACES: dict[str, Space] = {f".{space.value}": space for space in Space} | {".sreg": Space.REG}
LINKAGES: dict[str, Linkage] = {f".{link.value}": link for link in Linkage if link.value}
_MOST = (1 << 64) - 1
_MOST_VECTOR_BYTES = 16


def float_immediate(word: str) -> FloatImmediate:
    """`0f…` and `0d…` give their bits; a decimal constant is an f64."""
    if word[:2] in ("0f", "0F"):
        return FloatImmediate(int(word[2:], 16), 32)
    if word[:2] in ("0d", "0D"):
        return FloatImmediate(int(word[2:], 16), 64)
    return FloatImmediate(int.from_bytes(struct.pack("<d", float(word)), "little"), 64)


def integer_constant(cursor: Cursor) -> int:
    """An integer constant without a sign, of at most 64 bits."""
    word = cursor.expect_kind("integer")
    try:
        value = integer_value(word)
    except ValueError:  # such as 089, or more digits than Python reads
        value = -1
    if not 0 <= value <= _MOST:
        reason = f"{shortened(word, 24)} is not an integer constant of 64 bits"
        raise cursor.error(reason, cursor.index - 1)
    return value


def _wrapped(value: int) -> int:
    """The value of an expression, which is computed in 64 bits."""
    return value if -_MOST <= value <= _MOST else value & _MOST


def number(cursor: Cursor) -> int | FloatImmediate:
    """`[-|~] (integer | float)`, where `-` of a float flips its sign bit."""
    if cursor.accept("-"):
        value = number(cursor)
        if isinstance(value, int):
            return -value
        return FloatImmediate(value.bits ^ (1 << (value.width - 1)), value.width)
    if cursor.accept("~"):
        return ~integer(cursor)
    if cursor.kind in ("float", "decimal"):
        return float_immediate(cursor.advance())
    if cursor.accept("("):
        value = integer(cursor)
        cursor.expect(")")
        return value
    return integer_constant(cursor)


def integer(cursor: Cursor) -> int:
    """`number {(+|-|*) number}`, from left to right."""
    value = number(cursor)
    if not isinstance(value, int):
        raise cursor.error("expected an integer", cursor.index - 1)
    while cursor.word in ("+", "-", "*"):
        sign = cursor.advance()
        right = number(cursor)
        if not isinstance(right, int):
            raise cursor.error("expected an integer", cursor.index - 1)
        value = value + right if sign == "+" else value - right if sign == "-" else value * right
        value = _wrapped(value)
    return value


def signed_offset(cursor: Cursor) -> int:
    """`{(+|-) integer}` after a symbol or a register."""
    offset = 0
    while cursor.word in ("+", "-"):
        sign = cursor.advance()
        value = number(cursor)
        if not isinstance(value, int):
            raise cursor.error("expected an integer", cursor.index - 1)
        offset = _wrapped(offset + value if sign == "+" else offset - value)
    return offset


def type_name(cursor: Cursor) -> str:
    """`.type`, one of the fundamental types."""
    word = cursor.word
    if word[1:] not in TYPE_BYTES:
        cursor.fail(f"expected a type such as .b32{cursor.found}")
    return cursor.advance()[1:]


def dimensions(cursor: Cursor) -> tuple[int, ...]:
    """`{[ [integer] ]}`: the extent of each dimension, 0 for `[]`; none for a scalar."""
    extents: list[int] = []
    while cursor.accept("["):
        size = 0 if cursor.word == "]" else integer(cursor)
        if size < 0:
            raise cursor.error(f"{size} is not a number of elements", cursor.index - 1)
        cursor.expect("]")
        extents.append(size)
    return tuple(extents)


def _symbol_value(cursor: Cursor, mask: int) -> SymbolValue:
    """`name [+ n]` or `generic(name) [+ n]`, already inside the parentheses of a mask if any."""
    name = cursor.expect_kind("word")
    if name == "generic" and cursor.accept("("):
        inner = cursor.expect_kind("word")
        offset = signed_offset(cursor)
        cursor.expect(")")
        return SymbolValue(inner, offset + signed_offset(cursor), True, mask)
    return SymbolValue(name, signed_offset(cursor), False, mask)


def _alignment(cursor: Cursor) -> int:
    """`integer` after `.align`: a power of two."""
    align = integer(cursor)
    if align <= 0 or align & (align - 1):
        raise cursor.error(f".align {align} is not a power of two", cursor.index - 1)
    return align


# Types that integers, floats and addresses may initialise, as in ptxas of CUDA 13.0.
_INTEGERS = frozenset(f"{kind}{bits}" for kind in "bsu" for bits in (8, 16, 32, 64)) | {"b128"}
_FLOATS = frozenset({"b8", "b16", "b32", "b64", "f32", "f64"})
_ADDRESSES = frozenset({"u32", "u64"})


class _Initialiser:
    """The values of one variable; `fault_of` returns the error of a symbol, "" if it has none."""

    def __init__(self, cursor: Cursor, ptx_type: str, fault_of: Callable[[str], str]) -> None:
        self._cursor = cursor
        self._type = ptx_type
        self._fault_of = fault_of
        self.elements: list[Element] = []

    def read(self, shape: tuple[int, ...], width: int) -> int:
        """`element`, or `{ element, … }` for each dimension and vector; how many are in the first.

        Nested lists are flattened: after one with too few values the next follows at once.
        """
        cursor = self._cursor
        if not shape and width == 1:
            return self._element()
        cursor.expect("{")
        is_innermost = len(shape) + (width > 1) == 1
        first, count = cursor.index, 0
        if not cursor.accept("}"):
            while True:
                if is_innermost:
                    count += self._element()
                else:
                    self.read(shape[1:], width)
                    count += 1
                if not cursor.accept(","):
                    break
            cursor.expect("}")
        if not shape and count != width:
            raise cursor.error(f"{count} initial values for a vector of {width}", first)
        if shape and 0 < shape[0] < count:
            raise cursor.error(f"{count} initial values for {shape[0]} elements", first)
        return count

    def _element(self) -> int:
        """An integer, a float, an address or a table of integers; how many values."""
        cursor = self._cursor
        first = cursor.index
        if cursor.kind == "integers":
            self._require("an integer", _INTEGERS, first)
            values = [int(digits) for digits in cursor.advance().split(",")]
            if not -_MOST <= min(values) <= max(values) <= _MOST:
                raise cursor.error("this list has an integer of more than 64 bits", first)
            self.elements += values
            return len(values)
        if cursor.kind == "word":
            self._require("an address", _ADDRESSES, first)
            self.elements.append(self._address(0))
        elif cursor.kind == "integer" and cursor.words[cursor.index + 1] == "(":
            self._require("a byte of an address", _INTEGERS, first)
            mask = integer_constant(cursor)
            cursor.expect("(")
            self.elements.append(self._address(mask))
            cursor.expect(")")
        else:
            value = number(cursor)
            if isinstance(value, FloatImmediate):
                self._require(f"a {value.width}-bit float", _FLOATS, first)
                self.elements.append(value)
            else:
                self._require("an integer", _INTEGERS, first)
                self.elements.append(value + signed_offset(cursor))
        return 1

    def _require(self, element: str, types: frozenset[str], index: int) -> None:
        if self._type not in types:
            raise self._cursor.error(f"{element} does not initialise a .{self._type}", index)

    def _address(self, mask: int) -> SymbolValue:
        first = self._cursor.index
        symbol = _symbol_value(self._cursor, mask)
        fault = self._fault_of(symbol.name)
        if fault:
            raise self._cursor.error(f"{symbol.name} {fault}", first)
        return symbol


def _no_fault(_: str) -> str:
    return ""


def variables(
    cursor: Cursor, linkage: Linkage, line: int, fault_of: Callable[[str], str] = _no_fault
) -> list[Variable]:
    """`space [.align n] [.attribute(…)] [.vN] .type name[dims] [= init] {, name…} ;`.

    `fault_of` returns why an initialiser may not have the address of a name, "" if it may.
    """
    space = SPACES[cursor.advance()]
    align, width = 0, 1
    while True:
        if cursor.accept(".align"):
            align = _alignment(cursor)
        elif cursor.accept(".attribute"):
            _skip_parentheses(cursor)
        elif cursor.word in (".v2", ".v4", ".v8"):
            width = int(cursor.advance()[2:])
        elif cursor.accept(".ptr"):
            continue
        else:
            break
    ptx_type = type_name(cursor)
    if width > 1 and width * TYPE_BYTES[ptx_type] > _MOST_VECTOR_BYTES:
        raise cursor.error(
            f"a vector of {width} .{ptx_type} has more than 128 bits", cursor.index - 1
        )
    declared: list[Variable] = []
    while True:
        name_index = cursor.index
        name = cursor.expect_kind("word")
        shape = dimensions(cursor)
        values = _Initialiser(cursor, ptx_type, fault_of)
        if cursor.word == "=":
            if linkage is Linkage.EXTERN or space not in (Space.GLOBAL, Space.CONST):
                kind = linkage if linkage is Linkage.EXTERN else space
                cursor.fail(f".{kind.value} variables have no initial value")
            cursor.advance()
            first = values.read(shape, width)
            if shape and not shape[0]:
                shape = (first, *shape[1:])
        if linkage is not Linkage.EXTERN and not prod(shape):
            raise cursor.error(f"{name} has no elements", name_index)
        declared.append(
            Variable(
                name=name,
                space=space,
                ptx_type=ptx_type,
                align=align or TYPE_BYTES[ptx_type] * width,
                count=prod(shape) * width,
                initialiser=tuple(values.elements),
                linkage=linkage,
                line=line,
            )
        )
        if not cursor.accept(","):
            break
    cursor.expect(";")
    return declared


def _skip_parentheses(cursor: Cursor) -> None:
    cursor.expect("(")
    depth = 1
    while depth:
        word = cursor.advance()
        depth += (word == "(") - (word == ")")


def parameter(cursor: Cursor) -> Parameter:
    """`.param [.align n] .type [.ptr [.space] [.align n]] name[dims]`, or `.reg .type name`."""
    if cursor.word not in (".param", ".reg"):
        cursor.fail(f"expected .param or .reg{cursor.found}")
    space = SPACES[cursor.advance()]
    align = 0
    if cursor.accept(".align"):
        align = _alignment(cursor)
    ptx_type = type_name(cursor)
    is_pointer = False
    if cursor.accept(".ptr"):
        is_pointer = True
        if cursor.word in SPACES:
            cursor.advance()
        if cursor.accept(".align"):
            _alignment(cursor)
    elif cursor.accept(".align"):
        align = _alignment(cursor)
    name = cursor.expect_kind("word")
    shape = dimensions(cursor)
    return Parameter(
        name=name,
        space=space,
        ptx_type=ptx_type,
        align=align or TYPE_BYTES[ptx_type],
        count=prod(shape),
        is_pointer=is_pointer,
        is_array=bool(shape),
    )


def parameter_list(cursor: Cursor) -> tuple[Parameter, ...]:
    """`( parameter {, parameter} )`, or nothing."""
    if not cursor.accept("("):
        return ()
    parameters: list[Parameter] = []
    while not cursor.accept(")"):
        parameters.append(parameter(cursor))
        if not cursor.accept(","):
            cursor.expect(")")
            break
    return tuple(parameters)
