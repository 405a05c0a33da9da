"""`DeviceArena`: reusable device slabs in power-of-two buckets, after gam's arena of that name."""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from ptx.read_only import ReadOnly

from ... import border
from ...driver.driver_selection import forked_error
from ...driver.handle import NotCopyable
from ...driver.registry import Registry
from ...driver.stream import BaseStream, require_stream
from ...errors import (
    ArgumentValueError,
    ClosedError,
    CudadrvError,
    DriverCallFailed,
    ForkedProcessError,
    InvalidValueError,
    OutOfMemoryError,
    StreamCaptureUnsupportedError,
)
from ..array import DeviceArray
from ..dtypes import TypedDType, checked_dtype
from ..fill import fill
from ..order import AnyMemory, order_access
from ..resource import MemoryStream, given_stream, without_choices
from .bounds_hooks import WatchedHold
from .free_lists import FreeList, FreeLists

_ScalarT = TypeVar("_ScalarT", bound=np.generic)


class SlabReleaseError(CudadrvError):
    """A slab was released twice or with another bucket, or is no slab of this arena."""


class Lease:
    """An arena's record of one slab; it may outlive the slab.

    Attributes:
        held: not empty while a caller holds the slab; popping it is the atomic test that only one
            of two releases passes.
        uses: how often the slab was handed out; only its holder counts, so no count is lost.
        nbytes: its size.
    """

    __slots__ = ("_ended", "held", "nbytes", "uses")

    def __init__(self, nbytes: int, ended: deque[Lease]) -> None:
        self.held: list[bool] = [True]
        self.uses: int = 1
        self.nbytes: int = nbytes
        self._ended = ended

    def take(self) -> None:
        """Hand the slab to a caller, and count the use."""
        self.held.append(True)
        self.uses += 1

    def end(self) -> None:
        """Record that the memory is freed. Idempotent, and safe in a finalizer."""
        self._ended.append(self)


@dataclass(frozen=True, slots=True)
class ArenaStatistics:
    """Sizes and usage counts of an arena; sizes in bytes.

    Attributes:
        held_bytes: in use and cached.
        in_use_bytes: held by callers.
        cached_bytes: free, cached for the next request.
        high_water_bytes: the most that was held at once.
        slabs: how many are in use or cached.
        allocations: the number of successful calls of `alloc`.
        hits: how many of them reused a cached slab.
    """

    held_bytes: int
    in_use_bytes: int
    cached_bytes: int
    high_water_bytes: int
    slabs: int
    allocations: int
    hits: int

    @property
    def hit_rate(self) -> float:
        """Hits per allocation, 0.0 before the first."""
        return self.hits / self.allocations if self.allocations else 0.0


def bucket_of(elements: int) -> int:
    """Return the bucket of a request: the next power of two of max(elements, 1).

    Raises:
        InvalidValueError: `elements` is negative.
    """
    elements = border.integer("a slab's elements", elements)
    if elements < 0:
        raise InvalidValueError(f"a slab of {elements} elements: a count is 0 or more")
    return 1 << (max(elements, 1) - 1).bit_length()


class ArenaSlab(DeviceArray[_ScalarT]):
    """A device array of `(bucket,)` elements, handed out by an arena.

    While a caller holds it, closing it frees the memory, and closes its views. After a release the
    arena owns it, and closing does nothing. Dropping it without a release frees it.
    """

    __slots__ = ("_arena", "_bucket", "_lease", "_shelf")

    _arena: DeviceArena[_ScalarT]
    arena: ReadOnly[DeviceArena[_ScalarT]] = ReadOnly("_arena")
    _bucket: int
    bucket: ReadOnly[int] = ReadOnly("_bucket")
    _shelf: FreeList[ArenaSlab[_ScalarT]]
    shelf: ReadOnly[FreeList[ArenaSlab[_ScalarT]]] = ReadOnly("_shelf")
    _lease: Lease
    lease: ReadOnly[Lease] = ReadOnly("_lease")

    def close(self) -> None:
        """Free the memory, unless the slab was released to its arena. Idempotent."""
        try:
            self._lease.held.pop()
        except IndexError:
            return
        self._lease.end()
        super().close()


