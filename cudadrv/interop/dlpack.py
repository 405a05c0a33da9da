"""Tensors that objects of other libraries export by DLPack.

A type may have exchange functions ("fast exchange protocol" of dlpack.h, version 1.3): a capsule of
C functions in ``__dlpack_c_exchange_api__``. PyTorch's takes 0.4 µs, where its
``__dlpack_device__`` and ``__dlpack__`` take 3.3 before they order streams. They synchronise
nothing: the consumer gets the stream on which the library works, and orders itself after that.
Other types are read by their methods.

The exchange function that fills a DLTensor of the caller is not used: such a tensor has no
flag for read-only memory, and keeps no memory alive. It would save 0.2 µs.

Sources: dlpack.h; the Python specification of DLPack.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

import numpy as np

from .. import border
from ..driver.stream import BaseStream
from ..errors import ArgumentValueError, DTypeError, WrongDeviceError
from ..memory.export import (
    DL_CUDA,
    EXTENDED,
    HOST_MEMORY,
    MAJOR,
    NO_SYNC,
    PLAIN,
    VERSIONED,
    capsule_pointer,
    is_capsule,
)
from ..memory.layout import is_dense
from .elements import UNNAMED, named_dtype
from .ordering import follow_producer, follow_producers, needs_no_wait
from .reader import Foreign, found_for

_ATTRIBUTE: Final = "__dlpack_c_exchange_api__"
_NAME: Final = b"dlpack_exchange_api"


class _ExchangeHeader(ctypes.Structure):
    """DLPackExchangeAPIHeader, the same in every version."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
    )


class _ExchangeFunctions(ctypes.Structure):
    """DLPackExchangeAPI."""

    _fields_ = (
        ("header", _ExchangeHeader),
        ("managed_tensor_allocator", ctypes.c_void_p),
        ("managed_tensor_from_py_object_no_sync", ctypes.c_void_p),
        ("managed_tensor_to_py_object_no_sync", ctypes.c_void_p),
        ("dltensor_from_py_object_no_sync", ctypes.c_void_p),
        ("current_work_stream", ctypes.c_void_p),
    )


# Prototypes that keep the interpreter lock, which all of these need, and raise the exception that
# the function has set.
_FromObject: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
_WorkStream: Final = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p
)
# A producer's deleter by its address, cached as making the object takes as long as the call.
_deleter: Final = lru_cache(maxsize=64)(ctypes.PYFUNCTYPE(None, ctypes.c_void_p))


class BorrowedTensor(ctypes.c_void_p):
    """The address of a borrowed tensor, which returns to its producer when this is dropped.

    It exists before the call that borrows, which fills it, so that no interrupt loses the tensor.
    """

    deleter_at: ClassVar[int] = 16  # DLManagedTensorVersioned

    def __del__(self) -> None:
        address = self.value
        if address:
            (delete,) = _POINTER.unpack_from(HOST_MEMORY, address + self.deleter_at)
            if delete:
                _deleter(delete)(address)


class UnversionedTensor(BorrowedTensor):
    """The same for a tensor of DLPack before version 1."""

    deleter_at: ClassVar[int] = 56  # DLManagedTensor


class UnusableTensorError(BufferError):
    """A tensor that no consumer here can read; the text continues "it ..."."""


_POINTER: Final = struct.Struct("=Q")
# The fields of a DLTensor: data, device_type, device_id, ndim, code, bits, lanes, shape, strides,
# byte_offset.
_Fields: TypeAlias = tuple[int, int, int, int, int, int, int, int, int, int]
_DL_TENSOR: Final = "QiiiBBHQQQ"
_PLAIN_TENSOR: Final = struct.Struct(f"={_DL_TENSOR}")
# After version, manager, deleter and flags.
_VERSIONED_TENSOR: Final = struct.Struct(f"=IIQQQ{_DL_TENSOR}")
_READ_ONLY: Final = 1  # DLPACK_FLAG_BITMASK_READ_ONLY


