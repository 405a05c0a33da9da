"""Counts of executed instructions, by launch, by kernel and by line (docs/counters.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from ptx.emulate.count.counts import Counts, Line

from .. import border
from ..errors import KernelNotFoundError


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How many of a launch's blocks and warps a multiprocessor can hold.

    Attributes:
        blocks: the blocks that it holds at once; `warps`: their warps.
        most_warps: the most that it can hold.
        registers: per thread; the emulator estimates them from the PTX.
    """

    blocks: int
    warps: int
    most_warps: int
    registers: int

    @property
    def share(self) -> float:
        """Resident warps divided by the most that a multiprocessor can hold."""
        return self.warps / self.most_warps


@dataclass(frozen=True, slots=True)
class CountedLaunch:
    """One launch.

    Attributes:
        kernel: its name in the PTX; `device`: the ordinal.
        total: its total; `lines`: by line.
    """

    kernel: str
    device: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    occupancy: Occupancy
    total: Counts
    lines: Mapping[Line, Counts]


@dataclass(slots=True)
class Counters:
    """The counted launches, in the order in which they ran."""

    launches: list[CountedLaunch] = field(default_factory=list)

    def __getitem__(self, kernel: str) -> Counts:
        """Return the sum of all launches of a kernel.

        Raises:
            KernelNotFoundError: there is none.
        """
        found = [each.total for each in self.launches if each.kernel == kernel]
        if not found:
            names = tuple(self.kernels)
            text = f"no launch of {border.shown(kernel)} was counted, but of {list(names)}"
            raise KernelNotFoundError(text, name=kernel, available=names)
        return sum(found, Counts())

    @property
    def kernels(self) -> dict[str, Counts]:
        """Return the sums of all launches, by kernel."""
        found: defaultdict[str, Counts] = defaultdict(Counts)
        for each in self.launches:
            found[each.kernel] += each.total
        return dict(found)

    @property
    def lines(self) -> dict[tuple[str, Line], Counts]:
        """Return the sums of all launches, by kernel and line."""
        found: defaultdict[tuple[str, Line], Counts] = defaultdict(Counts)
        for launch in self.launches:
            for line, counts in launch.lines.items():
                found[launch.kernel, line] += counts
        return dict(sorted(found.items()))

    @property
    def total(self) -> Counts:
        """Return the sum of all launches."""
        return sum((each.total for each in self.launches), Counts())
