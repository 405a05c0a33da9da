"""The check that each access stays in the array or variable that its pointer was made from."""

from __future__ import annotations

from ptx.emulate.memory.address_ranges import Allocation
from ptx.emulate.memory.device_memory import DeviceMemory
from ptx.emulate.memory.pointer_extents import Origin, Origins, Span, pointer_at
from ptx.emulate.memory.site import Site
from ptx.emulate.observer import ObservedLaunch, Observer


class PointerBounds(Observer):
    """Bounds each access of a launch: to arrays that parameters point into, and to variables."""

    def __init__(self, launch: ObservedLaunch) -> None:
        self._origins: Origins = launch.find_origins()
        self._memory: DeviceMemory = launch.memory
        self._params = launch.param_bytes
        self._shared_bytes = launch.shared_bytes
        self._known: dict[tuple[Site, str], tuple[Span, ...]] = {}
        # By parameter, and version of the memory: several instructions access one array.
        self._by_parameter: dict[tuple[int, int], list[Span]] = {}

    def spans(self, site: Site, space: str) -> tuple[Span, ...]:
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
            key = origin.parameter, self._memory.version
            arrays = self._by_parameter.get(key)
            if arrays is None:
                arrays = self._by_parameter[key] = self._arrays(origin)
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