def _versioned_at(address: int) -> tuple[_Fields, bool]:
    """Return a tensor at an address, and whether its producer marked it as read-only.

    Raises:
        UnusableTensorError: it is of a version with another layout; its producer still owns it.
    """
    fields = _VERSIONED_TENSOR.unpack_from(HOST_MEMORY, address)
    if fields[0] > MAJOR:
        raise UnusableTensorError(
            f"is of DLPack {fields[0]}.{fields[1]}, of which {MAJOR} is known"
        )
    return fields[5:], bool(fields[4] & _READ_ONLY)


# A capsule keeps the address of its name, also past the end of this module.
_USED: Final = {
    VERSIONED: (b"used_dltensor_versioned", BorrowedTensor),
    PLAIN: (b"used_dltensor", UnversionedTensor),
}
_keep_for_ever: Final = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
for _used in _USED.values():
    _keep_for_ever(_used[0])
_rename: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", ctypes.pythonapi)
)
# By address of the capsule; an entry lives for one call of `_taken`. It holds the capsule: if an
# interrupt leaves an entry, no other capsule gets the address.
_taking: Final[dict[int, tuple[object]]] = {}


def _taken(capsule: object, value: object) -> tuple[_Fields, bool | None, BorrowedTensor]:
    """Take the tensor out of a capsule, once: its fields, its mark of read-only, and its keeper.

    Raises:
        ArgumentValueError: it was taken before; `value` is the producer.
        ValueError: it is no capsule of DLPack.
        UnusableTensorError: it is of a version with another layout; its producer still owns it.
    """
    # Of two threads with one capsule, one takes it.
    claim = (capsule,)
    try:
        if _taking.setdefault(id(capsule), claim) is not claim:
            raise _used_before(value)
        try:
            address: int = capsule_pointer(capsule, VERSIONED)
        except ValueError:  # of another name
            used, kind = _USED[PLAIN]
            address = capsule_pointer(capsule, PLAIN)
            fields: _Fields = _PLAIN_TENSOR.unpack_from(HOST_MEMORY, address)
            read_only = None
        else:
            used, kind = _USED[VERSIONED]
            fields, read_only = _versioned_at(address)
        keeper = kind()
        _rename(capsule, used)
        # An interrupt between the two leaks the tensor; the other order would free it twice.
        keeper.value = address
    except ValueError:
        if any(is_capsule(capsule, used) for used, _ in _USED.values()):
            raise _used_before(value) from None
        raise
    finally:
        if _taking.get(id(capsule)) is claim:
            del _taking[id(capsule)]
    return fields, read_only, keeper


def _used_before(value: object) -> ArgumentValueError:
    return ArgumentValueError(
        f"the DLPack capsule of a {type(value).__name__} was used before\n"
        "  return a new capsule from each call of __dlpack__"
    )


class Exchange:
    """The exchange functions of a library; they live as long as the process."""

    __slots__ = ("_current_stream", "_from_object")

    def __init__(self, functions: _ExchangeFunctions) -> None:
        self._from_object = _FromObject(functions.managed_tensor_from_py_object_no_sync)
        self._current_stream = _WorkStream(functions.current_work_stream)

    def borrow(self, value: object) -> BorrowedTensor:
        """Borrow the tensor of an object, before the work on it is done.

        Raises:
            SystemError: the library failed without an exception.
        """
        borrowed = BorrowedTensor()
        if self._from_object(value, ctypes.byref(borrowed)) or not borrowed.value:
            raise _silent("managed_tensor_from_py_object_no_sync")
        return borrowed

    def current_stream(self, device_type: int, ordinal: int) -> int:
        """Return the number of the library's current stream in this thread, on a device.

        Raises:
            SystemError: the library failed without an exception.
        """
        number = ctypes.c_void_p()
        if self._current_stream(device_type, ordinal, ctypes.byref(number)):
            raise _silent("current_work_stream")
        return number.value or 0


def _silent(function: str) -> SystemError:
    return SystemError(f"{function} of a library's DLPack functions failed without an exception")


# By type. Bounded, as it keeps types alive that a program may make at run time.
_exchange_by_type: Final[dict[type, Exchange | None]] = {}
_MOST_TYPES: Final = 256


