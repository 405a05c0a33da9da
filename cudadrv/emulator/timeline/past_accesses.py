"""Past accesses of operations, as ranges of bytes with the last operation there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.accessed_bytes import AccessedBytes, LaunchAccesses
from ptx.emulate.check.findings import Access, Finding

from .timestamp import Timestamp

_MOST_LOOKED_AT: Final = 64  # overlapping ranges of two parts
_MISSING: Final = (
    "use one stream, let the later one's stream wait for an event, or let the host wait"
)
_MISSING_WAIT: Final = (
    "a wait of the host for the operation, by its stream or an event, before the host comes there"
)
Range = tuple[int, int]
"""An address and a number of bytes."""
Numbers = NDArray[np.int64]


class Doer:
    """One operation that accessed memory.

    Attributes:
        launch: the accesses of a kernel's launch.
        by_host: when the host itself accessed, in words; else "".
    """

    def __init__(
        self, moment: Timestamp, launch: LaunchAccesses | None = None, by_host: str = ""
    ) -> None:
        self.moment = moment
        self.launch = launch
        self.by_host = by_host

    def may_know_of(self, other: Doer) -> bool:
        """Return whether one is the host and the other reads a flag that may order them.

        The host's accesses of that flag are not seen.
        """
        return any(
            host.by_host and kernel.launch is not None and kernel.launch.signals
            for host, kernel in ((self, other), (other, self))
        )

    def access(self, part: AccessedBytes, index: int) -> Access:
        """Return one side of a race."""
        call_site = self.moment.call_site
        if self.launch is not None:
            return self.launch.access(part, index, call_site)
        file, _, line = call_site.rpartition(":")
        return Access.of_host(
            "write" if part.writes else "read",
            "" if self.by_host else self.moment.kind.value,
            file or None,
            int(line) if line else None,
            self.by_host or call_site,
        )


@dataclass(frozen=True, slots=True)
class PastAccesses:
    """Ranges with one kind of access by the operations of one track.

    Attributes:
        whose: for each range, the index in `doers` of the last one.
        last: the index of the last moment.
    """

    part: AccessedBytes
    doers: tuple[Doer, ...]
    whose: Numbers
    last: int

    @staticmethod
    def of(part: AccessedBytes, doer: Doer) -> PastAccesses:
        """Return the accesses of an operation that ran just now."""
        return PastAccesses(part, (doer,), np.zeros(len(part.starts), np.int64), doer.moment.index)

    def since(self, index: int) -> PastAccesses | None:
        """Return the accesses after a moment; None if there are none."""
        if self.last <= index:
            return None
        if len(self.doers) == 1:
            return self
        late = np.array([doer.moment.index > index for doer in self.doers])[self.whose]
        if not late.any():
            return None
        return PastAccesses(_chosen(self.part, late), self.doers, self.whose[late], self.last)


def ranges_of(ranges: Iterable[Range], *, writes: bool) -> AccessedBytes:
    """Return ranges with one kind of access, given in any order."""
    return in_order(np.array(sorted(ranges), dtype=np.int64).reshape(-1, 2), writes=writes)


def elements_of(array: NDArray[Any]) -> Numbers:
    """Return the ranges of an array's elements, in their order; one range if it is dense."""
    address = array.ctypes.data
    if array.flags.c_contiguous:
        return np.array([(address, array.nbytes)], np.int64)
    offsets = np.zeros((), np.int64)
    for count, step in zip(array.shape, array.strides, strict=True):
        offsets = np.add.outer(offsets, np.arange(count) * step)
    starts = address + np.unique(offsets)
    return np.stack([starts, np.full(len(starts), array.itemsize)], axis=1)


def dense_parts_of(array: NDArray[Any]) -> Numbers:
    """Same, with adjacent elements merged into one part."""
    elements = elements_of(array)
    starts, ends = elements[:, 0], elements.sum(axis=1)
    gaps = np.flatnonzero(starts[1:] != ends[:-1])
    firsts, lasts = starts[np.r_[0, gaps + 1]], ends[np.r_[gaps, len(ends) - 1]]
    return np.stack([firsts, lasts - firsts], axis=1)


