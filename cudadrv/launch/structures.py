"""Structures by value: what stands for one, and its bytes."""

from __future__ import annotations

import ctypes
import struct
from typing import Final

import numpy as np

from ..memory.dtypes import AnyDType

COMPLEX_NAMES: Final = {8: "complex64", 16: "complex128"}
_PACKED: Final = "  a dtype made with align=True has C's layout"


def structure_bytes(value: object, nbytes: int) -> bytes | None:
    """The bytes of what may stand for a structure of so many; None for what may not.

    Bytes, a NumPy scalar, an array of one element, a ctypes structure, a complex number. They may
    be of another size than asked for.

    Raises:
        OverflowError: a complex number is out of range.
    """
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, complex) and nbytes in COMPLEX_NAMES:
        # Two floats, as complex types of C++ are laid out; as narrow as the parameter is.
        return struct.pack("=2f" if nbytes == 8 else "=2d", value.real, value.imag)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.size == 1):
        return value.tobytes()
    if isinstance(value, (ctypes.Structure, ctypes.Union, ctypes.Array)):
        return bytes(value)
    return None


def layout_hint(value: object) -> str:
    """A line on the layout of a NumPy structure whose size is not that of C's, or nothing."""
    dtype = value.dtype if isinstance(value, (np.generic, np.ndarray)) else None
    is_packed = dtype is not None and dtype.names is not None and not dtype.isalignedstruct
    return f"\n{_PACKED}" if is_packed else ""


def dtype_name(dtype: AnyDType) -> str:
    """A dtype in a few words: the fields of a structure would fill lines."""
    return str(dtype) if dtype.names is None else "of structures"
