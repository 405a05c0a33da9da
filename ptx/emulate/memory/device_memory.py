"""The memory of one emulated device: flat bytes, an allocator, and the table the checker reads.

Pages are committed when first written, so that a device of 80 GiB costs nothing until it is used.
Beside them `WrittenBytes` has a flag for each byte that was written since it was allocated. A
`Reservation` is a range of addresses into which memory is mapped piece by piece. A `DeviceHeap` is
what `malloc` in kernels takes from (CUDA C++ Programming Guide, "Dynamic Global Memory
Allocation").

Several processes of one host can share pages: a file in memory is mapped in their place (mmap(2),
MAP_FIXED). So their addresses stay, and code that reads or writes them needs no change.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import platform
from bisect import bisect_right
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import IntEnum
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.address_ranges import AddressRanges, Allocation
from ptx.emulate.model.errors import AddressSpaceExhausted, BadFree, OutOfMemory

Flags = NDArray[Any]  # unsigned, of as many bytes as the elements that they stand for

MADV_DONTNEED: Final = 4  # Linux; named in mmap only there
WORD: Final = 4
"""Fewer bytes that are copied may be padding alone, as code for debuggers copies each by itself."""
_MANY: Final = 1 << 20  # bytes that are worth a call of the system
_UNSIGNED: Final[dict[int, type[np.unsignedinteger[Any]]]] = {
    1: np.uint8,
    2: np.uint16,
    4: np.uint32,
    8: np.uint64,
}
WRITTEN: Final[dict[int, np.unsignedinteger[Any]]] = {
    nbytes: kind(int.from_bytes(b"\1" * nbytes, "little")) for nbytes, kind in _UNSIGNED.items()
}
"""The flags of an element whose bytes were all written, by its size."""


class Use(IntEnum):
    """The use of a loaded value."""

    NONE = 0
    COPIED = 1
    USED = 2


class WrittenBytes:
    """One flag for each byte of a memory; offsets are from its beginning.

    Args:
        flags: (nbytes,) uint8 zeros, committed where they are written.
        pages: what they lie in, where the system can take it back; None if it cannot.

    Attributes:
        version: changes when bytes become unwritten that were written.
        word_nbytes: as `WORD`.
        whole: as `WRITTEN`.
    """

    word_nbytes: ClassVar[int] = WORD
    whole: ClassVar[Mapping[int, np.unsignedinteger[Any]]] = WRITTEN

    def __init__(self, flags: NDArray[np.uint8], pages: mmap.mmap | None) -> None:
        self._flags = flags
        self._pages = pages
        self._views: dict[int, Flags] = {
            nbytes: flags.view(kind) for nbytes, kind in _UNSIGNED.items()
        }
        self._reached = 0  # nothing from here on was ever written
        self.version: int = 0

    def elements(self, nbytes: int) -> Flags:
        """The flags of all elements of so many bytes."""
        return self._views[nbytes]

    def of(self, start: int, nbytes: int) -> NDArray[np.uint8]:
        """The flags of some bytes."""
        return self._flags[start : start + nbytes]

    def begin(self, start: int, nbytes: int) -> None:
        """Mark bytes as unwritten."""
        self.version += 1
        end = min(start + nbytes, self._reached)
        if end - start > _MANY and self._pages is not None:
            first, last = (
                -(-start // mmap.PAGESIZE) * mmap.PAGESIZE,
                end // mmap.PAGESIZE * mmap.PAGESIZE,
            )
            self._pages.madvise(MADV_DONTNEED, first, last - first)  # they read as zeros then
            self._flags[start:first] = 0
            self._flags[last:end] = 0
        elif start < end:
            self._flags[start:end] = 0
        self._reached = max(self._reached, start + nbytes)

    def settle(self) -> None:
        """Detect unannounced writes by others; this memory has none."""

    def mark(self, start: int, nbytes: int) -> None:
        """Mark bytes as written."""
        self._flags[start : start + nbytes] = 1

    def put(self, start: int, flags: NDArray[np.uint8]) -> None:
        """Set the flags of bytes that were copied from elsewhere, with their flags."""
        self._flags[start : start + len(flags)] = flags
        if not flags.all():
            self.version += 1


GRANULE = 256
_GAP = 16  # between allocations, so that an access just past the end belongs to none
_MAP_NORESERVE = 0x4000  # Linux; named in mmap only from Python 3.13


def _map(nbytes: int) -> mmap.mmap:
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)


def reserve(nbytes: int) -> NDArray[np.uint8]:
    """Bytes that read as zero and are committed page by page.

    Raises:
        AddressSpaceExhausted: the process may not have that many more addresses.
    """
    pages = _reserve_pages(nbytes)
    if pages is not None:
        return np.frombuffer(pages, np.uint8)
    try:
        return np.zeros(nbytes, np.uint8)
    except MemoryError:
        raise AddressSpaceExhausted(nbytes) from None


def _reserve_pages(nbytes: int) -> mmap.mmap | None:
    """The pages of `reserve`; None where the system does not leave them uncommitted."""
    if platform.system() != "Linux":
        return None
    try:
        pages = _map(nbytes)
    except OSError:
        gc.collect()  # unused devices may wait in reference cycles
        try:
            pages = _map(nbytes)
        except OSError:
            raise AddressSpaceExhausted(nbytes) from None
    with suppress(OSError):  # a kernel without large pages
        # First touches of 4 KiB pages take most of a copy's time; large ones halve it.
        pages.madvise(mmap.MADV_HUGEPAGE)
    return pages


class DeviceMemory:
    """Device memory from address `base` on.

    Freed pieces are quarantined, so that a late access to them is found. The quarantine holds the
    last 4,096 pieces, of at most `quarantine_bytes` together. They leave in the order of their
    frees, or at once if an allocation needs them. They count as free. A piece larger than that
    limit is not quarantined.

    Raises:
        ValueError: `base` or `nbytes` is no positive multiple of `GRANULE`.
        AddressSpaceExhausted: the process may not have `nbytes` more addresses.

    Attributes:
        granule: allocations take multiples of so many bytes.
        data: (nbytes,) uint8; address a is `data[a - base]`.
        version: changes with every allocation and free, before it: an interrupt may come after it.
        bytes_elsewhere: bytes in use that are at no address, or only in reserved ranges.
        parts: arrays within allocations that their owner hands out, by address: allocation and
        size.
        freed_by_owner: freed allocations, by address, that their owner retains for reuse.
        written: which bytes were written, where that is checked.
        allocated: called with the address of each new allocation.
    """

    granule: ClassVar[int] = GRANULE

    def __init__(self, base: int, nbytes: int) -> None:
        if base % GRANULE or nbytes % GRANULE or base <= 0 or nbytes <= 0:
            raise ValueError(f"base and nbytes must be positive multiples of {GRANULE}")
        self.base = base
        self.nbytes = nbytes
        self.data: NDArray[np.uint8] = reserve(nbytes)
        self.version: int = 0
        self.bytes_elsewhere: int = 0
        self._ranges = AddressRanges(base, nbytes)
        self.parts: dict[int, tuple[Allocation, int]] = {}
        self.freed_by_owner: dict[int, Allocation] = {}
        self._bounds: tuple[int, NDArray[np.int64], NDArray[np.int64]] | None = None
        self._views: dict[type[np.generic], NDArray[Any]] = {}
        self.written: WrittenBytes | None = None
        self.allocated: Callable[[int], None] | None = None

    def watch_writes(self) -> None:
        """Have a flag for each byte from now on: whether it was written since its allocation.

        Raises:
            AddressSpaceExhausted: the process may not have so many more addresses.
        """
        pages = _reserve_pages(self.nbytes)
        flags = np.zeros(self.nbytes, np.uint8) if pages is None else np.frombuffer(pages, np.uint8)
        self.written = WrittenBytes(flags, pages)

    def mark_written(self, address: int, nbytes: int) -> None:
        """Mark bytes as written by something else than a kernel."""
        if self.written is not None:
            self.written.mark(address - self.base, nbytes)

    @property
    def quarantine_bytes(self) -> int:
        """The limit of the quarantine; with 0 freed memory is reused at once."""
        return self._ranges.quarantine_bytes

    @quarantine_bytes.setter
    def quarantine_bytes(self, nbytes: int) -> None:
        self._ranges.quarantine_bytes = nbytes

    @property
    def used_bytes(self) -> int:
        """The bytes in use, with the rounding of the allocator."""
        return self._ranges.used_bytes + self.bytes_elsewhere

    @property
    def free_bytes(self) -> int:
        """The bytes that are not in use."""
        return self.nbytes - self.used_bytes

    def view(self, dtype: type[np.generic]) -> NDArray[Any]:
        """All of `data` as elements of `dtype`."""
        view = self._views.get(dtype)
        if view is None:
            view = self._views[dtype] = self.data.view(dtype)
        return view

    def allocate(
        self, nbytes: int, *, origin: str = "", alignment: int = GRANULE, unit: int = GRANULE
    ) -> int:
        """The address of `nbytes` fresh bytes: the smallest free piece that holds them.

        They take whole units, of `GRANULE` bytes or a multiple.

        Raises:
            OutOfMemory: no free piece is large enough.
            ValueError: nbytes is not positive, or alignment no power of two.
        """
        if nbytes <= 0 or alignment <= 0 or alignment & (alignment - 1):
            raise ValueError(f"cannot allocate {nbytes} bytes aligned to {alignment}")
        alignment = max(alignment, unit)
        size = -(-(nbytes + _GAP) // unit) * unit
        self.version += 1
        address = self._ranges.allocate(nbytes, size, alignment, origin)
        if self.written is not None:
            self.written.begin(address - self.base, size)
        if self.allocated is not None:
            self.allocated(address)
        return address

    def reserve(self, nbytes: int, alignment: int) -> int:
        """The address of a range, of whole granules, that holds no memory yet and has no bytes.

        Raises:
            OutOfMemory: no free piece is large enough.
        """
        return self._ranges.reserve(nbytes, alignment)

    def unreserve(self, address: int) -> None:
        """Give a range back, with the allocations that `show` made in it."""
        self.version += 1
        self._ranges.unreserve(address)

    def show(self, address: int, nbytes: int, origin: str) -> None:
        """Make a part of a reserved range an allocation; the caller updates the used bytes."""
        self.version += 1
        self._ranges.show(address, nbytes, origin)

    def hide(self, address: int) -> None:
        """Remove an allocation made by `show`."""
        self.version += 1
        self._ranges.hide(address)

    def show_file(self, address: int, nbytes: int, file: int, offset: int) -> None:
        """Map pages of a file, given by its descriptor, into the memory.

        Raises:
            OSError: the system rejected it; the pages are as before.
        """
        self._map_file(address, nbytes, mmap.MAP_SHARED, file, offset)

    def hide_file(self, address: int, nbytes: int) -> None:
        """Unmap such pages: they are the process's own again, and read as zero."""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
        self._map_file(address, nbytes, flags, -1, 0)

    def _map_file(self, address: int, nbytes: int, flags: int, file: int, offset: int) -> None:
        start = address - self.base
        # Mapping other addresses would destroy their contents.
        if start < 0 or start + nbytes > self.nbytes or nbytes <= 0:
            raise ValueError(f"{nbytes} bytes at {address:#x} are no whole pages of the memory")
        _map_pages(self.data.ctypes.data + start, nbytes, flags, file, offset)

    def shown(self, address: int, nbytes: int) -> list[Allocation]:
        """The allocations that `show` made in a part of a reserved range."""
        return self._ranges.inside(address, nbytes)

    def free(self, address: int) -> None:
        """Free an allocation.

        Raises:
            BadFree: the address starts no live allocation.
        """
        self.version += 1
        if not self._ranges.free(address):
            raise BadFree(address, self._why_not_free(address))

    def at(self, address: int) -> Allocation | None:
        """The live allocation that begins at `address`; in one step, so that no lock is needed."""
        return self._ranges.at(address)

    def size_at(self, address: int) -> int:
        """The bytes that an allocation takes, with the allocator's rounding."""
        return self._ranges.size_at(address)

    def find(self, address: int) -> Allocation | None:
        """The live allocation that holds `address`."""
        allocation = self._before(address)
        return allocation if allocation is not None and address < allocation.end else None

    def _before(self, address: int) -> Allocation | None:
        """The last live allocation that begins at `address` or before it."""
        starts = self._ranges.starts
        index = bisect_right(starts, address)
        return self._ranges.at(starts[index - 1]) if index else None

    def find_freed(self, address: int) -> Allocation | None:
        """Return the last freed allocation that held `address`, if it is among the recent ones.

        None for addresses in a live allocation or in its padding.
        """
        before = self._before(address)
        if before is not None:
            size = max(self._ranges.size_at(before.address), before.nbytes)
            if address < before.address + size:
                return None
        for allocation in reversed(self._ranges.freed.copy()):
            if allocation.address <= address < allocation.end:
                return allocation
        return None

    def nearest(self, address: int) -> Allocation | None:
        """The live allocation whose bounds are nearest to `address`."""
        starts = self._ranges.starts
        index = bisect_right(starts, address)
        neighbours = map(self._ranges.at, starts[max(0, index - 1) : index + 1])
        return min(
            filter(None, neighbours),
            key=lambda a: max(a.address - address, address - a.end + 1, 0),
            default=None,
        )

    def bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts and ends of all live allocations, in order."""
        bounds, version = self._bounds, self._ranges.version
        if bounds is None or bounds[0] != version:
            live = [live for live in map(self._ranges.at, self._ranges.starts) if live is not None]
            starts = np.array([allocation.address for allocation in live], dtype=np.int64)
            ends = np.array([allocation.end for allocation in live], dtype=np.int64)
            bounds = self._bounds = (version, starts, ends)
        return bounds[1], bounds[2]

    def _why_not_free(self, address: int) -> str:
        allocation = self.find(address)
        if allocation is not None:
            return f"it lies inside the allocation of {allocation}"
        freed = self.find_freed(address)
        if freed is not None and freed.address == address:
            return f"the allocation of {freed} was freed before"
        return "nothing was allocated there"


class MappedPiece(NamedTuple):
    """A piece of memory in a reserved range.

    Attributes:
        nbytes: its size.
        devices: the ordinals of the devices whose kernels have access.
        is_multicast: whether it is a multicast object, which loads and stores cannot access.
    """

    nbytes: int
    devices: frozenset[int] = frozenset()
    is_multicast: bool = False


class Reservation:
    """A reserved range. Mapped pieces that follow each other are one allocation.

    Attributes:
        address: where it begins.
        nbytes: its size.
        pieces: mapped pieces, by address.
    """

    def __init__(self, memory: DeviceMemory, nbytes: int, alignment: int) -> None:
        self._memory = memory
        self.address: int = memory.reserve(nbytes, alignment)
        self.nbytes: int = nbytes
        self.pieces: dict[int, MappedPiece] = {}

    def holds(self, address: int, nbytes: int) -> bool:
        """Return whether some bytes are all in the range."""
        return self.address <= address and address + nbytes <= self.address + self.nbytes

    def map(self, address: int, piece: MappedPiece) -> bool:
        """Map a piece; False where something is mapped already."""
        if any(
            address < start + existing.nbytes and start < address + piece.nbytes
            for start, existing in self.pieces.items()
        ):
            return False
        self.pieces[address] = piece
        written = self._memory.written
        if written is not None:
            written.begin(address - self._memory.base, piece.nbytes)
        return True

    def piece_at(self, address: int) -> tuple[int, MappedPiece] | None:
        """The address of the piece that has a byte, and the piece; None where nothing is mapped."""
        for start, piece in self.pieces.items():
            if start <= address < start + piece.nbytes:
                return start, piece
        return None

    def within(self, address: int, nbytes: int) -> list[int] | None:
        """Addresses of the pieces that the bytes consist of; None if these are not whole pieces."""
        starts, start = [], address
        while start < address + nbytes:
            if start not in self.pieces:
                return None
            starts.append(start)
            start += self.pieces[start].nbytes
        return starts if start == address + nbytes else None

    def open(self, starts: list[int], device: int, *, is_open: bool) -> None:
        """Allow or forbid a device's access to pieces."""
        for start in starts:
            piece = self.pieces[start]
            other_devices = piece.devices - {device}
            self.pieces[start] = piece._replace(
                devices=other_devices | {device} if is_open else other_devices
            )
        self._show()

    def unmap(self, starts: list[int]) -> None:
        """Remove pieces."""
        for start in starts:
            del self.pieces[start]
        self._show()

    def free(self) -> None:
        """Give the range back, in which nothing is mapped."""
        self._memory.unreserve(self.address)

    def _show(self) -> None:
        """Make allocations of the accessible ranges; one has the same access everywhere."""
        runs: dict[int, int] = {}
        first, end, devices = 0, -1, frozenset[int]()
        for start, piece in sorted(self.pieces.items()):
            is_open = bool(piece.devices) and not piece.is_multicast
            if is_open and start == end and piece.devices == devices:
                runs[first] += piece.nbytes
            elif is_open:
                first, runs[start] = start, piece.nbytes
            end, devices = start + piece.nbytes if is_open else -1, piece.devices
        shown = self._memory.shown(self.address, self.nbytes)
        for allocation in shown:
            if runs.get(allocation.address) != allocation.nbytes:
                self._memory.hide(allocation.address)
        for start, nbytes in runs.items():
            if self._memory.at(start) is None:
                self._memory.show(start, nbytes, "cuMemMap")


