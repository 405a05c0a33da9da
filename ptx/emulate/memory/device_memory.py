"""The memory of one emulated device: flat bytes, an allocator, and the table the checker reads.

Pages are committed when first written, so that a device of 80 GiB costs nothing until it is used.
"""

from __future__ import annotations

import gc
import mmap
import platform
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.written import WrittenBytes
from ptx.emulate.model.errors import AddressSpaceExhausted, BadFree, OutOfMemory

GRANULE = 256
_GAP = 16  # between allocations, so that an access just past the end belongs to none
_REMEMBERED = 4096
_QUARANTINE_BYTES = 64 << 20
_MAP_NORESERVE = 0x4000  # Linux; named in mmap only from Python 3.13


@dataclass(frozen=True, slots=True)
class Allocation:
    """A live or freed piece of device memory; `origin` says who made it."""

    address: int
    nbytes: int
    origin: str

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.address + self.nbytes

    def __str__(self) -> str:
        origin = f" ({self.origin})" if self.origin else ""
        return f"{self.nbytes} bytes at {self.address:#x}{origin}"


def _map(nbytes: int) -> mmap.mmap:
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)


def reserve(nbytes: int) -> NDArray[np.uint8]:
    """Bytes that read as zero and are committed page by page.

    Raises:
        AddressSpaceExhausted: the process may not have that many more addresses.
    """
    pages = _reserve_pages(nbytes)
    return np.zeros(nbytes, np.uint8) if pages is None else np.frombuffer(pages, np.uint8)


