"""Memory of the caller: checks of addresses at which a load or a store would end the process."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from .call_error import CallError, invalid_value

Range: TypeAlias = tuple[int, int]
"""An address and a number of bytes."""
_MOST_RANGES: Final = 1024  # IOV_MAX of Linux
_ADDRESS_BYTES: Final = 1 << 64
_Transfer: TypeAlias = Callable[..., int]
ReadRanges: TypeAlias = Callable[[Sequence[Range]], bytes]


class _Range(ctypes.Structure):
    """struct iovec."""

    _fields_ = (("address", ctypes.c_size_t), ("nbytes", ctypes.c_size_t))


# Any type of ctypes; their base is private.
_Data = TypeVar("_Data", bound=Any)
_MOST_PAGES: Final = 4096
_pages: Final[set[tuple[int, bool]]] = set()
"""Pages that can be read, or with True written; some may have gone since, as a caller's fault."""


class UnreadableError(Exception):
    """Memory of a range cannot be read; `index` is that of the range."""

    def __init__(self, index: int) -> None:
        self.index = index
        super().__init__(index)


@cache
def _function(name: str) -> _Transfer | None:
    """Return process_vm_readv or process_vm_writev; None where the system does not have it."""
    try:
        function: _Transfer = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (AttributeError, OSError, TypeError):
        return None
    byte = ctypes.create_string_buffer(1)
    # A sandbox may forbid it.
    return function if _transferred(function, byte, [(ctypes.addressof(byte), 1)]) == 1 else None


def _read_function() -> _Transfer | None:
    return _function("process_vm_readv")


def _transferred(
    transfer: _Transfer, local: ctypes.Array[ctypes.c_char], ranges: Sequence[Range]
) -> int:
    remote = (_Range * len(ranges))(*[_Range(*each) for each in ranges])
    return _moved(transfer, local, remote, len(ranges))


def _moved(
    transfer: _Transfer, local: ctypes.Array[ctypes.c_char], remote: object, count: int
) -> int:
    """Return how many bytes were transferred between memory here and so many structs iovec."""
    own = _Range(ctypes.addressof(local), len(local))
    one, many, zero = map(ctypes.c_ulong, (1, count, 0))
    return transfer(os.getpid(), ctypes.byref(own), one, remote, many, zero)


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


def mapped(address: int, nbytes: int, *, is_written: bool = False) -> int:
    """Return the address of memory that the caller has mapped.

    Of more than two pages only the first and the last are checked, so that the cost is the same.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE, as some byte cannot be read, or written.
    """
    page = mmap.PAGESIZE
    first, last = (address // page, is_written), ((address + nbytes - 1) // page, is_written)
    if nbytes <= 0 or (first in _pages and last in _pages):
        return address
    if not (
        is_accessible(address, 1, is_written=is_written)
        and is_accessible(address + nbytes - 1, 1, is_written=is_written)
    ):
        raise _inaccessible(address, nbytes, is_written)
    if len(_pages) > _MOST_PAGES:
        _pages.clear()
    _pages.update((first, last))
    return address


def whole_range(address: int, nbytes: int, *, is_written: bool) -> int:
    """Return the address of memory of the caller, of which each page can be read, or written.

    Raises:
        CallError: CUDA_ERROR_INVALID_VALUE, as some byte cannot be.
    """
    if not is_accessible(address, nbytes, is_written=is_written):
        raise _inaccessible(address, nbytes, is_written)
    return address


def _inaccessible(address: int, nbytes: int, is_written: bool) -> CallError:
    use = "written" if is_written else "read"
    return invalid_value(f"{address:#x} is no address of {nbytes} bytes that can be {use}")


def forget_pages() -> None:
    """Check pages again that were found mapped, as the emulator releases memory of the host."""
    _pages.clear()


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
    return is_accessible(address, nbytes, is_written=False)


def is_accessible(address: int, nbytes: int, *, is_written: bool) -> bool:
    """Return whether each byte of a range can be read, or written; True if the system cannot tell.

    The check of writing stores a byte of each page that it has just read.
    """
    if nbytes <= 0 or _read_function() is None:
        return True
    end = address + nbytes
    if not address or end > _ADDRESS_BYTES:
        return False
    # The last byte first: a count that is far too large ends there.
    ends = np.array([[end - 1, 1], [address, 1]], np.uint64)
    if not _can_be_touched(ends, is_written=is_written):
        return False
    page = mmap.PAGESIZE
    step = page * _MOST_RANGES
    for first in range(address - address % page + page, end, step):
        places = np.arange(first, min(end, first + step), page, dtype=np.uint64)
        ranges = np.stack([places, np.ones_like(places)], axis=1)
        if not _can_be_touched(ranges, is_written=is_written):
            return False
    return True


def _can_be_touched(ranges: npt.NDArray[np.uint64], *, is_written: bool) -> bool:
    """Read a byte at each address, and store it there again if it is to be written."""
    local = ctypes.create_string_buffer(len(ranges))
    # `ranges.ctypes` imports a module, which fails once the interpreter ends.
    remote = (ctypes.c_char * ranges.nbytes).from_buffer(ranges.data)
    for name in ("process_vm_readv", "process_vm_writev")[: 1 + is_written]:
        transfer = _function(name)
        if transfer and _moved(transfer, local, remote, len(ranges)) != len(ranges):
            return False
    return True
