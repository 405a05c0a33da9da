"""A library whose arrays come by DLPack's exchange functions, made of callbacks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from cudadrv.memory.array import AnyDeviceArray

_FROM_OBJECT: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
_WORK_STREAM: Final = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p
)
_DELETER: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new_capsule: Final = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))


class _Table(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("prev_api", ctypes.c_void_p),
        ("allocator", ctypes.c_void_p), ("from_object", ctypes.c_void_p),
        ("to_object", ctypes.c_void_p), ("to_dltensor", ctypes.c_void_p),
        ("work_stream", ctypes.c_void_p),
    )  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


# The functions of a library live as long as the process, as the protocol has it.
_forever: Final[list[object]] = []
_CODES: Final = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Array:
    """An array of such a library.

    Attributes:
        library: its class's.
        array: the memory.
        edit: what its tensor says otherwise than the array.
    """

    library: Library

    def __init__(self, array: AnyDeviceArray, **edit: int) -> None:
        self.array, self.edit = array, edit

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, ordinal = self.array.__dlpack_device__()
        return self.edit.get("device_type", kind), self.edit.get("device_id", ordinal)

    def __dlpack__(
        self, *, stream: int | None = None, max_version: tuple[int, int] | None = None
    ) -> object:
        self.library.by_method += 1
        return self.array.__dlpack__(stream=stream, max_version=max_version)


class Library:
    """The functions, and what was asked of them.

    Args:
        name: of the capsule.
        changed: entries of the table that are something else; a function's by its address.

    Attributes:
        kind: the class of its arrays.
        table: the address of the functions.
        current: the number of the stream on which it works.
        lent: the tensors that were not given back, by address.
        loans: how many were lent.
        by_method: how often `__dlpack__` was called instead.
        asked: of which devices the current stream was wanted, as DLPack's type and number.
    """

    def __init__(self, name: bytes = b"dlpack_exchange_api", /, **changed: int | None) -> None:
        self.current = self.loans = self.by_method = 0
        self.lent: dict[int, object] = {}
        self.asked: list[tuple[int, int]] = []
        from_object, work_stream = _FROM_OBJECT(self._lend), _WORK_STREAM(self._tell)
        self._deleter = _DELETER(self._take_back)
        table = _Table(major=1, minor=3)
        table.from_object = address_of(from_object)
        table.work_stream = address_of(work_stream)
        for entry, value in changed.items():
            setattr(table, entry, value)
        _forever.extend((self, table, name, from_object, work_stream))
        self.table = ctypes.addressof(table)
        members = {
            "library": self,
            "__dlpack_c_exchange_api__": _new_capsule(self.table, name, None),
        }
        self.kind: type[Array] = type("Array", (Array,), members)

    def _lend(self, value: Array, out: int) -> int:
        array = value.array
        sizes = (ctypes.c_int64 * array.ndim)(*array.shape)
        steps = (ctypes.c_int64 * array.ndim)(*(s // array.dtype.itemsize for s in array.strides))
        tensor = _Managed(major=1, minor=3, data=array.ptr, lanes=1, ndim=array.ndim)
        tensor.deleter = address_of(self._deleter)
        tensor.device_type, tensor.device_id = array.__dlpack_device__()
        tensor.code, tensor.bits = _CODES[array.dtype.kind], array.dtype.itemsize * 8
        tensor.shape, tensor.strides = ctypes.addressof(sizes), ctypes.addressof(steps)
        for field, edited in value.edit.items():
            setattr(tensor, field, edited)
        self.lent[ctypes.addressof(tensor)] = (tensor, sizes, steps, value)
        self.loans += 1
        ctypes.c_void_p.from_address(out).value = ctypes.addressof(tensor)
        return 0

    def _tell(self, device_type: int, device_id: int, out: int) -> int:
        self.asked.append((device_type, device_id))
        ctypes.c_void_p.from_address(out).value = self.current or None
        return 0

    def _take_back(self, address: int) -> None:
        del self.lent[address]


# A ctypes function has no type of its own in the stubs.
def address_of(function: Any) -> int:
    """The address of a function of C."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def silent_failure(arguments: int) -> int:
    """The address of a function that fails and sets no exception."""
    fails: Callable[..., int] = lambda *_: -1  # noqa: E731  # one line for any number of arguments
    made = {2: _FROM_OBJECT, 3: _WORK_STREAM}[arguments](fails)
    _forever.append(made)
    return address_of(made)
