"""Function bodies: declarations, labels and instructions in nested scopes.

PTX ISA, "Instruction Statements", "Instruction Operands", "Scoping of names".
"""

from __future__ import annotations

import re
from dataclasses import replace

from ptx.isa.declarations import (
    SPACES,
    dimensions,
    float_immediate,
    integer,
    number,
    parameter_list,
    signed_offset,
    type_name,
    variables,
)
from ptx.isa.lexer import Cursor, LineIndex, integer_value
from ptx.isa.model import (
    Address,
    Arguments,
    Body,
    Bracket,
    FloatImmediate,
    Guard,
    Immediate,
    Instruction,
    Label,
    Linkage,
    Negated,
    Operand,
    Pair,
    Prototype,
    Register,
    Selected,
    Sink,
    SourceLocation,
    SpecialRegister,
    Symbol,
    Variable,
    Vector,
)

_SELECTOR = re.compile(r"b[0-7]{1,4}|h[0-3]{1,2}")
_ELEMENT = re.compile(r"\.[xyzwrgba]\Z")
_SINK = Sink()


def parse_body(text: str, span: tuple[int, int], lines: LineIndex) -> Body:
    """The body whose braces are at `span`; `text` has no comments.

    Raises:
        PtxSyntaxError: at the first token that does not fit.
    """
    return _BodyReader(Cursor(text, *span), lines).read()


class _Scope:
    """Names of one pair of braces."""

    __slots__ = ("labels", "names", "registers", "suffix")

    def __init__(self, labels: dict[str, str], suffix: str) -> None:
        self.registers: dict[str, Register] = {}
        self.names: dict[str, str] = {}
        self.labels = labels
        self.suffix = suffix


