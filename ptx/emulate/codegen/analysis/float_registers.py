"""Which float32 registers need work on their bits: canonical NaNs, and subnormal numbers.

A float32 result that is a NaN has canonical bits on the hardware (PTX ISA, "Floating Point
Instructions"), NumPy's has others. Arithmetic and comparisons never tell one NaN from another, so
that a result needs the canonical bits only where something else reads its register: a store, a
reinterpretation, an exchange among lanes.

On registers that never hold a subnormal number `.ftz` has nothing to do.
"""

from __future__ import annotations

from ptx.emulate.codegen.registers import registers_in
from ptx.isa.model import TYPE_BYTES, Body, FloatImmediate, Instruction, Operand, Register

_BLIND = frozenset(
    {"add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "rsqrt", "sin", "cos", "ex2", "lg2",
     "tanh", "neg", "abs", "min", "max", "set", "setp", "testp", "cvt"}
)  # fmt: skip
"""Opcodes whose results do not depend on which NaN a float32 operand is."""
_KEEP_PAYLOAD = frozenset({"f32", "f64", "tf32"})
"""Targets of `cvt` for which it does."""


def registers_with_visible_bits(body: Body) -> frozenset[str]:
    """Names of the registers that are read by more than float32 arithmetic."""
    visible: set[str] = set()
    copies: dict[str, list[str]] = {}
    for statement in body.statements:
        if not isinstance(statement, Instruction) or _is_blind(statement):
            continue
        operands = statement.operands
        target = operands[0] if operands else None
        if statement.opcode in ("mov", "selp") and isinstance(target, Register):
            sources = copies.setdefault(target.name, [])
            if all(not _is_compound(operand) for operand in operands[1:]):
                sources += [each.name for each in operands[1:] if isinstance(each, Register)]
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


def _is_blind(instruction: Instruction) -> bool:
    if instruction.opcode not in _BLIND:
        return False
    types = [word for word in instruction.modifiers if word in TYPE_BYTES]
    if not types or types[-1] != "f32":
        return False
    if instruction.opcode == "cvt":
        return types[0] not in _KEEP_PAYLOAD
    if "xorsign" in instruction.modifiers:
        return False  # it takes the sign of a NaN that lost
    return instruction.opcode == "set" or len(types) == 1


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
