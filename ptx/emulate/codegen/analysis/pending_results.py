"""Registers whose values may not be there yet: results of `wgmma`, and of `tcgen05.ld`.

PTX ISA, "wgmma.wait_group": to access the registers of a product before its group has been waited
for is undefined; so it is with `tcgen05.ld` before `tcgen05.wait::ld`. What may be too early by the
code alone is followed when it is executed, as whether it is depends on the way there.

A copy is none: between two inline assemblies NVRTC copies what it keeps in one register in the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ptx.emulate.check.pending_registers import Action, PendingUse
from ptx.emulate.check.tensor_workers import WorkerKind
from ptx.emulate.codegen.cfg import Block, BlockStep
from ptx.isa.model import Immediate

_Numbers = frozenset[int]
_NONE: Final[_Numbers] = frozenset()


class _Pending(NamedTuple):
    """The registers that may hold results which are not there.

    Attributes:
        begun: of products whose group was not committed; committed: of others.
        loaded: of `tcgen05.ld`.
    """

    begun: _Numbers = _NONE
    committed: _Numbers = _NONE
    loaded: _Numbers = _NONE

    @property
    def every(self) -> _Numbers:
        return self.begun | self.committed | self.loaded

    def joined(self, other: _Pending) -> _Pending:
        return _Pending(*(one | two for one, two in zip(self, other, strict=True)))

    def with_copies(self, step: BlockStep) -> _Pending:
        """A copy of any of these is as them."""
        return _Pending(
            *(
                each | frozenset(step.writes) if each.intersection(step.reads) else each
                for each in self.without(step)
            )
        )

    def without(self, step: BlockStep) -> _Pending:
        """What an instruction writes has another value."""
        return _Pending(*(each.difference(step.writes) for each in self))


def pending_results(blocks: Sequence[Block], numbers: Mapping[str, int]) -> dict[int, PendingUse]:
    """What instructions do with such registers, by the identity of the instruction."""
    if not any(_begins(step) for block in blocks for step in block.steps):
        return {}
    names = {number: name.split("@")[0] for name, number in numbers.items()}
    found: dict[int, PendingUse] = {}
    for block, pending in zip(blocks, _before_blocks(blocks), strict=True):
        for step in block.steps:
            use = _use(step, pending, names)
            if use is not None:
                found[id(step.instruction)] = use
            pending = _behind(step, pending)
    return found


def _before_blocks(blocks: Sequence[Block]) -> list[_Pending]:
    """What may be pending where each block begins."""
    found = [_Pending()] * len(blocks)
    waiting = list(range(len(blocks)))
    while waiting:
        block = blocks[waiting.pop()]
        after = found[block.index]
        for step in block.steps:
            after = _behind(step, after)
        for successor in block.successors:
            joined = found[successor].joined(after)
            if joined != found[successor]:
                found[successor] = joined
                waiting.append(successor)
    return found


def _behind(step: BlockStep, pending: _Pending) -> _Pending:
    words = step.instruction.modifiers
    if _begins(step):
        written = frozenset(step.writes)
        pending = pending.without(step)
        if step.instruction.opcode == "wgmma":
            return pending._replace(begun=pending.begun | written)
        return pending._replace(loaded=pending.loaded | written)
    if step.instruction.opcode == "wgmma" and words[0] == "commit_group":
        return pending._replace(begun=_NONE, committed=pending.committed | pending.begun)
    if step.instruction.opcode == "wgmma" and words[0] == "wait_group":
        (newest,) = step.instruction.operands
        every = isinstance(newest, Immediate) and newest.value == 0
        return pending._replace(committed=_NONE) if every else pending
    if step.instruction.opcode == "tcgen05" and words[0] == "wait::ld":
        return pending._replace(loaded=_NONE)
    if not any(pending):
        return pending
    return pending.with_copies(step) if _is_copy(step) else pending.without(step)


def _use(step: BlockStep, pending: _Pending, names: Mapping[int, str]) -> PendingUse | None:
    every = pending.every
    i = step.instruction
    if _begins(step):
        action, read = Action.BEGINS, tuple(_factors(step)) if i.opcode == "wgmma" else step.reads
    elif not every.intersection((*step.reads, *step.writes)):
        return None
    elif _is_copy(step):
        action, read = Action.COPIES, step.reads
    else:
        action, read = Action.READS, () if _is_own_memory(step) else step.reads
    if action is not Action.COPIES:
        read = tuple(each for each in dict.fromkeys(read) if each in every)
    kind: WorkerKind = "loads" if i.opcode == "tcgen05" else "products"
    return PendingUse(i, action, kind, read, step.writes, tuple(names[each] for each in read))


def _begins(step: BlockStep) -> bool:
    """Whether it gives registers results that are there later."""
    i = step.instruction
    if i.opcode == "wgmma":
        return i.modifiers[0] == "mma_async"
    return i.opcode == "tcgen05" and i.modifiers[0] == "ld"


def _factors(step: BlockStep) -> Iterator[int]:
    """What a product takes beside its sums, which may be those of one before."""
    for each in step.reads:
        if each not in step.writes:
            yield each


def _is_copy(step: BlockStep) -> bool:
    return step.instruction.opcode == "mov"


def _is_own_memory(step: BlockStep) -> bool:
    """A store to local memory, as code for a debugger has of every variable."""
    return step.instruction.opcode == "st" and "local" in step.instruction.modifiers
