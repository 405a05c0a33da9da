"""The global memory that chunks of one launch access while they run in several threads.

Chunks that run at once give the results of one after another if no chunk writes bytes that another
one accesses. Each then reads its own bytes, or those from before the launch. So each chunk
records its accesses, and bytes are copied before they are written first. If chunks depend on each
other, the copies are put back, and the launch is repeated in one thread.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.site import Memory

_MOST_RANGES = 1 << 14  # that a chunk records of each kind; more would take long to compare
_MOST_BYTES = 1 << 30  # that are copied for one launch


class ChunksDepend(Exception):
    """The chunks of a launch cannot run at once, or it is unknown whether they can."""


class ByteRanges:
    """Ranges of addresses, in order. They neither overlap nor touch."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def overlaps(self, start: int, end: int) -> bool:
        """Return whether any byte from `start` to below `end` is in a range."""
        index = bisect_right(self._ends, start)
        return index < len(self._starts) and self._starts[index] < end

    def add(self, start: int, end: int) -> list[tuple[int, int]]:
        """Add a range; return the parts of it that were in no range."""
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        new, position = [], start
        for known_start, known_end in zip(
            self._starts[first:last], self._ends[first:last], strict=True
        ):
            if position < known_start:
                new.append((position, known_start))
            position = max(position, known_end)
        if position < end:
            new.append((position, end))
        if first < last:
            start, end = min(start, self._starts[first]), max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]
        return new


class AccessesOfChunks:
    """The accesses of all chunks of a launch, and the bytes from before it.

    Args:
        memory: of the device.
        chunks: the first block of each chunk.

    Attributes:
        stopped_by: the first error of a chunk; the others need not go on.
    """

    def __init__(self, memory: DeviceMemory, chunks: Iterable[int]) -> None:
        self.memory: DeviceMemory = memory
        self.stopped_by: BaseException | None = None
        self._waiting = deque(chunks)
        self._lock = Lock()
        self._read = ByteRanges()
        self._written = ByteRanges()
        self._copied = ByteRanges()
        self._copies: list[tuple[int, NDArray[np.uint8]]] = []
        self._copied_bytes = 0

    def next_chunk(self) -> int | None:
        """Return the first block of a chunk that no thread has begun; None if there is none."""
        with suppress(IndexError):
            return self._waiting.popleft()
        return None

    def stop(self, error: BaseException) -> None:
        """Have the chunks of all threads stop."""
        with self._lock:
            if self.stopped_by is None:
                self.stopped_by = error

    def copy(self, start: int, end: int) -> None:
        """Copy the bytes of a range before a chunk writes there.

        Raises:
            ChunksDepend: the copies of the launch are too large.
        """
        base = self.memory.base
        with self._lock:
            for first, stop in self._copied.add(start, end):
                self._copied_bytes += stop - first
                if self._copied_bytes > _MOST_BYTES:
                    raise ChunksDepend
                self._copies.append((first, self.memory.data[first - base : stop - base].copy()))

    def end_chunk(self, chunk: ChunkAccesses) -> None:
        """Compare the accesses of a chunk that has ended with those of the chunks before.

        Raises:
            ChunksDepend: one of the two writes what the other one accesses.
        """
        with self._lock:
            if any(self._read.overlaps(*byte_range) for byte_range in chunk.written) or any(
                self._written.overlaps(*byte_range) for byte_range in chunk.written | chunk.read
            ):
                raise ChunksDepend
            for byte_range in chunk.read:
                self._read.add(*byte_range)
            for byte_range in chunk.written:
                self._written.add(*byte_range)

    def put_back(self) -> None:
        """Make memory as it was before the launch; all chunks have stopped."""
        for start, data in self._copies:
            first = start - self.memory.base
            self.memory.data[first : first + len(data)] = data


class ChunkAccesses:
    """The accesses of one chunk.

    Attributes:
        read, written: the ranges, from a first address to below another one.
    """

    __slots__ = ("_launch", "read", "written")

    def __init__(self, launch: AccessesOfChunks) -> None:
        self._launch = launch
        self.read: set[tuple[int, int]] = set()
        self.written: set[tuple[int, int]] = set()

    def note(self, memory: Memory, start: int, end: int, *, writes: bool) -> None:
        """Record an access within these addresses, before it happens.

        Raises:
            ChunksDepend: the launch is to be repeated.
        """
        launch = self._launch
        if launch.stopped_by is not None:
            raise ChunksDepend
        ranges = self.written if writes else self.read
        if (start, end) in ranges:
            return
        # Others may use the memory of the host and of other devices meanwhile.
        if memory is not launch.memory or len(ranges) >= _MOST_RANGES:
            raise ChunksDepend
        if writes:
            launch.copy(start, end)
        ranges.add((start, end))

    def require_going_on(self, *, may_go_on: bool) -> None:
        """Raise if the launch is to be repeated.

        Raises:
            ChunksDepend: it is, or this chunk may not go on beside others.
        """
        if self._launch.stopped_by is not None or not may_go_on:
            raise ChunksDepend
