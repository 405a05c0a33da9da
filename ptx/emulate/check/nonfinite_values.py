"""Infinities and NaNs that calculations make of finite numbers, and what becomes of them.

An infinity of finite operands, or a NaN of operands that are not NaN, gets a mark. The mark follows
the value from register to register. It ends without a finding where another value is selected,
because kernels calculate for both sides of a condition. A finding is a use of such a value. A store
or another instruction that hands it on uses it, and so does a conversion to an integer, a
comparison with NaN, or an operation that gives a number for a NaN. It names the instruction that
made the value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.nonfinite_sums import FloatUse, MemorySums
from ptx.emulate.check.number_classes import ClassesOfValues, NumberClasses, any_number
from ptx.emulate.check.register_marks import (
    FIRST_MARK,
    Marks,
    RegisterMarks,
    RegisterUse,
    either,
    present_lanes,
    slice_of,
)
from ptx.emulate.model.addresses import Index
from ptx.emulate.model.float_format import FloatFormat, Parts
from ptx.emulate.model.geometry import WARP, Value
from ptx.emulate.model.threads import Threads
from ptx.emulate.threads.fibre import Fibre
from ptx.isa.model import Instruction, Register

_Flags = NDArray[np.bool_]
_User = tuple[int, int]  # a mark, and the first thread that uses it
_Found = TypeVar("_Found")
_Element = TypeVar("_Element", np.int32, np.bool_)
_Known = dict[tuple[int, ...], tuple[tuple[object, ...], _Found]]
"""Results by the addresses of the objects that they depend on, which each entry owns."""
_MOST_ORIGINS: Final = 1000  # that have a number of their own
_MOST_TIMES: Final = 64  # of one origin whose operands are retained
_MOST_RETAINED: Final = 64  # results of each sort
_MOST_ALIKE: Final = 64  # numbers of marks whose arrays are retained
_MOST_PLACES: Final = 4  # of as many marks
_PARAMETERS: Final = -1
"""In place of the number of calls: parameters and results in memory, by their places there."""


@dataclass(frozen=True, slots=True)
class _Time:
    """Threads that made a value at once: `result` and `sources` have their numbers, as bits."""

    lanes: Index
    result: Parts
    sources: tuple[Parts, ...]

    @classmethod
    def of(cls, chosen: _Flags, lanes: Index, result: Parts, sources: Sequence[Parts]) -> _Time:
        """Return that of the chosen ones of some threads."""
        return cls(lanes[chosen], result[chosen], tuple([each[chosen] for each in sources]))


@dataclass(frozen=True, slots=True)
class Origin:
    """An instruction that made infinities or NaNs.

    Attributes:
        target: the register of the result, or its place in memory.
        is_nan: whether it was NaN.
        caller: the call from a function without lines; None for those with lines.
        times: when it did, the oldest ones first.
    """

    use: FloatUse
    target: str
    is_nan: bool
    caller: Instruction | None = None
    times: deque[_Time] = field(default_factory=lambda: deque(maxlen=_MOST_TIMES))

    @property
    def is_constant(self) -> bool:
        """Whether it is a constant that no operand decides: a number may take its place."""
        return self.use.instruction.opcode == "mov" and not self.use.sources

    @property
    def located(self) -> Instruction:
        """The instruction, with the line of the source that it belongs to."""
        if self.caller is None:
            return self.use.located
        return replace(self.use.located, location=self.caller.location)

    @property
    def kind(self) -> FloatFormat:
        """The format of the result."""
        return self.use.calculation.result

    def text(self, lane: int) -> str:
        """Return a thread's result and its operands."""
        for time in reversed(self.times):
            positions = (time.lanes == lane).nonzero()[0]
            if len(positions):
                break
        else:
            time, positions = self.times[-1], np.zeros(1, dtype=np.intp)
        row = int(positions[0])
        texts = [
            f"{operand.name} = {kind.text(numbers[row])}"
            for (operand, kind), numbers in zip(
                self.use.calculation.sources, time.sources, strict=True
            )
            if isinstance(operand, Register)
        ]
        texts = list(dict.fromkeys(texts))
        result = f"{self.target} = {self.kind.text(time.result[row])}"
        return f"{result} of {', '.join(texts)}" if texts else result


