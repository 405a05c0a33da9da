"""What a kernel's parameter gets for a value, written from the pages: its bytes, or a rejection.

It decides each cell of the matrix, and imports nothing of the packages under test. A combination
without a row raises `KeyError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, Final

from .facts import Bytes, Complex, Either, Memory, Null, Number, Parameter, View, Wrong

REJECTED: Final = "rejected"
NAN: Final = "a NaN"
Verdict = bytes | str


# Bytes, bits of the fraction, bias, the codes of the largest number and of infinity.
FORMATS: Final = {
    "float64": (8, 52, 1023, (2047 << 52) - 1, 2047 << 52),
    "float32": (4, 23, 127, (255 << 23) - 1, 255 << 23),
    "float16": (2, 10, 15, (31 << 10) - 1, 31 << 10),
    "bfloat16": (2, 7, 127, (255 << 7) - 1, 255 << 7),
    "float8_e4m3fn": (1, 3, 7, 0x7E, None),
    "float8_e5m2": (1, 2, 15, 0x7B, 0x7C),
}
INTEGERS: Final = frozenset(f"{sign}int{n}" for sign in ("", "u") for n in (2, 4, 8, 16, 32, 64))
_SIZED: Final = {
    8: ("int8", "uint8", "bool"),
    16: ("int16", "uint16"),
    32: ("int32", "uint32"),
    64: ("int64", "uint64"),
}
ANY_ORDER: Final = ("any",)  # in any byte order
NATIVE: Final = ("any", "native")
# The arrays that a pointer accepts; those of "other" it accepts always, and buffers.
ELEMENTS: Final = {
    "float": ("float32", "complex64"), "double": ("float64", "complex128"),
    "float4": ("float32", "complex64"), "double2": ("float64", "complex128"),
    "int": _SIZED[32], "unsigned int": _SIZED[32], "short": _SIZED[16],
    "unsigned short": (*_SIZED[16], "float16", "bfloat16"), "long long": (*_SIZED[64], "time"),
    "unsigned long long": (*_SIZED[64], "time"), "bool": _SIZED[8], "signed char": _SIZED[8],
    "half": ("float16", *_SIZED[16]), "bfloat16": ("bfloat16", *_SIZED[16]),
    "half2": ("float16", *_SIZED[16]),
    "e4m3": ("float8_e4m3fn", *_SIZED[8]), "e5m2": ("float8_e5m2", *_SIZED[8]),
    # Bytes, and where the source does not tell the type; structures and vectors of integers.
    **dict.fromkeys(("void", "char", "unsigned char", ""), ANY_ORDER),
    **dict.fromkeys(("struct", "int2", "pointer"), NATIVE),
}  # fmt: skip
_WHOLE: Final = {"float4": 16, "double2": 16, "half2": 4}
_TWO_FLOATS: Final = ("", "float2", "double2")  # the classes that complex numbers fit


@cache
def _value_of(form: str, code: int) -> Fraction:
    """Decode the bits of a positive number; the code after the largest is its neighbour."""
    _, fraction_bits, bias, *_ = FORMATS[form]
    exponent, fraction = divmod(code, 1 << fraction_bits)
    if exponent == 0:
        return Fraction(fraction, 1 << fraction_bits) * Fraction(2) ** (1 - bias)
    return (1 + Fraction(fraction, 1 << fraction_bits)) * Fraction(2) ** (exponent - bias)


def rounded(form: str, value: Fraction | float) -> Verdict:
    """Return the nearest number of a format, ties to even."""
    is_negative = math.copysign(1, value) < 0 if isinstance(value, float) else value < 0
    return _rounded(form, abs(value), is_negative)


@cache
def _rounded(form: str, value: Fraction | float, is_negative: bool) -> Verdict:
    """Find the nearest number by bisection of the codes of its format."""
    nbytes, _, _, largest, infinity = FORMATS[form]
    if isinstance(value, float) and math.isnan(value):
        return NAN
    if isinstance(value, float) and math.isinf(value):
        if infinity is None:
            return REJECTED
        code = infinity
    else:
        exact, low, high = Fraction(value), 0, largest + 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _value_of(form, middle) <= exact else (low, middle)
        twice = 2 * exact - _value_of(form, low) - _value_of(form, low + 1)
        code = low + (twice > 0 or (twice == 0 and low % 2))
        if code > largest:
            return REJECTED
    return (code | is_negative << 8 * nbytes - 1).to_bytes(nbytes, "little")


def is_nan(form: str, data: bytes) -> bool:
    """Return whether the bytes are a NaN of a format."""
    nbytes, _, _, largest, infinity = FORMATS[form]
    code = int.from_bytes(data, "little") & ~(1 << 8 * nbytes - 1)
    return code > (largest if infinity is None else infinity)


def verdict(parameter: Parameter, value: object) -> Verdict:
    """Return the bytes that the kernel gets, `NAN` for those of any, or `REJECTED`."""
    return _RULES[type(value)](parameter, value)


def _number(parameter: Parameter, number: Number) -> Verdict:
    kind, nbytes, value = parameter.kind, parameter.nbytes, number.value
    is_integer = number.type == "int" or number.type in INTEGERS
    if kind == "float":
        return (
            number.bits
            if number.bits and number.type == parameter.of
            else rounded(parameter.of, value)
        )
    if kind == "class":
        return number.bits if number.bits and number.type == parameter.of else REJECTED
    if number.type == "bool":
        takes_bool = kind == "bool" or (nbytes == 1 and parameter.of in ("any", "bits"))
        return bytes([bool(value)]) if takes_bool else REJECTED
    if is_integer:
        least, most = {
            ("bool", ""): (0, 2),
            ("pointer", parameter.of): (0, 1 << 64),
            ("integer", "unsigned"): (0, 1 << 8 * nbytes),
            ("integer", "signed"): (-1 << 8 * nbytes - 1, 1 << 8 * nbytes - 1),
        }.get((kind, parameter.of), (-1 << 8 * nbytes - 1, 1 << 8 * nbytes))
        return (
            int(value % (1 << 8 * nbytes)).to_bytes(nbytes, "little")
            if (least <= value < most)
            else REJECTED
        )
    if kind == "bits" and nbytes >= 4 and number.type != "real":
        return rounded({4: "float32", 8: "float64"}[nbytes], value)
    if kind == "bits":  # of which type, the value tells
        return number.bits if len(number.bits) == nbytes else REJECTED
    return {"integer": REJECTED, "bool": REJECTED, "pointer": REJECTED, "word": REJECTED}[kind]


def _complex(parameter: Parameter, value: Complex) -> Verdict:
    form = {8: "float32", 16: "float64"}.get(parameter.nbytes)
    is_class = parameter.kind == "class" and parameter.of in _TWO_FLOATS
    is_bits = parameter.kind == "bits" and not value.is_array
    if form is None or not (is_class or is_bits):
        return REJECTED
    if value.nbytes not in (0, parameter.nbytes):
        return REJECTED
    parts = rounded(form, value.real), rounded(form, value.imag)
    return REJECTED if REJECTED in parts else b"".join(map(_as_bytes, parts))


def _as_bytes(part: Verdict) -> bytes:
    assert isinstance(part, bytes), "no complex number of the matrix has a NaN"
    return part


def _bytes(parameter: Parameter, value: Bytes) -> Verdict:
    is_small = parameter.kind == "float" and parameter.nbytes <= 2  # a class, too
    is_bits = parameter.kind == "bits" and not value.is_array
    is_class = is_small or is_bits or parameter.kind == "class"
    return value.data if is_class and len(value.data) == parameter.nbytes else REJECTED


def _memory(parameter: Parameter, memory: Memory) -> Verdict:
    names = ELEMENTS[parameter.of] if parameter.kind == "pointer" else ANY_ORDER
    size = math.prod(memory.shape) * memory.itemsize
    is_whole = not memory.tells_size or size % _WHOLE.get(parameter.of, 1) == 0
    is_native = memory.dtype != "swapped"
    fits = is_native or names == ANY_ORDER
    if "any" not in names:
        fits = memory.dtype in ("", "other", *names)
    takes_memory = parameter.kind in ("pointer", "word") or (
        parameter.kind in ("integer", "bits") and parameter.nbytes == 8
    )
    is_writable = not memory.is_read_only or parameter.is_const
    is_good = memory.is_reachable and not memory.is_masked and _is_dense(memory)
    if takes_memory and is_good and fits and is_writable and (memory.dtype == "" or is_whole):
        return memory.address.to_bytes(8, "little")
    return REJECTED


def _is_dense(memory: Memory) -> bool:
    if memory.strides is None:
        return True
    step = memory.itemsize
    for extent, stride in zip(memory.shape[::-1], memory.strides[::-1], strict=True):
        if extent != 1 and stride != step:
            return 0 in memory.shape
        step *= extent
    return True


def _null(parameter: Parameter, _: Null) -> Verdict:
    # A 64-bit integer may be an address.
    takes_null = parameter.nbytes == 8 and parameter.kind not in ("float", "class")
    return bytes(8) if takes_null else REJECTED


def _view(parameter: Parameter, view: View) -> Verdict:
    takes_it = parameter.nbytes == 8 and parameter.kind in ("word", "integer", "bits")
    return view.number.to_bytes(8, "little") if takes_it else REJECTED


# Any: each rule takes the facts that it stands for.
_RULES: Final[dict[type, Callable[[Parameter, Any], Verdict]]] = {
    Number: _number, Complex: _complex, Bytes: _bytes, Memory: _memory, Null: _null, View: _view,
    Wrong: lambda parameter, value: REJECTED,
    Either: lambda parameter, value: verdict(
        parameter, value.memory if parameter.kind == "pointer" else value.number
    ),
}  # fmt: skip
