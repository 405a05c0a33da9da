"""What a memory instruction is for the order of accesses. PTX ISA, "Memory Consistency Model"."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from ptx.isa.model import Address, Instruction, Operand

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
Swaps = dict[tuple[Operand | None, int] | None, int]
"""The last line of PTX with a compare-and-swap of each address."""


def place_of(instruction: Instruction) -> tuple[Operand | None, int] | None:
    """The register and the offset that an instruction takes an address from."""
    for operand in instruction.operands:
        if isinstance(operand, Address):
            return operand.base, operand.offset
    return None


def swaps_of(instructions: Iterable[Instruction]) -> Swaps:
    """The compare-and-swaps: where each takes its address from, and its line of PTX."""
    swaps = [each for each in instructions if "cas" in each.modifiers]
    return {place_of(each): each.line for each in sorted(swaps, key=lambda each: each.line)}


def role_of(instruction: Instruction, *, writes: bool, swaps: Swaps | None = None) -> AccessRole:
    """The role of an access by an instruction, of a kernel that has these compare-and-swaps."""
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
        # What is read behind the last one is no guess.
        is_guess=not writes and instruction.line < (swaps or {}).get(place_of(instruction), 0),
    )
