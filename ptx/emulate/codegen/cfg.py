"""Basic blocks of a function, and which registers are live where they begin.

A guarded instruction that is not pure becomes a branch around it, so that only `bra` and pure
operations ever carry a guard.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ptx.emulate.codegen.registers import CARRY
from ptx.emulate.codegen.table import Effect, OperationRecord, find_operation, in_table_order
from ptx.emulate.model.errors import UnsupportedInstruction
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import (
    Address,
    Arguments,
    Body,
    FloatImmediate,
    Guard,
    Immediate,
    Instruction,
    Label,
    Register,
    SpecialRegister,
    Symbol,
)
from ptx.isa.registers import registers_in

_NEVER_WRITTEN = (Address, Immediate)
# Reasons why emulated devices do not execute an instruction, by the opcode.
_NOT_HERE = {
    "multimem": "there are those of integers, f16, bf16, f32 and f64, as sm_90 has them, and none "
    "of narrower floats",
    "tcgen05": "of the instructions for tensor memory there are those of one block (.cta_group::1) "
    "with dense matrices: no .cta_group::2, .sp, .ashift, ld.red nor shift, no zero columns "
    "of .ws, and no copies of the shapes .4x256b and .64x128b or from other formats",
}
_WITHOUT_REGISTERS = (Immediate, FloatImmediate, Symbol, SpecialRegister)


@dataclass(slots=True)
class BlockStep:
    """One instruction and its record in the table; `reads` and `writes` are register numbers."""

    instruction: Instruction
    operation: OperationRecord
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()


@dataclass(slots=True)
class Block:
    """Instructions that are executed from the first to the last.

    `guard` and `target`: the branch at its end; without a guard the branch is always taken.
    `following` is the block after it, None if control never gets there; `targets` are those of an
    indexed branch. `branch` is the branch's own instruction. If there is none, `skipped` is the one
    that the branch skips, as its guard may be false. `live`: bit mask of the registers that are
    live at its start; `defined`: that it may write. `unwritten`: the names of those that nothing
    has written where a function starts, by number.
    """

    index: int
    steps: list[BlockStep] = field(default_factory=list)
    guard: Guard | None = None
    target: int | None = None
    following: int | None = None
    targets: tuple[int, ...] = ()
    branch: Instruction | None = None
    skipped: Instruction | None = None
    pure: bool = True
    used: int = 0
    defined: int = 0
    live: int = 0
    unwritten: Mapping[int, str] = field(default_factory=dict)

    @property
    def successors(self) -> Iterator[int]:
        """Blocks that control may go to."""
        if self.target is not None:
            yield self.target
        if self.following is not None and (self.target is None or self.guard is not None):
            yield self.following
        yield from self.targets

    @property
    def only_goes_on(self) -> bool:
        """True if its threads go on to one other block, and wait for nothing."""
        waits = (Effect.SYNCS, Effect.ENDS)
        return len(tuple(self.successors)) == 1 and not any(
            step.operation.effect in waits for step in self.steps
        )


_NEVER_RETURN = frozenset(
    {InstructionKind.RETURN, InstructionKind.EXIT, InstructionKind.TRAP, InstructionKind.BRANCH}
)


class CfgBuilder:
    """Cuts a body into blocks."""

    def __init__(self, function: str, body: Body) -> None:
        self._function = function
        self._body = body
        self._blocks: list[Block] = [Block(0)]
        self._labels: dict[str, int] = {}
        self._branches: list[tuple[Block, str, Instruction]] = []
        self._indexed: list[tuple[Block, Instruction]] = []

    def build(self) -> list[Block]:
        """The blocks, in the order of the text.

        Raises:
            UnsupportedInstruction: an opcode is not in the table, or a branch leads nowhere.
        """
        for statement in self._body.statements:
            if isinstance(statement, Label):
                self._start()
                self._labels[statement.name] = self._last.index
            else:
                self._add(statement)
        self._close_last()
        for block, name, instruction in self._branches:
            block.target = self._find(name, instruction)
        for block, instruction in self._indexed:
            table = instruction.operands[-1]
            if not isinstance(table, Symbol) or table.name not in self._body.tables:
                raise self._rejection(instruction, "it needs a .branchtargets table")
            names = self._body.tables[table.name]
            block.targets = tuple(self._find(name, instruction) for name in names)
        return self._blocks

    @property
    def _last(self) -> Block:
        return self._blocks[-1]

    def _start(self) -> None:
        """Begin a block after the last one, unless the last is empty."""
        if self._last.steps or self._last.target is not None or self._last.guard is not None:
            self._next()

    def _next(self, *, falls: bool = True) -> None:
        block = Block(len(self._blocks))
        if falls:
            self._last.following = block.index
        self._blocks.append(block)

    def _close_last(self) -> None:
        """A body that ends without `ret` returns there."""
        end = Instruction("ret", (), (), None, 0, None)
        self._add(end)
        self._blocks.pop()

    def _find(self, name: str, instruction: Instruction) -> int:
        if name not in self._labels:
            raise self._rejection(instruction, f"there is no label {name} in this function")
        return self._labels[name]

    def _rejection(self, instruction: Instruction, reason: str = "") -> UnsupportedInstruction:
        return UnsupportedInstruction(self._function, instruction.text, instruction.line, reason)

    def _add(self, instruction: Instruction) -> None:
        if instruction.opcode == "bra":
            self._branch(instruction)
            return
        instruction = in_table_order(instruction)
        operation = find_operation(instruction)
        if operation is None:
            raise self._rejection(instruction, _why_not_here(instruction))
        facts = instruction.facts
        if operation.effect is Effect.PURE:
            self._last.steps.append(BlockStep(instruction, operation))
            return
        skip: Block | None = None
        if instruction.guard is not None:
            skip = self._last
            guard = instruction.guard
            skip.guard = Guard(guard.register, not guard.negated)
            skip.skipped = instruction
            self._next()
            instruction = replace(instruction, guard=None)
        elif operation.effect is Effect.SYNCS:
            self._start()
        self._last.steps.append(BlockStep(instruction, operation))
        self._last.pure = False
        if operation.effect is Effect.ENDS:
            if instruction.opcode == "brx":
                self._indexed.append((self._last, instruction))
            self._next(falls=facts.kind not in _NEVER_RETURN)
        elif skip is not None or facts.is_warp_group:
            self._next()
        if skip is not None:
            skip.target = self._last.index

    def _branch(self, instruction: Instruction) -> None:
        target = instruction.operands[0] if instruction.operands else None
        if not isinstance(target, Symbol):
            raise self._rejection(instruction, "a branch needs a label")
        block = self._last
        block.guard = instruction.guard
        block.branch = instruction
        self._branches.append((block, target.name, instruction))
        self._next(falls=instruction.guard is not None)


def _why_not_here(instruction: Instruction) -> str:
    """Why the table lacks an instruction, with what to write instead; "" where nothing is known."""
    opcode, facts = instruction.opcode, instruction.facts
    if facts.kind is InstructionKind.EXCHANGE and "sync" not in facts.words:
        return (
            f"{opcode} without .sync is not part of PTX for sm_70 and newer: use"
            f" {'.'.join((opcode, 'sync', *instruction.modifiers))} with a membermask"
        )
    return _NOT_HERE.get(opcode, "")


def reads_and_writes(step: BlockStep) -> tuple[list[Register], list[Register]]:
    """Registers that an instruction reads and those it writes; a guarded write also reads."""
    instruction, operation = step.instruction, step.operation
    reads: list[Register] = []
    writes: list[Register] = []
    count = operation.writes
    if instruction.opcode == "call":
        first = instruction.operands[0] if instruction.operands else None
        count = 1 if isinstance(first, Arguments) else 0
    for position, operand in enumerate(instruction.operands):
        into = writes if position < count and not isinstance(operand, _NEVER_WRITTEN) else reads
        if isinstance(operand, Register):
            into.append(operand)
        elif not isinstance(operand, _WITHOUT_REGISTERS):
            into.extend(registers_in(operand))
    if operation.reads_carry:
        reads.append(CARRY)
    if operation.writes_carry:
        writes.append(CARRY)
    if instruction.guard is not None:
        reads.append(instruction.guard.register)
    if instruction.guard is not None or operation.updates:
        reads.extend(writes)
    return reads, writes


def mask_of(numbers: Collection[int]) -> int:
    """The bit mask of register numbers."""
    data = bytearray(max(numbers, default=0) // 8 + 1)
    for number in numbers:
        data[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(data, "little")


def bits(mask: int) -> Iterator[int]:
    """Positions of the set bits."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def find_live_registers(blocks: list[Block], numbers: Mapping[str, int]) -> None:
    """Number the registers of each step; set `used`, `defined` and `live` of every block.

    Backward data flow, repeated until nothing changes.
    """
    for block in blocks:
        used: set[int] = set()
        defined: set[int] = set()
        for step in block.steps:
            reads, writes = reads_and_writes(step)
            step.reads = tuple([numbers[register.name] for register in reads])
            step.writes = tuple([numbers[register.name] for register in writes])
            used.update([number for number in step.reads if number not in defined])
            defined.update(step.writes)
        if block.guard is not None and numbers[block.guard.register.name] not in defined:
            used.add(numbers[block.guard.register.name])
        block.used, block.defined = mask_of(used), mask_of(defined)
        block.live = block.used
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            after = 0
            for successor in block.successors:
                after |= blocks[successor].live
            live = block.used | (after & ~block.defined)
            if live != block.live:
                block.live = live
                changed = True
