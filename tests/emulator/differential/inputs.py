"""Seeded inputs with edges, the same bits on every machine and with every NumPy.

NumPy promises no stable streams, so the random bits are SplitMix64's (Steele, Lea, Flood, "Fast
splittable pseudorandom number generators", 2014); nothing but integer arithmetic and single
roundings makes numbers of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bits: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Uniform:
    """Floats between two numbers; every `edges`-th is an edge instead, 0 for none."""

    dtype: str
    low: float
    high: float
    edges: int = 4


@dataclass(frozen=True, slots=True)
class Below:
    """32-bit integers from `low` up to, and without, a limit."""

    limit: int
    low: int = 0


@dataclass(frozen=True, slots=True)
class Factors:
    """Elements of matrices in words of 32 bits; `name` is a format of 8 to 32 bits.

    A quarter of them each: exponents far apart; near each other, with infinities and NaNs; near
    each other, with many short fractions; subnormal. Zeros of both signs are among all.
    """

    name: str


Kind: TypeAlias = str | Uniform | Below | Factors
"""Uniform, Below, Factors, or a name: u8 to u64 for integers, f16, bf16, f32 and f64 for floats of
all kinds, f16x2 and bf16x2 for pairs, whole32 for floats that hold small integers."""

_MASK = (1 << 64) - 1
_FORMATS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
_FACTORS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 23), "f32": (8, 23), "e4m3": (4, 3),
            "e5m2": (5, 2)}  # fmt: skip


def make(kind: Kind, count: int, seed: int) -> Bits:
    """The array of a kind: bits for halves and bytes, numbers otherwise."""
    if isinstance(kind, Uniform):
        return _uniform(kind, count, seed)
    if isinstance(kind, Factors):
        return _factors(kind.name, count, seed)
    if isinstance(kind, Below):
        span = np.uint64(kind.limit - kind.low)
        return (_random(seed, count) % span).astype("i8").astype("i4") + np.int32(kind.low)
    if kind == "whole32":
        return (_random(seed, count) % np.uint64(2001)).astype("f4") - np.float32(1000)
    if kind.endswith("x2"):
        half = make(kind[:-2], 2 * count, seed)
        return half.view("u4")
    if kind in _FORMATS:
        bits = _floats(kind, count, seed)
        return bits.view({"f32": "f4", "f64": "f8"}.get(kind, bits.dtype))
    return _integers(int(kind[1:]), count, seed)


def dtype_of(kind: Kind) -> np.dtype[Any]:
    """The type of a kind's array."""
    return make(kind, 1, 0).dtype


