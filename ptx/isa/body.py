"""Function bodies: declarations, labels and instructions in nested scopes.

PTX ISA, "Instruction Statements", "Directive Statements". Two patterns and a memo of operand texts
read instructions in their usual form. `Statement` reads everything else token by token, and also
words the errors.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ptx.isa.computed_addresses import is_far
from ptx.isa.errors import PtxSyntaxError, syntax_error
from ptx.isa.lexer import NAME, Cursor, LineIndex
from ptx.isa.model import (
    Address,
    Arguments,
    Body,
    FloatImmediate,
    Guard,
    Immediate,
    Instruction,
    Label,
    Operand,
    Parameter,
    SourceLocation,
    Variable,
)
from ptx.isa.names import Names
from ptx.isa.operands import OperandReader
from ptx.isa.statement import BodyContent, Statement

_WORD = r"[A-Za-z_$%][\w$]*"
_INSTRUCTION = re.compile(
    rf"\s*+(?:@(!?)({_WORD})\s+)?([a-z]\w*(?:(?:\.|::)[\w$]+)*)(?:\s++([^;:\"]*+))?;"
)
_LABEL = re.compile(rf"\s*({NAME})\s*:(?!:|\s*\.(?:branchtargets|calltargets|callprototype)\b)")
_LOCATION = re.compile(r"\s*\.loc\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})(?![\w.])(?!\s*[,+*-])")
_PIECE = re.compile(r"(?:[^,{}\[\]()]|\{[^{}\[\]()]*\}|\[[^{}\[\]]*\]|\([^{}()\[\]]*\))+")
_PLAIN = re.compile(
    rf"({_WORD})|(-?[1-9]\d{{0,18}}|0)|\[({_WORD})(?:\+(-?[1-9]\d{{0,18}}|0))?\]", re.ASCII
)
_REST = re.compile(r'[^;"]*(?:"[^"\n]*"[^;"]*)*;?')
_SPACE = re.compile(r"\s*")


def parse_body(
    text: str,
    span: tuple[int, int],
    lines: LineIndex,
    parameters: Collection[Parameter],
    variables: Mapping[str, Variable],
    functions: Collection[str],
    declared_at: Mapping[str, int],
) -> Body:
    """The body whose braces are at `span`; `text` has no comments.

    `parameters` are the function's own, whose names the body does not declare again; `variables`
    and `functions` are those of the module, and `declared_at` has the offsets of their names.

    Raises:
        PtxSyntaxError: at the first token that does not fit.
    """
    try:
        return _BodyReader(
            text, span, lines, Names(text, span, parameters, variables, functions, declared_at)
        ).read()
    except RecursionError:
        raise syntax_error(text, span[0], "this function nests too deeply") from None


class _BodyReader(BodyContent):
    """One pass over a body's statements."""

    def __init__(self, text: str, span: tuple[int, int], lines: LineIndex, names: Names) -> None:
        super().__init__(names, lines)
        self.text = text
        self.end = span[1]
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
            self.declared_at,
        )

    def _quick(self) -> bool:
        """Read instructions as long as they are written as usual; whether there was one."""
        if self.used_bytes is not None:
            return False
        text, offset, end, line = self.text, self._at, self.end, self.lines.line
        match_at, add, start = _INSTRUCTION.match, self.statements.append, self._at
        memo, opcodes, location = self.names.innermost.operands, self.opcodes, self.location
        while True:
            match = match_at(text, offset, end)
            if match is None:
                break
            negated, predicate, word, operands_text = match.groups()
            guard: Guard | None = None
            operands: tuple[Operand, ...] | None = ()
            if operands_text:
                try:
                    operands = tuple([memo[piece] for piece in operands_text.split(", ")])
                except KeyError:
                    operands = self._operands(operands_text)
            if predicate is not None:
                register = self.names.register(predicate)
                if register is not None and register.ptx_type == "pred":
                    guard = Guard(register, negated == "!")
            if operands is None or (predicate is not None and guard is None):
                break
            opcode, modifiers = opcodes.get(word) or self.opcode(word)
            first = match.start(3) if predicate is None else match.start(1) - 1
            add(Instruction(opcode, modifiers, operands, guard, line(first), location))
            offset = match.end()
        self._at = offset
        return offset > start

    def _operands(self, operands_text: str) -> tuple[Operand, ...] | None:
        """Return the operands of an instruction, cached one by one; None if they are unusual."""
        operands: list[Operand] = []
        if "{" in operands_text or "(" in operands_text:
            pieces = _PIECE.findall(operands_text)
            if sum(map(len, pieces)) + len(pieces) - 1 != len(operands_text):
                return None
        else:
            pieces = operands_text.split(",")
        memo = self.names.innermost.operands
        for untrimmed in pieces:
            piece = untrimmed.strip()
            operand = memo.get(piece)
            if operand is None:
                operand = self._operand(piece)
                if operand is None:
                    return None
                memo[piece] = operand
            operands.append(operand)
        return tuple(operands)

    def _operand(self, piece: str) -> Operand | None:
        """One operand's text, as it stands between commas: a plain one, or any other."""
        plain = _PLAIN.fullmatch(piece)
        if plain is not None:
            name, number, base, offset = plain.groups()
            if number is not None:
                return Immediate(int(number))
            if offset is not None and is_far(int(offset)):
                return None  # other instructions calculate the address
            register = self.names.register(name or base)
            if register is not None:
                return Address(register, int(offset or 0)) if base else register
        if "[" in piece[1:]:  # an element of an array, whose meaning depends on the opcode
            return None
        cursor = Cursor(piece)
        try:
            operand = OperandReader(cursor, self.names, is_call=True).read()
        except PtxSyntaxError:
            return None
        if isinstance(operand, Arguments) and any(
            isinstance(item, Immediate | FloatImmediate) for item in operand.items
        ):
            return None  # except in a call, this is an expression
        if isinstance(operand, Address) and is_far(operand.offset):
            return None
        return operand if cursor.kind == "end" else None

    def _slow(self) -> None:
        """Read one brace, label, directive or unusual instruction."""
        blank = _SPACE.match(self.text, self._at, self.end)
        at = self._at = blank.end() if blank else self._at
        character = self.text[at] if at < self.end else ""
        if character == "{":
            self.names.open(at)
        elif character == "}":
            self.names.close()
        else:
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
        place = int(match[1]), int(match[2]), int(match[3])
        self.places.add(place)
        self.location = SourceLocation(*place)
        return match.end()

    def _statement(self, at: int) -> int:
        """Read a statement token by token; where it ends."""
        match = _REST.match(self.text, at, self.end)
        statement = Statement(self, Cursor(self.text, at, match.end() if match else self.end))
        return statement.read()
