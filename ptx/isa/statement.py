"""One statement of a function's body, read token by token, with the words for an error.

PTX ISA, "Instruction Statements", "Directive Statements".
"""

from __future__ import annotations

import re

from ptx.isa.declarations import (
    SPACES,
    dimensions,
    integer,
    parameter_list,
    signed_offset,
    type_name,
    variables,
)
from ptx.isa.lexer import Cursor, LineIndex
from ptx.isa.model import (
    Guard,
    Instruction,
    Label,
    Linkage,
    Operand,
    Prototype,
    SourceLocation,
    Variable,
)
from ptx.isa.names import Names
from ptx.isa.operands import OperandReader

_USED_BYTES = re.compile(r'"\s*used_bytes_mask\s+(0[xX][0-9a-fA-F]{1,8}|0|[1-9]\d{0,9})\s*"')


class BodyContent:
    """The contents of a body read so far.

    Attributes:
        location: of the last `.loc`.
        inlined: the last `.loc` of each place in a function that was inlined.
        used_bytes: the mask that a pragma sets for the next instruction.
        opcodes: opcode and modifiers of the dotted words so far.
    """

    def __init__(self, names: Names, lines: LineIndex) -> None:
        self.names = names
        self.lines = lines
        self.variables: list[Variable] = []
        self.statements: list[Instruction | Label] = []
        self.tables: dict[str, tuple[str, ...]] = {}
        self.prototypes: dict[str, Prototype] = {}
        self.location: SourceLocation | None = None
        self.inlined: dict[tuple[int, int, int], SourceLocation] = {}
        self.used_bytes: int | None = None
        self.opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}

    def opcode(self, word: str) -> tuple[str, tuple[str, ...]]:
        """The opcode and the modifiers of a dotted word."""
        parts = self.opcodes.get(word)
        if parts is None:
            first, *modifiers = word.split(".")
            parts = self.opcodes[word] = (first, tuple(modifiers))
        return parts


