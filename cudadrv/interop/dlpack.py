"""DLPack export of device arrays, without copying.

Source: dlpack.h, version 0.8 (the unversioned DLManagedTensor), and the Python specification of
DLPack: the capsule is named "dltensor" until a consumer renames it "used_dltensor" and owns it.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..driver._api import CUstream
from ..driver.in_use import Bound, failure
from ..errors import DTypeError
from .capsule import capsule_address

if TYPE_CHECKING:
    from ..memory.array import AnyDeviceArray

DL_CUDA: Final = 2  # kDLCUDA
_NO_SYNC: Final = -1
_KIND_CODE: Final = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class DLTensor(ctypes.Structure):
    """DLTensor, which a DLManagedTensor begins with."""

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

    @classmethod
    def of(cls, capsule: object) -> DLTensor:
        """The tensor in a capsule that no consumer has taken; it lives as long as that."""
        return cls.from_address(capsule_address(capsule, b"dltensor"))


class _Anchor(ctypes.c_char):
    """A byte of the host that keeps a device array alive."""

    array: AnyDeviceArray


def export(array: AnyDeviceArray, stream: int | None) -> object:
    """A "dltensor" capsule over a device array, with the consumer's stream ordered after it.

    The capsule is NumPy's, of an array of the same shape over one byte, whose tensor is then made
    to describe the device array. So its destructor and its deleter are NumPy's, in C: Python code
    would lose the exception that may be on its way when a consumer drops what it was given.

    Args:
        array: what to export; it stays alive until the consumer gives it back.
        stream: the consumer's CUstream as an int; None or 1 is the legacy default stream, -1 asks
            for no ordering.

    Raises:
        DTypeError: DLPack has no such dtype.
    """
    dtype = array.dtype
    if dtype.kind not in _KIND_CODE or not dtype.isnative or dtype.itemsize > 16:
        raise DTypeError(f"DLPack has no dtype {dtype}")
    if stream != _NO_SYNC:
        _order_consumer(array, 1 if stream is None else stream)
    anchor = _Anchor()
    anchor.array = array
    buffer: Any = anchor  # before Python 3.12 a type checker cannot know what is a buffer
    shell = np.ndarray(array.shape, np.uint8, buffer, 0, (0,) * array.ndim)
    capsule: object = shell.__dlpack__()
    tensor = DLTensor.of(capsule)
    tensor.data = array.ptr or None
    tensor.device_type, tensor.device_id = DL_CUDA, array.context.ordinal
    tensor.code, tensor.bits, tensor.lanes = _KIND_CODE[dtype.kind], dtype.itemsize * 8, 1
    tensor.byte_offset = 0
    if tensor.strides:
        stride = 1
        for axis in reversed(range(array.ndim)):
            tensor.strides[axis] = stride
            stride *= max(array.shape[axis], 1)
    return capsule


def _order_consumer(array: AnyDeviceArray, consumer: int) -> None:
    """Let the consumer's stream wait for what the array's stream holds now."""
    stream = array.stream
    if stream.closed:
        stream.wait_for_end()
        return
    if consumer == int(stream.handle):
        return
    with stream.record(timing=False) as event, Bound(stream.api, stream.context.handle):
        (code,) = stream.api.cuStreamWaitEvent(CUstream(consumer), event.handle, 0)
        if code:
            raise failure(stream.api, code, "cuStreamWaitEvent", f"exporting {array!r}")
