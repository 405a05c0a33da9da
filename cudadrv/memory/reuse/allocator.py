"""`CudaAllocator`: raw device addresses in the order of one stream, after numr's allocator."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ptx.read_only import ReadOnly

from ... import border
from ...driver._api import CUdeviceptr
from ...driver.call_gate import CapturePeriod
from ...driver.driver_selection import failure, forked_error
from ...driver.handle import NotCopyable
from ...driver.registry import Registry
from ...driver.stream import BaseStream, require_stream
from ...driver.stream_handle import StreamHandle
from ...errors import CudadrvError, InvalidValueError, NotSupportedError, OutOfMemoryError
from ..buffer import PoolMemory
from ..driver_pool import out_of_memory, trim_pool
from .bounds_hooks import WatchedBlocks
from .free_lists import FreeLists

ALIGNMENT: Final = 256  # cuMemAllocAsync's alignment, enough for every vector access


class BumpArena:
    """An allocator that only moves a pointer up, over `nbytes` bytes at `base`.

    Args:
        base: the first address; addresses handed out are multiples of 256.
        nbytes: the size of the range.

    Attributes:
        given: how many addresses were freed.
    """

    __slots__ = ("_lock", "_next", "base", "given", "nbytes")

    def __init__(self, base: int, nbytes: int) -> None:
        if base <= 0 or nbytes < 0:
            raise InvalidValueError(f"an arena of {nbytes} bytes at {base:#x}: both are positive")
        self.base: int = base
        self.nbytes: int = nbytes
        self.given: int = 0
        self._next = _aligned(base)
        self._lock = threading.RLock()

    def __contains__(self, address: int) -> bool:
        return self.base <= address < self.base + self.nbytes

    @property
    def used_bytes(self) -> int:
        """Bytes already handed out, with alignment."""
        return min(self._next - self.base, self.nbytes)

    @property
    def remaining_bytes(self) -> int:
        """The largest request that still fits."""
        return max(self.base + self.nbytes - self._next, 0)

    def take(self, nbytes: int) -> int:
        """Return the address of `nbytes` bytes, each handed out only once.

        Raises:
            OutOfMemoryError: they do not fit the rest.
        """
        end = self.base + self.nbytes
        size = _aligned(max(nbytes, 1))  # A request of no bytes advances too: all addresses differ.
        with self._lock:
            fits = self._next + nbytes <= end
            if fits:
                # In one step, as a finalizer may allocate between two.
                address, self._next = self._next, self._next + size
                fits = address + nbytes <= end
            if not fits:
                raise OutOfMemoryError(
                    f"allocating {nbytes} bytes from the capture arena of {self.nbytes} bytes, "
                    f"which has {self.remaining_bytes} left; give the capture a larger arena"
                )
        return address

    def give(self, address: int) -> None:
        """Record that an address is no longer used; it is not handed out again.

        Raises:
            InvalidValueError: it was never handed out.
        """
        with self._lock:
            if not _aligned(self.base) <= address < self._next:
                raise InvalidValueError(f"the capture arena never handed out {address:#x}")
            self.given += 1

    def overlaps(self, other: BumpArena) -> bool:
        """Return whether the two share an address."""
        return self.base < other.base + other.nbytes and other.base < self.base + self.nbytes


def _aligned(address: int) -> int:
    return -(-address // ALIGNMENT) * ALIGNMENT


# Captures whose addresses may still be freed after their arenas are removed.
_MOST_ARENAS: Final = 8


class FrozenAllocatorError(CudadrvError):
    """The allocator is frozen at a wrong time, or a capture's address is in a free list."""


