"""What a memory instruction is for the order of accesses. PTX ISA, "Memory Consistency Model"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ptx.isa.model import Instruction

_STRONG: Final = ("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")
_SCOPES: Final = ("cta", "cluster", "gpu", "sys")
# Objects that order others, by rules of their own.
_OWN_RULES: Final = ("mbarrier",)


@dataclass(frozen=True, slots=True)
class AccessRole:
    """How an instruction accesses memory.

    Attributes:
        reads, writes: what it does; an atomic operation does both.
        strong: an atomic, volatile or relaxed access: such ones may meet.
        scope: of a strong access: "cta", "cluster", "gpu" or "sys".
        acquires, releases: whether it is a fence as well.
    """

    reads: bool
    writes: bool
    strong: bool
    scope: str
    acquires: bool
    releases: bool

    @property
    def is_atomic(self) -> bool:
        """Whether nothing comes between its read and its write."""
        return self.reads and self.writes


def role_of(instruction: Instruction, *, writes: bool) -> AccessRole | None:
    """The role of an access by an instruction; None where the order of memory is not its affair."""
    opcode, words = instruction.opcode, instruction.modifiers
    if opcode.split(".")[0] in _OWN_RULES:
        return None
    atomic = opcode in ("atom", "red")
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
    )
