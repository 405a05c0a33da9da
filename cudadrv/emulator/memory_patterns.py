"""Patterns in memory that was never written, or that is free.

With a timeline, such memory holds no zeros, and no plausible numbers. If reads of unwritten memory
are checked, pinned and managed memory holds different numbers everywhere, because writes of the
host there are not seen. An 8-byte word that still has its number counts as unwritten. The host is
no more likely to write this number than any other.
"""

from __future__ import annotations

import ctypes
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.device_memory import WrittenBytes

FRESH: Final = 0xCD
"""Each byte of memory that was not written yet."""
FREED: Final = 0xDD
"""Each byte of memory that was freed."""
# Of one allocation; the host has that much less memory for each device.
_MOST_BYTES: Final = 64 << 20
MOST_BYTES: Final = 64 << 20
"""The limit for one allocation; larger ones count as written."""
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)  # odd, so that all words of an allocation differ
_FIRST: Final = np.uint64(0xD1B54A32D192ED03)
_WORD: Final = 8
_LEAST: Final = 4  # bytes after the last word that are not written by chance
_ROUNDED: Final = 16  # as `MappedHostMemory` is


def fill(address: int, nbytes: int, pattern: int) -> None:
    """Write a pattern over host memory, or over the start of a large range."""
    ctypes.memset(address, pattern, min(nbytes, _MOST_BYTES))


class PatternedBytes(WrittenBytes):
    """The flags of an allocation, whose memory is filled now."""

    def __init__(self, address: int, nbytes: int) -> None:
        super().__init__(np.zeros(-(-nbytes // _ROUNDED) * _ROUNDED, np.uint8), None)
        self._now: NDArray[np.uint8] = np.frombuffer(
            memoryview((ctypes.c_uint8 * nbytes).from_address(address)), np.uint8
        )
        self._now[:] = _pattern(0, nbytes)
        tail = nbytes % _WORD
        if tail < _LEAST:
            self.mark(nbytes - tail, tail)

    def settle(self) -> None:
        """Mark changed words as written."""
        self._settle(0, len(self._now))

    def settled(self, start: int, nbytes: int) -> NDArray[np.uint8]:
        """Return the current flags of some bytes."""
        flags = self.of(start, nbytes)
        if not flags.all():
            self._settle(start // _WORD, start + nbytes)
        return flags

    def _settle(self, first: int, end: int) -> None:
        """Update from word number `first` to a byte, or a little further."""
        end = min(-(-end // _WORD) * _WORD, len(self._now))
        start, whole_words_end = first * _WORD, end // _WORD * _WORD
        changed = self._now[start:end] != _pattern(first, end - start)
        changed &= self.of(start, end - start) == 0  # kernels mark their writes themselves
        words = changed[: whole_words_end - start].view(np.uint64) != 0
        self.elements(_WORD)[first : whole_words_end // _WORD][words] = self.whole[_WORD]
        if changed[whole_words_end - start :].any():
            self.mark(whole_words_end, end - whole_words_end)


def _pattern(first: int, nbytes: int) -> NDArray[np.uint8]:
    """Return the pattern of this many bytes from word number `first` on."""
    with np.errstate(over="ignore"):
        numbers = np.arange(first, first + -(-nbytes // _WORD), dtype=np.uint64)
        return (numbers * _STEP + _FIRST).view(np.uint8)[:nbytes]
