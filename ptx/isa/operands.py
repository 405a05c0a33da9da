"""Operands of instructions. PTX ISA, "Instruction Operands"."""

from __future__ import annotations

import re
from dataclasses import replace

from ptx.isa.computed_addresses import ComputedAddresses
from ptx.isa.constant_expressions import constant, integer_constant
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
from ptx.isa.special_registers import COLOURS, special_type, usual_special

_SELECTOR = re.compile(r"b[0-7]{1,4}|h[0-3]{1,2}")
_SINK = Sink()
_ELEMENTS = {*COLOURS, *COLOURS.values()}


class OperandReader:
    """Reads operands at a cursor; `names` resolves their names.

    In a call, parentheses are lists of arguments; elsewhere they are part of an expression. In
    `ld`, `ldu` and `st` an element of an array is accessed; elsewhere it is an address. `computed`
    takes elements at a register's index.
    """

    __slots__ = ("_computed", "_cursor", "_depth", "_is_access", "_is_call", "_names")

    def __init__(
        self,
        cursor: Cursor,
        names: Names,
        *,
        is_call: bool = False,
        is_access: bool = False,
        computed: ComputedAddresses | None = None,
    ) -> None:
        self._cursor = cursor
        self._names = names
        self._is_call = is_call
        self._is_access = is_access
        self._computed = computed
        self._depth = 0  # of braces and parentheses

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
        if cursor.kind == "word" and cursor.word != "WARP_SZ":
            return self._named(cursor.advance())
        word = cursor.word
        if word == "[":
            return self._bracket()
        if word == "{":
            items = self._list("{", "}")
            if not items:
                raise cursor.error("a vector has elements", cursor.index - 1)
            return Vector(items)
        if word == "(" and self._is_call:
            return Arguments(self._list("(", ")"))
        if word in ("!", "-") and cursor.kinds[cursor.index + 1] == "word":
            following = cursor.words[cursor.index + 1]
            if following != "WARP_SZ":
                return self._minus() if word == "-" else self._not()
        return self._constant()

    def _not(self) -> Negated:
        self._cursor.expect("!")
        return Negated(self.register())

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
        value = constant(self._cursor)
        return value if isinstance(value, FloatImmediate) else Immediate(value)

    def _named(self, name: str) -> Operand:
        names = self._names
        if self._cursor.word in _ELEMENTS:  # `%tid .x`
            name += self._cursor.advance()
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
        if name[0] == "%" and not names.is_declared(name):
            usual = usual_special(name)
            if special_type(usual) is not None and not names.hides(name.partition(".")[0]):
                return SpecialRegister(usual)
            raise self._cursor.error(f"{name} is not declared here", self._cursor.index - 1)
        if names.is_later(name):
            raise self._cursor.error(f"{name} is not declared before", self._cursor.index - 1)
        resolved = names.resolve(name)
        if self._cursor.word == "[" and not self._depth:
            return self._element(resolved)
        return Symbol(resolved, self._offset())

    def _offset(self) -> int:
        """`[+ expression]` after a name."""
        return integer_constant(self._cursor) if self._cursor.accept("+") else 0

    def _element(self, name: str) -> Operand:
        """`[n]`, `[%r]` or `[%r+n]` after the name of an array: an element, or its address."""
        cursor = self._cursor
        nbytes = self._names.element_bytes(name)
        if nbytes is None:
            cursor.fail(f"{name} is no array that has elements")
        cursor.expect("[")
        index = self._names.register(cursor.word) if cursor.kind == "word" else None
        if index is None or self._computed is None:
            offset = integer_constant(cursor) * nbytes
            cursor.expect("]")
            return Address(Symbol(name), offset) if self._is_access else Symbol(name, offset)
        fault = self._computed.fault_of_element(name, index)
        if fault:
            cursor.fail(fault)
        cursor.advance()
        address = self._computed.element(name, nbytes, index, self._offset())
        cursor.expect("]")
        return Address(address, 0) if self._is_access else address

    def _list(self, opening: str, closing: str) -> tuple[Operand, ...]:
        cursor = self._cursor
        cursor.expect(opening)
        items: list[Operand] = []
        if cursor.accept(closing):
            return ()
        self._depth += 1
        while True:
            items.append(self.read())
            if not cursor.accept(","):
                break
        self._depth -= 1
        cursor.expect(closing)
        return tuple(items)

    def _bracket(self) -> Operand:
        """`[base]`, `[base+n]`, `[n]`; anything else with commas is a `Bracket`."""
        cursor = self._cursor
        cursor.expect("[")
        base = self.read()
        offset = self._offset()
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
