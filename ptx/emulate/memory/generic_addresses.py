"""Generic addresses: the windows of the spaces among them, and the space that one lies in.

PTX ISA, "Generic Addressing". Device memory starts above the windows. CODE is no memory: its
addresses stand for functions. The windows lie at odd distances, so that an index that is out by a
power of two meets no other window.
"""

from __future__ import annotations

from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses

CODE_WINDOW = 0x0400_0000
SHARED_WINDOW = 0x3700_0000
LOCAL_WINDOW = 0x7D00_0000
PARAM_WINDOW = 0xC500_0000
WINDOW_BYTES = 0x0100_0000
NEAR_WINDOW = 0x0200_0000
"""How far from a window's start an address is still taken for one of its space, out of bounds."""


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
