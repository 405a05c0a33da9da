"""The memory model's rules: the roles of instructions, and the file of each rule.

PTX ISA, chapter "Memory Consistency Model", by its sections:

- "Operation Types", "Scope", "Proxies": `AccessRole`, the role of an instruction by its words
  (`ptx/isa/instruction_facts.py`).
- "Conflict and Data-races": `do_conflict`, and `data_races.py`, which compares two accesses.
- "Morally Strong Operations": `are_strong`, and a scope that includes the other thread
  (`happens_before.py::HappensBefore.reaches`).
- "Release and Acquire Patterns", "Memory Synchronization": `synchronizes_with.py`.
- "Program Order": a thread's stamps (`stamps.py`). "Asynchronous Operations" are in no thread's
  program order: `async_copies.py`, `tensor_cores.py`.
- "Causality Order": `happens_before.py`. Barriers are in `barrier_clocks.py`, and proxies, in
  "Proxy-preserved Base Causality Order", in `proxy_fences.py`.

Not here: "Coherence Order", "Fence-SC Order" and "Axioms" define which values a read may return.
They make no access a race. A mixed-size race is one of each unit (`shadow_memory.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ptx.emulate.kernel_facts import Update
from ptx.isa.instruction_facts import GENERIC, InstructionKind
from ptx.isa.model import Instruction


@dataclass(frozen=True, slots=True)
class AccessRole:
    """The role of a memory access in the PTX memory model.

    Attributes:
        reads, writes: whether it does; an atomic operation does both.
        strong: whether it is a strong operation: atomic, volatile, relaxed, or a fence as well.
        scope: of a strong access: "cta", "cluster", "gpu" or "sys".
        acquires, releases: whether it is an acquire or a release pattern by itself.
        is_copy: whether an asynchronous operation makes it, some time after the instruction.
        proxy: GENERIC, ASYNC, TEXTURE or CONSTANT.
        is_guess: whether it is a speculative read: a compare-and-swap checks its value later.
        update: which update it is a strong load or store of.
        is_volatile: whether it is a volatile load or store, but not of a loop that polls.
    """

    reads: bool
    writes: bool
    strong: bool
    scope: str
    acquires: bool
    releases: bool
    is_copy: bool = False
    proxy: str = GENERIC
    is_guess: bool = False
    update: Update | None = None
    is_volatile: bool = False

    @property
    def is_atomic(self) -> bool:
        """True if it reads and writes in one operation."""
        return self.reads and self.writes


# Instructions that initialise or invalidate an mbarrier object, and those that use one.
_INITIALISES: Final = AccessRole(False, True, False, "sys", False, False)
_USES: Final = AccessRole(True, False, True, "sys", False, False)


_INITIALISERS: Final = ("mbarrier.init", "mbarrier.inval")


def role_of(
    instruction: Instruction,
    *,
    writes: bool,
    is_guess: bool = False,
    is_poll: bool = False,
    update: Update | None = None,
) -> AccessRole:
    """Return the role of an access by an instruction in the memory model."""
    facts = instruction.facts
    if facts.kind is InstructionKind.MBARRIER:
        return _INITIALISES if facts.name in _INITIALISERS else _USES
    atomic = writes and (facts.is_atomic or "reduce" in facts.words)
    return AccessRole(
        reads=atomic or not writes,
        writes=writes,
        strong=atomic or facts.is_strong,
        scope=facts.scope,
        acquires=facts.acquires,
        releases=facts.releases,
        is_copy=facts.is_asynchronous,
        proxy=facts.proxy,
        is_guess=is_guess,
        update=update,
        is_volatile=facts.is_volatile and not is_poll,
    )


def do_conflict(first: AccessRole, second: AccessRole) -> bool:
    """Return whether two accesses to the same memory conflict. "Conflict and Data-races"."""
    return first.writes or second.writes


def are_strong(first: AccessRole, second: AccessRole) -> bool:
    """Return whether two accesses are morally strong, if their scopes include each other.

    "Morally Strong Operations": both are strong, and each names a scope with the other thread.
    """
    return first.strong and second.strong
