"""Generic addresses: the windows of the spaces among them, and the space that one lies in.

PTX ISA, "Generic Addressing". Device memory starts above the windows. CODE is no memory: its
addresses stand for functions. The windows lie at odd distances, so that an index that is out by a
power of two meets no other window.

An address in the shared window has an offset of 18 bits. Above it stands 0 for the block's own
memory, or 1 + the rank of a block in its cluster of several ("mapa", "getctarank"). Ranks are for
`.shared::cluster` and for generic addresses: in `.shared` such an address is out of bounds.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import Threads
from ptx.isa.instruction_facts import InstructionKind

CODE_WINDOW = 0x0400_0000
SHARED_WINDOW = 0x3700_0000
LOCAL_WINDOW = 0x7D00_0000
PARAM_WINDOW = 0xC500_0000
WINDOW_BYTES = 0x0100_0000
NEAR_WINDOW = 0x0200_0000
"""Distance from a window's start up to which an address counts as out of bounds of its space."""


WINDOWS = (("shared", SHARED_WINDOW), ("local", LOCAL_WINDOW), ("param", PARAM_WINDOW))


def in_window(addresses: Addresses, offset: int) -> tuple[str, Addresses]:
    """The space that generic addresses lie in, or near, and the addresses within it."""
    low, high = addresses.lowest() + offset, addresses.highest() + offset
    for space, start in WINDOWS:
        if start - NEAR_WINDOW <= low and high < start + NEAR_WINDOW:
            return space, addresses.moved(-start)
    return "global", addresses


def are_global(addresses: Addresses, offset: int, count: int) -> NDArray[np.bool_]:
    """Return which of the generic addresses of `count` threads lie in global memory."""
    every = addresses.every(count) + offset
    near = [(every >= start - NEAR_WINDOW) & (every < start + NEAR_WINDOW) for _, start in WINDOWS]
    found: NDArray[np.bool_] = ~reduce(np.logical_or, near)
    return found


def is_global(addresses: Addresses, offset: int, site: Site) -> bool:
    """Return whether addresses that lie in one space are in global memory."""
    return site.space == "global" or (
        site.space == "generic" and in_window(addresses, offset)[0] == "global"
    )


def by_space(every: Index, site: Site) -> list[tuple[str, Index | None, Index]]:
    """Return the addresses by space, each with its threads; None for all threads."""
    if site.facts.space == "const":
        return []
    if site.space != "generic":
        return [(site.space, None, every)]
    spaces = np.full(len(every), "global", dtype="U6")
    starts = np.zeros(len(every), dtype=np.int64)
    for space, start in WINDOWS:
        inside = (every >= start) & (every < start + WINDOW_BYTES)
        spaces[inside], starts[inside] = space, start
    parts: list[tuple[str, Index | None, Index]] = []
    for space in np.unique(spaces).tolist():
        chosen = np.flatnonzero(spaces == space)
        everyone = len(chosen) == len(every)
        addresses = every[chosen] - starts[chosen]
        parts.append((space, None if everyone else chosen, addresses))
    return parts


def is_mixed(addresses: Addresses, offset: int) -> bool:
    """Return whether generic addresses lie in several spaces."""
    if addresses.varying is None:
        return False
    low, high = addresses.lowest() + offset, addresses.highest() + offset
    for _, start in WINDOWS:
        for edge in (start - NEAR_WINDOW, start + NEAR_WINDOW):
            if low < edge <= high:
                return True
    return False


OFFSET_BITS = 18  # more than the shared memory of any block
_OFFSET_MASK = (1 << OFFSET_BITS) - 1
_RANK_MASK = 63 << OFFSET_BITS  # up to the size of the shared window


def map_address(address: Value, rank: Value, blocks: int) -> Value:
    """`mapa`: the address in the shared memory of the block of a rank, in the same window.

    `blocks` of a cluster; the only one has its own addresses, so that all others are far out.
    """
    kind: Any = address.dtype.type
    window_part = (rank.astype(kind) + kind(1)) << kind(OFFSET_BITS)
    if blocks == 1:
        window_part = np.where(rank == 0, kind(0), window_part)[()]
    return (address & ~kind(_RANK_MASK)) | (window_part & kind(_RANK_MASK))


def rank_of(address: Value, own_rank: Value) -> Value:
    """`getctarank`: the rank of the block whose shared memory an address lies in.

    `own_rank` is the rank of each thread's own block.
    """
    part = (address.astype(np.uint64) & np.uint64(_RANK_MASK)) >> np.uint64(OFFSET_BITS)
    ranks = np.where(part > 0, part.astype(np.uint32) - np.uint32(1), own_rank)[()]
    return ranks.astype(np.uint32)


def owners(
    threads: Threads, addresses: Addresses, offset: int, site: Site
) -> tuple[Index, NDArray[np.int64]]:
    """Return each thread's target block in the chunk, and the offset in its shared memory.

    If there is no such block, the offset is the address, which is beyond any block's memory.
    """
    blocks = threads.blocks.cluster.blocks if _reaches_others(site) else 1
    every = addresses.every(threads.n) + offset
    slot = np.asarray(threads.place("slot"), dtype=np.int64)
    owner, offsets = owners_of(every, slot, blocks)
    return np.broadcast_to(owner, (threads.n,)), offsets


def owners_of(
    addresses: Index, slot: Index, blocks: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the same for addresses of threads in some slots, in clusters of so many blocks."""
    cluster = blocks if blocks > 1 else -1
    rank = (addresses >> OFFSET_BITS) - 1
    wrong = (addresses < 0) | (rank >= cluster) & (rank >= 0)
    offsets = np.where(wrong, addresses, addresses & _OFFSET_MASK)
    return np.where((rank >= 0) & ~wrong, slot // cluster * cluster + rank, slot), offsets


def _reaches_others(site: Site) -> bool:
    """Return whether an instruction may name another block's memory."""
    facts = site.facts
    if facts.reaches_cluster or facts.kind is InstructionKind.MBARRIER:
        return True
    return "shared" not in facts.spaces
