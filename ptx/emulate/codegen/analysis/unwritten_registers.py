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
    blocks: Sequence[Block], numbers: Mapping[str, int], given: Iterable[str]
) -> dict[int, tuple[str, ...]]:
    """The names of such registers, by the identity of the instruction that reads them.

    `given`: the names of parameters, which may be registers.
    """
    known = {CARRY.name, *given}
    # Most functions have none that are needed where they begin.
    doubtful = frozenset(bits(blocks[0].live)) - {numbers[each] for each in known & set(numbers)}
    if not doubtful:
        return {}
    doubtful = _with_copies(blocks, doubtful)
    names = {number: name.split("@")[0] for name, number in numbers.items()}
    found: dict[int, tuple[str, ...]] = {}
    for block, unwritten in zip(blocks, _unwritten(blocks, doubtful), strict=True):
        for step in block.steps:
            used = [each for each in dict.fromkeys(_used(step)) if each in unwritten]
            if used:
                found[id(step.instruction)] = tuple(names[each] for each in used)
            unwritten = _behind(step, unwritten)
        if block.guard is not None and block.branch is not None:
            number = numbers[block.guard.register.name]
            if number in unwritten:
                found[id(block.branch)] = (names[number],)
    return found


def _with_copies(blocks: Sequence[Block], doubtful: _Numbers) -> _Numbers:
    """Return these registers and those that they are copied to."""
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
    found: list[_Numbers | None] = [None] * len(blocks)
    found[0] = doubtful
    waiting = [0]
    while waiting:
        block = blocks[waiting.pop()]
        after = found[block.index] or frozenset()
        for step in block.steps:
            after = _behind(step, after)
        for successor in block.successors:
            before = found[successor]
            if before is None or before - after:
                found[successor] = after if before is None else before & after
                waiting.append(successor)
    return [each or frozenset() for each in found]


def _behind(step: BlockStep, unwritten: _Numbers) -> _Numbers:
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
        return tuple([each for each in step.reads if each not in step.writes])
    return step.reads
