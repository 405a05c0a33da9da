"""Function bodies: declarations, labels and instructions in nested scopes.

PTX ISA, "Instruction Statements", "Directive Statements". An instruction that is written as usual
is read by two patterns and a memo of operand texts; whatever else there is goes token by token
through `_Statement`, which also finds the words for an error.
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
from ptx.isa.errors import PtxSyntaxError, syntax_error
from ptx.isa.lexer import Cursor, LineIndex
from ptx.isa.model import (
    Address,
    Body,
    Guard,
    Immediate,
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

_WORD = r"[A-Za-z_$%][\w$]*"
_INSTRUCTION = re.compile(
    rf"\s*(?:@(!?)({_WORD})\s+)?([a-z]\w*(?:(?:\.|::)[\w$]+)*)(?:\s+([^;:\"]*))?;"
)
_LABEL = re.compile(rf"\s*({_WORD})\s*:(?!:|\s*\.(?:branchtargets|calltargets|callprototype)\b)")
_LOCATION = re.compile(r"\s*\.loc\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})(?![\w.])(?!\s*[,+*-])")
_PIECE = re.compile(r"(?:[^,{}\[\]()]|\{[^{}\[\]()]*\}|\[[^{}\[\]]*\]|\([^{}()\[\]]*\))+")
_PLAIN = re.compile(
    rf"({_WORD})|(-?[1-9]\d{{0,18}}|0)|\[({_WORD})(?:\+(-?[1-9]\d{{0,18}}|0))?\]", re.ASCII
)
_REST = re.compile(r'[^;"]*(?:"[^"\n]*"[^;"]*)*;?')
_SPACE = re.compile(r"\s*")
_USED_BYTES = re.compile(r'"\s*used_bytes_mask\s+(0[xX][0-9a-fA-F]{1,8}|[1-9]\d{0,9})\s*"')


def parse_body(text: str, span: tuple[int, int], lines: LineIndex) -> Body:
    """The body whose braces are at `span`; `text` has no comments.

    Raises:
        PtxSyntaxError: at the first token that does not fit.
    """
    try:
        return _BodyReader(text, span, lines).read()
    except RecursionError:
        raise syntax_error(text, span[0], "this function nests too deeply") from None


class _BodyReader:
    """One pass over a body's statements."""

    def __init__(self, text: str, span: tuple[int, int], lines: LineIndex) -> None:
        self.text = text
        self.end = span[1]
        self.lines = lines
        self.names = Names(text, span)
        self.variables: list[Variable] = []
        self.statements: list[Instruction | Label] = []
        self.tables: dict[str, tuple[str, ...]] = {}
        self.prototypes: dict[str, Prototype] = {}
        self.location: SourceLocation | None = None
        self.used_bytes = 0  # what a pragma says of the next instruction
        self._opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._at = span[0]

    def read(self) -> Body:
        """`{ statement… }`."""
        self._at += 1
        self.names.open(self._at - 1)
        while self.names.scopes:
            if not self._quick():
                self._slow()
        return Body(
            tuple(self.names.registers),
            tuple(self.variables),
            tuple(self.statements),
            self.tables,
            self.prototypes,
        )

    def opcode(self, word: str) -> tuple[str, tuple[str, ...]]:
        """The opcode and the modifiers of a dotted word."""
        found = self._opcodes.get(word)
        if found is None:
            first, *rest = word.split(".")
            found = self._opcodes[word] = (first, tuple(rest))
        return found

    def _quick(self) -> bool:
        """Read instructions as long as they are written as usual; whether there was one."""
        if self.used_bytes:
            return False
        text, at, end, line = self.text, self._at, self.end, self.lines.line
        match_at, add, start = _INSTRUCTION.match, self.statements.append, self._at
        memo, opcodes, location = self.names.here.operands, self._opcodes, self.location
        while True:
            match = match_at(text, at, end)
            if match is None:
                break
            negated, predicate, word, rest = match.groups()
            guard: Guard | None = None
            operands: tuple[Operand, ...] | None = ()
            if rest:
                try:
                    operands = tuple([memo[piece] for piece in rest.split(", ")])
                except KeyError:
                    operands = self._operands(rest)
            if predicate is not None:
                register = self.names.register(predicate)
                guard = None if register is None else Guard(register, negated == "!")
            if operands is None or (predicate is not None and guard is None):
                break
            opcode, modifiers = opcodes.get(word) or self.opcode(word)
            first = match.start(3) if predicate is None else match.start(1) - 1
            add(Instruction(opcode, modifiers, operands, guard, line(first), location))
            at = match.end()
        self._at = at
        return at > start

    def _operands(self, rest: str) -> tuple[Operand, ...] | None:
        """The operands of an instruction, remembered one by one; None if they are unusual."""
        found: list[Operand] = []
        if "{" in rest or "(" in rest:
            pieces = _PIECE.findall(rest)
            if sum(map(len, pieces)) + len(pieces) - 1 != len(rest):
                return None
        else:
            pieces = rest.split(",")
        memo = self.names.here.operands
        for untrimmed in pieces:
            piece = untrimmed.strip()
            operand = memo.get(piece)
            if operand is None:
                operand = self._operand(piece)
                if operand is None:
                    return None
                memo[piece] = operand
            found.append(operand)
        return tuple(found)

    def _operand(self, piece: str) -> Operand | None:
        """One operand's text, as it stands between commas: a plain one, or any other."""
        plain = _PLAIN.fullmatch(piece)
        if plain is not None:
            name, number, base, offset = plain.groups()
            if number is not None:
                return Immediate(int(number))
            register = self.names.register(name or base)
            if register is not None:
                return Address(register, int(offset or 0)) if base else register
        cursor = Cursor(piece)
        try:
            operand = OperandReader(cursor, self.names).read()
        except PtxSyntaxError:
            return None
        return operand if cursor.kind == "end" else None

    def _slow(self) -> None:
        """Read one brace, label, directive or unusual instruction."""
        found = _SPACE.match(self.text, self._at, self.end)
        at = self._at = found.end() if found else self._at
        character = self.text[at] if at < self.end else ""
        if character == "{":
            self.names.open(at)
        elif character == "}":
            self.names.close()
        elif character != ";":
            self._at = self._label(at) or self._location(at) or self._statement(at)
            return
        self._at = at + 1

    def _label(self, at: int) -> int:
        """`name :`; where it ends, 0 if something else is here."""
        match = _LABEL.match(self.text, at, self.end)
        if match is None:
            return 0
        self.statements.append(Label(self.names.label(match[1]), self.lines.line(at)))
        return match.end()

    def _location(self, at: int) -> int:
        """`.loc file line column` without more; where it ends, 0 if something else is here."""
        match = _LOCATION.match(self.text, at, self.end)
        if match is None:
            return 0
        self.location = SourceLocation(int(match[1]), int(match[2]), int(match[3]))
        return match.end()

    def _statement(self, at: int) -> int:
        """Read a statement token by token; where it ends."""
        rest = _REST.match(self.text, at, self.end)
        statement = _Statement(self, Cursor(self.text, at, rest.end() if rest else self.end))
        return statement.read()


