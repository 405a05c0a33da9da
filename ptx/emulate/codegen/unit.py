"""One function of a kernel, from which its code is made."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from ptx.emulate.codegen.analysis.droppable_loads import droppable_loads
from ptx.emulate.codegen.analysis.integer_divisions import integer_divisions
from ptx.emulate.codegen.analysis.pending_results import pending_results
from ptx.emulate.codegen.analysis.unwritten_registers import unwritten_registers
from ptx.emulate.codegen.cfg import Block, BlockStep, mask_of
from ptx.emulate.codegen.scope import FunctionScope
from ptx.emulate.kernel_facts import PendingUse
from ptx.emulate.memory.layout import ModuleLayout
from ptx.emulate.memory.site import Site
from ptx.emulate.threads.fibre import GONE
from ptx.isa.model import Function


class Unit:
    """One function of the kernel, from which its code is made.

    Attributes:
        first: the number of its first block.
        functions: number of each function of the kernel that is called by its name.
        kept: bit mask of the registers that stay live although nothing reads them.
        sites: the accesses of its code; lane_sites: those of the code for single threads so far.
    """

    def __init__(
        self, layout: ModuleLayout, blocks: list[Block], scope: FunctionScope, kept: int
    ) -> None:
        self.layout = layout
        self.function: Function = scope.function
        self.blocks = blocks
        self.scope = scope
        self.kept = kept
        self.first = 0
        self.sites: list[Site] = []
        self.lane_sites: list[Site] = []
        self.functions: dict[str, int] = {}
        params = [param.name for param in scope.function.params]
        blocks[0].unwritten = unwritten_registers(blocks, scope.numbers, params)
        self.pending: dict[int, PendingUse] = pending_results(blocks, scope.numbers)
        self.divisions: dict[int, bool] = integer_divisions(blocks)

    @cached_property
    def droppable_loads(self) -> list[BlockStep]:
        """The loads whose value some threads may drop."""
        guards = [
            0 if block.guard is None else 1 << self.scope.number(block.guard.register)
            for block in self.blocks
        ]
        live = [self.live_after_each(block) for block in self.blocks]
        return droppable_loads(self.blocks, live, guards)

    def live_after(self, block: Block) -> int:
        """Bit mask of the registers that are read after a block."""
        live = self.kept
        for successor in block.successors:
            live |= self.blocks[successor].live
        return live

    def live_after_each(self, block: Block) -> list[int]:
        """Return for each step of a block the bit mask of the registers that are read after it."""
        live = self.live_after(block)
        if block.guard is not None:
            live |= 1 << self.scope.number(block.guard.register)
        live_masks: list[int] = []
        for step in reversed(block.steps):
            live_masks.append(live)
            live &= ~mask_of(step.writes)
            live |= mask_of(step.reads)
        live_masks.reverse()
        return live_masks

    def registers_at_once(self) -> int:
        """Return the largest number of 32-bit registers that are live at once."""
        of_words: defaultdict[int, int] = defaultdict(int)
        for number, (kind, width) in enumerate(
            zip(self.scope.stored_kind, self.scope.width, strict=True)
        ):
            if kind != "pred":  # they have registers of their own
                of_words[-(-width // 4)] |= 1 << number
        return max(
            (
                sum(words * (live & mask).bit_count() for words, mask in of_words.items())
                for block in self.blocks
                for live in (block.live, *self.live_after_each(block))
            ),
            default=0,
        )

    def following(self, block: Block) -> int:
        """Return the number of the block after it, or GONE if control never gets there."""
        return self.first + block.following if block.following is not None else GONE
