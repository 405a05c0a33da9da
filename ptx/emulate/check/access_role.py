"""What a memory instruction is for the order of accesses. PTX ISA, "Memory Consistency Model"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ptx.emulate.kernel_facts import Update
from ptx.isa.instruction_facts import GENERIC, InstructionKind
from ptx.isa.model import Instruction


@dataclass(frozen=True, slots=True)
class AccessRole:
    """How an instruction accesses memory.

    Attributes:
        reads, writes: what it does; an atomic operation does both.
        strong: an atomic, volatile or relaxed access: such ones may meet.
        scope: of a strong access: "cta", "cluster", "gpu" or "sys".
        acquires, releases: whether it is a fence as well.
        is_copy: whether an asynchronous operation makes it, some time after the instruction.
        proxy: by which way it comes to memory: GENERIC, ASYNC, TEXTURE or CONSTANT.
        is_guess: an ordinary read of what a compare-and-swap then checks.
        update: what it updates by a strong load and a strong store.
        is_volatile: a volatile load or store, but none that polls.
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
        """Whether nothing comes between its read and its write."""
        return self.reads and self.writes


# What makes an mbarrier object or ends it, and what needs one that was made before.
_MAKES: Final = AccessRole(False, True, False, "sys", False, False)
_NEEDS: Final = AccessRole(True, False, True, "sys", False, False)
_MAKERS: Final = ("mbarrier.init", "mbarrier.inval")


def role_of(
    instruction: Instruction,
    *,
    writes: bool,
    is_guess: bool = False,
    is_poll: bool = False,
    update: Update | None = None,
) -> AccessRole:
    """The role of an access by an instruction."""
    facts = instruction.facts
    if facts.kind is InstructionKind.MBARRIER:
        return _MAKES if facts.name in _MAKERS else _NEEDS
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
