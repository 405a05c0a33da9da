"""Which float32 registers need work on their bits: canonical NaNs, and subnormal numbers.

A float32 result that is a NaN has canonical bits on the hardware (PTX ISA, "Floating Point
Instructions"), NumPy's has others. Arithmetic and comparisons never distinguish one NaN from
another. A result needs the canonical bits only if something else reads its register: a store, a
reinterpretation, an exchange among lanes.

On registers that never hold a subnormal number `.ftz` has nothing to do.
"""

from __future__ import annotations

from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import Body, FloatImmediate, Instruction, Operand, Register
from ptx.isa.registers import registers_in


def registers_with_visible_bits(body: Body) -> frozenset[str]:
    """Names of the registers that are read by more than float32 arithmetic."""
    visible: set[str] = set()
    copies: dict[str, list[str]] = {}
    for statement in body.statements:
        if not isinstance(statement, Instruction):
            continue
        facts = statement.facts
        if facts.ignores_nan_payload:
            continue
        operands = statement.operands
        target = operands[0] if operands else None
        if facts.is_move and isinstance(target, Register):
            sources = copies.setdefault(target.name, [])
            if all(not _is_compound(operand) for operand in operands[1:]):
                sources += [
                    operand_register.name
                    for operand_register in operands[1:]
                    if isinstance(operand_register, Register)
                ]
                continue
        for operand in operands:
            if isinstance(operand, Register):
                visible.add(operand.name)
            else:
                visible.update(register.name for register in registers_in(operand))
    waiting = list(visible)
    while waiting:
        for source in copies.get(waiting.pop(), ()):
            if source not in visible:
                visible.add(source)
                waiting.append(source)
    return frozenset(visible)


def _is_compound(operand: object) -> bool:
    return hasattr(operand, "items")


_EXPONENT = 0x7F80_0000
_FRACTION = 0x007F_FFFF


def is_subnormal(bits: int) -> bool:
    """Return whether float32 bits are a subnormal number."""
    return not bits & _EXPONENT and bool(bits & _FRACTION)


def registers_without_subnormals(body: Body) -> frozenset[str]:
    """Names of the registers that only flushing float32 instructions write, or moves from them."""
    written: set[str] = set()
    other_names: set[str] = set()
    copies: dict[str, list[str]] = {}
    for statement in body.statements:
        if not isinstance(statement, Instruction) or not statement.operands:
            continue
        target = statement.operands[0]
        facts = statement.facts
        is_call = facts.kind is InstructionKind.CALL
        if not isinstance(target, Register) or is_call:
            for operand in statement.operands if is_call else (target,):
                other_names.update(register.name for register in registers_in(operand))
        elif facts.flushes_result:
            written.add(target.name)
        elif facts.is_move and all(map(_is_plain, statement.operands[1:3])):
            written.add(target.name)
            for operand in statement.operands[1:3]:
                if isinstance(operand, Register):
                    copies.setdefault(operand.name, []).append(target.name)
        else:
            other_names.add(target.name)
    waiting = [*other_names, *(name for name in copies if name not in written)]
    reached = set(waiting)
    while waiting:
        for target_name in copies.get(waiting.pop(), ()):
            if target_name not in reached:
                reached.add(target_name)
                waiting.append(target_name)
    return frozenset(written - reached)


def _is_plain(operand: Operand) -> bool:
    """Return whether a moved operand is a register, or a constant that is no subnormal number."""
    if isinstance(operand, FloatImmediate):
        return operand.width == 32 and not is_subnormal(operand.bits)
    return isinstance(operand, Register)
