"""Marks of values in registers, by thread, which follow a value from register to register."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.model.addresses import Index
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import Threads
from ptx.isa.model import Instruction

_Key = tuple[int, int]  # how many calls the thread is in, and the register
Marks = NDArray[np.int32]  # (n,) the mark of each thread's value, 0 for none
FIRST_MARK: Final = 2**31 - 1
"""Marks count down from here. A result has the largest mark of its sources, so the oldest one."""


@dataclass(frozen=True, slots=True)
class RegisterUse:
    """The registers that an instruction uses, by their numbers.

    Attributes:
        sources: those whose values it takes: of a store, of each element.
        writes: those that it writes.
        address: those of the address that it accesses.
        guard: the one that decides whether it is executed.
    """

    instruction: Instruction
    sources: tuple[int | None, ...]
    writes: tuple[int, ...]
    address: tuple[int, ...] = ()
    guard: int | None = None


class RegisterMarks(dict[_Key, Marks]):
    """The registers of a chunk's threads that have marked values; empty as long as none has.

    Args:
        lanes: how many threads the chunk has.

    Attributes:
        joins: makes the mark of a result from those of two sources.
    """

    joins: ClassVar[np.ufunc] = np.maximum

    def __init__(self, lanes: int) -> None:
        super().__init__()
        self._lanes = lanes

    # Called by generated code, before the instruction is executed.

    def enter(self, threads: Threads, live: frozenset[int]) -> None:
        """Begin a basic block, and discard values that are not read any more."""
        depth = len(threads.calls)
        dead = [key for key in self if key[0] > depth or (key[0] == depth and key[1] not in live)]
        if dead:
            self._discard(threads, dead)

    def _discard(self, threads: Threads, keys: Sequence[_Key]) -> None:
        """Discard the marks that present threads have of some registers."""
        lanes = slice_of(present_lanes(threads))
        for key in keys:
            self._set(key, lanes, None)

    def passes(self, threads: Threads, use: RegisterUse, guard: Value | None = None) -> None:
        """The results depend on all that is taken."""
        lanes = present_lanes(threads)
        self._write(threads, lanes, use, self._of(threads, lanes, use.sources), guard)

    def selects(
        self, threads: Threads, use: RegisterUse, chosen: Value, guard: Value | None = None
    ) -> None:
        """`selp`: the first source where `chosen`, else the second; the third is what chooses."""
        lanes = present_lanes(threads)
        first_marks, second_marks, selector_marks = (
            self._of(threads, lanes, (source,)) for source in use.sources
        )
        no_marks = np.zeros(len(lanes), dtype=np.int32)
        of_chosen = np.where(
            of_present(threads, chosen),
            no_marks if first_marks is None else first_marks,
            no_marks if second_marks is None else second_marks,
        )
        self._write(
            threads,
            lanes,
            use,
            of_chosen if selector_marks is None else self.joins(of_chosen, selector_marks),
            guard,
        )

    def _of(self, threads: Threads, lanes: Index, registers: Sequence[int | None]) -> Marks | None:
        """Return for each lane the mark of these registers; None if none has one."""
        depth = len(threads.calls)
        marks_of_registers = (
            self.get((depth, register)) for register in registers if register is not None
        )
        of_each = [None if marks is None else marks[lanes] for marks in marks_of_registers]
        return either(of_each, self.joins)

    def _write(
        self,
        threads: Threads,
        lanes: Index,
        use: RegisterUse,
        marks: Marks | None,
        guard: Value | None,
    ) -> None:
        """Record writes of registers by the threads for which the guard holds."""
        depth = len(threads.calls)
        by = None if use.guard is None else self._of(threads, lanes, (use.guard,))
        for number in use.writes:
            key = depth, number
            if guard is None or use.guard is None:
                self._set(key, lanes, marks)
                continue
            no_marks = np.zeros(len(lanes), dtype=np.int32)
            old = self._of(threads, lanes, (number,))
            new = np.where(
                of_present(threads, guard),
                no_marks if marks is None else marks,
                no_marks if old is None else old,
            )
            self._set(key, lanes, new if by is None else self.joins(new, by))

    def _set(self, key: _Key, lanes: Index | slice, marks: Marks | None) -> None:
        stored = self.get(key)
        if marks is None or not np.count_nonzero(marks):
            if stored is not None:
                stored[lanes] = 0
                if not np.count_nonzero(stored):
                    del self[key]
            return
        if stored is None:
            stored = self[key] = np.zeros(self._lanes, dtype=np.int32)
        stored[lanes] = marks


def present_lanes(threads: Threads) -> Index:
    """Return the numbers of the present threads."""
    lanes = threads.lane_numbers()
    present: Index = lanes if threads.present is None else lanes[threads.present]
    return present


def slice_of(lanes: Index) -> Index | slice:
    """Return lanes without gaps as a slice, which costs less than their numbers."""
    if not len(lanes):
        return lanes
    first, last = int(lanes[0]), int(lanes[-1])
    return slice(first, last + 1) if last - first + 1 == len(lanes) else lanes


def of_present(threads: Threads, value: Value) -> NDArray[np.bool_]:
    """Return a value of all threads for the present threads alone."""
    flags = np.asarray(value, dtype=np.bool_)
    return flags if flags.ndim == 0 or threads.present is None else flags[threads.present]


def either(alternatives: Sequence[Marks | None], joins: np.ufunc = np.maximum) -> Marks | None:
    """Return for each thread its marks joined, the largest by default; None if none is given."""
    present = [marks for marks in alternatives if marks is not None]
    if not present:
        return None
    return reduce(joins, present)
