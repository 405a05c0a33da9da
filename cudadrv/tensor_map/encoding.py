"""The driver's functions of tensor maps, called by their addresses.

A CUtensorMap lies at a multiple of 64 bytes, in CUDA 13 of 128. cuda.bindings makes one where
Python puts objects, at multiples of 16: so its functions are of no use, and C's are called.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from ..driver._api import CUresult
from ..driver.context_box import ContextBox
from ..driver.in_use import failure
from ..errors import DriverSymbolMissingError

NBYTES: Final = 128
_ALIGNMENT: Final = 128
_SINCE: Final = 12000  # the version of CUDA that brought them
Form: TypeAlias = Callable[[int], Callable[..., int]]
"""What makes a function of an address."""

_WORD: Final = ctypes.c_uint
_ADDRESS: Final = ctypes.c_void_p
_MODES: Final = (_WORD,) * 4
TILED: Final = ctypes.CFUNCTYPE(ctypes.c_int, _ADDRESS, _WORD, _WORD, *(_ADDRESS,) * 5, *_MODES)
"""cuTensorMapEncodeTiled: the map, type, rank, address, extents, strides, box, steps, modes."""
IM2COL: Final = ctypes.CFUNCTYPE(
    ctypes.c_int, _ADDRESS, _WORD, _WORD, *(_ADDRESS,) * 5, _WORD, _WORD, _ADDRESS, *_MODES
)
"""cuTensorMapEncodeIm2col: …, strides, lower and upper corner, channels, pixels, steps, modes."""
REPLACE: Final = ctypes.CFUNCTYPE(ctypes.c_int, _ADDRESS, _ADDRESS)
"""cuTensorMapReplaceAddress: the map and the address."""


def encoded(
    context: ContextBox, name: str, form: Form, given: Sequence[object], doing: str, before: bytes
) -> bytes:  # fmt: skip
    """The 128 bytes that a function makes, or that it makes of those before.

    Raises:
        CudaError: the driver refused.
        DriverSymbolMissingError: it has no such function.
    """
    code, address, _ = context.api.cuGetProcAddress(name.encode(), _SINCE, 0)
    if code or not address:
        raise DriverSymbolMissingError(f"{name} is not in the installed driver: update the driver")
    memory = (ctypes.c_char * (NBYTES + _ALIGNMENT))()
    start = ctypes.addressof(memory)
    start += -start % _ALIGNMENT
    ctypes.memmove(start, before.ljust(NBYTES, b"\0"), NBYTES)
    found = CUresult(context.call(form(int(address)), start, *given))
    if found:
        raise failure(context.api, found, name, doing)
    return ctypes.string_at(start, NBYTES)


def sizes(values: Sequence[int]) -> Any:  # an array, whose type has no public name
    """Numbers of 64 bits in memory, innermost dimension first."""
    return (ctypes.c_uint64 * 5)(*reversed(values))


def words(values: Sequence[int]) -> Any:
    """The same of 32 bits."""
    return (ctypes.c_uint32 * 5)(*reversed(values))


def offsets(values: Sequence[int]) -> Any:
    """The same with signs."""
    return (ctypes.c_int * 5)(*reversed(values))
