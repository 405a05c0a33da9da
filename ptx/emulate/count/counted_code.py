"""Which instructions a run of a basic block executes, for code that counts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from ptx.isa.model import Instruction


@dataclass(slots=True)
class CountedCode:
    """The instructions of each block of a kernel's code, by the block's number.

    Attributes:
        of_warps: those that every warp executes which comes to the block.
        of_threads: those that every thread executes which comes to the block.
        guarded: those whose threads are counted by themselves, as a guard leaves some of them out.
    """

    of_warps: defaultdict[int, list[Instruction]] = field(default_factory=lambda: defaultdict(list))
    of_threads: defaultdict[int, list[Instruction]] = field(
        default_factory=lambda: defaultdict(list)
    )
    guarded: list[Instruction] = field(default_factory=list)

    def begin(self, block: int) -> None:
        """Write a block, anew where a function that had this number was refused halfway."""
        self.of_warps[block] = []
        self.of_threads[block] = []

    def add(self, block: int, instruction: Instruction) -> None:
        """All that come to the block execute this."""
        self.of_warps[block].append(instruction)
        self.of_threads[block].append(instruction)

    def add_guarded(self, block: int, instruction: Instruction) -> int:
        """All warps that come to the block execute this; its number among `guarded`."""
        self.of_warps[block].append(instruction)
        self.guarded.append(instruction)
        return len(self.guarded) - 1
