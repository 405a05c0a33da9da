"""Small types that the whole package uses."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag
from typing import NamedTuple, Protocol, TypeAlias

from ._api import CUctx_flags

Dim3: TypeAlias = tuple[int, int, int]
"""Extents along x, y and z."""


class MemoryInfo(NamedTuple):
    """Free and total memory of a device, in bytes."""

    free: int
    total: int


class ContextFlags(IntFlag):
    """How a thread waits for the device; CUctx_flags in the driver manual."""

    SCHED_AUTO = int(CUctx_flags.CU_CTX_SCHED_AUTO)
    SCHED_SPIN = int(CUctx_flags.CU_CTX_SCHED_SPIN)
    SCHED_YIELD = int(CUctx_flags.CU_CTX_SCHED_YIELD)
    SCHED_BLOCKING_SYNC = int(CUctx_flags.CU_CTX_SCHED_BLOCKING_SYNC)
    MAP_HOST = int(CUctx_flags.CU_CTX_MAP_HOST)
    LMEM_RESIZE_TO_MAX = int(CUctx_flags.CU_CTX_LMEM_RESIZE_TO_MAX)


class CudaStream(Protocol):
    """A stream of any library: CuPy's, PyTorch's, cuda.core's, Numba's and ours."""

    def __cuda_stream__(self) -> tuple[int, int]:
        """(0, CUstream)."""


class Dependent(Protocol):
    """An object with the driver's functions and the handles of a stream and a module built in."""

    def on_owner_closed(self, owner: object) -> None:
        """Drop all references to `owner`, which was closed, if it is one of them."""

    def reset(self) -> None:
        """Read the stream and the driver's functions again: one of them has changed."""


class StreamDependent(Dependent, Protocol):
    """A dependent whose calls for its stream take no pass of the stream's gate."""

    def hold_back(self) -> Callable[[], bool]:
        """Let later calls take a pass; return whether those under way are done, as a function."""
