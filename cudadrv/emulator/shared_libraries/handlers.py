"""Functions that need more than forwarding of arguments: one handler each, with raw arguments."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from ...driver._api import CUresult
from ..call_error import invalid_value
from ..caller_memory import is_readable, mapped
from ..emulator import Emulator

Handler = Callable[..., int]
"""Takes the emulator and ctypes' arguments; returns the CUresult."""
INVALID_VALUE: Final = int(CUresult.CUDA_ERROR_INVALID_VALUE)


class Handlers:
    """The handlers of a file, by the symbols that they serve."""

    def __init__(self) -> None:
        self.by_symbol: dict[str, Handler] = {}

    def __call__(self, symbol: str) -> Callable[[Handler], Handler]:
        """Let a handler serve a symbol of the table."""

        def add(handler: Handler) -> Handler:
            self.by_symbol[symbol] = handler
            return handler

        return add


def call(api: Emulator, name: str, *arguments: object) -> tuple[Any, ...]:
    """Call a function of the emulator with any arguments."""
    function: Callable[..., tuple[Any, ...]] = getattr(api, name)
    return function(*arguments)


def passed_on(api: Emulator, name: str, arguments: Sequence[object], result: int) -> int:
    """Call it, and write its one result, of 8 bytes, to the caller's address."""
    code, *values = call(api, name, *arguments)
    if not code:
        put_size(result, values[0])
    return int(code)


def put_size(address: int, value: Any) -> None:  # a number, or a handle of the bindings
    """Write 8 bytes, unless the address is null."""
    if address:
        ctypes.c_size_t.from_address(mapped(address, 8)).value = int(value)


def put_uint(address: int, value: int) -> None:
    """Write 4 bytes, unless the address is null."""
    if address:
        ctypes.c_uint.from_address(mapped(address, 4)).value = value


def put_bytes(address: int, data: bytes) -> None:
    """Write bytes, unless the address is null."""
    if address:
        ctypes.memmove(mapped(address, len(data)), data, len(data))


# Beyond every real count. Such a number of elements may be readable, by chance, and would take all
# memory.
_MOST_ELEMENTS: Final = 1 << 24
_SMALL: Final = 4096


def sizes_at(address: int, count: int) -> list[int]:
    """Return an array of 8-byte integers.

    Raises:
        CallError: as `structures_at`.
    """
    return _integers_at(address, count, "Q", 8)


def ints_at(address: int, count: int) -> list[int]:
    """Return an array of 4-byte integers, such as options and attributes.

    Raises:
        CallError: as `structures_at`.
    """
    return _integers_at(address, count, "i", 4)


def _integers_at(address: int, count: int, form: str, nbytes: int) -> list[int]:
    elements = structures_at(address, nbytes, count)
    data = ctypes.string_at(address, nbytes * count) if elements else b""
    return list(struct.unpack(f"{count}{form}", data))


def structures_at(address: int, nbytes: int, count: int) -> range:
    """Return the addresses of an array of structures, each of so many bytes.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE, as its elements cannot be read, or they are more than
            any call has.
    """
    if count > _MOST_ELEMENTS or (count and not is_readable(address, nbytes * count)):
        raise invalid_value(f"{address:#x} is no array of {count} elements")
    return range(address, address + nbytes * count, nbytes)


def bytes_at(address: int, nbytes: int) -> bytes:
    """Return bytes of the caller.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE, as they cannot be read.
    """
    if not address or (nbytes > _SMALL and not is_readable(address, nbytes)):
        raise invalid_value(f"{address:#x} is no address of {nbytes} bytes")
    return ctypes.string_at(mapped(address, nbytes), nbytes)


class Texts:
    """Texts whose address a caller received: they stay, as no call ends their use."""

    def __init__(self) -> None:
        self._buffers: dict[bytes, ctypes.Array[ctypes.c_char]] = {}

    def address(self, text: bytes) -> int:
        """Return the address of the text, ended by a NUL; equal texts have one address."""
        buffer = self._buffers.setdefault(text, ctypes.create_string_buffer(text))
        return ctypes.addressof(buffer)
