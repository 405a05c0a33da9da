"""Calls that pass registers and constants. PTX ISA, "call", "Function Declarations".

Each function has its parameters in its frame. A parameter in a register is loaded from there where
the function starts, and a result is stored there where it returns. A caller stores registers and
constants into parameters of its own before the call, and loads the results after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ptx.isa.call_checks import formals_of, target_place
from ptx.isa.instruction_facts import TYPE_BYTES
from ptx.isa.model import (
    Address,
    Arguments,
    Body,
    FloatImmediate,
    Function,
    Guard,
    Immediate,
    Instruction,
    Label,
    Linkage,
    Operand,
    Parameter,
    Register,
    Sink,
    SourceLocation,
    Space,
    Symbol,
    Variable,
)

_PASSED = (Register, Immediate, FloatImmediate, Sink)


class PassedRegisters:
    """One function's body with moves between registers and parameters around its calls."""

    def __init__(
        self,
        function: Function,
        body: Body,
        functions: Mapping[str, Function],
        aliases: Mapping[str, str],
    ) -> None:
        self._function = function
        self._body = body
        self._functions = functions
        self._aliases = aliases
        self._slots: list[Variable] = []

    def body(self) -> Body:
        """The body, the same where nothing is passed in registers."""
        body, function = self._body, self._function
        if not function.passes_registers and not any(map(_passes_registers, body.statements)):
            return body
        statements = [*self._first(), *self._statements()]
        return replace(
            body, statements=tuple(statements), variables=(*body.variables, *self._slots)
        )

    def _first(self) -> Iterator[Instruction]:
        """Loads of the parameters that are registers."""
        line = self._function.line
        for each in self._function.params:
            if each.space is Space.REG:
                yield _load(_register(each), each.name, each.ptx_type, None, line, None)

    def _statements(self) -> Iterator[Instruction | Label]:
        last: Instruction | Label | None = None
        for last in self._body.statements:
            if _passes_registers(last):
                assert isinstance(last, Instruction)
                yield from self._call(last)
            elif isinstance(last, Instruction) and last.opcode == "ret":
                yield from self._results(last.guard, last.line, last.location)
                yield last
            else:
                yield last
        ends = isinstance(last, Instruction) and last.opcode == "ret" and last.guard is None
        if not ends:  # a function without `ret` at its end returns there
            yield from self._results(None, last.line if last else self._function.line, None)

    def _results(
        self, guard: Guard | None, line: int, location: SourceLocation | None
    ) -> Iterator[Instruction]:
        """Stores of the results that are registers."""
        for each in self._function.returns:
            if each.space is Space.REG:
                yield _store(each.name, _register(each), each.ptx_type, guard, line, location)

    def _call(self, call: Instruction) -> Iterator[Instruction]:
        """A call with parameters in place of its registers and constants."""
        place = target_place(call)
        formals = formals_of(call, self._body, self._functions, self._aliases)
        returns, params = formals or ((), ())
        operands, before, after = list(call.operands), list[Instruction](), list[Instruction]()
        guard, line, location = call.guard, call.line, call.location
        for number, listed in enumerate(call.operands):
            if not isinstance(listed, Arguments):
                continue
            items = list(listed.items)
            expected = returns if number < place else params
            for position, item in enumerate(items):
                if not isinstance(item, _PASSED):
                    continue
                formal = expected[position] if position < len(expected) else None
                slot = self._slot(formal.ptx_type if formal else _type_of(item), line)
                items[position] = Symbol(slot.name)
                if number > place:
                    before.append(_store(slot.name, item, slot.ptx_type, guard, line, location))
                elif isinstance(item, Register):
                    after.append(_load(item, slot.name, slot.ptx_type, guard, line, location))
            operands[number] = Arguments(tuple(items))
        yield from (*before, replace(call, operands=tuple(operands)), *after)

    def _slot(self, ptx_type: str, line: int) -> Variable:
        """A new parameter of the caller."""
        name, nbytes = f"call@{len(self._slots)}", TYPE_BYTES[ptx_type]
        slot = Variable(name, Space.PARAM, ptx_type, nbytes, 1, (), Linkage.NONE, line)
        self._slots.append(slot)
        return slot


def _passes_registers(statement: Instruction | Label) -> bool:
    """Whether a statement is a call with operands other than parameters."""
    return (
        statement.__class__ is Instruction
        and statement.opcode == "call"
        and any(
            isinstance(item, _PASSED)
            for listed in statement.operands
            if isinstance(listed, Arguments)
            for item in listed.items
        )
    )


def _register(parameter: Parameter) -> Register:
    return Register(parameter.name, parameter.ptx_type)


def _type_of(operand: Operand) -> str:
    """The type of a parameter that takes an operand."""
    if isinstance(operand, Register):
        return operand.ptx_type
    return f"f{operand.width}" if isinstance(operand, FloatImmediate) else "b32"


def _load(
    register: Register,
    parameter: str,
    ptx_type: str,
    guard: Guard | None,
    line: int,
    location: SourceLocation | None,
) -> Instruction:
    """`ld.param` of a register, by its bits."""
    modifiers = ("param", f"b{8 * TYPE_BYTES[ptx_type]}")
    operands = register, Address(Symbol(parameter), 0)
    return Instruction("ld", modifiers, operands, guard, line, location)


def _store(
    parameter: str,
    value: Operand,
    ptx_type: str,
    guard: Guard | None,
    line: int,
    location: SourceLocation | None,
) -> Instruction:
    """`st.param` of a register or a number, by its bits; a float as its type has it."""
    kind = ptx_type if isinstance(value, FloatImmediate) else f"b{8 * TYPE_BYTES[ptx_type]}"
    operands = Address(Symbol(parameter), 0), value
    return Instruction("st", ("param", kind), operands, guard, line, location)
