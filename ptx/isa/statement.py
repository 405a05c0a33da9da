"""One statement of a function's body, read token by token, with the words for an error.

PTX ISA, "Instruction Statements", "Directive Statements".
"""

from __future__ import annotations

import re
from dataclasses import replace

from ptx.isa.computed_addresses import ComputedAddresses
from ptx.isa.constant_expressions import integer_literal, source_number
from ptx.isa.declarations import (
    SPACES,
    ParameterOwner,
    alignment,
    check_vector,
    declared_type,
    name_count,
    parameter_list,
    result_list,
    variables,
    vector_width,
)
from ptx.isa.directives import DirectivePlace, pragma, read_directives
from ptx.isa.lexer import Cursor, LineIndex
from ptx.isa.model import (
    Guard,
    Instruction,
    Label,
    Linkage,
    Operand,
    Prototype,
    SourceLocation,
    Space,
    SymbolValue,
    Variable,
)
from ptx.isa.names import Names
from ptx.isa.operands import OperandReader
from ptx.isa.sections import section_name

_USED_BYTES = re.compile(r'"\s*used_bytes_mask\s+(0[xX][0-9a-fA-F]{1,8}|0|[1-9]\d{0,9})\s*"')


class BodyContent:
    """The contents of a body read so far.

    Attributes:
        location: of the last `.loc`.
        places: of each `.loc`.
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
        self.declared_at: dict[str, int] = {}
        self.location: SourceLocation | None = None
        self.places: set[tuple[int, int, int]] = set()
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
        name = self._names.label(cursor.expect_name())
        cursor.expect(":")
        self._body.declared_at[name] = len(self._body.statements)
        if cursor.word in (".branchtargets", ".calltargets"):
            cursor.advance()
            labels = [self._target()]
            while cursor.accept(","):
                labels.append(self._target())
            cursor.expect(";")
            self._body.tables[name] = tuple(labels)
        elif cursor.accept(".callprototype"):
            returns = result_list(cursor, ParameterOwner.PROTOTYPE)
            cursor.expect("_")
            params = parameter_list(cursor, ParameterOwner.PROTOTYPE)
            read_directives(cursor, DirectivePlace.PROTOTYPE)
            cursor.expect(";")
            self._body.prototypes[name] = Prototype(returns, params)
        else:
            cursor.fail(f"expected a statement{cursor.found}")

    def _target(self) -> str:
        """The unique name of a label or function in a table."""
        name = self._cursor.expect_name()
        if self._names.is_later(name):
            raise self._cursor.error(f"{name} is not declared before", self._cursor.index - 1)
        return self._names.resolve(name)

    def _directive(self) -> None:
        cursor = self._cursor
        word = cursor.word
        if word == ".reg":
            self._register_declaration()
        elif word in SPACES or word in (".align", ".attribute"):
            self._variables()
        elif word == ".loc":
            self._loc()
        elif word == ".pragma":
            self._pragma()
        elif word in (".branchtargets", ".calltargets", ".callprototype"):
            cursor.fail(f"{word} needs a label before it")
        else:
            cursor.fail(f"unknown directive {word}")

    def _variables(self) -> None:
        first = self._cursor.index
        for declared in variables(self._cursor, Linkage.NONE, self._line, self._fault_of_address):
            if declared.ptx_type in ("texref", "samplerref", "surfref"):
                self._reject(f".{declared.ptx_type} variables stand at module level only", first)
            self._reject(self._names.fault_of(declared.name), first)
            unique = self._names.declare_variable(declared)  # its initialiser may have its address
            values = tuple(
                replace(each, name=self._names.resolve(each.name))
                if isinstance(each, SymbolValue)
                else each
                for each in declared.initialiser
            )
            self._body.variables.append(replace(declared, name=unique, initialiser=values))

    def _fault_of_address(self, symbol: SymbolValue) -> str:
        """Why no initialiser in a function has an address, "" if it may have it."""
        return self._body.names.fault_of_address(symbol)

    def _loc(self) -> None:
        """`.loc file line column [, function_name label [+ n], inlined_at file line column]`."""
        cursor, body = self._cursor, self._body
        start = cursor.offset
        cursor.advance()
        place = self._place()
        caller = None
        if cursor.accept(","):
            cursor.expect("function_name")
            if cursor.kind == "directive":
                section_name(cursor)
            else:
                cursor.expect_name()
            if cursor.accept("+"):
                integer_literal(cursor)
            cursor.expect(",")
            cursor.expect("inlined_at")
            at = cursor.index
            where = self._place()
            if where not in body.places and not _stands_before(cursor.text, start, where):
                raise cursor.error("no .loc before this one has that place", at)
            caller = body.inlined.get(where) or SourceLocation(*where)
        body.places.add(place)
        location = body.location = SourceLocation(*place, caller)
        if caller is not None:
            body.inlined[place] = location

    def _place(self) -> tuple[int, int, int]:
        """File, line and column."""
        cursor = self._cursor
        return source_number(cursor), source_number(cursor), source_number(cursor)

    def _pragma(self) -> None:
        """`.pragma string {, string};`; unknown ones are ignored, as the ISA requires."""
        for text in pragma(self._cursor):
            mask = _USED_BYTES.fullmatch(text)
            if mask is not None:
                self._body.used_bytes = int(mask[1], 0)

    def _register_declaration(self) -> None:
        """`.reg {.align n} [.vN] .type [name [<count>] {, name [<count>]}] ;`."""
        cursor = self._cursor
        cursor.advance()
        while cursor.accept(".align"):
            alignment(cursor)
        width = vector_width(cursor)
        ptx_type = declared_type(cursor, Space.REG)
        check_vector(cursor, width, ptx_type)
        while cursor.word != ";":
            self._registers(ptx_type, width)
            if not cursor.accept(","):
                break
            if cursor.word == ";":
                cursor.fail("expected a name")
        cursor.expect(";")

    def _registers(self, ptx_type: str, width: int) -> None:
        """One name, or the names of a range."""
        cursor, names = self._cursor, self._names
        place, name = cursor.index, cursor.expect_name()
        count = name_count(cursor)
        if count is None:
            self._reject(names.fault_of(name), place)
            names.declare(name, ptx_type, width)
        elif width == 1:
            self._reject(names.fault_of_range(name, count), place)
            names.declare_range(name, count, ptx_type)
        else:
            # ptxas finds none of a stem that ends in a digit.
            for number in range(count if not name[-1].isdigit() else 0):
                self._reject(names.fault_of(f"{name}{number}"), place)
                names.declare(f"{name}{number}", ptx_type, width)

    def _reject(self, fault: str, index: int) -> None:
        """Raise the error of the name that is declared at a token, if it has one."""
        if fault:
            raise self._cursor.error(fault, index)

    def _instruction(self) -> None:
        """`[@[!]p] opcode [operand {, operand}] ;`."""
        cursor = self._cursor
        guard = None
        if cursor.accept("@"):
            negated = cursor.accept("!")
            place = cursor.index
            register = OperandReader(cursor, self._names).register()
            if register.ptx_type != "pred":
                raise cursor.error(f"{register.name} guards an instruction and is no .pred", place)
            guard = Guard(register, negated)
        word = cursor.expect_kind("word")
        while cursor.kind == "directive":
            # Inline assembly may have blanks before a modifier: `prmt .b32`.
            word += cursor.advance()
        opcode, modifiers = self._body.opcode(word)
        computed = ComputedAddresses(self._names, opcode, modifiers)
        reader = OperandReader(
            cursor,
            self._names,
            is_call=opcode == "call",
            is_access=opcode in ("ld", "ldu", "st"),
            computed=computed,
        )
        operands: list[Operand] = []
        if cursor.word != ";":
            operands.append(computed.near(reader.read()))
            while cursor.accept(","):
                operands.append(computed.near(reader.read()))
        cursor.expect(";")
        used_bytes, self._body.used_bytes = self._body.used_bytes, None
        where = self._line, self._body.location
        self._body.statements += [Instruction(*step, None, *where) for step in computed.steps]
        self._body.statements.append(
            Instruction(opcode, modifiers, tuple(operands), guard, *where, used_bytes=used_bytes)
        )


def _stands_before(text: str, end: int, place: tuple[int, int, int]) -> bool:
    """Return whether a function before has a `.loc` of this place."""
    numbers = r"\s+".join(str(number) for number in place)
    return re.compile(rf"\.loc\s+{numbers}(?!\w)").search(text, 0, end) is not None
