"""The seam to the driver: the types of cuda.bindings that cudadrv uses, and its module.

Nothing else imports `cuda.bindings.driver`. Two things satisfy `DriverApi`: that module itself and
`cudadrv.emulator.Emulator`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from cuda.bindings import driver as driver
from cuda.bindings.driver import *  # noqa: F403  # types, which other files import from here
from cuda.bindings.driver import CUipcEventHandle, CUipcMemHandle, CUmemPoolPtrExportData, CUmodule

if TYPE_CHECKING:
    import numpy.typing as npt


class MemoryWatch(Protocol):
    """What an emulator that checks bounds wants to know of memory that is kept and lent out again.

    The driver has no such thing, nor has an emulator without that check: `Driver.memory_watch`.
    """

    def lend(self, address: int, nbytes: int) -> None:
        """These bytes are in use: an allocation, or a part of one that is an array of its own."""

    def take_back(self, address: int) -> None:
        """What was lent at an address is not in use any more, though nothing is freed."""


class HostAccesses(Protocol):
    """What an emulator that looks for races, or runs work late, tracks of the host's own accesses.

    The driver has no such thing, nor has any other emulator: `Driver.host_accesses`.
    """

    def host_reads(self, array: npt.NDArray[Any], /) -> None:
        """The library reads an array of the host for its user now, which may be pinned."""


class NamesKernels(Protocol):
    """What tells an emulator the name expressions of a module, which the driver never hears of.

    The driver has no such function: `Driver.name_kernels`.
    """

    def __call__(self, module: CUmodule, expressions: Mapping[str, str], /) -> None:
        """Let errors call the kernels of a module by name expressions, given by their symbols."""


_T = TypeVar("_T", CUipcMemHandle, CUipcEventHandle, CUmemPoolPtrExportData)

OPAQUE_BYTES: Final = 64
"""The size of what the driver gives to be sent to another process."""


def opaque_bytes(value: CUipcMemHandle | CUipcEventHandle | CUmemPoolPtrExportData) -> bytes:
    """What the driver gave to be sent to another process, as bytes."""
    return ctypes.string_at(value.getPtr(), OPAQUE_BYTES)


def of_opaque_bytes(kind: type[_T], content: bytes) -> _T:
    """Such bytes, of which there are `OPAQUE_BYTES`, as the driver takes them."""
    value = kind()
    ctypes.memmove(value.getPtr(), content, OPAQUE_BYTES)
    return value
