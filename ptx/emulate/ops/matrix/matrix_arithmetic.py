"""What tensor cores calculate: A * B + C for many small matrices. PTX ISA, "mma.sync", "wgmma".

Integers are exact, and float64 is a chain of fused multiply-adds along k. For f32 and f16 results
the ISA asks for about the precision of the result and leaves order and rounding open. Here they are
as an H100 (capability 9.0) was seen to calculate them, bit for bit: products are exact; they and C
are cut to multiples of 2**-25 of the greatest of their exponents, where a product's exponent is the
sum of its factors'; the exact sum of these is rounded towards zero to f32, or to the nearest f16.
Products of 8-bit floats are two such sums, of the lower and the upper two bytes of each word, to
which C is added. `mma.m8n8k4` of f16, which only Volta has, is done there in steps of f32. Other
architectures cut elsewhere and differ in the last bits.

`wgmma` is the same, but for 8-bit floats: one sum, cut to multiples of 2**-13, in which subnormal
factors and C have the least exponent of their formats; of an f32 result 13 bits of the fraction are
left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate import ieee

Matrices = NDArray[Any]  # (n, rows, columns) of float64, or int64 for s32
Types = tuple[str, str, str, str]  # of D, A, B and C
_KEPT_BITS = 25
_NARROW_KEPT_BITS = 13
_NO_TERM = -600  # an exponent below that of any product
_CACHED = 16384  # elements of D whose sums are worked on together
_NARROW_BITS = np.uint64(0xFFFFFF8000000000)  # 13 bits of a float64's fraction, and what is above
_F32_BITS = np.uint64(0xFFFFFFFFE0000000)  # what float32 has of a float64's bits
_LEAST_EXPONENT = {"f16": -14, "bf16": -126, "tf32": -126, "e4m3": -14, "e5m2": -14}
_NARROW_EXPONENT = {"e4m3": -6, "e5m2": -14, "f16": -14, "f32": -126}
_ROUNDINGS = {
    "rn": ieee.Rounding.RN, "rz": ieee.Rounding.RZ, "rm": ieee.Rounding.RM, "rp": ieee.Rounding.RP,
}  # fmt: skip
OPTIONS = ("satfinite", "xor", "and", *_ROUNDINGS)
"""The modifiers that change the result."""


def product(
    a: Matrices, b: Matrices, c: Matrices, types: Types, options: tuple[str, ...] = ()
) -> Matrices:
    """A * B + C.

    B may be (n, rows of A, k, columns): a matrix for each row of A.
    """
    element, left, right, addend = types
    if element == "s32":
        return _whole(a, b, c, options)
    if element == "f64":
        return _fused(a, b, c, _ROUNDINGS[options[0] if options else "rn"])
    if left not in ("e4m3", "e5m2"):
        # A sum with C of f32 is one of f32, which D may have as f16.
        return cut_sum(a, b, c, (left, right), addend if addend == "f32" else element)
    total = np.zeros_like(c)
    lower = np.arange(a.shape[2]) % 4 < 2
    for part in (lower, ~lower):
        total = cut_sum(a[:, :, part], b[..., part, :], total, (left, right), element)
    rounded: Matrices = (total + c).astype(element.replace("f", "float")).astype(np.float64)
    return rounded


def warpgroup_product(
    a: Matrices, b: Matrices, c: Matrices, types: Types, options: tuple[str, ...] = ()
) -> Matrices:
    """A * B + C of `wgmma`: as `product`, but that 8-bit floats have sums of their own."""
    element, left, right, _ = types
    if left not in ("e4m3", "e5m2"):
        return product(a, b, c, types, options)
    total = cut_sum(a, b, c, (left, right), element, narrow=True)
    if element == "f32":
        total = (total.view(np.uint64) & _NARROW_BITS).view(np.float64) + 0.0
    return total


def product_in_steps(
    a: Matrices, b: Matrices, c: Matrices, types: Types, options: tuple[str, ...] = ()
) -> Matrices:
    """A * B + C of `mma.m8n8k4` with f16: all products and then C to f32; to f16 C halfway."""
    if types[0] == "f32":
        sums = _sum_in_steps(a, b, 0.0) + c.astype(np.float32)
    else:
        sums = _sum_in_steps(a[:, :, :2], b[:, :2], -0.0) + c.astype(np.float32)
        sums += _sum_in_steps(a[:, :, 2:], b[:, 2:], -0.0)
    found: Matrices = sums.astype(np.float64)
    return found


def _sum_in_steps(a: Matrices, b: Matrices, start: float) -> NDArray[np.float32]:
    total: NDArray[np.float32] = np.full((*a.shape[:2], b.shape[2]), start, dtype=np.float32)
    for k in range(a.shape[2]):
        left, right = np.broadcast_arrays(a[:, :, k, None], b[:, None, k, :])
        total = ieee.fma(left.astype(np.float32), right.astype(np.float32), total)
    return total


def _whole(a: Matrices, b: Matrices, c: Matrices, options: tuple[str, ...]) -> Matrices:
    """Products of integers; of single bits, how many are set in both, or in exactly one."""
    # Exact in float64, as all sums are far below 2**53.
    found = np.matmul(a, b) if b.ndim == 3 else np.matmul(a[:, :, None], b)[:, :, 0]
    if "xor" in options:
        found = a.sum(axis=2)[:, :, None] + b.sum(axis=1)[:, None, :] - 2 * found
    total: Matrices = found.astype(np.int64) + c
    return np.clip(total, -(2**31), 2**31 - 1) if "satfinite" in options else total


def _fused(a: Matrices, b: Matrices, c: Matrices, rounding: ieee.Rounding) -> Matrices:
    for k in range(a.shape[2]):
        left, right = np.broadcast_arrays(a[:, :, k, None], b[:, None, k, :])
        c = ieee.fma(left.copy(), right.copy(), c, rounding=rounding)
    return c


def _exponents(values: Matrices, least: int) -> NDArray[np.int16]:
    """The exponents of values in the format; a zero's is below all others."""
    exponent = np.frexp(values)[1].astype(np.int16) - np.int16(1)
    return np.where(values == 0, np.int16(_NO_TERM), np.maximum(exponent, np.int16(least)))


