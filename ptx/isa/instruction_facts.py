"""Facts about instructions, by opcode and modifiers: one record for each way to write them.

The rows of `ptx.isa.opcodes` have the facts that no modifier changes.
PTX ISA, "Instruction Set", "Memory Consistency Model".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from ptx.isa.opcodes.opcode_row import OpcodeRow, OpcodeRowError
from ptx.isa.opcodes.opcode_table import ROWS

TYPE_BYTES: dict[str, int] = {
    **{f"{kind}{bits}": bits // 8 for kind in "bsu" for bits in (8, 16, 32, 64)},
    "b128": 16, "u128": 16, "s128": 16, "f16": 2, "f16x2": 4, "bf16": 2, "bf16x2": 4, "tf32": 4,
    "f32": 4, "f32x2": 8, "f64": 8, "pred": 1, "u16x2": 4, "s16x2": 4, "u8x4": 4, "s8x4": 4,
    "e4m3": 1, "e5m2": 1, "e4m3x2": 2, "e5m2x2": 2, "texref": 8, "samplerref": 8, "surfref": 8,
}  # fmt: skip
"""The bytes of a value of each type."""
GENERIC: Final = "generic"
ASYNC: Final = "async"
"""The proxy of bulk copies and of products of tensor cores."""
TEXTURE: Final = "texture"
CONSTANT: Final = "constant"
READ_ONLY: Final = (TEXTURE, CONSTANT)
"""Proxies that see nothing of what their launch writes: no fence makes it visible to them."""
TENSOR_MAP: Final = "tensormap"
"""The proxy by which tensor maps are read."""
NARROW: Final = ("cta", "cluster")
"""The scopes that do not include all blocks."""


class InstructionKind(Enum):
    """Kinds of instructions by their operation."""

    ADDITION = "addition"
    MULTIPLICATION = "multiplication"
    MULTIPLY_ADD = "multiply-add"
    DIVISION = "division"
    ARITHMETIC = "arithmetic"
    CARRY = "arithmetic with a carry"
    SPECIAL = "special function"
    BIT = "bit"
    VIDEO = "video"
    CONVERSION = "conversion"
    MOVE = "move"
    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    REDUCTION = "reduction"
    COPY = "copy"
    TENSOR_MAP = "tensor map"
    PREFETCH = "prefetch"
    TEXTURE = "texture"
    SURFACE = "surface"
    LOAD_MATRIX = "load matrix"
    STORE_MATRIX = "store matrix"
    MATRIX = "matrix"
    BARRIER = "barrier"
    WARP_BARRIER = "warp barrier"
    MBARRIER = "mbarrier"
    FENCE = "fence"
    EXCHANGE = "exchange"
    ELECTION = "election"
    WARP_STATE = "warp state"
    BRANCH = "branch"
    CALL = "call"
    RETURN = "return"
    EXIT = "exit"
    TRAP = "trap"
    CONTROL = "control"
    OTHER = "other"


_CALCULATIONS: Final = frozenset({
    InstructionKind.ADDITION, InstructionKind.MULTIPLICATION, InstructionKind.MULTIPLY_ADD,
    InstructionKind.DIVISION, InstructionKind.ARITHMETIC, InstructionKind.SPECIAL,
    InstructionKind.BIT, InstructionKind.VIDEO, InstructionKind.CONVERSION,
})  # fmt: skip
_MEETINGS: Final = frozenset(
    {
        InstructionKind.BARRIER,
        InstructionKind.WARP_BARRIER,
        InstructionKind.EXCHANGE,
        InstructionKind.ELECTION,
    }
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # one object for each form
class InstructionFacts:
    """The facts of one opcode with its modifiers.

    Attributes:
        name: the opcode with its first modifier, such as "wgmma.wait_group".
        type_suffix: the type modifiers, as written: "s32", "f32.s32", "".
        types: the same, one by one.
        words: the other modifiers, as written.
        vector: how many elements it accesses: 2 of `.v2`.
        spaces: the state spaces that it names, without their windows: "shared" of `.shared::cta`.
        space: the first of them; "generic" where it names none.
        reaches_cluster: whether it names the shared memory of a cluster's blocks.
        scope: "cta", "cluster", "gpu" or "sys"; where none is written, "sys" of a volatile access
            and of "multimem", else "gpu".
        is_strong: a volatile, relaxed, acquiring or releasing access.
        acquires, releases: whether it has these semantics.
        publishes: whether it makes earlier stores visible to other blocks.
        is_narrow_fence: a fence of a scope that does not include all blocks.
        proxy: by which way it accesses memory: GENERIC, ASYNC, TEXTURE or CONSTANT.
        is_asynchronous: whether it accesses memory some time after the instruction.
        has_two_words: whether its first modifier belongs to the opcode and cannot stand elsewhere.
        may_be_late: whether an ordered launch may execute a part of it later.
        is_calculation: whether its results depend on its operands alone.
        reads_past_l1: whether it has `.cg` or `.cv`, so that it sees what other blocks wrote.
        copies_value: it only moves bits, so that an undefined value stays one.
        passes_operand: its result is one of its operands, perhaps in another form.
        is_idempotent: done again with its result, it gives the same.
        gives_number: its result is a plain number, though operands are pointers.
        is_warp_group: whether all warps of a group execute it before one of them continues.
        is_meeting: whether threads wait for each other at it.
        ignores_nan_payload: its results do not depend on which NaN a float32 operand is.
        flushes_result: whether its float32 result is never a subnormal number.
        matrices: how many matrices `ldmatrix` or `stmatrix` moves; 0 for others.
    """

    opcode: str
    kind: InstructionKind
    copies_value: bool
    passes_operand: bool
    gives_number: bool
    is_idempotent: bool
    may_be_late: bool
    has_two_words: bool
    name: str
    type_suffix: str
    types: tuple[str, ...]
    words: tuple[str, ...]
    vector: int
    spaces: tuple[str, ...]
    space: str
    reaches_cluster: bool
    scope: str
    is_strong: bool
    acquires: bool
    releases: bool
    publishes: bool
    is_narrow_fence: bool
    proxy: str
    is_asynchronous: bool
    is_calculation: bool
    reads_past_l1: bool
    is_warp_group: bool
    is_meeting: bool
    ignores_nan_payload: bool
    flushes_result: bool
    matrices: int

    @property
    def is_atomic(self) -> bool:
        """True if it is `atom` or `red`."""
        return self.kind is InstructionKind.ATOMIC or self.kind is InstructionKind.REDUCTION

    @property
    def is_move(self) -> bool:
        """True if it is `mov` or `selp`: it gives one of its operands, bit for bit."""
        return self.kind is InstructionKind.MOVE and self.copies_value

    @property
    def is_volatile(self) -> bool:
        """True if it is a volatile load or store."""
        return "volatile" in self.words


def opcodes() -> frozenset[str]:
    """Return all opcodes that the emulator executes."""
    return frozenset(_OPCODES)


class _Opcode(NamedTuple):
    """The facts of an opcode that no modifier changes; `InstructionFacts` documents them."""

    kind: InstructionKind
    copies_value: bool = False
    passes_operand: bool = False
    gives_number: bool = False
    is_idempotent: bool = False
    may_be_late: bool = False
    has_two_words: bool = False


def _facts_of_row(row: OpcodeRow) -> _Opcode:
    unknown = set(row.facts).difference(_Opcode._fields)
    if unknown:
        raise OpcodeRowError(row.opcode, f"facts do not have {sorted(unknown)}")
    return _Opcode(_kind(row.opcode, row.kind), **dict.fromkeys(row.facts, True))


def _kind(opcode: str, name: str) -> InstructionKind:
    try:
        return InstructionKind(name)
    except ValueError:
        raise OpcodeRowError(opcode, f"{name!r} is no kind of instructions") from None


_OPCODES: Final = {row.opcode: _facts_of_row(row) for row in ROWS.values() if row.kind}
_UNKNOWN: Final = _Opcode(InstructionKind.OTHER)
# Opcodes whose kind depends on the first modifier.
_KINDS: Final = {
    f"{row.opcode}.{modifier}": _kind(row.opcode, kind)
    for row in ROWS.values()
    for modifier, kind in row.other_kinds
}
_SPACES: Final = frozenset({"global", "shared", "local", "const", "param"})
_SCOPES: Final = ("cta", "cluster", "gpu", "sys")
_STRONG: Final = frozenset({"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"})
_RELEASES: Final = frozenset({"release", "acq_rel", "sc"})
_COPIES: Final = frozenset({InstructionKind.COPY, InstructionKind.STORE, InstructionKind.REDUCTION})
_FENCES: Final = frozenset({InstructionKind.FENCE, InstructionKind.TENSOR_MAP})
_ASYNC_PROXY: Final = frozenset({"tcgen05.mma", "tcgen05.cp"})  # those that access shared memory
_KEEP_PAYLOAD: Final = frozenset({"f32", "f64", "tf32"})  # targets of `cvt`


@lru_cache(maxsize=4096)  # of which a text has few
def facts_of(opcode: str, modifiers: tuple[str, ...]) -> InstructionFacts:
    """Return the facts of an opcode with these modifiers, for any operands."""
    basis = _OPCODES.get(opcode, _UNKNOWN)
    name = ".".join((opcode, *modifiers[:1]))
    kind = _KINDS.get(name, basis.kind)
    words = frozenset(modifiers)
    types = tuple(word for word in modifiers if word in TYPE_BYTES)
    names = [word.partition("::")[0] for word in modifiers]
    spaces = tuple(name for name in names if name in _SPACES)
    # A volatile access is a relaxed one of the whole system (PTX ISA, "volatile operation"), and so
    # is one of "multimem" without a qualifier.
    is_multicast = opcode == "multimem"
    usual = "sys" if "volatile" in words or is_multicast else "gpu"
    scope = next((word for word in modifiers if word in _SCOPES), usual)
    proxy = _proxy(opcode, name, words)
    is_late_copy = kind in _COPIES and "async" in words
    return InstructionFacts(
        opcode=opcode,
        kind=kind,
        name=name,
        type_suffix=".".join(types),
        types=types,
        words=tuple(word for word in modifiers if word not in TYPE_BYTES),
        vector=next((int(word[1:]) for word in ("v2", "v4", "v8") if word in words), 1),
        spaces=spaces,
        space=spaces[0] if spaces else GENERIC,
        reaches_cluster="shared::cluster" in words,
        scope=scope,
        is_strong=not words.isdisjoint(_STRONG) or (is_multicast and "weak" not in words),
        acquires=not words.isdisjoint(("acquire", "acq_rel")),
        releases=not words.isdisjoint(("release", "acq_rel")),
        publishes=scope not in NARROW and (opcode == "membar" or not words.isdisjoint(_RELEASES)),
        is_narrow_fence=kind in _FENCES and scope in NARROW,
        proxy=proxy,
        is_asynchronous=is_late_copy or proxy == ASYNC,
        may_be_late=is_late_copy or basis.may_be_late,
        copies_value=basis.copies_value,
        passes_operand=basis.passes_operand,
        gives_number=basis.gives_number,
        is_idempotent=basis.is_idempotent,
        has_two_words=basis.has_two_words,
        reads_past_l1=not words.isdisjoint(("cg", "cv")),
        is_calculation=kind in _CALCULATIONS,
        is_warp_group=name == "wgmma.mma_async",
        is_meeting=kind in _MEETINGS,
        ignores_nan_payload=_ignores_nan_payload(opcode, kind, types, words),
        flushes_result="ftz" in words
        and (types[:1] == ("f32",) if kind is InstructionKind.CONVERSION else types == ("f32",)),
        matrices=_matrices(opcode, words),
    )


def _proxy(opcode: str, name: str, words: frozenset[str]) -> str:
    """The proxy by which an instruction accesses memory. PTX ISA, "Async Proxy".

    Other asynchronous copies (`cp.async`, `st.async`, `red.async`) are of the generic proxy.
    """
    if (opcode == "cp" and "bulk" in words) or opcode == "wgmma" or name in _ASYNC_PROXY:
        return ASYNC
    if opcode != "ld":
        return GENERIC
    return TEXTURE if "nc" in words else CONSTANT if "const" in words else GENERIC


def _ignores_nan_payload(
    opcode: str, kind: InstructionKind, types: tuple[str, ...], words: frozenset[str]
) -> bool:
    if kind not in _CALCULATIONS or types[-1:] != ("f32",) or opcode == "copysign":
        return False
    if kind is InstructionKind.CONVERSION:
        return types[0] not in _KEEP_PAYLOAD
    if "xorsign" in words:
        return False  # it takes the sign of a NaN that lost
    return opcode == "set" or len(types) == 1


def _matrices(opcode: str, words: frozenset[str]) -> int:
    if opcode not in ("ldmatrix", "stmatrix"):
        return 0
    return next((int(word[1:]) for word in ("x1", "x2", "x4") if word in words), 0)