Report = Callable[[Threads, Origin, int, Instruction], None]


class NonfiniteValues(RegisterMarks):
    """The registers of a chunk's threads that have such values; empty as long as none has.

    Args:
        lanes: how many threads the chunk has.
        report: called with the threads, the origin, a thread's number, and the use.
    """

    def __init__(self, lanes: int, report: Report) -> None:
        super().__init__(lanes)
        self._report = report
        self._classes = ClassesOfValues()
        self._passed: _Known[Marks | None] = {}
        self._joined: _Known[Marks | None] = {}
        self._selected: _Known[Marks | None] = {}
        self._used: _Known[Sequence[_User]] = {}
        self._alike: dict[int, list[Marks]] = {}
        self._origins: list[Origin] = []
        self._known: dict[tuple[int, str, bool, int], int] = {}

    def _set(self, key: tuple[int, int], lanes: Index | slice, marks: Marks | None) -> None:
        stored = self.get(key)
        if stored is None and (marks is None or not np.count_nonzero(marks)):
            return
        new = np.zeros(self._lanes, np.int32) if stored is None else stored.copy()
        new[lanes] = 0 if marks is None else marks
        self._put(key, self._shared(new))

    def _discard(self, threads: Threads, keys: Sequence[tuple[int, int]]) -> None:
        for key in keys:
            self._join(key, threads, ())

    # Called by generated code.

    def calculated(
        self,
        threads: Threads,
        use: FloatUse,
        sources: Sequence[Value],
        results: Sequence[Value],
        guard: Value | None = None,
    ) -> None:
        """Mark results, after a calculation."""
        if guard is None and use.calculation.is_of_threads:
            self._calculated_alone(threads, use, sources, results[0])
        else:
            self._calculated_at(threads, use, sources, results, guard)

    def _calculated_at(
        self,
        threads: Threads,
        use: FloatUse,
        sources: Sequence[Value],
        results: Sequence[Value],
        guard: Value | None,
    ) -> None:
        """Mark results by looking at each thread; also those of warps, or under a guard."""
        positions = _active(threads, guard)
        if not use.calculation.is_of_warp:
            positions = positions[self._are_concerned(threads, use, results)[positions]]
        if not len(positions):
            return
        lanes = threads.lane_numbers()[positions]
        new = self._new_marks(threads, use, sources, results, positions)
        for target, marks in zip(use.targets, new, strict=True):
            self._set((len(threads.calls), target), lanes, marks)

    def _calculated_alone(
        self, threads: Threads, use: FloatUse, sources: Sequence[Value], result: Value
    ) -> None:
        """Mark the numbers that all threads calculate, each one for itself.

        What was found for the same classes and marks is found again, as in a loop.
        """
        depth, of = len(threads.calls), self._classes.of
        target = depth, use.targets[0]
        old = self.get(target)
        of_result = of(result, use.calculation.result)
        of_sources = [*map(of, sources, use.calculation.formats)]
        of_marks = [None if number is None else self.get((depth, number)) for number in use.sources]
        given = of_result, old, threads.lanes, threads.present, *of_sources, *of_marks
        key = tuple(map(id, given))
        passed = self._passed.get(key)
        if passed is None:
            marks, made, lost = self._passed_on(threads, of_result, of_sources, of_marks)
            if made is not None:
                values = sources, result
                nans = any_number(made & of_result.nans)
                infinite = any_number(made) > nans
                marks = self._marked(threads, use, values, marks, nans, is_nan=True)
                marks = self._marked(threads, use, values, marks, infinite, is_nan=False)
            for each in lost:
                self._use_each(threads, _users(threads, each), use.instruction, of_constants=False)
            passed = given, self._replaced(threads, old, marks)
            if made is None and not lost:
                _retain(self._passed, key, passed)
        self._put(target, passed[1])

    def _passed_on(
        self,
        threads: Threads,
        of_result: NumberClasses,
        of_sources: Sequence[NumberClasses],
        of_marks: Sequence[Marks | None],
    ) -> tuple[Marks | None, _Flags | None, list[Marks]]:
        """Return what becomes of the marks of operands.

        That is the marks of the results, which results are made here, if any, and the marks of NaNs
        of which an operation makes a number.
        """
        lanes, is_nan = _lanes_of(threads), of_result.nans
        marks: Marks | None = None
        lost: list[Marks] = []
        for classes, stored in zip(of_sources, of_marks, strict=True):
            if stored is None:
                continue
            of_source = stored[lanes]
            is_lost = classes.with_nan > of_result.with_nan
            if np.count_nonzero(is_lost):
                lost.append(_of_present(threads, of_source * is_lost))
            inherited = of_source & classes.of_wrong
            marks = inherited if marks is None else np.maximum(marks, inherited)
        made = of_result.wrong
        if of_sources:
            of_nan = reduce(np.logical_or, [each.nans for each in of_sources])
            of_wrong = reduce(np.logical_or, [each.wrong for each in of_sources])
            made = made > (of_nan | (of_wrong > is_nan))
        made = _of_present(threads, made)
        if marks is not None:
            made = made & (marks == 0)
            marks = marks & of_result.of_wrong
        return (
            marks,
            made if np.count_nonzero(made) else None,
            [each for each in lost if np.count_nonzero(each)],
        )

    def _marked(
        self,
        threads: Threads,
        use: FloatUse,
        values: tuple[Sequence[Value], Value],
        marks: Marks | None,
        made: _Flags,
        *,
        is_nan: bool,
    ) -> Marks | None:
        """Return marks with that of the results that are made here; `values`: operands, result."""
        if not np.count_nonzero(made):
            return marks
        positions = np.broadcast_to(made, (threads.n,)).nonzero()[0]
        calculation = use.calculation
        numbers = [
            _rows(kind, value, positions)
            for kind, value in zip(calculation.formats, values[0], strict=True)
        ]
        result = _rows(calculation.result, values[1], positions)
        time = _Time(threads.lane_numbers()[positions], result, tuple(numbers))
        marks = np.zeros(threads.n, np.int32) if marks is None else marks
        marks[positions] = self._mark_of(threads, use, calculation.targets[0], is_nan, time)
        return marks

    def assembled(
        self,
        threads: Threads,
        use: FloatUse,
        sources: Sequence[Value],
        result: Value,
        guard: Value | None = None,
    ) -> None:
        """Mark floats whose bits integers made of those of finite numbers."""
        positions, kind = _active(threads, guard), use.calculation.result
        lanes, target = threads.lane_numbers()[positions], use.targets[0]
        numbers = [
            _rows(of_source, value, positions)
            for (_, of_source), value in zip(use.calculation.sources, sources, strict=True)
        ]
        results = _rows(kind, result, positions)
        old = self._of(threads, lanes, (target,))
        new = np.zeros(len(lanes), dtype=np.int32) if old is None else old.copy()
        made: _Flags = np.asarray(kind.are_nonfinite(results).any(axis=1)) & (new == 0)
        for (_, of_source), number in zip(use.calculation.sources, numbers, strict=True):
            made &= ~of_source.are_nonfinite(number).any(axis=1)
        is_nan: _Flags = np.asarray(kind.are_nans(results).any(axis=1))
        for of_nan, chosen in ((True, made & is_nan), (False, made & ~is_nan)):
            if chosen.any():
                time, register = (
                    _Time.of(chosen, lanes, results, numbers),
                    use.calculation.targets[0],
                )
                new[chosen] = self._mark_of(threads, use, register, of_nan, time)
        self._set((len(threads.calls), target), lanes, new)

    def _replaced(self, threads: Threads, old: Marks | None, marks: Marks | None) -> Marks | None:
        """Return a register's marks with those of a fibre's threads; those of absent ones stay."""
        if old is None and marks is None:
            return None
        present = threads.present
        if threads.lanes is None and marks is not None and (old is None or present is None):
            return self._shared(_of_present(threads, marks))
        lanes, given = _lanes_of(threads), np.int32(0) if marks is None else marks
        new = np.zeros(self._lanes, np.int32) if old is None else old.copy()
        new[lanes] = given if present is None else np.where(present, given, new[lanes])
        return self._shared(new)

    def _shared(self, marks: Marks) -> Marks | None:
        """Return marks as one object for all that are alike; None if there are none."""
        count = int(np.count_nonzero(marks))
        if not count:
            return None
        alike = self._alike.get(count)
        if alike is None:
            if len(self._alike) >= _MOST_ALIKE:
                self._alike.clear()
            alike = self._alike[count] = []
        for each in alike:
            if np.array_equal(each, marks):
                return each
        alike.append(marks)
        del alike[:-_MOST_PLACES]
        return marks

    def _put(self, key: tuple[int, int], marks: Marks | None) -> None:
        if marks is not None:
            self[key] = marks
        else:
            self.pop(key, None)

    def _are_concerned(self, threads: Threads, use: FloatUse, results: Sequence[Value]) -> _Flags:
        """Return which threads have a wrong result, or a mark of an operand or the target."""
        flags = np.zeros(threads.n, dtype=np.bool_)
        for value in results:
            flags |= use.calculation.result.are_wrong(value)
        for number in {*use.sources, *use.targets}:
            marks = None if number is None else self.get((len(threads.calls), number))
            if marks is not None:
                flags |= threads.at(marks) != 0
        return flags

    def _new_marks(
        self,
        threads: Threads,
        use: FloatUse,
        sources: Sequence[Value],
        results: Sequence[Value],
        positions: Index,
    ) -> list[Marks]:
        """Return the marks of each result at some positions; report NaNs that give a number."""
        calculation, lanes = use.calculation, threads.lane_numbers()[positions]
        kinds = [kind for _, kind in calculation.sources]
        operands = _Operands(
            [_rows(kind, value, positions) for kind, value in zip(kinds, sources, strict=True)],
            kinds,
            [self._of(threads, lanes, (number,)) for number in use.sources],
        )
        if calculation.is_of_warp:
            operands.join_warps(lanes)
        made = []
        for register, value in zip(calculation.targets, results, strict=True):
            result = _rows(calculation.result, value, positions)
            made.append(self._marks_of_result(threads, use, register, lanes, result, operands))
            if not calculation.is_of_warp:
                is_nan: _Flags = np.asarray(calculation.result.are_nans(result).any(axis=1))
                for lost in operands.lost_nans(is_nan):
                    users = _first_of_each(lanes, lost)
                    self._use_each(threads, users, use.instruction, of_constants=False)
        return made

    def _marks_of_result(
        self,
        threads: Threads,
        use: FloatUse,
        target: Register,
        lanes: Index,
        result: Parts,
        operands: _Operands,
    ) -> Marks:
        """Return the marks that operands pass on to a result, and new ones of what is made here."""
        kind = use.calculation.result
        is_wrong, is_nan = kind.are_nonfinite(result), kind.are_nans(result)
        made = is_wrong & ~operands.explain(is_nan)
        new = np.zeros(len(lanes), dtype=np.int32)
        inherited = operands.inherited()
        if inherited is not None:
            new = np.where(is_wrong.any(axis=1), inherited, new)
            made &= (inherited == 0)[:, None]
        made_nan: _Flags = np.asarray((made & is_nan).any(axis=1))
        for of_nan, chosen in ((True, made_nan), (False, made.any(axis=1) & ~made_nan)):
            if chosen.any():
                time = _Time.of(np.asarray(chosen), lanes, result, operands.numbers)
                new[chosen] = self._mark_of(threads, use, target, of_nan, time)
        return new

    def passes(self, threads: Threads, use: RegisterUse, guard: Value | None = None) -> None:
        """Pass the marks of all operands on to the results."""
        if guard is not None:
            super().passes(threads, use, guard)
            return
        depth = len(threads.calls)
        stored = [self.get((depth, number)) for number in use.sources if number is not None]
        for number in use.writes:
            self._join((depth, number), threads, stored)

    def _join(
        self, target: tuple[int, int], threads: Threads, of_sources: Sequence[Marks | None]
    ) -> None:
        """Give a register the marks of others, of none if there are none."""
        old = self.get(target)
        given = old, threads.lanes, threads.present, *of_sources
        key = tuple(map(id, given))
        joined = self._joined.get(key)
        if joined is None:
            lanes = _lanes_of(threads)
            marks = either([None if each is None else each[lanes] for each in of_sources])
            joined = given, self._replaced(threads, old, marks)
            _retain(self._joined, key, joined)
        self._put(target, joined[1])

    def selects(
        self, threads: Threads, use: RegisterUse, chosen: Value, guard: Value | None = None
    ) -> None:
        """Pass on the marks of the operand that `selp` chooses."""
        if guard is not None:
            super().selects(threads, use, chosen, guard)
            return
        depth = len(threads.calls)
        first, second = (
            None if number is None else self.get((depth, number)) for number in use.sources[:2]
        )
        target = depth, use.writes[0]
        if first is second:
            self._join(target, threads, (first,))
            return
        old = self.get(target)
        given = chosen, first, second, old, threads.lanes, threads.present
        key = tuple(map(id, given))
        selected = self._selected.get(key)
        if selected is None:
            lanes, none = _lanes_of(threads), np.int32(0)
            yes, no = (none if each is None else each[lanes] for each in (first, second))
            selected = given, self._replaced(threads, old, np.where(chosen, yes, no))
            _retain(self._selected, key, selected)
        self._put(target, selected[1])

    def needs(self, threads: Threads, use: RegisterUse, values: Sequence[Value]) -> None:
        """Report marked values that an instruction hands on, before it."""
        depth, lanes = len(threads.calls), _lanes_of(threads)
        for number, value in zip(use.sources, values, strict=True):
            stored = None if number is None else self.get((depth, number))
            if stored is None:
                continue
            words = np.broadcast_to(value, (threads.n,))
            marks = _of_present(threads, stored[lanes])
            wrong: dict[int, Marks] = {}  # by the format of the origin
            for mark in _distinct(marks):
                kind = self._origin(mark).kind
                if id(kind) not in wrong:
                    wrong[id(kind)] = marks * _are_nonfinite(words, kind)
                users = _first_of_each(threads.lane_numbers(), wrong[id(kind)], [mark])
                self._use_each(threads, users, use.instruction)
        if use.writes:
            self._write(threads, present_lanes(threads), use, None, None)

    def added(self, threads: Threads, sums: MemorySums) -> None:
        """Report sums in memory that an atomic operation made infinite or NaN."""
        lanes = threads.lane_numbers()
        for is_nan, position, result, sources in sums.made():
            use = sums.place.use
            origin = Origin(use, sums.place.memory, is_nan, _caller_of(threads, use))
            origin.times.append(_Time(lanes[[position]], result, sources))
            self._report(threads, origin, int(lanes[position]), use.instruction)

    def compares(
        self, threads: Threads, use: FloatUse, values: Sequence[Value], guard: Value | None = None
    ) -> None:
        """Report marked NaNs that are compared, unless they are constants."""
        self._decides(threads, use, values, guard, of_nans=True)

    def converts(
        self, threads: Threads, use: FloatUse, values: Sequence[Value], guard: Value | None = None
    ) -> None:
        """Report marked values that become integers."""
        self._decides(threads, use, values, guard, of_nans=False)

    def stores_parameters(self, threads: Threads, use: RegisterUse, places: Sequence[int]) -> None:
        """Let parameters or results of a function have the marks of registers, before a call."""
        lanes = present_lanes(threads)
        for number, place in zip(use.sources, places, strict=True):
            self._set((_PARAMETERS, place), lanes, self._of(threads, lanes, (number,)))

    def loads_parameters(self, threads: Threads, use: RegisterUse, places: Sequence[int]) -> None:
        """Let registers have the marks of parameters or results, which lose them."""
        lanes = present_lanes(threads)
        for number, place in zip(use.writes, places, strict=True):
            stored = self.get((_PARAMETERS, place))
            self._set(
                (len(threads.calls), number), lanes, None if stored is None else stored[lanes]
            )
            self._set((_PARAMETERS, place), lanes, None)

    def copy_parameters(self, lanes: Index | slice, source: int, target: int, nbytes: int) -> None:
        """Move the marks of parameters or results to where a call or a return copied them."""
        for kind, place in list(self):
            if kind == _PARAMETERS and source <= place < source + nbytes:
                marks = self[kind, place][lanes]
                self._set((kind, place), lanes, None)
                self._set((kind, place - source + target), lanes, marks)

    def _decides(
        self,
        threads: Threads,
        use: FloatUse,
        values: Sequence[Value],
        guard: Value | None,
        *,
        of_nans: bool,
    ) -> None:
        depth = len(threads.calls)
        for kind, number, value in zip(use.calculation.formats, use.sources, values, strict=True):
            stored = None if number is None else self.get((depth, number))
            if stored is None:
                continue
            classes = self._classes.of(value, kind)
            wrong = classes.with_nan if of_nans else classes.with_wrong
            if guard is None:
                users = self._users_of(threads, stored, wrong)
            else:
                users = _users(threads, stored[_lanes_of(threads)] * (wrong & guard))
            self._use_each(threads, users, use.instruction, of_constants=not of_nans)

    def _users_of(self, threads: Threads, stored: Marks, wrong: _Flags) -> Sequence[_User]:
        """Return the marks of wrong elements, each with the first thread that has it."""
        given = wrong, stored, threads.lanes, threads.present
        key = tuple(map(id, given))
        found = self._used.get(key)
        if found is None:
            found = given, _users(threads, stored[_lanes_of(threads)] * wrong)
            _retain(self._used, key, found)
        return found[1]

    # Origins.

    def _origin(self, mark: int) -> Origin:
        return self._origins[FIRST_MARK - int(mark)]

    def _mark_of(
        self, threads: Threads, use: FloatUse, target: Register, is_nan: bool, time: _Time
    ) -> int:
        """Return the mark of values that an instruction makes now.

        Later values may share a mark.
        """
        caller = _caller_of(threads, use)
        key = id(use), target.name, is_nan, id(caller)
        mark = self._known.get(key)
        if mark is None or len(self._origins) < _MOST_ORIGINS:
            mark = self._known[key] = FIRST_MARK - len(self._origins)
            self._origins.append(Origin(use, target.name, is_nan, caller))
        self._origin(mark).times.append(time)
        return mark

    def _use_each(
        self,
        threads: Threads,
        users: Sequence[_User],
        instruction: Instruction,
        *,
        of_constants: bool = True,
    ) -> None:
        """Report uses of marks by the first thread that uses each."""
        for mark, lane in users:
            origin = self._origin(mark)
            if of_constants or not origin.is_constant:
                self._report(threads, origin, lane, instruction)


