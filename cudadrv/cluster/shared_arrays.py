"""Arrays in memory that processes of one host share.

The memory has no name in any folder. Another process of the same user opens it through its file
number in the process that made it (proc(5), /proc/PID/fd). The system frees it when both processes
have ended, however they end. `multiprocessing.shared_memory` has names, which remain when a process
is killed.
"""

from __future__ import annotations

import itertools
import mmap
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import CudadrvError
from ..memory.dtypes import AnyArray
from ..memory.staging import ThreadBudget, under_way, work_together

Bytes: TypeAlias = npt.NDArray[np.uint8]

CAN_SHARE: Final = hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd")
"""Whether the system supports such memory: only Linux does."""
MAX_REUSED_BYTES: Final = 256 << 20
"""The largest segment that is cached for further calls; a larger one would hold much memory."""
PAGE_BYTES: Final = 4096
"""An array begins on its own page, to suit copies to the device."""
_MIN_THREADED_BYTES: Final = 4 << 20  # fewer are copied sooner than another thread wakes
_CHUNK_BYTES: Final = 2 << 20


class NotSharedError(CudadrvError):
    """Shared memory belongs to another host, or its process has ended."""


@dataclass(frozen=True, slots=True)
class SharedArrays:
    """The position of some arrays' bytes, for another process.

    Attributes:
        path: the file of the segment.
        name: the segment's name; file numbers are reused, names are not.
        spans: the offset and size of each array.
    """

    path: str
    name: str
    spans: tuple[tuple[int, int], ...]

    def within(self, memory: Bytes) -> list[Bytes]:
        """Return the arrays, in the mapped memory of their segment."""
        return [memory[start : start + nbytes] for start, nbytes in self.spans]

    def mapped(self) -> Bytes:
        """Map the whole segment of another process.

        Raises:
            NotSharedError: that process is on another host, or has ended.
        """
        try:
            name = os.readlink(self.path)
            number = os.open(self.path, os.O_RDWR) if self.name in name else -1
        except OSError as error:
            raise NotSharedError(f"opening shared memory: {error}") from error
        if number < 0:
            raise NotSharedError(f"{self.path} is {name} now")
        try:
            return _mapped(number, 0)
        finally:
            os.close(number)


class Segment:
    """Shared memory of the process that makes it.

    Raises:
        OSError: the system has not enough memory.
    """

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._name = f"cudadrv-{secrets.token_hex(8)}"
        self._number = os.memfd_create(self._name)
        # Missing memory is an error here, instead of a SIGBUS at the first write.
        os.posix_fallocate(self._number, 0, nbytes)
        self._bytes = _mapped(self._number, nbytes)

    def __del__(self) -> None:
        # Memory that another process has mapped stays until that process unmaps it.
        if hasattr(self, "_number"):
            os.close(self._number)

    def put(self, arrays: Sequence[Bytes]) -> SharedArrays:
        """Copy arrays into the segment, one after the other."""
        spans: list[tuple[int, int]] = []
        start = 0
        for array in arrays:
            copy_items(self._bytes[start : start + array.size], array)
            spans.append((start, array.size))
            start += -(-array.size // PAGE_BYTES) * PAGE_BYTES
        path = f"/proc/{os.getpid()}/fd/{self._number}"
        return SharedArrays(path, self._name, tuple(spans))

    def arrays(self, shared: SharedArrays) -> list[Bytes]:
        """Return the present arrays that `put` has copied here."""
        return shared.within(self._bytes)


def copy_items(destination: AnyArray, source: object) -> None:
    """Execute ``destination[...] = source``, with several threads for large arrays."""
    if (
        isinstance(source, np.ndarray)
        and source.nbytes >= _MIN_THREADED_BYTES
        and (destination.dtype, destination.shape) == (source.dtype, source.shape)
        and not destination.dtype.hasobject
        and destination.flags.c_contiguous
        and source.flags.c_contiguous
    ):
        _copy_bytes(destination.reshape(-1).view(np.uint8), source.reshape(-1).view(np.uint8))
    else:
        destination[...] = source  # NumPy releases the interpreter's lock meanwhile


def _copy_bytes(destination: Bytes, source: Bytes) -> None:
    numbers = itertools.count()
    chunks = -(-source.size // _CHUNK_BYTES)

    def work() -> None:
        while (number := next(numbers)) < chunks:
            start = number * _CHUNK_BYTES
            destination[start : start + _CHUNK_BYTES] = source[start : start + _CHUNK_BYTES]

    budget = ThreadBudget()
    try:
        under_way.append(budget)  # no interrupt comes before it, nor before it is taken out
        work_together(work, min(budget.threads, chunks))
    finally:
        under_way.remove(budget)


def _mapped(number: int, nbytes: int) -> Bytes:
    """Map shared memory with all its pages at once, which is faster than one page fault each."""
    flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
    return np.frombuffer(mmap.mmap(number, nbytes, flags=flags), np.uint8)