class Statement:
    """One statement at the start of a cursor."""

    def __init__(self, body: BodyContent, cursor: Cursor) -> None:
        self._body = body
        self._cursor = cursor
        self._names = body.names
        self._line = body.lines.line(cursor.offset)

    def read(self) -> int:
        """Read it; gives the offset where the next one starts."""
        cursor = self._cursor
        word = cursor.word
        if word == "@":
            self._instruction()
        elif cursor.kind == "word":
            if cursor.words[cursor.index + 1] == ":":
                self._labelled()
            else:
                self._instruction()
        elif cursor.kind == "directive":
            self._directive()
        else:
            cursor.fail(f"expected a statement{cursor.found}")
        return cursor.offset

    def _labelled(self) -> None:
        """`name :` before `.branchtargets`, `.calltargets` or `.callprototype`."""
        cursor = self._cursor
        name = self._names.label(cursor.advance())
        cursor.expect(":")
        if cursor.word in (".branchtargets", ".calltargets"):
            cursor.advance()
            labels = [self._names.resolve(cursor.expect_kind("word"))]
            while cursor.accept(","):
                labels.append(self._names.resolve(cursor.expect_kind("word")))
            cursor.expect(";")
            self._body.tables[name] = tuple(labels)
        elif cursor.accept(".callprototype"):
            returns = parameter_list(cursor)
            cursor.expect("_")
            params = parameter_list(cursor)
            self._pass_semicolon()
            self._body.prototypes[name] = Prototype(returns, params)
        else:
            cursor.fail(f"expected a statement{cursor.found}")

    def _pass_semicolon(self) -> None:
        while not self._cursor.accept(";"):
            self._cursor.advance()

    def _directive(self) -> None:
        cursor = self._cursor
        word = cursor.word
        if word == ".reg":
            self._register_declaration()
        elif word in SPACES:
            self._variables()
        elif word == ".loc":
            self._loc()
        elif word == ".pragma":
            self._pragma()
        elif word == ".file":
            cursor.advance()
            integer(cursor)
            cursor.expect_kind("string")
        elif word in (".branchtargets", ".calltargets", ".callprototype"):
            cursor.fail(f"{word} needs a label before it")
        else:
            cursor.fail(f"unknown directive {word}")

    def _variables(self) -> None:
        first = self._cursor.index
        for declared in variables(self._cursor, Linkage.NONE, self._line):
            self._reject(self._names.fault_of(declared.name), first)
            unique = self._names.declare_variable(declared.name, declared.ptx_type)
            self._body.variables.append(
                Variable(
                    unique, declared.space, declared.ptx_type, declared.align, declared.count,
                    declared.initialiser, declared.linkage, declared.line,
                )
            )  # fmt: skip

    def _loc(self) -> None:
        """`.loc file line column [, function_name label [+ n]] [, inlined_at file line column]`."""
        cursor = self._cursor
        cursor.advance()
        place = self._place()
        caller = None
        while cursor.accept(","):
            kind = cursor.expect_kind("word")
            if kind == "function_name":
                cursor.expect_kind("word")
                signed_offset(cursor)
            elif kind == "inlined_at":
                where = self._place()
                caller = self._body.inlined.get(where) or SourceLocation(*where)
            else:
                cursor.fail(f"unknown part of .loc: {kind}")
        location = self._body.location = SourceLocation(*place, caller)
        if caller is not None:
            self._body.inlined[place] = location

    def _place(self) -> tuple[int, int, int]:
        """File, line and column."""
        return integer(self._cursor), integer(self._cursor), integer(self._cursor)

    def _pragma(self) -> None:
        """`.pragma string {, string};`; unknown ones are ignored, as the ISA requires."""
        cursor = self._cursor
        while not cursor.accept(";"):
            mask = _USED_BYTES.fullmatch(cursor.advance())
            if mask is not None:
                self._body.used_bytes = int(mask[1], 0)

    def _register_declaration(self) -> None:
        """`.reg [.vN] .type name[<count>] {, name…} ;`."""
        cursor = self._cursor
        cursor.advance()
        width = int(cursor.advance()[2:]) if cursor.word in (".v2", ".v4") else 1
        ptx_type = type_name(cursor)
        while True:
            at = cursor.index
            name = cursor.expect_kind("word")
            if cursor.accept("<"):
                count = integer(cursor)
                cursor.expect(">")
                if width > 1:
                    cursor.fail("vector registers are declared one by one")
                if count < 0:
                    raise cursor.error(f"{count} is not a number of registers", cursor.index - 2)
                self._reject(self._names.fault_of_range(name, count), at)
                self._names.declare_range(name, count, ptx_type)
            else:
                self._reject(self._names.fault_of(name), at)
                self._names.declare(name, ptx_type, width)
            if dimensions(cursor):
                cursor.fail("registers have no array form")
            if not cursor.accept(","):
                break
        cursor.expect(";")

    def _reject(self, fault: str, index: int) -> None:
        """Raise the error of the name that is declared at a token, if it has one."""
        if fault:
            raise self._cursor.error(fault, index)

    def _instruction(self) -> None:
        """`[@[!]p] opcode [operand {, operand}] ;`."""
        cursor = self._cursor
        reader = OperandReader(cursor, self._names)
        guard = None
        if cursor.accept("@"):
            negated = cursor.accept("!")
            guard = Guard(reader.register(), negated)
        word = cursor.expect_kind("word")
        while cursor.kind == "directive":
            # Inline assembly may have blanks before a modifier: `prmt .b32`.
            word += cursor.advance()
        opcode, modifiers = self._body.opcode(word)
        operands: list[Operand] = []
        if cursor.word != ";":
            operands.append(reader.read())
            while cursor.accept(","):
                operands.append(reader.read())
        cursor.expect(";")
        used_bytes, self._body.used_bytes = self._body.used_bytes, None
        self._body.statements.append(
            Instruction(
                opcode, modifiers, tuple(operands), guard, self._line, self._body.location,
                used_bytes=used_bytes,
            )
        )  # fmt: skip