def _retain(
    known: _Known[_Found],
    key: tuple[int, ...],
    found: tuple[tuple[object, ...], _Found],
) -> None:
    """Add a result, of which only some are retained."""
    if len(known) >= _MOST_RETAINED:
        known.clear()
    known[key] = found


def _lanes_of(threads: Threads) -> Index | slice:
    return slice(None) if threads.lanes is None else slice_of(threads.lanes)


def _of_present(threads: Threads, values: NDArray[_Element]) -> NDArray[_Element]:
    """Return values that are zero for absent threads."""
    if threads.present is None:
        return values
    of_present: NDArray[_Element] = values * threads.present
    return of_present


def _users(threads: Threads, marks: Marks) -> list[_User]:
    """Return the marks that present threads have."""
    return _first_of_each(threads.lane_numbers(), _of_present(threads, marks))


def _first_of_each(lanes: Index, marks: Marks, of: Sequence[int] | None = None) -> list[_User]:
    """Return some marks, or all, with the first thread that has each; the oldest mark first."""
    users = []
    for mark in _distinct(marks) if of is None else of:
        first = int(np.argmax(marks == mark))
        if marks[first] == mark:
            users.append((mark, int(lanes[first])))
    return users


def _caller_of(threads: Threads, use: FloatUse) -> Instruction | None:
    """Return the innermost call with a line of the source, for an instruction without one."""
    location = use.located.location
    if (location is not None and location.line) or not isinstance(threads, Fibre):
        return None
    if not threads.calls:
        return None
    calls = [threads.blocks.code.last[block] for block in threads.prefix[-len(threads.calls) :]]
    with_line = (each for each in reversed(calls) if each and each.location and each.location.line)
    return next(with_line, None)


