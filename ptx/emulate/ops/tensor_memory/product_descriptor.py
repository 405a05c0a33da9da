"""The instruction descriptor of `tcgen05.mma`. PTX ISA, "tcgen05", "Instruction descriptor".

Its fields, from bit: 2 sparse, 3 saturate, 4 the type of D, 7 that of A, 10 that of B, 13 and 14
negate A and B, 15 and 16 transpose them, 17 columns / 8, 24 rows / 16, 30 a shift that only `.ws`
has. What the ISA calls reserved, or has no value for, is a fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_RESERVED: Final = 1 << 6 | 1 << 23 | 1 << 29
_TARGETS: Final = {
    "f16": {0: "f16", 1: "f32"}, "tf32": {1: "f32"}, "f8f6f4": {0: "f16", 1: "f32"},
    "i8": {2: "s32"},
}  # fmt: skip
_FACTORS: Final = {
    "f16": {0: "f16", 1: "bf16"}, "tf32": {2: "tf32"}, "f8f6f4": {0: "e4m3", 1: "e5m2"},
    "i8": {0: "u8", 1: "s8"},
}  # fmt: skip
_NARROWER: Final = {3: "e2m3", 4: "e3m2", 5: "e2m1"}
_MOST_COLUMNS: Final = 256
_FEW_COLUMNS: Final = 32  # from which on those of integers grow by 16


class BadDescriptor(ValueError):
    """What is wrong with a descriptor, in words."""


@dataclass(frozen=True, slots=True)
class ProductDescriptor:
    """What an instruction multiplies: D (m, n) of type `d`, A of type `a`, B of type `b`."""

    d: str
    a: str
    b: str
    m: int
    n: int
    negated: tuple[bool, bool]
    transposed: tuple[bool, bool]
    saturates: bool


@lru_cache(maxsize=256)  # by the word, of which programs have few
def product_descriptor(word: int, kind: str) -> ProductDescriptor:
    """The fields of a descriptor for a kind: "f16", "tf32", "f8f6f4", "i8".

    Raises:
        BadDescriptor: the ISA has no such product, or the emulator does not know it.
    """
    if word >> 2 & 1 or word & 3:
        raise BadDescriptor("is of a sparse product, which the emulator does not execute")
    if word & _RESERVED or word >> 30:
        raise BadDescriptor("has bits set that must be zero")
    d = _TARGETS[kind].get(word >> 4 & 3)
    a, b = (_factor(kind, word >> at & 7) for at in (7, 10))
    if d is None or not a or not b:
        raise BadDescriptor(f"names types that .kind::{kind} does not have")
    if d == "f16" and "bf16" in (a, b):
        raise BadDescriptor("makes f16 of bf16, which the emulator does not know")
    negated, transposed = ((bool(word >> at & 1), bool(word >> at + 1 & 1)) for at in (13, 15))
    if kind == "i8" and any(negated):
        raise BadDescriptor("negates integers")
    if kind != "i8" and word >> 3 & 1:
        raise BadDescriptor("saturates what is no integer")
    if kind == "tf32" and any(transposed):
        raise BadDescriptor(
            "transposes 32-bit elements, which lie swizzled by 128 bytes in pieces of 32; the"
            " emulator does not know that layout"
        )
    m, n = (word >> 24 & 31) * 16, (word >> 17 & 63) * 8
    _require_shape(kind, m, n, transposed[1])
    return ProductDescriptor(d, a, b, m, n, negated, transposed, bool(word >> 3 & 1))


def _factor(kind: str, number: int) -> str | None:
    if kind == "f8f6f4" and number in _NARROWER:
        raise BadDescriptor(
            f"names the type {_NARROWER[number]}; how elements of 6 and 4 bits lie is not known to"
            " the emulator"
        )
    return _FACTORS[kind].get(number)


def _require_shape(kind: str, m: int, n: int, transposes_b: bool) -> None:
    """Raises BadDescriptor: the ISA has no such shape for one block and a dense A."""
    if m not in (64, 128):
        raise BadDescriptor(f"has {m} rows of A, not 64 or 128")
    fits = 0 < n <= _MOST_COLUMNS and (kind != "i8" or n <= _FEW_COLUMNS or n % 16 == 0)
    if not fits:
        raise BadDescriptor(f"has {n} columns of B, which .kind::{kind} does not take")
    if transposes_b and kind in ("i8", "f8f6f4") and n % 16:
        raise BadDescriptor(f"transposes {n} columns of 8-bit elements, no multiple of 16")
