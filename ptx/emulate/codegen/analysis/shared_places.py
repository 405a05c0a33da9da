"""Accesses by which threads share a location on purpose: speculative reads, polls, updates.

- A speculative read: a compare-and-swap checks its value before it has any effect.
- A poll: a loop repeats a volatile load until its value changes.
- An update: a volatile or relaxed store of a value computed from a volatile or relaxed load of the
  same location.

`SymbolicAddresses` finds the instructions of a function that access the same location, from the
expressions of their addresses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from ptx.emulate.codegen.cfg import Block, BlockStep
from ptx.emulate.codegen.table import Effect
from ptx.emulate.kernel_facts import Update
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import Address, Instruction, Operand, Register

_MOST_DEEP: Final = 16

Value: TypeAlias = tuple[object, ...]
"""The expression of a value; values with equal expressions are equal in the whole function."""


class SymbolicAddress(NamedTuple):
    """An address: what its base is made of, and the offset from there."""

    base: Value
    offset: int


class SymbolicAddresses:
    """The locations of a function's accesses.

    An address may be computed twice, as one of global memory and as a generic one. Both are one
    location if each of their registers is written by one instruction alone. A loop may otherwise
    have changed a register between them.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._writers: dict[str, list[Instruction]] = defaultdict(list)
        self._values: dict[str, Value | None] = {}
        for block in blocks:
            for step in block.steps:
                for operand in step.instruction.operands[: step.operation.writes]:
                    if isinstance(operand, Register):
                        self._writers[operand.name].append(step.instruction)

    def of(self, instruction: Instruction) -> SymbolicAddress | None:
        """Return the address that an instruction accesses; None if it does not access memory."""
        for operand in instruction.operands:
            if isinstance(operand, Address):
                return SymbolicAddress(self._base(operand.base), operand.offset)
        return None

    def _base(self, base: Operand | None) -> Value:
        value = self._value(base, 0) if isinstance(base, Register) else None
        return (base,) if value is None else value

    def _value(self, operand: Operand, depth: int) -> Value | None:
        """Return the expression of an operand; None if it may change from use to use."""
        if not isinstance(operand, Register):
            return (operand,)
        if operand.name not in self._values:
            self._values[operand.name] = None  # what is made of itself may change
            if depth < _MOST_DEEP:
                self._values[operand.name] = self._made(operand, depth)
        return self._values[operand.name]

    def _made(self, register: Register, depth: int) -> Value | None:
        writers = self._writers[register.name]
        if len(writers) != 1 or writers[0].guard is not None:
            return None
        (writer,) = writers
        opcode, sources = writer.opcode, writer.operands[1:]
        facts = writer.facts
        if opcode == "cvta" and facts.space == "global":
            return self._value(sources[0], depth + 1)
        if opcode == "mov" and len(sources) == 1 and isinstance(sources[0], Register):
            return self._value(sources[0], depth + 1)
        if not facts.is_calculation:
            return (register.name,)
        values = [self._value(source, depth + 1) for source in sources]
        if None in values:
            return None
        return (opcode, writer.modifiers, *values)


def guessed_reads(blocks: Sequence[Block]) -> set[int]:
    """Return the loads of a function, by identity, that a compare-and-swap follows on every path.

    The compare-and-swap has the same address. Such a load is speculative: if its value is old, the
    swap fails and returns the present one. A load that may decide that there is nothing to swap is
    not speculative.
    """
    swaps = [step.instruction for block in blocks for step in block.steps if _is_swap(step)]
    if not swaps:
        return set()
    addresses = SymbolicAddresses(blocks)
    swapped = {addresses.of(swap) for swap in swaps}
    return {
        id(step.instruction)
        for block in blocks
        for index, step in enumerate(block.steps)
        if step.instruction.facts.kind is InstructionKind.LOAD
        and (address := addresses.of(step.instruction)) in swapped
        and _is_checked(blocks, block, index + 1, _Swaps(addresses, address))
    }


class _Swaps:
    """The compare-and-swaps of a place."""

    def __init__(self, addresses: SymbolicAddresses, address: SymbolicAddress | None) -> None:
        self._places = addresses
        self._place = address

    def any_of(self, steps: Iterable[BlockStep]) -> bool:
        """Return whether one of these is one."""
        return any(
            _is_swap(step) and self._places.of(step.instruction) == self._place for step in steps
        )


