"""Operands that find mistakes: random bits, ties, subnormals, extremes and every special value."""

from __future__ import annotations

from itertools import product
from typing import Any, TypeAlias

import numpy as np

SPECIAL = {
    np.float32: [
        0x00000000, 0x00000001, 0x00000002, 0x007FFFFF, 0x00800000, 0x00800001, 0x33800000,
        0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x40000000, 0x40490FDB, 0x4B800000, 0x7E800000,
        0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000,
    ],
    np.float64: [
        0x0000000000000000, 0x0000000000000001, 0x0000000000000003, 0x000FFFFFFFFFFFFF,
        0x0010000000000000, 0x0010000000000001, 0x3CA0000000000000, 0x3CB0000000000000,
        0x3FEFFFFFFFFFFFFF, 0x3FF0000000000000, 0x3FF0000000000001, 0x4000000000000000,
        0x400921FB54442D18, 0x4340000000000000, 0x5FE0000000000000, 0x7FD0000000000000,
        0x7FE0000000000000, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF0000000000001,
        0x7FF8000000000000,
    ],
}  # fmt: skip

Values: TypeAlias = Any
"""An array of the dtype asked for; NumPy's stubs cannot follow a dtype given as an argument."""


def specials(dtype: type[Any]) -> Values:
    """Every special value with both signs."""
    unsigned = np.uint32 if dtype is np.float32 else np.uint64
    bits: Values = np.array(SPECIAL[dtype], unsigned)
    sign = unsigned(1) << unsigned(8 * bits.itemsize - 1)
    return np.concatenate([bits, bits | sign]).view(dtype)


def combinations(dtype: type[Any], count: int) -> list[Values]:
    """All tuples of special values, as one array an operand."""
    values = specials(dtype)
    places = np.array(list(product(range(len(values)), repeat=count)))
    return [values[places[:, i]] for i in range(count)]


def random_bits(dtype: type[Any], n: int, rng: np.random.Generator) -> Values:
    """Uniform bit patterns: every exponent, NaNs and infinities."""
    itemsize = np.dtype(dtype).itemsize
    return rng.integers(0, 256, n * itemsize, dtype=np.uint8).view(dtype)


def short(dtype: type[Any], n: int, bits: int, spread: int, rng: np.random.Generator) -> Values:
    """Few significant bits and near exponents: sums and products that are exact, or ties."""
    mantissa = rng.integers(-(1 << bits), (1 << bits) + 1, n)
    exponent = rng.integers(-spread, spread + 1, n)
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(mantissa.astype(np.float64), exponent).astype(dtype)


def near_powers(dtype: type[Any], n: int, spread: int, rng: np.random.Generator) -> Values:
    """Powers of two and their neighbours, within 2^±spread."""
    with np.errstate(over="ignore", under="ignore"):
        values = np.ldexp(1.0, rng.integers(-spread, spread + 1, n)).astype(dtype)
    unsigned = np.uint32 if dtype is np.float32 else np.uint64
    bits: Values = values.view(unsigned) + rng.integers(-2, 3, n).astype(unsigned)
    sign: Values = rng.integers(0, 2, n, dtype=np.uint64) << np.uint64(8 * values.itemsize - 1)
    sign = sign.astype(unsigned)
    return (bits | sign).view(dtype)
