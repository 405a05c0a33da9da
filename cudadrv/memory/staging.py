"""Staged copies: ordinary host arrays through pinned buffers, by several threads.

The driver copies pageable memory through one small buffer of its own on one thread, at a fraction
of the bandwidth of the bus. Here several threads move chunks between the array and pinned buffers,
while the driver transfers other chunks.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import memmove
from queue import SimpleQueue
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..driver._api import CUdeviceptr
from ..driver.context import BaseContext
from ..driver.context_handle import ContextHandle
from ..driver.driver_selection import failure
from ..driver.once_task import OnceTask
from ..driver.stream import BaseStream
from ..driver.stream_handle import EventHandle, StreamHandle
from ..errors import CudadrvError, OutOfMemoryError
from .dtypes import AnyArray
from .pinned import pinned_in

LEAST_STAGED_BYTES: Final = 8 << 20
"""Smaller copies go directly: waking the threads would cost more than they save.

Measured on an H200 host of 16 cores, arrays outside of the caches: staged copies of 4 MiB take 0.8
to 1.3 times as long as direct ones, of 8 MiB 0.65 to 0.9 times, of 16 MiB 0.5 to 0.75 times, of
64 MiB 0.26 to 0.4 times.
"""
# A chunk costs some 60 microseconds of the interpreter's lock, which the threads hand around.
# Chunks of 1 MiB take 1.2 to 1.3 times as long in all. Larger ones than 4 MiB leave the caches.
CHUNK_BYTES: Final = 4 << 20
"""The largest chunk, and the size of a slot, in bytes."""
_LEAST_BYTES: Final = 2 << 20
_FEWEST: Final = 6
# Larger chunks where other copies are under way: in a scatter of 64 MiB over four devices the
# interpreter's own work then takes half of the time.
_FEWEST_UNDER_LOAD: Final = 4
# How long a copy waits for another one's buffers when the system cannot pin more.
_TIMEOUT_SECONDS: Final = 1.0

_MOST_A_PROCESSOR: Final = 4  # Copies under way share them; a limit for many short copies
MOST_THREADS: Final = 12
"""Threads that serve one copy, its caller among them; more gained nothing on a host of 16 cores."""
FEWEST_THREADS: Final = 4
"""The least threads of a copy under load, as far as there are processors."""


def usable_threads() -> int:
    """Return the most threads that serve a copy: one per processor that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return min(MOST_THREADS, len(affinity(0)) if affinity is not None else os.cpu_count() or 1)


