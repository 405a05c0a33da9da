"""Staged copies: ordinary host arrays through a ring of pinned buffers that several threads serve.

The driver copies pageable memory through one small buffer of its own on one thread, at a fraction
of what the bus carries. Here several threads move chunks between the array and pinned buffers
while other chunks are under way; `ctypes.memmove` and NumPy's copies let the interpreter go.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from functools import cache
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .._api import CUdeviceptr, CUevent, CUevent_flags, DriverApi
from .._driver import Bound, failure
from ..errors import OutOfMemoryError
from .array import AnyArray
from .pinned import pinned_empty
from .transfer import transfer

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

    from ..context import Context
    from ..stream import Stream

LEAST_STAGED_BYTES: Final = 2 << 20
"""Smaller copies go directly: waking the threads would cost more than they save."""

_CHUNK_BYTES: Final = 4 << 20
_LEAST_CHUNK_BYTES: Final = 256 << 10
_MOST_THREADS: Final = 8
_SLOTS: Final = 2 * _MOST_THREADS
_UNTIMED: Final = int(CUevent_flags.CU_EVENT_DISABLE_TIMING)


class Slot(NamedTuple):
    """One pinned buffer, and the event of the transfer that last used it."""

    memory: npt.NDArray[np.uint8]
    address: int
    event: CUevent


class Chunk(NamedTuple):
    """A part of a copy: bytes from `offset` in C order, at a host address or as a strided view."""

    offset: int
    nbytes: int
    address: int
    view: AnyArray | None

    def fill(self, slot: Slot) -> None:
        """Copy from the host array to the pinned buffer."""
        if self.view is None:
            ctypes.memmove(slot.address, self.address, self.nbytes)
        else:
            np.copyto(self._in(slot, self.view), self.view)

    def empty(self, slot: Slot) -> None:
        """Copy from the pinned buffer to the host array."""
        if self.view is None:
            ctypes.memmove(self.address, slot.address, self.nbytes)
        else:
            np.copyto(self.view, self._in(slot, self.view))

    def _in(self, slot: Slot, view: AnyArray) -> AnyArray:
        return slot.memory[: self.nbytes].view(view.dtype).reshape(view.shape)


class StagingRing:
    """The pinned buffers of one context, 64 MiB in all, that its staged copies take turns with."""

    def __init__(self, context: Context) -> None:
        self.api: DriverApi = context.api
        # Pinned for every context, and owned by none that may be destroyed.
        self._memory = pinned_empty(_SLOTS * _CHUNK_BYTES, np.uint8)
        self._free: SimpleQueue[Slot] = SimpleQueue()
        with Bound(self.api, context.handle):
            for number in range(_SLOTS):
                memory = self._memory[number * _CHUNK_BYTES :][:_CHUNK_BYTES]
                # The events go with their context; what is left of the ring outlives it.
                code, event = self.api.cuEventCreate(_UNTIMED)
                if code:
                    raise failure(self.api, code, "cuEventCreate", f"staging on {context!r}")
                self._free.put(Slot(memory, memory.ctypes.data, event))

    def upload(self, stream: Stream, pointer: int, source: AnyArray) -> None:
        """Queue the copy of a host array to device memory; the array may be changed on return."""

        def serve(chunks: Iterator[Chunk]) -> None:
            for chunk in chunks:
                slot = self._take()
                try:
                    chunk.fill(slot)
                    self._queue(stream, slot, pointer, chunk, to_device=True)
                finally:
                    self._free.put(slot)

        _share_out(serve, _chunks(source))

    def download(self, stream: Stream, target: AnyArray, pointer: int) -> None:
        """Copy device memory to a host array, and wait for it."""

        def start(chunks: Iterator[Chunk], slot: Slot) -> tuple[Chunk, Slot] | None:
            """Queue the next chunk's transfer; gives the slot back where there is none."""
            try:
                for chunk in chunks:
                    self._queue(stream, slot, pointer, chunk, to_device=False)
                    return chunk, slot
            except BaseException:
                self._free.put(slot)
                raise
            self._free.put(slot)
            return None

        def serve(chunks: Iterator[Chunk]) -> None:
            under_way = start(chunks, self._take())
            while under_way is not None:
                chunk, slot = under_way
                try:
                    # The next transfer runs while this chunk is moved, if a buffer is free.
                    spare = self._take_spare()
                    following = None if spare is None else start(chunks, spare)
                    self._wait(slot)
                    chunk.empty(slot)
                finally:
                    self._free.put(slot)
                under_way = following or start(chunks, self._take())

        _share_out(serve, _chunks(target))

    def _take(self) -> Slot:
        slot = self._free.get()
        self._wait(slot)
        return slot

    def _take_spare(self) -> Slot | None:
        try:
            slot = self._free.get_nowait()
        except Empty:
            return None
        self._wait(slot)
        return slot

    def _wait(self, slot: Slot) -> None:
        (code,) = self.api.cuEventSynchronize(slot.event)
        if code:
            raise failure(self.api, code, "cuEventSynchronize", "waiting for a staged chunk")

    def _queue(
        self, stream: Stream, slot: Slot, pointer: int, chunk: Chunk, *, to_device: bool
    ) -> None:
        """Queue the transfer of one chunk, and the event that ends its use of the slot."""
        api, device = self.api, CUdeviceptr(pointer + chunk.offset)
        host, nbytes = slot.address, chunk.nbytes
        if to_device:
            call = "cuMemcpyHtoDAsync"
            code = transfer(stream, api.cuMemcpyHtoDAsync, device, host, nbytes, stream.handle)
        else:
            call = "cuMemcpyDtoHAsync"
            code = transfer(stream, api.cuMemcpyDtoHAsync, host, device, nbytes, stream.handle)
        if not code:
            call = "cuEventRecord"
            (code,) = api.cuEventRecord(slot.event, stream.handle)
        if code:
            doing = f"copying {chunk.nbytes} bytes at offset {chunk.offset} by way of pinned memory"
            raise failure(api, code, call, doing)


