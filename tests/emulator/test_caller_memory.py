"""Reads of a caller's memory report the range that cannot be read."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator

import pytest

from cudadrv.emulator.caller_memory import (
    UnreadableError,
    copied_ranges,
    is_accessible,
    is_readable,
    read_ranges,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs process_vm_readv")
PAGE = mmap.PAGESIZE
HOLE = 2  # of five pages


@pytest.fixture
def pages() -> Iterator[int]:
    """The address of five pages, of which the third cannot be read."""
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    size, flags = ctypes.c_size_t(5 * PAGE), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    address = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, ctypes.c_long(0))
    ctypes.memmove(address, bytes(range(16)), 16)
    assert libc.mprotect(ctypes.c_void_p(address + HOLE * PAGE), ctypes.c_size_t(PAGE), 0) == 0
    yield address
    assert libc.munmap(ctypes.c_void_p(address), size) == 0


def test_ranges_are_read_in_their_order(pages: int) -> None:
    ranges = [(pages + 4, 4), (pages, 2), (pages + 8, 1), (pages + PAGE, 3)]
    assert read_ranges(ranges) == copied_ranges(ranges) == bytes([4, 5, 6, 7, 0, 1, 8, 0, 0, 0])
    many = [(pages + number % 16, 1) for number in range(3000)]
    assert read_ranges(many) == bytes(number % 16 for number in range(3000))


def test_the_first_range_that_cannot_be_read_is_named(pages: int) -> None:
    hole, right = pages + HOLE * PAGE, (pages, 8)
    wrong = [(hole, 1), (hole - 1, 2), (0, 8), (16, 8), ((1 << 64) - 4, 8), (1 << 63, 1)]
    named = {}
    for bad in wrong:
        for position in (0, 1, 2, 1500):
            with pytest.raises(UnreadableError) as caught:
                read_ranges([*[right] * position, bad, right])
            named[bad, position] = caught.value.index
    assert named == {(bad, position): position for bad, position in named}


def test_a_range_is_readable_if_each_page_is(pages: int) -> None:
    hole, end = pages + HOLE * PAGE, pages + 5 * PAGE
    cells = {
        (pages, HOLE * PAGE): True, (pages + 1, HOLE * PAGE - 1): True, (pages, 0): True,
        (hole + PAGE, 2 * PAGE): True, (end - 1, 1): True, (0, 0): True,
        (pages, HOLE * PAGE + 1): False, (hole + PAGE - 1, 2): False, (pages, 5 * PAGE): False,
        (0, 1): False, (pages, 1 << 40): False, (pages, (1 << 64) - 1): False, (1, 1): False,
    }  # fmt: skip
    assert {cell: is_readable(*cell) for cell in cells} == cells


def test_a_range_is_writable_if_each_page_is_and_keeps_its_bytes(pages: int) -> None:
    libc = ctypes.CDLL(None)
    read_only = pages + 4 * PAGE
    assert not libc.mprotect(ctypes.c_void_p(read_only), ctypes.c_size_t(PAGE), mmap.PROT_READ)
    hole = pages + HOLE * PAGE
    cells = {
        (pages, HOLE * PAGE): True, (pages + 3, 9): True, (hole + PAGE, PAGE): True,
        (read_only, 1): False, (hole + PAGE, PAGE + 1): False, (read_only + PAGE - 1, 1): False,
        (hole, 1): False, (pages, 5 * PAGE): False, (0, 1): False, (pages, 1 << 62): False,
    }  # fmt: skip
    assert {cell: is_accessible(*cell, is_written=True) for cell in cells} == cells
    assert is_accessible(read_only, PAGE, is_written=False)
    assert ctypes.string_at(pages, 16) == bytes(range(16))
    many = mmap.mmap(-1, 3000 * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(many))
    libc.mprotect(ctypes.c_void_p(start + 2000 * PAGE), ctypes.c_size_t(PAGE), mmap.PROT_READ)
    assert is_accessible(start, 2000 * PAGE, is_written=True)
    assert not is_accessible(start, 3000 * PAGE, is_written=True)
