"""DLPack's exchange functions: a type's tensors by calls of C, with its library's current stream.

Source: dlpack.h, version 1.3, "fast exchange protocol": a type has a capsule of functions in
``__dlpack_c_exchange_api__``. PyTorch's takes 0.4 µs, where its ``__dlpack_device__`` and
``__dlpack__`` take 3.3 before they order streams. Nothing is synchronised: the consumer asks for
the stream on which the library works, and orders itself after that.

The function that fills a DLTensor of the caller's is not used: such a tensor does not say whether
it may only be read, and keeps no memory. It would save 0.2 µs.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Final

from ..memory.export import MAJOR, VersionedTensor, capsule_pointer, is_capsule

_ATTRIBUTE: Final = "__dlpack_c_exchange_api__"
_NAME: Final = b"dlpack_exchange_api"


class _Header(ctypes.Structure):
    """DLPackExchangeAPIHeader, the same in every version."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
    )


class _Functions(ctypes.Structure):
    """DLPackExchangeAPI."""

    _fields_ = (
        ("header", _Header),
        ("managed_tensor_allocator", ctypes.c_void_p),
        ("managed_tensor_from_py_object_no_sync", ctypes.c_void_p),
        ("managed_tensor_to_py_object_no_sync", ctypes.c_void_p),
        ("dltensor_from_py_object_no_sync", ctypes.c_void_p),
        ("current_work_stream", ctypes.c_void_p),
    )


# Prototypes that keep the interpreter lock, which all of these need, and raise what the function
# has set.
_FromObject: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
_WorkStream: Final = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p
)
# A deleter of a producer, kept by its address as making the object takes as long as the call.
_deleter: Final = lru_cache(maxsize=64)(ctypes.PYFUNCTYPE(None, ctypes.c_void_p))


class Lent(ctypes.c_void_p):
    """The address of a tensor that its producer lends; dropped, the tensor goes back.

    It is made before the producer is asked, and filled by the call itself, so that no interrupt
    comes between.
    """

    def __del__(self) -> None:
        address = self.value
        if address:
            delete = VersionedTensor.from_address(address).deleter
            if delete:
                _deleter(delete)(address)


class Exchange:
    """The functions of a library that are used here; they live as long as the process."""

    __slots__ = ("_current_stream", "_from_object")

    def __init__(self, functions: _Functions) -> None:
        self._from_object = _FromObject(functions.managed_tensor_from_py_object_no_sync)
        self._current_stream = _WorkStream(functions.current_work_stream)

    def lend(self, value: object) -> Lent:
        """The tensor of an object, before the work on it is done; raises what the library raises.

        Raises:
            SystemError: the library failed without an exception.
        """
        lent = Lent()
        if self._from_object(value, ctypes.addressof(lent)) or not lent.value:
            raise _silent("managed_tensor_from_py_object_no_sync")
        return lent

    def current_stream(self, device_type: int, ordinal: int) -> int:
        """The number of the stream on which the library works now in this thread, on a device.

        Raises:
            SystemError: the library failed without an exception.
        """
        number = ctypes.c_void_p()
        if self._current_stream(device_type, ordinal, ctypes.addressof(number)):
            raise _silent("current_work_stream")
        return number.value or 0


def _silent(function: str) -> SystemError:
    return SystemError(f"{function} of a library's DLPack functions failed without an exception")


# What was found for a type. Bounded, as it keeps types alive that a program may make at run time.
_found: Final[dict[type, Exchange | None]] = {}
_MOST_FOUND: Final = 256


def exchange_of(kind: type) -> Exchange | None:
    """The exchange functions of a type; None where it has none that can be used."""
    try:
        return _found[kind]
    except KeyError:
        pass
    found = _searched(kind)
    if len(_found) >= _MOST_FOUND:
        _found.clear()
    _found[kind] = found
    return found


def _searched(kind: type) -> Exchange | None:
    for base in kind.__mro__:
        capsule = vars(base).get(_ATTRIBUTE)
        if capsule is not None:
            return _opened(capsule)
        if "__dlpack__" in vars(base):
            return None  # a class that exports otherwise than the one it inherits from
    return None


def _opened(capsule: object) -> Exchange | None:
    """The functions of the known version, which may stand behind those of newer ones."""
    if not is_capsule(capsule, _NAME):
        return None
    address: int | None = int(capsule_pointer(capsule, _NAME))
    while address:
        header = _Header.from_address(address)
        if header.major == MAJOR:
            functions = _Functions.from_address(address)
            is_whole = (
                functions.managed_tensor_from_py_object_no_sync and functions.current_work_stream
            )
            return Exchange(functions) if is_whole else None
        address = header.previous if header.major > MAJOR else None
    return None
