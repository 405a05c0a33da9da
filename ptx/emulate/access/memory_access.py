"""Accesses to memory: where an element lies, whether the access is allowed, and its value.

Each instruction that accesses memory has a `Site`, which caches the last allocation that it
accessed. The allocation table is searched only if that one does not hold all addresses.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.access.faults import (
    InParameters,
    SeveralMemories,
    check_spans,
    find_memory,
    memory_fault,
)
from ptx.emulate.memory.generic_addresses import (
    NEAR_WINDOW,
    PARAM_WINDOW,
    WINDOWS,
    in_window,
    is_mixed,
    owners,
)
from ptx.emulate.memory.site import Memory, Site
from ptx.emulate.model.addresses import Addresses, Index, Varying, addresses_in, same_address
from ptx.emulate.model.geometry import Value
from ptx.emulate.observer import Access
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction

# Threads whose elements are gathered together with those of later loads, where their addresses
# spread over more bytes than a processor's nearest caches hold.
_FEWEST_TOGETHER = 4096
_LEAST_SPREAD = 1 << 20
_STRING_STEP = 64
_LONGEST_STRING = 1 << 20
Elements = NDArray[Any]  # of the type that the access has
Located = tuple[Elements, Index | int]
Group = tuple[Index, Fibre, Addresses]  # positions, just these threads, their addresses


def locate(
    threads: Fibre,
    addresses: Addresses,
    offset: int,
    site: Site,
    values: tuple[Value, ...] = (),
    *,
    is_access: bool = True,
) -> Located:
    """The elements of an access: an array, and one index into it for all lanes or one for each.

    `addresses` must lie in one space; `divide` splits generic addresses that do not. `values` are
    about to be stored. Without `is_access` the caller only needs the location.

    Raises:
        MemoryFault: an address is out of bounds, freed or misaligned.
    """
    space = site.space
    if space == "generic":
        space, addresses = in_window(addresses, offset)
    blocks = threads.blocks
    if space == "param":
        return _params(threads, addresses, offset, site)
    memory: Memory | None = None
    if space == "global":
        observers = blocks.global_observers
        memory = _checked(threads, addresses, offset, site)
        elements, index, first = _in_memory(memory, addresses, offset, site)
    else:
        elements, index = _per_thread(threads, addresses, offset, site, space)
        observers, first = blocks.own_observers, -1
    if observers:
        if first < 0:
            own = blocks.shared if space == "shared" else blocks.local
            first = (len(own) >> site.shift) - len(elements)  # they reach to the end
        access = Access(
            threads, space, addresses, offset, site, memory, first, index, values, is_access
        )
        for observer in observers:
            observer.access(access)
    return elements, index


def note_swap(threads: Fibre, addresses: Addresses, offset: int, site: Site, wrote: Value) -> None:
    """Report a compare-and-swap, of the threads that found the expected value."""
    space = site.space
    if space == "generic":
        space, addresses = in_window(addresses, offset)
    access = Access(threads, space, addresses, offset, site, None, 0, 0)
    blocks = threads.blocks
    for observer in blocks.global_observers if space == "global" else blocks.own_observers:
        observer.swap(access, wrote)


def _in_memory(
    memory: Memory, addresses: Addresses, offset: int, site: Site
) -> tuple[Elements, Index | int, int]:
    """Elements of a memory, at global addresses that it holds, and the number of the first one."""
    elements = memory.view(site.dtype)
    start = addresses.base + offset - memory.base
    varying = addresses.varying
    first = 0
    index: Index | int = start >> site.shift
    if varying is not None:
        least, _, bits = varying.bounds()
        if (bits | start) & (site.nbytes - 1):
            every: Index = varying.array + np.int64(start)
            index = every >> site.shift
        elif start < 0 or least < 0:  # all are in the memory, so the first one is
            first, index = (start + least) >> site.shift, varying.distances(site.shift)
        else:
            first, index = start >> site.shift, varying.index(site.shift)
    return elements[first:] if first else elements, index, first


def _in_line(
    threads: Fibre,
    addresses: Addresses,
    offset: int,
    site: Site,
    values: tuple[Value, ...] = (),
) -> list[Elements] | None:
    """Views of the elements of each thread's vector, where addresses rise by one step."""
    line = addresses.varying.line() if addresses.varying is not None else None
    if line is None or site.space != "global":
        return None
    memory = _checked(threads, addresses, offset, site)
    first, step = line
    start = (addresses.base + offset + first - memory.base) >> site.shift
    step >>= site.shift
    stop = start + step * (threads.n - 1) + 1
    if threads.blocks.global_observers:
        index = slice(0, stop - start, step)
        access = Access(threads, "global", addresses, offset, site, memory, start, index, values)
        for observer in threads.blocks.global_observers:
            observer.access(access)
    elements = memory.view(site.dtype)
    return [elements[start + k : stop + k : step] for k in site.parts]


