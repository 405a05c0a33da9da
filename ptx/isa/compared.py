"""The constants with which a kernel compares, by its PTX alone."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import (
    Address,
    FloatImmediate,
    Function,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
)
from ptx.isa.module import PtxModule
from ptx.isa.signature import reachable_functions

_COMPARISONS = ("setp", "set")
_EQUALITY = ("eq", "ne", "equ", "neu")
_COPIES = ("mov", "cvt")


@dataclass(frozen=True, slots=True)
class Compared:
    """The constants of a kernel's comparisons, each once.

    Attributes:
        integers: with which integers are compared; also the bits of floats.
        floats: with which floats are compared.
        equal_arguments: the number of a parameter, and a constant that it is compared with for
            equality.
        equal_floats: those of `floats` that are compared for equality.
    """

    integers: tuple[int, ...]
    floats: tuple[float, ...]
    equal_arguments: tuple[tuple[int, int], ...]
    equal_floats: tuple[float, ...]


def compared_constants(module: PtxModule, kernel: str) -> Compared:
    """Return the constants with which a kernel and its functions compare."""
    integers: dict[int, None] = {}
    floats: dict[float, None] = {}
    equal: dict[tuple[int, int], None] = {}
    equal_floats: dict[float, None] = {}
    for name in reachable_functions(module, kernel):
        function = module.functions[name]
        if function.span is None:
            continue
        copies = _arguments_in(module, function) if name == kernel else {}
        for comparison in _comparisons(module, function):
            operands = comparison.operands[1:3]
            for operand in operands:
                if isinstance(operand, Immediate):
                    integers[operand.value] = None
                elif isinstance(operand, FloatImmediate):
                    floats[float_of(operand)] = None
                    if comparison.modifiers[0] in _EQUALITY:
                        equal_floats[float_of(operand)] = None
            if comparison.modifiers[0] in _EQUALITY:
                equal |= dict.fromkeys(_equal_arguments(operands, copies))
    return Compared(tuple(integers), tuple(floats), tuple(equal), tuple(equal_floats))


def _comparisons(module: PtxModule, function: Function) -> Iterator[Instruction]:
    for statement in module.body(function.name).statements:
        if isinstance(statement, Instruction) and statement.opcode in _COMPARISONS:
            yield statement


def _arguments_in(module: PtxModule, function: Function) -> dict[str, int]:
    """Return the registers that hold a parameter and nothing else, with its number."""
    numbers = {parameter.name: number for number, parameter in enumerate(function.params)}
    held: dict[str, int] = {}
    for statement in module.body(function.name).statements:
        if not isinstance(statement, Instruction) or not statement.operands:
            continue
        target, *sources = statement.operands
        if not isinstance(target, Register):
            continue
        number = held.get(sources[0].name) if _is_copy(statement) else None  # type: ignore[union-attr]  # a register
        if statement.facts.kind is InstructionKind.LOAD and statement.facts.space == "param":
            address = sources[0]
            if isinstance(address, Address) and isinstance(address.base, Symbol):
                number = numbers.get(address.base.name) if not address.offset else None
        if number is not None:
            held[target.name] = number
    return held


def _is_copy(instruction: Instruction) -> bool:
    return instruction.opcode in _COPIES and isinstance(instruction.operands[1], Register)


def _equal_arguments(
    operands: tuple[Operand, ...], held: dict[str, int]
) -> Iterator[tuple[int, int]]:
    for first, second in (operands, operands[::-1]):
        if isinstance(first, Register) and isinstance(second, Immediate) and first.name in held:
            yield held[first.name], second.value


def float_of(constant: FloatImmediate) -> float:
    """Return the number that the bits of a constant are."""
    word, code = ("<I", "<f") if constant.width == 32 else ("<Q", "<d")
    number: float = struct.unpack(code, struct.pack(word, constant.bits))[0]
    return number
