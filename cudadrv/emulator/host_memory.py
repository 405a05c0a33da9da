"""Pinned and managed memory: ordinary memory of the host that the driver remembers."""

from __future__ import annotations

import ctypes
import mmap
from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass

from ptx.emulate.memory.host_memory import MappedHostMemory


@dataclass(frozen=True, slots=True)
class HostPiece:
    """A page-locked or managed allocation: `nbytes` at `address`, made in context `context`."""

    address: int
    nbytes: int
    context: int
    ordinal: int
    number: int
    managed: bool
    # Alive as long as the allocation is.
    pages: mmap.mmap
    view: ctypes.Array[ctypes.c_char]


class HostMemory:
    """The live allocations of cuMemHostAlloc and cuMemAllocManaged, by address."""

    def __init__(self) -> None:
        self._pieces: dict[int, HostPiece] = {}
        self._starts: list[int] = []
        self._numbered = 0

    def allocate(
        self, nbytes: int, context: int, ordinal: int, *, managed: bool = False
    ) -> HostPiece:
        """Whole pages, zeroed, that hold `nbytes`.

        Raises:
            OSError, ValueError, OverflowError: the host has not that much.
        """
        pages = mmap.mmap(-1, nbytes)
        view = (ctypes.c_char * nbytes).from_buffer(pages)
        self._numbered += 1
        piece = HostPiece(
            ctypes.addressof(view), nbytes, context, ordinal, self._numbered, managed, pages, view
        )
        insort(self._starts, piece.address)
        self._pieces[piece.address] = piece
        return piece

    def free(self, address: int, *, managed: bool = False) -> bool:
        """Forget an allocation of this kind; False if none starts there."""
        piece = self._pieces.get(address)
        if piece is None or piece.managed is not managed:
            return False
        del self._pieces[address]
        del self._starts[bisect_left(self._starts, address)]
        return True

    def reachable(self, address: int) -> MappedHostMemory | None:
        """The allocation that holds an address, as kernels reach it: at the same address."""
        piece = self.find(address)
        return None if piece is None else MappedHostMemory(piece.address, piece.nbytes)

    def find(self, address: int) -> HostPiece | None:
        """The allocation that holds an address."""
        at = bisect_right(self._starts, address) - 1
        if at < 0:
            return None
        piece = self._pieces[self._starts[at]]
        return piece if address < piece.address + piece.nbytes else None
