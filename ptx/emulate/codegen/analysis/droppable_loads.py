"""Loads whose value some threads may drop, because the compiler moved them before a condition.

A value is needed where an instruction other than a copy, a calculation or a selection reads it.
A load is not droppable if each path from it needs its value. Then following the value is no use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ptx.emulate.codegen.cfg import Block, BlockStep, mask_of
from ptx.emulate.codegen.table import Effect
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import Register

COMBINES: Final = ("and", "or")
_FOLLOWED: Final = ("global", "shared")
_ALL: Final = -1  # the mask of all registers


def is_plain_load(step: BlockStep) -> bool:
    """Return whether an instruction is a load that orders nothing."""
    facts = step.instruction.facts
    return facts.kind is InstructionKind.LOAD and not (facts.is_strong or facts.is_asynchronous)


def is_plain_store(step: BlockStep) -> bool:
    """Return whether an instruction is a store that orders nothing."""
    facts = step.instruction.facts
    return facts.kind is InstructionKind.STORE and not (facts.is_strong or facts.is_asynchronous)


def droppable_loads(
    blocks: Sequence[Block], live: Sequence[Sequence[int]], guards: Sequence[int]
) -> list[BlockStep]:
    """Return the plain loads of global and shared memory whose value a path may drop.

    Args:
        blocks: of a function.
        live: by block, the mask of the registers that are read after each step.
        guards: by block, the mask of the register that its branch reads.
    """
    if not any(_may_be_followed(step) for block in blocks for step in block.steps):
        return []
    needed = _needed_at_starts(blocks, live, guards)
    found: list[BlockStep] = []
    for block in blocks:
        after = _needed_at_end(block, needed, guards)
        for step, live_after in zip(
            reversed(block.steps), reversed(live[block.index]), strict=True
        ):
            writes = mask_of(step.writes)
            if _may_be_followed(step) and writes & live_after and not writes & after:
                found.append(step)
            after = _needed_before(step, after, live_after)
    return found


def _may_be_followed(step: BlockStep) -> bool:
    return is_plain_load(step) and step.instruction.facts.space in _FOLLOWED


def _needed_at_starts(
    blocks: Sequence[Block], live: Sequence[Sequence[int]], guards: Sequence[int]
) -> list[int]:
    """Return the registers that each path from the start of a block needs, by block."""
    needed = [_ALL] * len(blocks)
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            mask = _needed_at_end(block, needed, guards)
            for step, live_after in zip(
                reversed(block.steps), reversed(live[block.index]), strict=True
            ):
                mask = _needed_before(step, mask, live_after)
            if mask != needed[block.index]:
                needed[block.index] = mask
                changed = True
    return needed


def _needed_at_end(block: Block, needed: Sequence[int], guards: Sequence[int]) -> int:
    successors = tuple(block.successors)
    mask = _ALL if successors else 0
    for successor in successors:
        mask &= needed[successor]
    return mask | guards[block.index]


def _needed_before(step: BlockStep, needed: int, live_after: int) -> int:
    """Return the registers that are needed before a step, by those after it."""
    reads, writes = mask_of(step.reads), mask_of(step.writes)
    if is_plain_load(step) or is_plain_store(step):
        return needed & ~writes | reads
    if step.operation.effect is not Effect.PURE:
        return live_after & ~writes | reads
    if not needed & writes:
        return needed
    return needed & ~writes | (reads if _needs_all(step) else 0)


def _needs_all(step: BlockStep) -> bool:
    """Return whether a result depends on all operands; else it may leave some out."""
    i = step.instruction
    if i.guard is not None or i.opcode in ("selp", "slct"):
        return False
    if i.opcode == "setp":
        return len(i.operands) < 4 or not any(word in i.facts.words for word in COMBINES)
    return i.opcode not in COMBINES or not all(isinstance(each, Register) for each in i.operands)
