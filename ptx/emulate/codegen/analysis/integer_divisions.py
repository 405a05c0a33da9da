"""Integer divisions that may be by zero, and whether anything but a selection reads the result.

Code that divides first and selects another value where the divisor is zero is correct.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ptx.emulate.codegen.cfg import Block, BlockStep
from ptx.isa.model import Immediate, Instruction

_OPCODES = ("div", "rem")
_COPIES = ("mov", "cvt")


def integer_divisions(blocks: Sequence[Block]) -> dict[int, bool]:
    """Return for each such instruction, by its identity, whether only selections read it."""
    found = [step for block in blocks for step in block.steps if _may_be_by_zero(step.instruction)]
    if not found:
        return {}
    readers: defaultdict[int, list[BlockStep]] = defaultdict(list)
    for block in blocks:
        for step in block.steps:
            for register in step.reads:
                readers[register].append(step)
    return {
        id(step.instruction): all(_is_selected(number, readers, set()) for number in step.writes)
        for step in found
    }


def _may_be_by_zero(instruction: Instruction) -> bool:
    if instruction.opcode not in _OPCODES or instruction.facts.type_suffix[:1] not in ("u", "s"):
        return False
    divisor = instruction.operands[2]
    return not isinstance(divisor, Immediate) or divisor.value == 0


def _is_selected(register: int, readers: dict[int, list[BlockStep]], known: set[int]) -> bool:
    """Return whether only selections read a register, or copies that only selections read."""
    known.add(register)
    for step in readers.get(register, ()):
        opcode = step.instruction.opcode
        if opcode == "selp" or (opcode in _COPIES and step.instruction.guard is not None):
            continue
        if opcode not in _COPIES:
            return False
        if not all(n in known or _is_selected(n, readers, known) for n in step.writes):
            return False
    return True
