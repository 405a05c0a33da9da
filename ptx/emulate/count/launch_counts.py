"""What one launch executes: the sums of its chunks, and what they mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ptx.emulate.count.contention import Contention
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
from ptx.emulate.kernel_facts import CountedCode
from ptx.emulate.memory.site import Site
from ptx.isa.model import Instruction
from ptx.isa.source_place import source_place


class LaunchCounts:
    """The counts of a launch, by block of code and by instruction; `read` gives what they mean."""

    def __init__(self) -> None:
        self.warps: defaultdict[int, int] = defaultdict(int)
        self.threads: defaultdict[int, int] = defaultdict(int)
        self.guarded: defaultdict[int, int] = defaultdict(int)
        self.branches: defaultdict[int, Branches] = defaultdict(Branches)
        self.in_global: defaultdict[Site, GlobalTraffic] = defaultdict(GlobalTraffic)
        self.in_shared: defaultdict[Site, SharedTraffic] = defaultdict(SharedTraffic)
        self.atomics: defaultdict[tuple[Site, str], Contention] = defaultdict(Contention)

    def read(self, code: CountedCode, files: Mapping[int, str]) -> dict[Line, Counts]:
        """What each line executed, of the code that ran."""
        found: defaultdict[Line, Counts] = defaultdict(Counts)

        def add(instruction: Instruction, counts: Counts) -> None:
            found[_line(instruction, files)] += counts

        for line, classes in self._executed(code, files).items():
            found[line] = Counts(classes)
        for number, branches in self.branches.items():
            add(code.guarded[number], Counts(branches=branches))
        for site, traffic in self.in_global.items():
            add(site.instruction, _of_global(traffic, site))
        for site, banks in self.in_shared.items():
            add(site.instruction, _of_shared(banks, writes=site.writes))
        for (site, space), contention in self.atomics.items():
            add(site.instruction, _of_atomics(contention.traffic, space))
        return dict(sorted(found.items()))

    def _executed(
        self, code: CountedCode, files: Mapping[int, str]
    ) -> dict[Line, dict[InstructionClass, Executed]]:
        """The instructions of each line, by class."""
        found: defaultdict[Line, defaultdict[InstructionClass, Executed]] = defaultdict(
            lambda: defaultdict(Executed)
        )

        def add(instruction: Instruction, executed: Executed) -> None:
            found[_line(instruction, files)][class_of(instruction)] += executed

        for block, warps in self.warps.items():
            for each in code.of_warps[block]:
                add(each, Executed(warps, 0))
        for block, threads in self.threads.items():
            for each in code.of_threads[block]:
                add(each, Executed(0, threads))
        for number, threads in self.guarded.items():
            add(code.guarded[number], Executed(0, threads))
        return {line: _in_order(classes) for line, classes in found.items()}


def _in_order(classes: Mapping[InstructionClass, Executed]) -> dict[InstructionClass, Executed]:
    return {each: classes[each] for each in InstructionClass if each in classes}


def _of_global(traffic: GlobalTraffic, site: Site) -> Counts:
    if site.instruction.opcode == "cp":
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
