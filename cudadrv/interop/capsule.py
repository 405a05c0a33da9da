"""Python capsules, as the C interface of CPython has them.

The functions are prototypes of this file: those of `ctypes.pythonapi` itself are shared with
whatever else in the process sets their argument types.
"""

from __future__ import annotations

import ctypes
from typing import Final

_pointer: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def capsule_address(capsule: object, name: bytes) -> int:
    """The address in a capsule of this name.

    Raises:
        ValueError: the capsule has another name.
    """
    return int(_pointer(capsule, name))
