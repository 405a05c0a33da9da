"""Staged copies: ordinary host arrays through a ring of pinned buffers that several threads serve.

The driver copies pageable memory through one small buffer of its own on one thread, at a fraction
of what the bus carries. Here several threads move chunks between the array and pinned buffers
while other chunks are under way; `ctypes.memmove` and NumPy's copies let the interpreter go.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from ctypes import memmove
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..driver._api import CUdeviceptr
from ..driver.context import ContextCore
from ..driver.context_box import ContextBox
from ..driver.driver_api import DriverApi
from ..driver.in_use import failure
from ..driver.once_task import OnceTask
from ..driver.stream_box import EventBox, StreamBox
from ..errors import CudadrvError, OutOfMemoryError
from .dtypes import AnyArray
from .pinned import pinned_in
from .transfer import transfer

_MOST_A_PROCESSOR: Final = 4  # copies at once share them; it ends what quick copies would start
MOST_THREADS: Final = 12
"""Threads that serve one copy, its caller among them; more gained nothing on a host of 16 cores."""

FEWEST_THREADS: Final = 4
"""What a copy has however many are under way, as far as there are processors."""


class Share:
    """How many threads may serve a copy while it is among the copies `under_way`.

    Each thread more takes time of the interpreter's lock. Where there are as many copies as
    devices, that is what all of them wait for.

    Attributes:
        threads: how many may serve it.
        is_alone: whether no other copy is under way.
    """

    __slots__ = ("is_alone", "threads")

    def __init__(self) -> None:
        copies, most = len(under_way) + 1, usable_threads()
        self.is_alone: bool = copies == 1
        self.threads: int = min(most, max(FEWEST_THREADS, most // copies))


under_way: Final[list[Share]] = []
"""An item for each copy; its thread puts it in and takes it out again."""


class _Helpers:
    """The threads, some a processor at most, and what they wait for.

    Attributes:
        threads: an item for each thread that there is.
        waiting: shares of copies for which there is a thread, or soon is.
        idle: an item for each thread that waits for a share, or is about to. An interrupt may lose
            one; then a thread more is started, or the giver has the share.
    """

    def __init__(self) -> None:
        self.threads: list[bool] = []
        self.waiting: SimpleQueue[OnceTask[[]]] = SimpleQueue()
        self.idle: list[bool] = []

    def give(self, share: OnceTask[[]]) -> None:
        """Let a thread that is idle, or a new one, take a share; without one its giver has it."""
        try:
            self.idle.pop()
        except IndexError:
            most = _MOST_A_PROCESSOR * _processors()
            # At its end no thread runs any more ("daemon threads" in Python's manual).
            if sys.is_finalizing() or len(self.threads) >= most:
                return
            self.threads.append(True)
            try:
                threading.Thread(target=self._serve, name="cudadrv-staging", daemon=True).start()
            except RuntimeError:
                self.threads.pop()  # the system has no more, or the interpreter is ending
        self.waiting.put(share)

    def _serve(self) -> None:
        try:
            while True:
                share = self.waiting.get()
                if not share.run():
                    self.idle.append(True)
                del share  # nothing of a copy stays alive in an idle thread
        finally:
            self.threads.pop()

    def help(self, job: Callable[[], None]) -> None:
        """Run a share. The thread is idle before the giver knows, whose next copy needs it."""
        try:
            job()
        finally:
            self.idle.append(True)


_helpers = _Helpers()


def _after_fork() -> None:
    global _helpers
    _helpers = _Helpers()  # the child has none of the threads
    under_way.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def work_together(job: Callable[[], None], threads: int) -> None:
    """Run `job` on the calling thread and on up to `threads` - 1 others; raises the first error.

    The job shares the work out among those that run it. It may be run by fewer threads, down to
    the caller alone. Nobody runs it any more when this returns or raises.
    """
    shares = [
        OnceTask(partial(_helpers.help, job)) for _ in range(min(threads, usable_threads()) - 1)
    ]
    try:
        try:
            for share in shares:
                _helpers.give(share)
            job()
        finally:
            errors = _finished(shares)
    finally:
        _finished(shares)  # again, as an interrupt may have come at the call before
    for error in errors:
        raise error


def _finished(shares: list[OnceTask[[]]]) -> list[BaseException]:
    """Wait for the threads that run a share, and return what they raised."""
    found: list[BaseException] = []
    for share in shares:
        error = share.finish()
        if error is not None:
            found.append(error)
    return found


def usable_threads() -> int:
    """How many threads serve a copy at most."""
    return min(MOST_THREADS, _processors())


def _processors() -> int:
    """Those that this process may use, as far as the system tells."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


# A chunk costs some 60 microseconds of the interpreter's lock, which the threads hand around:
# smaller ones (measured: 2 MiB) lose half of the bandwidth, larger ones leave the caches.
CHUNK_BYTES: Final = 4 << 20
"""The most that a chunk has, and what a slot has room for."""
_LEAST_BYTES: Final = 1 << 20
_FEWEST: Final = 6
# Where other copies are under way, larger ones: in a scatter of 64 MiB over four devices the
# interpreter's own work takes half of the time so.
_FEWEST_BESIDE_OTHERS: Final = 4


