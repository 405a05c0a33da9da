"""Results in registers that are read before they have been waited for: of `wgmma`, `tcgen05.ld`.

PTX ISA, "wgmma.wait_group", "tcgen05.wait".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

import numpy as np

from ptx.emulate.check.tensor_workers import TensorWorkers, WorkerKind
from ptx.emulate.model.addresses import Index
from ptx.isa.model import Instruction

if TYPE_CHECKING:
    from ptx.emulate.check.races import RaceCheck
    from ptx.emulate.model.threads import Threads

_Key = tuple[int, int, int]  # how many calls the thread is in, the function, and the register


class Action(Enum):
    """What an instruction does with registers whose results may not be there.

    BEGINS: a product or a load that gives them results. PASSES_ON: what it writes is as late as
    what it reads. READS: anything else.
    """

    BEGINS = auto()
    PASSES_ON = auto()
    READS = auto()


@dataclass(frozen=True, slots=True)
class PendingUse:
    """An instruction with such registers.

    Attributes:
        kind: which work it begins.
        reads: the registers that it reads, by their numbers, with their `names`.
        writes: those that it writes.
    """

    instruction: Instruction
    action: Action
    kind: WorkerKind
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    names: tuple[str, ...]


class _Begun:
    """A result, by the threads of the chunk: the instruction's number, and the group of its work.

    The number is 0 where there is no such result.
    """

    def __init__(self, threads: int) -> None:
        self.by = np.zeros(threads, dtype=np.int32)
        self.group = np.zeros(threads, dtype=np.int64)


class PendingRegisters:
    """The registers of a chunk's threads with results of such work."""

    def __init__(self, launch: RaceCheck, workers: TensorWorkers, threads: int) -> None:
        self._launch = launch
        self._workers = workers
        self._threads = threads
        self._begun: dict[_Key, _Begun] = {}
        self._uses: list[PendingUse] = []
        self._numbers: dict[int, int] = {}  # of uses, from 1, by their identity

    def before(self, threads: Threads, use: PendingUse) -> None:
        """These threads are about to execute an instruction."""
        lanes = _present(threads)
        if use.action is Action.PASSES_ON:
            self._pass_on(threads, lanes, use)
            return
        for register, name in zip(use.reads, use.names, strict=True):
            found = self._begun.get(self._key(threads, register))
            if found is not None:
                self._check(threads, lanes, found, use, name)
        if use.action is Action.READS:
            for register in use.writes:
                found = self._begun.get(self._key(threads, register))
                if found is not None:
                    found.by[lanes] = 0

    def behind(self, threads: Threads, use: PendingUse) -> None:
        """They have begun work that gives registers results."""
        lanes = _present(threads)
        groups = self._workers.group(use.kind, lanes)
        number = self._numbers.setdefault(id(use), len(self._uses) + 1)
        if number > len(self._uses):
            self._uses.append(use)
        for register in use.writes:
            key = self._key(threads, register)
            found = self._begun.get(key)
            if found is None:
                found = self._begun[key] = _Begun(self._threads)
            found.by[lanes], found.group[lanes] = number, groups

    def _pass_on(self, threads: Threads, lanes: Index, use: PendingUse) -> None:
        """Of several registers that make one, the last one counts that has such a result.

        Not followed under a guard, where some threads keep their values.
        """
        if use.instruction.guard is not None:
            return
        sources = [self._begun.get(self._key(threads, each)) for each in use.reads]
        by = np.zeros(len(lanes), dtype=np.int32)
        group = np.zeros(len(lanes), dtype=np.int64)
        for source in sources:
            if source is not None:
                has = source.by[lanes] != 0
                by[has], group[has] = source.by[lanes][has], source.group[lanes][has]
        for register in use.writes:
            key = self._key(threads, register)
            found = self._begun.get(key)
            if found is None:
                if not by.any():
                    continue
                found = self._begun[key] = _Begun(self._threads)
            found.by[lanes], found.group[lanes] = by, group

    def _check(
        self, threads: Threads, lanes: Index, found: _Begun, use: PendingUse, name: str
    ) -> None:
        by = found.by[lanes]
        for number in np.unique(by[by != 0]).tolist():
            begun = self._uses[number - 1]
            early = (by == number) & (found.group[lanes] >= self._workers.done(begun.kind, lanes))
            if early.any():
                lane = int(lanes[int(np.argmax(early))])
                position = int(np.argmax(threads.lane_numbers() == lane))
                places = [threads.where(position, i.instruction) for i in (begun, use)]
                self._launch.report_pending(begun.instruction, places[0], places[1], name)

    @staticmethod
    def _key(threads: Threads, register: int) -> _Key:
        calls = threads.calls
        return len(calls), calls[-1].function if calls else 0, register


def _present(threads: Threads) -> Index:
    lanes = threads.lane_numbers()
    found: Index = lanes if threads.present is None else lanes[threads.present]
    return found