def _failed(error: CudadrvError, label: str, bucket: int) -> DriverCallFailed:
    return DriverCallFailed.of(error, f"{label} arena alloc_zeros<{bucket}>: {error}")


# Of every dtype.
arenas: Final[Registry[DeviceArena[Any]]] = Registry()
"""The existing arenas, for a reset of a context."""


def _begin_child() -> None:
    """Hand out no cached slab in a forked child: that makes no driver call, which would fail."""
    for arena in arenas.alive():
        arena._lists.drain()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


class DeviceArena(NotCopyable, Generic[_ScalarT]):
    """Free device slabs in power-of-two buckets counted in elements, safe to use from any thread.

    A slab is zeroed when it is fresh and not when it is reused. A slab is reused first on the
    stream that it was last used on. Another stream that reuses it first waits for the work queued
    on the former stream.

    Streams of several devices may use one arena, which keeps them alive until they are closed. A
    hit takes no lock.

    Args:
        dtype: the elements' type.
        max_cached_bytes: the most bytes that free slabs may take; None is no limit. Above it the
            largest are freed first.
    """

    __slots__ = (
        "__weakref__", "_dtype", "_ended", "_ended_uses", "_fresh_count", "_held_bytes",
        "_high_water_bytes", "_leases", "_lists", "_lock", "_shelves",
    )  # fmt: skip

    dtype: ReadOnly[np.dtype[_ScalarT]] = ReadOnly("_dtype")

    @overload
    def __init__(self: DeviceArena[np.float64], *, max_cached_bytes: int | None = None) -> None: ...
    @overload
    def __init__(
        self, dtype: TypedDType[_ScalarT], *, max_cached_bytes: int | None = None
    ) -> None: ...
    # For mypy, which would take the last form for another dtype than that of the declared type.
    @overload
    def __init__(
        self: DeviceArena[np.generic],
        dtype: TypedDType[np.generic],
        *,
        max_cached_bytes: int | None = None,
    ) -> None: ...
    # A dtype given as text has no static type.
    @overload
    def __init__(
        self: DeviceArena[Any], dtype: npt.DTypeLike, *, max_cached_bytes: int | None = None
    ) -> None: ...
    def __init__(
        self, dtype: npt.DTypeLike = np.float64, *, max_cached_bytes: int | None = None
    ) -> None:
        if max_cached_bytes is not None:
            max_cached_bytes = border.integer("DeviceArena: max_cached_bytes", max_cached_bytes)
        if max_cached_bytes is not None and max_cached_bytes < 0:
            raise InvalidValueError(f"an arena's cap of {max_cached_bytes} bytes: 0 or more")
        self._dtype: np.dtype[_ScalarT] = checked_dtype(dtype)
        self._lists: FreeLists[ArenaSlab[_ScalarT]] = FreeLists(max_cached_bytes)
        # Free slabs by stream, then by bit length of elements - 1.
        self._shelves: dict[BaseStream, dict[int, FreeList[ArenaSlab[_ScalarT]]]] = {}
        # Reentrant: a finalizer may call this arena while the lock is held.
        self._lock = threading.RLock()
        self._leases: set[Lease] = set()
        self._ended: deque[Lease] = deque()
        self._ended_uses = 0
        self._fresh_count = 0
        self._held_bytes = 0
        self._high_water_bytes = 0
        arenas.add(self)

    def __repr__(self) -> str:
        now = self.statistics()
        return (
            f"<DeviceArena {self._dtype}: {now.in_use_bytes} bytes in use, "
            f"{now.cached_bytes} cached>"
        )

    def __enter__(self) -> DeviceArena[_ScalarT]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @staticmethod
    def bucket_of(elements: int) -> int:
        """Return the size of the bucket, in elements, that serves a request of `elements`."""
        return bucket_of(elements)

    def alloc(
        self, stream: BaseStream, elements: int, label: str = ""
    ) -> tuple[int, DeviceArray[_ScalarT]]:
        """Return a slab of at least `elements` elements for use on `stream`, with its bucket.

        Args:
            stream: where the slab will be used; it waits for work on the slab's last stream.
            elements: the number needed; the slab has the next power of two.
            label: the caller's name, for error messages.
        """
        try:
            slab = (
                None
                if elements < 1 or stream._handle.capture is not None
                else self._shelves[stream][(elements - 1).bit_length()].pop()
            )
        # No such slab, an integer of NumPy's, or an invalid or closed stream or number.
        except (LookupError, AttributeError, TypeError, ValueError, ClosedError):
            slab = None
        if slab is None:
            return self._allocate_slow_path(stream, elements, label)
        lease = slab._lease
        lease.held.append(True)
        lease.uses += 1
        return slab._bucket, slab

    @contextmanager
    def borrow(
        self, stream: BaseStream, elements: int, label: str = ""
    ) -> Iterator[DeviceArray[_ScalarT]]:
        """Allocate a slab for a block, and release it at its end.

        Work that the block queues on `stream` may still run then: the slab is reused in its order.
        The arguments are those of `alloc`.
        """
        bucket, slab = self.alloc(stream, elements, label)
        try:
            yield slab
        finally:
            self.release(bucket, slab)

    def release(self, bucket: int, slab: DeviceArray[_ScalarT]) -> None:
        """Return a slab for reuse, in the order of the stream it was allocated for.

        Raises:
            SlabReleaseError: it was released already, or belongs to another arena or bucket.
        """
        # Another array lacks a slab's attributes; looking first would take longer.
        own: ArenaSlab[_ScalarT] = slab  # type: ignore[assignment]
        try:
            if own._arena is not self or own._bucket != bucket:
                raise self._rejection(bucket, own)
            own._lease.held.pop()
            shelf = own._shelf
        except AttributeError:
            raise SlabReleaseError(
                f"{border.shown(slab)} is no slab of an arena: release what alloc gave"
            ) from None
        except IndexError:
            raise SlabReleaseError(
                f"{border.shown(slab)} was released already, or closed"
            ) from None
        shelf.append(own)
        if len(shelf) > shelf.room:
            self._return_block(self._lists.overflowed(shelf))

    def statistics(self) -> ArenaStatistics:
        """Current sizes and usage counts of the arena."""
        with self._lock:
            self._count_ended()
            cached = self._lists.cached_bytes
            allocations = self._ended_uses + sum(lease.uses for lease in self._leases.copy())
            return ArenaStatistics(
                held_bytes=self._held_bytes,
                in_use_bytes=self._held_bytes - cached,
                cached_bytes=cached,
                high_water_bytes=self._high_water_bytes,
                slabs=len(self._leases),
                allocations=allocations,
                hits=allocations - self._fresh_count,
            )

    def trim(self, keep_bytes: int = 0) -> int:
        """Free cached slabs, the largest first, down to `keep_bytes`; return the bytes freed."""
        slabs = self._lists.drain(border.integer("trim: keep_bytes", keep_bytes))
        nbytes = sum(slab._lease.nbytes for slab in slabs)
        self._return_block(slabs)
        self._forget_closed_streams()
        return nbytes

    def close(self) -> None:
        """Free every cached slab; slabs in use stay usable. Idempotent."""
        self.trim()

    def _allocate_slow_path(
        self, stream: BaseStream, elements: int, label: str
    ) -> tuple[int, DeviceArray[_ScalarT]]:
        self._require_stream(stream)
        elements = border.integer("alloc: elements", elements)
        value: object = label
        label = value if isinstance(value, str) else border.shown(value)  # for errors
        bucket = bucket_of(elements)
        if stream.capturing:
            raise StreamCaptureUnsupportedError(
                f"{label} arena alloc on a stream that is capturing: a graph would keep the "
                "address of a slab that is reused; allocate before the capture, or use "
                "CudaClient.capture_graph"
            )
        if stream.closed:
            raise ClosedError(f"{label} arena alloc: {stream!r} was closed")
        shelf = self._shelf(stream, bucket)
        slab = self._from(shelf)
        if slab is None:
            slab = self._from_other_streams(stream, bucket)
        if slab is None:
            slab = self._fresh(
                stream, bucket, Lease(bucket * self._dtype.itemsize, self._ended), label
            )
            slab._arena, slab._bucket = self, bucket
            self._enter(slab)
        slab._shelf = shelf
        return bucket, slab

    def _from(self, shelf: FreeList[ArenaSlab[_ScalarT]]) -> ArenaSlab[_ScalarT] | None:
        try:
            slab = shelf.pop()
        except IndexError:
            return None
        slab._lease.take()
        return slab

    def _from_other_streams(self, stream: BaseStream, bucket: int) -> ArenaSlab[_ScalarT] | None:
        for former, shelves in self._shelves.copy().items():
            shelf = shelves.get((bucket - 1).bit_length())
            if shelf and former is not stream and self._may_move(former, stream):
                slab = self._from(shelf)
                if slab is not None:
                    try:
                        self._move(slab, former, stream)
                    except BaseException:
                        self.release(bucket, slab)  # to the former stream's shelf
                        raise
                    return slab
        return None

    def _enter(self, slab: ArenaSlab[_ScalarT]) -> None:
        """Add a fresh slab to the arena's records."""
        lease = slab._lease
        with self._lock:
            self._count_ended()
            self._leases.add(lease)
            self._fresh_count += 1
            self._held_bytes += lease.nbytes
            self._high_water_bytes = max(self._high_water_bytes, self._held_bytes)
        # Handles a slab that is dropped instead of released.
        weakref.finalize(slab, lease.end).atexit = False

    def _shelf(self, stream: BaseStream, bucket: int) -> FreeList[ArenaSlab[_ScalarT]]:
        bits = (bucket - 1).bit_length()
        with self._lock:
            if stream not in self._shelves:
                self._forget_closed_streams()
                self._shelves[stream] = {}
            shelves = self._shelves[stream]
            if bits not in shelves:
                shelves[bits] = self._lists.new_list(bucket * self._dtype.itemsize)
            return shelves[bits]

    def _forget_closed_streams(self) -> None:
        """Drop closed streams without free slabs; their slabs in use will not be cached."""
        with self._lock:
            for stream, shelves in self._shelves.copy().items():
                if stream.closed:
                    self._drop_ended(shelves)
                    self._lists.retire_empty(shelves.values())
                    remaining = {
                        bits: shelf for bits, shelf in shelves.items() if not shelf.retired
                    }
                    if remaining:
                        self._shelves[stream] = remaining
                    else:
                        del self._shelves[stream]

    @staticmethod
    def _drop_ended(shelves: dict[int, FreeList[ArenaSlab[_ScalarT]]]) -> None:
        """Drop cached slabs that the end of their emulator session has closed."""
        for shelf in shelves.values():
            for _ in range(len(shelf)):
                slab = shelf.popleft()
                if slab.closed:
                    slab._lease.end()
                else:
                    shelf.append(slab)

    def _return_block(self, slabs: list[ArenaSlab[_ScalarT]]) -> None:
        for slab in slabs:
            slab._lease.held.append(True)  # outside its list it counts as in use, and can be closed
            self._discard(slab)
            slab._lease.end()

    def _count_ended(self) -> None:
        """Remove freed slabs from the records; `_lock` is held."""
        while self._ended:
            lease = self._ended.popleft()
            if lease in self._leases:
                self._leases.remove(lease)
                self._ended_uses += lease.uses
                self._held_bytes -= lease.nbytes

    def _rejection(self, bucket: int, slab: ArenaSlab[_ScalarT]) -> SlabReleaseError:
        if slab._arena is not self:
            return SlabReleaseError(
                f"{border.shown(slab)} belongs to another arena: release it there"
            )
        return SlabReleaseError(
            f"{border.shown(slab)} is of bucket {slab._bucket}, not {border.shown(bucket)}"
        )

    def _require_stream(self, stream: BaseStream) -> None:
        require_stream("DeviceArena.alloc: stream", stream)
        parent = stream.context.device.driver.forked_from
        if parent is not None:
            raise forked_error("DeviceArena.alloc", parent)

    def _fresh(
        self, stream: BaseStream, bucket: int, lease: Lease, label: str
    ) -> ArenaSlab[_ScalarT]:
        try:
            return self._zeroed(stream, bucket, lease)
        except OutOfMemoryError:
            # Cached memory may be the missing memory; the driver waits for its streams.
            self.trim()
        except (ClosedError, ForkedProcessError):
            raise  # another thread closed the stream meanwhile
        except CudadrvError as error:
            raise _failed(error, label, bucket) from error
        try:
            return self._zeroed(stream, bucket, lease)
        except (ClosedError, ForkedProcessError):
            raise
        except CudadrvError as error:
            raise _failed(error, label, bucket) from error

    def _zeroed(self, stream: BaseStream, bucket: int, lease: Lease) -> ArenaSlab[_ScalarT]:
        slab: ArenaSlab[_ScalarT] = object.__new__(ArenaSlab)
        slab._shape, slab._dtype, slab._lease = (bucket,), self._dtype, lease
        with without_choices():  # The arena may be the chosen resource.
            slab._allocate(stream, bucket * self._dtype.itemsize)
        watch = stream.context.device.driver.memory_watch
        if watch is not None:
            lease.held = WatchedHold(lease.held, watch, slab.ptr, slab.nbytes)
        fill(stream, slab, 0)
        return slab

    def _may_move(self, former: BaseStream, stream: BaseStream) -> bool:
        return former.context is stream.context and not former._is_captured

    def _move(self, slab: ArenaSlab[_ScalarT], former: BaseStream, stream: BaseStream) -> None:
        order_access(slab._memory, stream._handle)
        slab._stream = stream

    def _discard(self, slab: ArenaSlab[_ScalarT]) -> None:
        slab.close()


