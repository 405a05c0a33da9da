"""The counts of one launch: the sums of its chunks, and their assignment to source lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.count.count_writer import CountedCode
from ptx.emulate.count.counts import (
    AtomicTraffic,
    Branches,
    Counts,
    Executed,
    GlobalTraffic,
    Line,
    SharedTraffic,
)
from ptx.emulate.count.instruction_class import InstructionClass, class_of
from ptx.emulate.count.warp_rows import Rows, most_alike
from ptx.emulate.kernel_facts import KernelFacts
from ptx.emulate.memory.site import Site
from ptx.isa.instruction_facts import InstructionKind
from ptx.isa.model import Instruction, source_place

_MOST_APART: Final = 1 << 20  # addresses that are held before they are put together


class Contention:
    """The atomics of one instruction to one space."""

    def __init__(self) -> None:
        self._requests = self._threads = self._transactions = self._ways = 0
        self._addresses: list[NDArray[np.int64]] = []
        self._times: list[NDArray[np.int64]] = []
        self._held = 0

    def add(self, rows: Rows, elements: Rows, transactions: int) -> None:
        """Record an atomic of warps: addresses, places in memory, and transactions."""
        self._requests += len(rows)
        self._threads += int(np.count_nonzero(rows >= 0))
        self._transactions += transactions
        self._ways += int(most_alike(elements).sum())
        distinct, times = np.unique(elements[elements >= 0], return_counts=True)
        self._addresses.append(distinct)
        self._times.append(times.astype(np.int64))
        self._held += len(distinct)
        if self._held > _MOST_APART:
            self._put_together()
            self._held = 0

    def _put_together(self) -> None:
        every = np.concatenate(self._addresses)
        distinct, inverse = np.unique(every, return_inverse=True)
        times = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(times, inverse, np.concatenate(self._times))
        self._addresses, self._times = [distinct], [times]

    @property
    def traffic(self) -> AtomicTraffic:
        """The numbers so far."""
        if not self._addresses:
            return AtomicTraffic()
        self._put_together()
        (times,) = self._times
        return AtomicTraffic(
            self._requests,
            self._threads,
            self._transactions,
            self._ways,
            len(times),
            int(np.max(times)),
        )


class LaunchCounts:
    """The counts of a launch, by block of code and by instruction; `lines` assigns them to lines.

    Attributes:
        code: the kernel's facts, and the instructions of its blocks; None before the launch.
    """

    def __init__(self) -> None:
        self.code: tuple[KernelFacts, CountedCode] | None = None
        self.warps: defaultdict[int, int] = defaultdict(int)
        self.threads: defaultdict[int, int] = defaultdict(int)
        self.guarded: defaultdict[int, int] = defaultdict(int)
        self.branches: defaultdict[int, Branches] = defaultdict(Branches)
        self.in_global: defaultdict[Site, GlobalTraffic] = defaultdict(GlobalTraffic)
        self.in_shared: defaultdict[Site, SharedTraffic] = defaultdict(SharedTraffic)
        self.atomics: defaultdict[tuple[Site, str], Contention] = defaultdict(Contention)

    def lines(self) -> dict[Line, Counts]:
        """Return the counts of each line of the code that ran."""
        if self.code is None:
            return {}
        facts, code = self.code
        files = facts.files
        counts_of: defaultdict[Line, Counts] = defaultdict(Counts)

        def add(instruction: Instruction, counts: Counts) -> None:
            counts_of[_line(instruction, files)] += counts

        for line, classes in self._executed(code, files).items():
            counts_of[line] = Counts(classes)
        for number, branches in self.branches.items():
            add(code.guarded[number], Counts(branches=branches))
        for site, traffic in self.in_global.items():
            add(site.instruction, _of_global(traffic, site))
        for site, banks in self.in_shared.items():
            add(site.instruction, _of_shared(banks, writes=site.writes))
        for (site, space), contention in self.atomics.items():
            add(site.instruction, _of_atomics(contention.traffic, space))
        return dict(sorted(counts_of.items()))

    def _executed(
        self, code: CountedCode, files: Mapping[int, str]
    ) -> dict[Line, dict[InstructionClass, Executed]]:
        """The instructions of each line, by class."""
        executed_on: defaultdict[Line, defaultdict[InstructionClass, Executed]] = defaultdict(
            lambda: defaultdict(Executed)
        )

        def add(instruction: Instruction, executed: Executed) -> None:
            executed_on[_line(instruction, files)][class_of(instruction)] += executed

        for block, warps in self.warps.items():
            for counted in code.of_warps[block]:
                add(counted, Executed(warps, 0))
        for block, threads in self.threads.items():
            for counted in code.of_threads[block]:
                add(counted, Executed(0, threads))
        for number, threads in self.guarded.items():
            add(code.guarded[number], Executed(0, threads))
        return {line: _in_order(classes) for line, classes in executed_on.items()}


def _in_order(classes: Mapping[InstructionClass, Executed]) -> dict[InstructionClass, Executed]:
    return {kind: classes[kind] for kind in InstructionClass if kind in classes}


def _of_global(traffic: GlobalTraffic, site: Site) -> Counts:
    if site.facts.kind is InstructionKind.COPY:
        return Counts(global_copies=traffic)
    return Counts(global_stores=traffic) if site.writes else Counts(global_loads=traffic)


def _of_shared(traffic: SharedTraffic, *, writes: bool) -> Counts:
    return Counts(shared_stores=traffic) if writes else Counts(shared_loads=traffic)


def _of_atomics(traffic: AtomicTraffic, space: str) -> Counts:
    if space == "shared":
        return Counts(shared_atomics=traffic)
    return Counts(global_atomics=traffic)


def _line(instruction: Instruction, files: Mapping[int, str]) -> Line:
    file, line = source_place(instruction.location, files)
    return Line(file or "", instruction.line if line is None else line)