def _checked(threads: Fibre, addresses: Addresses, offset: int, site: Site) -> Memory:
    """Return the memory that holds global addresses; within the site's bounds no table is searched.

    Raises:
        MemoryFault: an address is out of bounds, freed or misaligned.
    """
    base = addresses.base + offset
    varying = addresses.varying
    if varying is None:
        low = high = base
        bits = base
    else:
        least, greatest, bits = varying.bounds()
        low, high = base + least, base + greatest
        bits |= base
    first_address, end_address, version, memory = site.bounds
    if (
        low < first_address
        or high + site.total > end_address
        or bits & (site.total - 1)
        or version != threads.blocks.launch.memory.version
        or memory is None
    ):
        memory = find_memory(threads, addresses, offset, site)
    accesses = threads.blocks.accesses
    if accesses is not None:
        accesses.note(memory, low, high + site.total, writes=site.writes)
    return memory


def _params(threads: Fibre, addresses: Addresses, offset: int, site: Site) -> Located:
    params = threads.blocks.launch.param_bytes
    low = addresses.lowest() + offset + site.first
    high = addresses.highest() + offset + site.end
    if site.writes or low < 0 or high > len(params):
        raise memory_fault(threads, addresses, offset, site, "param", len(params))
    # An element of 128 bits is larger than the padding of the parameters.
    elements = params[: len(params) >> site.shift << site.shift].view(site.dtype)
    if addresses.varying is None:
        return elements, (addresses.base + offset) >> site.shift
    return elements, (addresses.every(threads.n) + offset) >> site.shift


def _per_thread(
    threads: Fibre, addresses: Addresses, offset: int, site: Site, space: str
) -> Located:
    """Shared and local memory, where each thread's part starts at another place of the array."""
    blocks = threads.blocks
    base = addresses.base + offset
    varying = addresses.varying
    shift = site.shift
    if space == "shared":
        limit, memory = blocks.launch.shared_bytes, blocks.shared
    else:
        limit, memory = blocks.local_stride, blocks.local
    least, greatest, bits = (0, 0, 0) if varying is None else varying.bounds()
    if base + least < 0 or base + greatest + site.total > limit or (bits | base) & (site.total - 1):
        if space == "shared":
            return _locate_remote(threads, addresses, offset, site, memory)
        raise_if_wrong(threads, addresses, offset, site, space, limit)
    if blocks.launch.bounding:
        spans = blocks.launch.spans(site, space)
        low, high = base + least + site.first, base + greatest + site.end
        if spans and not any(span.start <= low and high <= span.end for span in spans):
            check_spans(threads, spans, addresses.every(threads.n) + offset, site, space)
    elements = memory.view(site.dtype)
    if space == "shared" and blocks.geometry.blocks == 1:
        if varying is None:
            return elements, base >> shift
        return elements, (addresses.every(threads.n) + offset) >> shift
    start = threads.start_index(space, shift)
    if varying is None:
        return elements[base >> shift :], start
    if base >= 0 and least >= 0 and not bits & (site.nbytes - 1):
        return elements[base >> shift :], varying.placed(space, shift, start)
    return elements, ((addresses.every(threads.n) + offset) >> shift) + start


def _locate_remote(
    threads: Fibre,
    addresses: Addresses,
    offset: int,
    site: Site,
    memory: NDArray[np.uint8],
) -> Located:
    """Elements of shared memory of any block of the cluster.

    Raises:
        MemoryFault: an address is outside of a block's memory, or misaligned, or its block is not
            in the cluster.
    """
    blocks = threads.blocks
    owner, block_offsets = owners(threads, addresses, offset, site)
    limit = blocks.launch.shared_bytes
    wrong = (
        (block_offsets < 0)
        | (block_offsets > limit - site.end)
        | ((block_offsets & (site.total - 1)) != 0)
    )
    if wrong.any():
        raise memory_fault(threads, addresses_in(block_offsets), 0, site, "shared", limit)
    return memory.view(site.dtype), (owner * blocks.shared_stride + block_offsets) >> site.shift