def in_order(ranges: Numbers, *, writes: bool, strong: bool = False) -> AccessedBytes:
    """Same for (n, 2) addresses and sizes in order; unordered ones must be merged then."""
    starts, sizes = ranges[:, 0], ranges[:, 1]
    sites = np.zeros(len(starts), np.int64)
    return AccessedBytes(starts, starts + sizes, sites, writes, strong=strong)


def touches(part: AccessedBytes, start: int, end: int) -> bool:
    """Return whether a range of the part has bytes there."""
    index = int(np.searchsorted(part.ends, start, side="right"))
    return index < len(part.starts) and int(part.starts[index]) < end


def _chosen(part: AccessedBytes, selected: NDArray[np.bool_]) -> AccessedBytes:
    return AccessedBytes(
        part.starts[selected], part.ends[selected], part.sites[selected], part.writes, part.strong
    )


def meeting(past: AccessedBytes, part: AccessedBytes) -> list[tuple[int, int]]:
    """Return pairs of ranges that overlap, only some if there are many."""
    first = np.searchsorted(past.ends, part.starts, side="right")
    end = np.searchsorted(past.starts, part.ends, side="left")
    pairs: list[tuple[int, int]] = []
    for part_index in np.flatnonzero(first < end)[:_MOST_LOOKED_AT].tolist():
        stop = min(int(end[part_index]), int(first[part_index]) + _MOST_LOOKED_AT)
        pairs += [(past_index, part_index) for past_index in range(int(first[part_index]), stop)]
    return pairs


def as_one(past: list[PastAccesses]) -> PastAccesses:
    """Return the last access of each byte, of accesses given in their order."""
    # Sorting takes a tenth of the time that numpy.unique takes.
    bounds = np.sort(np.concatenate([e for p in past for e in (p.part.starts, p.part.ends)]))
    bounds = bounds[np.r_[True, bounds[1:] != bounds[:-1]]]
    doers: list[Doer] = []
    whose = np.full(len(bounds) - 1, -1, np.int64)
    sites = np.zeros(len(bounds) - 1, np.int64)
    for accesses in past:
        first = np.searchsorted(bounds, accesses.part.starts)
        counts = np.searchsorted(bounds, accesses.part.ends) - first
        # The parts of a range follow each other.
        indices = np.arange(counts.sum()) + np.repeat(first - np.cumsum(counts) + counts, counts)
        whose[indices] = np.repeat(accesses.whose + len(doers), counts)
        sites[indices] = np.repeat(accesses.part.sites, counts)
        doers += accesses.doers
    accessed = whose >= 0
    begins = accessed.copy()  # one per range: its neighbour is of another one, or not accessed
    begins[1:] &= (whose[1:] != whose[:-1]) | (sites[1:] != sites[:-1])
    starts = np.flatnonzero(begins)
    last = accessed.copy()
    last[:-1] &= (whose[1:] != whose[:-1]) | (sites[1:] != sites[:-1])
    ends = np.flatnonzero(last)
    is_used = np.bincount(whose[starts], minlength=len(doers)) > 0
    used_indices = np.flatnonzero(is_used).tolist()
    part = past[0].part
    return PastAccesses(
        AccessedBytes(bounds[starts], bounds[ends + 1], sites[starts], part.writes, part.strong),
        tuple(doers[index] for index in used_indices),
        (np.cumsum(is_used) - 1)[whose[starts]],
        past[-1].last,
    )


def race_between(
    first: Access, second: Access, byte_range: Range, doers: tuple[Doer, Doer], memory: str
) -> Finding:
    """Return the finding for two unordered accesses; `memory` describes the allocation there."""
    names = [doer.launch.kernel for doer in doers if doer.launch is not None]
    return Finding(
        check="race",
        kernel=names[-1] if names else "",
        first=first,
        second=second,
        space="global",
        address=byte_range[0],
        nbytes=byte_range[1],
        memory=memory,
        benign="",
        missing=_MISSING_WAIT if any(doer.by_host for doer in doers) else _MISSING,
    )