def cut_sum(
    a: Matrices,
    b: Matrices,
    c: Matrices,
    factors: tuple[str, str],
    element: str,
    *,
    narrow: bool = False,
) -> Matrices:
    """The sum of all products and C as the tensor cores round it; a zero is always +0.

    `narrow`: as those of `wgmma` do for 8-bit floats.
    """
    least = _NARROW_EXPONENT if narrow else _LEAST_EXPONENT
    cut = _Cut(
        _NARROW_KEPT_BITS if narrow else _KEPT_BITS, least[factors[0]], least[factors[1]],
        least[element] if narrow else _NO_TERM,
    )  # fmt: skip
    total = np.empty_like(c)
    step = max(1, _CACHED // c[0].size)
    for start in range(0, len(c), step):
        part = slice(start, start + step)
        _cut_sums(a[part], b[part], c[part], cut, total[part])
    if not all(np.isfinite(each).all() for each in (a, b, c)):
        total = _with_infinities(total, a, b, c)
    rounded = total.astype(np.float16).astype(np.float64) if element == "f16" else to_f32(total)
    result: Matrices = rounded + 0.0
    return result


class _Cut(NamedTuple):
    """What a sum keeps of its terms, and the least exponents that they have."""

    kept_bits: int
    least_of_a: int
    least_of_b: int
    least_of_c: int


def _cut_sums(a: Matrices, b: Matrices, c: Matrices, cut: _Cut, total: Matrices) -> None:
    """The exact sums of what is left of the products and of C.

    The matrices' number is the last axis here, so that NumPy's loops are long.
    """
    a, b, c = (np.ascontiguousarray(np.moveaxis(x, 0, -1)) for x in (a, b, c))
    of_a = _exponents(a, cut.least_of_a)
    of_b = _exponents(b, cut.least_of_b)
    greatest = _exponents(c, cut.least_of_c)
    for k in range(a.shape[1]):
        np.maximum(greatest, of_a[:, k, None] + of_b[..., k, :, :], out=greatest)
    np.maximum(greatest, _NO_TERM, out=greatest)
    # Every term is a whole number of units.
    scale = np.ldexp(1.0, cut.kept_bits - greatest.astype(np.intc))
    found = np.trunc(c * scale)
    term = np.empty_like(found)
    for k in range(a.shape[1]):
        np.multiply(a[:, k, None], b[..., k, :, :], out=term)
        term *= scale
        found += np.trunc(term, out=term)
    found /= scale
    total[:] = np.moveaxis(found, -1, 0)


def _with_infinities(total: Matrices, a: Matrices, b: Matrices, c: Matrices) -> Matrices:
    plain = c
    for k in range(a.shape[2]):
        right = b[:, None, k] if b.ndim == 3 else b[:, :, k]
        plain = plain + a[:, :, k, None] * right
    found: Matrices = np.where(np.isfinite(plain), total, plain)
    return found


def to_f32(values: Matrices) -> Matrices:
    """float64 rounded towards zero to values of float32; from 2**128 on infinite."""
    cut: Matrices = (values.view(np.uint64) & _F32_BITS).view(np.float64)
    sizes = np.abs(values)
    above = sizes >= 2.0**128
    if above.any():
        cut[above] = np.copysign(np.inf, values[above])
    below = sizes < 2.0**-126
    if below.any():
        cut[below] = np.trunc(values[below] * 2.0**149) * 2.0**-149
    return cut
