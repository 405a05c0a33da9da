"""The elements of matrices: bits taken from registers, as numbers, and rounded back.

PTX ISA, "mma.sync" data types. Floats of 6 and 4 bits are in a byte each, of 4 bits in its middle
four; "e2m1x8" are eight in a word.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate import ieee
from ptx.isa.instruction_facts import facts_of
from ptx.isa.model import Instruction

WIDTHS = {
    "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "e4m3": 8, "e5m2": 8,
    "s32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
    "e2m3": 8, "e3m2": 8, "e2m1": 8, "e2m1x8": 4,
}  # fmt: skip
"""Bits of an element."""
_BYTES = np.arange(256, dtype=np.uint8)
_FORMATS = {
    "e4m3": (ieee.E4M3, _BYTES), "e5m2": (ieee.E5M2, _BYTES), "e2m3": (ieee.E2M3, _BYTES & 63),
    "e3m2": (ieee.E3M2, _BYTES & 63), "e2m1": (ieee.E2M1, _BYTES >> 2 & 15),
    "e2m1x8": (ieee.E2M1, _BYTES & 15),
}  # fmt: skip
"""Narrow floats, and the bits of each byte that are one."""
_TF32 = np.uint32(0xFFFFE000)  # the bits of a float32 that count
_CANONICAL = {"f32": 0x7FFFFFFF, "f16": 0x7FFF}


def held(element: str) -> str:
    """The PTX type of a register that holds elements of a type."""
    return "f64" if element == "f64" else "b32"


def plain_words(i: Instruction) -> tuple[str, ...]:
    """The modifiers but for types: as the table's name has them, and then the others."""
    return facts_of(i).words


def element_types(i: Instruction) -> tuple[str, ...]:
    """The types of elements among the modifiers, in order."""
    return tuple(word for word in i.modifiers if word in WIDTHS)


def separate(words: NDArray[Any], element: str) -> NDArray[Any]:
    """The elements of words in order, each in the smallest unsigned integer that holds its bits."""
    words = np.ascontiguousarray(words)
    width = WIDTHS[element]
    if width == 64:
        return words
    if width >= 8:
        return words.view(f"u{width // 8}")
    octets = words.view(np.uint8)
    if width == 1:
        return np.unpackbits(octets, axis=-1, bitorder="little")
    return np.stack([octets & 15, octets >> 4], axis=-1)


@lru_cache(maxsize=6)  # by format
def _narrow_values(element: str) -> NDArray[np.float64]:
    """(256,) what each byte means."""
    kind, bits = _FORMATS[element]
    halves = ieee.from_narrow(bits, source=kind)
    return np.asarray(halves).view(np.float16).astype(np.float64)


def decoded(bits: NDArray[Any], element: str) -> NDArray[Any]:
    """The numbers that bits mean, exactly: float64, but int64 for s32."""
    found: NDArray[Any]
    if element in ("f64", "u8", "u4", "b1"):
        found = bits
    elif element in ("f32", "f16"):
        found = bits.view(f"f{bits.itemsize}")
    elif element == "bf16":
        found = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    elif element == "tf32":
        found = (bits & _TF32).view(np.float32)
    elif element in _FORMATS:
        found = _narrow_values(element).take(bits)
    elif element == "s4":
        found = (bits << np.uint8(4)).view(np.int8) >> 4
    else:
        found = bits.view(f"i{bits.itemsize}")
    return found.astype(np.int64 if element == "s32" else np.float64, copy=False)


def encoded(values: NDArray[Any], element: str) -> NDArray[Any]:
    """Numbers rounded once to nearest, a NaN canonical, integers modulo 2**32.

    The last axis is packed into words, or left away where a word holds one element.
    """
    if element in ("f64", "s32"):
        return (values if element == "f64" else values.astype(np.uint32))[..., 0]
    narrow = values.astype(np.float32 if element == "f32" else np.float16)
    bits = narrow.view(np.uint32 if element == "f32" else np.uint16)
    bits[np.isnan(values)] = _CANONICAL[element]
    packed: NDArray[np.uint32] = np.ascontiguousarray(bits).view(np.uint32)[..., 0]
    return packed
