"""The driver's functions of tensor maps, called by their addresses.

A CUtensorMap lies at a multiple of 64 bytes, in CUDA 13 of 128. cuda.bindings makes one where
Python puts objects, at multiples of 16: so its functions are of no use, and C's are called.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from ..driver._api import CUresult
from ..driver.context_box import ContextBox
from ..driver.in_use import failure
from ..errors import DriverSymbolMissingError

NBYTES: Final = 128
_ALIGNMENT: Final = 128
_WORD: Final = ctypes.c_uint
_INT: Final = ctypes.c_int
_ADDRESS: Final = ctypes.c_void_p
# A result of the map, type, rank, address, extents, strides.
_TENSOR: Final = (_INT, _ADDRESS, _WORD, _WORD, *(_ADDRESS,) * 3)
_MODES: Final = (_WORD,) * 4


class Encoder(NamedTuple):
    """A function that makes a map.

    Attributes:
        name: its name.
        since: the version of CUDA that brought it.
        form: what makes a function of its address.
    """

    name: str
    since: int
    form: Callable[[int], Callable[..., int]]


TILED: Final = Encoder(
    "cuTensorMapEncodeTiled", 12000,
    ctypes.CFUNCTYPE(*_TENSOR, _ADDRESS, _ADDRESS, *_MODES),
)  # fmt: skip
"""Box, steps, modes."""
IM2COL: Final = Encoder(
    "cuTensorMapEncodeIm2col", 12000,
    ctypes.CFUNCTYPE(*_TENSOR, _ADDRESS, _ADDRESS, _WORD, _WORD, _ADDRESS, *_MODES),
)  # fmt: skip
"""Lower and upper corner, channels, pixels, steps, modes."""
IM2COL_WIDE: Final = Encoder(
    "cuTensorMapEncodeIm2colWide", 12080,
    ctypes.CFUNCTYPE(*_TENSOR, _INT, _INT, _WORD, _WORD, _ADDRESS, _WORD, *_MODES),
)  # fmt: skip
"""The same; corners are numbers, and the mode of width stands behind the interleave."""
REPLACE: Final = Encoder(
    "cuTensorMapReplaceAddress", 12000, ctypes.CFUNCTYPE(_INT, _ADDRESS, _ADDRESS)
)
"""Of the map and the address."""


def encoded(
    context: ContextBox, encoder: Encoder, given: Sequence[object], doing: str, before: bytes
) -> bytes:
    """The 128 bytes that a function makes, or that it makes of those before.

    Raises:
        CudaError: the driver refused.
        DriverSymbolMissingError: it has no such function.
    """
    code, address, _ = context.api.cuGetProcAddress(encoder.name.encode(), encoder.since, 0)
    if code and code != CUresult.CUDA_ERROR_NOT_FOUND:
        raise failure(context.api, code, "cuGetProcAddress", f"looking for {encoder.name}")
    if code or not address:
        raise DriverSymbolMissingError(
            f"{encoder.name} is not in the installed driver: update the driver"
        )
    memory = (ctypes.c_char * (NBYTES + _ALIGNMENT))()
    start = ctypes.addressof(memory)
    start += -start % _ALIGNMENT
    ctypes.memmove(start, before.ljust(NBYTES, b"\0"), NBYTES)
    found = CUresult(context.call(encoder.form(int(address)), start, *given))
    if found:
        raise failure(context.api, found, encoder.name, doing)
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
