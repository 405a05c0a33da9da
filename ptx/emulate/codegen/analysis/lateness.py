"""What of a kernel an ordered launch may do late: its asynchronous copies, and its stores.

Stores are late only where blocks can wait for each other's: where threads read global memory by
instructions that see what other blocks write meanwhile. Without them no block can know that
another one has written. PTX ISA, "Memory Consistency Model".
"""

from __future__ import annotations

from typing import Final

from ptx.emulate.codegen.cfg import Block, BlockStep
from ptx.emulate.kernel_facts import Late

_ASYNCHRONOUS: Final = (
    "cp.async",
    "cp.reduce.async",
    "st.async",
    "red.async",
    "wgmma.",
    "tcgen05.",
)
_STRONG: Final = frozenset({"volatile", "relaxed", "acquire", "mmio", "cv", "cg"})
_OWN_SPACES: Final = frozenset({
    "shared", "shared::cta", "shared::cluster", "local", "const", "param", "param::entry",
    "param::func",
})  # fmt: skip


def may_be_late(blocks: list[Block], others: Late) -> Late:
    """What may be late in a function, or in `others` of the kernel."""
    steps = [step for block in blocks for step in block.steps]
    copies = any(step.operation.name.startswith(_ASYNCHRONOUS) for step in steps)
    read = {number for step in steps for number in step.reads}
    return Late(
        copies or others.copies, others.stores or any(_sees_others(step, read) for step in steps)
    )


def _sees_others(step: BlockStep, read: set[int]) -> bool:
    """Whether an instruction reads what other blocks may write in the same launch."""
    modifiers = frozenset(step.instruction.modifiers)
    if modifiers & _OWN_SPACES:
        return False
    if step.instruction.opcode == "ld":
        return bool(modifiers & _STRONG)
    return step.instruction.opcode == "atom" and bool(read.intersection(step.writes))
