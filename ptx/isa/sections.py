"""Sections of debug information: checked as ptxas does, and not read any further.

PTX ISA, "Debugging Directives: .section".
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from ptx.isa.constant_expressions import integer_literal
from ptx.isa.declarations import LINKAGES, SPACES
from ptx.isa.directives import DIRECTIVES
from ptx.isa.errors import syntax_error
from ptx.isa.forms.table import form_table
from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.lexer import NAME, Cursor

SECTION: Final = re.compile(r'"[^"\n]*"|(?<![\w$.])(\.section)(?![\w$])')
"""A string, or the start of a section, which is group 1."""

_BITS: Final = {".b8": 8, ".b16": 16, ".b32": 32, ".b64": 64}
# Compilers write these names of sections.
_USUAL_NAME: Final = re.compile(r"\.(?:debug|nv)_\w+")
# Words that ptxas does not have for itself, though PTX has them.
_NOT_TAKEN: Final = frozenset({
    "a", "async", "b", "b1", "b4x16_p64", "b6x16_p32", "b8x16", "block_scale", "cp_mask", "e2m1",
    "e2m3", "e3m2", "g", "im2col", "im2col::w", "im2col::w::128", "im2col_no_offs",
    "launch_dependents", "mask", "oob", "r", "read", "s128", "s8x4", "tf32", "tile",
    "tile::gather4", "tile::scatter4", "u128", "u8x4", "ue4m3", "ue8m0", "v8", "wait",
    "xorsign", "cta_group::1", "cta_group::2", "kind::f8f6f4", "kind::mxf4", "kind::mxf4nvf4",
    "kind::mxf8f6f4", "scale_vec::1X", "scale_vec::2X", "scale_vec::4X",
})  # fmt: skip
# Words that name no section. Almost all modifiers are others.
_TAKEN: Final = frozenset({
    *(directive.name for directive in DIRECTIVES if directive.name != ".version"),
    *LINKAGES, *SPACES, *(f".{each}" for each in TYPE_BYTES if each not in _NOT_TAKEN),
    ".managed", ".unified", ".byte", ".div", ".mbarrier", ".multimem",
})  # fmt: skip
_BYTE: Final = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_LABEL: Final = re.compile(rf"(?<![\w$.:])({NAME})\s*:(?!:)")
NEEDS: Final = {
    _LABEL: "sm_10 7.0",
    re.compile(rf"{NAME}\s*-\s*{NAME}"): "sm_10 7.5",
    re.compile(r"-\s*\d\w*"): "sm_10 7.5",
}
"""The needs of labels in sections, their differences, and negative numbers."""
# Compilers write these: long sections are read fifty times faster than token by token.
_USUAL: Final = re.compile(
    rf"""(?: \s++ (?:
        \.b8 \s+ {_BYTE} (?: \s*,\s* {_BYTE} )*+ (?![\w.$])(?!\s*[,+-])
      | \.b(?:16|32|64) \s+ \d{{1,4}} (?![\w.$])(?!\s*[,+-])
      | \.b(?:32|64) \s+ (?: [1-9]\d{{0,8}} | {NAME}\s*-\s*{NAME}
                             | (?:\.debug_\w+|{NAME}) (?: \s*\+\s*\d{{1,9}} )? )
        (?![\w.$])(?!\s*[,+-])
      | {NAME}\s*:
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
    section_name(cursor)
    cursor.expect("{")


def section_name(cursor: Cursor) -> None:
    """`.name`, which is no word of PTX.

    Raises:
        PtxSyntaxError: it is one, or no name at all.
    """
    word = cursor.word
    if word[1:2] == "_" or (_USUAL_NAME.fullmatch(word) is None and word in _words_of_ptx()):
        cursor.fail(f"expected the name of a section{cursor.found}")
    cursor.expect_kind("directive")


@cache
def _words_of_ptx() -> frozenset[str]:
    """The words that ptxas does not take as names of sections."""
    table = form_table()
    words = (table.types(opcode) | table.modifiers(opcode) for opcode in table.opcodes)
    modifiers = {word for each in words for word in each} - _NOT_TAKEN
    return _TAKEN.union(f".{word}" for word in modifiers)


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
    """`name [+ integer]` of a label, a variable or a section, or `label - label`."""
    is_section = cursor.kind == "directive"
    if is_section:
        section_name(cursor)
    else:
        cursor.expect_name()
    if cursor.accept("+"):
        integer_literal(cursor)
    elif not is_section and cursor.accept("-"):
        cursor.expect_name()


def _number(cursor: Cursor, bits: int) -> None:
    """`[-] integer`; ptxas cuts large numbers of 32 bits."""
    is_negative, place = cursor.accept("-"), cursor.index
    if cursor.kind != "integer" or (is_negative and cursor.word.endswith("U")):
        cursor.fail(f"expected an integer{cursor.found}")
    value = integer_literal(cursor)
    # Of a positive number ptxas compares the lower 32 bits alone.
    if value > 1 << (bits - 1) if is_negative else bits < 32 and (value & 0xFFFFFFFF) >> bits:
        raise cursor.error(f"{'-' if is_negative else ''}{value} has over {bits} bits", place)
    if is_negative and value >> 63:
        raise cursor.error(f"-{value} is below the range of 64 bits", place)