def _distinct(marks: Marks) -> list[int]:
    """Return the marks that threads have, the oldest one first."""
    most = np.max(marks, initial=0)
    count = np.count_nonzero(marks)
    if not count:
        return []
    if np.count_nonzero(marks == most) == count:
        return [int(most)]
    return [int(each) for each in np.unique(marks[marks != 0])[::-1]]


def _active(threads: Threads, guard: Value | None) -> Index:
    """Return the positions of the threads that are present and for which the guard holds."""
    flags = np.ones(threads.n, dtype=np.bool_)
    for mask in (threads.present, guard):
        if mask is not None:
            flags = flags & mask
    return flags.nonzero()[0]


def _rows(kind: FloatFormat, value: Value, positions: Index) -> Parts:
    """Return the numbers of the threads at these positions."""
    return kind.parts(value[positions] if value.ndim else np.full(len(positions), value))


class _Operands:
    """The operands of a calculation, for some threads.

    Attributes:
        numbers: (n, parts) of each operand.
        nans, wrong: which are NaN, and which are NaN or infinite.
        marks: (n,) of each operand; None for none.
    """

    def __init__(
        self, numbers: list[Parts], kinds: Sequence[FloatFormat], marks: Sequence[Marks | None]
    ) -> None:
        self.numbers = numbers
        self.nans = [kind.are_nans(each) for kind, each in zip(kinds, numbers, strict=True)]
        self.wrong = [kind.are_nonfinite(each) for kind, each in zip(kinds, numbers, strict=True)]
        self.marks = marks

    def join_warps(self, lanes: Index) -> None:
        """Let each thread have what any thread of its warp has, as of a product of matrices."""
        self.nans = [_of_warps(self.nans, lanes)]
        self.wrong = [_of_warps(self.wrong, lanes)]
        self.marks = [None]  # products use up marked operands

    def explain(self, is_nan: _Flags) -> _Flags:
        """Return which NaNs and infinities of a result come from operands that are NaN or both."""
        return np.asarray(np.where(is_nan, _any_of(self.nans, is_nan), _any_of(self.wrong, is_nan)))

    def inherited(self) -> Marks | None:
        """Return for each thread the mark of its operands that are NaN or infinite."""
        return either(
            [
                None if mark is None else np.where(each.any(axis=1), mark, np.int32(0))
                for mark, each in zip(self.marks, self.wrong, strict=True)
            ]
        )

    def lost_nans(self, is_nan: _Flags) -> Iterator[Marks]:
        """Yield the marks of NaNs of which an operation such as `max` gives a number."""
        for nans, marks in zip(self.nans, self.marks, strict=True):
            if marks is not None:
                yield np.where(nans.any(axis=1) & ~is_nan, marks, np.int32(0))


