"""Formats of floating-point numbers by their bits, for any of which a word may hold several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.geometry import Value
from ptx.emulate.model.types import NUMPY, kind_of, unsigned, width_of

_INFINITY: Final = float("inf")
_MOST_IN_PRODUCT: Final = 4096
_OF_NUMPY: Final = ("f32", "f64")  # what NumPy calculates with
Parts = NDArray[Any]  # unsigned (n, parts) or (1, parts); of a format's own width


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A format as instructions name it.

    Attributes:
        ptx_type: the type, such as "f16x2".
        held: the type as which a register is read.
        part: the unsigned type of one number.
        exponent: the bits that infinities and NaNs have set, without the sign.
        fraction: the bits of which a NaN has some set.
    """

    ptx_type: str
    held: str
    part: np.dtype[Any]
    exponent: int
    fraction: int

    @property
    def count(self) -> int:
        """How many numbers a register has."""
        return width_of(kind_of(self.held)) // self.part.itemsize

    def parts(self, value: Value) -> Parts:
        """Return the numbers of each thread, as their bits."""
        kind = unsigned(kind_of(self.held))
        words = np.ascontiguousarray(np.atleast_1d(value)).view(NUMPY[kind])
        return np.asarray(words.view(self.part).reshape(len(words), -1))

    def are_nonfinite(self, parts: Parts) -> NDArray[np.bool_]:
        """Return which are infinities or NaNs."""
        mask = self.part.type(self.exponent)
        result: NDArray[np.bool_] = (parts & mask) == mask
        return result

    def are_nans(self, parts: Parts) -> NDArray[np.bool_]:
        """Return which are NaNs."""
        has_fraction: NDArray[np.bool_] = (parts & self.part.type(self.fraction)) != 0
        return self.are_nonfinite(parts) & has_fraction

    def nans_and_finite(self, value: Value) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which numbers are NaN, and which are finite.

        By thread, or (numbers of a register, threads) if a register has several.
        """
        if self.held in _OF_NUMPY:
            return np.asarray(np.isnan(value)), np.asarray(np.isfinite(value))
        if value.itemsize == self.part.itemsize:
            numbers = value.view(self.part)
        else:
            numbers = np.ascontiguousarray(self.parts(value).T)
        mask = self.part.type(self.exponent)
        finite = (numbers & mask) != mask
        nans = ((numbers & self.part.type(self.fraction)) != 0) > finite
        return np.asarray(nans), np.asarray(finite)

    def are_wrong(self, value: Value) -> NDArray[np.bool_]:
        """Return for each thread whether one of its numbers is an infinity or a NaN."""
        if self.held in _OF_NUMPY:
            are_wrong: NDArray[np.bool_] = ~np.isfinite(value)
            return are_wrong
        return np.asarray(self.are_nonfinite(self.parts(value)).any(axis=1))

    def has_nonfinite(self, value: Value) -> bool:
        """Return whether a number of any thread is an infinity or a NaN."""
        if self.held in _OF_NUMPY:
            return not np.isfinite(value).all()
        numbers = np.ascontiguousarray(value).view(self.part) & self.part.type(self.exponent)
        return bool(numbers.max() == self.exponent)

    def of_bits(self, bits: int) -> Parts:
        """Return (1, parts) the numbers of the bits of a register."""
        kind = NUMPY[unsigned(kind_of(self.held))]
        width = 8 * np.dtype(kind).itemsize
        return self.parts(np.array([bits & ((1 << width) - 1)], dtype=kind))

    def text(self, parts: Parts) -> str:
        """Return the numbers of one thread, as NumPy writes them."""
        if self.part.itemsize == 1:
            texts = [f"{bits:#04x}" for bits in parts.tolist()]
        else:
            texts = [str(number) for number in self.floats(parts)]
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    def numbers(self, parts: Parts) -> list[float]:
        """Return the numbers of one thread; not for those of 8 bits."""
        return [float(number) for number in self.floats(parts)]

    def floats(self, parts: Parts) -> NDArray[Any]:
        """Return numbers as NumPy calculates with them; not those of 8 bits."""
        if self.ptx_type.startswith("bf16"):
            return (parts.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return np.ascontiguousarray(parts).view(f"f{self.part.itemsize}")

    def of_floats(self, numbers: NDArray[Any]) -> Parts:
        """Return the bits of numbers; those of bf16 are truncated."""
        if self.ptx_type.startswith("bf16"):
            words = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
            return (words >> np.uint32(16)).astype(np.uint16)
        return np.ascontiguousarray(numbers).view(self.part)


def may_be_nonfinite(value: Value) -> bool:
    """Return whether a float of any thread may be infinite or NaN; True also for very large ones.

    A scalar product is the fastest loop of NumPy; of long arrays it would start threads.
    """
    if not value.ndim:
        total = value * value
    elif len(value) <= _MOST_IN_PRODUCT:
        total = value.dot(value)
    else:
        total = value.sum()
    return not -_INFINITY < total < _INFINITY


def _format(ptx_type: str, held: str, bits: int, exponent: int, fraction: int) -> FloatFormat:
    return FloatFormat(ptx_type, held, np.dtype(f"u{bits // 8}"), exponent, fraction)


_F16: Final = (16, 0x7C00, 0x3FF)
_BF16: Final = (16, 0x7F80, 0x7F)
_F32: Final = (32, 0x7F800000, 0x7FFFFF)
_F64: Final = (64, 0x7FF0000000000000, 0xFFFFFFFFFFFFF)
FORMATS: Final = {
    name: _format(name, held, *layout)
    for name, held, layout in (
        ("f16", "b16", _F16), ("f16x2", "b32", _F16), ("bf16", "b16", _BF16),
        ("bf16x2", "b32", _BF16), ("f32", "f32", _F32), ("f32x2", "b64", _F32),
        ("tf32", "b32", _F32), ("f64", "f64", _F64),
        ("e4m3x2", "b16", (8, 0x7F, 0x01)), ("e5m2x2", "b16", (8, 0x7C, 0x03)),
    )
}  # fmt: skip
"""By the PTX type; e4m3 has no infinity, and one NaN of each sign."""


class IntegerFormat(FloatFormat):
    """An integer among the operands of a float; it is neither infinite nor NaN."""

    __slots__ = ()

    def are_nonfinite(self, parts: Parts) -> NDArray[np.bool_]:
        """Return that none is."""
        return np.zeros(parts.shape, dtype=np.bool_)

    def floats(self, parts: Parts) -> NDArray[Any]:
        """Return the signed numbers."""
        return np.ascontiguousarray(parts).view(f"i{self.part.itemsize}")


INTEGERS: Final = {
    bits: IntegerFormat(f"s{bits}", f"b{bits}", np.dtype(f"u{bits // 8}"), 0, 0)
    for bits in (32, 64)
}
"""By the width."""
