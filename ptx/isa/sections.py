"""Sections of debug information: checked as ptxas does, and not read any further.

PTX ISA, "Debugging Directives: .section".
"""

from __future__ import annotations

import re
from typing import Final

from ptx.isa.constant_expressions import integer_literal
from ptx.isa.declarations import LINKAGES, SPACES
from ptx.isa.directives import DIRECTIVES
from ptx.isa.errors import syntax_error
from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.lexer import Cursor

SECTION: Final = re.compile(r'"[^"\n]*"|(?<![\w$.])(\.section)(?![\w$])')
"""A string, or the start of a section, which is group 1."""

_BITS: Final = {".b8": 8, ".b16": 16, ".b32": 32, ".b64": 64}
_TAKEN: Final = {
    *(directive.name for directive in DIRECTIVES),
    *LINKAGES,
    *SPACES,
    *(f".{ptx_type}" for ptx_type in TYPE_BYTES),
}
_NAME: Final = r"\.?[A-Za-z_$%][\w$]*"
_BYTE: Final = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_LABEL: Final = re.compile(r"([A-Za-z_$%][\w$]*)\s*:")
# Compilers write these: long sections are read fifty times faster than token by token.
_USUAL: Final = re.compile(
    rf"""(?: \s++ (?:
        \.b8 \s+ {_BYTE} (?: \s*,\s* {_BYTE} )*+ (?![\w.$])(?!\s*[,+-])
      | \.b(?:16|32|64) \s+ \d{{1,4}} (?![\w.$])(?!\s*[,+-])
      | \.b(?:32|64) \s+ (?: [1-9]\d{{0,8}} | {_NAME} (?: \s*\+\s*\d{{1,9}} | \s*-\s*{_NAME} )? )
        (?![\w.$])(?!\s*[,+-])
      | [A-Za-z_$%][\w$]*\s*:
    ))*+""",
    re.VERBOSE,
)


def section_end(text: str, start: int, labels: set[str]) -> int:
    """Check the section at an offset, add its labels, and return the offset after it.

    Raises:
        PtxSyntaxError: ptxas does not take it.
    """
    stop = text.find("}", start) + 1
    if not stop:
        raise syntax_error(text, start, "this section never ends", len(".section"))
    opening = text.find("{", start, stop) + 1 or stop
    _heading(Cursor(text, start, opening))
    usual = _USUAL.match(text, opening, stop)
    cursor = Cursor(text, usual.end() if usual else opening, stop)
    while not cursor.accept("}"):
        _entry(cursor)
    for label in _LABEL.finditer(text, opening, stop):
        if label[1] in labels:
            raise syntax_error(text, label.start(), f"a second label {label[1]}", len(label[1]))
        labels.add(label[1])
    return stop


def _heading(cursor: Cursor) -> None:
    """`.section .name {`."""
    cursor.expect(".section")
    if cursor.word in _TAKEN or "::" in cursor.word:
        cursor.fail(f"expected the name of a section{cursor.found}")
    cursor.expect_kind("directive")
    cursor.expect("{")


def _entry(cursor: Cursor) -> None:
    """`label :`, or a type with numbers, or with an address."""
    if cursor.kind == "word":
        cursor.expect_name()
        cursor.expect(":")
        return
    bits = _BITS.get(cursor.word)
    if bits is None:
        cursor.fail(f"sections have labels, and data of .b8, .b16, .b32 and .b64{cursor.found}")
    cursor.advance()
    if cursor.kind in ("word", "directive"):
        if bits < 32:
            raise cursor.error("addresses have .b32 or .b64", cursor.index - 1)
        _address(cursor)
        return
    _number(cursor, bits)
    while cursor.accept(","):
        _number(cursor, bits)


def _address(cursor: Cursor) -> None:
    """`name`, `name + integer` or `name - name`, each of a label, a variable or a section."""
    _name(cursor)
    if cursor.accept("+"):
        integer_literal(cursor)
    elif cursor.accept("-"):
        _name(cursor)


def _name(cursor: Cursor) -> None:
    if cursor.kind == "directive":
        cursor.advance()
    else:
        cursor.expect_name()


def _number(cursor: Cursor, bits: int) -> None:
    """`[-] integer`; ptxas cuts large numbers of 32 bits."""
    is_negative, place = cursor.accept("-"), cursor.index
    if cursor.kind != "integer" or (is_negative and cursor.word.endswith("U")):
        cursor.fail(f"expected an integer{cursor.found}")
    value = integer_literal(cursor)
    if value > 1 << (bits - 1) if is_negative else bits < 32 and value >> bits:
        raise cursor.error(f"{'-' if is_negative else ''}{value} has over {bits} bits", place)
    if is_negative and value >> 63:
        raise cursor.error(f"-{value} is below the range of 64 bits", place)
