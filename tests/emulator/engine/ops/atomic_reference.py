"""Atomic operations simulated thread by thread in Python's integers and NumPy's single numbers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tests.emulator.engine.ops.bit_reference import typed

Words = list[int]


def width_of(kind: str) -> int:
    """Bits of a type such as "s32", "bf16"."""
    return int(kind.lstrip("bfsu"))


def float_add(old: int, value: int, nbytes: int) -> int:
    kind = {2: np.float16, 4: np.float32, 8: np.float64}[nbytes]
    bits = f"u{nbytes}"
    x, y = (np.array([each], bits).view(kind)[0] for each in (old, value))
    return int(np.array([x + y], kind).view(bits)[0])


def bf16_add(old: int, value: int, _: int) -> int:
    x, y = (float(np.array([each << 16], "u4").view("f4")[0]) for each in (old, value))
    fraction, exponent = math.frexp(x + y)
    rounded = math.ldexp(round(fraction * 256), exponent - 8)
    return int(np.array([rounded], "f4").view("u4")[0]) >> 16


def combined(name: str, kind: str, old: int, value: int, other: int) -> int:
    """The new bits of an element."""
    bits = width_of(kind)
    match name:
        case "add" if kind == "bf16":
            return bf16_add(old, value, 2)
        case "add" if kind[0] == "f":
            return float_add(old, value, bits // 8)
        case "exch":
            return value
        case "cas":
            return other if old == value else old
        case "inc":
            return 0 if old >= value else old + 1
        case "dec":
            return value if old == 0 or old > value else old - 1
    functions: dict[str, Callable[[int, int], int]] = {
        "add": lambda x, y: x + y,
        "and": lambda x, y: x & y,
        "or": lambda x, y: x | y,
        "xor": lambda x, y: x ^ y,
        "min": min,
        "max": max,
    }
    result = functions[name](typed(old, kind), typed(value, kind))
    return result & ((1 << bits) - 1)


def simulate(
    name: str, kind: str, memory: Words, places: Words, values: Words, others: Words
) -> Words:
    """Change `memory` thread by thread; what each found."""
    found = []
    for place, value, other in zip(places, values, others, strict=True):
        found.append(memory[place])
        memory[place] = combined(name, kind, memory[place], value, other)
    return found
