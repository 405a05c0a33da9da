"""Pinned and managed memory: ordinary host memory that the driver has registered.

CUDA Driver API, cuMemHostAlloc, cuMemAllocManaged, cuMemAdvise, cuMemRangeGetAttribute. Managed
memory is everywhere at once, so advice and prefetches are stored and have no effect.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import struct
import sys
from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

from ptx.emulate.memory.device_memory import map_shared
from ptx.emulate.memory.mapped_memory import MappedHostMemory

from .caller_memory import forget_pages
from .memory_patterns import FREED, FRESH, MOST_BYTES, PatternedBytes, fill
from .pools import GraphMemory, Pool
from .shared_file import SharedFile, empty_pages, whole_pages

_PAGE: Final = 4096
_LARGEST_NUMBER: Final = 8
_NUMBERS: Final = (
    ("float64", "=d", ".7g"),
    ("float32", "=f", ".7g"),
    ("int64", "=q", "d"),
    ("int32", "=i", "d"),
)


class MemoryLocation(NamedTuple):
    """A CUmemLocation: numbers of its type, and of the device or NUMA node."""

    kind: int
    number: int


class PageAdvice(NamedTuple):
    """The advice for a page.

    Attributes:
        is_read_mostly: whether copies of it may be in several locations.
        preferred: the preferred location.
        accessed_by: ordinals of devices that access it, -1 for the host.
        prefetched: the location of the last prefetch.
    """

    is_read_mostly: bool = False
    preferred: MemoryLocation | None = None
    accessed_by: frozenset[int] = frozenset()
    prefetched: MemoryLocation | None = None


class ManagedRanges:
    """Memory advice for the pages of one allocation, stored as ranges of equal advice.

    Callers that change it hold the emulator's lock.
    """

    def __init__(self, nbytes: int, preferred: MemoryLocation | None) -> None:
        # The first page of each part, and its advice; the last part has no pages.
        self._starts = [0, _pages(nbytes)]
        self._advice = [PageAdvice(preferred=preferred)]

    def change(self, offset: int, nbytes: int, change: Callable[[PageAdvice], PageAdvice]) -> None:
        """Change the advice for bytes, which applies to their pages."""
        first, end = self._cut(offset // _PAGE), self._cut(_pages(offset + nbytes))
        self._advice[first:end] = [change(advice) for advice in self._advice[first:end]]

    def _cut(self, page: int) -> int:
        """Split a part at a page; return the index of the part that begins there."""
        for index, start in enumerate(self._starts):
            if start == page:
                return index
            if start > page:
                self._starts.insert(index, page)
                self._advice.insert(index, self._advice[index - 1])
                return index
        return len(self._advice)

    def of(self, offset: int, nbytes: int) -> list[PageAdvice]:
        """Return all advice for some bytes."""
        first, end = offset // _PAGE, _pages(offset + nbytes)
        bounds = zip(self._starts, self._starts[1:], strict=False)
        return [
            advice
            for advice, (start, stop) in zip(self._advice, bounds, strict=True)
            if start < end and first < stop
        ]


def _pages(nbytes: int) -> int:
    return -(-nbytes // _PAGE)


class HostPiece(NamedTuple):
    """A page-locked or managed allocation: `nbytes` at `address`, made in context `context`.

    Attributes:
        flags: the flags of its allocation.
        is_registered: whether it is the caller's own memory, which was page-locked afterwards.
        pages, view: keep it alive, unless it is the caller's.
        written: which bytes were written, if that is checked.
        pool: the pool that it was allocated from.
        offset: where it begins in the file of its pool, if that has one.
        graph: the allocation of a graph that it is of.
        advice: the advice for its parts, if it is managed memory.
        is_synchronous: CU_POINTER_ATTRIBUTE_SYNC_MEMOPS.
    """

    address: int
    nbytes: int
    context: int
    ordinal: int
    number: int
    managed: bool
    flags: int = 0
    is_registered: bool = False
    pages: mmap.mmap | None = None
    view: ctypes.Array[ctypes.c_char] | None = None
    written: PatternedBytes | None = None
    pool: Pool | None = None
    offset: int = 0
    graph: GraphMemory | None = None
    advice: ManagedRanges | None = None
    is_synchronous: bool = False

    @property
    def kind(self) -> str:
        """Its kind in words."""
        return "managed memory" if self.managed else "page-locked host memory"

    def is_open_to(self, ordinal: int) -> bool:
        """Return whether a device's kernels can access it; a pool decides about its own memory."""
        return self.managed or self.pool is None or ordinal in self.pool.peers


