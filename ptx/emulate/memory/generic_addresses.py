"""Generic addresses: the spaces that they lie in.

PTX ISA, "Generic Addressing".
"""

from __future__ import annotations

from ptx.emulate.memory.site import Site
from ptx.emulate.memory.windows import LOCAL_WINDOW, NEAR_WINDOW, PARAM_WINDOW, SHARED_WINDOW
from ptx.emulate.model.addresses import Addresses

WINDOWS = (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW), ("param", PARAM_WINDOW))


def in_window(addresses: Addresses, offset: int) -> tuple[str, Addresses]:
    """The space that generic addresses lie in, or near, and the addresses within it."""
    low, high = addresses.lowest() + offset, addresses.highest() + offset
    for space, start in WINDOWS:
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
    for _, start in WINDOWS:
        for edge in (start - NEAR_WINDOW, start + NEAR_WINDOW):
            if low < edge <= high:
                return True
    return False
