"""Memory that processes of one host share, which nobody has to remove.

It has no name in any folder: another process of the same user opens it by the number that it has
in the process that made it (proc(5), /proc/PID/fd). So it is gone when the last of both has ended,
however they end.
"""

from __future__ import annotations

import mmap
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..errors import CudadrvError
from .byte_copy import Bytes, copy_bytes

CAN_SHARE: Final = hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd")
"""Whether the system has such memory: Linux."""
_ALIGNMENT: Final = 4096  # a page, so that copies to the device begin on one


class NotHereError(CudadrvError):
    """Shared memory is of another host, or its process has ended."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where some arrays' bytes are.

    Attributes:
        path: of the segment, for another process.
        name: what the segment is called, as a number may be used again.
        spans: the offset and size of each array.
    """

    path: str
    name: str
    spans: tuple[tuple[int, int], ...]

    def within(self, memory: Bytes) -> list[Bytes]:
        """The arrays, in the memory where they are."""
        return [memory[at : at + nbytes] for at, nbytes in self.spans]


class Segment:
    """Shared memory of the process that makes it.

    Raises:
        OSError: there is not so much memory.
    """

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._name = f"cudadrv-{secrets.token_hex(8)}"
        self._number = os.memfd_create(self._name)
        # What is missing is an error here, and no SIGBUS at the first write.
        os.posix_fallocate(self._number, 0, nbytes)
        self._bytes = _mapped(self._number, nbytes)

    def __del__(self) -> None:
        # What another process has mapped stays as long as that has it.
        if hasattr(self, "_number"):
            os.close(self._number)

    def put(self, arrays: Sequence[Bytes]) -> Place:
        """Copy arrays in, one behind the other."""
        spans: list[tuple[int, int]] = []
        at = 0
        for array in arrays:
            copy_bytes(self._bytes[at : at + array.size], array)
            spans.append((at, array.size))
            at = _next(at + array.size)
        path = f"/proc/{os.getpid()}/fd/{self._number}"
        return Place(path, self._name, tuple(spans))

    def arrays(self, place: Place) -> list[Bytes]:
        """The arrays where they are."""
        return place.within(self._bytes)


def nbytes_for(arrays: Sequence[Bytes]) -> int:
    """How much `Segment.put` needs."""
    return sum(_next(array.size) for array in arrays)


def opened(place: Place, *, private: bool) -> list[Bytes]:
    """The arrays of another process.

    Args:
        place: where they are.
        private: whether changes are this process's own; else they are seen by all.

    Raises:
        NotHereError: that process is on another host, or has ended.
    """
    return place.within(mapped(place, private=private))


def mapped(place: Place, *, private: bool) -> Bytes:
    """The whole memory of another process in which a place is.

    Raises:
        NotHereError: as `opened` does.
    """
    try:
        name = os.readlink(place.path)
        mode = os.O_RDONLY if private else os.O_RDWR
        number = os.open(place.path, mode) if place.name in name else -1
    except OSError as error:
        raise NotHereError(f"opening shared memory: {error}") from error
    if number < 0:
        raise NotHereError(f"{place.path} is {name} now")
    try:
        if private:
            return np.frombuffer(mmap.mmap(number, 0, access=mmap.ACCESS_COPY), np.uint8)
        return _mapped(number, 0)
    finally:
        os.close(number)


def _mapped(number: int, nbytes: int) -> Bytes:
    """Shared memory, its pages all in place: one by one, as each is first used, takes longer."""
    flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
    return np.frombuffer(mmap.mmap(number, nbytes, flags=flags), np.uint8)


def _next(at: int) -> int:
    return -(-at // _ALIGNMENT) * _ALIGNMENT