def _random(seed: int, count: int) -> NDArray[np.uint64]:
    steps = np.arange(1, count + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = np.uint64(seed * 0xD1342543DE82EF95 & _MASK) + steps * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _picked(values: NDArray[np.uint64], seed: int, count: int) -> NDArray[np.uint64]:
    found: NDArray[np.uint64] = values[_random(seed, count) % np.uint64(len(values))]
    return found


def _mixed(seed: int, *parts: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Each lane from one of the parts."""
    choice = _random(seed, len(parts[0])) % np.uint64(len(parts))
    mixed: NDArray[np.uint64] = np.choose(choice.astype(np.intp), parts)
    return mixed


def _integers(bits: int, count: int, seed: int) -> Bits:
    top, mask = 1 << (bits - 1), (1 << bits) - 1
    edges = [0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 64, top - 2, top - 1, top, top + 1, mask - 1, mask]
    edges += [0x5555555555555555, 0xAAAAAAAAAAAAAAAA, 0x0123456789ABCDEF, 0x8000000080000000]
    parts = (
        _picked(np.array([edge & mask for edge in edges], np.uint64), seed + 1, count),
        _random(seed + 2, count) & np.uint64(mask),
        _random(seed + 3, count) & np.uint64(mask),
        (_random(seed + 4, count) % np.uint64(64) - np.uint64(16)) & np.uint64(mask),
    )
    return _mixed(seed + 5, *parts).astype(f"u{bits // 8}")


def edges_of(name: str) -> list[int]:
    """The bits of special values: zeros, subnormals, ties, extremes, infinities, NaNs."""
    exponent, fraction = _FORMATS[name]
    bias, hidden = (1 << (exponent - 1)) - 1, 1 << fraction
    infinity, one = ((1 << exponent) - 1) << fraction, bias << fraction
    positive = [
        0, 1, 2, hidden - 1, hidden, hidden + 1, one - 1, one, one + 1, one + hidden // 2,
        one + hidden, infinity - hidden, infinity - 1, infinity, infinity | hidden >> 1,
        infinity | 1, infinity | hidden - 1, infinity | hidden >> 1 | 5,
        one - (fraction + 1) * hidden, one - (fraction + 2) * hidden,
    ]  # fmt: skip
    # Numbers around the ends of the integer types, with a half, and near pi.
    for power in (-1, 0, 1, 2, 7, 8, 10, 15, 16, 23, 24, 31, 32, 52, 53, 63, 64):
        if 0 < power + bias < (1 << exponent) - 2:
            whole = (power + bias) << fraction
            positive += [whole, whole + 1, whole - 1]
            if 0 <= power < fraction:
                positive += [whole | 1 << (fraction - 1 - power), whole | 3 << (fraction - 2)]
    kept = [bits for bits in positive if 0 <= bits < 1 << (exponent + fraction)]
    return [*kept, *(bits | 1 << (exponent + fraction) for bits in kept)]


def _floats(name: str, count: int, seed: int) -> Bits:
    exponent, fraction = _FORMATS[name]
    width = 1 + exponent + fraction
    bias = (1 << (exponent - 1)) - 1
    mask = np.uint64((1 << width) - 1)
    near = _random(seed + 3, count)
    # Exponents around that of one, so that sums cancel, round and tie; few significant bits often.
    nearby = (near >> np.uint64(8)) & np.uint64((1 << fraction) - 1)
    short = near & np.uint64(1)
    nearby = np.where(short == 1, nearby & np.uint64(-1 << max(fraction - 4, 0) & _MASK), nearby)
    nearby |= (np.uint64(bias - 6) + (near >> np.uint64(2)) % np.uint64(12)) << np.uint64(fraction)
    nearby |= (near >> np.uint64(63)) << np.uint64(width - 1)
    parts = (
        _picked(np.array(edges_of(name), np.uint64), seed + 1, count),
        _random(seed + 2, count) & mask,
        nearby,
    )
    return _mixed(seed + 5, *parts).astype(f"u{width // 8}")


def _uniform(kind: Uniform, count: int, seed: int) -> Bits:
    unit = (_random(seed, count) >> np.uint64(11)).astype("f8") * 2.0**-53
    values = (kind.low + (kind.high - kind.low) * unit).astype(kind.dtype)
    if kind.edges:
        name = {"f4": "f32", "f8": "f64"}[kind.dtype]
        edges = _picked(np.array(edges_of(name), np.uint64), seed + 1, count)
        edge = edges.astype(f"u{values.itemsize}").view(kind.dtype)
        values = np.where(np.arange(count) % kind.edges == kind.edges - 1, edge, values)
    return values


def _factors(name: str, count: int, seed: int) -> Bits:
    exponent, fraction = _FACTORS[name]
    width, bias, top = 1 + exponent + fraction, (1 << (exponent - 1)) - 1, (1 << exponent) - 1
    n = count * 32 // width
    far = 40 if name == "f32" else 60
    subnormal = {"f32": 120, "bf16": bias + 13, "tf32": bias + 13}.get(name, 2)
    low = np.array([max(1, bias - far), max(1, bias - 6), bias - 3, 0], np.uint64)
    high = np.array(
        [min(top - 1, bias + far), min(top - 1, bias + 6), bias + 3, subnormal], np.uint64
    )
    quarter = np.arange(n) * 4 // n
    spread = (high - low)[quarter] + np.uint64(1)
    bits = (low[quarter] + _random(seed + 1, n) % spread) << np.uint64(fraction)
    chosen = _random(seed + 2, n)
    short = (quarter == 2) & (chosen % np.uint64(2) == 0)
    kept = np.where(short, (1 << fraction) - (1 << fraction // 2), (1 << fraction) - 1)
    bits |= _random(seed + 3, n) & kept.astype(np.uint64)
    infinity = top << fraction
    special = (quarter == 1) & (chosen % np.uint64(300) == 1)
    specials = [infinity | (1 << fraction) - 1, infinity | 1, infinity]
    if name == "e4m3":
        specials = [infinity | 7]
        bits = np.where(bits == infinity | 7, np.uint64(infinity), bits)
    bits = np.where(special, _picked(np.array(specials, np.uint64), seed + 4, n), bits)
    zero = _random(seed + 5, n) % np.array([10, 5, 10, 3], np.uint64)[quarter] == 0
    bits = np.where(zero, np.uint64(0), bits)
    bits |= _random(seed + 6, n) >> np.uint64(63) << np.uint64(width - 1)
    return bits.astype(f"u{width // 8}").view("u4")
