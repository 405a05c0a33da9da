"""Plain descriptions of values and of parameters, which the oracle of arguments decides by."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Number:
    """A real number; `value` is a float if it is no finite one, or a zero with a sign."""

    type: str  # bool, int, float, or the name of a dtype
    value: Fraction | float
    bits: bytes = b""  # of a float of at most 16 bits


@dataclass(frozen=True)
class Complex:
    """A complex number; of its own width, or as wide as the parameter."""

    real: float
    imag: float
    nbytes: int = 0
    is_array: bool = False


@dataclass(frozen=True)
class Bytes:
    """Bytes, or a structure of them; or an array of one structure."""

    data: bytes
    is_array: bool = False


@dataclass(frozen=True)
class Memory:
    """An array; strides are in bytes, None stands for C order."""

    address: int
    dtype: str  # "" of a buffer; "other" of structures, text, raw bytes; "time"; "unnamed"
    itemsize: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    is_read_only: bool = False
    is_reachable: bool = True  # from the kernel's device
    is_masked: bool = False
    tells_size: bool = True


@dataclass(frozen=True)
class Null:
    """None."""


@dataclass(frozen=True)
class Wrong:
    """What no parameter accepts."""


@dataclass(frozen=True)
class Either:
    """A host array of no dimensions in pinned memory: memory for a pointer, else its number."""

    memory: Memory
    number: Number


@dataclass(frozen=True)
class View:
    """A texture, which a 64-bit integer takes by its number."""

    number: int


@dataclass(frozen=True)
class Parameter:
    """`kind` is float, integer, bool, pointer, word, class or bits; `of` is its type."""

    kind: str
    nbytes: int
    of: str = ""
    is_const: bool = False