def _of_warps(flags: Sequence[_Flags], lanes: Index) -> _Flags:
    """Return for each thread whether a flag of any thread of its warp is set."""
    warps = lanes // WARP
    of_warp = np.zeros(int(np.max(warps, initial=0)) + 1, dtype=np.bool_)
    for each in flags:
        of_warp[warps[each.any(axis=1)]] = True
    return np.asarray(of_warp[warps][:, None])


def _any_of(flags: Sequence[_Flags], like: _Flags) -> _Flags:
    """Return which of several have a flag, part by part where they have the same parts."""
    result = np.zeros(like.shape, dtype=np.bool_)
    for each in flags:
        result |= each if each.shape == like.shape else each.any(axis=1, keepdims=True)
    return result


def _are_nonfinite(words: NDArray[np.unsignedinteger], kind: FloatFormat) -> _Flags:
    """Return which words have an infinity or a NaN of a format, or the upper half of one."""
    if words.dtype.itemsize < kind.part.itemsize:
        mask = kind.exponent >> (8 * (kind.part.itemsize - words.dtype.itemsize))
        result: _Flags = (words & words.dtype.type(mask)) == mask
        return result
    parts = np.ascontiguousarray(words).view(kind.part).reshape(len(words), -1)
    return np.asarray(kind.are_nonfinite(parts).any(axis=1))
