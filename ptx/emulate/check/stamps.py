"""Stamps: which thread accessed memory, when, and by which instruction, in one number.

A stamp holds a thread's number in the launch plus one, its epoch, and the number of the site. A
site is an instruction that accesses memory. 0 stands for no access. Each block's threads have
numbers from a power of two on, so that shifts give the warp and the block. Vector clocks have
entries for threads, warps and blocks; `key_of_thread` and the functions after it name them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.errors import ObserverExhausted

Stamps = NDArray[np.int64]
Bools = NDArray[np.bool_]

SITE_BITS: Final = 14
EPOCH_BITS: Final = 21
EPOCH_SHIFT: Final = SITE_BITS
THREAD_SHIFT: Final = SITE_BITS + EPOCH_BITS
MOST_THREADS: Final = 1 << (63 - THREAD_SHIFT)
MOST_EPOCHS: Final = (1 << EPOCH_BITS) - 1
MOST_SITES: Final = 1 << SITE_BITS
WARP_SHIFT: Final = 5
IN_FLIGHT: Final = MOST_EPOCHS << EPOCH_SHIFT
"""The epoch of an asynchronous copy that no thread has waited for: it is never over."""

_EPOCHS: Final = np.int64(MOST_EPOCHS)
_SITES: Final = np.int64(MOST_SITES - 1)
_THREAD, _WARP, _BLOCK, _STRONG, _FENCED = range(5)
_KINDS: Final = 5


class EpochsExhausted(ObserverExhausted):
    """Threads reach more epochs than a stamp can hold."""

    def __init__(self) -> None:
        super().__init__(
            f"after {MOST_EPOCHS - 1} barriers, fences and operations that synchronise, which is"
            ' as far as the race check counts\n  check a smaller input, or leave "race" out of'
            " the checks"
        )


def block_shift(threads_per_block: int) -> int:
    """Return by how much a thread's number is shifted to give its block's."""
    return max(WARP_SHIFT, (threads_per_block - 1).bit_length())


def threads_of(stamps: Stamps) -> Stamps:
    """Return the numbers of the threads, -1 where there is no access."""
    return (stamps >> THREAD_SHIFT) - 1


def epochs_of(stamps: Stamps) -> Stamps:
    """Return the epochs."""
    return (stamps >> EPOCH_SHIFT) & _EPOCHS


def sites_of(stamps: Stamps) -> Stamps:
    """Return the numbers of the sites."""
    return stamps & _SITES


def in_flight(stamps: Stamps) -> Bools:
    """Return which are of asynchronous copies that no thread has waited for."""
    flying: Bools = stamps & IN_FLIGHT == IN_FLIGHT
    return flying


def key_of_thread(thread: int) -> int:
    """The entry of a thread alone."""
    return thread * _KINDS + _THREAD


def key_of_strong(thread: int) -> int:
    """The entry of a thread's atomic and volatile writes, which a thread that acquires sees."""
    return thread * _KINDS + _STRONG


def key_of_fenced(thread: int, shift: int) -> int:
    """Return the key for the work of a block's threads before a fence and a later barrier."""
    return (thread >> shift) * _KINDS + _FENCED


def key_of_warp(thread: int) -> int:
    """The entry of a thread's warp."""
    return (thread >> WARP_SHIFT) * _KINDS + _WARP


def key_of_block(thread: int, shift: int) -> int:
    """The entry of a thread's block."""
    return (thread >> shift) * _KINDS + _BLOCK
