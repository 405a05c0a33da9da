"""Counts of executed instructions, by launch, by kernel and by line (docs/counters.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ptx.emulate.count.counts import Counts, Line

from .. import border
from ..errors import KernelNotFoundError

if TYPE_CHECKING:
    from ptx.emulate.count.access_log import AccessLog


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
        ptx: the PTX of its module.
    """

    kernel: str
    device: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    occupancy: Occupancy
    total: Counts
    lines: Mapping[Line, Counts]
    ptx: str = field(repr=False)


@dataclass(slots=True)
class Counters:
    """The counted launches, in the order in which they ran.

    Attributes:
        failed: launches that a fault ended, with their counts up to the fault; they are not among
            `launches`, nor in any sum.
        access_log: records accesses of further launches, too; None records none.
    """

    launches: list[CountedLaunch] = field(default_factory=list)
    failed: list[CountedLaunch] = field(default_factory=list)
    access_log: AccessLog | None = field(default=None, repr=False)

    def __getitem__(self, kernel: str) -> Counts:
        """Return the sum of all launches of a kernel.

        Raises:
            KernelNotFoundError: there is none.
        """
        totals = [launch.total for launch in self.launches if launch.kernel == kernel]
        if not totals:
            names = tuple(self.kernels)
            text = f"no launch of {border.shown(kernel)} was counted, but of {list(names)}"
            raise KernelNotFoundError(text, name=kernel, available=names)
        return sum(totals, Counts())

    @property
    def kernels(self) -> dict[str, Counts]:
        """Return the sums of all launches, by kernel."""
        sums: defaultdict[str, Counts] = defaultdict(Counts)
        for launch in self.launches:
            sums[launch.kernel] += launch.total
        return dict(sums)

    @property
    def lines(self) -> dict[tuple[str, Line], Counts]:
        """Return the sums of all launches, by kernel and line."""
        sums: defaultdict[tuple[str, Line], Counts] = defaultdict(Counts)
        for launch in self.launches:
            for line, counts in launch.lines.items():
                sums[launch.kernel, line] += counts
        return dict(sorted(sums.items()))

    @property
    def total(self) -> Counts:
        """Return the sum of all launches."""
        return sum((launch.total for launch in self.launches), Counts())
