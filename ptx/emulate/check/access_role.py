"""What a memory instruction is for the order of accesses. PTX ISA, "Memory Consistency Model"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ptx.isa.model import Instruction

_STRONG: Final = ("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")
_SCOPES: Final = ("cta", "cluster", "gpu", "sys")
_COPIES: Final = ("cp", "st", "red")


@dataclass(frozen=True, slots=True)
class AccessRole:
    """How an instruction accesses memory.

    Attributes:
        reads, writes: what it does; an atomic operation does both.
        strong: an atomic, volatile or relaxed access: such ones may meet.
        scope: of a strong access: "cta", "cluster", "gpu" or "sys".
        acquires, releases: whether it is a fence as well.
        is_copy: whether an asynchronous operation makes it, some time after the instruction.
        is_guess: an ordinary read of what a compare-and-swap then checks.
    """

    reads: bool
    writes: bool
    strong: bool
    scope: str
    acquires: bool
    releases: bool
    is_copy: bool = False
    is_guess: bool = False

    @property
    def is_atomic(self) -> bool:
        """Whether nothing comes between its read and its write."""
        return self.reads and self.writes


# What makes an mbarrier object or ends it, and what needs one that was made before.
_MAKES: Final = AccessRole(False, True, False, "sys", False, False)
_NEEDS: Final = AccessRole(True, False, True, "sys", False, False)


def role_of(instruction: Instruction, *, writes: bool, is_guess: bool = False) -> AccessRole:
    """The role of an access by an instruction."""
    opcode, words = instruction.opcode, instruction.modifiers
    if opcode == "mbarrier":
        return _MAKES if words[0] in ("init", "inval") else _NEEDS
    atomic = writes and (opcode in ("atom", "red") or "reduce" in words)
    # A volatile access is a relaxed one of the whole system (PTX ISA, "volatile operation").
    usual = "sys" if "volatile" in words else "gpu"
    scope = next((word for word in words if word in _SCOPES), usual)
    return AccessRole(
        reads=atomic or not writes,
        writes=writes,
        strong=atomic or any(word in words for word in _STRONG),
        scope=scope,
        acquires="acquire" in words or "acq_rel" in words,
        releases="release" in words or "acq_rel" in words,
        is_copy=opcode in _COPIES and "async" in words,
        is_guess=is_guess,
    )