class HostRange(NamedTuple):
    """Host memory that an operation uses.

    Attributes:
        piece: the allocation that it lies in, kept alive until then; None for ordinary memory.
        is_watched: whether the host must not access it until then.
    """

    address: int
    nbytes: int
    is_written: bool
    piece: HostPiece | None = None
    is_watched: bool = True

    def overlaps(self, other: HostRange) -> bool:
        """Return whether they have a byte in common."""
        return self.address < other.address + other.nbytes and (
            other.address < self.address + self.nbytes
        )

    @property
    def contents(self) -> str:
        """Describe the present content of the memory, with its first bytes as numbers."""
        data = ctypes.string_at(self.address, min(self.nbytes, _LARGEST_NUMBER))
        numbers = [
            f"{struct.unpack_from(code, data)[0]:{form}} as {name}"
            for name, code, form in _NUMBERS
            if len(data) >= struct.calcsize(code)
        ]
        return f"{self._origin(data)}: {', '.join(numbers) or data.hex()}"

    def _origin(self, data: bytes) -> str:
        if self.piece is not None and self.piece.written is not None:
            flags = self.piece.written.settled(self.address - self.piece.address, len(data))
            if not flags.any():
                return "the fill of memory that nothing has written (another number each word)"
        if set(data) == {FRESH}:
            return f"the fill of memory that nothing has written (bytes {FRESH:#x})"
        if set(data) == {FREED}:
            return f"the fill of freed memory (bytes {FREED:#x})"
        return "what was there before"


