"""What a C function takes: from the words of a table to what ctypes needs.

Words: `int`, `uint`, `short`, `byte`; `size` for what has 8 bytes (sizes, handles, addresses);
`text`, which ends with a NUL; `stream`, a handle of a stream; `*NAME`, a structure of the bindings.
A `>` before a word is a pointer to where the result goes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from ...driver._api import (
    CUDA_ARRAY3D_DESCRIPTOR,
    CUDA_MEMCPY3D,
    CUDA_RESOURCE_DESC,
    CUDA_RESOURCE_VIEW_DESC,
    CUDA_TEXTURE_DESC,
    CUmemAllocationProp,
    CUmemPoolProps,
)

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

Simple = (
    type[ctypes.c_int]
    | type[ctypes.c_uint]
    | type[ctypes.c_size_t]
    | type[ctypes.c_float]
    | type[ctypes.c_ushort]
    | type[ctypes.c_ubyte]
    | type[ctypes.c_char_p]
)
_TYPES: Final[dict[str, Simple]] = {
    "int": ctypes.c_int,
    "uint": ctypes.c_uint,
    "size": ctypes.c_size_t,
    "stream": ctypes.c_size_t,
    "float": ctypes.c_float,
    "short": ctypes.c_ushort,
    "byte": ctypes.c_ubyte,
    "text": ctypes.c_char_p,
}
_STRUCTURES: Final[dict[str, Callable[..., object]]] = {
    each.__name__: each
    for each in (
        CUDA_ARRAY3D_DESCRIPTOR, CUDA_MEMCPY3D, CUDA_RESOURCE_DESC, CUDA_RESOURCE_VIEW_DESC,
        CUDA_TEXTURE_DESC, CUmemAllocationProp, CUmemPoolProps,
    )
}  # fmt: skip
_PER_THREAD: Final = 2  # CU_STREAM_PER_THREAD
Argument = int | bytes | None
"""What ctypes hands on: a number, a text, or nothing for the null text."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a C function.

    Attributes:
        word: its type, without the `>`.
        is_result: whether it says where a result goes.
    """

    word: str
    is_result: bool

    @property
    def c_type(self) -> Simple:
        """What is passed."""
        is_address = self.is_result or self.word.startswith("*")
        return ctypes.c_size_t if is_address else _TYPES[self.word]

    def read(self, given: Argument, per_thread: bool) -> object:
        """What the emulator takes for it."""
        if self.word.startswith("*"):
            # The bindings' own view of the structure that the caller has.
            return _STRUCTURES[self.word[1:]](_ptr=given) if given else None
        if self.word == "stream" and per_thread and not given:
            return _PER_THREAD
        return given

    def write(self, address: int, value: Any) -> None:  # a number, or a handle of the bindings
        """Put a result where the caller wants it; nowhere, if it does not."""
        if address:
            c_type = _TYPES[self.word]
            number = value if c_type is ctypes.c_float else int(value)
            c_type.from_address(address).value = number


@dataclass(frozen=True)
class Signature:
    """A C function that returns a CUresult, or a number like it.

    Attributes:
        name: of the symbol, with its suffix.
        since: the version of CUDA that brought it, as cuGetProcAddress counts.
        parameters: in their order.
    """

    name: str
    since: int
    parameters: tuple[Parameter, ...]

    @property
    def base_name(self) -> str:
        """The name without its suffix."""
        return without_version(self.name)

    @cached_property
    def c_function(self) -> Callable[[Callable[..., int]], CFuncPtr]:
        """What makes C functions of it."""
        return ctypes.CFUNCTYPE(ctypes.c_int, *(p.c_type for p in self.parameters))

    @property
    def has_stream(self) -> bool:
        """Whether there is a variant for each thread's default stream."""
        return any(p.word == "stream" for p in self.parameters)


def without_version(name: str) -> str:
    """The name of a function without `_v2` and its like."""
    base, _, suffix = name.rpartition("_v")
    return base if base and suffix.isdecimal() else name


def signature(line: str) -> Signature:
    """Read a line of a table: the symbol, the version, the parameters."""
    name, since, *words = line.split()
    return Signature(
        name,
        int(since),
        tuple(Parameter(word.removeprefix(">"), word.startswith(">")) for word in words),
    )


def signatures(table: str) -> tuple[Signature, ...]:
    """Read a table, a function a line."""
    return tuple(signature(line) for line in table.splitlines() if line.strip())
