"""Generic addresses: the spaces that they lie in, and lanes grouped by that.

PTX ISA, "Generic Addressing".
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.accessing_threads import AccessingThreads
from ptx.emulate.memory.site import Site
from ptx.emulate.memory.windows import LOCAL_WINDOW, NEAR_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from ptx.emulate.model.addresses import Addresses, Index, addresses_in

_Threads = TypeVar("_Threads", bound=AccessingThreads)
Group = tuple[Index, _Threads, Addresses]  # positions, just these threads, their addresses

_WINDOWS = (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW), ("param", PARAM_WINDOW))


def in_window(addresses: Addresses, offset: int) -> tuple[str, Addresses]:
    """The space that generic addresses lie in, or near, and the addresses within it."""
    low, high = addresses.lowest() + offset, addresses.highest() + offset
    for space, start in _WINDOWS:
        if start - NEAR_WINDOW <= low and high < start + NEAR_WINDOW:
            return space, addresses.moved(-start)
    return "global", addresses


def is_global(addresses: Addresses, offset: int, site: Site) -> bool:
    """Whether addresses that lie in one space are in global memory."""
    return site.space == "global" or (
        site.space == "generic" and in_window(addresses, offset)[0] == "global"
    )


def is_mixed(addresses: Addresses, offset: int) -> bool:
    """Whether generic addresses lie in several spaces."""
    if addresses.varying is None:
        return False
    low, high = addresses.lowest() + offset, addresses.highest() + offset
    for _, start in _WINDOWS:
        for edge in (start - NEAR_WINDOW, start + NEAR_WINDOW):
            if low < edge <= high:
                return True
    return False


def divide(threads: _Threads, addresses: Addresses, offset: int) -> list[Group[_Threads]]:
    """Lanes grouped by the space that their generic addresses lie in.

    Each group gives its positions, just these threads (without registers) and their addresses
    without the offset.
    """
    every = addresses.every(threads.n)
    edges = [edge for _, at in _WINDOWS for edge in (at - NEAR_WINDOW, at + NEAR_WINDOW)]
    groups = np.searchsorted(edges, every + offset, side="right")
    groups[groups % 2 == 0] = 0  # between windows, all of which is global
    return _parts(threads, every, [(groups == group).nonzero()[0] for group in np.unique(groups)])


def _parts(
    threads: _Threads, every: NDArray[np.int64], groups: list[Index]
) -> list[Group[_Threads]]:
    return [(each, threads.subset(each, ()), addresses_in(every[each])) for each in groups]


def divide_into(
    threads: _Threads, addresses: Addresses, groups: list[Index]
) -> list[Group[_Threads]]:
    """Lanes in groups that are known, such as those that reach memories of several devices."""
    return _parts(threads, addresses.every(threads.n), groups)
