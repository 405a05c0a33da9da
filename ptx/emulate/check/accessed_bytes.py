"""The bytes that a launch accessed, to be compared with launches and copies beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.access_step import AccessStep
from ptx.emulate.check.findings import Access
from ptx.emulate.check.stamps import Bools, sites_of

if TYPE_CHECKING:
    from ptx.emulate.check.race_check import RaceCheck

Sites = NDArray[np.uint16]  # 1 + the number of the site that accessed a unit last; 0 for none
Units = NDArray[np.int64]
_Ranges = tuple[Units, Units, Units]  # starts, ends, and the numbers of sites

_PAGE: Final = 4096
_SPARSE: Final = 8  # sort units, if the memory between them has so many for each


@dataclass(frozen=True, slots=True)
class AccessedBytes:
    """Ranges of bytes, in order and apart, that were accessed in one way.

    Attributes:
        starts, ends: absolute addresses.
        sites: the number of a site that accessed each range.
        writes: whether they were written, or written and read; else they were only read.
        strong: whether by atomic or volatile accesses of a scope that reaches other launches.
    """

    starts: Units
    ends: Units
    sites: NDArray[np.int64]
    writes: bool
    strong: bool

    @staticmethod
    def merged(parts: list[AccessedBytes]) -> AccessedBytes:
        """Merge parts of one way of access, whose ranges may be in any order and overlap."""
        starts = np.concatenate([part.starts for part in parts])
        ends = np.concatenate([part.ends for part in parts])
        sites = np.concatenate([part.sites for part in parts])
        if (starts[1:] < starts[:-1]).any():
            order = np.argsort(starts, kind="stable")
            starts, ends, sites = starts[order], ends[order], sites[order]
        ends = np.maximum.accumulate(ends)
        begins = np.flatnonzero(np.r_[True, starts[1:] > ends[:-1]])
        last = np.r_[begins[1:] - 1, len(starts) - 1]
        return AccessedBytes(
            starts[begins], ends[last], sites[begins], parts[0].writes, parts[0].strong
        )


class LaunchAccesses:
    """All accesses of a launch to global memory.

    Attributes:
        signals: whether it accessed memory of the host, or of another device, by atomic or volatile
            accesses too, so that a flag there may order it.
    """

    def __init__(self, check: RaceCheck) -> None:
        self._check = check
        self.kernel: str = check.kernel
        self.signals: bool = False
        for step, _ in check.elsewhere:
            self.signals |= check.is_wide(step.site)
        self.parts: tuple[AccessedBytes, ...] = tuple(_parts(check) if check.site_count else ())

    def access(self, part: AccessedBytes, index: int, queued_at: str) -> Access:
        """Return one side of a race: the range number `index` of a part."""
        return self._check.access_of_any(int(part.sites[index]), queued_at)

    def committed_nbytes(self) -> int:
        """Return the bytes of the pages that the shadow memory of global memory uses."""
        accesses, shift = self._check.in_global, self._check.global_shift
        return _PAGE * sum(map(_used_pages, accesses.parts_in_use(shift)))

    def release(self) -> None:
        """Forget all but the names of the accesses."""
        self._check.forget_accesses()


def _used_pages(array: NDArray[np.integer[Any]]) -> int:
    elements_per_page = _PAGE // array.itemsize
    return int(
        np.count_nonzero(np.add.reduceat(array != 0, np.arange(0, len(array), elements_per_page)))
    )


def _parts(check: RaceCheck) -> Iterator[AccessedBytes]:
    """Yield one part for each way of access, its ranges in order and apart."""
    wide = np.zeros(check.site_count, dtype=np.bool_)
    for number in range(check.site_count):
        wide[number] = check.is_wide(number)
    ways = [(writes, *ranges, wide[ranges[2]]) for writes, ranges in _ranges(check, wide)]
    shift, base = check.global_shift, check.memory.base
    for writes in (False, True):
        for strong in (False, True):
            parts = []
            for is_write, starts, ends, sites, is_wide in ways:
                is_selected = is_wide if strong else ~is_wide
                if is_write == writes and is_selected.any():
                    first, last = (
                        (starts[is_selected] << shift) + base,
                        (ends[is_selected] << shift) + base,
                    )
                    parts.append(AccessedBytes(first, last, sites[is_selected], writes, strong))
            if parts:
                yield AccessedBytes.merged(parts)


def _ranges(check: RaceCheck, wide: Bools) -> Iterator[tuple[bool, _Ranges]]:
    """Yield ranges of units, with whether they were written."""
    elsewhere: tuple[list[AccessStep], list[AccessStep]] = [], []
    for step, is_write in check.elsewhere:
        elsewhere[is_write].append(step)
    read, written = elsewhere
    steps = [*check.in_global.listed(), (False, read), (True, written)]
    scattered = []
    for writes, steps_of_way in steps:
        runs, sparse = [], []
        for step in steps_of_way:
            if step.first_of_run >= 0:
                runs.append((step.first_of_run, step.first_of_run + step.count, step.site))
            elif step.stretches is None:
                sparse.append(step)
        if runs:
            starts, ends, sites = np.array(runs, dtype=np.int64).T
            yield writes, (starts, ends, sites)
        for step in steps_of_way:
            stretches = step.stretches if step.first_of_run < 0 else None
            if stretches is not None:
                yield writes, (*stretches, np.full(len(stretches[0]), step.site))
        if sparse:
            scattered.append((writes, sparse))
    # By 1 + the number of a site: 0 for no access, 1 for a weak one, 2 for a strong one.
    ways = np.concatenate([[0], wide + 1]).astype(np.uint8)
    for writes, first, stamps in check.in_global.stored(check.global_shift):
        accessed = (stamps != 0).view(np.uint8)
        if wide.any():
            accessed *= ways[sites_of(stamps) + 1]
        starts, ends = _stretches(accessed)
        yield writes, (starts + first, ends + first, sites_of(stamps[starts]))
    for writes, sparse_steps in scattered:
        units, numbers = _listed(sparse_steps, check.global_shift)
        separate_units = units if isinstance(units, np.ndarray) else None
        starts, ends = _stretches(ways[numbers], separate_units)
        sites = numbers[starts].astype(np.int64) - 1
        if isinstance(units, int):
            yield writes, (starts + units, ends + units, sites)
        else:
            yield writes, (units[starts], units[ends - 1] + 1, sites)


def _stretches(ways: NDArray[np.uint8], units: Units | None = None) -> tuple[Units, Units]:
    """Return where stretches of units begin and end that were accessed in one way.

    `units`: the numbers of the units in order, where they do not all follow each other.
    """
    changes = ways[1:] != ways[:-1]
    if units is not None:
        changes |= units[1:] != units[:-1] + 1
    bounds = np.concatenate([[0], np.flatnonzero(changes) + 1, [len(ways)]])
    starts, ends = bounds[:-1], bounds[1:]
    is_accessed = ways[starts] != 0
    return starts[is_accessed], ends[is_accessed]


def _listed(steps: list[AccessStep], shift: int) -> tuple[int | Units, Sites]:
    low = min(step.low for step in steps) >> shift
    high = -(-max(step.high for step in steps) >> shift)
    if sum(step.count for step in steps) * _SPARSE < high - low:
        units = np.concatenate([_numbers(step) for step in steps])
        sites = np.concatenate([np.full(len(_numbers(s)), s.site + 1, np.uint16) for s in steps])
        distinct, first = np.unique(units, return_index=True)
        return distinct, sites[first]
    site_marks: Sites = np.zeros(high - low, dtype=np.uint16)
    for step in steps:
        site_marks[_numbers(step) - low] = step.site + 1
    return low, site_marks


def _numbers(step: AccessStep) -> Units:
    units = step.find_units()
    if isinstance(units, slice):
        return np.arange(units.start, units.stop, dtype=np.int64)
    return units.astype(np.int64)
