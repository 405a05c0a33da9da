"""Functions that need more than forwarding of arguments: one handler each, with raw arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Final

from ...driver._api import CUresult
from ..caller_memory import mapped
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
        ctypes.c_size_t.from_address(mapped(address, 8, is_written=True)).value = int(value)


def put_uint(address: int, value: int) -> None:
    """Write 4 bytes, unless the address is null."""
    if address:
        ctypes.c_uint.from_address(mapped(address, 4, is_written=True)).value = value


def put_bytes(address: int, data: bytes) -> None:
    """Write bytes, unless the address is null."""
    if address:
        ctypes.memmove(mapped(address, len(data), is_written=True), data, len(data))


class Texts:
    """Texts whose address a caller received: they stay, as no call ends their use."""

    def __init__(self) -> None:
        self._buffers: dict[bytes, ctypes.Array[ctypes.c_char]] = {}

    def address(self, text: bytes) -> int:
        """Return the address of the text, ended by a NUL; equal texts have one address."""
        buffer = self._buffers.setdefault(text, ctypes.create_string_buffer(text))
        return ctypes.addressof(buffer)
