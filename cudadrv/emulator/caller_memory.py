"""Memory of the caller: reads that report an unmapped address, where a load ends the process."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final, TypeAlias, TypeVar

from .call_error import invalid_value

Range: TypeAlias = tuple[int, int]
"""An address and a number of bytes."""
_MOST_RANGES: Final = 1024  # IOV_MAX of Linux
_ADDRESS_BYTES: Final = 1 << 64
_Read: TypeAlias = Callable[..., int]
ReadRanges: TypeAlias = Callable[[Sequence[Range]], bytes]


class _Range(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("address", ctypes.c_size_t), ("nbytes", ctypes.c_size_t))


# Any type of ctypes; their base is private.
_Data = TypeVar("_Data", bound=Any)
_MOST_PAGES: Final = 4096
_pages: Final[set[int]] = set()
"""Pages that were found mapped; the oldest may have gone since, as a caller's fault."""


class UnreadableError(Exception):
    """Memory of a range cannot be read; `index` is that of the range."""

    def __init__(self, index: int) -> None:
        self.index = index
        super().__init__(index)


@cache
def _read_function() -> _Read | None:
    """Return process_vm_readv, which checks addresses; None where the system does not have it."""
    try:
        function: _Read = ctypes.CDLL(None, use_errno=True).process_vm_readv
    except (AttributeError, OSError, TypeError):
        return None
    byte = ctypes.create_string_buffer(1)
    # A sandbox may forbid it.
    return function if _transferred(function, byte, [(ctypes.addressof(byte), 1)]) == 1 else None


def _transferred(read: _Read, into: ctypes.Array[ctypes.c_char], ranges: Sequence[Range]) -> int:
    local = _Range(ctypes.addressof(into), len(into))
    remote = (_Range * len(ranges))(*[_Range(*each) for each in ranges])
    zero = ctypes.c_ulong(0)
    return read(
        os.getpid(),
        ctypes.byref(local),
        ctypes.c_ulong(1),
        remote,
        ctypes.c_ulong(len(ranges)),
        zero,
    )


def copied_ranges(ranges: Sequence[Range]) -> bytes:
    """Return the same as `read_ranges`, where all ranges are known to be readable."""
    return b"".join([ctypes.string_at(address, nbytes) for address, nbytes in ranges])


def read_ranges(ranges: Sequence[Range]) -> bytes:
    """Return the bytes of all ranges, one after the other.

    Raises:
        UnreadableError: one of them is not mapped, or not readable.
    """
    read = _read_function()
    if read is None:
        return copied_ranges(ranges)
    parts = []
    for first in range(0, len(ranges), _MOST_RANGES):
        some = ranges[first : first + _MOST_RANGES]
        into = ctypes.create_string_buffer(sum(nbytes for _, nbytes in some))
        # It stops at the first range that it cannot read whole.
        missing = len(into) - max(0, _transferred(read, into, some))
        if missing:
            index = len(some)
            while missing > 0:
                index -= 1
                missing -= some[index][1]
            raise UnreadableError(first + index)
        parts.append(into.raw)
    return b"".join(parts)


def mapped(address: int, nbytes: int) -> int:
    """Return the address of memory that the caller has mapped.

    Of more than two pages only the first and the last are checked, so that the cost is the same.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE, as some byte is not mapped.
    """
    page = mmap.PAGESIZE
    first, last = address // page, (address + nbytes - 1) // page
    if nbytes <= 0 or (first in _pages and last in _pages):
        return address
    if not is_readable(address, 1) or not is_readable(address + nbytes - 1, 1):
        raise invalid_value(f"{address:#x} is no address of {nbytes} bytes")
    if len(_pages) > _MOST_PAGES:
        _pages.clear()
    _pages.update((first, last))
    return address


def view_at(kind: type[_Data], address: int) -> _Data:
    """Return an object of ctypes in the caller's memory.

    Raises:
        CallError: as `mapped`.
    """
    found: _Data = kind.from_address(mapped(address, ctypes.sizeof(kind)))
    return found


def text_at(address: int) -> bytes | None:
    """Return the caller's text, which a NUL ends; None if its address is null.

    Raises:
        CallError: as `mapped`.
    """
    if not address:
        return None
    parts: list[bytes] = []
    while True:
        room = mmap.PAGESIZE - address % mmap.PAGESIZE
        text, end, _ = ctypes.string_at(mapped(address, room), room).partition(b"\0")
        parts.append(text)
        if end:
            return b"".join(parts)
        address += room


def is_readable(address: int, nbytes: int) -> bool:
    """Return whether each byte of a range can be read; True if the system cannot tell."""
    if nbytes <= 0 or _read_function() is None:
        return True
    end = address + nbytes
    if not address or end > _ADDRESS_BYTES:
        return False
    page = mmap.PAGESIZE
    # The last byte first: a count that is far too large ends there.
    pages = iter(range(address - address % page + page, end, page))
    try:
        read_ranges([(end - 1, 1), (address, 1)])
        while some := [(place, 1) for place in islice(pages, _MOST_RANGES)]:
            read_ranges(some)
    except UnreadableError:
        return False
    return True
