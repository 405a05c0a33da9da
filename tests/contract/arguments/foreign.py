"""Arrays of other libraries, made from plain descriptions: by each way to share memory."""

from __future__ import annotations

import ctypes
from operator import attrgetter
from typing import Any, Final

import numpy as np

from cudadrv.interop import Reader, register

from ..interop.exchanging_library import Library
from .facts import Memory

_CODES: Final = {
    **{f"int{n}": (0, n) for n in (8, 16, 32, 64)}, **{f"uint{n}": (1, n) for n in (8, 16, 32, 64)},
    "float16": (2, 16), "float32": (2, 32), "float64": (2, 64), "complex64": (5, 64),
    "complex128": (5, 128), "bool": (6, 8), "bfloat16": (4, 16), "float8_e4m3fn": (10, 8),
    "float8_e5m2": (12, 8),
}  # fmt: skip
DLPACK_TYPES: Final = frozenset(_CODES)
"""The dtypes that DLPack transfers."""


class ByInterface:
    """An array with the CUDA array interface, of any version."""

    def __init__(self, memory: Memory, typestr: str, owner: object, **entries: Any) -> None:
        self.owner = owner
        self.__cuda_array_interface__ = {
            "shape": memory.shape,
            "typestr": typestr,
            "data": (memory.address, memory.is_read_only),
            "strides": memory.strides,
            "version": 3,
            **entries,
        }
        if memory.is_masked:
            self.__cuda_array_interface__["mask"] = self


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class _Plain(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    )  # fmt: skip


_new_capsule: Final = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))


class ByDlpack:
    """An array with DLPack, before its version 1 or since."""

    def __init__(self, memory: Memory, owner: object, device: int, *, is_versioned: bool) -> None:
        self.owner, self.is_versioned = owner, is_versioned
        head = _Versioned(major=1, minor=1, flags=int(memory.is_read_only))
        managed: Any = head if is_versioned else _Plain()
        tensor = managed.tensor
        # An offset of its own, which consumers add.
        offset = 16 if memory.address >= 16 else 0
        tensor.data, tensor.byte_offset = memory.address - offset or None, offset
        tensor.device_type, tensor.device_id = 2, device
        tensor.ndim, tensor.lanes = len(memory.shape), 1
        tensor.code, tensor.bits = _CODES[memory.dtype]
        self.extents = (ctypes.c_int64 * len(memory.shape))(*memory.shape)
        tensor.shape = ctypes.addressof(self.extents)
        if memory.strides is not None:
            steps = [stride // memory.itemsize for stride in memory.strides]
            self.steps = (ctypes.c_int64 * len(steps))(*steps)
            tensor.strides = ctypes.addressof(self.steps)
        self.managed, self.device = managed, device
        self.__name: bytes = b"dltensor_versioned" if is_versioned else b"dltensor"

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device

    def __dlpack__(
        self, *, stream: int | None = None, max_version: tuple[int, int] | None = None
    ) -> object:
        if max_version is not None and not self.is_versioned:
            raise TypeError("unexpected keyword argument 'max_version'")
        return _new_capsule(ctypes.addressof(self.managed), self.__name, None)


library: Final = Library()
"""A library with DLPack's exchange functions."""


class Known:
    """An array of a library whose reader tells everything."""

    def __init__(
        self, memory: Memory, dtype: np.dtype[Any], dense: bool, owner: object, device: int
    ) -> None:
        self.owner, self.pointer, self.place = owner, memory.address, device
        self.dtype = dtype
        self.dense, self.frozen = dense, memory.is_read_only


class KnownInPart(ByInterface):
    """An array of a library whose reader tells its place, and the array interface the rest."""

    def __init__(
        self, memory: Memory, typestr: str, owner: object, device: int, **entries: Any
    ) -> None:
        super().__init__(memory, typestr, owner, **entries)
        self.pointer, self.place = memory.address, device


_place, _pointer = attrgetter("place"), attrgetter("pointer")
register(
    Known,
    Reader(
        _pointer,
        _place,
        dtype=attrgetter("dtype"),
        is_read_only=attrgetter("frozen"),
        is_contiguous=attrgetter("dense"),
    ),
)
register(KnownInPart, Reader(_pointer, _place))
