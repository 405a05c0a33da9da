"""What of a kernel an ordered launch may do late: its asynchronous copies, and its stores.

Stores are late only where blocks can wait for each other's: where threads read global memory by
instructions that see what other blocks write meanwhile. Without them no block can know that
another one has written. PTX ISA, "Memory Consistency Model".
"""

from __future__ import annotations

from typing import Final

from ptx.emulate.codegen.cfg import Block, BlockStep
from ptx.emulate.kernel_facts import Late
from ptx.isa.instruction_facts import GENERIC, InstructionKind, facts_of

_OF_ALL_BLOCKS: Final = ("global", GENERIC)


def may_be_late(blocks: list[Block], others: Late) -> Late:
    """What may be late in a function, or in `others` of the kernel."""
    steps = [step for block in blocks for step in block.steps]
    copies = any(facts_of(step.instruction).may_be_late for step in steps)
    read = {number for step in steps for number in step.reads}
    return Late(
        copies or others.copies, others.stores or any(_sees_others(step, read) for step in steps)
    )


def _sees_others(step: BlockStep, read: set[int]) -> bool:
    """Whether an instruction reads what other blocks may write in the same launch."""
    facts = facts_of(step.instruction)
    if facts.space not in _OF_ALL_BLOCKS:
        return False
    if facts.kind is InstructionKind.LOAD:
        return facts.is_strong or facts.reads_past_l1
    return facts.kind is InstructionKind.ATOMIC and bool(read.intersection(step.writes))
