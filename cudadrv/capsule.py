"""Python capsules, as the C interface of CPython has them.

The functions are prototypes of this file: those of `ctypes.pythonapi` itself are shared with
whatever else in the process sets their argument types.
"""

from __future__ import annotations

import ctypes
from typing import Final

Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

_api: Final = ctypes.pythonapi
_new: Final = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", _api))
_pointer: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
# A capsule under destruction has no references left, so these two take its bare address.
_dying_is_valid: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_dying_pointer: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)


def new_capsule(address: int, name: bytes, destructor: ctypes._FuncPointer) -> object:
    """A capsule over an address; `name` and `destructor` must outlive it."""
    capsule: object = _new(address, name, ctypes.cast(destructor, ctypes.c_void_p))
    return capsule


def capsule_address(capsule: object, name: bytes) -> int:
    """The address in a capsule of this name.

    Raises:
        ValueError: the capsule has another name.
    """
    return int(_pointer(capsule, name))


def dying_capsule_address(capsule: int, name: bytes) -> int | None:
    """In a destructor: the address, or None where a consumer has renamed the capsule."""
    if not _dying_is_valid(capsule, name):
        return None
    return int(_dying_pointer(capsule, name))
