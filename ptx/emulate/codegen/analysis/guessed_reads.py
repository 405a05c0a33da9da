"""Reads of a value that a compare-and-swap checks before anything comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ptx.emulate.codegen.cfg import Block, BlockStep
from ptx.isa.model import Address, Instruction, Operand

_Place = tuple[Operand | None, int]


def guessed_reads(blocks: Sequence[Block]) -> set[int]:
    """The loads of a function, by identity, behind which each way comes to a compare-and-swap.

    It has the same address. The value that was loaded is a guess then: where it is old, the swap
    fails and gives the present one. A load that may decide that there is nothing to swap is none.
    """
    steps = [step for block in blocks for step in block.steps]
    swapped = {place_of(step.instruction) for step in steps if _is_swap(step)}
    if not swapped:
        return set()
    return {
        id(step.instruction)
        for block in blocks
        for at, step in enumerate(block.steps)
        if step.instruction.opcode == "ld"
        and place_of(step.instruction) in swapped
        and _is_checked(blocks, block, at + 1, place_of(step.instruction))
    }


def _is_checked(blocks: Sequence[Block], block: Block, start: int, place: _Place | None) -> bool:
    if _swaps(block.steps[start:], place):
        return True
    waiting, known = [block], {block.index}
    while waiting:
        here = waiting.pop()
        following = list(here.successors)
        if not following and here.steps[-1].instruction.opcode != "trap":
            return False  # the function ends, and nothing was swapped
        for each in following:
            if each not in known and not _swaps(blocks[each].steps, place):
                known.add(each)
                waiting.append(blocks[each])
    return True


def _swaps(steps: Iterable[BlockStep], place: _Place | None) -> bool:
    return any(_is_swap(each) and place_of(each.instruction) == place for each in steps)


def _is_swap(step: BlockStep) -> bool:
    return "cas" in step.instruction.modifiers


def place_of(instruction: Instruction) -> _Place | None:
    """The register and the offset that an instruction takes an address from."""
    for operand in instruction.operands:
        if isinstance(operand, Address):
            return operand.base, operand.offset
    return None
