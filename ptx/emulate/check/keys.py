"""Keys of those whose time is told: a thread, its warp or block, or a part of what they did."""

from __future__ import annotations

from typing import Final

from ptx.emulate.check.stamps import WARP_SHIFT

_THREAD, _WARP, _BLOCK, _STRONG, _FENCED = range(5)
_KINDS: Final = 5


def key_of_thread(thread: int) -> int:
    """The key of a thread alone."""
    return thread * _KINDS + _THREAD


def key_of_strong(thread: int) -> int:
    """The key of a thread's atomic and volatile writes, which are seen by who takes over."""
    return thread * _KINDS + _STRONG


def key_of_fenced(thread: int, shift: int) -> int:
    """The key of what each thread of a block had before a fence and a barrier behind it."""
    return (thread >> shift) * _KINDS + _FENCED


def key_of_warp(thread: int) -> int:
    """The key of a thread's warp."""
    return (thread >> WARP_SHIFT) * _KINDS + _WARP


def key_of_block(thread: int, shift: int) -> int:
    """The key of a thread's block."""
    return (thread >> shift) * _KINDS + _BLOCK
