"""Registers whose values may still be pending: results of `wgmma`, and of `tcgen05.ld`.

PTX ISA, "wgmma.wait_group": to access the registers of a product before its group has been waited
for is undefined; so it is with `tcgen05.ld` before `tcgen05.wait::ld`. If an access may come too
early on some path, the race check follows it at run time.

Compilers move arithmetic over the wait, which is inline assembly without these registers. So the
result of a pure instruction is as early as its operands, and any other instruction that reads such
a value is reported. Triton's compiler moves stores of `tcgen05.ld` results over the wait, too: they
are accepted before the wait, unless threads synchronise in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ptx.emulate.codegen.cfg import Block, BlockStep
from ptx.emulate.codegen.table import Effect
from ptx.emulate.kernel_facts import Action, PendingUse, WorkerKind
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import Immediate

_LOADED: Final = -1
_OLDEST: Final = 64  # groups; what is older counts as that old
_Ages = Mapping[int, int]


class _PendingRegisters(NamedTuple):
    """The registers that may hold unfinished results.

    `ages`: how many groups have been committed since the product, at least, or _LOADED.
    """

    ages: _Ages

    def joined(self, other: _PendingRegisters) -> _PendingRegisters:
        ages = dict(self.ages)
        for register, age in other.ages.items():
            ages[register] = min(age, ages.get(register, age))
        return _PendingRegisters(ages)

    def after_step(self, step: BlockStep) -> _PendingRegisters:
        """Return the registers that are pending after an instruction."""
        i, ages = step.instruction, self.ages
        name = i.facts.name
        if name == "wgmma.commit_group":
            return _PendingRegisters(
                {
                    register: age if age == _LOADED else min(age + 1, _OLDEST)
                    for register, age in ages.items()
                }
            )
        if name == "wgmma.wait_group":
            newest = i.operands[0]
            most = newest.value if isinstance(newest, Immediate) else _OLDEST
            return _PendingRegisters(
                {register: age for register, age in ages.items() if age <= most}
            )
        if name == "tcgen05.wait::ld":
            return self.without_loads()
        if _begins(step):
            return self._with(step, 0 if i.opcode == "wgmma" else _LOADED)
        if not ages:
            return self
        age = min((ages[register] for register in step.reads if register in ages), default=None)
        return self._with(step, age if _passes_on(step) else None)

    def without_loads(self) -> _PendingRegisters:
        """Return the results of products alone."""
        return _PendingRegisters(
            {register: age for register, age in self.ages.items() if age != _LOADED}
        )

    def _with(self, step: BlockStep, age: int | None) -> _PendingRegisters:
        """Give the registers that an instruction writes this age; None for finished values."""
        if age is None and not any(register in self.ages for register in step.writes):
            return self
        ages = dict(self.ages)
        for register in step.writes:
            ages.pop(register, None)
            if age is not None:
                ages[register] = age
        return _PendingRegisters(ages)


def pending_results(blocks: Sequence[Block], numbers: Mapping[str, int]) -> dict[int, PendingUse]:
    """Return how instructions use pending registers, by the identity of the instruction."""
    if not any(_begins(step) for block in blocks for step in block.steps):
        return {}
    names = {number: name.split("@")[0] for name, number in numbers.items()}
    uses: dict[int, PendingUse] = {}
    awaited = _blocks_before_waits(blocks)
    for block, pending in zip(blocks, _before_blocks(blocks), strict=True):
        is_awaited = _ends_before_wait(block, awaited)
        for step in block.steps:
            unawaited = pending.without_loads() if is_awaited and not _begins(step) else pending
            use = _use(step, pending, unawaited.ages, names)
            if use is not None:
                uses[id(step.instruction)] = use
            pending = pending.after_step(step)
        if block.guard is not None:
            number = numbers[block.guard.register.name]
            if number in (pending.without_loads() if is_awaited else pending).ages:
                branch = block.branch or block.skipped
                assert branch is not None  # the guard is its own
                uses[id(branch)] = PendingUse(
                    branch, Action.READS, "products", (number,), (), (names[number],)
                )
    return uses


def _before_blocks(blocks: Sequence[Block]) -> list[_PendingRegisters]:
    """Return the registers that may be pending at the start of each block."""
    pending = [_PendingRegisters({})] * len(blocks)
    waiting = list(range(len(blocks)))
    while waiting:
        block = blocks[waiting.pop()]
        after = pending[block.index]
        for step in block.steps:
            after = after.after_step(step)
        for successor in block.successors:
            joined = pending[successor].joined(after)
            if joined != pending[successor]:
                pending[successor] = joined
                waiting.append(successor)
    return pending


def _blocks_before_waits(blocks: Sequence[Block]) -> set[int]:
    """The blocks from which every path reaches `tcgen05.wait::ld` before threads synchronise."""
    blocks_found: set[int] = set()
    while True:
        added = {
            block.index
            for block in blocks
            if block.index not in blocks_found and _comes_to_wait(block, blocks_found)
        }
        if not added:
            return blocks_found
        blocks_found |= added


def _comes_to_wait(block: Block, awaited: set[int]) -> bool:
    first = block.steps[0] if block.steps else None
    if first is not None and first.operation.effect is Effect.SYNCS:
        return first.instruction.facts.name == "tcgen05.wait::ld"
    return _ends_before_wait(block, awaited)


def _ends_before_wait(block: Block, awaited: set[int]) -> bool:
    if any(step.operation.effect is Effect.ENDS for step in block.steps):
        return False
    successors = set(block.successors)
    return bool(successors) and successors <= awaited


def _use(
    step: BlockStep, pending: _PendingRegisters, unawaited: _Ages, names: Mapping[int, str]
) -> PendingUse | None:
    """`unawaited`: pending registers that only a pure instruction may read."""
    i, ages = step.instruction, pending.ages
    reads: tuple[int, ...] = tuple(
        [register for register in dict.fromkeys(step.reads) if register in ages]
    )
    if _begins(step):
        action = Action.BEGINS
        reads = tuple([register for register in reads if register in set(_factors(step))])
    elif not reads and not any(register in ages for register in step.writes):
        return None
    elif _passes_on(step):
        action = Action.PASSES_ON
    else:
        action = Action.READS
        reads = tuple([register for register in reads if register in unawaited])
        if i.facts.kind is InstructionKind.STORE and i.facts.space == "local":
            reads = ()  # code for a debugger stores every variable
    kind: WorkerKind = "loads" if i.opcode == "tcgen05" else "products"
    return PendingUse(
        i, action, kind, reads, step.writes, tuple([names[register] for register in reads])
    )


def _begins(step: BlockStep) -> bool:
    """Return whether it gives registers results that are there later."""
    return step.instruction.facts.name in ("wgmma.mma_async", "tcgen05.ld")


def _factors(step: BlockStep) -> Iterator[int]:
    """Yield the inputs of a product other than its sums, which may come from an earlier product."""
    for register in step.reads:
        if register not in step.writes:
            yield register


def _passes_on(step: BlockStep) -> bool:
    """Return whether an instruction's results are as late as its operands."""
    return step.operation.effect is Effect.PURE
