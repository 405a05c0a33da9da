"""Device arrays for other libraries, in place: the CUDA array interface and DLPack.

Sources: CUDA Array Interface, version 3 (Numba); dlpack.h, version 1.1, and the Python
specification of DLPack. The capsule is named "dltensor", or "dltensor_versioned" for a consumer
that knows version 1. A consumer that owns it renames it "used_...".

The arrays have no exchange functions (`__dlpack_c_exchange_api__`, dlpack.h 1.3). In Python these
would be ctypes callbacks, which cannot return with an exception set: for a closed array a consumer
would read an uninitialised tensor, or crash.
"""

from __future__ import annotations

import ctypes
import struct
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict

import numpy as np

from .. import border
from ..driver._api import CUstream
from ..driver.context import BaseContext
from ..driver.driver_selection import failure
from ..driver.stream import BaseStream
from ..driver.stream_handle import EventHandle, StreamHandle
from ..errors import DTypeError, ExportError
from .dtypes import AnyDType
from .order import AnyMemory, join_on_one_stream

DL_CUDA: Final = 2  # kDLCUDA
NO_SYNC: Final = -1
"""The stream of a consumer of DLPack that requests no ordering."""
_LEGACY: Final = 1  # CU_STREAM_LEGACY
# Numbers that mean a stream of the current context: its legacy one, or the thread's.
_NAMELESS: Final = {number: CUstream(number) for number in (0, _LEGACY, 2)}
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
PLAIN: Final = b"dltensor"
VERSIONED: Final = b"dltensor_versioned"
MAJOR: Final = 1
"""The newest version of DLPack that this file supports."""

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
    descr: NotRequired[list[tuple[object, ...]]]


class Exported:
    """The protocols by which other libraries use a device array in place."""

    __slots__ = ()

    if TYPE_CHECKING:  # provided by the array itself
        shape: tuple[int, ...]
        # The array determines the elements' type.
        dtype: np.dtype[Any]

        stream: BaseStream

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

        def _second_owner(self) -> object:
            """Return an object that keeps the memory alive, also after the array was closed."""

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
        interface: CudaArrayInterface = {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.ptr, memory.is_read_only),
            "strides": None if self.is_contiguous else self.strides,
            "stream": None if last is None else int(last.raw),
            "version": 3,
        }
        if self.dtype.names is not None:
            # NumPy describes no fields that overlap or stand in another order than in memory.
            with suppress(ValueError):
                interface["descr"] = [*self.dtype.descr]
        return interface

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
                strides, or, before version 1, that the array is read-only.
        """
        if copy is not None or dl_device is not None:
            _require_in_place(self, dl_device, copy)
        is_versioned = max_version is not None and _is_versioned(max_version)
        consumer = _LEGACY
        if stream is not None:
            consumer = border.int_in_range("__dlpack__: stream", stream, NO_SYNC, 2**64 - 1)
        code, bits, mirrored = _type_code(self.dtype)
        memory, address = self._memory, self.ptr
        if consumer != NO_SYNC:
            _order_consumer(self, memory, consumer)
        capsule, tensor = _mirrored(self, memory, mirrored, is_versioned=is_versioned)
        ordinal = memory.context.ordinal
        _HEAD.pack_into(
            HOST_MEMORY, tensor, address, DL_CUDA, ordinal, len(self.shape), code, bits, 1
        )
        return capsule


HOST_MEMORY: Final = (ctypes.c_char * 2**62).from_address(0)
"""All of the host's memory, where `struct` finds a structure of C by its address."""
# A tensor begins with its data, device_type, device_id, ndim, code, bits and lanes.
_HEAD: Final = struct.Struct("=QiiiBBH")
_AFTER_VERSION: Final = 32  # bytes of a DLManagedTensorVersioned before its tensor
# A mirror lies in the middle of these addresses, which are never read: strides of either sign find
# room. Any: before Python 3.12 a type checker does not recognise buffers.
_ADDRESSES: Final[Any] = (ctypes.c_char * 2**60).from_address(2**20)
_MIDDLE: Final = 2**59


class _Mirror(np.ndarray[Any, Any]):
    """Keeps a device array and its memory alive as long as a capsule.

    The memory outlives `close` of the device array. No collection finds the memory's handle here,
    as a capsule takes no part in collections.
    """

    __slots__ = ("array", "memory")

    array: Exported
    memory: object


