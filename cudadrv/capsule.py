"""Python capsules, as the C interface of CPython has them.

The functions are prototypes of this file: those of `ctypes.pythonapi` itself are shared with
whatever else in the process sets their argument types.
"""

from __future__ import annotations

import ctypes
from typing import Final

_api: Final = ctypes.pythonapi
_new: Final = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", _api))
_pointer: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
_is_valid: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)


def new_capsule(address: int, name: bytes) -> object:
    """A capsule over an address, without a destructor; `name` must outlive it.

    A destructor in Python would be called where an exception is on its way, such as the refusal of
    a consumer, and lose it.
    """
    capsule: object = _new(address, name, None)
    return capsule


def is_named(capsule: object, name: bytes) -> bool:
    """Whether a capsule has this name: a consumer renames the one that it takes."""
    return bool(_is_valid(capsule, name))


def capsule_address(capsule: object, name: bytes) -> int:
    """The address in a capsule of this name.

    Raises:
        ValueError: the capsule has another name.
    """
    return int(_pointer(capsule, name))