def raise_if_wrong(
    threads: Fibre, addresses: Addresses, offset: int, site: Site, space: str, limit: int
) -> None:
    """The exact check, lane by lane, after the quick one failed.

    Raises:
        MemoryFault: a lane is outside the window of `limit` bytes, or misaligned.
    """
    every = addresses.every(threads.n) + offset
    wrong = (every < -site.first) | (every > limit - site.end)
    wrong |= (every & (site.total - 1)) != 0
    if wrong.any():
        raise memory_fault(threads, addresses, offset, site, space, limit)


def divide(threads: Fibre, addresses: Addresses, offset: int) -> list[Group]:
    """Lanes grouped by the space that their generic addresses lie in.

    Each group gives its positions, just these threads (without registers) and their addresses
    without the offset.
    """
    every = addresses.every(threads.n)
    edges = [edge for _, window in WINDOWS for edge in (window - NEAR_WINDOW, window + NEAR_WINDOW)]
    groups = np.searchsorted(edges, every + offset, side="right")
    groups[groups % 2 == 0] = 0  # between windows, all of which is global
    return _parts(threads, every, [(groups == group).nonzero()[0] for group in np.unique(groups)])


def _parts(threads: Fibre, every: NDArray[np.int64], groups: list[Index]) -> list[Group]:
    return [
        (positions, threads.subset(positions, ()), addresses_in(every[positions]))
        for positions in groups
    ]


def divide_into(threads: Fibre, addresses: Addresses, groups: list[Index]) -> list[Group]:
    """Lanes in known groups, such as those that access memories of several devices."""
    return _parts(threads, addresses.every(threads.n), groups)


def load(threads: Fibre, addresses: Addresses, offset: int, site: Site) -> Value:
    """`ld`: the value, a scalar where all threads read the same place."""
    return load_vector(threads, addresses, offset, site)[0]


def load_vector(threads: Fibre, addresses: Addresses, offset: int, site: Site) -> list[Value]:
    """`ld.vN`: the elements of the vector that are used."""
    if site.space == "generic" and is_mixed(addresses, offset):
        return _load_parts(threads, divide(threads, addresses, offset), offset, site)
    try:
        return _load(threads, addresses, offset, site)
    except SeveralMemories as several:
        return _load_parts(threads, divide_into(threads, addresses, several.groups), offset, site)
    except InParameters:
        param_site = Site(site.instruction, "param", site.kind, site.count, writes=False)
        return _load(threads, addresses.moved(-PARAM_WINDOW), offset, param_site)


def _load_parts(threads: Fibre, parts: list[Group], offset: int, site: Site) -> list[Value]:
    results = [np.empty(threads.n, dtype=site.dtype) for _ in site.parts]
    for positions, part, addresses in parts:
        for result, value in zip(results, load_vector(part, addresses, offset, site), strict=True):
            result[positions] = value
    return list(results)


def _load(threads: Fibre, addresses: Addresses, offset: int, site: Site) -> list[Value]:
    values = _loaded(threads, addresses, offset, site)
    for observer in threads.blocks.load_observers:
        observer.loaded(site, values)
    return values


def _loaded(threads: Fibre, addresses: Addresses, offset: int, site: Site) -> list[Value]:
    lines = _in_line(threads, addresses, offset, site)
    if lines is not None:
        return [line.copy() for line in lines]
    elements, index = locate(threads, addresses, offset, site)
    count = site.count
    if not isinstance(index, np.ndarray):
        return [elements[index + k] for k in site.parts]
    run = -1 if addresses.varying is None or count > 1 else addresses.varying.run(index)
    if run >= 0:
        return [elements[run : run + threads.n].copy()]
    if count == 1:
        varying = addresses.varying
        if threads.n >= _FEWEST_TOGETHER and varying is not None:
            return [_gathered(threads, addresses, varying, offset, site, elements, index)]
        return [elements.take(index, mode="wrap")]  # faster than "clip"; all are in bounds
    return [elements[k:].take(index, mode="wrap") for k in site.parts]