def exchange_of(kind: type) -> Exchange | None:
    """Return the exchange functions of a type; None if it has none that can be used."""
    try:
        return _exchange_by_type[kind]
    except KeyError:
        pass
    functions = _searched(kind)
    if len(_exchange_by_type) >= _MOST_TYPES:
        _exchange_by_type.clear()
    _exchange_by_type[kind] = functions
    return functions


def _searched(kind: type) -> Exchange | None:
    for base in kind.__mro__:
        capsule = vars(base).get(_ATTRIBUTE)
        if capsule is not None:
            return _opened(capsule)
        if "__dlpack__" in vars(base):
            return None  # a class that exports in another way than its base class
    return None


def _opened(capsule: object) -> Exchange | None:
    """Return the functions of the known version, which newer ones may precede."""
    if not is_capsule(capsule, _NAME):
        return None
    address: int | None = int(capsule_pointer(capsule, _NAME))
    while address:
        header = _ExchangeHeader.from_address(address)
        if header.major == MAJOR:
            functions = _ExchangeFunctions.from_address(address)
            is_whole = (
                functions.managed_tensor_from_py_object_no_sync and functions.current_work_stream
            )
            return Exchange(functions) if is_whole else None
        address = header.previous if header.major > MAJOR else None
    return None


_DL_MANAGED: Final = 13  # kDLCUDAManaged
_ON_GPU: Final = (DL_CUDA, _DL_MANAGED)
_DLPACK_VERSION: Final = (1, 1)
_MOST_AXES: Final = 64  # NumPy's
_ONE_BY_ONE: Final = (1,)  # the most frequent strides
# dlpack.h: DLDataTypeCode as the kinds of NumPy's dtypes.
_KIND: Final = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}


class Offer(NamedTuple):
    """A tensor, after whose work our stream is ordered.

    Attributes:
        address: of the first element.
        shape: the extents.
        strides: elements from one to the next along each axis; None if they lie in C order, one
            after the other.
        kind: DLPack's code, bits and lanes of the elements.
        is_read_only: True if the memory must not be written; None if the producer is older than the
            version that tells it.
        keeper: returns the tensor to its producer when it is dropped.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    kind: tuple[int, int, int]
    is_read_only: bool | None
    keeper: object

    @property
    def nbytes(self) -> int:
        """The size of the elements."""
        _, bits, lanes = self.kind
        return math.prod(self.shape) * bits * lanes // 8

    @property
    def element_name(self) -> str:
        """The dtype's name for pointers: of one lane, as an array of float4 has floats."""
        code, bits, _ = self.kind
        return _name_of(code, bits, 1) or UNNAMED

    # Any: the producer decides the type.
    def dtype(self, value: object) -> np.dtype[Any]:
        """Return the dtype of the elements; an error names `value`."""
        known = _dtypes.get(self.kind)
        if known is not None:
            return known
        code, bits, lanes = self.kind
        name = _name_of(code, bits, lanes)
        named = named_dtype(name)
        if named is not None:
            _dtypes[self.kind] = named
            return named
        hint = "import ml_dtypes, or view it" if name else "view it"
        raise DTypeError(
            f"a {type(value).__name__} of DLPack's type code {code} with "
            f"{bits} bits and {lanes} lanes: NumPy has no such dtype\n"
            f"  {hint} as one of that size first"
        )


# By code, bits and lanes; only those that NumPy has, and ml_dtypes once it is loaded.
_dtypes: Final[dict[tuple[int, int, int], np.dtype[Any]]] = {}


