"""Registers that an instruction reads although nothing on any way to it has written them.

NVRTC leaves such reads where inline assembly takes a variable that has no value, in loops, and
without optimisation. Instructions that only copy a value are not reported: half of a vector may
have no value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ptx.emulate.codegen.cfg import Block, BlockStep, bits
from ptx.emulate.codegen.registers import CARRY

_Numbers = frozenset[int]


def unwritten_registers(
    blocks: Sequence[Block], numbers: Mapping[str, int], written_before: Iterable[str]
) -> dict[int, tuple[str, ...]]:
    """The names of such registers, by the identity of the instruction that reads them.

    `written_before`: the names of parameters, which may be registers.
    """
    written = {CARRY.name, *written_before}
    # Most functions have none that are needed where they begin.
    doubtful = frozenset(bits(blocks[0].live)) - {
        numbers[register] for register in written & set(numbers)
    }
    if not doubtful:
        return {}
    doubtful = _with_copies(blocks, doubtful)
    names = {number: name.split("@")[0] for name, number in numbers.items()}
    unwritten_uses: dict[int, tuple[str, ...]] = {}
    for block, unwritten in zip(blocks, _unwritten(blocks, doubtful), strict=True):
        for step in block.steps:
            unwritten_uses_of_step = [
                register for register in dict.fromkeys(_used(step)) if register in unwritten
            ]
            if unwritten_uses_of_step:
                unwritten_uses[id(step.instruction)] = tuple(
                    names[register] for register in unwritten_uses_of_step
                )
            unwritten = _after(step, unwritten)
        if block.guard is not None and block.branch is not None:
            number = numbers[block.guard.register.name]
            if number in unwritten:
                unwritten_uses[id(block.branch)] = (names[number],)
    return unwritten_uses


def _with_copies(blocks: Sequence[Block], doubtful: _Numbers) -> _Numbers:
    """Return these registers, and the registers that receive copies of them."""
    while True:
        copies = {
            number
            for block in blocks
            for step in block.steps
            if _is_copy(step) and doubtful.issuperset(step.reads)
            for number in step.writes
        }
        if copies <= doubtful:
            return doubtful
        doubtful |= copies


def _unwritten(blocks: Sequence[Block], doubtful: _Numbers) -> list[_Numbers]:
    """Return for each block the registers that are unwritten on every path to it."""
    unwritten: list[_Numbers | None] = [None] * len(blocks)
    unwritten[0] = doubtful
    waiting = [0]
    while waiting:
        block = blocks[waiting.pop()]
        after = unwritten[block.index] or frozenset()
        for step in block.steps:
            after = _after(step, after)
        for successor in block.successors:
            unwritten_there = unwritten[successor]
            if unwritten_there is None or unwritten_there - after:
                unwritten[successor] = after if unwritten_there is None else unwritten_there & after
                waiting.append(successor)
    return [registers or frozenset() for registers in unwritten]


def _after(step: BlockStep, unwritten: _Numbers) -> _Numbers:
    """Return the unwritten registers after an instruction; a copy of one is unwritten, too."""
    if not unwritten or (_is_copy(step) and unwritten.issuperset(step.reads)):
        return unwritten
    return unwritten.difference(step.writes)


def _is_copy(step: BlockStep) -> bool:
    instruction = step.instruction
    return instruction.opcode == "mov" and instruction.guard is None and bool(step.reads)


def _used(step: BlockStep) -> tuple[int, ...]:
    """The registers whose values an instruction needs."""
    if step.instruction.guard is not None or step.instruction.facts.copies_value:
        return ()
    if step.operation.updates:
        return tuple([register for register in step.reads if register not in step.writes])
    return step.reads
