"""Analysis of how a kernel uses the values that it loads from memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptx.emulate.codegen.table import find_operation, in_table_order
from ptx.emulate.memory.device_memory import Use
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import Address, Body, Instruction, Operand, Register, Vector
from ptx.isa.registers import registers_in


def uses_of(bodies: Iterable[Body], instruction: Instruction) -> tuple[Use, ...]:
    """Return how each element of a load or atomic operation is used; () if none is known.

    An instruction that is only part of a copy, such as `cp.async`, gives registers nothing.
    """
    if not instruction.operands or not _has_result(instruction):
        return ()
    body = next((b for b in bodies if any(s is instruction for s in b.statements)), None)
    if body is None:
        return ()
    target = instruction.operands[0]
    elements = target.items if isinstance(target, Vector) else (target,)
    return tuple(_use_of(body, element) for element in elements)


def _use_of(body: Body, element: Operand) -> Use:
    use = Use.NONE
    waiting = [operand_register.name for operand_register in registers_in(element)]
    visited = set(waiting)
    while waiting:
        name = waiting.pop()
        for reader in _readers(body, name):
            if reader.opcode == "mov":
                results = {
                    operand_register.name for operand_register in registers_in(reader.operands[0])
                } - visited
                visited |= results
                waiting += results
            elif reader.facts.kind is InstructionKind.STORE and not _is_address(reader, name):
                use = max(use, Use.COPIED)
            else:
                return Use.USED
    return use


def _readers(body: Body, name: str) -> Iterator[Instruction]:
    """The instructions that read a register."""
    for statement in body.statements:
        if not isinstance(statement, Instruction):
            continue
        guard = statement.guard
        if guard is not None and guard.register.name == name:
            yield statement
            continue
        has_result = _has_result(statement)
        for position, operand in enumerate(statement.operands):
            is_result = has_result and position == 0 and isinstance(operand, Register | Vector)
            if not is_result and any(
                operand_register.name == name for operand_register in registers_in(operand)
            ):
                yield statement
                break


def _has_result(instruction: Instruction) -> bool:
    """Return whether its first operand is a destination."""
    operation = find_operation(in_table_order(instruction))
    return operation is not None and operation.writes > 0


def _is_address(store: Instruction, name: str) -> bool:
    guard = store.guard
    if guard is not None and guard.register.name == name:
        return True
    return any(
        isinstance(operand, Address)
        and any(operand_register.name == name for operand_register in registers_in(operand))
        for operand in store.operands
    )
