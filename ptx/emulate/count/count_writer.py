"""Code that counts executed instructions; it is generated only for launches that count."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from ptx.emulate.codegen.cfg import Block, BlockStep
from ptx.emulate.codegen.emitter import Emitter
from ptx.emulate.codegen.instrument import BlockInstrument
from ptx.isa.model import Guard, Instruction, Register


@dataclass(slots=True)
class CountedCode:
    """The instructions of each block of code that counts, by the block's number.

    Attributes:
        of_warps: those executed by every warp that reaches the block.
        of_threads: those executed by every thread that reaches the block.
        guarded: those whose threads are counted separately, as a guard excludes some of them.
    """

    of_warps: defaultdict[int, list[Instruction]] = field(default_factory=lambda: defaultdict(list))
    of_threads: defaultdict[int, list[Instruction]] = field(
        default_factory=lambda: defaultdict(list)
    )
    guarded: list[Instruction] = field(default_factory=list)

    def begin(self, block: int) -> None:
        """Begin a block, again if a function with this number was rejected halfway."""
        self.of_warps[block] = []
        self.of_threads[block] = []

    def add(self, block: int, instruction: Instruction) -> None:
        """Add an instruction that all threads reaching the block execute."""
        self.of_warps[block].append(instruction)
        self.of_threads[block].append(instruction)

    def add_guarded(self, block: int, instruction: Instruction) -> int:
        """Add one that all warps reaching the block execute; return its number among `guarded`."""
        self.of_warps[block].append(instruction)
        self.guarded.append(instruction)
        return len(self.guarded) - 1


class CountWriter(BlockInstrument):
    """Writes code that counts.

    Attributes:
        counted: which instructions each block has.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.counted: CountedCode = CountedCode()

    def begin_block(self, e: Emitter, block: Block) -> None:
        """List no instruction of the block yet."""
        self.counted.begin(e.here)

    def execute_block(self, e: Emitter) -> None:
        """Write code that counts the block for all threads of the fibre from here on."""
        e.line(f"{self.follower}.block(f, {e.here})")

    def execute(self, e: Emitter, step: BlockStep, *, is_skipped: bool) -> None:
        """Write code that counts an instruction; its warps are counted at a guard that skips it."""
        counted, i = self.counted, step.instruction
        if i.guard is not None:
            number = counted.add_guarded(e.here, i)
            e.line(f"{self.follower}.guard(f, {number}, {_condition(e, i.guard)})")
        elif (choice := _choice(e, i)) is not None:
            number = counted.add_guarded(e.here, i)
            e.line(f"{self.follower}.chosen_branch(f, {number}, {choice})")
        elif is_skipped:
            counted.of_threads[e.here].append(i)
        else:
            counted.add(e.here, i)

    def end_block(self, e: Emitter, block: Block) -> None:
        """Write code for the branch at the block's end, or for the guard of an instruction."""
        counted, branch = self.counted, block.branch
        if block.skipped is not None:
            counted.of_warps[e.here].append(block.skipped)
        elif branch is not None and branch.guard is not None:
            number = counted.add_guarded(e.here, branch)
            e.line(f"{self.follower}.branch(f, {number}, {_condition(e, branch.guard)})")
        elif branch is not None:
            counted.add(e.here, branch)

    def access(self, e: Emitter, addresses: str, offset: int, site: str) -> None:
        """Write code that counts an access."""
        e.line(f"{self.follower}.count_access(f, {addresses}, {offset}, {site})")


def _choice(e: Emitter, i: Instruction) -> str | None:
    """Return the value that chooses a target: the index of `brx.idx`, a call's address."""
    if i.opcode == "brx":
        return e.value(i.operands[0], "u32")
    if i.opcode == "call":
        for operand in i.operands:
            if isinstance(operand, Register):
                return e.value(operand, "u64")
    return None


def _condition(e: Emitter, guard: Guard) -> str:
    value = e.value(guard.register, "pred")
    return f"~{value}" if guard.negated else value
