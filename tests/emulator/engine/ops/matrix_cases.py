"""Products whose bits a GPU gave, and what they multiply."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.emulator.differential.inputs import Factors, make
from tests.emulator.engine.ops.matrix_lanes import WIDTHS, Words, count

WARPS = 8
_HALF = ("f16.f16.f16.f16", "f32.f16.f16.f32")
_NARROW = tuple(
    f"{d}.{a}.{b}.{d}" for d in ("f32", "f16") for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2")
)
_FORMS = {
    "m16n8k4": ("f32.tf32.tf32.f32",),
    "m16n8k8": ("f32.tf32.tf32.f32", "f32.bf16.bf16.f32", *_HALF),
    "m16n8k16": ("f32.bf16.bf16.f32", *_HALF, *_NARROW),
    "m16n8k32": _NARROW,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One instruction; `types` of D, A, B and C, `registers` of each lane; sparse or not."""

    instruction: str
    types: tuple[str, ...]
    registers: tuple[int, ...]
    is_sparse: bool = False

    def inputs(self) -> list[Words]:
        """(warps, 32, registers) of A, B and C."""
        seed = zlib.crc32(self.instruction.encode())
        return [
            make(Factors(kind), 32 * WARPS * n, seed + k).reshape(WARPS, 32, n)
            for k, (kind, n) in enumerate(zip(self.types[1:], self.registers[1:], strict=True))
        ]

    def metadata(self) -> Words | None:
        """(warps, 32, 1) of a sparse product: valid, in order."""
        if not self.is_sparse:
            return None
        random = make("u32", 32 * WARPS, zlib.crc32(self.instruction.encode()) + 9)
        choices = np.array([4, 14] * 3 if self.types[1] == "tf32" else [4, 8, 12, 9, 13, 14])
        shifts = np.arange(0, 32, 4, dtype=np.uint32)
        nibbles = choices[(random[:, None] >> shifts & 15) % 6].astype(np.uint32)
        words: Words = (nibbles << shifts).sum(axis=1).astype(np.uint32)
        return words.reshape(WARPS, 32, 1)


def _case(shape: str, types: str) -> Case:
    d, a, b, c = types.split(".")
    registers = tuple(
        count(shape, kind, role) * WIDTHS[kind] // 32
        for kind, role in ((d, "c"), (a, "a"), (b, "b"), (c, "c"))
    )
    return Case(f"mma.sync.aligned.{shape}.row.col.{types}", (d, a, b, c), registers)


def _quads(order: str, types: str) -> Case:
    d, a, b, c = types.split(".")
    registers = (8 if d == "f32" else 4, 2, 2, 8 if c == "f32" else 4)
    return Case(f"mma.sync.aligned.m8n8k4.{order}.{types}", (d, a, b, c), registers)


def _sparse(shape: str, types: str) -> Case:
    case = _case(shape, types)
    registers = (case.registers[0], case.registers[1] // 2, *case.registers[2:])
    instruction = case.instruction.replace("mma.", "mma.sp::ordered_metadata.", 1)
    return Case(instruction, case.types, registers, True)


_SPARSE = (
    ("m16n8k8", "f32.tf32.tf32.f32"),
    ("m16n8k16", "f32.tf32.tf32.f32"),
    *(
        (shape, types)
        for shape in ("m16n8k16", "m16n8k32")
        for types in (*_HALF, "f32.bf16.bf16.f32")
    ),
    *(("m16n8k64", types) for types in _NARROW if types[:3] == "f32"),
)
CASES = (
    *(_case(shape, types) for shape, forms in _FORMS.items() for types in forms),
    *(
        _quads(order, types)
        for types in (*_HALF, "f32.f16.f16.f16")
        for order in ("row.row", "row.col", "col.row", "col.col")
    ),
    *(_sparse(shape, types) for shape, types in _SPARSE),
)


def digest(words: NDArray[np.uint32]) -> str:
    """A short sum over a result."""
    return f"{zlib.crc32(words.astype('<u4').tobytes()):08x}"