class CaptureMemory:
    """The memory of one allocator's captures; the allocator's lock guards the installed arena.

    Attributes:
        arena: the installed arena.
        addresses: allocations of the capture under way.
    """

    __slots__ = ("_arenas", "_graph_memory", "addresses", "arena")

    def __init__(self) -> None:
        self.arena: BumpArena | None = None
        # Of this and the last captures: addresses freed late lie in one of them.
        self._arenas: list[BumpArena] = []
        self.addresses: set[int] = set()
        # By size: the driver's graph memory in use.
        self._graph_memory: dict[int, int] = {}

    def install(self, arena: BumpArena) -> None:
        """Let captured allocations come from an arena.

        Raises:
            FrozenAllocatorError: an arena is installed already.
        """
        if self.arena is not None:
            raise FrozenAllocatorError(
                "a capture arena is installed already: clear_arena first; a second one would "
                "hand out addresses that the first one's graph knows nothing of"
            )
        retained = (
            earlier for earlier in self._arenas[1 - _MOST_ARENAS :] if not earlier.overlaps(arena)
        )
        self._arenas = [*retained, arena]
        self.arena = arena

    def is_of_an_arena(self, address: int) -> bool:
        """Return whether an address lies in the arena of this or of one of the last captures."""
        return any(address in arena for arena in self._arenas)

    def forget_arenas_at(self, address: int) -> None:
        """Forget the arenas around an address that the driver has handed out again."""
        if self._arenas:
            self._arenas = [arena for arena in self._arenas if address not in arena]

    def allocated(self, address: int, nbytes: int) -> None:
        """Record graph memory that the capture under way allocated."""
        self.addresses.add(address)
        self._graph_memory[address] = nbytes

    def freed(self, address: int, nbytes: int) -> bool:
        """Return whether it was graph memory of this size in use, which is to be freed then."""
        if self._graph_memory.get(address) != nbytes:
            return False
        # Of two threads that free it at once, one succeeds.
        return self._graph_memory.pop(address, None) is not None

    def unfreed(self) -> Iterator[int]:
        """Yield the graph memory that the capture under way has not freed, for freeing it."""
        for address in self.addresses.copy():
            if self._graph_memory.pop(address, None) is not None:
                yield address

    def forget_unfreed(self) -> None:
        """Forget the graph memory of the capture under way, whose graph is discarded."""
        for address in self.addresses.copy():
            self._graph_memory.pop(address, None)


DEFAULT_CAP_BYTES: Final = 1 << 30
MOST_BLOCKS_OF_A_SIZE: Final = 64


class DeallocationError(CudadrvError):
    """An address was freed twice, with another size, or was never allocated here."""


@dataclass(frozen=True, slots=True)
class AllocatorStatistics:
    """Sizes and counts of an allocator; sizes in bytes."""

    in_use_bytes: int
    in_use_blocks: int
    cached_bytes: int
    cap_bytes: int


class _Closed(CapturePeriod):
    """Stands for the time after the end of an allocator, in which every thread takes slow paths."""

    __slots__ = ()

    @property
    def is_own(self) -> bool:
        return True


_CLOSED: Final = _Closed()

allocators: Final[Registry[CudaAllocator]] = Registry()
"""The existing allocators, for a reset of their context."""


