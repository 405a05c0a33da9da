"""Signatures of C functions: from the words of a table (`driver/functions.py`) to ctypes."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final

from ...driver._api import OPAQUE_BYTES, driver, of_opaque_bytes
from ...driver.functions import FunctionForm
from ..caller_memory import mapped, text_at
from .caller_structures import ARRAYS, VALUES, structures_at

if TYPE_CHECKING:
    from _ctypes import CFuncPtr

Simple = (
    type[ctypes.c_int]
    | type[ctypes.c_uint]
    | type[ctypes.c_size_t]
    | type[ctypes.c_float]
    | type[ctypes.c_ushort]
    | type[ctypes.c_ubyte]
    | type[ctypes.Structure]
)
_TYPES: Final[dict[str, Simple]] = {
    "int": ctypes.c_int,
    "uint": ctypes.c_uint,
    "size": ctypes.c_size_t,
    "bytes": ctypes.c_size_t,
    "stream": ctypes.c_size_t,
    "float": ctypes.c_float,
    "short": ctypes.c_ushort,
    "byte": ctypes.c_ubyte,
    "text": ctypes.c_size_t,
    "location": ctypes.c_size_t,
    "image": ctypes.c_ubyte,
}
_ARRAY: Final = re.compile(r"(.+)\[(\d+)\]")


class _Opaque(ctypes.Structure):
    """Opaque bytes that go to other processes, as C passes them."""

    _fields_ = (("content", ctypes.c_ubyte * OPAQUE_BYTES),)


_PER_THREAD: Final = 2  # CU_STREAM_PER_THREAD
Argument = int | bytes | None
"""An argument: an integer, a text, or None for the null text."""


@dataclass(frozen=True, slots=True)
class CParameter:
    """A parameter of a C function.

    Attributes:
        word: its type, without the marks before it.
        mark: `>` for the address of a result, `&` for one of memory that is read, or nothing.
        is_optional: whether an address or a text may be null.
        count_at: of an array, the position of the parameter that has the number of elements.
    """

    word: str
    mark: str
    is_optional: bool
    count_at: int | None = None

    @property
    def is_result(self) -> bool:
        """Whether it is the address of a result."""
        return self.mark == ">"

    @property
    def is_needed(self) -> bool:
        """Whether it is an address that must not be null."""
        return not self.is_optional and (self.mark != "" or self.word == "text")

    @property
    def c_type(self) -> Simple:
        """The ctypes type of the argument."""
        if self.mark or self.word.startswith("*") or self.count_at is not None:
            return ctypes.c_size_t
        return _Opaque if self.word.startswith("@") else _TYPES[self.word]

    @property
    def nbytes(self) -> int:
        """The bytes that are surely used at an address; of a structure that is read, the first."""
        _, is_structure, nbytes = self.word.partition("=")
        if is_structure:
            return int(nbytes)
        return 8 if self.word.startswith("*") else ctypes.sizeof(_TYPES[self.word])

    @property
    def is_converted(self) -> bool:
        """Whether the emulator and handlers receive another value than the argument."""
        is_value = self.word in VALUES or self.word[0] in "*@" or self.word == "stream"
        return not self.is_result and (is_value or self.count_at is not None)

    def read(self, arguments: Sequence[Any], index: int, per_thread: bool) -> object:
        """Return the value that the emulator expects for its argument, that of this index.

        Raises:
            CallError: CUDA_ERROR_INVALID_VALUE, as an address is not mapped.
        """
        argument = arguments[index]
        if self.count_at is not None:
            return self._elements(argument, arguments[self.count_at])
        if isinstance(argument, ctypes.Structure):
            return of_opaque_bytes(getattr(driver, self.word[1:]), bytes(argument))
        if self.word in VALUES:
            return VALUES[self.word](argument)
        if self.word.startswith("*"):
            return self._structure(argument) if argument else None
        if self.word == "stream" and per_thread and not argument:
            return _PER_THREAD
        return argument

    def _structure(self, address: int) -> object:
        """Return the bindings' own view of the caller's structure."""
        return getattr(driver, self.word[1:].partition("=")[0])(_ptr=address)

    def _elements(self, address: int, count: int) -> object:
        if self.word in ARRAYS:
            return ARRAYS[self.word](address, count)
        return [self._structure(at) for at in structures_at(address, self.nbytes, count)]

    def write(self, address: int, value: Any) -> None:  # a number, or a handle of the bindings
        """Write a result to the caller's address, unless that is null."""
        if address and self.word.startswith("="):
            ctypes.memmove(address, value.getPtr(), int(self.word[1:]))
        elif address:
            c_type = _TYPES[self.word]
            number = value if c_type is ctypes.c_float else int(value)
            c_type.from_address(address).value = number