class HostMemory:
    """The live allocations of cuMemHostAlloc and cuMemAllocManaged, by address.

    Changes hold the emulator's lock. Look-ups take no lock, as kernels make them under the lock of
    their device: `_starts` is replaced and never changed.

    Attributes:
        pieces: the allocations by address.
        has_patterns: whether fresh memory holds a pattern.
        has_flags: whether written bytes are recorded.
    """

    def __init__(self) -> None:
        self.pieces: dict[int, HostPiece] = {}
        self._starts: tuple[int, ...] = ()
        self._leaving: set[int] = set()
        self._numbered = 0
        self.has_patterns = False
        self.has_flags = False

    def allocate(
        self,
        nbytes: int,
        context: int,
        ordinal: int,
        *,
        managed: bool = False,
        flags: int = 0,
        pool: Pool | None = None,
        graph: GraphMemory | None = None,
    ) -> HostPiece:
        """Allocate whole pages that hold `nbytes`, zeroed or with a pattern.

        Raises:
            OSError, ValueError, OverflowError: the host has not enough memory.
        """
        file = None if pool is None else pool.file
        offset = 0 if file is None else file.extend(nbytes)
        pages, view = _mapped(nbytes, file, offset)
        self._numbered += 1
        address, written = ctypes.addressof(view), None
        if self.has_flags and nbytes <= MOST_BYTES:
            written = PatternedBytes(address, nbytes)
        elif self.has_patterns:
            fill(address, nbytes, FRESH)
        piece = HostPiece(
            address,
            nbytes,
            context,
            ordinal,
            self._numbered,
            managed,
            flags,
            pages=pages,
            view=view,
            written=written,
            pool=pool,
            offset=offset,
            graph=graph,
            advice=ManagedRanges(nbytes, _preferred(pool, graph)) if managed else None,
        )
        self._add(piece)
        return piece

    def open(self, pool: Pool, offset: int, nbytes: int) -> HostPiece:
        """Open memory of another process's pool, at an offset in the pool's file.

        Raises:
            OSError, ValueError, OverflowError: there is no range of so many addresses.
        """
        pages, view = _mapped(nbytes, pool.file, offset)
        self._numbered += 1
        piece = HostPiece(
            ctypes.addressof(view),
            nbytes,
            0,
            0,
            self._numbered,
            managed=False,
            pages=pages,
            view=view,
            pool=pool,
            offset=offset,
        )
        self._add(piece)
        return piece

    def register(
        self, address: int, nbytes: int, context: int, ordinal: int, flags: int
    ) -> HostPiece | None:
        """Register memory of the caller's as page-locked; None if a part of it already is."""
        if any(
            address < piece.address + piece.nbytes and piece.address < address + nbytes
            for piece in self.pieces.values()
        ):
            return None
        self._numbered += 1
        piece = HostPiece(
            address,
            nbytes,
            context,
            ordinal,
            self._numbered,
            managed=False,
            flags=flags,
            is_registered=True,
        )
        self._add(piece)
        return piece

    def _add(self, piece: HostPiece) -> None:
        self.pieces[piece.address] = piece
        self._starts = tuple(sorted(self.pieces))

    def free(self, address: int, *, managed: bool = False, registered: bool = False) -> bool:
        """Forget an allocation of this kind; False if no allocation starts there."""
        piece = self.pieces.get(address)
        if piece is None or (piece.managed, piece.is_registered) != (managed, registered):
            return False
        if piece.pool is not None or piece.graph is not None:
            return False
        self._remove(address)
        return True

    def _remove(self, address: int) -> None:
        del self.pieces[address]
        forget_pages()
        self._starts = tuple(sorted(self.pieces))

    def of_pool(self, address: int) -> HostPiece | None:
        """Return the allocation of a pool that begins at an address, unless it was freed."""
        piece = self.pieces.get(address)
        is_there = piece is not None and piece.pool is not None and address not in self._leaving
        return piece if is_there else None

    def leave(self, piece: HostPiece) -> None:
        """Mark memory of a pool as freed, though a stream may still use it."""
        self._leaving.add(piece.address)

    def leave_for_good(self, piece: HostPiece) -> None:
        """Free memory of a pool or a graph that no stream uses any more."""
        self._leaving.discard(piece.address)
        pool = piece.pool
        if pool is not None and pool.file is not None:
            if not pool.is_foreign and piece.pages is not None:
                empty_pages(piece.pages)
        elif self.has_patterns and piece.written is None:
            fill(piece.address, piece.nbytes, FREED)
        self._remove(piece.address)

    def free_of(self, context: int) -> None:
        """Forget all allocations of a context."""
        for piece in list(self.pieces.values()):
            if piece.context == context:
                self.free(piece.address, managed=piece.managed, registered=piece.is_registered)

    def reachable(self, address: int, ordinal: int) -> MappedHostMemory | None:
        """Return the allocation that holds an address, as kernels of a device access it."""
        piece = self.find(address)
        if piece is None:
            return None
        is_open, origin = piece.is_open_to(ordinal), piece.kind
        if not is_open:
            origin += f" of a pool, which cuMemPoolSetAccess opens to device {ordinal}"
        return MappedHostMemory(piece.address, piece.nbytes, origin, piece.written, is_open=is_open)

    def set_synchronous(self, piece: HostPiece, value: bool) -> None:
        """Set CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of an allocation."""
        self.pieces[piece.address] = piece._replace(is_synchronous=value)

    def find(self, address: int) -> HostPiece | None:
        """Return the allocation that holds an address."""
        starts = self._starts
        index = bisect_right(starts, address) - 1
        piece = self.pieces.get(starts[index]) if index >= 0 else None
        if piece is None or address >= piece.address + piece.nbytes:
            return None
        return piece


def _mapped(
    nbytes: int, file: SharedFile | None, offset: int
) -> tuple[mmap.mmap, ctypes.Array[ctypes.c_char]]:
    """Return new pages and a view of their bytes; of a file, if one is given."""
    if nbytes > _bytes_of_this_machine():  # which the system may still map
        raise OSError(errno.ENOMEM, "more than the memory of this machine")
    pages = mmap.mmap(-1, nbytes)
    view = (ctypes.c_char * nbytes).from_buffer(pages)
    if file is not None:  # mmap.mmap would use one more descriptor for each allocation
        map_shared(ctypes.addressof(view), whole_pages(nbytes), file.number, offset)
    return pages, view


@cache
def _bytes_of_this_machine() -> int:
    """Return the bytes that can be page-locked at most."""
    if not hasattr(os, "sysconf"):
        return sys.maxsize
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _preferred(pool: Pool | None, graph: GraphMemory | None) -> MemoryLocation | None:
    """Return the preferred location of memory of a pool or a graph."""
    owner = pool if pool is not None else graph
    location = None if owner is None else owner.location
    if location is None or not location.kind:
        return None
    return MemoryLocation(location.kind, location.number)