class CudaAllocator(NotCopyable):
    """A stream-ordered allocator with free lists by exact size, safe to use from any thread.

    Blocks are reused oldest first. At most 64 are cached per size; then the oldest is freed. Above
    the cap the largest are freed first. All work is in the order of one stream: order work on
    another stream after it by events. A hit takes no lock.

    While frozen, for a capture, the free lists are bypassed: addresses come from the installed
    capture arena, or from the driver as graph memory.

    Args:
        stream: the stream whose order everything follows.
        cap_bytes: the most bytes that free blocks may take.
    """

    __slots__ = (
        "__weakref__",
        "_captures",
        "_dependent",
        "_free",
        "_frozen",
        "_lists",
        "_live",
        "_lock",
        "_queue",
        "_stream",
    )

    stream: ReadOnly[BaseStream] = ReadOnly("_stream")

    def __init__(self, stream: BaseStream, *, cap_bytes: int = DEFAULT_CAP_BYTES) -> None:
        require_stream("CudaAllocator: stream", stream)
        cap_bytes = border.integer("CudaAllocator: cap_bytes", cap_bytes)
        if cap_bytes < 0:
            raise InvalidValueError(f"an allocator's cap of {cap_bytes} bytes: 0 or more")
        self._stream = stream
        self._lists: FreeLists[int] = FreeLists(cap_bytes, MOST_BLOCKS_OF_A_SIZE)
        self._free = self._lists.by_size
        # Address to size of blocks in use; dict assignment and pop are atomic.
        watch = stream.context.device.driver.memory_watch
        self._live: dict[int, int] = {} if watch is None else WatchedBlocks(watch)
        # The time for which it is frozen, if it is; `_CLOSED` once its stream was closed, and in a
        # forked child.
        self._frozen: CapturePeriod | None = None
        self._captures = CaptureMemory()
        self._lock = threading.RLock()
        # Its cached blocks are freed on the stream, closed or not.
        self._queue: StreamHandle = stream._handle
        allocators.add(self)
        self._dependent = _Dependent(self)
        stream._launchers.add(self._dependent)
        weakref.finalize(self, _abandon, self._queue, self._lists).atexit = False

    def __repr__(self) -> str:
        now = self.statistics()
        state = "frozen, " if self.is_frozen else ""
        return (
            f"<CudaAllocator {state}{now.in_use_bytes} bytes in use, {now.cached_bytes} cached, "
            f"on {self._stream!r}>"
        )

    def allocate(self, nbytes: int) -> int:
        """Return the address of `nbytes` bytes, not initialised; 0, the null pointer, for 0 bytes.

        Raises:
            ClosedError: its stream was closed.
            OutOfMemoryError: the driver has no such block even after every cached one was freed and
                its pool was trimmed; or the capture arena is full.
        """
        if self._frozen and self._is_frozen_here(wait=True):
            return self._allocate_captured(nbytes)
        try:
            address = self._free[nbytes].popleft()
        except (LookupError, TypeError):  # no such block, or an unhashable value that is no number
            return self._allocate_fresh(nbytes)
        self._live[address] = nbytes
        return address

    def deallocate(self, ptr: int, nbytes: int) -> None:
        """Free a block, for reuse in the order of the stream. The null pointer is ignored.

        Raises:
            DeallocationError: the block is not in use, or has another size.
        """
        if self._frozen and self._is_frozen_here():
            self._deallocate_captured(ptr, nbytes)
            return
        size = None
        try:
            size = self._live.pop(ptr, None)
            if size is None or size != nbytes or ptr.__class__ is not int:
                raise LookupError
        except (LookupError, TypeError, ValueError):  # such values may have no hash or order
            self._deallocate_unknown(ptr, nbytes, size)
            return
        try:
            blocks = self._free[size]
        except KeyError:
            blocks = self._lists.of_size(size)
        blocks.append(ptr)
        if len(blocks) > blocks.room:
            self._release_all(self._lists.overflowed(blocks))

    def reset(self) -> None:
        """Free every cached block; blocks in use stay.

        Raises:
            ClosedError: its stream was closed, which has freed them.
            FrozenAllocatorError: a capture is under way.
        """
        self._reject_closed()
        if self._frozen and self._is_frozen_here(wait=True):
            raise FrozenAllocatorError(
                "reset of an allocator that is frozen: end the capture first"
            )
        self._release_all(self._lists.drain())

    def _close(self) -> None:
        """Free all cached blocks, as the stream was closed; later ones are freed at once."""
        self._frozen = _CLOSED
        for address in self._lists.drain():
            _return_block(self._queue, address)

    def _reject_closed(self) -> None:
        if self._frozen is _CLOSED:
            self._stream._handle.raw  # noqa: B018  # raises, unless this is a forked child
            parent = self._stream.context.device.driver.forked_from
            if parent is not None:
                raise forked_error("CudaAllocator", parent)

    def _lose(self) -> None:
        """Drop all blocks, also those in use, as the context is about to be reset."""
        addresses = list(self._lists.drain())
        while self._live:
            live = self._live.copy()
            addresses.extend(block for block in live if self._live.pop(block, None) is not None)
        for address in addresses:
            _return_block(self._queue, address)

    def statistics(self) -> AllocatorStatistics:
        """Return the current sizes and counts; memory of captures is not counted."""
        live = self._live.copy()
        return AllocatorStatistics(
            in_use_bytes=sum(live.values()),
            in_use_blocks=len(live),
            cached_bytes=self._lists.cached_bytes,
            cap_bytes=self._lists.cap_bytes or 0,
        )

    @property
    def is_frozen(self) -> bool:
        """Whether a capture is under way, and the free lists are bypassed."""
        return self._frozen is not None and self._frozen is not _CLOSED

    def freeze(self) -> None:
        """Bypass the free lists until `unfreeze`, for the calling thread. Others wait until then.

        Raises:
            ClosedError: its stream was closed.
            FrozenAllocatorError: the thread has frozen it already: one capture at a time.
        """
        self._freeze(CapturePeriod())

    def _freeze(self, period: CapturePeriod) -> None:
        """As `freeze`, for a period.

        Setting `_frozen` (where it is the period) and `_captures.arena` to None ends the freeze at
        once. Callers do that where an interrupt could prevent the start of `unfreeze`.
        """
        self._reject_closed()
        while True:
            if self._is_frozen_here(wait=True):
                raise FrozenAllocatorError("freeze of an allocator that is frozen already")
            with self._lock:
                if not self._frozen:
                    self._captures.addresses = set()
                    self._frozen = period
                    return

    def _is_frozen_here(self, *, wait: bool = False) -> bool:
        """Return whether the calling thread has frozen it.

        Args:
            wait: whether to wait while another thread has.

        Raises:
            StreamCaptureIsolationError: that wait cannot end, or exceeds its limit.
        """
        while True:
            period = self._frozen
            if period is None:
                return False
            if period.is_own or not wait:
                return period.is_own
            period.wait()

    def unfreeze(self) -> None:
        """Use the free lists again, and remove the capture arena. Idempotent.

        Raises:
            FrozenAllocatorError: an address of the capture is in a free list; the block is removed
                from it.
        """
        with self._lock:
            period, self._captures.arena = self._frozen, None
            if period is not None and period is not _CLOSED:
                self._frozen = None
                period.end()
            captured, self._captures.addresses = self._captures.addresses, set()
            loose = self._lists.take_out(captured)
        if loose:
            addresses = ", ".join(f"{address:#x}" for address in loose)
            raise FrozenAllocatorError(
                f"memory of a capture was found in the free lists: {addresses}; a graph keeps "
                "these addresses, and handing them out again would overwrite its data"
            )

    def free_captured(self) -> None:
        """Free, as part of the capture under way, the graph memory that it has not freed itself.

        A graph that frees what it allocates can be launched again at once.
        """
        for address in self._captures.unfreed():
            self._free_now(address)

    def forget_captured(self) -> None:
        """Forget the graph memory of the capture under way, whose graph is discarded."""
        self._captures.forget_unfreed()

    @property
    def has_arena(self) -> bool:
        """Whether a capture arena is installed."""
        return self._captures.arena is not None

    def install_arena(self, base: int, size: int) -> None:
        """Let captured allocations come from `size` bytes at `base`, each address once.

        Raises:
            ClosedError: the stream of the allocator was closed.
            FrozenAllocatorError: an arena is installed already.
        """
        self._reject_closed()
        arena = BumpArena(
            border.integer("install_arena: base", base), border.integer("install_arena: size", size)
        )
        with self._lock:
            self._captures.install(arena)

    def clear_arena(self) -> None:
        """Remove the capture arena; its owner still owns its memory. Idempotent."""
        self._captures.arena = None

    def _allocate_fresh(self, nbytes: int) -> int:
        nbytes = border.integer("allocate: nbytes", nbytes)
        if nbytes <= 0:
            if nbytes < 0:
                raise InvalidValueError(f"allocating {nbytes} bytes: a size is 0 or more")
            return 0
        stream = self._stream
        queue = stream._handle
        api = queue.api
        if nbytes > border.LARGEST:
            raise out_of_memory(stream.context, nbytes, "")
        code, pointer = queue.submit(api.cuMemAllocAsync, nbytes, queue.raw)
        if code == OutOfMemoryError.result and not stream.capturing:
            self._release_all(self._lists.drain())
            stream.synchronize()
            with suppress(NotSupportedError):  # a device without memory pools
                trim_pool(stream.context.device)
            code, pointer = queue.submit(api.cuMemAllocAsync, nbytes, queue.raw)
        if code == OutOfMemoryError.result:
            raise out_of_memory(stream.context, nbytes, "cuMemAllocAsync")
        if code:
            raise failure(api, code, "cuMemAllocAsync", f"allocating {nbytes} bytes on {stream!r}")
        address = int(pointer)
        if self._frozen and self._is_frozen_here():
            self._captures.allocated(address, nbytes)
            return address
        self._live[address] = nbytes
        self._captures.forget_arenas_at(address)
        return address

    def _allocate_captured(self, nbytes: int) -> int:
        self._reject_closed()
        arena = self._captures.arena
        nbytes = border.integer("allocate: nbytes", nbytes)
        if arena is None or nbytes <= 0:
            return self._allocate_fresh(nbytes)
        address = arena.take(nbytes)
        self._captures.addresses.add(address)
        watch = self._stream.context.device.driver.memory_watch
        if watch is not None:
            watch.lend(address, nbytes)
        return address

    def _deallocate_captured(self, ptr: int, nbytes: int) -> None:
        ptr = border.integer("deallocate: ptr", ptr)
        nbytes = border.integer("deallocate: nbytes", nbytes)
        arena = self._captures.arena
        if arena is not None and ptr in arena:
            arena.give(ptr)
        elif self._captures.freed(ptr, nbytes):
            self._free_now(ptr)  # becomes a node of the graph
        else:
            size = self._live.pop(ptr, None)
            if size is None or size != nbytes:
                self._deallocate_unknown(ptr, nbytes, size)
            else:
                # A block from before the capture cannot be freed by the graph; the stream frees
                # it when the capture has ended.
                _return_block(self._queue, ptr)

    def _deallocate_unknown(self, ptr: int, nbytes: int, size: int | None) -> None:
        """Free an address that is not in use: null, memory of a former capture, or a mistake."""
        if size is not None:
            self._live[ptr] = size
        ptr = border.integer("deallocate: ptr", ptr)
        nbytes = border.integer("deallocate: nbytes", nbytes)
        if size == nbytes:
            self.deallocate(ptr, nbytes)  # integers of another type
        elif size is not None:
            raise DeallocationError(
                f"the block at {ptr:#x} has {size} bytes, not {nbytes}; it is still in use"
            )
        elif ptr == 0 or self._captures.is_of_an_arena(ptr):
            pass
        elif self._captures.freed(ptr, nbytes):
            self._free_now(ptr)
        else:
            place = border.shown_text(f"{ptr:#x}")
            raise DeallocationError(
                f"the block of {border.shown(nbytes)} bytes at {place} is not in use: it was given "
                "back already, or comes from elsewhere"
            )

    def _release_all(self, addresses: Iterable[int]) -> None:
        faults: list[CudadrvError] = []
        for address in addresses:
            if self._stream.capturing:
                _return_block(self._queue, address)
                continue
            try:
                self._free_now(address)
            except CudadrvError as fault:  # the others are freed all the same
                faults.append(fault)
        if faults:
            raise faults[0]

    def _free_now(self, address: int) -> None:
        queue = self._queue if self._stream.closed else self._stream._handle
        code = queue.free(CUdeviceptr(address))
        if code:
            raise failure(queue.api, code, "cuMemFreeAsync", f"freeing the block at {address:#x}")


class _Dependent:
    """Closes an allocator with its stream, which knows it weakly."""

    __slots__ = ("__weakref__", "_allocator")

    def __init__(self, allocator: CudaAllocator) -> None:
        self._allocator = weakref.ref(allocator)

    def on_owner_closed(self, owner: object) -> None:
        """Close the allocator."""
        allocator = self._allocator()
        if allocator is not None:
            allocator._close()

    def reset(self) -> None:
        """Do nothing: an allocator has none of the driver's functions built in."""

    def hold_back(self) -> Callable[[], bool]:
        """Do nothing: an allocator calls the driver through the stream's gate."""
        return lambda: True


def _begin_child() -> None:
    """Hand out no cached block in a forked child: that makes no driver call, which would fail."""
    for allocator in allocators.alive():
        allocator._frozen = _CLOSED


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)


def _return_block(stream: StreamHandle, address: int) -> None:
    """Free a block as any memory of the stream, so after a capture that is under way."""
    PoolMemory(stream.context, CUdeviceptr(address), stream)  # freed at once


def _abandon(stream: StreamHandle, lists: FreeLists[int]) -> None:
    """Free the cached blocks of a dropped allocator, whether its stream was closed or not."""
    for address in lists.drain():
        _return_block(stream, address)
