"""`ControlFlow`: the places of a function where an inserted instruction is outside of branches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptx.emulate.codegen.analysis.block_invariant import dominators
from ptx.emulate.codegen.cfg import Block, CfgBuilder
from ptx.isa.model import Body, Instruction


@dataclass(frozen=True, slots=True)
class InsertionPoint:
    """A place for a new instruction.

    Attributes:
        line: the line of PTX beside it.
        is_after: True if it is after that line.
        branch: the outermost branch that surrounds the given instruction but not this place.
    """

    line: int
    is_after: bool
    branch: Instruction | None = None


class ControlFlow:
    """The basic blocks of a function, with those that every path to and from a block passes.

    Args:
        function: its name.
        body: its instructions.
    """

    def __init__(self, function: str, body: Body) -> None:
        self._blocks = CfgBuilder(function, body).build()
        self._before = dominators(self._blocks)
        self._after = _postdominators(self._blocks)
        self._block_of = {
            step.instruction.line: block.index for block in self._blocks for step in block.steps
        } | {block.branch.line: block.index for block in self._blocks if block.branch is not None}

    def after(self, line: int) -> Iterator[InsertionPoint]:
        """Yield the places after an instruction: beside it, and where its branches end."""
        yield InsertionPoint(line, is_after=True)
        inner = first = self._block_of[line]
        for block in _from_nearest(self._after, first):
            if self._before[block] >> inner & 1 or _first_line(self._blocks[block]) is None:
                continue
            branch = self._branch_around(first, block)
            start = _first_line(self._blocks[block])
            if branch is not None and start is not None:
                yield InsertionPoint(start, is_after=False, branch=branch)
            inner = block

    def before(self, line: int) -> Iterator[InsertionPoint]:
        """Yield the places before an instruction: beside it, and before its branches."""
        yield InsertionPoint(line, is_after=False)
        inner = self._block_of[line]
        for block in _from_nearest(self._before, inner):
            branch = self._blocks[block].branch
            if not self._after[block] >> inner & 1 and branch is not None:
                yield InsertionPoint(branch.line, is_after=False, branch=branch)
                inner = block

    def _branch_around(self, inner: int, outer: int) -> Instruction | None:
        """Return the branch that a block before both decides whether `inner` is executed by."""
        for block in _from_nearest(self._before, inner):
            if self._before[outer] >> block & 1:
                return self._blocks[block].branch
        return None


def _first_line(block: Block) -> int | None:
    if block.steps:
        return block.steps[0].instruction.line or None  # 0 of an implied ret
    return None if block.branch is None else block.branch.line


def _from_nearest(masks: list[int], inner: int) -> Iterator[int]:
    """Yield the other blocks of a mask, the nearest first: those that more blocks surround."""
    others = [block for block in range(len(masks)) if block != inner and masks[inner] >> block & 1]
    yield from sorted(others, key=lambda block: -masks[block].bit_count())


def _postdominators(blocks: list[Block]) -> list[int]:
    """Return for each block the bit mask of the blocks on every path from it to an end."""
    reversed_blocks = [Block(index) for index in range(len(blocks) + 1)]  # the first one is the end
    for block in blocks:
        successors = [successor + 1 for successor in block.successors] or [0]
        for successor in successors:
            reversed_blocks[successor].targets += (block.index + 1,)
    return [mask >> 1 for mask in dominators(reversed_blocks)[1:]]
