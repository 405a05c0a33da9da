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
        found = dict(self.ages)
        for register, age in other.ages.items():
            found[register] = min(age, found.get(register, age))
        return _PendingRegisters(found)

    def behind(self, step: BlockStep) -> _PendingRegisters:
        """Return the registers that are pending after an instruction."""
        i, ages = step.instruction, self.ages
        name = i.facts.name
        if name == "wgmma.commit_group":
            return _PendingRegisters({
                each: age if age == _LOADED else min(age + 1, _OLDEST)
                for each, age in ages.items()
            })  # fmt: skip
        if name == "wgmma.wait_group":
            newest = i.operands[0]
            most = newest.value if isinstance(newest, Immediate) else _OLDEST
            return _PendingRegisters({each: age for each, age in ages.items() if age <= most})
        if name == "tcgen05.wait::ld":
            return self.without_loads()
        if _begins(step):
            return self._with(step, 0 if i.opcode == "wgmma" else _LOADED)
        if not ages:
            return self
        age = min((ages[each] for each in step.reads if each in ages), default=None)
        return self._with(step, age if _passes_on(step) else None)

    def without_loads(self) -> _PendingRegisters:
        """Return the results of products alone."""
        return _PendingRegisters({each: age for each, age in self.ages.items() if age != _LOADED})

    def _with(self, step: BlockStep, age: int | None) -> _PendingRegisters:
        """Give the registers that an instruction writes this age; None for finished values."""
        if age is None and not any(each in self.ages for each in step.writes):
            return self
        found = dict(self.ages)
        for each in step.writes:
            found.pop(each, None)
            if age is not None:
                found[each] = age
        return _PendingRegisters(found)


def pending_results(blocks: Sequence[Block], numbers: Mapping[str, int]) -> dict[int, PendingUse]:
    """Return how instructions use pending registers, by the identity of the instruction."""
    if not any(_begins(step) for block in blocks for step in block.steps):
        return {}
    names = {number: name.split("@")[0] for name, number in numbers.items()}
    found: dict[int, PendingUse] = {}
    awaited = _blocks_before_waits(blocks)
    for block, pending in zip(blocks, _before_blocks(blocks), strict=True):
        is_awaited = _ends_before_wait(block, awaited)
        for step in block.steps:
            known = pending.without_loads() if is_awaited and not _begins(step) else pending
            use = _use(step, pending, known.ages, names)
            if use is not None:
                found[id(step.instruction)] = use
            pending = pending.behind(step)
        if block.guard is not None:
            number = numbers[block.guard.register.name]
            if number in (pending.without_loads() if is_awaited else pending).ages:
                branch = block.branch or block.skipped
                assert branch is not None  # the guard is its own
                found[id(branch)] = PendingUse(
                    branch, Action.READS, "products", (number,), (), (names[number],)
                )
    return found


def _before_blocks(blocks: Sequence[Block]) -> list[_PendingRegisters]:
    """Return the registers that may be pending at the start of each block."""
    found = [_PendingRegisters({})] * len(blocks)
    waiting = list(range(len(blocks)))
    while waiting:
        block = blocks[waiting.pop()]
        after = found[block.index]
        for step in block.steps:
            after = after.behind(step)
        for successor in block.successors:
            joined = found[successor].joined(after)
            if joined != found[successor]:
                found[successor] = joined
                waiting.append(successor)
    return found


def _blocks_before_waits(blocks: Sequence[Block]) -> set[int]:
    """The blocks from which every path reaches `tcgen05.wait::ld` before threads synchronise."""
    found: set[int] = set()
    while True:
        more = {
            block.index
            for block in blocks
            if block.index not in found and _comes_to_wait(block, found)
        }
        if not more:
            return found
        found |= more


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
    step: BlockStep, pending: _PendingRegisters, known: _Ages, names: Mapping[int, str]
) -> PendingUse | None:
    """`known`: those of the pending registers that no other than a pure instruction may read."""
    i, ages = step.instruction, pending.ages
    reads: tuple[int, ...] = tuple([each for each in dict.fromkeys(step.reads) if each in ages])
    if _begins(step):
        action = Action.BEGINS
        reads = tuple([each for each in reads if each in set(_factors(step))])
    elif not reads and not any(each in ages for each in step.writes):
        return None
    elif _passes_on(step):
        action = Action.PASSES_ON
    else:
        action = Action.READS
        reads = tuple([each for each in reads if each in known])
        if i.facts.kind is InstructionKind.STORE and i.facts.space == "local":
            reads = ()  # code for a debugger stores every variable
    kind: WorkerKind = "loads" if i.opcode == "tcgen05" else "products"
    return PendingUse(i, action, kind, reads, step.writes, tuple([names[each] for each in reads]))


def _begins(step: BlockStep) -> bool:
    """Return whether it gives registers results that are there later."""
    return step.instruction.facts.name in ("wgmma.mma_async", "tcgen05.ld")


def _factors(step: BlockStep) -> Iterator[int]:
    """Yield the inputs of a product other than its sums, which may come from an earlier product."""
    for each in step.reads:
        if each not in step.writes:
            yield each


def _passes_on(step: BlockStep) -> bool:
    """Return whether an instruction's results are as late as its operands."""
    return step.operation.effect is Effect.PURE
