"""The accounts of a bucketed arena: which slab is free, in hand or gone; without a driver.

After gam's `DeviceArena`. What is done to memory is left to a subclass: `_fresh`, `_may_move`,
`_move` and `_discard`.
"""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from ... import border
from ...errors import ClosedError, CudadrvError, InvalidValueError
from .free_lists import FreeList, FreeLists


class SlabReleaseError(CudadrvError):
    """A slab was released twice, to another arena, with another bucket, or is no slab."""


class Lease:
    """What an arena knows of one slab; the slab may be gone before it.

    Attributes:
        held: not empty while the slab is in a caller's hands; popping it is the atomic test that
            only one of two releases passes.
        uses: how often it was handed out; only its holder counts, so no count is lost.
        nbytes: its size.
    """

    __slots__ = ("_ended", "held", "nbytes", "uses")

    def __init__(self, nbytes: int, ended: deque[Lease]) -> None:
        self.held: list[bool] = [True]
        self.uses: int = 1
        self.nbytes: int = nbytes
        self._ended = ended

    def take(self) -> None:
        """Put the slab into a caller's hands, who counts the use."""
        self.held.append(True)
        self.uses += 1

    def end(self) -> None:
        """Note that the memory is given back. Idempotent, and safe in a finalizer."""
        self._ended.append(self)


class ArenaStream(Protocol):
    """What the accounts ask of a stream."""

    @property
    def capturing(self) -> bool:
        """Whether a capture records what the stream is given."""
        ...

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        ...


StreamT = TypeVar("StreamT", bound=ArenaStream)


class Slab(Protocol):
    """What the accounts ask of a slab; `_fresh` makes it, `track` fills it in."""

    arena: object
    bucket: int
    # A list of the arena's own slab type, which a protocol cannot name.
    shelf: FreeList[Any]
    lease: Lease


SlabT = TypeVar("SlabT", bound=Slab)


