"""Declarations: variables with their initialisers, parameters.

PTX ISA, "Variable Declarations", "Initializers", "Kernel Function Parameters".
"""

from __future__ import annotations

import struct

from ptx.isa.lexer import Cursor, integer_value
from ptx.isa.model import (
    TYPE_BYTES,
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


def float_immediate(word: str) -> FloatImmediate:
    """`0f…` and `0d…` give their bits; a decimal constant is an f64."""
    if word[:2] in ("0f", "0F"):
        return FloatImmediate(int(word[2:], 16), 32)
    if word[:2] in ("0d", "0D"):
        return FloatImmediate(int(word[2:], 16), 64)
    return FloatImmediate(int.from_bytes(struct.pack("<d", float(word)), "little"), 64)


def integer_constant(cursor: Cursor) -> int:
    """An integer constant without a sign."""
    word = cursor.expect_kind("integer")
    try:
        return integer_value(word)
    except ValueError:
        raise cursor.error(f"{word[:40]} is no integer constant", cursor.index - 1) from None


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
    return value


def signed_offset(cursor: Cursor) -> int:
    """`{(+|-) integer}` behind a symbol or a register."""
    offset = 0
    while cursor.word in ("+", "-"):
        sign = cursor.advance()
        value = number(cursor)
        if not isinstance(value, int):
            raise cursor.error("expected an integer", cursor.index - 1)
        offset += value if sign == "+" else -value
    return offset


def type_name(cursor: Cursor) -> str:
    """`.type`, one of the fundamental types."""
    word = cursor.word
    if word[1:] not in TYPE_BYTES:
        cursor.fail(f"expected a type such as .b32, found {word!r}")
    return cursor.advance()[1:]


def dimensions(cursor: Cursor) -> int | None:
    """`{[ [integer] ]}`: the number of elements, None for a scalar, 0 for `[]`."""
    count: int | None = None
    while cursor.accept("["):
        size = 0 if cursor.word == "]" else integer(cursor)
        if size < 0:
            raise cursor.error(f"{size} is no number of elements", cursor.index - 1)
        cursor.expect("]")
        count = size if count is None else count * size
    return count


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
    """`integer` behind `.align`: a power of two."""
    align = integer(cursor)
    if align <= 0 or align & (align - 1):
        raise cursor.error(f".align {align} is no power of two", cursor.index - 1)
    return align


def _is_float_for(ptx_type: str, value: FloatImmediate) -> bool:
    """Whether a constant initialises a type: f32 and f64 take either width, bits their own."""
    return ptx_type in ("f32", "f64") or value.width == 8 * TYPE_BYTES[ptx_type]


def _elements(cursor: Cursor, ptx_type: str, into: list[Element]) -> None:
    """`element` or `{ element, … }`, nested lists flattened; a table counts as its elements."""
    if cursor.accept("{"):
        while not cursor.accept("}"):
            _elements(cursor, ptx_type, into)
            if not cursor.accept(","):
                cursor.expect("}")
                break
        return
    if cursor.kind == "integers":
        into.extend(map(int, cursor.advance().split(",")))
        return
    if cursor.kind == "word":
        into.append(_symbol_value(cursor, 0))
        return
    if cursor.kind == "integer" and cursor.words[cursor.index + 1] == "(":
        mask = integer_constant(cursor)
        cursor.expect("(")
        into.append(_symbol_value(cursor, mask))
        cursor.expect(")")
        return
    value = number(cursor)
    if not isinstance(value, FloatImmediate):
        into.append(value + signed_offset(cursor))
    elif _is_float_for(ptx_type, value):
        into.append(value)
    else:
        raise cursor.error(
            f"a {value.width}-bit float does not initialise a .{ptx_type}", cursor.index - 1
        )


def variables(cursor: Cursor, linkage: Linkage, line: int) -> list[Variable]:
    """`space [.align n] [.attribute(…)] [.vN] .type name[dims] [= init] {, name…} ;`."""
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
    found: list[Variable] = []
    while True:
        name = cursor.expect_kind("word")
        count, elements = _shape_and_values(cursor, ptx_type, width)
        found.append(
            Variable(
                name=name,
                space=space,
                ptx_type=ptx_type,
                align=align or TYPE_BYTES[ptx_type] * width,
                count=count,
                initialiser=elements,
                linkage=linkage,
                line=line,
            )
        )
        if not cursor.accept(","):
            break
    cursor.expect(";")
    return found


def _shape_and_values(cursor: Cursor, ptx_type: str, width: int) -> tuple[int, tuple[Element, ...]]:
    """`[dims] [= init]`: the number of elements, and their values."""
    count = dimensions(cursor)
    elements: list[Element] = []
    if cursor.accept("="):
        _elements(cursor, ptx_type, elements)
    total = width if count is None else count * width
    return total or len(elements), tuple(elements)


def _skip_parentheses(cursor: Cursor) -> None:
    cursor.expect("(")
    depth = 1
    while depth:
        word = cursor.advance()
        depth += (word == "(") - (word == ")")


def parameter(cursor: Cursor) -> Parameter:
    """`.param [.align n] .type [.ptr [.space] [.align n]] name[dims]`, or `.reg .type name`."""
    if cursor.word not in (".param", ".reg"):
        cursor.fail(f"expected .param or .reg, found {cursor.word!r}")
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
    count = dimensions(cursor)
    return Parameter(
        name=name,
        space=space,
        ptx_type=ptx_type,
        align=align or TYPE_BYTES[ptx_type],
        count=1 if count is None else count,
        is_pointer=is_pointer,
    )


def parameter_list(cursor: Cursor) -> tuple[Parameter, ...]:
    """`( parameter {, parameter} )`, or nothing."""
    if not cursor.accept("("):
        return ()
    found: list[Parameter] = []
    while not cursor.accept(")"):
        found.append(parameter(cursor))
        if not cursor.accept(","):
            cursor.expect(")")
            break
    return tuple(found)
