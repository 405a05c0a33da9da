"""Device arrays for other libraries, in place: the CUDA array interface and DLPack.

Sources: CUDA Array Interface, version 3 (Numba); dlpack.h, version 1.1, and the Python
specification of DLPack: the capsule is named "dltensor", or "dltensor_versioned" for a consumer
that knows version 1, until a consumer renames it "used_..." and owns it.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final, TypedDict

import numpy as np

from .. import border
from ..driver._api import CUstream
from ..driver.context import BaseContext
from ..driver.driver_selection import failure
from ..driver.stream_handle import EventHandle
from ..errors import DTypeError, ExportError
from .order import AnyMemory, join_on_one_stream

DL_CUDA: Final = 2  # kDLCUDA
_NO_SYNC: Final = -1
_KIND_CODE: Final = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
EXTENDED: Final = {
    (4, 16): "bfloat16",
    (7, 8): "float8_e3m4",
    (8, 8): "float8_e4m3",
    (9, 8): "float8_e4m3b11fnuz",
    (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2",
    (13, 8): "float8_e5m2fnuz",
    (14, 8): "float8_e8m0fnu",
}
"""DLPack types that ml_dtypes provides, by their code and bits in DLPack."""
_EXTENDED_CODE: Final = {name: code for code, name in EXTENDED.items()}
_PLAIN, _VERSIONED = b"dltensor", b"dltensor_versioned"
MAJOR: Final = 1
"""The newest version of DLPack that this file supports."""
_READ_ONLY: Final = 1  # DLPACK_FLAG_BITMASK_READ_ONLY

# Prototypes of this file: those of `ctypes.pythonapi` itself are shared with any other code in the
# process that sets their argument types.
capsule_pointer: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
is_capsule: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)


class CudaArrayInterface(TypedDict):
    """Version 3 of Numba's CUDA array interface."""

    shape: tuple[int, ...]
    typestr: str
    data: tuple[int, bool]
    strides: tuple[int, ...] | None
    stream: int | None
    version: int


