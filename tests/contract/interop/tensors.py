"""The structures of dlpack.h, to make tensors and to look at those in capsules."""

from __future__ import annotations

import ctypes
from typing import Final

from ..protocols import pointer_of_capsule

READ_ONLY: Final = 1


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class ManagedTensor(ctypes.Structure):
    _fields_ = (
        ("tensor", DLTensor),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class VersionedTensor(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


def versioned_in(capsule: object) -> VersionedTensor:
    """The tensor in a capsule of version 1, which lives as long as the capsule."""
    return VersionedTensor.from_address(pointer_of_capsule(capsule, b"dltensor_versioned"))


def tensor_in(capsule: object) -> DLTensor:
    """The tensor in a capsule of any version."""
    try:
        tensor: DLTensor = versioned_in(capsule).tensor
    except ValueError:  # of another name
        tensor = DLTensor.from_address(pointer_of_capsule(capsule, b"dltensor"))
    return tensor