# The ring of each context, made at its first large copy; one a living context, and gone with it.
_rings: Final[weakref.WeakKeyDictionary[Context, StagingRing | None]] = weakref.WeakKeyDictionary()
_lock: Final = threading.Lock()


def ring_of(context: Context) -> StagingRing | None:
    """The ring of a context; None, after one warning, where the system cannot pin its memory."""
    with _lock:
        if context not in _rings:
            for other in [other for other in _rings if other.closed]:
                del _rings[other]
            try:
                _rings[context] = StagingRing(context)
            except OutOfMemoryError as error:
                _rings[context] = None
                warnings.warn(
                    f"large copies of ordinary arrays on {context!r} go unstaged and slow: {error}",
                    RuntimeWarning,
                    stacklevel=2,
                )
        return _rings[context]


def release_ring(context: Context) -> None:
    """Give a context's pinned buffers back; the next large copy makes new ones. Idempotent."""
    with _lock:
        _rings.pop(context, None)


@cache
def _crew() -> ThreadPoolExecutor | None:
    """The threads beside the caller's that serve every ring of the process."""
    from concurrent.futures import ThreadPoolExecutor  # 4 ms that a start without copies saves

    threads = min(_MOST_THREADS, _usable_cpus()) - 1
    return ThreadPoolExecutor(threads, "cudadrv-staging") if threads else None


def _usable_cpus() -> int:
    # Not every system tells which processors the process may use.
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _share_out(serve: Callable[[Iterator[Chunk]], None], chunks: list[Chunk]) -> None:
    """Let the caller and the crew serve chunks until none is left; raises the first error."""
    numbers = itertools.count()
    stopped = threading.Event()

    def remaining() -> Iterator[Chunk]:
        while not stopped.is_set() and (number := next(numbers)) < len(chunks):
            yield chunks[number]

    def work() -> None:
        try:
            serve(remaining())
        except BaseException:
            stopped.set()
            raise

    crew = _crew()
    helpers: list[Future[None]] = []
    if crew is not None:
        try:
            helpers.extend(crew.submit(work) for _ in range(min(len(chunks), _MOST_THREADS) - 1))
        except RuntimeError:
            pass  # the interpreter is ending: the caller serves all that is left
    try:
        work()
    finally:
        # Nobody may touch the caller's array after the return, whatever happened.
        ran = [helper for helper in helpers if not helper.cancel()]
        errors = [error for helper in ran if (error := helper.exception()) is not None]
    if errors:
        raise errors[0]


def _chunks(array: AnyArray) -> list[Chunk]:
    """An array in C order, cut into chunks that fit a slot."""
    share = -(-array.nbytes // (2 * _MOST_THREADS))
    limit = min(_CHUNK_BYTES, max(_LEAST_CHUNK_BYTES, -(-share // 4096) * 4096))
    if array.flags.c_contiguous:
        base = array.ctypes.data
        return [
            Chunk(offset, min(limit, array.nbytes - offset), base + offset, None)
            for offset in range(0, array.nbytes, limit)
        ]
    chunks, offset = [], 0
    for view in _pieces(array, limit):
        chunks.append(Chunk(offset, view.nbytes, 0, view))
        offset += view.nbytes
    return chunks


def _pieces(array: AnyArray, limit: int) -> Iterator[AnyArray]:
    """Views that make up a strided array in C order, of at most `limit` bytes each."""
    if array.nbytes <= limit:
        yield array
        return
    row_bytes = array.nbytes // array.shape[0]
    if row_bytes > limit:
        for row in array:
            yield from _pieces(row, limit)
        return
    rows = limit // row_bytes
    for first in range(0, array.shape[0], rows):
        yield array[first : first + rows]