DEFAULT_HEAP_BYTES = 8 << 20  # cudaLimitMallocHeapSize
_GRANULE = 16  # pointers are aligned to it


class DeviceHeap:
    """The heap of `malloc` in kernels; each piece is an allocation that the checker tracks.

    Attributes:
        limit: bytes that may be live at once; allocations live on from launch to launch.
    """

    def __init__(self, memory: DeviceMemory, limit: int = DEFAULT_HEAP_BYTES) -> None:
        self.limit = limit
        self._memory = memory
        self._live: dict[int, int] = {}
        self._sum = (0, 0)  # of how many pieces, and their bytes

    @property
    def used_bytes(self) -> int:
        """Bytes that are live, added up again after an interrupt."""
        if self._sum[0] != len(self._live):
            self._sum = len(self._live), sum(self._live.values())
        return self._sum[1]

    def allocate(self, nbytes: int, origin: str) -> int:
        """The address of fresh bytes, 0 where the heap is full.

        A request for 0 bytes gets an address, as on an H100.
        """
        nbytes = max(nbytes, 1)
        size = -(-nbytes // _GRANULE) * _GRANULE
        used = self.used_bytes
        if size > self.limit - used:
            return 0
        try:
            address = self._memory.allocate(nbytes, origin=origin)
        except OutOfMemory:
            return 0
        self._live[address] = size
        self._sum = len(self._live), used + size
        return address

    def free(self, address: int) -> None:
        """Give a piece back.

        Raises:
            BadFree: it is no live piece of this heap.
        """
        used, size = self.used_bytes, self._live.pop(address, None)
        if size is None:
            raise BadFree(address, self._why_not(address))
        self._sum = len(self._live), used - size
        self._memory.free(address)

    def clear(self) -> None:
        """Give everything back, as the end of a context does."""
        for address in list(self._live):
            self.free(address)

    def _why_not(self, address: int) -> str:
        allocation = self._memory.find(address)
        if allocation is not None and allocation.address != address:
            return f"it lies inside the allocation of {allocation}"
        if allocation is not None:
            return f"{allocation} was not allocated by device code"
        freed = self._memory.find_freed(address)
        if freed is not None and freed.address == address:
            return f"the allocation of {freed} was freed before"
        return "nothing was allocated there"


_MAP_FIXED: Final = 0x10  # Linux; mmap has no name for it


def map_shared(host_address: int, nbytes: int, file: int, offset: int) -> None:
    """Map pages of a file, given by its descriptor, over pages that the caller owns.

    Raises:
        OSError: the system rejected it; the pages are as before.
    """
    _map_pages(host_address, nbytes, mmap.MAP_SHARED, file, offset)


def _map_pages(host_address: int, nbytes: int, flags: int, file: int, offset: int) -> None:
    if (host_address | nbytes | offset) % mmap.PAGESIZE:
        raise ValueError(f"{nbytes} bytes at {host_address:#x}, {offset} in the file, are no pages")
    function = ctypes.CDLL(None, use_errno=True).mmap
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64)
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    if function(host_address, nbytes, protection, flags | _MAP_FIXED, file, offset) != host_address:
        error = ctypes.get_errno()
        raise OSError(error, f"mapping {nbytes} bytes: {os.strerror(error)}")
