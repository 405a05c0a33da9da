"""Which registers never hold a subnormal float32, so that `.ftz` has nothing to do on them."""

from __future__ import annotations

from ptx.emulate.codegen.registers import registers_in
from ptx.isa.model import TYPE_BYTES, Body, FloatImmediate, Instruction, Operand, Register

_EXPONENT = 0x7F80_0000
_FRACTION = 0x007F_FFFF


def is_subnormal(bits: int) -> bool:
    """Whether float32 bits are a subnormal number."""
    return not bits & _EXPONENT and bool(bits & _FRACTION)


def registers_without_subnormals(body: Body) -> frozenset[str]:
    """Names of the registers that only flushing float32 instructions write, or moves from them."""
    written: set[str] = set()
    others: set[str] = set()
    copies: dict[str, list[str]] = {}
    for statement in body.statements:
        if not isinstance(statement, Instruction) or not statement.operands:
            continue
        target = statement.operands[0]
        if not isinstance(target, Register) or statement.opcode == "call":
            for operand in statement.operands if statement.opcode == "call" else (target,):
                others.update(register.name for register in registers_in(operand))
        elif _flushes(statement):
            written.add(target.name)
        elif statement.opcode in ("mov", "selp") and all(map(_is_plain, statement.operands[1:3])):
            written.add(target.name)
            for operand in statement.operands[1:3]:
                if isinstance(operand, Register):
                    copies.setdefault(operand.name, []).append(target.name)
        else:
            others.add(target.name)
    waiting = [*others, *(name for name in copies if name not in written)]
    seen = set(waiting)
    while waiting:
        for target_name in copies.get(waiting.pop(), ()):
            if target_name not in seen:
                seen.add(target_name)
                waiting.append(target_name)
    return frozenset(written - seen)


def _flushes(instruction: Instruction) -> bool:
    words = instruction.modifiers
    if "ftz" not in words:
        return False
    types = [word for word in words if word in TYPE_BYTES]
    if instruction.opcode == "cvt":
        return types[:1] == ["f32"]
    return types == ["f32"] and instruction.opcode != "slct"


def _is_plain(operand: Operand) -> bool:
    """Whether a moved operand is a register, or a constant that is no subnormal number."""
    if isinstance(operand, FloatImmediate):
        return operand.width == 32 and not is_subnormal(operand.bits)
    return isinstance(operand, Register)
