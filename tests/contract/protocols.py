"""Device arrays as another library has them: by one of the protocols that libraries share."""

from __future__ import annotations

import ctypes
from typing import Any

from cudadrv.memory.array import AnyDeviceArray

pointer_of_capsule = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class ByInterface:
    """Memory of another library by the CUDA array interface, changed in part."""

    def __init__(self, array: AnyDeviceArray, **changed: object) -> None:
        self._array = array
        interface: dict[str, Any] = {**array.__cuda_array_interface__, **changed}
        self.__cuda_array_interface__ = interface


class ByDlpack:
    """Memory of another library by DLPack; with `edit`, its tensor changed."""

    def __init__(self, array: AnyDeviceArray, **edit: int) -> None:
        self._array = array
        self._edit = edit

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(self, *, stream: int | None = None) -> object:
        capsule = self._array.__dlpack__(stream=stream)
        address = pointer_of_capsule(capsule, b"dltensor")
        for where, value in self._edit.items():
            kind, offset = {"code": (ctypes.c_uint8, 20), "bits": (ctypes.c_uint8, 21)}[where]
            kind.from_address(address + offset).value = value
        return capsule
