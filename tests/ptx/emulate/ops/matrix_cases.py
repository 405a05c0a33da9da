"""Products whose bits a GPU gave, and what they multiply."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.differential.inputs import Factors, make
from tests.ptx.emulate.ops.matrix_lanes import WIDTHS, Words, count

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
    """One instruction; `types` of D, A, B and C, `registers` of each lane."""

    instruction: str
    types: tuple[str, ...]
    registers: tuple[int, ...]

    def inputs(self) -> list[Words]:
        """(warps, 32, registers) of A, B and C."""
        seed = zlib.crc32(self.instruction.encode())
        return [
            make(Factors(kind), 32 * WARPS * n, seed + k).reshape(WARPS, 32, n)
            for k, (kind, n) in enumerate(zip(self.types[1:], self.registers[1:], strict=True))
        ]


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


CASES = (
    *(_case(shape, types) for shape, forms in _FORMS.items() for types in forms),
    *(_quads(order, types) for types in (*_HALF, "f32.f16.f16.f16")
      for order in ("row.row", "row.col", "col.row", "col.col")),
)  # fmt: skip


def digest(words: NDArray[np.uint32]) -> str:
    """A short sum over a result."""
    return f"{zlib.crc32(words.astype('<u4').tobytes()):08x}"
