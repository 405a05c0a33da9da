"""Volatile loads that a loop repeats until their value changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptx.emulate.codegen.analysis.updates import sources_of, writers_of
from ptx.emulate.codegen.cfg import Block


def polls_of(blocks: Sequence[Block], numbers: Mapping[str, int]) -> set[int]:
    """The volatile loads, by identity, on which a branch out of a loop around them depends.

    Those of global memory are left out. `numbers`: of the registers, by name.
    """
    loads = [
        (block, step)
        for block in blocks
        for step in block.steps
        if step.instruction.opcode == "ld"
        and "volatile" in step.instruction.modifiers
        and "global" not in step.instruction.modifiers
    ]
    if not loads:
        return set()
    writers = writers_of(blocks)
    reached: dict[int, set[int]] = {}
    sources: dict[int, set[int]] = {}
    found: set[int] = set()

    def leads_to(start: int, end: int) -> bool:
        if start not in reached:
            reached[start] = _reached(blocks, start)
        return start == end or end in reached[start]

    for block, load in loads:
        for each in blocks:
            if each.guard is None or not leads_to(block.index, each.index):
                continue
            comes_back = [leads_to(next_one, block.index) for next_one in each.successors]
            if not any(comes_back) or all(comes_back):
                continue
            if each.index not in sources:
                sources[each.index], _ = sources_of(writers, numbers[each.guard.register.name])
            if id(load) in sources[each.index]:
                found.add(id(load.instruction))
    return found


def _reached(blocks: Sequence[Block], start: int) -> set[int]:
    """The blocks that control may come to from the end of one."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        new = set(blocks[waiting.pop()].successors) - found
        found |= new
        waiting += new
    return found
