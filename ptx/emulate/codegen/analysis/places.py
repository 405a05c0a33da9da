"""Which instructions of a function access the same place, by what their addresses are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from ptx.emulate.codegen.cfg import Block
from ptx.isa.model import Address, Instruction, Operand, Register

# What gives the same where it is given the same, as an address is computed.
_ARITHMETIC: Final = frozenset({"add", "sub", "mul", "mad", "shl", "cvt", "and", "or"})
_MOST_DEEP: Final = 16

Value: TypeAlias = tuple[object, ...]
"""What a value is made of; equal ones are equal wherever they are computed."""


class Place(NamedTuple):
    """An address: what its base is made of, and the offset from there."""

    base: Value
    offset: int


class Places:
    """The places of a function's accesses.

    An address may be computed twice, as one of global memory and as a generic one. Both are one
    place, if all that they are made of is written by one instruction alone: what a loop counts may
    have gone on between them.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._writers: dict[str, list[Instruction]] = defaultdict(list)
        self._values: dict[str, Value | None] = {}
        for block in blocks:
            for step in block.steps:
                for operand in step.instruction.operands[: step.operation.writes]:
                    if isinstance(operand, Register):
                        self._writers[operand.name].append(step.instruction)

    def of(self, instruction: Instruction) -> Place | None:
        """Where an instruction accesses memory; None if it does not."""
        for operand in instruction.operands:
            if isinstance(operand, Address):
                return Place(self._base(operand.base), operand.offset)
        return None

    def _base(self, base: Operand | None) -> Value:
        value = self._value(base, 0) if isinstance(base, Register) else None
        return (base,) if value is None else value

    def _value(self, operand: Operand, depth: int) -> Value | None:
        """What an operand is made of; None where that may change from use to use."""
        if not isinstance(operand, Register):
            return (operand,)
        if operand.name not in self._values:
            self._values[operand.name] = None  # what is made of itself may change
            if depth < _MOST_DEEP:
                self._values[operand.name] = self._made(operand, depth)
        return self._values[operand.name]

    def _made(self, register: Register, depth: int) -> Value | None:
        writers = self._writers[register.name]
        if len(writers) != 1 or writers[0].guard is not None:
            return None
        (writer,) = writers
        opcode, sources = writer.opcode, writer.operands[1:]
        if opcode == "cvta" and "global" in writer.modifiers:
            return self._value(sources[0], depth + 1)
        if opcode == "mov" and len(sources) == 1 and isinstance(sources[0], Register):
            return self._value(sources[0], depth + 1)
        if opcode not in _ARITHMETIC:
            return (register.name,)
        values = [self._value(each, depth + 1) for each in sources]
        if None in values:
            return None
        return (opcode, writer.modifiers, *values)
