"""What a launch accessed, as ranges of bytes, to be compared with what comes beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.access_step import AccessStep
from ptx.emulate.check.findings import Access
from ptx.emulate.check.race_check import RaceCheck
from ptx.emulate.check.stamps import sites_of

Sites = NDArray[np.uint16]  # 1 + the number of the site that accessed a unit last; 0 for none
Places = NDArray[np.int64]

_NOT, _WEAK, _STRONG = 0, 1, 2  # how a unit was accessed
_PAGE: Final = 4096
_SPARSE: Final = 8  # units of a stretch for each that is accessed, from which on it is sorted


@dataclass(frozen=True, slots=True)
class AccessedBytes:
    """Ranges of bytes, in order and apart, that were accessed in one way.

    Attributes:
        starts, ends: absolute addresses.
        sites: the number of a site that accessed each range.
        writes: whether they were written, or written and read; else they were only read.
        strong: whether by atomic or volatile accesses of a scope that reaches other launches.
    """

    starts: Places
    ends: Places
    sites: NDArray[np.int64]
    writes: bool
    strong: bool


class LaunchAccesses:
    """All that a launch accessed of global memory.

    Attributes:
        signals: whether it accessed memory of the host, or of another device, by atomic or volatile
            accesses too, and so may be ordered by a flag there.
    """

    def __init__(self, check: RaceCheck) -> None:
        self._check = check
        self.kernel: str = check.kernel
        self.signals: bool = any(check.is_wide(step.site) for step, _ in check.elsewhere)
        self.parts: tuple[AccessedBytes, ...] = tuple(_merged(list(_parts(check))))

    def access(self, part: AccessedBytes, at: int, queued_at: str) -> Access:
        """One side of a race: the range number `at` of a part."""
        return self._check.access_of_any(int(part.sites[at]), queued_at)

    def committed_nbytes(self) -> int:
        """The memory of the pages in which it stands who accessed global memory."""
        accesses, shift = self._check.in_global, self._check.global_shift
        return _PAGE * sum(map(_used_pages, accesses.parts_in_use(shift)))

    def let_go(self) -> None:
        """Forget all but what names the accesses."""
        self._check.forget_accesses()


def _used_pages(array: NDArray[np.integer[Any]]) -> int:
    each = _PAGE // array.itemsize
    return int(np.count_nonzero(np.add.reduceat(array != 0, np.arange(0, len(array), each))))


def _parts(check: RaceCheck) -> Iterator[AccessedBytes]:
    shift = check.global_shift
    wide = [check.is_wide(k) for k in range(check.site_count)]
    # By 1 + the number of a site: 0 for none.
    ways = np.array([_NOT, *(_STRONG if each else _WEAK for each in wide)], dtype=np.uint8)
    yield from _runs_of_steps(check)
    for writes, first, stamps in check.in_global.stored(shift):
        there = (stamps != 0).view(np.uint8)
        if any(wide):
            there *= ways[sites_of(stamps) + 1]
        for way, starts, ends in _stretches(there):
            sites = sites_of(stamps[starts])
            yield _of(check, starts + first, ends + first, sites, way, writes=writes)
    for writes, steps in _listed_steps(check):
        some = [step for step in steps if step.first_of_run < 0 and step.stretches is None]
        if some:
            units, numbers = _listed(some, shift)
            apart = units if isinstance(units, np.ndarray) else None
            for way, starts, ends in _stretches(ways[numbers], apart):
                sites = numbers[starts].astype(np.int64) - 1
                if apart is not None:
                    starts, ends = apart[starts], apart[ends - 1] + 1
                else:
                    starts, ends = starts + units, ends + units
                yield _of(check, starts, ends, sites, way, writes=writes)


def _of(
    check: RaceCheck, starts: Places, ends: Places, sites: Places, way: int, *, writes: bool
) -> AccessedBytes:
    """Ranges of units as ranges of bytes."""
    shift, base = check.global_shift, check.memory.base
    return AccessedBytes(
        (starts << shift) + base, (ends << shift) + base, sites, writes, way == _STRONG
    )


def _stretches(
    ways: NDArray[np.uint8], units: Places | None = None
) -> Iterator[tuple[int, Places, Places]]:
    """Where stretches of units begin and end that were accessed in one way, for each way.

    `units`: the numbers of the units in order, where they do not all follow each other.
    """
    changes = ways[1:] != ways[:-1]
    if units is not None:
        changes |= units[1:] != units[:-1] + 1
    bounds = np.concatenate([[0], np.flatnonzero(changes) + 1, [len(ways)]])
    starts, ends = bounds[:-1], bounds[1:]
    for way in (_WEAK, _STRONG):
        there = ways[starts] == way
        if there.any():
            yield way, starts[there], ends[there]


def _listed_steps(check: RaceCheck) -> Iterator[tuple[bool, list[AccessStep]]]:
    yield from check.in_global.listed()
    for writes in (False, True):
        yield writes, [step for step, is_write in check.elsewhere if is_write == writes]


def _runs_of_steps(check: RaceCheck) -> Iterator[AccessedBytes]:
    """Steps whose threads access units one after the other, or stretches of such."""
    for writes, steps in _listed_steps(check):
        for way in (_WEAK, _STRONG):
            some = [step for step in steps if check.is_wide(step.site) == (way == _STRONG)]
            runs = [step for step in some if step.first_of_run >= 0]
            if runs:
                starts = np.array([step.first_of_run for step in runs], dtype=np.int64)
                ends = starts + np.array([step.count for step in runs])
                sites = np.array([step.site for step in runs], dtype=np.int64)
                yield merged([_of(check, starts, ends, sites, way, writes=writes)])
            parts = []
            for step in some:
                found = step.stretches if step.first_of_run < 0 else None
                if found is not None:
                    sites = np.full(len(found[0]), step.site)
                    parts.append(_of(check, *found, sites, way, writes=writes))
            if parts:
                yield merged(parts)


def _listed(steps: list[AccessStep], shift: int) -> tuple[int | Places, Sites]:
    low = min(step.low for step in steps) >> shift
    high = -(-max(step.high for step in steps) >> shift)
    if sum(step.count for step in steps) * _SPARSE < high - low:
        units = np.concatenate([_numbers(step) for step in steps])
        sites = np.concatenate([np.full(len(_numbers(s)), s.site + 1, np.uint16) for s in steps])
        there, first = np.unique(units, return_index=True)
        return there, sites[first]
    found: Sites = np.zeros(high - low, dtype=np.uint16)
    for step in steps:
        found[_numbers(step) - low] = step.site + 1
    return low, found


def _numbers(step: AccessStep) -> Places:
    units = step.find_units()
    if isinstance(units, slice):
        return np.arange(units.start, units.stop, dtype=np.int64)
    return units.astype(np.int64)


def _merged(parts: list[AccessedBytes]) -> Iterator[AccessedBytes]:
    """One part for each way of access, its ranges in order and apart."""
    for writes in (False, True):
        for strong in (False, True):
            some = [each for each in parts if (each.writes, each.strong) == (writes, strong)]
            if some:
                yield merged(some) if len(some) > 1 else some[0]


def merged(parts: list[AccessedBytes]) -> AccessedBytes:
    """Parts of one way of access as one, whose ranges may be in any order and overlap."""
    starts = np.concatenate([each.starts for each in parts])
    ends = np.concatenate([each.ends for each in parts])
    sites = np.concatenate([each.sites for each in parts])
    if (starts[1:] < starts[:-1]).any():
        order = np.argsort(starts, kind="stable")
        starts, ends, sites = starts[order], ends[order], sites[order]
    ends = np.maximum.accumulate(ends)
    begins = np.flatnonzero(np.r_[True, starts[1:] > ends[:-1]])
    last = np.r_[begins[1:] - 1, len(starts) - 1]
    return AccessedBytes(
        starts[begins], ends[last], sites[begins], parts[0].writes, parts[0].strong
    )
