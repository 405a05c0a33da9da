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

_COMPARISONS = ("setp", "set", "min", "max")
_EQUALITY = ("eq", "ne", "equ", "neu")
_COPIES = ("mov", "cvt")
_LIMITS = (*_COMPARISONS, "min", "max", "mov", "selp")
_SHORT = ("u16", "s16", "u8", "s8")
_SHORT_MASKS = (0xFF, 0xFFFF)
_SHORT_SHIFTS = (16, 24, 48, 56)  # of a register, before a shift to the right extends the sign


@dataclass(frozen=True, slots=True)
class Compared:
    """The constants of a kernel's comparisons, minima and maxima, each once.

    Attributes:
        integers: with which integers are compared; also the bits of floats.
        floats: with which floats are compared.
        equal_arguments: the number of a parameter, and a constant that it is compared with for
            equality.
        equal_floats: those of `floats` that are compared for equality.
        limits: `floats`, and those of minima, maxima, selections and copies.
        is_short: whether integers of 16 bits or fewer are calculated, and not only stored.
    """

    integers: tuple[int, ...]
    floats: tuple[float, ...]
    equal_arguments: tuple[tuple[int, int], ...]
    equal_floats: tuple[float, ...]
    limits: tuple[float, ...]
    is_short: bool


def compared_constants(module: PtxModule, kernel: str) -> Compared:
    """Return the constants with which a kernel and its functions compare."""
    integers: dict[int, None] = {}
    floats: dict[float, None] = {}
    equal: dict[tuple[int, int], None] = {}
    equal_floats: dict[float, None] = {}
    limits: dict[float, None] = {}
    is_short = False
    for name in reachable_functions(module, kernel):
        function = module.functions[name]
        if function.span is None:
            continue
        copies = _arguments_in(module, function) if name == kernel else {}
        instructions = list(_instructions(module, function))
        is_short |= any(map(_is_short, instructions))
        for each in instructions:
            if each.opcode in _LIMITS:
                constants = (one for one in each.operands if isinstance(one, FloatImmediate))
                limits |= dict.fromkeys(map(float_of, constants))
        for comparison in (each for each in instructions if each.opcode in _COMPARISONS):
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
    return Compared(
        tuple(integers),
        tuple(floats),
        tuple(equal),
        tuple(equal_floats),
        tuple(limits),
        is_short,
    )


def _instructions(module: PtxModule, function: Function) -> Iterator[Instruction]:
    for statement in module.body(function.name).statements:
        if isinstance(statement, Instruction):
            yield statement


def _is_short(instruction: Instruction) -> bool:
    """Return whether an instruction calculates an integer of 16 bits or fewer."""
    last = instruction.operands[-1] if instruction.operands else None
    if instruction.opcode == "and" and isinstance(last, Immediate) and last.value:
        # An index has the bytes of an element as its factor.
        return last.value // (last.value & -last.value) in _SHORT_MASKS
    if instruction.opcode == "shl" and isinstance(last, Immediate):
        return last.value in _SHORT_SHIFTS
    is_copied = instruction.opcode in ("mov", "ld", "st", "atom", "red")
    return not is_copied and any(each in _SHORT for each in instruction.modifiers)


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