class Slot:
    """One pinned buffer.

    Attributes:
        memory: its bytes.
        address: of the first byte.
        event: recorded after the transfer that last used it.
        busy: whether that transfer may still be under way.
        stream: where one may be under way after which no event was recorded.
    """

    __slots__ = ("address", "busy", "event", "memory", "stream")

    def __init__(self, memory: npt.NDArray[np.uint8], event: EventBox) -> None:
        self.memory: npt.NDArray[np.uint8] = memory
        self.address: int = memory.ctypes.data
        self.event: EventBox = event
        self.busy: bool = False
        self.stream: StreamBox | None = None


class Chunk(NamedTuple):
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


def chunks_of(array: AnyArray, share: Share) -> list[Chunk]:
    """An array in C order, cut into chunks that fit a slot."""
    part = -(-array.nbytes // (_FEWEST if share.is_alone else _FEWEST_BESIDE_OTHERS))
    limit = min(CHUNK_BYTES, max(_LEAST_BYTES, -(-part // 4096) * 4096))
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


LEAST_STAGED_BYTES: Final = 16 << 20
"""Smaller copies go directly: waking the threads would cost more than they save.

Measured on H100 hosts of 16 cores: staged copies of 4 MiB take 1.2 to 1.3 times as long as direct
ones, of 8 MiB 1.2 times, of 16 MiB 0.7 to 0.76 times, of 1 GiB 0.2 to 0.3 times. Between other
copies, instead of repeated alone, direct ones were slower, and staging won from 4 MiB on.
"""

_PATIENCE_SECONDS: Final = 1.0
"""A copy that has waited so long for buffers makes its own, which the ring keeps."""


class _Pairs:
    """The pairs of buffers that no thread uses. The one given back last is taken first.

    Its bytes are the likeliest to be in the processor's caches still, by which the device reads and
    writes them too.
    """

    def __init__(self, pairs: list[tuple[Slot, Slot]]) -> None:
        self._stack = pairs
        # Who has an item of it may take the last one of the stack.
        self._tokens: SimpleQueue[None] = SimpleQueue()
        for _ in pairs:
            self._tokens.put(None)

    def __len__(self) -> int:
        return self._tokens.qsize()

    def take(self, timeout: float) -> tuple[Slot, Slot]:
        """Take a pair.

        Raises:
            Empty: there was none in so many seconds.
        """
        if timeout:
            self._tokens.get(timeout=timeout)
        else:
            self._tokens.get_nowait()
        return self._stack.pop()

    def give_back(self, pair: tuple[Slot, Slot]) -> None:
        """Let other threads take a pair."""
        self._stack.append(pair)
        self._tokens.put(None)


class StagingRing:
    """The pinned buffers of one context, 8 MiB a thread, that its staged copies share.

    A thread that serves a copy takes two: one is moved while the other is under way.
    """

    def __init__(self, context: ContextBox) -> None:
        self._context = context
        count = usable_threads()
        # An item for each copy that waits for a pair: a helper of another copy gives up its own.
        self._waiting: list[bool] = []
        self._pairs: _Pairs = _Pairs(_new_pairs(context, count))

    @property
    def api(self) -> DriverApi:
        """The driver's functions."""
        return self._context.api

    def upload(self, stream: StreamBox, pointer: int, source: AnyArray) -> None:
        """Queue the copy of a host array to device memory; the array may be changed on return."""

        def serve(chunks: Iterator[Chunk], pair: tuple[Slot, Slot]) -> None:
            for chunk, slot in zip(chunks, itertools.cycle(pair)):  # one is endless
                self._wait(slot)
                chunk.fill(slot)
                self._queue(stream, slot, pointer, chunk, to_device=True)

        share = Share()
        self._share_out(serve, chunks_of(source, share), share)

    def download(self, stream: StreamBox, target: AnyArray, pointer: int) -> None:
        """Copy device memory to a host array, and wait for it."""

        share = Share()
        chunks = chunks_of(target, share)
        # From here on there is one for each thread: whoever came first would take two, and
        # another one find none.
        last = chunks[max(0, len(chunks) - share.threads)].offset

        def serve(taken: Iterator[Chunk], pair: tuple[Slot, Slot]) -> None:
            under_way: tuple[Chunk, Slot] | None = None
            for chunk, slot in zip(taken, itertools.cycle(pair)):  # one is endless
                # The next transfer runs while the chunk before is moved.
                self._wait(slot)
                self._queue(stream, slot, pointer, chunk, to_device=False)
                if under_way is not None:
                    arrive(*under_way)
                under_way = chunk, slot
                if chunk.offset >= last:
                    arrive(*under_way)
                    under_way = None
            if under_way is not None:
                arrive(*under_way)

        def arrive(chunk: Chunk, slot: Slot) -> None:
            self._wait(slot)
            chunk.empty(slot)

        self._share_out(serve, chunks, share)

    def _share_out(
        self,
        serve: Callable[[Iterator[Chunk], tuple[Slot, Slot]], None],
        chunks: list[Chunk],
        share: Share,
    ) -> None:
        """Let the caller and other threads serve chunks until none is left."""
        numbers = itertools.count()
        stopped: list[bool] = []
        caller = threading.get_ident()

        def remaining(is_caller: bool) -> Iterator[Chunk]:
            while not stopped and (number := next(numbers)) < len(chunks):
                yield chunks[number]
                if not is_caller and self._is_waited_for():
                    return

        def work() -> None:
            # Other copies may hold all buffers: one thread waits for some, the others do not.
            is_caller = threading.get_ident() == caller
            if is_caller and not self._pairs:
                self._waiting.append(True)
            pair: tuple[Slot, Slot] | None = None
            try:
                pair = self._pair(is_caller)
                if pair is not None:
                    serve(remaining(is_caller), pair)
            except BaseException:
                stopped.append(True)
                self._await_what_is_left(pair or ())
                raise
            finally:
                if pair is not None:
                    self._pairs.give_back(pair)

        try:
            under_way.append(share)
            work_together(work, min(share.threads, len(chunks)))
        finally:
            if share in under_way:
                under_way.remove(share)

    def _pair(self, is_caller: bool) -> tuple[Slot, Slot] | None:
        """Take a pair of buffers; None if a thread that only helps finds none."""
        try:
            return self._pairs.take(_PATIENCE_SECONDS if is_caller else 0)
        except Empty:
            # Other copies have all pairs, or an interrupt has lost one.
            return _new_pairs(self._context, 1)[0] if is_caller else None

    def _is_waited_for(self) -> bool:
        """Whether another copy waits for a pair of buffers; one thread is told so for each."""
        try:
            return self._waiting.pop()
        except IndexError:
            return False

    def _wait(self, slot: Slot) -> None:
        self._await_unrecorded(slot)
        if slot.busy:
            (code,) = self.api.cuEventSynchronize(slot.event.raw)
            if code:
                raise failure(self.api, code, "cuEventSynchronize", "waiting for a staged chunk")
            slot.busy = False

    def _await_what_is_left(self, slots: Iterable[Slot]) -> None:
        """Wait for transfers that an error broke off; that one is the error to tell."""
        for slot in slots:
            with suppress(CudadrvError):
                self._await_unrecorded(slot)

    def _await_unrecorded(self, slot: Slot) -> None:
        """Wait for a transfer whose end no event tells, as an error or an interrupt came between.

        Where that fails, or is interrupted as well, the next copy that gets the slot does it.
        """
        stream = slot.stream
        if stream is not None:
            stream.synchronize()
            slot.stream, slot.busy = None, False

    def _queue(
        self, stream: StreamBox, slot: Slot, pointer: int, chunk: Chunk, *, to_device: bool
    ) -> None:
        """Queue the transfer of one chunk, and the event that ends its use of the slot."""
        api, device = self.api, CUdeviceptr(pointer + chunk.offset)
        host, nbytes = slot.address, chunk.nbytes
        slot.stream = stream
        if to_device:
            call = "cuMemcpyHtoDAsync"
            code = transfer(stream, api.cuMemcpyHtoDAsync, device, host, nbytes, stream.raw)
        else:
            call = "cuMemcpyDtoHAsync"
            code = transfer(stream, api.cuMemcpyDtoHAsync, host, device, nbytes, stream.raw)
        if not code:
            call = "cuEventRecord"
            (code,) = api.cuEventRecord(slot.event.raw, stream.raw)
        if code:
            doing = f"copying {chunk.nbytes} bytes at offset {chunk.offset} by way of pinned memory"
            raise failure(api, code, call, doing)
        slot.stream, slot.busy = None, True


def _new_pairs(context: ContextBox, count: int) -> list[tuple[Slot, Slot]]:
    memory = pinned_in(context, 2 * count * CHUNK_BYTES)
    slots = [
        Slot(memory[number * CHUNK_BYTES :][:CHUNK_BYTES], EventBox(context))
        for number in range(2 * count)
    ]
    return list(zip(slots[::2], slots[1::2], strict=True))


class _Ring:
    """The ring of a context, or that it cannot be had.

    Attributes:
        ring: the ring, if the system could pin its memory.
    """

    def __init__(self, context: ContextCore) -> None:
        self.ring: StagingRing | None = None
        try:
            self.ring = StagingRing(context._box)
        except OutOfMemoryError as error:
            warnings.warn(
                f"large copies of ordinary arrays on {context!r} go unstaged and slow: {error}",
                RuntimeWarning,
                stacklevel=5,
            )


def ring_of(context: ContextCore) -> StagingRing | None:
    """The ring of a context, made at its first large copy; it goes with the context.

    None, after one warning, where the system cannot pin its memory.
    """
    return context._keep(_Ring, lambda: _Ring(context)).ring


def release_ring(context: ContextCore) -> None:
    """Give a context's pinned buffers back; the next large copy makes new ones. Idempotent."""
    context._drop(_Ring)