def _gathered(
    threads: Fibre,
    addresses: Addresses,
    varying: Varying,
    offset: int,
    site: Site,
    elements: Elements,
    index: Index,
) -> Elements:
    """Gather elements, with those of later loads beside them while they are in the caches.

    The later loads check their addresses themselves.
    """
    known = varying.loaded.pop(site, None)
    if known is not None:
        return known
    least, greatest, _ = varying.bounds()
    first_address, end_address = site.bounds[:2]
    start = addresses.base + offset
    room = end_address - (start + greatest + site.nbytes)
    if (
        not site.neighbours
        or greatest - least < _LEAST_SPREAD
        or start + least < first_address
        or varying.cached  # by other threads, too
        or threads.blocks.observers
    ):
        return elements.take(index, mode="wrap")
    gathered = [(0, np.empty(len(index), elements.dtype))]
    for distance, neighbour in site.neighbours:
        if distance <= room and not distance & (site.nbytes - 1):
            result = varying.loaded[neighbour] = np.empty(len(index), elements.dtype)
            gathered.append((distance >> site.shift, result))
    for start in range(0, len(index), _FEWEST_TOGETHER):
        part = slice(start, start + _FEWEST_TOGETHER)
        for step, result in gathered:
            elements[step:].take(index[part], mode="clip", out=result[part])
    return gathered[0][1]


def store(threads: Fibre, addresses: Addresses, offset: int, site: Site, *values: Value) -> None:
    """`st`: where several threads write one place, the last thread's value stays."""
    if site.space == "generic" and is_mixed(addresses, offset):
        _store_parts(divide(threads, addresses, offset), offset, site, values)
        return
    try:
        _store(threads, addresses, offset, site, values)
    except SeveralMemories as several:
        _store_parts(divide_into(threads, addresses, several.groups), offset, site, values)


def _store_parts(parts: list[Group], offset: int, site: Site, values: tuple[Value, ...]) -> None:
    for positions, part, addresses in parts:
        chosen = [value.take(positions) if value.ndim else value for value in values]
        store(part, addresses, offset, site, *chosen)


def _store(
    threads: Fibre,
    addresses: Addresses,
    offset: int,
    site: Site,
    values: tuple[Value, ...],
) -> None:
    lines = _in_line(threads, addresses, offset, site, values)
    if lines is not None:
        for line, value in zip(lines, values, strict=True):
            line[:] = value
        return
    elements, index = locate(threads, addresses, offset, site, values)
    if not isinstance(index, np.ndarray):
        for k, value in enumerate(values):
            elements[index + k] = value[-1] if value.ndim else value
        return
    run = -1 if addresses.varying is None or site.count > 1 else addresses.varying.run(index)
    if run >= 0:
        elements[run : run + threads.n] = values[0]
        return
    for k, value in enumerate(values):
        elements[k:][index] = value


def read_string(threads: Fibre, position: int, address: int, instruction: Instruction) -> str:
    """The characters at a thread's generic address, one for each byte, up to a zero.

    Raises:
        MemoryFault: it runs out of the memory that it lies in.
    """
    thread = threads.subset(np.array([position], dtype=np.intp), ())
    site = Site(instruction, "generic", "u8", 1, writes=False)
    memory = threads.blocks.launch.memory
    allocation = memory.find(address)
    if allocation is not None:
        start = address - memory.base
        data = memory.data[start : allocation.end - memory.base]
        for first in range(0, len(data), _STRING_STEP):
            zeros = np.flatnonzero(data[first : first + _STRING_STEP] == 0)
            if len(zeros):
                return data[: first + int(zeros[0])].tobytes().decode("latin-1")
        address = allocation.end  # no end within it: the read past it is the fault
    characters: list[int] = []
    while len(characters) < _LONGEST_STRING:
        byte = int(np.ravel(load(thread, _at(address + len(characters)), 0, site))[0])
        if not byte:
            break
        characters.append(byte)
    return bytes(characters).decode("latin-1")


def _at(address: int) -> Addresses:
    return same_address(address) if address < 1 << 63 else addresses_in(np.uint64(address))
