"""Which registers of a kernel hold the same for a thread's place in every chunk of a launch.

Such a value depends on kernel parameters, constants and the thread's place in its block only:
`threadIdx.x * 4` does, `blockIdx.x` does not. It is computed once a launch (`kept.Kept`), with
all that is derived from it to access memory.
"""

from __future__ import annotations

from ptx.emulate.flow import Block, Step
from ptx.emulate.table import Effect
from ptx.isa.model import (
    Address,
    FloatImmediate,
    Immediate,
    Instruction,
    Negated,
    Operand,
    Register,
    SpecialRegister,
    Symbol,
)

_OPCODES = frozenset(
    {"mov", "cvt", "cvta", "add", "sub", "mul", "mad", "shl", "shr", "and", "or", "xor", "not",
     "neg", "abs", "min", "max", "div", "rem", "selp", "setp", "bfe", "bfi", "lop3", "mul24",
     "mad24", "sad", "prmt"}
)  # fmt: skip
_PLACES = frozenset({"tid", "laneid", "warpid"})
_COMMON = frozenset({"ntid", "nctaid", "warpsize"})
_MOST_BLOCKS = 4096  # a larger kernel is not looked into: dominators take quadratic time

Definition = tuple[int, int]  # block, and position in it


def steady_registers(blocks: list[Block]) -> frozenset[int]:
    """Registers that are steady and differ from thread to thread, of a kernel's entry function.

    They have one definition, which is on every way to each of its uses that counts here, so that
    it was executed by all threads of a fibre that has them.
    """
    if len(blocks) > _MOST_BLOCKS:
        return frozenset()
    return _Search(blocks).run()


def dominators(blocks: list[Block]) -> list[int]:
    """For each block, the bit mask of the blocks that every way to it from the first one passes."""
    everything = (1 << len(blocks)) - 1
    found = [1, *([everything] * (len(blocks) - 1))]
    before: list[list[int]] = [[] for _ in blocks]
    for block in blocks:
        for successor in block.successors:
            before[successor].append(block.index)
    changed = True
    while changed:
        changed = False
        for at in range(1, len(blocks)):
            mask = everything
            for each in before[at]:
                mask &= found[each]
            mask |= 1 << at
            if mask != found[at]:
                found[at] = mask
                changed = True
    return found


class _Search:
    """Finds steady registers, from the definitions that need no other to those that do."""

    def __init__(self, blocks: list[Block]) -> None:
        self._blocks = blocks
        self._dominators = dominators(blocks)
        self._definitions: dict[int, Definition | None] = {}
        for block in blocks:
            for position, step in enumerate(block.steps):
                for number in step.writes:
                    known = number in self._definitions
                    self._definitions[number] = None if known else (block.index, position)
        self._varies: dict[int, bool] = {}  # of steady registers: from thread to thread?

    def run(self) -> frozenset[int]:
        waiting = [
            (at, self._blocks[at[0]].steps[at[1]])
            for at in self._definitions.values()
            if at is not None
        ]
        waiting = [(at, step) for at, step in waiting if _may_be_steady(step)]
        found = True
        while found:
            found = False
            rest: list[tuple[Definition, Step]] = []
            for at, step in waiting:
                varies = self._is_steady(at, step)
                if varies is None:
                    rest.append((at, step))
                else:
                    self._varies[step.writes[0]] = varies
                    found = True
            waiting = rest
        return frozenset(number for number, varies in self._varies.items() if varies)

    def _is_steady(self, at: Definition, step: Step) -> bool | None:
        """Whether the result differs from thread to thread; None where it is not steady."""
        varies = False
        for number in step.reads:
            source = self._definitions.get(number)
            if number not in self._varies or source is None or not self._reaches(source, at):
                return None
            varies |= self._varies[number]
        return varies or any(_is_place(operand) for operand in step.instruction.operands)

    def _reaches(self, source: Definition, use: Definition) -> bool:
        if source[0] == use[0]:
            return source[1] < use[1]
        return bool(self._dominators[use[0]] >> source[0] & 1)


def _may_be_steady(step: Step) -> bool:
    instruction = step.instruction
    if instruction.guard is not None or len(step.writes) != 1 or not instruction.operands:
        return False
    if not isinstance(instruction.operands[0], Register):
        return False
    if instruction.opcode == "ld":
        return _reads_parameter(instruction)
    pure = step.operation.effect is Effect.PURE and instruction.opcode in _OPCODES
    carries = step.operation.reads_carry or step.operation.writes_carry
    return pure and not carries and all(map(_is_fixed, instruction.operands[1:]))


def _reads_parameter(instruction: Instruction) -> bool:
    source = instruction.operands[1]
    return (
        "param" in instruction.modifiers
        and isinstance(source, Address)
        and isinstance(source.base, Symbol)
    )


def _is_fixed(operand: Operand) -> bool:
    if isinstance(operand, SpecialRegister):
        return _stem(operand) in _PLACES | _COMMON
    return isinstance(operand, Register | Immediate | FloatImmediate | Symbol | Negated)


def _is_place(operand: Operand) -> bool:
    return isinstance(operand, SpecialRegister) and _stem(operand) in _PLACES


def _stem(operand: SpecialRegister) -> str:
    return operand.name[1:].partition(".")[0]
