"""Volatile loads that a loop repeats until their value changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ptx.emulate.codegen.analysis.updates import sources_of, writers_of
from ptx.emulate.codegen.cfg import Block


def polls_of(blocks: Sequence[Block], numbers: Mapping[str, int]) -> set[int]:
    """The volatile loads, by identity, of which a branch out of a loop around them depends.

    `numbers`: of the registers, by name.
    """
    loads = [
        (block, step)
        for block in blocks
        for step in block.steps
        if step.instruction.opcode == "ld" and "volatile" in step.instruction.modifiers
    ]
    found: set[int] = set()
    if not loads:
        return found
    writers = writers_of(blocks)
    deciding = {
        block.index: sources_of(writers, numbers[block.guard.register.name])[0]
        for block in blocks
        if block.guard is not None
    }
    for at, load in loads:
        behind = _reached(blocks, at)
        for index, sources in deciding.items():
            if id(load) not in sources or (index != at.index and index not in behind):
                continue
            comes_back = [at.index in (each, *_reached(blocks, blocks[each]))
                          for each in blocks[index].successors]  # fmt: skip
            if any(comes_back) and not all(comes_back):
                found.add(id(load.instruction))
    return found


def _reached(blocks: Sequence[Block], start: Block) -> set[int]:
    """The blocks that control may come to from the end of one."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        new = set(waiting.pop().successors) - found
        found |= new
        waiting += [blocks[each] for each in new]
    return found
