"""The memory model's rules: what an instruction is for it, and where each rule stands.

PTX ISA, chapter "Memory Consistency Model", by its sections:

- "Operation Types", "Scope", "Proxies": `AccessRole`, what an instruction is by its words.
- "Conflict and Data-races": `do_conflict`, and `data_races.py`, which compares two accesses.
- "Morally Strong Operations": `are_strong`, and a scope that includes the other thread
  (`happens_before.py::HappensBefore.reaches`).
- "Release and Acquire Patterns", "Memory Synchronization": `synchronizes_with.py`.
- "Program Order": a thread's stamps (`stamps.py`). "Asynchronous Operations" are in no thread's
  program order: `async_copies.py`, `tensor_cores.py`.
- "Causality Order": `happens_before.py`. Barriers are in `barrier_clocks.py`, and proxies, in
  "Proxy-preserved Base Causality Order", in `proxy_fences.py`.

Not here: "Coherence Order", "Fence-SC Order" and "Axioms" say which values a read may return. They
make no access a race. A mixed-size race is one of each unit (`shadow_memory.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ptx.emulate.kernel_facts import Update
from ptx.isa.model import Instruction

_STRONG: Final = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"})
_SCOPES: Final = frozenset({"cta", "cluster", "gpu", "sys"})
NARROW: Final = ("cta", "cluster")
"""The scopes that do not reach all blocks."""
_NARROW: Final = frozenset(NARROW)
_FENCES: Final = ("fence", "membar", "tensormap")
_COPIES: Final = ("cp", "st", "red")
_TENSOR_CORES: Final = ("mma", "cp")  # those of tcgen05 that access shared memory
GENERIC: Final = "generic"
ASYNC: Final = "async"
"""The proxy of bulk copies and of matrix products by `wgmma` and `tcgen05`."""
TEXTURE: Final = "texture"
CONSTANT: Final = "constant"
READ_ONLY: Final = (TEXTURE, CONSTANT)
"""Proxies that see nothing of what their launch writes, because no fence helps."""
TENSOR_MAP: Final = "tensormap"
"""The proxy by which tensor maps are read."""


@dataclass(frozen=True, slots=True)
class AccessRole:
    """What an instruction that accesses memory is for the memory model.

    Attributes:
        reads, writes: what it does; an atomic operation does both.
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
        """Whether it reads and writes in one operation."""
        return self.reads and self.writes


# Instructions that initialise or invalidate an mbarrier object, and those that use one.
_INITIALISES: Final = AccessRole(False, True, False, "sys", False, False)
_USES: Final = AccessRole(True, False, True, "sys", False, False)


def is_atomic_or_volatile(instruction: Instruction) -> bool:
    """Return whether an access is strong by its words: volatile, relaxed, or a fence as well."""
    return not _STRONG.isdisjoint(instruction.modifiers)


def is_narrow_fence(instruction: Instruction) -> bool:
    """Return whether an instruction is a fence of a scope that does not reach all blocks."""
    words = instruction.modifiers
    return instruction.opcode in _FENCES and not _NARROW.isdisjoint(words)


def proxy_of(instruction: Instruction) -> str:
    """Return the proxy by which an instruction accesses memory. PTX ISA, "Proxies".

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
    """Return what an access by an instruction is for the memory model."""
    opcode, words = instruction.opcode, instruction.modifiers
    if opcode == "mbarrier":
        return _INITIALISES if words[0] in ("init", "inval") else _USES
    atomic = writes and (opcode in ("atom", "red") or "reduce" in words)
    # A volatile access is a relaxed one of the whole system (PTX ISA, "volatile operation").
    scope = "sys" if "volatile" in words else "gpu"
    for word in reversed(words):
        scope = word if word in _SCOPES else scope
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


def do_conflict(one: AccessRole, other: AccessRole) -> bool:
    """Return whether two accesses to the same memory conflict. "Conflict and Data-races"."""
    return one.writes or other.writes


def are_strong(one: AccessRole, other: AccessRole) -> bool:
    """Return whether two accesses are morally strong, if their scopes include each other.

    "Morally Strong Operations": both are strong, and each names a scope with the other thread.
    """
    return one.strong and other.strong