class ThreadBudget:
    """The number of threads that may serve a copy while it is one of the copies `under_way`.

    Each further thread takes time of the interpreter's lock. With as many copies as devices, all of
    them wait for that lock.

    Attributes:
        threads: the most threads that serve it.
        is_alone: whether no other copy is under way.
    """

    __slots__ = ("is_alone", "threads")

    def __init__(self) -> None:
        copies, usable = len(under_way) + 1, usable_threads()
        self.is_alone: bool = copies == 1
        self.threads: int = min(usable, max(FEWEST_THREADS, usable // copies))


under_way: Final[list[ThreadBudget]] = []
"""One item per copy; its thread inserts and removes it."""


class _Helpers:
    """The threads that help copies: all of them wait for one queue.

    Each submitted task finds a thread, up to a number of threads per processor. A thread is started
    when tasks outnumber threads. Idle threads are not counted, so an interrupt cannot lose one.

    Attributes:
        tasks: the queue that the threads wait for.
        pending: the tasks of copies under way. A copy inserts its own and removes them.
        threads: the threads; `starting` guards it.
    """

    def __init__(self) -> None:
        self.tasks: SimpleQueue[OnceTask[[]]] = SimpleQueue()
        self.pending: set[OnceTask[[]]] = set()
        self.threads: list[threading.Thread] = []
        self.starting = threading.RLock()

    def start(self) -> None:
        """Start a thread for each task that has none."""
        with self.starting:
            # An interrupted start leaves a thread that may not run.
            self.threads = [helper for helper in self.threads if helper.is_alive()]
            limit = min(len(self.pending), _MOST_A_PROCESSOR * usable_threads())
            # When the interpreter ends, no thread starts or runs any more.
            while len(self.threads) < limit and not sys.is_finalizing():
                thread = threading.Thread(target=self._serve, name="cudadrv-staging", daemon=True)
                self.threads.append(thread)
                try:
                    thread.start()
                except RuntimeError:
                    return  # the system has no more

    def _serve(self) -> None:
        try:
            while True:
                task = self.tasks.get()
                task.run()
                self.pending.discard(task)  # unless its copy has: an interrupt may prevent that
                del task  # nothing of a copy stays alive in an idle thread
        finally:
            with self.starting:
                self.threads.remove(threading.current_thread())


_helpers = _Helpers()


def _after_fork() -> None:
    global _helpers
    _helpers = _Helpers()  # the child has none of the threads
    under_way.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def work_together(job: Callable[[], None], threads: int) -> None:
    """Run `job` on the calling thread and on up to `threads` - 1 others; raise the first error.

    The job divides the work among the threads that run it. Fewer threads may run it, down to the
    caller alone. When this returns or raises, no thread runs it any more.
    """
    helpers = _helpers
    tasks = list(map(OnceTask, itertools.repeat(job, min(threads, usable_threads()) - 1)))
    errors: list[BaseException | None] = []
    try:
        try:
            helpers.pending.update(tasks)
            if len(helpers.pending) > len(helpers.threads):
                helpers.start()
            for task in tasks:
                helpers.tasks.put(task)
            job()
        finally:
            errors.extend(map(OnceTask.finish, tasks))
    finally:
        for task in tasks:
            task.finish()  # again, as an interrupt may have come at the call before
        helpers.pending.difference_update(tasks)
    for error in errors:
        if error is not None:
            raise error


class Slot:
    """One pinned buffer.

    Attributes:
        memory: its bytes.
        address: of the first byte.
        event: recorded after the transfer that last used it.
        busy: whether that transfer may still be under way.
        stream: where a transfer without a recorded event may be under way.
    """

    __slots__ = ("address", "busy", "event", "memory", "stream")

    def __init__(self, memory: npt.NDArray[np.uint8], event: EventHandle) -> None:
        self.memory: npt.NDArray[np.uint8] = memory
        self.address: int = memory.ctypes.data
        self.event: EventHandle = event
        self.busy: bool = False
        self.stream: StreamHandle | None = None

    def wait(self) -> None:
        """Wait for the transfer that last used the buffer."""
        if self.stream is not None:
            self.wait_for_stream()
        elif self.busy:
            api = self.event.context._driver.api
            (code,) = api.cuEventSynchronize(self.event.raw)
            if code:
                raise failure(api, code, "cuEventSynchronize", "waiting for a staged chunk")
            self.busy = False

    def wait_for_stream(self) -> None:
        """Wait for a transfer without an event, after an error or an interrupt.

        If that fails or is interrupted too, the next copy that uses the slot waits.
        """
        if self.stream is not None:
            self.stream.synchronize()
            self.stream, self.busy = None, False

    def transfer(
        self, stream: StreamHandle, pointer: int, chunk: StagedChunk, *, to_device: bool
    ) -> None:
        """Queue the transfer of a chunk, and the event that ends its use of the buffer."""
        api, device = stream.context._driver.api, CUdeviceptr(pointer + chunk.offset)
        self.stream = stream
        if to_device:
            call = "cuMemcpyHtoDAsync"
            function = api.cuMemcpyHtoDAsync
            (code,) = stream.submit(function, device, self.address, chunk.nbytes, stream.raw)
        else:
            call = "cuMemcpyDtoHAsync"
            copy = api.cuMemcpyDtoHAsync
            (code,) = stream.submit(copy, self.address, device, chunk.nbytes, stream.raw)
        if not code:
            call = "cuEventRecord"
            (code,) = stream.submit(api.cuEventRecord, self.event.raw, stream.raw)
        if code:
            doing = f"copying {chunk.nbytes} bytes at offset {chunk.offset} by way of pinned memory"
            raise failure(api, code, call, doing)
        self.stream, self.busy = None, True


Pair: TypeAlias = tuple[Slot, Slot]
"""The buffers of a thread: it copies one chunk while another one is transferred."""


class StagedChunk(NamedTuple):
    """A part of a copy: bytes from `offset` in C order, at a host address or as a strided view."""

    offset: int
    nbytes: int
    address: int
    view: AnyArray | None

    def fill(self, slot: Slot) -> None:
        """Copy from the host array to the pinned buffer."""
        if self.view is None:
            memmove(slot.address, self.address, self.nbytes)
        else:
            np.copyto(self._in(slot, self.view), self.view)

    def empty(self, slot: Slot) -> None:
        """Copy from the pinned buffer to the host array."""
        if self.view is None:
            memmove(self.address, slot.address, self.nbytes)
        else:
            np.copyto(self.view, self._in(slot, self.view))

    def _in(self, slot: Slot, view: AnyArray) -> AnyArray:
        return slot.memory[: self.nbytes].view(view.dtype).reshape(view.shape)


def chunks_of(array: AnyArray, budget: ThreadBudget) -> deque[StagedChunk]:
    """Cut an array in C order into chunks that fit a slot."""
    part = -(-array.nbytes // (_FEWEST if budget.is_alone else _FEWEST_UNDER_LOAD))
    limit = min(CHUNK_BYTES, max(_LEAST_BYTES, -(-part // 4096) * 4096))
    chunks: deque[StagedChunk] = deque()
    if array.flags.c_contiguous:
        base, size = array.ctypes.data, array.nbytes
        for offset in range(0, size, limit):
            chunks.append(StagedChunk(offset, min(limit, size - offset), base + offset, None))
        return chunks
    offset = 0
    for view in _pieces(array, limit):
        chunks.append(StagedChunk(offset, view.nbytes, 0, view))
        offset += view.nbytes
    return chunks


def _pieces(array: AnyArray, limit: int) -> Iterator[AnyArray]:
    """Yield views that make up a strided array in C order, of at most `limit` bytes each."""
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


class StagingRing:
    """The pinned buffers of one context, 8 MiB per thread, which its staged copies share.

    A thread that serves a copy has two of them. The pair that was returned last is reused first:
    its bytes are most likely in the processor's caches, through which the device reads and writes
    them too. The ring caches as many pairs as a copy has had threads. A copy that finds no pair
    makes one.

    Attributes:
        pairs: the pairs that no thread uses.
        is_usable: False where the system cannot pin the memory.
    """

    def __init__(self, context: BaseContext) -> None:
        self._context: ContextHandle = context._handle
        self.pairs: deque[Pair] = deque()
        self.is_usable: bool = True
        self._made: int = min(FEWEST_THREADS, usable_threads())
        try:
            self.pairs.extend(_new_pairs(self._context, self._made))
        except OutOfMemoryError as error:
            self.is_usable = False
            warnings.warn(
                f"large copies of ordinary arrays on {context!r} go unstaged and slow: {error}",
                RuntimeWarning,
                stacklevel=6,
            )

    def provide(self, threads: int) -> None:
        """Make pairs for more threads than any copy before had; without memory there are fewer."""
        missing, self._made = threads - self._made, max(threads, self._made)
        if missing > 0:
            with suppress(OutOfMemoryError):
                self.pairs.extendleft(_new_pairs(self._context, missing))

    def new_pair(self) -> Pair:
        """Make a pair; if the system cannot pin it, wait for one of another copy."""
        tries_end = time.monotonic() + _TIMEOUT_SECONDS
        while True:
            try:
                return _new_pairs(self._context, 1)[0]
            except OutOfMemoryError:
                with suppress(IndexError):
                    return self.pairs.pop()
                if time.monotonic() > tries_end:
                    raise
                time.sleep(0.001)


def _new_pairs(context: ContextHandle, count: int) -> list[Pair]:
    memory = pinned_in(context, 2 * count * CHUNK_BYTES)
    slots = [
        Slot(memory[number * CHUNK_BYTES :][:CHUNK_BYTES], EventHandle(context))
        for number in range(2 * count)
    ]
    return list(zip(slots[::2], slots[1::2], strict=True))


class _StagedCopy:
    """One copy, which several threads serve."""

    def __init__(
        self,
        stream: BaseStream,
        pointer: int,
        array: AnyArray,
        ring: StagingRing,
        *,
        to_device: bool,
    ) -> None:
        self._budget = ThreadBudget()
        self._chunks = chunks_of(array, self._budget)
        # A storm of interrupts may end the call while a thread still copies a chunk.
        self._array = array
        self._queue: StreamHandle = stream._handle
        self._caller = threading.get_ident()
        self._pointer = pointer
        self._ring = ring
        self._to_device = to_device  # a bound method here would keep the array in a circle

    def run(self) -> None:
        """Copy all chunks in this thread and in others."""
        try:
            under_way.append(self._budget)
            work_together(self._serve, self._threads())
        finally:
            if self._budget in under_way:
                under_way.remove(self._budget)

    def _threads(self) -> int:
        """Return how many threads serve it, for which the ring then has buffers."""
        threads = min(self._budget.threads, len(self._chunks))
        self._ring.provide(threads)
        return threads

    def _serve(self) -> None:
        """Copy chunks until none is left."""
        context = self._queue.context
        if not (context.is_alone or context.suits_copies()):
            context.call(self._serve)
            return
        try:
            pair = self._ring.pairs.pop()
        except IndexError:  # other copies have all of them
            if threading.get_ident() != self._caller:
                return
            pair = self._ring.new_pair()
        try:
            (self._upload if self._to_device else self._download)(pair)
        except BaseException:
            self._chunks.clear()
            for slot in pair:
                with suppress(CudadrvError):  # this is not the error to raise
                    slot.wait_for_stream()
            raise
        finally:
            self._ring.pairs.append(pair)

    def _parts(self, pair: Pair) -> Iterator[tuple[StagedChunk, Slot]]:
        """Yield the next chunk and a slot for it, until none is left."""
        for slot in itertools.cycle(pair):
            try:
                chunk = self._chunks.popleft()
            except IndexError:
                return
            slot.wait()
            yield chunk, slot

    def _upload(self, pair: Pair) -> None:
        for chunk, slot in self._parts(pair):
            chunk.fill(slot)
            slot.transfer(self._queue, self._pointer, chunk, to_device=True)

    def _download(self, pair: Pair) -> None:
        """Copy chunks; the next transfer runs while the previous chunk is copied."""
        arriving: tuple[StagedChunk, Slot] | None = None
        for chunk, slot in self._parts(pair):
            slot.transfer(self._queue, self._pointer, chunk, to_device=False)
            if arriving is not None:
                _arrive(*arriving)
            arriving = chunk, slot
            # The last chunks are one per thread: the first thread would take two.
            if len(self._chunks) < self._budget.threads:
                _arrive(*arriving)
                arriving = None
        if arriving is not None:
            _arrive(*arriving)


def _arrive(chunk: StagedChunk, slot: Slot) -> None:
    slot.wait()
    chunk.empty(slot)


def copy_staged(stream: BaseStream, pointer: int, array: AnyArray, *, to_device: bool) -> bool:
    """Copy between a host array and device memory by several threads; False if that is impossible.

    On return an upload is queued, and the array may be changed; a download is complete.
    """
    owner = stream.context
    ring = owner._kept.get(StagingRing) or owner._keep(StagingRing, lambda: StagingRing(owner))
    assert isinstance(ring, StagingRing)
    if not ring.is_usable:
        return False
    _StagedCopy(stream, pointer, array, ring, to_device=to_device).run()
    return True