@dataclass(frozen=True, slots=True)
class ArenaStatistics:
    """What an arena holds and how it was used; sizes in bytes.

    Attributes:
        held_bytes: in hand and cached.
        in_use_bytes: in callers' hands.
        cached_bytes: free, kept for the next request.
        high_water_bytes: the most that was held at once.
        slabs: how many are in hand or cached.
        allocations: how often `alloc` answered.
        hits: how often it did with a slab that was there.
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
        """Hits an allocation, 0.0 before the first."""
        return self.hits / self.allocations if self.allocations else 0.0


def bucket_of(elements: int) -> int:
    """The bucket of a request: the next power of two of max(elements, 1).

    Raises:
        InvalidValueError: `elements` is negative.
    """
    elements = border.integer("a slab's elements", elements)
    if elements < 0:
        raise InvalidValueError(f"a slab of {elements} elements: a count is 0 or more")
    return 1 << (max(elements, 1) - 1).bit_length()


class SlabArena(ABC, Generic[StreamT, SlabT]):
    """Power-of-two buckets of free slabs, one set a stream.

    Args:
        item_bytes: the size of an element.
        max_cached_bytes: the most that free slabs may take; None is no cap. Over it the largest
            are given back first.
    """

    def __init__(self, item_bytes: int, max_cached_bytes: int | None = None) -> None:
        self._item_bytes: Final = item_bytes
        self._lists: FreeLists[SlabT] = FreeLists(max_cached_bytes)
        # Free slabs by stream, then by bit length of elements - 1.
        self._shelves: dict[StreamT, dict[int, FreeList[SlabT]]] = {}
        # Reentrant: a finalizer may come back here while it is held.
        self._lock = threading.RLock()
        self._leases: set[Lease] = set()
        self._ended: deque[Lease] = deque()
        self._ended_uses = 0
        self._fresh_count = 0
        self._held_bytes = 0
        self._high_water_bytes = 0

    @staticmethod
    def bucket_of(elements: int) -> int:
        """The elements of the bucket that a request of `elements` is served from."""
        return bucket_of(elements)

    def alloc(self, stream: StreamT, elements: int, label: str = "") -> tuple[int, SlabT]:
        """A slab of at least `elements` elements for use on `stream`, with its bucket.

        Args:
            stream: where it will be used; a slab last used on another stream waits for that.
            elements: how many are needed; the slab has the next power of two.
            label: who asks, for error messages.
        """
        try:
            slab = (
                None
                if elements < 1 or stream.capturing
                else self._shelves[stream][(elements - 1).bit_length()].pop()
            )
        # No such slab, an integer of NumPy's, or what is no stream or number.
        except (LookupError, AttributeError, TypeError, ValueError):
            slab = None
        if slab is None:
            return self._alloc_slowly(stream, elements, label)
        lease = slab.lease
        lease.held.append(True)
        lease.uses += 1
        return slab.bucket, slab

    def release(self, bucket: int, slab: SlabT) -> None:
        """Give a slab back for reuse, in the order of the stream it was allocated for.

        Raises:
            SlabReleaseError: it was released already, or is not of this arena or bucket.
        """
        try:
            if slab.arena is not self or slab.bucket != bucket:
                raise self._refused(bucket, slab)
            slab.lease.held.pop()
            shelf = slab.shelf
        except (AttributeError, IndexError):
            raise self._refused(bucket, slab) from None
        shelf.append(slab)
        if len(shelf) > shelf.room:
            self._give_back(self._lists.overflowed(shelf))

    def statistics(self) -> ArenaStatistics:
        """What the arena holds and how it was used, as of now."""
        with self._lock:
            self._count_ended()
            cached = self._lists.cached_bytes
            allocations = self._ended_uses + sum(lease.uses for lease in self._leases)
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
        """Give free slabs back, the largest first, until `keep_bytes` are left; the bytes given."""
        slabs = self._lists.drain(border.integer("trim: keep_bytes", keep_bytes))
        nbytes = sum(slab.lease.nbytes for slab in slabs)
        self._give_back(slabs)
        self._forget_closed_streams()
        return nbytes

    def close(self) -> None:
        """Give every free slab back; slabs in hand stay usable. Idempotent."""
        self.trim()

    def _require_stream(self, stream: StreamT) -> None:
        """Raise `ArgumentTypeError` for what is no stream."""

    @abstractmethod
    def _fresh(self, stream: StreamT, bucket: int, lease: Lease, label: str) -> SlabT:
        """A new zeroed slab that keeps `lease`, and ends it when it is freed in hand."""

    @abstractmethod
    def _may_move(self, former: StreamT, stream: StreamT) -> bool:
        """Whether a slab last used on `former` can be used on `stream`."""

    @abstractmethod
    def _move(self, slab: SlabT, former: StreamT, stream: StreamT) -> None:
        """Order `stream` after what `former` did with a slab."""

    @abstractmethod
    def _discard(self, slab: SlabT) -> None:
        """Give a slab's memory back."""

    @abstractmethod
    def _capture_error(self, label: str) -> CudadrvError:
        """The error for an allocation on a stream that is capturing."""

    def _alloc_slowly(self, stream: StreamT, elements: int, label: str) -> tuple[int, SlabT]:
        self._require_stream(stream)
        elements = border.integer("alloc: elements", elements)
        bucket = bucket_of(elements)
        if stream.capturing:
            raise self._capture_error(label)
        if stream.closed:
            raise ClosedError(f"{label} arena alloc: {stream!r} was closed")
        shelf = self._shelf(stream, bucket)
        slab = self._from(shelf) or self._from_other_streams(stream, bucket)
        if slab is None:
            slab = self._fresh(stream, bucket, Lease(bucket * self._item_bytes, self._ended), label)
            slab.arena, slab.bucket = self, bucket
            self._enter(slab)
        slab.shelf = shelf
        return bucket, slab

    def _from(self, shelf: FreeList[SlabT]) -> SlabT | None:
        try:
            slab = shelf.pop()
        except IndexError:
            return None
        slab.lease.take()
        return slab

    def _from_other_streams(self, stream: StreamT, bucket: int) -> SlabT | None:
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

    def _enter(self, slab: SlabT) -> None:
        """Take a fresh slab into the accounts."""
        lease = slab.lease
        with self._lock:
            self._count_ended()
            self._leases.add(lease)
            self._fresh_count += 1
            self._held_bytes += lease.nbytes
            self._high_water_bytes = max(self._high_water_bytes, self._held_bytes)
        # A slab that is dropped instead of released.
        weakref.finalize(slab, lease.end).atexit = False

    def _shelf(self, stream: StreamT, bucket: int) -> FreeList[SlabT]:
        bits = (bucket - 1).bit_length()
        with self._lock:
            if stream not in self._shelves:
                self._forget_closed_streams()
                self._shelves[stream] = {}
            shelves = self._shelves[stream]
            if bits not in shelves:
                shelves[bits] = self._lists.new_list(bucket * self._item_bytes)
            return shelves[bits]

    def _forget_closed_streams(self) -> None:
        """Let go of closed streams without free slabs; their slabs in hand will not be kept."""
        with self._lock:
            for stream, shelves in self._shelves.copy().items():
                if stream.closed:
                    self._lists.retire_empty(shelves.values())
                    kept = {bits: shelf for bits, shelf in shelves.items() if not shelf.retired}
                    if kept:
                        self._shelves[stream] = kept
                    else:
                        del self._shelves[stream]

    def _give_back(self, slabs: list[SlabT]) -> None:
        for slab in slabs:
            slab.lease.held.append(True)  # off its shelf it is in our hands, and can be closed
            self._discard(slab)
            slab.lease.end()

    def _count_ended(self) -> None:
        """Take what is gone out of the accounts; `_lock` is held."""
        while self._ended:
            lease = self._ended.popleft()
            if lease in self._leases:
                self._leases.remove(lease)
                self._ended_uses += lease.uses
                self._held_bytes -= lease.nbytes

    def _refused(self, bucket: int, slab: object) -> SlabReleaseError:
        if getattr(slab, "lease", None) is None:
            return SlabReleaseError(
                f"{border.shown(slab)} is no slab of an arena: release what alloc gave"
            )
        if getattr(slab, "arena", None) is not self:
            return SlabReleaseError(
                f"{border.shown(slab)} belongs to another arena: release it there"
            )
        own = getattr(slab, "bucket", None)
        if own != bucket:
            return SlabReleaseError(f"{border.shown(slab)} is of bucket {own}, not {bucket}")
        return SlabReleaseError(f"{border.shown(slab)} was released already, or closed")