def _mirrored(
    array: Exported, memory: AnyMemory, dtype: AnyDType, *, is_versioned: bool
) -> tuple[object, int]:
    """Return a capsule of NumPy's with an array of the same shape and strides, and its tensor's
    address.

    Its destructor and its deleter are NumPy's, in C. Python code would lose an exception that is
    being raised when a consumer drops the capsule.
    """
    shape, is_read_only = array.shape, memory.is_read_only
    try:
        if array.is_contiguous:
            mirror = _Mirror(shape, dtype, _ADDRESSES, _MIDDLE)
        else:
            strides = array.strides
            if any(stride % dtype.itemsize for stride in strides):
                raise ExportError(
                    f"{array!r} has strides of {strides} bytes, and DLPack counts whole elements: "
                    "export what Stream.contiguous makes of it"
                )
            mirror = _Mirror(shape, dtype, _ADDRESSES, _MIDDLE, strides)
    except ValueError as error:  # such as more axes than NumPy has
        raise ExportError(f"{array!r} is not exported: {error}") from None
    mirror.array = array
    # A created context ends with its public objects, whatever consumers keep.
    mirror.memory = memory if memory.context.is_primary else array._second_owner()
    if is_versioned:
        if is_read_only:  # making the object of the flags takes longer than the array
            mirror.flags.writeable = False
        try:
            capsule: object = mirror.__dlpack__(max_version=(MAJOR, 0))
        except (TypeError, BufferError):
            pass  # NumPy before 2.1 supports no versions; consumers accept such capsules
        else:
            return capsule, capsule_pointer(capsule, VERSIONED) + _AFTER_VERSION
    if is_read_only:
        raise ExportError(
            f"{array!r} is not exported: only DLPack 1 and newer has read-only arrays\n"
            "  request it by max_version, which needs NumPy 2.1; or export a copy"
        )
    capsule = mirror.__dlpack__()
    return capsule, capsule_pointer(capsule, PLAIN)


@lru_cache(maxsize=64)
def _type_code(dtype: AnyDType) -> tuple[int, int, AnyDType]:
    """Return DLPack's code and bits of a dtype, and a dtype of the same size that NumPy exports.

    Raises:
        DTypeError: DLPack has no such dtype.
    """
    extended = _EXTENDED_CODE.get(dtype.name)
    if extended is None:
        if dtype.kind not in _KIND_CODE or not dtype.isnative or dtype.itemsize > 16:
            raise DTypeError(f"DLPack has no dtype {dtype}")
        extended = _KIND_CODE[dtype.kind], dtype.itemsize * 8
    return *extended, np.dtype("c16" if dtype.itemsize == 16 else f"u{dtype.itemsize}")


def _is_versioned(max_version: object) -> bool:
    """Return whether a consumer supports capsules with a version."""
    if max_version.__class__ is tuple and len(max_version) == 2:  # the usual one, at a third
        major, minor = max_version
        if major.__class__ is int and minor.__class__ is int:
            return bool(major >= MAJOR)
    return _numbers("max_version", max_version) >= (MAJOR,)


def _numbers(name: str, pair: object) -> tuple[int, ...]:
    """Return integers, which producers also give as an enumeration."""
    where = f"__dlpack__: {name}"
    return tuple([border.integer(where, n) for n in border.instance_of(where, pair, tuple)])


def _require_in_place(array: Exported, dl_device: object, copy: object) -> None:
    """Raise if a consumer requests a copy, or another device."""
    border.optional("__dlpack__: copy", copy, bool)
    elsewhere = (
        dl_device is not None and _numbers("dl_device", dl_device) != array.__dlpack_device__()
    )
    if copy or elsewhere:
        raise ExportError("a device array is exported in place: no copy, no other device")


def _order_consumer(array: Exported, memory: AnyMemory, consumer: int) -> None:
    """Let another library's stream wait for the current work of ours on an array."""
    stream, ordered_on = array.stream, memory.ordered_on
    if ordered_on is not None and (
        int(ordered_on.raw) == consumer
        or (consumer == _LEGACY and stream._handle is ordered_on and stream._is_legacy_ordered)
    ):
        return
    if ordered_on is not None and _waits_for_owned(ordered_on, consumer):
        return

    def wait(event: EventHandle) -> None:
        call, handle = event.api.cuStreamWaitEvent, CUstream(consumer)
        if consumer in _NAMELESS:
            (code,) = event.context.call(call, handle, event.raw, 0)
        else:
            (code,) = call(handle, event.raw, 0)
        if code:
            raise failure(event.api, code, "cuStreamWaitEvent", f"exporting {array!r}")

    writer, readers, _ = memory.accesses
    for last in dict.fromkeys((writer, *readers)):
        if last is not None and int(last.raw) != consumer:
            last.precede(wait, last.capture)


def _waits_for_owned(last: StreamHandle, consumer: int) -> bool:
    """Queue the usual wait, in half of the time: for a stream of ours that no capture has.

    Return False if the wait is another one, or failed.
    """
    if last.capture or last.captured_by or not last.is_owned or last.is_destroyed:
        return False
    context, passes = last.context, last.gate.passes
    api = context._driver.api
    if consumer in _NAMELESS:
        code, now = api.cuCtxGetCurrent()
        if code or int(now) != int(context.raw):
            return False
    event = last.take_event()
    try:
        try:
            mine = passes.pop()
        except IndexError:
            return False
        try:
            (code,) = api.cuEventRecord(event.raw, last.raw)
        finally:
            passes.append(mine)
        handle = _NAMELESS.get(consumer) or CUstream(consumer)
        return not code and not api.cuStreamWaitEvent(handle, event.raw, 0)[0]
    finally:
        # The wait is for the event's state at this point: it may be recorded again at once.
        last.spare.append(event)