class _Statement:
    """One statement at the start of a cursor."""

    def __init__(self, body: _BodyReader, cursor: Cursor) -> None:
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
            cursor.fail(f"expected a statement, found {word!r}")
        return cursor.offset

    def _labelled(self) -> None:
        """`name :` before `.branchtargets`, `.calltargets` or `.callprototype`."""
        cursor = self._cursor
        name = self._names.label(cursor.advance())
        cursor.expect(":")
        if cursor.word in (".branchtargets", ".calltargets"):
            cursor.advance()
            found = [self._names.resolve(cursor.expect_kind("word"))]
            while cursor.accept(","):
                found.append(self._names.resolve(cursor.expect_kind("word")))
            cursor.expect(";")
            self._body.tables[name] = tuple(found)
        elif cursor.accept(".callprototype"):
            returns = parameter_list(cursor)
            cursor.expect("_")
            params = parameter_list(cursor)
            self._pass_semicolon()
            self._body.prototypes[name] = Prototype(returns, params)
        else:
            cursor.fail(f"expected a statement, found {cursor.word!r}")

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
        for found in variables(self._cursor, Linkage.NONE, self._line):
            unique = self._names.declare_variable(found.name)
            self._body.variables.append(
                Variable(
                    unique, found.space, found.ptx_type, found.align, found.count,
                    found.initialiser, found.linkage, found.line,
                )
            )  # fmt: skip

    def _loc(self) -> None:
        """`.loc file line column [, function_name label [+ n]] [, inlined_at file line column]`."""
        cursor = self._cursor
        cursor.advance()
        self._body.location = SourceLocation(integer(cursor), integer(cursor), integer(cursor))
        while cursor.accept(","):
            kind = cursor.expect_kind("word")
            if kind == "function_name":
                cursor.expect_kind("word")
                signed_offset(cursor)
            elif kind == "inlined_at":
                integer(cursor), integer(cursor), integer(cursor)
            else:
                cursor.fail(f"unknown part of .loc: {kind}")

    def _pragma(self) -> None:
        """`.pragma string {, string};`; one that means nothing here is ignored, as the ISA asks."""
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
            name = cursor.expect_kind("word")
            if cursor.accept("<"):
                count = integer(cursor)
                cursor.expect(">")
                if width > 1:
                    cursor.fail("vector registers are declared one by one")
                self._names.declare_range(name, count, ptx_type)
            else:
                self._names.declare(name, ptx_type, width)
            if dimensions(cursor) is not None:
                cursor.fail("registers have no array form")
            if not cursor.accept(","):
                break
        cursor.expect(";")

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
        used_bytes, self._body.used_bytes = self._body.used_bytes, 0
        self._body.statements.append(
            Instruction(
                opcode, modifiers, tuple(operands), guard, self._line, self._body.location,
                used_bytes=used_bytes,
            )
        )  # fmt: skip
