"""Numbers as kernel arguments: the types that struct packs unchanged, and rounding to C++'s types.

A number is rounded to the nearest value of the parameter's type, ties to even, as C++ converts it.
It never depends on earlier launches: generated code accepts only what this file would pack alike.
"""

from __future__ import annotations

import ctypes
import math
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol, TypeAlias

import numpy as np

from ..memory.dtypes import AnyArray, AnyDType

# Not those of np.sctypeDict, to which ml_dtypes adds its own when it is imported.
_NUMPY_SCALARS: Final[frozenset[type]] = frozenset(
    np.dtype(code).type for code in np.typecodes["All"]
)
# Spans of time have a unit, which a parameter would lose.
_INTEGERS: Final = {t for t in _NUMPY_SCALARS if issubclass(t, np.integer)} - {np.timedelta64}
# The types that struct packs by their value. Any other may have an index that is an address, or be
# complex and lose a part. A `bool` where an integer belongs is a mistake.
WHOLE: Final[frozenset[type]] = frozenset({int, *_INTEGERS})
REALS: Final[frozenset[type]] = (
    WHOLE
    | {bool, float}
    # A longdouble has more digits than struct packs.
    | {t for t in _NUMPY_SCALARS if issubclass(t, np.floating) and t is not np.longdouble}
)
SINGLES: Final[frozenset[type]] = frozenset(
    t for t in REALS if t is bool or (issubclass(t, np.generic) and np.dtype(t).itemsize <= 4)
)
"""Those whose values are all in the range of a float32, and rounded once by C."""
_EXACT: Final = 2**53  # C converts integers up to it without rounding them twice
LARGEST_SINGLE: Final = float(np.finfo(np.float32).max)


# The value that a caller gave, of any type.
def fits_single(value: object) -> bool:
    """Return whether struct packs a value as the float32 that it is rounded to.

    It packs a float out of range as infinity, and an integer after rounding it to a float64.
    """
    kind = value.__class__
    if kind in SINGLES:
        return True
    if isinstance(value, float):  # and float64
        in_range = -LARGEST_SINGLE <= value <= LARGEST_SINGLE
        return kind in REALS and (in_range or not math.isfinite(value))
    if kind in WHOLE and isinstance(value, (int, np.integer)):
        return bool(-_EXACT <= value <= _EXACT)
    return False


class _Rational(Protocol):
    """A finite number that is a quotient of integers: an int, a Fraction, a Decimal."""

    def as_integer_ratio(self) -> tuple[int, int]: ...


Real: TypeAlias = float | int | _Rational


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format with a sign bit.

    Sources: IEEE 754; the 8-bit formats of OCP, "OFP8", which `cuda_fp8.h` names.

    Attributes:
        name: the name of NumPy or ml_dtypes.
        nbytes: its size.
        fraction_bits: the bits after the binary point.
        least_exponent: the exponent of the smallest normal number.
        largest: the bits of the largest finite number.
        infinity: the bits of infinity; None if there is none.
        nan: the bits of a NaN.
    """

    name: str
    nbytes: int
    fraction_bits: int
    least_exponent: int
    largest: int
    infinity: int | None
    nan: int

    def pack(self, value: Real) -> bytes:
        """Return the bytes of the nearest number of the format.

        Raises:
            OverflowError: it is out of range.
        """
        if self.name == "float64":
            return struct.pack("=d", _as_float64(value))
        if isinstance(value, float):
            bits, is_negative = self._bits(value), math.copysign(1.0, value) < 0
        else:
            numerator, denominator = value.as_integer_ratio()
            bits, is_negative = self._rounded(numerator, denominator), numerator < 0
        return (bits | is_negative << self.nbytes * 8 - 1).to_bytes(self.nbytes, "little")

    def _bits(self, value: float) -> int:
        if math.isfinite(value):
            return self._rounded(*value.as_integer_ratio())
        if math.isnan(value):
            return self.nan
        if self.infinity is None:
            raise OverflowError(f"{self.name} has no infinity")
        return self.infinity

    def _rounded(self, numerator: int, denominator: int) -> int:
        """Return the bits of a quotient without its sign, rounded to the nearest, ties to even."""
        if not numerator:
            return 0
        numerator = abs(numerator)
        exponent = numerator.bit_length() - denominator.bit_length()
        if numerator << max(-exponent, 0) < denominator << max(exponent, 0):
            exponent -= 1  # 2**exponent <= quotient < 2**(exponent + 1)
        exponent = max(exponent, self.least_exponent)
        shift = exponent - self.fraction_bits  # one step is 2**shift
        numerator, denominator = numerator << max(-shift, 0), denominator << max(shift, 0)
        steps, rest = divmod(numerator, denominator)
        steps += 2 * rest > denominator or (2 * rest == denominator and steps % 2)
        # The leading bit of a normal number counts in the exponent, and so does a carry.
        bits = steps + (exponent - self.least_exponent << self.fraction_bits)
        if bits > self.largest:
            raise OverflowError(f"out of range for {self.name}")
        return bits


def _as_float64(value: Real) -> float:
    if isinstance(value, (int, float)):
        return float(value)
    numerator, denominator = value.as_integer_ratio()
    return numerator / denominator  # rounded once, for integers of any size


_FLOAT64: Final = FloatFormat("float64", 8, 52, -1022, 0, None, 0)
_FLOAT32: Final = FloatFormat("float32", 4, 23, -126, 0x7F7FFFFF, 0x7F800000, 0x7FC00000)
_FLOAT16: Final = FloatFormat("float16", 2, 10, -14, 0x7BFF, 0x7C00, 0x7E00)
FORMATS_OF_PTX: Final = {"f64": _FLOAT64, "f32": _FLOAT32, "f16": _FLOAT16}
"""The format of a number by its type in PTX."""
FORMATS_OF_BITS: Final = {"b64": _FLOAT64, "b32": _FLOAT32}
"""The format that a float gets where PTX only has a size; 16 bits may be of two formats."""
FORMATS_OF_CLASSES: Final = {
    "6__half": _FLOAT16,
    "13__nv_bfloat16": FloatFormat("bfloat16", 2, 7, -126, 0x7F7F, 0x7F80, 0x7FC0),
    "13__nv_fp8_e4m3": FloatFormat("float8_e4m3fn", 1, 3, -6, 0x7E, None, 0x7F),
    "13__nv_fp8_e5m2": FloatFormat("float8_e5m2", 1, 2, -14, 0x7B, 0x7C, 0x7E),
}
"""The format of a class of CUDA's headers, by its mangled name."""
OTHER_CLASSES: Final = {
    "13__nv_fp8_e8m0": "float8_e8m0fnu",
    "13__nv_fp6_e2m3": "float6_e2m3fn",
    "13__nv_fp6_e3m2": "float6_e3m2fn",
    "13__nv_fp4_e2m1": "float4_e2m1fn",
}
"""The dtype of ml_dtypes of a class whose constructors round in more than one way."""


