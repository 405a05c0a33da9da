"""What generated code hands to marks of registers: uses, guards and conditions."""

from __future__ import annotations

from ptx.emulate.check.register_marks import RegisterUse
from ptx.emulate.codegen.cfg import BlockStep
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.registers import CARRY
from ptx.emulate.model.types import kind_of
from ptx.isa.model import Address, Instruction, Operand
from ptx.isa.registers import registers_in


def guard_argument(e: Emitter, i: Instruction) -> str:
    """Return the argument with the threads for which a guard holds; "" without a guard."""
    if i.guard is None:
        return ""
    value = e.value(i.guard.register, "pred")
    return f", guard={'~' if i.guard.negated else ''}{value}"


def decides(e: Emitter, joins: str, operand: Operand, kind: str) -> str:
    """Return the condition that a value decides an `and` or `or` alone: no bits set, or all."""
    value = e.value(operand, kind)
    if kind == "pred":
        return value if joins == "or" else f"(~{value})"
    return f"({value} == {e.constant(-1 if joins == 'or' else 0, kind_of(kind))})"


def register_use(e: Emitter, step: BlockStep, sources: tuple[Operand, ...]) -> RegisterUse:
    """Return the registers that a step uses, with these operands as sources."""
    i = step.instruction
    carry = [e.scope.number(CARRY)] if step.operation.reads_carry else []
    address = [
        e.scope.number(register)
        for operand in i.operands
        if isinstance(operand, Address)
        for register in registers_in(operand)
    ]
    numbers: list[int | None] = []
    for operand in sources:
        registers = [e.scope.number(register) for register in registers_in(operand)]
        numbers += registers or [None]
    guard = None if i.guard is None else e.scope.number(i.guard.register)
    return RegisterUse(i, (*numbers, *carry), step.writes, tuple(address), guard)
