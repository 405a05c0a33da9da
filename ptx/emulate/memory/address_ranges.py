"""The ranges of a device's addresses: live, in quarantine, reserved, and free.

Two tables say which ranges are taken. Everything else is an index that is derived from them: sorted
starts, free ranges, sums. One operation changes a table. From then on the index is out of date,
until it has the change too; an index out of date is made again. So an exception at any line leaves
the ranges consistent. The same holds for a call of a finalizer or a signal handler at any line.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from ptx.emulate.model.errors import OutOfMemory

_REMEMBERED: Final = 4096
_QUARANTINE_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Allocation:
    """A live or freed piece of device memory; `origin` names its creator."""

    address: int
    nbytes: int
    origin: str

    @property
    def end(self) -> int:
        """The first address past its end."""
        return self.address + self.nbytes

    def __str__(self) -> str:
        origin = f" ({self.origin})" if self.origin else ""
        return f"{self.nbytes} bytes at {self.address:#x}{origin}"


class _Use(Enum):
    """The use of a range."""

    LIVE = 0
    QUARANTINED = 1
    RESERVED = 2


class _Taken(NamedTuple):
    """A range that is not free.

    Attributes:
        allocation: what it holds, or held.
        size: its bytes, with the allocator's rounding.
        serial: counts the entries, so that the oldest in quarantine is known.
    """

    allocation: Allocation
    size: int
    use: _Use
    serial: int


class _Index:
    """What is derived from the tables.

    Attributes:
        version: that of the tables; -1 until the index is complete.
        starts: sorted addresses of the live allocations.
        used_bytes: bytes of the live allocations outside of reserved ranges.
        quarantine: starts and sizes of the ranges in quarantine, the oldest first.
        quarantined_bytes: their sum.
    """

    def __init__(
        self, start: int, end: int, taken: Iterable[_Taken], inside: Iterable[int]
    ) -> None:
        self.version = -1
        self._free_starts: list[int] = []
        self._free_sizes: dict[int, int] = {}
        self._by_size: list[tuple[int, int]] = []
        taken = sorted(taken, key=lambda entry: entry.allocation.address)
        for allocation, size, *_ in taken:
            if allocation.address > start:
                self._add(start, allocation.address - start)
            start = max(start, allocation.address + size)
        if end > start:
            self._add(start, end - start)
        live = [entry for entry in taken if entry.use is _Use.LIVE]
        self.starts: list[int] = sorted([*(e.allocation.address for e in live), *inside])
        self.used_bytes: int = sum(entry.size for entry in live)
        freed = sorted((e for e in taken if e.use is _Use.QUARANTINED), key=lambda e: e.serial)
        self.quarantine: deque[tuple[int, int]] = deque(
            (entry.allocation.address, entry.size) for entry in freed
        )
        self.quarantined_bytes: int = sum(entry.size for entry in freed)

    def find(self, size: int, alignment: int) -> int | None:
        """Return where `size` bytes fit, in the smallest free range that holds them."""
        first = bisect_left(self._by_size, (size, 0))
        for at in range(first, len(self._by_size)):
            for free_size, free in self._by_size[at : at + 1]:  # a call in between may shorten it
                address = -(-free // alignment) * alignment
                if address + size <= free + free_size:
                    return address
        return None

    def put(self, entry: _Taken) -> None:
        """Take a part of a free range."""
        address, size = entry.allocation.address, entry.size
        if entry.use is _Use.LIVE:
            insort(self.starts, address)
            self.used_bytes += size
        free = self._free_starts[bisect_right(self._free_starts, address) - 1]
        end = free + self._remove(free)
        if address > free:
            self._add(free, address - free)
        if address + size < end:
            self._add(address + size, end - address - size)

    def quarantine_live(self, address: int, size: int) -> None:
        """Put a live range into quarantine."""
        del self.starts[bisect_left(self.starts, address)]
        self.used_bytes -= size
        self.quarantine.append((address, size))
        self.quarantined_bytes += size

    def drop(self, address: int, entry: _Taken) -> None:
        """Free a range that is reserved or in quarantine."""
        if entry.use is _Use.QUARANTINED:
            if self.quarantine[0][0] == address:
                self.quarantine.popleft()
            else:  # it is larger than the limit
                self.quarantine.remove((address, entry.size))
            self.quarantined_bytes -= entry.size
        self._join(address, entry.size)

    def _join(self, address: int, size: int) -> None:
        """Make one free range of this and its free neighbours."""
        start, end = address, address + size
        index = bisect_left(self._free_starts, address)
        if index < len(self._free_starts) and self._free_starts[index] == end:
            end += self._remove(end)
        if index > 0:
            before = self._free_starts[index - 1]
            if before + self._free_sizes[before] == start:
                self._remove(before)
                start = before
        self._add(start, end - start)

    def _add(self, start: int, size: int) -> None:
        insort(self._free_starts, start)
        self._free_sizes[start] = size
        insort(self._by_size, (size, start))

    def _remove(self, start: int) -> int:
        size = self._free_sizes.pop(start)
        del self._free_starts[bisect_left(self._free_starts, start)]
        del self._by_size[bisect_left(self._by_size, (size, start))]
        return size


class AddressRanges:
    """The ranges of `nbytes` addresses from `base` on. Callers that change them hold a lock.

    Freed ranges are quarantined: the last 4,096, of at most `quarantine_bytes` together. They leave
    in the order of their frees, or at once if an allocation needs them. A larger range is not
    quarantined.

    Attributes:
        version: changes with every change of a range.
        quarantine_bytes: the limit of the quarantine; with 0 freed memory is reused at once.
        freed: the last freed allocations.
    """

    def __init__(self, base: int, nbytes: int) -> None:
        self._base = base
        self._nbytes = nbytes
        self._taken: dict[int, _Taken] = {}
        self._inside: dict[int, Allocation] = {}
        self._serials = itertools.count(1)
        self.version: int = 0
        self.quarantine_bytes: int = _QUARANTINE_BYTES
        self.freed: deque[Allocation] = deque(maxlen=_REMEMBERED)
        self._index = _Index(base, base + nbytes, (), ())
        self._index.version = self.version

    @property
    def used_bytes(self) -> int:
        """The bytes of live allocations, with rounding, outside of reserved ranges."""
        return self._current().used_bytes

    @property
    def starts(self) -> list[int]:
        """Sorted addresses of the live allocations. Callers do not change the list."""
        return self._current().starts

    def at(self, address: int) -> Allocation | None:
        """Return the live allocation that begins at `address`; this needs no lock."""
        allocation = self._inside.get(address)
        if allocation is not None:
            return allocation
        entry = self._taken.get(address)
        return entry.allocation if entry is not None and entry.use is _Use.LIVE else None

    def size_at(self, address: int) -> int:
        """Return the bytes that the allocation at `address` takes, with its rounding."""
        entry = self._taken.get(address)
        return 0 if entry is None or address in self._inside else entry.size

    def allocate(self, nbytes: int, size: int, alignment: int, origin: str) -> int:
        """Return the address of a new allocation of `nbytes`, which takes `size` bytes.

        Raises:
            OutOfMemory: no free range is large enough.
        """
        return self._place(nbytes, size, alignment, origin, _Use.LIVE)

    def reserve(self, nbytes: int, alignment: int) -> int:
        """Return the address of a range that holds nothing yet.

        Raises:
            OutOfMemory: no free range is large enough.
        """
        return self._place(nbytes, nbytes, alignment, "", _Use.RESERVED)

    def unreserve(self, address: int) -> None:
        """Free a reserved range, with the allocations in it."""
        entry = self._taken.get(address)
        if entry is None or entry.use is not _Use.RESERVED:
            return
        for shown in self.inside(address, entry.size):
            self.hide(shown.address)
        self._drop(address, entry)

    def show(self, address: int, nbytes: int, origin: str) -> None:
        """Make a part of a reserved range an allocation."""
        index = self._current()
        self.version += 1
        self._inside[address] = Allocation(address, nbytes, origin)
        self.version += 1
        if index.version + 2 == self.version:
            insort(index.starts, address)
            index.version = self.version

    def hide(self, address: int) -> None:
        """Remove an allocation made by `show`, if it exists."""
        index = self._current()
        self.version += 1
        allocation = self._inside.pop(address, None)
        self.version += 1
        if allocation is None:
            return
        self.freed.append(allocation)
        if index.version + 2 == self.version:
            del index.starts[bisect_left(index.starts, address)]
            index.version = self.version

    def inside(self, address: int, nbytes: int) -> list[Allocation]:
        """Return the allocations in a part of a reserved range."""
        return [
            shown for start, shown in self._inside.copy().items() if 0 <= start - address < nbytes
        ]

    def free(self, address: int) -> bool:
        """Free an allocation of `allocate`; False if there is none at that address."""
        index, entry = self._current(), self._taken.get(address)
        if entry is None or entry.use is not _Use.LIVE:
            return False
        freed = _Taken(entry.allocation, entry.size, _Use.QUARANTINED, next(self._serials))
        self.version += 1
        self._taken[address] = freed
        self.version += 1
        if index.version + 2 == self.version:
            index.quarantine_live(address, entry.size)
            index.version = self.version
        self.freed.append(entry.allocation)
        if entry.size > self.quarantine_bytes:
            self._drop(address, freed)
        while self._quarantine_is_full:
            self._release()
        return True

    @property
    def _quarantine_is_full(self) -> bool:
        index = self._current()
        return (
            index.quarantined_bytes > self.quarantine_bytes or len(index.quarantine) > _REMEMBERED
        )

    def _current(self) -> _Index:
        """Return the index, made again if it is out of date."""
        while (index := self._index).version != self.version:
            version = self.version
            index = _Index(
                self._base,
                self._base + self._nbytes,
                self._taken.copy().values(),
                self._inside.copy(),
            )
            index.version = version
            self._index = index
        return index

    def _place(self, nbytes: int, size: int, alignment: int, origin: str, use: _Use) -> int:
        """Take the smallest free range that is large enough, and return its address."""
        while True:
            index = self._current()
            address = index.find(size, alignment)
            if address is None:
                if not index.quarantine:
                    raise OutOfMemory(nbytes, self._nbytes - index.used_bytes, self._nbytes)
                self._release()
                continue
            new = _Taken(Allocation(address, nbytes, origin), size, use, 0)
            self.version += 1
            if self._taken.setdefault(address, new) is not new:
                continue  # a call of a finalizer or a signal handler took it meanwhile
            self.version += 1
            if index.version + 2 == self.version:
                index.put(new)
                index.version = self.version
                return address
            del self._taken[address]  # such a call changed other ranges, which may overlap
            self.version += 1

    def _release(self) -> None:
        """Release the oldest range from the quarantine."""
        address, _ = next(iter(self._current().quarantine), (0, 0))
        entry = self._taken.get(address)
        if entry is not None and entry.use is _Use.QUARANTINED:
            self._drop(address, entry)

    def _drop(self, address: int, entry: _Taken) -> None:
        """Make a range free."""
        index = self._current()
        self.version += 1
        taken = self._taken.pop(address, None)
        self.version += 1
        if taken is entry:
            if index.version + 2 == self.version:
                index.drop(address, entry)
                index.version = self.version
        elif taken is not None:  # a call in between has dropped this range, and made another one
            self._taken.setdefault(address, taken)
            self.version += 1
