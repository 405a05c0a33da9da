"""Facts of a kernel's code: its basic blocks, functions and accesses, without the code itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Literal

import numpy as np

from ptx.emulate.memory.device_memory import Use
from ptx.emulate.memory.pointer_extents import Origins
from ptx.emulate.memory.site import Site
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import Places
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import Instruction


@dataclass(frozen=True, slots=True)
class Update:
    """A load and a store that update a place by strong accesses, without an atomic operation.

    Attributes:
        place: its number in the kernel.
        is_idempotent: whether nothing is lost where another thread stores the same.
    """

    place: int
    is_idempotent: bool


WorkerKind = Literal["products", "work", "loads", "stores"]
"""The unit of a tensor core that does the work; each unit has its own kind of wait."""


class Action(Enum):
    """The effect of an instruction on registers whose results may be pending.

    BEGINS: a product or a load that has them as results. PASSES_ON: a copy, whose results are
    pending as long as its operands. READS: anything else.
    """

    BEGINS = auto()
    PASSES_ON = auto()
    READS = auto()


@dataclass(frozen=True, slots=True)
class PendingUse:
    """An instruction with such registers.

    Attributes:
        kind: which work it begins.
        reads: the registers that it reads, by their numbers, with their `names`.
        writes: those that it writes.
    """

    instruction: Instruction
    action: Action
    kind: WorkerKind
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LateWork:
    """The work of a kernel that may be done later than its instruction, or is.

    Attributes:
        copies: asynchronous copies, and what `wgmma` reads.
        stores: stores that other blocks may wait to see.
    """

    copies: bool = False
    stores: bool = False


NOTHING_LATE = LateWork()


class Instrument:
    """Writes code for an observer into the code of one kernel (`codegen/instrument.py`).

    Attributes:
        follower: what its code calls, which the observer returns by `Observer.follow`.
    """

    def __init__(self, number: int) -> None:
        self.follower: str = f"f.blocks.followers[{number}]"

    @classmethod
    def is_needed(cls, code: KernelFacts) -> bool:
        """Return whether a kernel of which these facts are known needs its code."""
        return True


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """A function of a kernel.

    Attributes:
        entry: the number of its first block.
        zeros: its registers before anything is written; dtypes: their types; numbers: their
            numbers by name.
        frame_bytes: its local memory.
        params, results: offset and size in its frame of each parameter and result.
        guesses: the loads, by identity, whose value a compare-and-swap checks.
        polls: the volatile loads, by identity, that a loop repeats until their value changes.
        updates: the loads and stores, by identity, that update a place without an atomic operation.
        fences_narrowly: whether it has a fence that not all blocks take part in.
        leaves_unwritten: whether it may read registers that nothing has written.
        divides: whether it has divisions of integers that may be by zero.
        calculates: whether it calculates with floats.
        reads_clock: whether it reads a clock, so that what it does depends on time.
        needs_order: whether its blocks may depend on each other by more than loads and stores, or
            show their order to the host.
        may_be_late: the work that an ordered launch may defer.
    """

    name: str
    entry: int
    zeros: Sequence[Value]
    dtypes: Sequence[np.dtype[Any]]  # of any scalar type
    numbers: Mapping[str, int]
    frame_bytes: int
    params: Places
    results: Places
    guesses: Set[int]
    polls: Set[int]
    updates: Mapping[int, Update]
    fences_narrowly: bool
    leaves_unwritten: bool
    divides: bool
    calculates: bool
    reads_clock: bool
    needs_order: bool
    may_be_late: LateWork


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """A kernel and the functions that it calls; their basic blocks are numbered through.

    A call by an address may add a function to the sequences.

    Attributes:
        functions: the kernel itself, and what it calls.
        live: registers that are live where each block begins.
        defined: bit mask of the registers that each block writes.
        reads: registers that a block reads, if it only goes on to one other block; None if it may
            branch, wait, call or end.
        is_pure: whether a block may run for threads that are not present.
        last, first: an instruction of each block, for messages.
        successors: where control may go from each block, calls apart.
        calls_by_address: whether it, or what it calls by name, calls a function by its address.
        stack_bytes: local memory of the deepest chain of calls known from the module.
        find_function: the number of the function at an address, for calls by address; None where
            there is none.
        find_origins: what the addresses of each access are made from, where the parameters at these
            offsets are pointers.
        find_sites: the accesses of all code so far.
        uses_of: what becomes of each element that an instruction loads; () where it loads none.
        has_droppable_loads: whether some threads may drop the value of a load.
        count_registers: how many of 32 bits hold what a thread needs at once, in any function.
        instruments: what wrote code for observers into it.
        memo: what observers find out about it for its further launches, by their classes.
    """

    kernel: str
    files: Mapping[int, str]
    shared_offsets: Mapping[str, int]
    shared_bytes: int
    functions: Sequence[FunctionFacts]
    live: Sequence[tuple[int, ...]]
    defined: Sequence[int]
    reads: Sequence[tuple[int, ...] | None]
    is_pure: Sequence[bool]
    first: Sequence[Instruction | None]
    last: Sequence[Instruction | None]
    successors: Sequence[tuple[int, ...]]
    calls_by_address: bool
    is_recursive: bool
    stack_bytes: int
    find_function: Callable[[int], int | None]
    find_origins: Callable[[frozenset[int]], Origins]
    find_sites: Callable[[], Iterator[Site]]
    uses_of: Callable[[Instruction], tuple[Use, ...]]
    has_droppable_loads: Callable[[], bool]
    count_registers: Callable[[], int]
    instruments: tuple[Instrument, ...]
    memo: dict[type, object] = field(default_factory=dict)

    @property
    def may_fence_narrowly(self) -> bool:
        """True if it may have a fence of less than all blocks."""
        return self.calls_by_address or any(each.fences_narrowly for each in self.functions)

    @property
    def may_divide(self) -> bool:
        """True if it may have divisions of integers by zero."""
        return self.calls_by_address or any(each.divides for each in self.functions)

    @property
    def may_calculate(self) -> bool:
        """True if it may calculate with floats."""
        return self.calls_by_address or any(each.calculates for each in self.functions)

    @property
    def reads_clock(self) -> bool:
        """True if a function so far reads a clock."""
        return any(each.reads_clock for each in self.functions)

    @property
    def needs_order(self) -> bool:
        """True if blocks of a function so far may depend on each other, or show their order."""
        return any(each.needs_order for each in self.functions)

    @property
    def may_be_late(self) -> LateWork:
        """The work that an ordered launch may defer, all if functions are called by address."""
        late = [each.may_be_late for each in self.functions]
        return LateWork(
            self.calls_by_address or any(each.copies for each in late),
            self.calls_by_address or any(each.stores for each in late),
        )

    def first_of(self, block: int) -> Instruction | None:
        """The first instruction of a block; None where there is none."""
        return self.first[block] if 0 <= block < len(self.first) else None

    def reachable(self, block: int) -> set[int]:
        """Return the blocks that control may reach after a block."""
        reachable: set[int] = set()
        waiting = list(self.successors[block])
        while waiting:
            successor = waiting.pop()
            if successor not in reachable:
                reachable.add(successor)
                waiting += self.successors[successor]
        return reachable

    @property
    def may_leave_unwritten(self) -> bool:
        """True if it may read registers that nothing has written."""
        return self.calls_by_address or any(each.leaves_unwritten for each in self.functions)

    @property
    def loads_own_memory(self) -> bool:
        """True if it loads from shared or local memory, or may."""
        return any(
            site.facts.kind is InstructionKind.LOAD and site.space != "global"
            for site in self.find_sites()
        )

    def comes_again(self, block: int) -> bool:
        """Return whether a block is part of a loop."""
        return block in self.reachable(block)
