"""Loads that are no access yet, because nothing has needed their value.

The compiler moves loads before the condition that they stand in. Threads for which the condition is
false drop the value, and no result depends on it. So the race check sees such a load when the
thread needs the value. A selection, an `and` or an `or` may drop it.

Until then the thread neither synchronises nor writes the same memory: both need the value at once,
if a register still holds it. So the load races with the same accesses as before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.register_marks import (
    Marks,
    RegisterMarks,
    RegisterUse,
    either,
    of_present,
    present_lanes,
)
from ptx.emulate.memory.site import Site
from ptx.emulate.model.addresses import Addresses, Index, addresses_in, same_address
from ptx.emulate.model.geometry import Value
from ptx.emulate.model.threads import ThreadBlocks, Threads
from ptx.emulate.observer import Access

MOST_HELD: Final = 15
"""Loads of a kernel that are followed. A mark has two bits for each."""
_ALL: Final = (1 << MOST_HELD) - 1
_NOWHERE: Final = -1


@dataclass(frozen=True, slots=True)
class _HeldLoad:
    """A load: `addresses` has by lane where it loaded last, _NOWHERE where it is not held."""

    site: Site
    space: str
    addresses: NDArray[np.int64]


class HeldLoads(RegisterMarks):
    """The registers of a chunk's threads whose values come from such loads.

    Bit k of a mark stands for load k. Bit k + MOST_HELD stands for one that can change the
    register's value, but not whether it is zero.

    Args:
        blocks: the chunk's.
        numbers: of the loads, by the identity of the instruction.
        note: receives an access when its value is needed.
    """

    joins: ClassVar[np.ufunc] = np.bitwise_or

    def __init__(
        self, blocks: ThreadBlocks, numbers: Mapping[int, int], note: Callable[[Access], None]
    ) -> None:
        super().__init__(blocks.geometry.threads)
        self._blocks = blocks
        self._numbers = numbers
        self._note = note
        self._loads: dict[int, _HeldLoad] = {}

    # Called by accesses.

    def takes(self, access: Access) -> bool:
        """Hold a load; False for another access. A store needs the value that it overwrites."""
        number = self._numbers.get(id(access.site.instruction))
        if number is None:
            if self and access.site.writes:
                self._overwrite(access)
            return False
        load = self._loads.get(number)
        if load is None:
            nowhere = np.full(self._lanes, _NOWHERE, dtype=np.int64)
            load = self._loads[number] = _HeldLoad(access.site, access.space, nowhere)
        load.addresses[access.threads.lane_numbers()] = _places(access)
        return True

    def _overwrite(self, access: Access) -> None:
        lanes, first = access.threads.lane_numbers(), _places(access)
        for number, load in self._loads.items():
            old = load.addresses[lanes]
            meet = (first < old + load.site.total) & (old < first + access.site.total)
            if load.space == access.space and meet.any():
                marks = either([each[lanes[meet]] for each in self.values()], self.joins)
                if marks is not None:
                    self._need(lanes[meet], _whole(marks) & np.int32(1 << number))

    # Called by generated code, before the instruction is executed.

    def loads(self, threads: Threads, use: RegisterUse, live: frozenset[int]) -> None:
        """A load is about to be executed; `live`: the other registers that are read later."""
        lanes = present_lanes(threads)
        self._need_registers(threads, lanes, use.address)
        number = self._numbers.get(id(use.instruction))
        if number is not None:
            both = np.int32(1 << number | 1 << number + MOST_HELD)
            marks = self._of(threads, lanes, tuple(live))
            if marks is not None:
                self._need(lanes, marks & both)
            for key in [*self]:
                self._set(key, lanes, self[key][lanes] & ~both)
            if number in self._loads:
                self._loads[number].addresses[lanes] = _NOWHERE
        self._write(threads, lanes, use, None, None)

    def loaded(self, threads: Threads, use: RegisterUse) -> None:
        """The load has been executed."""
        number = self._numbers[id(use.instruction)]
        load, lanes = self._loads.get(number), present_lanes(threads)
        if load is not None:
            is_held = load.addresses[lanes] != _NOWHERE
            self._write(threads, lanes, use, is_held.astype(np.int32) << number, None)

    def passes(self, threads: Threads, use: RegisterUse, guard: Value | None = None) -> None:
        """The results depend on all that is taken."""
        lanes = present_lanes(threads)
        marks = self._of(threads, lanes, use.sources)
        self._write(threads, lanes, use, None if marks is None else _whole(marks), guard)

    def tests_zero(self, threads: Threads, use: RegisterUse, guard: Value | None = None) -> None:
        """The result depends on whether the sources are zero."""
        lanes = present_lanes(threads)
        marks = self._of(threads, lanes, use.sources)
        self._write(threads, lanes, use, None if marks is None else marks & _ALL, guard)

    def combines(
        self,
        threads: Threads,
        use: RegisterUse,
        decided: Sequence[Value],
        guard: Value | None = None,
        nonzero: Sequence[Value] = (),
    ) -> None:
        """`and` or `or` of two; `decided` is where each of them alone decides the result.

        `nonzero`: where each of them keeps the result of an `or` from being zero.
        """
        lanes = present_lanes(threads)
        marks = [self._of(threads, lanes, (source,)) for source in use.sources]
        none = np.zeros(len(lanes), dtype=np.int32)
        results: list[Marks | None] = []
        for own, other in ((0, 1), (1, 0)):
            of_own, of_other = marks[own], marks[other]
            if of_own is None:
                continue
            other_marks = none if of_other is None else of_other
            is_left_out = of_present(threads, decided[other]) & (other_marks == 0)
            result = np.where(is_left_out, none, of_own if nonzero else _whole(of_own))
            if nonzero:
                keeps = of_present(threads, nonzero[other]) & (other_marks & _ALL == 0)
                result = np.where(keeps, _whole(result) << MOST_HELD, result)
            results.append(result)
        self._write(threads, lanes, use, either(results, self.joins), guard)

    def compares(
        self, threads: Threads, use: RegisterUse, decided: Value, guard: Value | None = None
    ) -> None:
        """A comparison, joined with its last source; `decided` is where that alone decides."""
        lanes = present_lanes(threads)
        *compared, other = use.sources
        marks, by = self._of(threads, lanes, compared), self._of(threads, lanes, (other,))
        if marks is not None:
            is_left_out = of_present(threads, decided)
            if by is not None:
                is_left_out = is_left_out & (by == 0)
            marks = np.where(is_left_out, np.int32(0), _whole(marks))
        self._write(threads, lanes, use, either([marks, by], self.joins), guard)

    def stores(self, threads: Threads, use: RegisterUse, live: frozenset[int]) -> None:
        """A store is about to be executed, which needs its operands; `live` are read later."""
        lanes = present_lanes(threads)
        self._need_registers(threads, lanes, (*use.sources, *use.address))
        for key in [key for key in self if key[1] not in live]:
            self._set(key, lanes, None)

    def needs(self, threads: Threads, use: RegisterUse) -> None:
        """A branch is about to be executed, which needs its condition."""
        self._need_registers(threads, present_lanes(threads), use.sources)

    def orders(self, threads: Threads, use: RegisterUse) -> None:
        """Check an instruction that may order accesses; its sources are all that is read later."""
        lanes = present_lanes(threads)
        self._need_registers(threads, lanes, use.sources)
        for key in [*self]:
            self._set(key, lanes, None)

    def _need_registers(
        self, threads: Threads, lanes: Index, registers: Sequence[int | None]
    ) -> None:
        marks = self._of(threads, lanes, registers)
        if marks is not None:
            self._need(lanes, marks)

    def _need(self, lanes: Index, marks: Marks) -> None:
        """Make the loads accesses, those that the marks of these lanes have the bits of."""
        needed = _whole(marks)
        for number, load in self._loads.items():
            chosen = lanes[(needed >> number & 1) != 0]
            chosen = chosen[load.addresses[chosen] != _NOWHERE]
            if len(chosen):
                every = load.addresses[chosen]
                load.addresses[chosen] = _NOWHERE
                threads = Threads(self._blocks, chosen, len(chosen))
                self._note(Access(threads, load.space, _same(every), 0, load.site, None, 0, 0))


def _places(access: Access) -> NDArray[np.int64]:
    return access.addresses.every(access.threads.n) + access.offset


def _same(every: NDArray[np.int64]) -> Addresses:
    """The addresses of threads, as one if all are equal."""
    if (every == every[0]).all():
        return same_address(int(every[0]))
    return addresses_in(every)


def _whole(marks: Marks) -> Marks:
    """The marks, with no difference whether a value may only change while it is not zero."""
    whole: Marks = (marks | marks >> MOST_HELD) & np.int32(_ALL)
    return whole
