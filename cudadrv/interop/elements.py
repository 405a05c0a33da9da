"""The element type of a kernel's pointer parameter, and the arrays that it accepts.

An array of another type is rejected where that is surely a mistake. The sign of integers does not
matter, dates and spans of time are integers, complex numbers are two floats, and bytes accept
everything. Structures and vectors of integers accept everything in the device's byte order.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import Any, Final

import numpy as np

_SIZED: Final = {
    8: ("int8", "uint8", "bool"),
    16: ("int16", "uint16"),
    32: ("int32", "uint32"),
    64: ("int64", "uint64"),
}
_HALF, _BFLOAT, _E4M3, _E5M2 = "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"
_SINGLE: Final = ("float32", "complex64")
_DOUBLE: Final = ("float64", "complex128")
# By the letters of the Itanium C++ ABI: the words, bytes, and names of NumPy's and ml_dtypes'.
# Neither plain and unsigned characters, which any bytes are, nor void.
_TYPES: Final[dict[str, tuple[str, int, tuple[str, ...]]]] = {
    "b": ("bool", 1, _SIZED[8]),
    "a": ("signed char", 1, _SIZED[8]),
    "s": ("short", 2, _SIZED[16]),
    # Halves are often given as their bits.
    "t": ("unsigned short", 2, (*_SIZED[16], _HALF, _BFLOAT)),
    "i": ("int", 4, _SIZED[32]),
    "j": ("unsigned int", 4, _SIZED[32]),
    "l": ("long", 8, _SIZED[64]),
    "m": ("unsigned long", 8, _SIZED[64]),
    "x": ("long long", 8, _SIZED[64]),
    "y": ("unsigned long long", 8, _SIZED[64]),
    "w": ("wchar_t", 4, _SIZED[32]),
    "Ds": ("char16_t", 2, _SIZED[16]),
    "Di": ("char32_t", 4, _SIZED[32]),
    "f": ("float", 4, _SINGLE),
    "d": ("double", 8, _DOUBLE),
    "6__half": ("__half", 2, (_HALF, *_SIZED[16])),
    "7__half2": ("__half2", 4, (_HALF, *_SIZED[16])),
    "13__nv_bfloat16": ("__nv_bfloat16", 2, (_BFLOAT, *_SIZED[16])),
    "14__nv_bfloat162": ("__nv_bfloat162", 4, (_BFLOAT, *_SIZED[16])),
    "13__nv_fp8_e4m3": ("__nv_fp8_e4m3", 1, (_E4M3, *_SIZED[8])),
    "13__nv_fp8_e5m2": ("__nv_fp8_e5m2", 1, (_E5M2, *_SIZED[8])),
}
_UNTYPED: Final = {"v": "void", "c": "char", "h": "unsigned char", "Du": "char8_t"}
_VECTOR: Final = re.compile(r"\d+(u?short|u?int|u?longlong|u?long|float|double)([1-4])")
_OF_VECTOR: Final = {
    "short": "s", "ushort": "t", "int": "i", "uint": "j", "long": "l", "ulong": "m",
    "longlong": "x", "ulonglong": "y", "float": "f", "double": "d",
}  # fmt: skip
_SWAPPED: Final = "another byte order"
_IN_ORDER: Final = "one of the device's, by array.astype(array.dtype.newbyteorder('=')) on the host"
UNNAMED: Final = "a type that NumPy has no name for"
"""The name of elements whose type is known, and neither NumPy's nor ml_dtypes'."""
# Every dtype that is no structure, text or raw bytes.
_KNOWN: Final = frozenset(name for _, _, names in _TYPES.values() for name in names) | {
    "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4",
    "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
    "int2", "uint2", "int4", "uint4", _SWAPPED, UNNAMED,
    np.dtype(np.longdouble).name, np.dtype(np.clongdouble).name,
}  # fmt: skip
# They have a unit, which is no part of the name, and are integers of 64 bits.
_TIMES: Final = ("datetime64", "timedelta64")


class Elements:
    """The elements that a pointer points to.

    Attributes:
        words: the type in C++, such as "const float".
        is_const: True if the kernel only reads.
        nbytes: bytes of one element; 1 where any bytes are accepted.
        is_vector: True if an element is several numbers of a type that is checked, as of a float4.
        takes_bytes: True if arrays of every type are accepted, as bytes.
        usual: the name of the expected dtype; "" where any is accepted.
    """

    __slots__ = ("_names", "is_const", "is_vector", "nbytes", "takes_bytes", "usual", "words")

    def __init__(
        self,
        words: str,
        *,
        is_const: bool,
        nbytes: int = 1,
        names: tuple[str, ...] = (),
        is_vector: bool = False,
        takes_bytes: bool = False,
    ) -> None:
        self.words: str = f"const {words}" if is_const else words
        self.is_const: bool = is_const
        self.nbytes: int = nbytes
        self.is_vector: bool = is_vector
        self.takes_bytes: bool = takes_bytes
        self.usual: str = names[0] if names else ""
        self._names = frozenset(names)

    def has_parts_in(self, nbytes: int) -> bool:
        """Return True if an array of so many bytes ends within a vector."""
        return self.is_vector and nbytes % self.nbytes != 0

    @property
    def described(self) -> str:
        """The pointer in words."""
        return f"a device pointer to {self.words}"

    # Any: a dtype of NumPy or of another library.
    def __contains__(self, dtype: Any) -> bool:
        """Return True if arrays of a dtype are accepted."""
        name = dtype_name(dtype)
        if name.startswith(_TIMES):
            name = "int64"
        if not self._names:
            return name != _SWAPPED or self.takes_bytes
        return name in self._names or name not in _KNOWN


def require_usable(
    elements: Elements | None,
    dtype: object,
    *,
    is_contiguous: bool,
    is_read_only: bool,
    nbytes: int | None = None,
    remedy: str = "",
) -> None:
    """Raise a `BufferError`, whose text continues "it ...", for memory that no kernel may get.

    Every pointer that a kernel gets comes past here, whichever library has the memory.

    Args:
        elements: the type that the pointer points to; None if it is unknown.
        dtype: that of the elements of the memory; None if it is not known, or there are none.
        is_contiguous: whether the elements lie in C order, one after the other.
        is_read_only: whether the memory must not be written.
        nbytes: the size of an array; None if there is no array, or its size is not known.
        remedy: what to do about elements that do not lie so.
    """
    if not is_contiguous:
        raise BufferError(
            "is not C-contiguous\n  kernels receive a pointer without strides: "
            f"{remedy or 'give a copy, by Stream.contiguous(Stream.import_array(array))'}"
        )
    if is_read_only and (elements is None or not elements.is_const):
        found = elements.described if elements is not None else "of a type that is not known"
        raise BufferError(
            f"may only be read, but the parameter is {found}\n"
            "  give a copy, or declare the parameter const"
        )
    if elements is None:
        return
    if dtype not in elements:
        raise BufferError(
            f"has elements of {dtype_name(dtype)}, but the parameter is {elements.described}\n"
            f"  give {elements.usual or _IN_ORDER}, or the address as a number"
        )
    if nbytes is not None and elements.has_parts_in(nbytes):
        raise BufferError(
            f"its {nbytes} bytes are not a multiple of an element, but the parameter is "
            f"{elements.described}"
        )


def dtype_name(dtype: Any) -> str:
    """Return NumPy's name of any library's dtype; "" for other objects."""
    if isinstance(dtype, np.dtype):
        return _name_of(dtype)
    if dtype is None or isinstance(dtype, str):
        return dtype or ""
    if not getattr(dtype, "isnative", True):
        return _SWAPPED
    name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    return str(name).rpartition(".")[2]


@lru_cache(maxsize=256)
def _name_of(dtype: np.dtype[Any]) -> str:
    # NumPy builds a name at each access, which takes longer than reading an argument.
    return dtype.name if dtype.isnative else _SWAPPED


def named_dtype(name: str) -> np.dtype[Any] | None:
    """Return the dtype of a name, of NumPy or of ml_dtypes if that is loaded; else None."""
    try:
        return np.dtype(name) if name else None
    except TypeError:
        kind: type | None = getattr(sys.modules.get("ml_dtypes"), name, None)
        return None if kind is None else np.dtype(kind)


@lru_cache(maxsize=256)
def name_of_typestr(text: str) -> str:
    """Return NumPy's name of the dtype of an array interface's typestr."""
    return dtype_name(np.dtype(text))


def _words_of(pointee: str) -> str:
    """Return the name of a class in the ABI's letters, or what it is."""
    if pointee.startswith("P"):
        return "a pointer"
    name = pointee.lstrip("0123456789")
    is_name = name.isidentifier() and pointee == f"{len(name)}{name}"
    return name if is_name else "a structure"


@lru_cache(maxsize=256)
def elements_of(cpp_type: str) -> Elements | None:
    """Return the elements of a pointer type in the ABI's letters; None if it is no pointer."""
    if not cpp_type.startswith("P"):
        return None
    pointee = cpp_type[1:].lstrip("rVK")
    is_const = "K" in cpp_type[1 : len(cpp_type) - len(pointee)]
    vector = _VECTOR.fullmatch(pointee)
    count = int(vector[2]) if vector is not None else 1
    described = _TYPES.get(pointee if vector is None else _OF_VECTOR[vector[1]])
    if described is None:
        untyped = _UNTYPED.get(pointee)
        words = untyped or _words_of(pointee)
        return Elements(words, is_const=is_const, takes_bytes=untyped is not None)
    words, nbytes, names = described
    if vector is not None:
        words = f"{vector[1]}{count}"
        if not vector[1].startswith(("float", "double")):
            names = ()  # a wide load of any elements, as of halves by uint4
    is_vector = vector is not None or pointee in ("7__half2", "14__nv_bfloat162")
    is_vector = is_vector and bool(names)
    return Elements(
        words, is_const=is_const, nbytes=nbytes * count, names=names, is_vector=is_vector
    )
