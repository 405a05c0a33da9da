"""The instruction descriptor of `tcgen05.mma`. PTX ISA, "tcgen05", "Instruction descriptor".

Its fields, from bit: 2 sparse, 3 saturate, 4 the type of D, 7 that of A, 10 that of B, 13 and 14
negate A and B, 15 and 16 transpose them, 17 columns / 8, 24 rows / 16, 30 a shift that only `.ws`
has. With factors for blocks: 4 where those of B begin in a word, 23 their type, 27 rows / 128, 29
where those of A begin, 31 whether k is 96. What the ISA calls reserved, or has no value for, is a
fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

_RESERVED: Final = 1 << 6 | 1 << 23 | 1 << 29
_TARGETS: Final = {
    "f16": {0: "f16", 1: "f32"}, "tf32": {1: "f32"}, "f8f6f4": {0: "f16", 1: "f32"},
    "i8": {2: "s32"},
}  # fmt: skip
_FACTORS: Final = {
    "f16": {0: "f16", 1: "bf16"}, "tf32": {2: "tf32"}, "f8f6f4": {0: "e4m3", 1: "e5m2"},
    "i8": {0: "u8", 1: "s8"},
}  # fmt: skip
_PACKED: Final = ("mxf4", "mxf4nvf4")
_SCALES: Final = {
    "mxf8f6f4": {("ue8m0", 1)},
    "mxf4": {("ue8m0", 2)},
    "mxf4nvf4": {("ue8m0", 2), ("ue8m0", 4), ("ue4m3", 4)},
}
"""By kind, the types of factors, and how many of them a row may have."""
_RESERVED_SCALED: Final = 1 | 1 << 1 | 1 << 3 | 1 << 6 | 7 << 24
_NARROWER: Final = {3: "e2m3", 4: "e3m2", 5: "e2m1"}
_MOST_COLUMNS: Final = 256
_FEW_COLUMNS: Final = 32  # from which on those of integers grow by 16


class BadDescriptor(ValueError):
    """What is wrong with a descriptor, in words."""


class Scaling(NamedTuple):
    """Factors of rows of A and columns of B: their type, how many each has, and their first bytes.

    The bytes are those of a word in tensor memory.
    """

    factor: str
    chunks: int
    places: tuple[int, int]


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
    saturates: bool = False
    scaling: Scaling | None = None


@lru_cache(maxsize=256)  # by the word, of which programs have few
def product_descriptor(
    word: int, kind: str, chunks: int = 0, *, is_weight_stationary: bool = False
) -> ProductDescriptor:
    """The fields of a descriptor for a kind, such as "f16"; `chunks`: factors that a row has.

    Raises:
        BadDescriptor: the ISA has no such product, or the emulator does not know it.
    """
    return _scaled(word, kind, chunks) if chunks else _plain(word, kind, is_weight_stationary)


def _plain(word: int, kind: str, is_weight_stationary: bool) -> ProductDescriptor:
    if word >> 2 & 1 or word & 3:
        raise BadDescriptor("is of a sparse product, which the emulator does not execute")
    if is_weight_stationary and word >> 30:
        raise BadDescriptor("shifts B, which the emulator does not know")
    if word & _RESERVED or word >> 30:
        raise BadDescriptor("has bits set that must be zero")
    d = _TARGETS[kind].get(word >> 4 & 3)
    a, b = (_factor(kind, word >> at & 7) for at in (7, 10))
    if d is None or not a or not b:
        raise BadDescriptor(f"names types that .kind::{kind} does not have")
    if d == "f16" and "bf16" in (a, b):
        raise BadDescriptor("makes f16 of bf16, which the emulator does not know")
    negated, transposed = _flags(word)
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
    if is_weight_stationary:
        if m not in (32, 64, 128) or n not in (64, 128, 256):
            raise BadDescriptor(f"has {m} rows of A and {n} columns of B, which .ws does not take")
    else:
        _require_shape(kind, m, n, transposed[1])
    return ProductDescriptor(d, a, b, m, n, negated, transposed, bool(word >> 3 & 1))


def _scaled(word: int, kind: str, chunks: int) -> ProductDescriptor:
    if word >> 2 & 1:
        raise BadDescriptor("is of a sparse product, which the emulator does not execute")
    packed = kind in _PACKED
    if word & (_RESERVED_SCALED | packed << 12) or (not packed and word >> 31):
        raise BadDescriptor("has bits set that must be zero")
    if word >> 31:
        raise BadDescriptor("takes 96 elements along k, which the emulator does not know")
    if packed:
        a = b = "e2m1x8" if (word >> 7 & 7, word >> 10 & 3) == (1, 1) else None
    else:
        a, b = (_factor("f8f6f4", word >> at & 7) for at in (7, 10))
    if a is None or b is None:
        raise BadDescriptor(f"names types that .kind::{kind} does not have")
    factor = "ue8m0" if word >> 23 & 1 else "ue4m3"
    if (factor, chunks) not in _SCALES[kind]:
        raise BadDescriptor(f"names factors of {factor}, of which a row has no {chunks}")
    places = (word >> 29 & 3, word >> 4 & 3)
    if any(place % chunks for place in places):
        raise BadDescriptor(f"lets {chunks} factors begin at bytes {places[0]} and {places[1]}")
    negated, transposed = _flags(word)
    if packed and any(transposed):
        raise BadDescriptor("transposes elements of 4 bits")
    m, n = (word >> 27 & 3) * 128, (word >> 17 & 63) * 8
    if m != 128:
        raise BadDescriptor(f"has {m} rows of A, not 128")
    _require_shape(kind, m, n, transposed[1])
    scaling = Scaling(factor, chunks, places)
    return ProductDescriptor("f32", a, b, m, n, negated, transposed, scaling=scaling)


def _flags(word: int) -> tuple[tuple[bool, bool], tuple[bool, bool]]:
    """Whether A and B are negated, and whether they are transposed."""
    bits = [bool(word >> at & 1) for at in (13, 14, 15, 16)]
    return (bits[0], bits[1]), (bits[2], bits[3])


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
    if transposes_b and kind in ("i8", "f8f6f4", "mxf8f6f4") and n % 16:
        raise BadDescriptor(f"transposes {n} columns of 8-bit elements, no multiple of 16")