class _BodyReader:
    """One pass over a body's tokens, after one that finds the labels of each scope."""

    def __init__(self, cursor: Cursor, lines: LineIndex) -> None:
        self._cursor = cursor
        self._lines = lines
        self._scopes: list[_Scope] = []
        self._registers: list[Register] = []
        self._variables: list[Variable] = []
        self._statements: list[Instruction | Label] = []
        self._tables: dict[str, tuple[str, ...]] = {}
        self._prototypes: dict[str, Prototype] = {}
        self._opcodes: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._location: SourceLocation | None = None
        self._labels = self._labels_of_scopes()

    def _labels_of_scopes(self) -> dict[int, dict[str, str]]:
        """For the token index of each opening brace, the labels of its scope and unique names."""
        words, kinds = self._cursor.words, self._cursor.kinds
        found: dict[int, dict[str, str]] = {}
        open_braces: list[int] = []
        for index, word in enumerate(words):
            if word == "{":
                open_braces.append(index)
                found[index] = {}
            elif word == "}":
                if open_braces:
                    open_braces.pop()
            elif word == ":" and kinds[index - 1] == "word" and open_braces:
                name = words[index - 1]
                unique = name if len(open_braces) == 1 else f"{name}@{open_braces[-1]}"
                if name in found[open_braces[-1]]:
                    raise self._cursor.error(f"label {name} is defined twice", index - 1)
                found[open_braces[-1]][name] = unique
        return found

    def read(self) -> Body:
        """`{ statement… }`."""
        cursor = self._cursor
        self._open()
        while self._scopes:
            word = cursor.word
            if word == "{":
                self._open()
            elif word == "}":
                cursor.advance()
                self._scopes.pop()
            elif word == ";":
                cursor.advance()
            elif word == "@" or cursor.kind == "word":
                if cursor.words[cursor.index + 1] == ":" and word != "@":
                    self._labelled()
                else:
                    self._instruction()
            elif cursor.kind == "directive":
                self._directive()
            else:
                cursor.fail(f"expected a statement, found {word!r}")
        return Body(
            tuple(self._registers),
            tuple(self._variables),
            tuple(self._statements),
            self._tables,
            self._prototypes,
        )

    def _open(self) -> None:
        index = self._cursor.index
        self._cursor.expect("{")
        suffix = f"@{index}" if self._scopes else ""
        self._scopes.append(_Scope(self._labels[index], suffix))

    def _labelled(self) -> None:
        """`name :`, alone or before `.branchtargets`, `.calltargets` or `.callprototype`."""
        cursor = self._cursor
        line = self._lines.line(cursor.offset)
        name = self._scopes[-1].labels[cursor.advance()]
        cursor.expect(":")
        if cursor.word in (".branchtargets", ".calltargets"):
            cursor.advance()
            names = [self._resolve(cursor.expect_kind("word"))]
            while cursor.accept(","):
                names.append(self._resolve(cursor.expect_kind("word")))
            cursor.expect(";")
            self._tables[name] = tuple(names)
        elif cursor.accept(".callprototype"):
            returns = parameter_list(cursor)
            cursor.expect("_")
            params = parameter_list(cursor)
            while not cursor.accept(";"):
                cursor.advance()
            self._prototypes[name] = Prototype(returns, params)
        else:
            self._statements.append(Label(name, line))

    def _resolve(self, name: str) -> str:
        """The unique name of a label or variable seen from the current scope."""
        for scope in reversed(self._scopes):
            if name in scope.names:
                return scope.names[name]
            if name in scope.labels:
                return scope.labels[name]
        return name

    def _directive(self) -> None:
        cursor = self._cursor
        word = cursor.word
        if word == ".reg":
            self._register_declaration()
        elif word in SPACES:
            line = self._lines.line(cursor.offset)
            scope = self._scopes[-1]
            for found in variables(cursor, Linkage.NONE, line):
                unique = found.name + scope.suffix
                scope.names[found.name] = unique
                self._variables.append(
                    Variable(
                        unique, found.space, found.ptx_type, found.align, found.count,
                        found.initialiser, found.linkage, found.line,
                    )
                )  # fmt: skip
        elif word == ".loc":
            self._loc()
        elif word == ".pragma":
            while not cursor.accept(";"):
                cursor.advance()
        elif word == ".file":
            cursor.index += 3
        elif word in (".branchtargets", ".calltargets", ".callprototype"):
            cursor.fail(f"{word} needs a label before it")
        else:
            cursor.fail(f"unknown directive {word}")

    def _loc(self) -> None:
        """`.loc file line column [, function_name label [+ n]] [, inlined_at file line column]`."""
        cursor = self._cursor
        cursor.advance()
        self._location = SourceLocation(integer(cursor), integer(cursor), integer(cursor))
        while cursor.accept(","):
            kind = cursor.expect_kind("word")
            if kind == "function_name":
                cursor.expect_kind("word")
                signed_offset(cursor)
            elif kind == "inlined_at":
                integer(cursor), integer(cursor), integer(cursor)
            else:
                cursor.fail(f"unknown part of .loc: {kind}")

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
                names = [f"{name}{index}" for index in range(count)]
            else:
                names = [name]
            if dimensions(cursor) is not None:
                cursor.fail("registers have no array form")
            for each in names:
                self._declare(each, ptx_type, width)
            if not cursor.accept(","):
                break
        cursor.expect(";")

    def _declare(self, name: str, ptx_type: str, width: int) -> None:
        scope = self._scopes[-1]
        for element in ("",) if width == 1 else (".x", ".y", ".z", ".w")[:width]:
            register = Register(name + element + scope.suffix, ptx_type)
            scope.registers[name + element] = register
            self._registers.append(register)
        if width > 1:
            scope.names[name] = f"{name}{scope.suffix}.v{width}"

    def _register(self, name: str) -> Register | None:
        for scope in reversed(self._scopes):
            found = scope.registers.get(name)
            if found is not None:
                return found
        return None

    def _instruction(self) -> None:
        """`[@[!]p] opcode [operand {, operand}] ;`."""
        cursor = self._cursor
        line = self._lines.line(cursor.offset)
        guard = self._guard() if cursor.word == "@" else None
        word = cursor.expect_kind("word")
        opcode = self._opcodes.get(word)
        if opcode is None:
            first, *rest = word.split(".")
            opcode = self._opcodes[word] = (first, tuple(rest))
        operands: list[Operand] = []
        if cursor.word != ";":
            operands.append(self._operand())
            while cursor.accept(","):
                operands.append(self._operand())
        cursor.expect(";")
        self._statements.append(
            Instruction(opcode[0], opcode[1], tuple(operands), guard, line, self._location)
        )

    def _guard(self) -> Guard:
        cursor = self._cursor
        cursor.expect("@")
        negated = cursor.accept("!")
        name = cursor.expect_kind("word")
        register = self._register(name)
        if register is None:
            raise cursor.error(f"{name} is no register declared here", cursor.index - 1)
        return Guard(register, negated)

    def _operand(self) -> Operand:
        operand = self._single()
        if self._cursor.accept("|"):
            return Pair(operand, self._single())
        return operand

    def _single(self) -> Operand:
        cursor = self._cursor
        if cursor.kind == "word":
            return self._named(cursor.advance())
        word = cursor.word
        if word == "[":
            return self._bracket()
        if word == "{":
            return Vector(self._list("{", "}"))
        if word == "(":
            return Arguments(self._list("(", ")"))
        if cursor.accept("!"):
            name = cursor.expect_kind("word")
            register = self._register(name)
            if register is None:
                raise cursor.error(f"{name} is no register declared here", cursor.index - 1)
            return Negated(register)
        if word == "-" and cursor.kinds[cursor.index + 1] == "word":
            return self._minus()
        return self._constant()

    def _minus(self) -> Selected:
        """`-%r` or `-%r.b0`, which only `vmad` takes."""
        cursor = self._cursor
        cursor.expect("-")
        operand = self._named(cursor.advance())
        if isinstance(operand, Register):
            return Selected(operand, "", negated=True)
        if isinstance(operand, Selected):
            return replace(operand, negated=True)
        raise cursor.error("only a register can be negated here", cursor.index - 1)

    def _constant(self) -> Immediate | FloatImmediate:
        cursor = self._cursor
        if cursor.kind == "integer" and cursor.words[cursor.index + 1] not in ("+", "-", "*"):
            return Immediate(integer_value(cursor.advance()))
        if cursor.kind in ("float", "decimal"):
            return float_immediate(cursor.advance())
        value = number(cursor)
        if isinstance(value, FloatImmediate):
            return value
        return Immediate(value + signed_offset(cursor))

    def _named(self, name: str) -> Operand:
        register = self._register(name)
        if register is not None:
            return register
        if name == "_":
            return _SINK
        vector = self._resolve(name)
        if vector[-3:-1] == ".v" and vector[:-3] != name and vector.startswith(name):
            return self._vector_register(name, int(vector[-1]))
        whole, _, selector = name.rpartition(".")
        if whole and _SELECTOR.fullmatch(selector):
            register = self._register(whole)
            if register is not None:
                return Selected(register, selector)
        if name[0] == "%":
            if _ELEMENT.search(name) or "." not in name:
                return SpecialRegister(name)
            self._cursor.fail(f"{name} is no register declared here")
        if name == "WARP_SZ":
            return Immediate(32)
        return Symbol(self._resolve(name), signed_offset(self._cursor))

    def _vector_register(self, name: str, width: int) -> Vector:
        items = [self._register(name + element) for element in (".x", ".y", ".z", ".w")[:width]]
        return Vector(tuple(item for item in items if item is not None))

    def _list(self, opening: str, closing: str) -> tuple[Operand, ...]:
        cursor = self._cursor
        cursor.expect(opening)
        items: list[Operand] = []
        while not cursor.accept(closing):
            items.append(self._operand())
            if not cursor.accept(","):
                cursor.expect(closing)
                break
        return tuple(items)

    def _bracket(self) -> Operand:
        """`[base]`, `[base+n]`, `[n]`; anything else with commas is a `Bracket`."""
        cursor = self._cursor
        cursor.expect("[")
        base = self._operand()
        offset = signed_offset(cursor)
        if cursor.accept("]"):
            if isinstance(base, Symbol):
                return Address(Symbol(base.name), base.offset + offset)
            if isinstance(base, Register):
                return Address(base, offset)
            if isinstance(base, Immediate):
                return Address(None, base.value + offset)
            return Bracket((base,))
        items = [base]
        while cursor.accept(","):
            items.append(self._operand())
        cursor.expect("]")
        return Bracket(tuple(items))
