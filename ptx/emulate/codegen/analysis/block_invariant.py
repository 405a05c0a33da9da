"""Which registers of a kernel hold the same values in every chunk of a launch.

Such a value depends on kernel parameters, constants and the thread's place in its block only:
`threadIdx.x * 4` does, `blockIdx.x` does not. It is computed once a launch, with all that is
derived from it to access memory (`threads/launch_plan.py`).
"""

from __future__ import annotations

from collections.abc import Collection

from ptx.emulate.codegen.cfg import Block, BlockStep
from ptx.emulate.codegen.table import Effect
from ptx.isa.instruction_facts import InstructionKind
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

_PLACES = frozenset({"tid", "laneid", "warpid"})
_COMMON = frozenset({"ntid", "nctaid", "warpsize"})
_MOST_BLOCKS = 4096  # a larger kernel is not looked into: dominators take quadratic time
_MOST_DEFINITIONS = 8  # of a register; one with more of them is a loop's, or not worth the search

Definition = tuple[int, int]  # block, and position in it


def invariant_definitions(
    blocks: list[Block], parameters: Collection[str]
) -> frozenset[Definition]:
    """Return the definitions of block-invariant values that differ from thread to thread.

    Each source of such an instruction has one definition that reaches it, on every way to it, so
    that all threads which are there have executed that one. `parameters` are the symbols of the
    kernel's own parameters: a `.param` variable of its body holds what a call takes or gives.
    """
    steps = (step for block in blocks for step in block.steps)
    if len(blocks) > _MOST_BLOCKS or not any(map(_reads_place, steps)):
        return frozenset()
    return _Search(blocks, parameters).run()


def dominators(blocks: list[Block]) -> list[int]:
    """Return for each block the bit mask of the blocks on every path to it from the first one."""
    all_blocks = (1 << len(blocks)) - 1
    masks = [1, *([all_blocks] * (len(blocks) - 1))]
    predecessors: list[list[int]] = [[] for _ in blocks]
    for block in blocks:
        for successor in block.successors:
            predecessors[successor].append(block.index)
    changed = True
    while changed:
        changed = False
        for index in range(1, len(blocks)):
            mask = all_blocks
            for predecessor in predecessors[index]:
                mask &= masks[predecessor]
            mask |= 1 << index
            if mask != masks[index]:
                masks[index] = mask
                changed = True
    return masks


class _Search:
    """Finds block-invariant definitions, from those that need no other to those that do."""

    def __init__(self, blocks: list[Block], parameters: Collection[str]) -> None:
        self._blocks = blocks
        self._parameters = parameters
        self._dominators = dominators(blocks)
        self._definitions: dict[int, list[Definition]] = {}
        for block in blocks:
            for position, step in enumerate(block.steps):
                for number in step.writes:
                    self._definitions.setdefault(number, []).append((block.index, position))
        self._varies: dict[Definition, bool] = {}  # of block-invariant ones: do threads differ?
        self._reached: dict[tuple[int, int], int] = {}

    def run(self) -> frozenset[Definition]:
        """The definitions that vary."""
        waiting = [
            ((block.index, position), step)
            for block in self._blocks
            for position, step in enumerate(block.steps)
            if self._may_be_invariant(step)
        ]
        has_new = True
        while has_new:
            has_new = False
            undecided: list[tuple[Definition, BlockStep]] = []
            for definition, step in waiting:
                varies = self._is_invariant(definition, step)
                if varies is None:
                    undecided.append((definition, step))
                else:
                    self._varies[definition] = varies
                    has_new = True
            waiting = undecided
        return frozenset(definition for definition, varies in self._varies.items() if varies)

    def _may_be_invariant(self, step: BlockStep) -> bool:
        instruction = step.instruction
        if instruction.guard is not None or len(step.writes) != 1 or not instruction.operands:
            return False
        if not isinstance(instruction.operands[0], Register):
            return False
        facts = step.instruction.facts
        if facts.kind is InstructionKind.LOAD:
            return facts.space == "param" and self._reads_parameter(instruction)
        is_move = facts.copies_value or facts.passes_operand
        pure = step.operation.effect is Effect.PURE and (facts.is_calculation or is_move)
        carries = step.operation.reads_carry or step.operation.writes_carry
        return pure and not carries and all(map(_is_fixed, instruction.operands[1:]))

    def _reads_parameter(self, instruction: Instruction) -> bool:
        source = instruction.operands[1]
        return (
            isinstance(source, Address)
            and isinstance(source.base, Symbol)
            and source.base.name in self._parameters
        )

    def _is_invariant(self, definition: Definition, step: BlockStep) -> bool | None:
        """Return whether threads differ in the result; None where it is not block-invariant."""
        varies = any(map(_is_place, step.instruction.operands))
        for number in step.reads:
            source = self._source(number, definition)
            if source is None or source not in self._varies:
                return None
            varies |= self._varies[source]
        return varies

    def _source(self, number: int, use: Definition) -> Definition | None:
        """The only definition of a register that reaches a place; None if there are several."""
        block, position = use
        definitions = self._definitions.get(number, [])
        if not definitions or len(definitions) > _MOST_DEFINITIONS:
            return None
        earlier = [
            definition
            for definition in definitions
            if definition[0] == block and definition[1] < position
        ]
        if earlier:
            return earlier[-1]
        last = {definition[0]: definition for definition in definitions}
        for definition_block, definition_there in last.items():
            dominates = (
                definition_block != block and self._dominators[block] >> definition_block & 1
            )
            if dominates and not any(
                self._reachable(other, definition_block) >> block & 1
                for other in last
                if other != definition_block
            ):
                return definition_there
        return None

    def _reachable(self, start: int, excluded: int) -> int:
        """Return the bit mask of blocks reachable from a block, without passing another one."""
        mask = self._reached.get((start, excluded))
        if mask is None:
            mask, waiting = 0, [start]
            while waiting:
                for successor in self._blocks[waiting.pop()].successors:
                    if successor != excluded and not mask >> successor & 1:
                        mask |= 1 << successor
                        waiting.append(successor)
            self._reached[start, excluded] = mask
        return mask


def _reads_place(step: BlockStep) -> bool:
    # Special registers are read by mov alone.
    return step.instruction.opcode == "mov" and any(map(_is_place, step.instruction.operands))


def _is_fixed(operand: Operand) -> bool:
    if isinstance(operand, SpecialRegister):
        return _stem(operand) in _PLACES | _COMMON
    return isinstance(operand, Register | Immediate | FloatImmediate | Symbol | Negated)


def _is_place(operand: Operand) -> bool:
    return isinstance(operand, SpecialRegister) and _stem(operand) in _PLACES


def _stem(operand: SpecialRegister) -> str:
    return operand.name[1:].partition(".")[0]