class Exported:
    """The protocols by which other libraries use a device array in place."""

    __slots__ = ()

    if TYPE_CHECKING:  # provided by the array itself
        shape: tuple[int, ...]
        # The array determines the elements' type.
        dtype: np.dtype[Any]

        @property
        def context(self) -> BaseContext:
            """The context of the memory."""

        @property
        def ptr(self) -> int:
            """The device address of the first element."""

        @property
        def ndim(self) -> int:
            """The number of dimensions."""

        @property
        def strides(self) -> tuple[int, ...]:
            """Bytes from one element to the next along each axis."""

        @property
        def is_contiguous(self) -> bool:
            """Whether the elements lie in C order, one after the other."""

        @property
        def _memory(self) -> AnyMemory: ...

    @property
    def __cuda_array_interface__(self) -> CudaArrayInterface:
        """Version 3 of the interface; consumers order themselves after the stream in it.

        That stream comes after all earlier work on the array, on every stream. If it was closed,
        the interface has no stream, and this waits for its work.
        """
        memory = self._memory
        last = join_on_one_stream(memory)
        if last is None or last.is_closed:
            # Work recorded in a capture is not under way; it comes after earlier work on the array.
            for user in memory.all_users():
                if not user.is_capturing():
                    user.synchronize()
            last = None
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.ptr, False),
            "strides": None if self.is_contiguous else self.strides,
            "stream": None if last is None else int(last.raw),
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        """(kDLCUDA, ordinal)."""
        return DL_CUDA, self.context.ordinal

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Return a DLPack capsule over the array, ordered before the consumer's `stream`.

        Args:
            stream: the consumer's CUstream as an int; None or 1 is the legacy default stream, -1
                requests no ordering.
            max_version: the newest version that the consumer supports; None is one before 1.
            dl_device: the device that the consumer requests.
            copy: whether the consumer requests a copy.

        Raises:
            DTypeError: DLPack has no such dtype.
            ExportError: a copy or another device is requested, or DLPack cannot express the
                strides.
        """
        border.optional("__dlpack__: copy", copy, bool)
        if copy or _numbers("dl_device", dl_device) not in (None, self.__dlpack_device__()):
            raise ExportError("a device array is exported in place: no copy, no other device")
        version = _numbers("max_version", max_version) or (0,)
        if stream is not None:
            stream = border.whole("__dlpack__: stream", stream, _NO_SYNC, 2**64 - 1)
        code, bits = _type_code(self.dtype)
        if any(stride % self.dtype.itemsize for stride in self.strides):
            raise ExportError(
                f"{self!r} has strides of {self.strides} bytes, and DLPack counts whole elements: "
                "export what Stream.contiguous makes of it"
            )
        if stream != _NO_SYNC:
            _order_consumer(self, 1 if stream is None else stream)
        capsule = _shell(self, is_versioned=version >= (MAJOR,))
        tensor = DLTensor.of(capsule)
        tensor.data = self.ptr or None
        tensor.device_type, tensor.device_id = self.__dlpack_device__()
        tensor.code, tensor.bits, tensor.lanes = code, bits, 1
        tensor.byte_offset = 0
        if tensor.strides:
            for axis, stride in enumerate(self.strides):
                tensor.strides[axis] = stride // self.dtype.itemsize
        return capsule


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
        """Return the tensor in an unconsumed capsule; it lives as long as the capsule.

        Raises:
            ValueError: the capsule's name is not DLPack's.
            BufferError: it is of a version with another layout.
        """
        if not is_capsule(capsule, _VERSIONED):
            return cls.from_address(int(capsule_pointer(capsule, _PLAIN)))
        tensor: DLTensor = VersionedTensor.at(int(capsule_pointer(capsule, _VERSIONED))).tensor
        return tensor


class VersionedTensor(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )

    @classmethod
    def at(cls, address: int) -> VersionedTensor:
        """Return a producer's tensor at an address; the producer still owns it.

        Raises:
            BufferError: it is of a version with another layout.
        """
        head = cls.from_address(address)
        if head.major > MAJOR:
            raise BufferError(f"is of DLPack {head.major}.{head.minor}, of which 1 is known")
        return head

    @property
    def is_read_only(self) -> bool:
        """Whether the producer marked it as read-only."""
        return bool(self.flags & _READ_ONLY)


def is_read_only(capsule: object) -> bool:
    """Return whether the producer of a capsule marked it as read-only; version 1 has the flag."""
    if not is_capsule(capsule, _VERSIONED):
        return False
    return VersionedTensor.at(int(capsule_pointer(capsule, _VERSIONED))).is_read_only


class _Anchor(ctypes.c_char):
    """A byte of the host that keeps a device array alive."""

    array: Exported


def _shell(array: Exported, *, is_versioned: bool) -> object:
    """Return a capsule of NumPy's, of an array of the same shape over one byte.

    Its destructor and its deleter are NumPy's, in C. Python code would lose an exception that is
    being raised when a consumer drops the capsule.
    """
    anchor = _Anchor()
    anchor.array = array
    buffer: Any = anchor  # before Python 3.12 a type checker does not recognise buffers
    try:
        shell = np.ndarray(array.shape, np.uint8, buffer, 0, (0,) * array.ndim)
    except ValueError as error:  # such as more axes than NumPy has
        raise ExportError(f"{array!r} is not exported: {error}") from None
    if is_versioned:
        try:
            capsule: object = shell.__dlpack__(max_version=(MAJOR, 0))
        except TypeError:
            pass  # NumPy before 2.1 supports no versions; consumers accept such capsules
        else:
            return capsule
    return shell.__dlpack__()


def _type_code(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return DLPack's code and bits of a dtype.

    Raises:
        DTypeError: DLPack has no such dtype.
    """
    found = _EXTENDED_CODE.get(dtype.name)
    if found is not None:
        return found
    if dtype.kind not in _KIND_CODE or not dtype.isnative or dtype.itemsize > 16:
        raise DTypeError(f"DLPack has no dtype {dtype}")
    return _KIND_CODE[dtype.kind], dtype.itemsize * 8


def _numbers(name: str, given: object) -> tuple[int, ...] | None:
    """Return integers, which producers also give as an enumeration."""
    if given is None:
        return None
    pair = border.instance(f"__dlpack__: {name}", given, tuple)
    return tuple(border.integer(f"__dlpack__: {name}", n) for n in pair)


def _order_consumer(array: Exported, consumer: int) -> None:
    """Let another library's stream wait for the current work of ours on an array."""
    memory = array._memory

    def wait(event: EventHandle) -> None:
        # The current context decides which stream 1 or 2 is.
        call, handle = event.api.cuStreamWaitEvent, CUstream(consumer)
        (code,) = event.context.call(call, handle, event.raw, 0)
        if code:
            raise failure(event.api, code, "cuStreamWaitEvent", f"exporting {array!r}")

    writer, readers, _ = memory.accesses
    for last in dict.fromkeys((writer, *readers)):
        if last is not None and int(last.raw) != consumer:
            last.precede(wait, last.capture)