def unwrapped(value: object) -> object:
    """Return the number in a ctypes object or an array of no dimensions; other values unchanged."""
    if type(value) in REALS:  # the most frequent; the tests below cost a microsecond
        return value
    # ctypes has no public name for the base of its numbers. A pointer to text is none.
    if isinstance(value, ctypes._SimpleCData) and not isinstance(value, ctypes.c_char_p):
        inner: object = value.value
        return inner
    if isinstance(value, np.ndarray) and value.ndim == 0 and not has_mask(value):
        value = value[()]
    if isinstance(value, np.bool_):
        return bool(value)
    if is_small_number(value) and "int" in name_of(value):
        return int(value)  # type: ignore[call-overload]  # an int4 of ml_dtypes
    return value


def has_mask(array: AnyArray) -> bool:
    """Return whether elements of a host array are masked."""
    return type(array) is not np.ndarray and bool(np.ma.is_masked(array))


def is_small_number(value: object) -> bool:
    """Return whether a value is a scalar of a dtype that another package adds to NumPy."""
    # They derive from this class alone.
    return type(value).__bases__ == (np.generic,) and type(value) not in _NUMPY_SCALARS


def name_of(value: object) -> str:
    """Return the name of the dtype of one of NumPy's scalars."""
    kind: type = type(value)
    return _name_of(kind)


@lru_cache(maxsize=64)
def _name_of(kind: type) -> str:
    # NumPy makes a name at each access, which takes longer than reading an argument.
    dtype: AnyDType = np.dtype(kind)
    return dtype.name


def real_number(value: object) -> Real | None:
    """Return a real number with all its digits; None for other values.

    Raises:
        OverflowError: it is finite, and out of the range of a float64.
        Exception: the value's own conversion failed.
    """
    if type(value) in REALS and isinstance(value, (int, float)):
        return value
    if isinstance(value, np.ndarray):
        return None
    if isinstance(value, np.generic) and not (
        type(value) in REALS or type(value) is np.longdouble or is_small_number(value)
    ):
        return None
    if isinstance(value, np.integer):
        return int(value)
    if not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        return None
    # The type checker does not follow hasattr.
    number = float(value)  # type: ignore[arg-type]
    if math.isinf(number) and value != number:
        raise OverflowError("out of range for float64")
    exact = getattr(value, "as_integer_ratio", None)
    # A zero may stand for a number whose quotient has millions of digits.
    is_finer = exact is not None and number and math.isfinite(number) and value != number
    return value if is_finer else number  # type: ignore[return-value]  # it has the method
