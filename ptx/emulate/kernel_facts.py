"""Facts of a kernel's code: its basic blocks, functions and accesses, without the code itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def _no_function(address: int) -> None:
    """Finds nothing: until the kernel is written."""


def _no_origins(pointers: frozenset[int]) -> Origins:
    """Return no origins, before the kernel is generated."""
    return {}


def _no_uses(instruction: Instruction) -> tuple[Use, ...]:
    """Return no uses, before the kernel is generated."""
    return ()


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


@dataclass(slots=True)
class KernelFacts:
    """A kernel and the functions that it calls; their basic blocks are numbered through.

    Attributes:
        live: registers that are live where each block begins.
        defined: bit mask of the registers that each block writes.
        is_pure: whether a block may run for threads that are not present.
        last, first: an instruction of each block, for messages.
        successors: where control may go from each block, calls apart.
        zeros: initial registers of each function; frame_bytes: its local memory.
        params, results: offset and size in its frame of each function's parameters and results.
        entries: the first block of each function; names: the functions' names.
        find_function: the number of the function at an address, for calls by address, which may add
            it to the code; None where there is none.
        find_origins: what the addresses of each access are made from, where the parameters at these
            offsets are pointers.
        uses_of: what becomes of each element that an instruction loads; () where it loads none.
        guesses: the loads, by identity, whose value a compare-and-swap checks.
        polls: the volatile loads, by identity, that a loop repeats until their value changes.
        updates: the loads and stores, by identity, that update a place without an atomic operation.
        fences_narrowly: whether it has a fence that not all blocks take part in.
        divides: whether it has divisions of integers that may be by zero.
        count_registers: how many of 32 bits hold what a thread needs at once, in any function.
        stack_bytes: local memory of the deepest chain of calls known from the module.
        reads_clock: whether it reads a clock, so that what it does depends on time.
        needs_order: whether its blocks may depend on each other by more than loads and stores, or
            show their order to the host.
        may_be_late: the work that an ordered launch may defer.
        instruments: what wrote code for observers into it.
        numbers: of the registers of each function, by name.
    """

    kernel: str
    files: dict[int, str]
    shared_offsets: dict[str, int]
    shared_bytes: int
    live: list[tuple[int, ...]] = field(default_factory=list)
    defined: list[int] = field(default_factory=list)
    is_pure: list[bool] = field(default_factory=list)
    first: list[Instruction | None] = field(default_factory=list)
    last: list[Instruction | None] = field(default_factory=list)
    successors: list[tuple[int, ...]] = field(default_factory=list)
    zeros: list[list[Value]] = field(default_factory=list)
    frame_bytes: list[int] = field(default_factory=list)
    params: list[Places] = field(default_factory=list)
    results: list[Places] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)
    find_function: Callable[[int], int | None] = _no_function
    find_origins: Callable[[frozenset[int]], Origins] = _no_origins
    uses_of: Callable[[Instruction], tuple[Use, ...]] = _no_uses
    guesses: set[int] = field(default_factory=set)
    polls: set[int] = field(default_factory=set)
    updates: dict[int, Update] = field(default_factory=dict)
    fences_narrowly: bool = False
    divides: bool = False
    calls_by_address: bool = False
    reads_clock: bool = False
    needs_order: bool = False
    may_be_late: LateWork = NOTHING_LATE
    is_recursive: bool = False
    stack_bytes: int = 0
    count_registers: Callable[[], int] = int
    instruments: tuple[Instrument, ...] = ()
    numbers: list[Mapping[str, int]] = field(default_factory=list)
    _dtypes: dict[int, list[np.dtype[Any]]] = field(default_factory=dict)

    @property
    def may_fence_narrowly(self) -> bool:
        """True if it, or a function that it calls by address, may have a fence of less than all
        blocks.
        """
        return self.fences_narrowly or self.calls_by_address

    def dtypes(self, function: int) -> list[np.dtype[Any]]:
        """The types of a function's registers."""
        dtypes = self._dtypes.get(function)
        if dtypes is None:
            dtypes = self._dtypes[function] = [value.dtype for value in self.zeros[function]]
        return dtypes

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
    def loads_own_memory(self) -> bool:
        """True if it loads from shared or local memory, or may."""
        return any(
            site.facts.kind is InstructionKind.LOAD and site.space != "global"
            for site in self.sites
        )

    def comes_again(self, block: int) -> bool:
        """Return whether a block is part of a loop."""
        return block in self.reachable(block)
