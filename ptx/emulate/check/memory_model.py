"""What a memory instruction is for the order of accesses. PTX ISA, "Memory Consistency Model"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ptx.emulate.kernel_facts import Update
from ptx.isa.model import Instruction

_STRONG: Final = ("volatile", "relaxed", "acquire", "release", "acq_rel", "mmio")
_SCOPES: Final = ("cta", "cluster", "gpu", "sys")
NARROW: Final = ("cta", "cluster")
"""The scopes that do not reach all blocks."""
_FENCES: Final = ("fence", "membar", "tensormap")
_COPIES: Final = ("cp", "st", "red")
_TENSOR_CORES: Final = ("mma", "cp")  # those of tcgen05 that access shared memory
GENERIC: Final = "generic"
ASYNC: Final = "async"
"""The proxy of bulk copies and of products of tensor cores."""
TEXTURE: Final = "texture"
CONSTANT: Final = "constant"
READ_ONLY: Final = (TEXTURE, CONSTANT)
"""Proxies that see nothing of what their launch writes, as no fence tells them of it."""
TENSOR_MAP: Final = "tensormap"
"""The proxy by which tensor maps are read."""


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


def is_atomic_or_volatile(instruction: Instruction) -> bool:
    """Whether an access is strong by its words: volatile, relaxed, or a fence as well."""
    return any(word in instruction.modifiers for word in _STRONG)


def is_narrow_fence(instruction: Instruction) -> bool:
    """Whether it is a fence of a scope that does not reach all blocks."""
    words = instruction.modifiers
    return instruction.opcode in _FENCES and any(each in NARROW for each in words)


def proxy_of(instruction: Instruction) -> str:
    """The proxy by which an instruction accesses memory. PTX ISA, "Async Proxy".

    Other asynchronous copies (`cp.async`, `st.async`, `red.async`) are of the generic proxy.
    """
    opcode, words = instruction.opcode, instruction.modifiers
    bulk = opcode == "cp" and "bulk" in words
    tensor = opcode == "tcgen05" and words[0] in _TENSOR_CORES
    if bulk or tensor or opcode == "wgmma":
        return ASYNC
    if opcode != "ld":
        return GENERIC
    return TEXTURE if "nc" in words else CONSTANT if "const" in words else GENERIC


def role_of(
    instruction: Instruction,
    *,
    writes: bool,
    is_guess: bool = False,
    is_poll: bool = False,
    update: Update | None = None,
) -> AccessRole:
    """The role of an access by an instruction."""
    opcode, words = instruction.opcode, instruction.modifiers
    if opcode == "mbarrier":
        return _MAKES if words[0] in ("init", "inval") else _NEEDS
    atomic = writes and (opcode in ("atom", "red") or "reduce" in words)
    # A volatile access is a relaxed one of the whole system (PTX ISA, "volatile operation").
    usual = "sys" if "volatile" in words else "gpu"
    scope = next((word for word in words if word in _SCOPES), usual)
    proxy = proxy_of(instruction)
    return AccessRole(
        reads=atomic or not writes,
        writes=writes,
        strong=atomic or is_atomic_or_volatile(instruction),
        scope=scope,
        acquires="acquire" in words or "acq_rel" in words,
        releases="release" in words or "acq_rel" in words,
        is_copy=(opcode in _COPIES and "async" in words) or proxy == ASYNC,
        proxy=proxy,
        is_guess=is_guess,
        update=update,
        is_volatile=opcode in ("ld", "st") and "volatile" in words and not is_poll,
    )