def _reserve_pages(nbytes: int) -> mmap.mmap | None:
    """The pages of `reserve`; None where the system does not leave them uncommitted."""
    if platform.system() != "Linux":
        return None
    try:
        pages = _map(nbytes)
    except OSError:
        gc.collect()  # devices that nobody uses any more may wait in reference cycles
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

    What was freed is not allocated again for a while, so that an access to it is seen: the last
    4,096 pieces, of at most `quarantine_bytes` together, wait, and leave in the order of their
    frees, or at once where an allocation needs them. They count as free. One that is larger by
    itself does not wait.

    Raises:
        ValueError: `base` or `nbytes` is no positive multiple of `GRANULE`.
        AddressSpaceExhausted: the process may not have `nbytes` more addresses.

    Attributes:
        data: (nbytes,) uint8; address a is `data[a - base]`.
        version: changes with every allocation and free.
        parts: arrays within allocations that their owner lends, by address: allocation and size.
        given_back: allocations by address whose owner keeps them, though nobody uses them.
        quarantine_bytes: what may wait; 0 lets the next allocation have what was just freed.
        written: which bytes were written, where that is checked.
        allocated: told of the address of each new allocation.
    """

    def __init__(self, base: int, nbytes: int) -> None:
        if base % GRANULE or nbytes % GRANULE or base <= 0 or nbytes <= 0:
            raise ValueError(f"base and nbytes must be positive multiples of {GRANULE}")
        self.base = base
        self.nbytes = nbytes
        self.data: NDArray[np.uint8] = reserve(nbytes)
        self.version: int = 0
        self.used_bytes: int = 0
        self._starts: list[int] = []
        self._live: dict[int, tuple[Allocation, int]] = {}
        self._free_starts: list[int] = [base]
        self._free_sizes: dict[int, int] = {base: nbytes}
        self._by_size: list[tuple[int, int]] = [(nbytes, base)]
        self.parts: dict[int, tuple[Allocation, int]] = {}
        self.given_back: dict[int, Allocation] = {}
        self.quarantine_bytes = _QUARANTINE_BYTES
        self._waiting: deque[tuple[int, int]] = deque()  # starts and sizes
        self._waiting_bytes = 0
        self._freed: deque[Allocation] = deque(maxlen=_REMEMBERED)
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
        """These bytes were written by something else than a kernel."""
        if self.written is not None:
            self.written.mark(address - self.base, nbytes)

    @property
    def free_bytes(self) -> int:
        """What is not in use."""
        return self.nbytes - self.used_bytes

    def view(self, dtype: type[np.generic]) -> NDArray[Any]:
        """All of `data` as elements of `dtype`."""
        found = self._views.get(dtype)
        if found is None:
            found = self._views[dtype] = self.data.view(dtype)
        return found

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
        address = self._cut(size, alignment)
        while address is None:
            if not self._waiting:
                raise OutOfMemory(nbytes, self.free_bytes, self.nbytes)
            self._release()
            address = self._cut(size, alignment)
        insort(self._starts, address)
        self._live[address] = (Allocation(address, nbytes, origin), size)
        self.used_bytes += size
        self.version += 1
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
        address = self._cut(nbytes, alignment)
        while address is None:
            if not self._waiting:
                raise OutOfMemory(nbytes, self.free_bytes, self.nbytes)
            self._release()
            address = self._cut(nbytes, alignment)
        return address

    def unreserve(self, address: int, nbytes: int) -> None:
        """Give a range back in which no memory is shown."""
        self._join(address, nbytes)

    def show(self, address: int, nbytes: int, origin: str) -> None:
        """Let a part of a reserved range be an allocation; what counts as used, others say."""
        insort(self._starts, address)
        self._live[address] = (Allocation(address, nbytes, origin), nbytes)
        self.version += 1

    def hide(self, address: int) -> None:
        """Let it be none any more."""
        allocation, _ = self._live.pop(address)
        del self._starts[bisect_left(self._starts, address)]
        self._freed.append(allocation)
        self.version += 1

    def free(self, address: int) -> None:
        """Give an allocation back.

        Raises:
            BadFree: the address starts no live allocation.
        """
        found = self._live.pop(address, None)
        if found is None:
            raise BadFree(address, self._why_not_free(address))
        allocation, size = found
        del self._starts[bisect_left(self._starts, address)]
        self._freed.append(allocation)
        self.used_bytes -= size
        self.version += 1
        if size > self.quarantine_bytes:
            self._join(address, size)
            return
        self._waiting.append((address, size))
        self._waiting_bytes += size
        while self._waiting_bytes > self.quarantine_bytes or len(self._waiting) > _REMEMBERED:
            self._release()

    def _cut(self, size: int, alignment: int) -> int | None:
        """Take `size` bytes of the smallest free piece that holds them; None if there is none."""
        for at in range(bisect_left(self._by_size, (size, 0)), len(self._by_size)):
            piece_size, piece = self._by_size[at]
            address = -(-piece // alignment) * alignment
            if address + size <= piece + piece_size:
                break
        else:
            return None
        self._take(piece)
        if address > piece:
            self._give(piece, address - piece)
        if address + size < piece + piece_size:
            self._give(address + size, piece + piece_size - address - size)
        return address

    def _release(self) -> None:
        """Let what was freed first be allocated again."""
        address, size = self._waiting.popleft()
        self._waiting_bytes -= size
        self._join(address, size)

    def _join(self, address: int, size: int) -> None:
        """Make one free piece of this and its free neighbours."""
        start, end = address, address + size
        at = bisect_left(self._free_starts, address)
        if at < len(self._free_starts) and self._free_starts[at] == end:
            end += self._take(self._free_starts[at])
        if at > 0:
            before = self._free_starts[at - 1]
            if before + self._free_sizes[before] == start:
                self._take(before)
                start = before
        self._give(start, end - start)

    def at(self, address: int) -> Allocation | None:
        """The live allocation that begins at `address`; in one step, so that no lock is needed."""
        found = self._live.get(address)
        return None if found is None else found[0]

    def find(self, address: int) -> Allocation | None:
        """The live allocation that holds `address`."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        allocation = self._live[self._starts[at]][0]
        return allocation if address < allocation.end else None

    def find_freed(self, address: int) -> Allocation | None:
        """The allocation freed last that held `address`, among those remembered.

        None in a live allocation and in the bytes behind it that it holds, too.
        """
        at = bisect_right(self._starts, address) - 1
        if at >= 0 and address < self._starts[at] + self._live[self._starts[at]][1]:
            return None
        for allocation in reversed(self._freed):
            if allocation.address <= address < allocation.end:
                return allocation
        return None

    def nearest(self, address: int) -> Allocation | None:
        """The live allocation whose bounds are nearest to `address`."""
        at = bisect_right(self._starts, address)
        around = [self._live[start][0] for start in self._starts[max(0, at - 1) : at + 1]]
        return min(
            around,
            key=lambda a: max(a.address - address, address - a.end + 1, 0),
            default=None,
        )

    def bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts and ends of all live allocations, in order."""
        if self._bounds is None or self._bounds[0] != self.version:
            starts = np.array(self._starts, dtype=np.int64)
            ends = np.array([self._live[start][0].end for start in self._starts], dtype=np.int64)
            self._bounds = (self.version, starts, ends)
        return self._bounds[1], self._bounds[2]

    def _why_not_free(self, address: int) -> str:
        inside = self.find(address)
        if inside is not None:
            return f"it lies inside the allocation of {inside}"
        freed = self.find_freed(address)
        if freed is not None and freed.address == address:
            return f"the allocation of {freed} was freed before"
        return "nothing was allocated there"

    def _give(self, start: int, size: int) -> None:
        insort(self._free_starts, start)
        self._free_sizes[start] = size
        insort(self._by_size, (size, start))

    def _take(self, start: int) -> int:
        size = self._free_sizes.pop(start)
        del self._free_starts[bisect_left(self._free_starts, start)]
        del self._by_size[bisect_left(self._by_size, (size, start))]
        return size