@dataclass(frozen=True)
class Signature:
    """A C function that returns a CUresult, or a number like it.

    Attributes:
        symbol: its name in the library, with its suffix.
        name: its name on the emulator.
        since: the version of CUDA that introduced it, as cuGetProcAddress counts.
        parameters: the parameters in order.
        per_thread: the symbol of its variant for each thread's default stream, or "".
        is_absent: whether the emulator lacks it.
    """

    symbol: str
    name: str
    since: int
    parameters: tuple[CParameter, ...]
    per_thread: str
    is_absent: bool

    @cached_property
    def c_function(self) -> Callable[[Callable[..., int]], CFuncPtr]:
        """The ctypes prototype (CFUNCTYPE) of this signature."""
        return ctypes.CFUNCTYPE(ctypes.c_int, *(p.c_type for p in self.parameters))

    @cached_property
    def needed(self) -> tuple[int, ...]:
        """The positions of the addresses that must not be null."""
        return tuple(at for at, parameter in enumerate(self.parameters) if parameter.is_needed)

    @cached_property
    def addresses(self) -> tuple[tuple[int, int, bool], ...]:
        """The positions of addresses with a mark, the least number of bytes, and if they change."""
        marked = ((at, p) for at, p in enumerate(self.parameters) if p.mark or p.word[0] == "*")
        return tuple(
            (at, parameter.nbytes, parameter.is_result)
            for at, parameter in marked
            if parameter.count_at is None
        )

    @cached_property
    def texts(self) -> tuple[int, ...]:
        """The positions of texts."""
        return tuple(at for at, p in enumerate(self.parameters) if p.word == "text")

    def read(self, arguments: Sequence[Any]) -> Sequence[Any]:  # numbers and opaque bytes
        """Return the arguments, with texts in place of their addresses.

        Raises:
            CallError: CUDA_ERROR_INVALID_VALUE, as an address is not mapped.
        """
        for index, nbytes, is_result in self.addresses:
            address = arguments[index]
            if address:
                mapped(address, nbytes, is_written=is_result)
        if not self.texts:
            return arguments
        read = list(arguments)
        for index in self.texts:
            read[index] = text_at(read[index])
        return read

    def has_null(self, arguments: Sequence[Argument]) -> bool:
        """Return whether an address is null that must not be."""
        return any(arguments[index] == 0 for index in self.needed)


def signature(form: FunctionForm) -> Signature:
    """Return the signature of a line of a table."""
    parameters = tuple(map(_parameter, form.parameters))
    is_absent = "absent" in form.flags
    return Signature(
        form.symbol, form.name, form.since, parameters, form.per_thread, is_absent=is_absent
    )


@cache  # the driver's functions have 2,000 parameters of 60 kinds
def _parameter(text: str) -> CParameter:
    word = text.lstrip(">&?")
    marks = text.removesuffix(word)
    array = _ARRAY.fullmatch(word)
    count_at = int(array[2]) if array else None
    return CParameter(array[1] if array else word, marks.removesuffix("?"), "?" in marks, count_at)
