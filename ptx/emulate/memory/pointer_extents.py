"""The bounds of the memory that a pointer was made from, and accesses beyond them.

PTX has no bounds: `a + 4 * i` may lie in another array. C++ restricts a pointer to the array that
it was made from ("Additive operators"). If that array can be determined from the code, accesses
outside of it are faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.memory.address_ranges import Allocation
from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.site import Site


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a pointer: a parameter of the kernel, or a variable.

    Attributes:
        name: of the parameter or the variable.
        space: where it points to: "global", "shared" or "local".
        parameter: its offset among the kernel's parameters; -1 for a variable.
        start, end: where the variable lies; an end of 0 is that of the block's shared memory.
    """

    name: str
    space: str
    parameter: int = -1
    start: int = 0
    end: int = 0

    @property
    def shown(self) -> str:
        """Its name in messages: NVRTC names no parameter but by its number."""
        return self.name.rpartition("_param_")[2]


@dataclass(frozen=True, slots=True)
class Span:
    """Memory from `start` to below `end`.

    Attributes:
        words: its description for messages.
        is_freed: whether it is freed, so that no access is allowed.
    """

    start: int
    end: int
    words: str
    is_freed: bool = False


Origins = Mapping[Site, frozenset[Origin]]


class PointerExtents:
    """The memory that each access of a launch may reach.

    Args:
        origins: the origins of the addresses of each access.
        memory: the device's memory.
        params: the kernel's parameters.
        shared_bytes: a block's shared memory.
    """

    def __init__(
        self, origins: Origins, memory: DeviceMemory, params: NDArray[np.uint8], shared_bytes: int
    ) -> None:
        self._origins = origins
        self._memory = memory
        self._params = params
        self._shared_bytes = shared_bytes
        self._known: dict[tuple[Site, str], tuple[Span, ...]] = {}

    def of(self, site: Site, space: str) -> tuple[Span, ...]:
        """Return the bounds of an access to a space; an empty tuple if they are unknown."""
        spans = self._known.get((site, space))
        if spans is None:
            spans = self._known[site, space] = self._spans(site, space)
        return spans

    def _spans(self, site: Site, space: str) -> tuple[Span, ...]:
        spans: list[Span] = []
        for origin in self._origins.get(site, ()):
            if origin.space != space:
                return ()
            if origin.parameter < 0:
                end = origin.end or self._shared_bytes
                spans.append(Span(origin.start, end, f"the variable {origin.name}"))
                continue
            arrays = self._arrays(origin)
            if not arrays:
                return ()
            spans += arrays
        return tuple(spans)

    def _arrays(self, origin: Origin) -> list[Span]:
        """The array that a parameter points into, and the one that it is the end of."""
        memory = self._memory
        address = pointer_at(self._params, origin.parameter)
        words = f"which parameter {origin.shown} points into"
        allocations = [memory.find(address), memory.find(address - 1)]
        spans: list[Span] = []
        for allocation in dict.fromkeys(
            allocation for allocation in allocations if allocation is not None
        ):
            parts = self._parts(allocation, address)
            if parts:
                spans += [
                    Span(
                        start,
                        start + nbytes,
                        f"{nbytes} bytes at {start:#x} in {allocation}, {words}",
                    )
                    for start, nbytes in parts
                ]
            elif memory.freed_by_owner.get(allocation.address) is allocation:
                end = "was given back to its allocator"
                spans.append(
                    Span(
                        allocation.address, allocation.end, f"{allocation}, {words}; it {end}", True
                    )
                )
            else:
                spans.append(Span(allocation.address, allocation.end, f"{allocation}, {words}"))
        return spans

    def _parts(self, allocation: Allocation, address: int) -> list[tuple[int, int]]:
        """The parts of an allocation that begin at an address, and those that end there.

        An address at the allocation's own start may also stand for all of it.
        """
        parts = self._memory.parts
        if address == allocation.address or parts.get(address, (None, 0))[0] is not allocation:
            return []
        return [
            (start, nbytes)
            for start, (owner, nbytes) in list(parts.items())
            if owner is allocation and address in (start, start + nbytes)
        ]


def pointer_at(params: NDArray[np.uint8], offset: int) -> int:
    """The eight bytes of parameters from an offset on, as an address; 0 beyond their end."""
    word = params[offset : offset + 8].tobytes()
    return int.from_bytes(word, "little") if len(word) == 8 else 0


def outside(
    spans: tuple[Span, ...], every: NDArray[np.int64], site: Site
) -> tuple[int, Span] | None:
    """The first of some addresses that lies in none of the spans, and the span next to it."""
    inside = np.zeros(len(every), dtype=np.bool_)
    for span in spans:
        if span.is_freed:
            continue
        inside |= (every + site.first >= span.start) & (every + site.end <= span.end)
    if inside.all():
        return None
    position = int(np.argmin(inside))
    address = int(every[position])
    nearest = min(spans, key=lambda span: max(span.start - address, address - span.end, 0))
    return position, nearest
