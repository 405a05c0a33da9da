"""Slow paths of memory accesses: the exact check, and the words of a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.errors import MemoryFault, Misaligned, OutOfBounds, UseAfterFree
from ptx.emulate.memory import DeviceMemory
from ptx.emulate.span import Span

if TYPE_CHECKING:
    from ptx.emulate.access import Site
    from ptx.emulate.fibre import Fibre


def find_memory(fibre: Fibre, addresses: Span, offset: int, site: Site) -> DeviceMemory:
    """The memory that holds all addresses, found in the allocation table.

    The site remembers the allocation where one holds them all.

    Raises:
        MemoryFault: a lane's address is in no live allocation, or misaligned.
    """
    launch = fibre.chunk.launch
    version = launch.memory.version
    low, high = addresses.lowest() + offset, addresses.highest() + offset + site.total
    memory = _memory_of(low, [launch.memory, *launch.device.peers])
    every = addresses.addresses(fibre.n if addresses.part is not None else 1) + offset
    misaligned = (every & (site.total - 1)) != 0
    if memory is not None:
        allocation = memory.find(low)
        if allocation is not None and high <= allocation.end:
            if not misaligned.any():
                if memory is launch.memory:  # a peer's table changes under another version
                    site.bounds = (allocation.address, allocation.end, version, memory)
                return memory
            inside: NDArray[np.bool_] = np.ones(len(every), dtype=np.bool_)
        else:
            inside = _inside(memory, every, site.total)
        if inside.all() and not misaligned.any():
            return memory
    else:
        inside = np.zeros(len(every), dtype=np.bool_)
    at = int(np.argmax(~inside)) if not inside.all() else int(np.argmax(misaligned))
    raise _global_fault(fibre, at, int(every[at]), site, inside=bool(inside[at]))


def _memory_of(address: int, memories: list[DeviceMemory]) -> DeviceMemory | None:
    for memory in memories:
        if memory.base <= address < memory.base + memory.nbytes:
            return memory
    return None


def _inside(memory: DeviceMemory, every: NDArray[np.int64], nbytes: int) -> NDArray[np.bool_]:
    starts, ends = memory.bounds()
    if not len(starts):
        return np.zeros(len(every), dtype=np.bool_)
    found = np.searchsorted(starts, every, side="right") - 1
    inside: NDArray[np.bool_] = (found >= 0) & (every + nbytes <= ends[np.maximum(found, 0)])
    return inside


def _global_fault(
    fibre: Fibre, position: int, address: int, site: Site, *, inside: bool
) -> MemoryFault:
    launch = fibre.chunk.launch
    memory = _memory_of(address, [launch.memory, *launch.device.peers]) or launch.memory
    where = launch.where(fibre, position, site.instruction)
    access = f"{'write' if site.writes else 'read'} of {site.total} bytes at {address:#x}"
    if inside:
        return Misaligned(
            f"misaligned {access}, which is no multiple of {site.total}",
            where, address=address, nbytes=site.total, space="global",
        )  # fmt: skip
    freed = memory.find_freed(address)
    nearest = memory.nearest(address)
    if freed is not None and (nearest is None or not nearest.address <= address < nearest.end):
        return UseAfterFree(
            f"{access} after it was freed", where, address=address, nbytes=site.total,
            space="global", nearest=f"it belonged to the allocation of {freed}",
        )  # fmt: skip
    words = "no memory is allocated" if address else "this is a null pointer"
    if nearest is not None and address:
        distance = (
            address - nearest.end if address >= nearest.address else address - nearest.address
        )
        side = f"{distance} bytes behind" if distance >= 0 else f"{-distance} bytes before"
        if nearest.address <= address < nearest.end:
            side = "across the end of"
        words = f"{side} the nearest allocation of {nearest}"
    return OutOfBounds(
        f"out-of-bounds {access}", where, address=address, nbytes=site.total, space="global",
        nearest=words,
    )  # fmt: skip


def memory_fault(
    fibre: Fibre, addresses: Span, offset: int, site: Site, space: str, limit: int
) -> MemoryFault:
    """The fault of the first lane that is outside a window of `limit` bytes, or misaligned."""
    every = addresses.addresses(fibre.n) + offset
    outside = (every < 0) | (every + site.total > limit)
    at = int(np.argmax(outside)) if outside.any() else int(np.argmax(every & (site.total - 1) != 0))
    address = int(every[at])
    where = fibre.chunk.launch.where(fibre, at, site.instruction)
    access = f"{'write' if site.writes else 'read'} of {site.total} bytes"
    if outside[at]:
        return OutOfBounds(
            f"out-of-bounds {access} at {space} address {address:#x}; this {_OWNER[space]}"
            f" {limit} bytes of {space} memory",
            where, address=address, nbytes=site.total, space=space,
        )  # fmt: skip
    return Misaligned(
        f"misaligned {access} at {space} address {address:#x}, no multiple of {site.total}",
        where, address=address, nbytes=site.total, space=space,
    )  # fmt: skip


_OWNER = {"shared": "block has", "local": "thread has", "param": "kernel has"}
