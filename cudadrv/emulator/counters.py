"""Counts of executed instructions, by launch, by kernel and by line (docs/counters.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ptx.emulate.count.counts import Counts, Line
from ptx.read_only import ReadOnly

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
        kernel: its name expression if the module has one, else its name; `device`: the ordinal.
        total: its total; `lines`: by line.
        ptx: the PTX of its module; `symbol`: the kernel's name there.
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
    symbol: str = field(repr=False)


class Counters:
    """The counted launches, in the order in which they ran.

    ``counters["scale<float>"]`` is the sum of a kernel's launches, and iterating yields the
    kernels' names.

    Attributes:
        launches: the launches that ended.
        failed: launches that a fault ended, with their counts up to the fault; they are not among
            `launches`, nor in any sum.
    """

    __slots__ = ("__weakref__", "_failed", "_launches")

    launches: ReadOnly[list[CountedLaunch]] = ReadOnly("_launches")
    failed: ReadOnly[list[CountedLaunch]] = ReadOnly("_failed")

    def __init__(self) -> None:
        self._launches: list[CountedLaunch] = []
        self._failed: list[CountedLaunch] = []

    def __repr__(self) -> str:
        return f"Counters(launches={self._launches!r}, failed={self._failed!r})"

    def __len__(self) -> int:
        """Return the number of launched kernels, those that iterating yields."""
        return len(self.kernels)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the launched kernels, each once."""
        return iter(self.kernels)

    def __contains__(self, kernel: object) -> bool:
        """Return whether ``counters[kernel]`` has launches."""
        return any(kernel in (launch.kernel, launch.symbol) for launch in self._launches)

    def __getitem__(self, kernel: str) -> Counts:
        """Return the sum of all launches of a kernel, by its name, name expression or symbol.

        Raises:
            KernelNotFoundError: there is none.
        """
        totals = [
            launch.total for launch in self._launches if kernel in (launch.kernel, launch.symbol)
        ]
        if not totals:
            names = tuple(self.kernels)
            text = f"no launch of {border.shown(kernel)} was counted, but of {list(names)}"
            raise KernelNotFoundError(text, name=kernel, available=names)
        return sum(totals, Counts())

    @property
    def kernels(self) -> dict[str, Counts]:
        """Return the sums of all launches, by kernel."""
        sums: defaultdict[str, Counts] = defaultdict(Counts)
        for launch in self._launches:
            sums[launch.kernel] += launch.total
        return dict(sums)

    @property
    def lines(self) -> dict[tuple[str, Line], Counts]:
        """Return the sums of all launches, by kernel and line."""
        sums: defaultdict[tuple[str, Line], Counts] = defaultdict(Counts)
        for launch in self._launches:
            for line, counts in launch.lines.items():
                sums[launch.kernel, line] += counts
        return dict(sorted(sums.items()))

    @property
    def total(self) -> Counts:
        """Return the sum of all launches."""
        return sum((launch.total for launch in self._launches), Counts())