def _offer(
    value: object, stream: BaseStream, fields: _Fields, is_read_only: bool | None, keeper: object
) -> Offer:
    """Return the checked tensor of an object.

    Raises:
        ValueError: its address does not fit 64 bits, or it has no such shape, or more axes than
            NumPy.
        WrongDeviceError: it lies on another device.
    """
    data, where, ordinal, ndim, code, bits, lanes, shape_at, strides_at, offset = fields
    if where == DL_CUDA and ordinal != stream._handle.context.ordinal:
        raise WrongDeviceError(
            f"a {type(value).__name__} on device {ordinal} was given to {stream!r}"
        )
    address = data + offset
    if address >= 1 << 64:
        raise ValueError(f"the address {address:#x} does not fit 64 bits")
    if not 0 <= ndim <= _MOST_AXES or (ndim and not shape_at):
        raise ValueError(f"its DLPack tensor has {ndim} axes and no such shape")
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] | None = None
    if ndim:
        numbers = _numbers_of(ndim)
        shape = numbers.unpack_from(HOST_MEMORY, shape_at)
        if min(shape) < 0:
            raise ValueError(f"its DLPack tensor has the shape {shape}")
        if strides_at:
            strides = numbers.unpack_from(HOST_MEMORY, strides_at)
            if strides == _ONE_BY_ONE or is_dense(shape, strides, 1):
                strides = None
    return Offer(address, shape, strides, (code, bits, lanes), is_read_only, keeper)


@lru_cache(maxsize=_MOST_AXES)
def _numbers_of(ndim: int) -> struct.Struct:
    return struct.Struct(f"={ndim}q")


@lru_cache(maxsize=256)
def _name_of(code: int, bits: int, lanes: int) -> str:
    kind = _KIND.get(code)
    try:
        if kind is not None and lanes == 1 and bits % 8 == 0:
            return np.dtype(f"{kind}{bits // 8}").name
    except TypeError:
        pass
    return EXTENDED.get((code, bits), "") if lanes == 1 else ""


def offered(value: object, stream: BaseStream, *, orders: bool = True) -> Offer | None:
    """Return the tensor that an object exports by DLPack in a GPU's memory, or None.

    Args:
        value: the object.
        stream: the stream that will use the memory.
        orders: whether the stream comes after the work on the memory.

    Raises:
        UnusableTensorError: it reports memory of a GPU, and its tensor lies elsewhere.
        WrongDeviceError: its library reports another device.
    """
    kind = type(value)
    exchange, foreign = exchange_of(kind), found_for(kind)
    # The reader of a base class does not know how an object of another class exports.
    current = None if foreign is None or foreign.type is not kind else foreign.reader.stream
    if exchange is not None and _may_exchange(value, foreign, current):
        keeper = exchange.borrow(value)
        fields, is_read_only = _versioned_at(keeper.value or 0)
        if fields[1] not in _ON_GPU:
            return None
        offer = _offer(value, stream, fields, is_read_only, keeper)
        if orders and current is None:
            follow_producers(stream, (exchange.current_stream(fields[1], fields[2]),))
    else:
        # Where the reader reports the stream, it is waited for here: producers make an event.
        is_ordered = orders and current is None
        by_method = _by_method(value, stream, int(stream._handle.raw) if is_ordered else NO_SYNC)
        if by_method is None:
            return None
        offer = by_method
    if orders and current is not None:
        number = current(stream._handle.context.ordinal)
        if number not in needs_no_wait(stream):
            follow_producer(stream, number)
    return offer


def _may_exchange(
    value: object, foreign: Foreign | None, current: Callable[[int], int] | None
) -> bool:
    """Return True if the exchange functions serve: for memory of a GPU alone.

    A library whose reader names no stream, as JAX's, may still compute the values; its method
    waits for that. A reader finds the device faster than ``__dlpack_device__``.
    """
    if foreign is not None:
        return current is not None and foreign.reader.device(value) >= 0
    where = getattr(value, "__dlpack_device__", None)
    return where is None or int(where()[0]) in _ON_GPU


def _by_method(value: object, stream: BaseStream, number: int) -> Offer | None:
    where = getattr(value, "__dlpack_device__", None)
    export = getattr(value, "__dlpack__", None)
    if where is None or export is None or int(where()[0]) not in _ON_GPU:
        return None
    try:
        capsule: object = export(stream=number, max_version=_DLPACK_VERSION)
    except TypeError:  # a producer older than versions
        capsule = export(stream=number)
    fields, read_only, keeper = _taken(capsule, value)
    if fields[1] not in _ON_GPU:
        raise UnusableTensorError(
            f"has memory of DLPack's device type {fields[1]} in its capsule, but its "
            f"__dlpack_device__ is {border.shown(where())}\n"
            "  let both of them name the device of the memory"
        )
    return _offer(value, stream, fields, read_only, keeper)
