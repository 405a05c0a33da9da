"""Slow paths of memory accesses: the exact check, and the message of a fault."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.address_ranges import Allocation
from ptx.emulate.memory.generic_addresses import PARAM_WINDOW, WINDOW_BYTES
from ptx.emulate.memory.mapped_memory import PeerMemory
from ptx.emulate.memory.pointer_extents import Span, outside
from ptx.emulate.memory.site import Memory, Site
from ptx.emulate.model.addresses import Addresses, Index
from ptx.emulate.model.errors import (
    EmulationFault,
    MemoryFault,
    Misaligned,
    OutOfBounds,
    UseAfterFree,
    Where,
    bytes_text,
)
from ptx.emulate.threads.device_model import DeviceModel
from ptx.emulate.threads.fibre import Fibre


class SeveralMemories(EmulationFault):
    """One access reaches memories of several devices or the host; each address is valid.

    `groups` are positions of the threads that reach the same memory. Loads and stores continue with
    one group after another; all other operations fail.
    """

    def __init__(self, where: Where, groups: list[Index]) -> None:
        self.groups = groups
        super().__init__(
            f"one instruction reaches {len(groups)} memories, of several devices or the host;"
            " only loads and stores are emulated then",
            where,
        )


class InParameters(EmulationFault):
    """A global read reaches the kernel's parameters, whose window is a part of the global one.

    Loads continue there; other reads of global memory fail here.
    """

    def __init__(self, where: Where) -> None:
        super().__init__(
            "a global access by the generic address of a parameter; only loads are emulated there",
            where,
        )


def find_memory(threads: Fibre, addresses: Addresses, offset: int, site: Site) -> Memory:
    """The memory that holds all addresses, found in the allocation table.

    The site caches the allocation if one holds them all.

    Raises:
        MemoryFault: a lane's address is in no live allocation, or misaligned.
        SeveralMemories: the lanes' addresses are in allocations of several memories.
        InParameters: they are in the window of the kernel's parameters.
    """
    launch = threads.blocks.launch
    version = launch.memory.version
    low = addresses.lowest() + offset + site.first
    high = addresses.highest() + offset + site.end
    memory = _memory_of(low, launch.device)
    if memory is not launch.memory:
        site.is_elsewhere = True
    spans = launch.spans(site, "global") if launch.bounding else ()
    allocation = None if memory is None else _allocation(memory, low, site)
    is_one = allocation is not None and high <= allocation.end
    if (
        memory is not None
        and allocation is not None
        and is_one
        and _are_aligned(addresses, offset, site)
        and (not spans or _hold(spans, low, high))
    ):
        # A peer's table changes under another version.
        if memory is launch.memory and len(spans) < 2:
            start, end = allocation.address, allocation.end
            for span in spans:
                start, end = max(start, span.start), min(end, span.end)
            least, end = start - site.first, end - site.end
            site.bounds = (least, end + site.total, version, memory)
        return memory
    every = addresses.every(threads.n if addresses.varying is not None else 1) + offset
    misaligned = (every & (site.total - 1)) != 0
    if spans:
        check_spans(threads, spans, every, site, "global")
    if memory is None:
        inside: NDArray[np.bool_] = np.zeros(len(every), dtype=np.bool_)
    else:
        inside = np.ones(len(every), np.bool_) if is_one else _inside(memory, every, site)
        if inside.all() and not misaligned.any():
            return memory
    is_of_parameters = PARAM_WINDOW <= low < high <= PARAM_WINDOW + WINDOW_BYTES
    raise _wrong(threads, every, site, inside, misaligned, is_of_parameters)


def _are_aligned(addresses: Addresses, offset: int, site: Site) -> bool:
    """Return whether the parts of all addresses prove that their low bits are 0."""
    bits = 0 if addresses.varying is None else addresses.varying.bounds()[2]
    return not (bits | addresses.base + offset) & (site.total - 1)


def _hold(spans: tuple[Span, ...], low: int, high: int) -> bool:
    """Return whether one of the spans holds all bytes from `low` to below `high`."""
    return any(not s.is_freed and s.start <= low and high <= s.end for s in spans)


def _wrong(
    threads: Fibre,
    every: NDArray[np.int64],
    site: Site,
    inside: NDArray[np.bool_],
    misaligned: NDArray[np.bool_],
    is_of_parameters: bool,
) -> Exception:
    """Return the exception that explains why no memory was found.

    It is the fault of the first lane, or one that makes the caller access the memory otherwise.
    """
    if is_of_parameters and not site.writes:
        return InParameters(threads.where(0, site.instruction))
    if not inside.all() and not misaligned.any():
        groups = _groups(threads.blocks.launch.device, every, site)
        if len(groups) > 1:
            return SeveralMemories(threads.where(0, site.instruction), groups)
    position = int(np.argmax(~inside)) if not inside.all() else int(np.argmax(misaligned))
    return _global_fault(
        threads, position, int(every[position]), site, inside=bool(inside[position])
    )


def check_spans(
    threads: Fibre, spans: tuple[Span, ...], every: NDArray[np.int64], site: Site, space: str
) -> None:
    """Raise if an access leaves the objects that its address was computed from.

    Raises:
        OutOfBounds: a lane's is.
    """
    first_outside = outside(spans, every, site)
    if first_outside is None:
        return
    position, span = first_outside
    address = int(every[position])
    access = f"{'write' if site.writes else 'read'} of {bytes_text(site.total)}"
    distance = address - span.end if address >= span.start else span.start - address
    side = "past the end of" if address >= span.start else "before"
    side = f"{distance} bytes {side}" if distance >= 0 else "across the end of"
    wrong = UseAfterFree if span.is_freed else OutOfBounds
    if span.is_freed:
        side = "in"
    hint = _overflow_hint(threads, address, site) if space == "global" else ""
    raise wrong(
        f"out-of-bounds {access} at {space} address {address % (1 << 64):#x}",
        threads.where(position, site.instruction),
        address=address,
        nbytes=site.total,
        space=space,
        nearest=f"it is {side} {span.words}{hint}",
    )


def _overflow_hint(threads: Fibre, address: int, site: Site) -> str:
    """Return a line about an index that has overflowed 32 bits; "" if it does not look like one.

    The address of such an index is 2^31 or 2^32 elements from a parameter. It can be a few more or
    less: the index of another thread, or a difference below 0.
    """
    params = threads.blocks.launch.param_bytes
    for pointer in params[: len(params) // 8 * 8].view(np.uint64).tolist():
        distance = (address - pointer + (1 << 63)) % (1 << 64) - (1 << 63)
        index, part = divmod(distance, site.total)
        near = min(abs(index - limit) for limit in _OVERFLOWS)
        if pointer and not part and near <= _NEAR_OVERFLOW:
            return f"\n  does the index {index} overflow 32 bits? Compute it in 64 bits, as size_t"
    return ""


def _memory_of(address: int, device: DeviceModel) -> Memory | None:
    for memory in (device.memory, *device.peers):
        if memory.base <= address < memory.base + memory.nbytes:
            return memory
    return device.host(address)


def _allocation(memory: Memory, address: int, site: Site) -> Allocation | None:
    if site.is_of_team and isinstance(memory, PeerMemory):
        return memory.find_of_team(address)
    return memory.find(address)


def _groups(device: DeviceModel, every: NDArray[np.int64], site: Site) -> list[Index]:
    """Positions of the addresses of each memory; [] unless every address is in an allocation."""
    remaining = np.ones(len(every), dtype=np.bool_)
    groups: list[Index] = []
    while remaining.any():
        memory = _memory_of(int(every[np.argmax(remaining)]) + site.first, device)
        if memory is None:
            return []
        in_memory = remaining & _inside(memory, every, site)
        if not in_memory[np.argmax(remaining)]:
            return []
        groups.append(in_memory.nonzero()[0])
        remaining &= ~in_memory
    return groups


def _inside(memory: Memory, every: NDArray[np.int64], site: Site) -> NDArray[np.bool_]:
    if site.is_of_team and isinstance(memory, PeerMemory):
        starts, ends = memory.bounds_of_team()
    else:
        starts, ends = memory.bounds()
    if not len(starts):
        return np.zeros(len(every), dtype=np.bool_)
    indices = np.searchsorted(starts, every + site.first, side="right") - 1
    inside: NDArray[np.bool_] = (indices >= 0) & (every <= ends[np.maximum(indices, 0)] - site.end)
    return inside


def _global_fault(
    threads: Fibre, position: int, address: int, site: Site, *, inside: bool
) -> MemoryFault:
    launch = threads.blocks.launch
    address %= 1 << 64  # shown as the pointer is, whatever its sign as a signed number
    memory = _memory_of(address, launch.device) or launch.memory
    where = threads.where(position, site.instruction)
    access = f"{'write' if site.writes else 'read'} of {bytes_text(site.total)} at {address:#x}"
    if inside:
        return Misaligned(
            f"misaligned {access}, which is no multiple of {site.total}",
            where,
            address=address,
            nbytes=site.total,
            space="global",
        )
    freed = memory.find_freed(address)
    nearest = memory.nearest(address)
    if freed is not None and not _is_overrun(memory, launch.param_bytes, address, nearest):
        return UseAfterFree(
            f"{access} after it was freed",
            where,
            address=address,
            nbytes=site.total,
            space="global",
            nearest=f"it belonged to the allocation of {freed}",
        )
    hint = _overflow_hint(threads, address, site) if address else ""
    return OutOfBounds(
        f"out-of-bounds {access}",
        where,
        address=address,
        nbytes=site.total,
        space="global",
        nearest=_beside(nearest, address, site.total) + hint,
    )


def _beside(nearest: Allocation | None, address: int, nbytes: int) -> str:
    """Return where an address is, from the nearest allocation."""
    if not address:
        return "this is a null pointer"
    if nearest is None:
        return "no memory is allocated"
    if nearest.address <= address < nearest.end:
        is_whole = address + nbytes <= nearest.end
        side = "the device has no access to" if is_whole else "across the end of"
    elif address >= nearest.end:
        side = f"{address - nearest.end} bytes past the end of"
    else:
        side = f"{nearest.address - address} bytes before"
    return f"{side} the nearest allocation of {nearest}"


def _is_overrun(
    memory: Memory, params: NDArray[np.uint8], address: int, nearest: Allocation | None
) -> bool:
    """Return whether an access to freed memory is more likely an overrun of a live allocation.

    It is if the kernel has a pointer to the nearest live allocation, which is no farther away than
    its own size. It is not if the kernel has a pointer to freed memory.
    """
    if nearest is None or not -nearest.nbytes <= address - nearest.address < 2 * nearest.nbytes:
        return False
    words = params[: len(params) // 8 * 8].view(np.uint64).tolist()
    stale = [w for w in words if memory.find(w) is None and memory.find_freed(w) is not None]
    return not stale and any(nearest.address <= word < nearest.end for word in words)


def memory_fault(
    threads: Fibre, addresses: Addresses, offset: int, site: Site, space: str, limit: int
) -> MemoryFault:
    """The fault of the first lane that is outside a window of `limit` bytes, or misaligned."""
    every = addresses.every(threads.n) + offset
    outside = (every < -site.first) | (every > limit - site.end)
    position = (
        int(np.argmax(outside)) if outside.any() else int(np.argmax(every & (site.total - 1) != 0))
    )
    address = int(every[position])
    where = threads.where(position, site.instruction)
    access = f"{'write' if site.writes else 'read'} of {bytes_text(site.total)}"
    if outside[position]:
        launch = threads.blocks.launch
        hint = ""
        if space == "shared" and launch.dynamic_shared == 0:
            hint = _PAST_AN_ARRAY if launch.code.shared_bytes else _NO_DYNAMIC
        return OutOfBounds(
            f"out-of-bounds {access} at {space} address {address:#x}; this {_OWNER[space]}"
            f" {limit} bytes of {space} memory",
            where,
            address=address,
            nbytes=site.total,
            space=space,
            nearest=hint,
        )
    if site.writes and space == "param":
        return OutOfBounds(
            f"{access} at param address {address:#x}; a kernel's parameters are read-only",
            where,
            address=address,
            nbytes=site.total,
            space=space,
        )
    return Misaligned(
        f"misaligned {access} at {space} address {address:#x}, no multiple of {site.total}",
        where,
        address=address,
        nbytes=site.total,
        space=space,
    )


_OVERFLOWS = (-(1 << 31), 1 << 31, 1 << 32)
_NEAR_OVERFLOW = 1 << 12
_NO_DYNAMIC = "arrays of extern __shared__ have as many bytes as shared_bytes of the launch, here 0"
_PAST_AN_ARRAY = (
    "an index may be past the end of a __shared__ array: compare its size with the block's threads"
    "\n  if the array is extern __shared__, pass its bytes as shared_bytes of the launch, here 0"
)
_OWNER = {"shared": "block has", "local": "thread has", "param": "kernel has"}