class ArenaMemory(NotCopyable):
    """A memory resource that serves allocations from an arena of bytes: see `using_memory`.

    Each size is rounded up to a power of two; freed memory is cached for the next request.

    Args:
        max_cached_bytes: the most bytes that free slabs may take; None is no limit.

    Attributes:
        arena: the arena, with its statistics.
    """

    __slots__ = ("__weakref__", "_allocations", "_arena")

    arena: ReadOnly[DeviceArena[np.uint8]] = ReadOnly("_arena")

    def __init__(self, max_cached_bytes: int | None = None) -> None:
        self._arena: DeviceArena[np.uint8] = DeviceArena(
            np.uint8, max_cached_bytes=max_cached_bytes
        )
        # With the handle, which a closing context would take from the slab too early.
        self._allocations: dict[int, tuple[int, DeviceArray[np.uint8], AnyMemory]] = {}

    def allocate(self, nbytes: int, stream: MemoryStream) -> int:
        """Return the address of a slab of at least `nbytes` bytes; a reused slab is not zeroed."""
        owner = given_stream("ArenaMemory.allocate", stream, nbytes).owner
        bucket, slab = self._arena.alloc(owner, nbytes, "ArenaMemory")
        address, memory = slab.ptr, slab._memory
        self._allocations[address] = bucket, slab, memory
        return address

    def deallocate(self, address: int, nbytes: int, stream: MemoryStream) -> None:
        """Return a slab to the arena.

        Raises:
            ArgumentValueError: the address is not one of the arena's slabs.
        """
        given_stream("ArenaMemory.deallocate", stream, nbytes, address)
        allocation = self._allocations.pop(address, None)
        if allocation is None:
            raise ArgumentValueError(
                f"{int(address):#x} is no address that this resource has given"
            )
        bucket, slab, _ = allocation
        if not slab.closed:
            self._arena.release(bucket, slab)
