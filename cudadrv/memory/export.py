"""Device arrays for other libraries, in place: the CUDA array interface and DLPack.

Sources: CUDA Array Interface, version 3 (Numba); dlpack.h, version 0.8 (the unversioned
DLManagedTensor), and the Python specification of DLPack: the capsule is named "dltensor" until a
consumer renames it "used_dltensor" and owns it.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final, Protocol, TypedDict

import numpy as np

from ..driver._api import CUstream
from ..driver.context import ContextCore
from ..driver.in_use import failure
from ..driver.stream_box import EventBox
from ..errors import DTypeError
from .order import AnyMemory, gather

DL_CUDA: Final = 2  # kDLCUDA
_NO_SYNC: Final = -1
_KIND_CODE: Final = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}

# A prototype of this file: those of `ctypes.pythonapi` itself are shared with whatever else in the
# process sets their argument types.
_capsule_pointer: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


class CudaArrayInterface(TypedDict):
    """Version 3 of Numba's CUDA array interface."""

    shape: tuple[int, ...]
    typestr: str
    data: tuple[int, bool]
    strides: tuple[int, ...] | None
    stream: int | None
    version: int


if TYPE_CHECKING:  # making a protocol takes a start longer than most modules

    class Exported(Protocol):
        """What this file needs of a device array."""

        shape: tuple[int, ...]
        # The elements' type is the array's affair.
        dtype: np.dtype[Any]

        @property
        def context(self) -> ContextCore:
            """Where it lies."""

        @property
        def ptr(self) -> int:
            """The address."""

        @property
        def ndim(self) -> int:
            """The number of dimensions."""

        @property
        def _memory(self) -> AnyMemory: ...


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
        """The tensor in a capsule that no consumer has taken; it lives as long as that.

        Raises:
            ValueError: the capsule has another name than "dltensor".
        """
        return cls.from_address(int(_capsule_pointer(capsule, b"dltensor")))


class _Anchor(ctypes.c_char):
    """A byte of the host that keeps a device array alive."""

    array: Exported


def array_interface(array: Exported) -> CudaArrayInterface:
    """The array in the words of the CUDA array interface.

    A stream that was closed is not named: what it still does is waited for.
    """
    memory = array._memory
    last = gather(memory)
    if last is None or last.is_closed:
        # What a capture records is not under way, and comes after what was before it.
        for user in memory.all_users():
            if not user.is_capturing():
                user.synchronize()
        last = None
    return {
        "shape": array.shape,
        "typestr": array.dtype.str,
        "data": (array.ptr, False),
        "strides": None,
        "stream": None if last is None else int(last.raw),
        "version": 3,
    }


def dlpack_capsule(array: Exported, stream: int | None) -> object:
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


def _order_consumer(array: Exported, consumer: int) -> None:
    """Let another library's stream wait for what ours do with an array now."""
    memory = array._memory

    def wait(event: EventBox) -> None:
        # Which stream 1 or 2 is, the current context says.
        call, handle = event.api.cuStreamWaitEvent, CUstream(consumer)
        (code,) = event.context.call(call, handle, event.raw, 0)
        if code:
            raise failure(event.api, code, "cuStreamWaitEvent", f"exporting {array!r}")

    writer, readers, _ = memory.uses
    for last in dict.fromkeys((writer, *readers)):
        if last is not None and int(last.raw) != consumer:
            last.precede(wait, last.capture)
