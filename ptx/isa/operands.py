"""Operands of instructions. PTX ISA, "Instruction Operands"."""

from __future__ import annotations

import re
from dataclasses import replace

from ptx.isa.declarations import float_immediate, integer_constant, number, signed_offset
from ptx.isa.lexer import Cursor
from ptx.isa.model import (
    Address,
    Arguments,
    Bracket,
    FloatImmediate,
    Immediate,
    Negated,
    Operand,
    Pair,
    Register,
    Selected,
    Sink,
    SpecialRegister,
    Symbol,
    Vector,
)
from ptx.isa.names import Names

_SELECTOR = re.compile(r"b[0-7]{1,4}|h[0-3]{1,2}")
_ELEMENT = re.compile(r"\.[xyzwrgba]\Z")
_SINK = Sink()


class OperandReader:
    """Reads operands at a cursor; `names` resolves their names."""

    __slots__ = ("_cursor", "_names")

    def __init__(self, cursor: Cursor, names: Names) -> None:
        self._cursor = cursor
        self._names = names

    def read(self) -> Operand:
        """`single [| single]`."""
        operand = self._single()
        if self._cursor.accept("|"):
            return Pair(operand, self._single())
        return operand

    def register(self) -> Register:
        """The name of a register."""
        cursor = self._cursor
        name = cursor.expect_kind("word")
        register = self._names.register(name)
        if register is None:
            raise cursor.error(f"{name} is not a register declared here", cursor.index - 1)
        return register

    def _single(self) -> Operand:
        cursor = self._cursor
        if cursor.kind == "word":
            return self._named(cursor.advance())
        word = cursor.word
        if word == "[":
            return self._bracket()
        if word == "{":
            items = self._list("{", "}")
            if not items:
                raise cursor.error("a vector has elements", cursor.index - 1)
            return Vector(items)
        if word == "(":
            return Arguments(self._list("(", ")"))
        if cursor.accept("!"):
            return Negated(self.register())
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
            return Immediate(integer_constant(cursor))
        if cursor.kind in ("float", "decimal"):
            return float_immediate(cursor.advance())
        value = number(cursor)
        if isinstance(value, FloatImmediate):
            return value
        return Immediate(value + signed_offset(cursor))

    def _named(self, name: str) -> Operand:
        names = self._names
        register = names.register(name)
        if register is not None:
            return register
        if name == "_":
            return _SINK
        elements = names.vector(name)
        if elements:
            return Vector(elements)
        base, _, selector = name.rpartition(".")
        if base and _SELECTOR.fullmatch(selector):
            register = names.register(base)
            if register is not None:
                return Selected(register, selector)
        if name[0] == "%":
            if _ELEMENT.search(name) or "." not in name:
                return SpecialRegister(name)
            self._cursor.fail(f"{name} is not a register declared here")
        if name == "WARP_SZ":
            return Immediate(32)
        resolved = names.resolve(name)
        if self._cursor.word == "[":
            return Symbol(resolved, self._element(resolved))
        return Symbol(resolved, signed_offset(self._cursor))

    def _element(self, name: str) -> int:
        """`[n]` after the name of an array: the offset of its element in bytes."""
        cursor = self._cursor
        nbytes = self._names.element_bytes(name)
        if nbytes is None:
            cursor.fail(f"{name} is no variable that has elements")
        cursor.expect("[")
        index = number(cursor)
        if not isinstance(index, int):
            raise cursor.error("the index of an element is an integer", cursor.index - 1)
        index += signed_offset(cursor)
        cursor.expect("]")
        return index * nbytes

    def _list(self, opening: str, closing: str) -> tuple[Operand, ...]:
        cursor = self._cursor
        cursor.expect(opening)
        items: list[Operand] = []
        while not cursor.accept(closing):
            items.append(self.read())
            if not cursor.accept(","):
                cursor.expect(closing)
                break
        return tuple(items)

    def _bracket(self) -> Operand:
        """`[base]`, `[base+n]`, `[n]`; anything else with commas is a `Bracket`."""
        cursor = self._cursor
        cursor.expect("[")
        base = self.read()
        offset = signed_offset(cursor)
        if cursor.accept("]"):
            if isinstance(base, Symbol):
                return Address(Symbol(base.name), base.offset + offset)
            if isinstance(base, Register):
                return Address(base, offset)
            if isinstance(base, Immediate):
                return Address(None, base.value + offset)
            return Bracket((base,))
        if offset:
            base = Address(base, offset) if isinstance(base, Register) else base
            base = Symbol(base.name, base.offset + offset) if isinstance(base, Symbol) else base
        items = [base]
        while cursor.accept(","):
            items.append(self.read())
        cursor.expect("]")
        return Bracket(tuple(items))
