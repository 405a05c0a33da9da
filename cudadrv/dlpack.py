"""DLPack export of device arrays, without copying.

Source: dlpack.h, version 0.8 (the unversioned DLManagedTensor), and the Python specification of
DLPack: the capsule is named "dltensor" until a consumer renames it "used_dltensor" and owns it.
"""

from __future__ import annotations

import ctypes
import sys
from typing import TYPE_CHECKING, Final

from ._api import CUstream
from ._driver import Bound, failure
from .capsule import is_named, new_capsule
from .errors import DTypeError

if TYPE_CHECKING:
    from .memory.array import AnyDeviceArray

DL_CUDA: Final = 2  # kDLCUDA
_NO_SYNC: Final = -1
_NAME: Final = b"dltensor"
_KIND_CODE: Final = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class _DLDevice(ctypes.Structure):
    _fields_ = (("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32))


class _DLDataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _DLDevice),
        ("ndim", ctypes.c_int32),
        ("dtype", _DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _DLManagedTensor(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_DLManagedTensor))
_DLManagedTensor._fields_ = (
    ("dl_tensor", _DLTensor),
    ("manager_ctx", ctypes.c_void_p),
    ("deleter", _Deleter),
)

# Exported tensors by their address, alive until their consumer's deleter call; bounded by what
# consumers hold.
_exported: Final[dict[int, tuple[object, ...]]] = {}
# The capsules that no consumer was seen to take yet, each with the address of its tensor.
_unclaimed: Final[list[tuple[object, int]]] = []


def _delete(managed: ctypes._Pointer[_DLManagedTensor]) -> None:
    _exported.pop(ctypes.addressof(managed.contents), None)


# The C function lives as long as the process: a consumer may hold a tensor until its end.
_DELETE: Final = _Deleter(_delete)


def _references(entry: tuple[object, int]) -> int:
    return sys.getrefcount(entry[0])


# Of what only the entry itself refers to, as this interpreter counts.
_ALONE: Final = _references((object(), 0))


def _give_back_unclaimed() -> None:
    """Let go of the tensors whose capsules were dropped as they were; their consumer refused."""
    for number in reversed(range(len(_unclaimed))):
        try:
            entry = _unclaimed.pop(number)
        except IndexError:  # another thread has it
            continue
        if is_named(entry[0], _NAME):
            if _references(entry) > _ALONE:
                _unclaimed.append(entry)
            else:
                _exported.pop(entry[1], None)


def export(array: AnyDeviceArray, stream: int | None) -> object:
    """A "dltensor" capsule over a device array, with the consumer's stream ordered after it.

    Args:
        array: what to export; it stays alive until the consumer gives it back.
        stream: the consumer's CUstream as an int; None or 1 is the legacy default stream, -1 asks
            for no ordering.

    Raises:
        DTypeError: DLPack has no such dtype.
    """
    dtype = array.dtype
    if dtype.kind not in _KIND_CODE or not dtype.isnative or dtype.fields is not None:
        raise DTypeError(f"DLPack has no dtype {dtype}")
    if stream != _NO_SYNC:
        _order_consumer(array, 1 if stream is None else stream)
    shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
    managed = _DLManagedTensor()
    tensor = managed.dl_tensor
    tensor.data = array.ptr or None
    tensor.device = _DLDevice(DL_CUDA, array.context.ordinal)
    tensor.ndim = array.ndim
    tensor.dtype = _DLDataType(_KIND_CODE[dtype.kind], dtype.itemsize * 8, 1)
    tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = _DELETE
    address = ctypes.addressof(managed)
    _exported[address] = (managed, shape, array)
    capsule = new_capsule(address, _NAME)
    _give_back_unclaimed()
    _unclaimed.append((capsule, address))
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