def _is_checked(blocks: Sequence[Block], block: Block, start: int, swaps: _Swaps) -> bool:
    if swaps.any_of(block.steps[start:]):
        return True
    waiting, visited = [block], {block.index}
    while waiting:
        current = waiting.pop()
        following = list(current.successors)
        if not following and current.steps[-1].instruction.facts.kind is not InstructionKind.TRAP:
            return False  # the function ends, and nothing was swapped
        for successor in following:
            if successor not in visited and not swaps.any_of(blocks[successor].steps):
                visited.add(successor)
                waiting.append(blocks[successor])
    return True


def _is_swap(step: BlockStep) -> bool:
    return "cas" in step.instruction.facts.words


Writers = dict[int, list[BlockStep]]


def updates_of(blocks: Sequence[Block], first: int) -> dict[int, Update]:
    """The loads and stores of such updates, by identity; places are numbered from `first` on.

    `p[0] = p[0] + 1` is one, as the sum uses the loaded value. A flag that is polled and then set
    is none.
    """
    strong = [
        (step.instruction.facts.kind, step)
        for block in blocks
        for step in block.steps
        if step.instruction.facts.is_strong
    ]
    loads = [step for kind, step in strong if kind is InstructionKind.LOAD]
    stores = [step for kind, step in strong if kind is InstructionKind.STORE]
    updates: dict[int, Update] = {}
    if not loads or not stores:
        return updates
    writers, addresses = writers_of(blocks), SymbolicAddresses(blocks)
    numbers: dict[object, int] = {}
    for store in stores:
        address, value = addresses.of(store.instruction), store.instruction.operands[-1]
        if not isinstance(value, Register):
            continue
        sources, is_idempotent = sources_of(writers, store.reads[-1])
        sources_of_update = [
            s for s in loads if id(s) in sources and addresses.of(s.instruction) == address
        ]
        if sources_of_update:
            number = numbers.setdefault(address, first + len(numbers))
            update = Update(number, is_idempotent)
            updates |= {
                id(update_step.instruction): update for update_step in (*sources_of_update, store)
            }
    return updates


def writers_of(blocks: Sequence[Block]) -> Writers:
    """Return the instructions that write each register."""
    writers: Writers = defaultdict(list)
    for block in blocks:
        for step in block.steps:
            for register in step.writes:
                writers[register].append(step)
    return writers


def sources_of(writers: Writers, register: int) -> tuple[set[int], bool]:
    """The steps that make a register's value, by identity, as far as loads.

    Also whether the last of them, moves apart, give the same when they are repeated.
    """
    steps: set[int] = set()
    is_idempotent = True
    waiting = [(register, True)]
    while waiting:
        source, is_last = waiting.pop()
        for step in writers.get(source, ()):
            if id(step) in steps:
                continue
            steps.add(id(step))
            facts = step.instruction.facts
            passes_on = is_last and facts.copies_value and facts.passes_operand
            if is_last and not passes_on:
                is_idempotent &= facts.is_idempotent
            if step.operation.effect is Effect.PURE:
                waiting += [(read, passes_on) for read in step.reads]
    return steps, is_idempotent


def polls_of(blocks: Sequence[Block], numbers: Mapping[str, int]) -> set[int]:
    """The volatile loads, by identity, on which a branch out of a loop around them depends.

    Those of global memory are left out. `numbers`: of the registers, by name.
    """
    loads = [
        (block, step)
        for block in blocks
        for step in block.steps
        if step.instruction.facts.is_volatile
        and step.instruction.facts.kind is InstructionKind.LOAD
        and step.instruction.facts.space != "global"
    ]
    if not loads:
        return set()
    writers = writers_of(blocks)
    reached: dict[int, set[int]] = {}
    sources: dict[int, set[int]] = {}
    polls: set[int] = set()

    def leads_to(start: int, end: int) -> bool:
        if start not in reached:
            reached[start] = _reached(blocks, start)
        return start == end or end in reached[start]

    for block, load in loads:
        for branching in blocks:
            if branching.guard is None or not leads_to(block.index, branching.index):
                continue
            comes_back = [leads_to(next_one, block.index) for next_one in branching.successors]
            if not any(comes_back) or all(comes_back):
                continue
            if branching.index not in sources:
                sources[branching.index], _ = sources_of(
                    writers, numbers[branching.guard.register.name]
                )
            if id(load) in sources[branching.index]:
                polls.add(id(load.instruction))
    return polls


def _reached(blocks: Sequence[Block], start: int) -> set[int]:
    """Return the blocks that control may reach from the end of a block."""
    reached: set[int] = set()
    waiting = [start]
    while waiting:
        new = set(blocks[waiting.pop()].successors) - reached
        reached |= new
        waiting += new
    return reached
