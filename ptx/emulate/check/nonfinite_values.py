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
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ptx.emulate.check.nonfinite_sums import FloatUse, MemorySums
from ptx.emulate.check.number_classes import ClassesOfValues, NumberClasses
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
_MOST_ORIGINS: Final = 1000  # that have a number of their own
_MOST_TIMES: Final = 64  # of one origin whose operands are retained
_MOST_PASSED: Final = 128  # cases of marks that are passed on
_PARAMETERS: Final = -1
"""In place of the number of calls: parameters and results in memory, by their places there."""


@dataclass(frozen=True, slots=True)
class _Time:
    """Threads that made a value at once: `result` and `sources` have their numbers, as bits."""

    lanes: Index
    result: Parts
    sources: tuple[Parts, ...]


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
        self._passed: dict[tuple[int, ...], tuple[object, bool, Marks | None]] = {}
        self._cleared: dict[int, tuple[Marks, Index | slice, Marks | None]] = {}
        self._origins: list[Origin] = []
        self._known: dict[tuple[int, str, bool, int], int] = {}

    def _set(self, key: tuple[int, int], lanes: Index | slice, marks: Marks | None) -> None:
        stored = self.get(key)
        if stored is None or marks is not None:
            if stored is not None:
                self[key] = stored.copy()  # registers with the same marks share an array
            super()._set(key, lanes, marks)
            return
        cleared = self._cleared.get(id(stored))
        if cleared is None or cleared[1] is not lanes:
            rest = stored.copy()
            rest[lanes] = 0
            cleared = stored, lanes, rest if np.count_nonzero(rest) else None
            self._cleared[id(stored)] = cleared
        self._put(key, cleared[2])

    # Called by generated code.

    def enter(self, threads: Threads, live: frozenset[int]) -> None:
        """Begin a basic block, and discard values that are not read any more."""
        self._classes.forget()
        super().enter(threads, live)
        self._cleared.clear()

    def calculated(
        self,
        threads: Threads,
        use: FloatUse,
        sources: Sequence[Value],
        results: Sequence[Value],
        guard: Value | None = None,
    ) -> None:
        """Mark results, after a calculation."""
        if guard is None and use.calculation.is_of_numbers:
            self._calculated_alone(threads, use, sources, results[0])
            return
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
        """Mark the numbers that all threads calculate, each one for itself."""
        of_sources, of_result = [*map(self._classes.of, sources)], self._classes.of(result)
        depth = len(threads.calls)
        if self._passes_same_on(threads, use, of_sources, of_result):
            return
        if of_result.are_all_nan and self._passes_nans_on(threads, depth, use, sources):
            return
        marks, positions = self._passed_on(threads, use, of_sources, of_result)
        if len(positions):
            new = self._new_marks(threads, use, sources, (result,), positions)
            marks = np.zeros(threads.n, np.int32) if marks is None else marks
            marks[positions] = new[0]
        target = depth, use.targets[0]
        self._put(target, self._replaced(threads, self.get(target), marks))

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
                values = (lanes, results, *numbers)
                register = use.calculation.targets[0]
                new[chosen] = self._made(threads, use, register, of_nan, values, chosen)
        self._set((len(threads.calls), target), lanes, new)

    def _passed_on(
        self,
        threads: Threads,
        use: FloatUse,
        of_sources: Sequence[NumberClasses],
        of_result: NumberClasses,
    ) -> tuple[Marks | None, Index]:
        """Return the marks that operands pass on, and the positions with more to do.

        They make an infinity or a NaN of others, or a number of a NaN.
        """
        lanes, is_nan = slice_of(threads.lane_numbers()), of_result.nans
        is_wrong = ~of_result.finite
        marks: Marks | None = None
        has_more: _Flags = np.zeros(threads.n, dtype=np.bool_)
        for number, classes in zip(use.sources, of_sources, strict=True):
            stored = None if number is None else self.get((len(threads.calls), number))
            if stored is None:
                continue
            of_source = stored[lanes]
            is_lost = classes.nans > is_nan
            if is_lost.any():
                has_more |= is_lost & (of_source != 0)
            inherited = of_source * ~classes.finite
            marks = inherited if marks is None else np.maximum(marks, inherited)
        is_new = is_wrong if marks is None else is_wrong > (marks != 0)
        if is_new.any():
            of_nan = of_wrong = np.asarray(False)
            for classes in of_sources:
                of_nan, of_wrong = of_nan | classes.nans, of_wrong | ~classes.finite
            has_more |= is_new & ~np.where(is_nan, of_nan, of_wrong)
        if threads.present is not None:
            has_more &= threads.present
        return None if marks is None else marks * is_wrong, has_more.nonzero()[0]

    def _passes_same_on(
        self,
        threads: Threads,
        use: FloatUse,
        of_sources: Sequence[NumberClasses],
        of_result: NumberClasses,
    ) -> bool:
        """Pass marks on to a result that is NaN, or infinite, exactly where an operand is.

        What was found for the same classes and marks is found again, as in a loop.
        """
        depth = len(threads.calls)
        arrays = [
            (classes, None if number is None else self.get((depth, number)))
            for number, classes in zip(use.sources, of_sources, strict=True)
            if classes.nans.ndim
        ]
        if not arrays or not all(each.finite for each in of_sources if not each.nans.ndim):
            return False
        target = depth, use.targets[0]
        old = self.get(target)
        given = (of_result, old, threads.lanes, threads.present, *chain.from_iterable(arrays))
        key = tuple(map(id, given))
        passed = self._passed.get(key)
        if passed is None:
            if len(self._passed) >= _MOST_PASSED:
                self._passed.clear()
            # The entry owns what its key has the addresses of.
            passed = self._passed[key] = given, *self._same(threads, arrays, of_result, old)
        if passed[1]:
            self._put(target, passed[2])
        return passed[1]

    def _same(
        self,
        threads: Threads,
        arrays: Sequence[tuple[NumberClasses, Marks | None]],
        of_result: NumberClasses,
        old: Marks | None,
    ) -> tuple[bool, Marks | None]:
        """Return whether a result has the classes of its operands, and the marks that it gets."""
        nans = reduce(np.logical_or, [each.nans for each, _ in arrays])
        finite = reduce(np.logical_and, [each.finite for each, _ in arrays])
        if not (np.array_equal(nans, of_result.nans) and np.array_equal(finite, of_result.finite)):
            return False, None
        lanes = slice_of(threads.lane_numbers())
        marks = either(
            [
                None if stored is None else stored[lanes] * ~classes.finite
                for classes, stored in arrays
            ]
        )
        new = self._replaced(threads, old, marks)
        given = [each for _, each in arrays if each is not None]
        alike = [each for each in given if new is not None and np.array_equal(each, new)]
        return True, alike[0] if alike else new

    def _replaced(self, threads: Threads, old: Marks | None, marks: Marks | None) -> Marks | None:
        """Return a register's marks with those of a fibre's threads; those of absent ones stay."""
        if old is None and marks is None:
            return None
        lanes = slice_of(threads.lane_numbers())
        new = np.zeros(self._lanes, np.int32) if old is None else old.copy()
        if threads.present is None:
            new[lanes] = 0 if marks is None else marks
        else:
            given = np.int32(0) if marks is None else marks
            new[lanes] = np.where(threads.present, given, new[lanes])
        return new if np.count_nonzero(new) else None

    def _put(self, key: tuple[int, int], marks: Marks | None) -> None:
        if marks is not None:
            self[key] = marks
        else:
            self.pop(key, None)

    def _passes_nans_on(
        self, threads: Threads, depth: int, use: FloatUse, sources: Sequence[Value]
    ) -> bool:
        """Pass marks on to results that are NaN; False if an operand with marks is not all NaN."""
        if threads.present is not None:
            return False
        target = depth, use.targets[0]
        marked = [
            (stored, value)
            for number, value in zip(use.sources, sources, strict=True)
            if number is not None and (stored := self.get((depth, number))) is not None
        ]
        if not marked:
            if not any(map(_are_all_nan, sources)):
                return False
            if target in self:
                self._set(target, slice_of(threads.lane_numbers()), None)
            return True
        if not all(_are_all_nan(value) for _, value in marked):
            return False
        first = marked[0][0]
        if all(stored is first for stored, _ in marked) and self.get(target) is first:
            return True  # as of a sum in a loop
        lanes = slice_of(threads.lane_numbers())
        marks = reduce(np.maximum, [stored[lanes] for stored, _ in marked])
        self._set(target, lanes, marks)
        return True

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
                    self._use_each(threads, lanes, lost, use.instruction, of_constants=False)
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
                values = (lanes, result, *operands.numbers)
                new[chosen] = self._made(threads, use, target, of_nan, values, np.asarray(chosen))
        return new

    def needs(self, threads: Threads, use: RegisterUse, values: Sequence[Value]) -> None:
        """Report marked values that an instruction hands on, before it."""
        positions = _active(threads, None)
        lanes = threads.lane_numbers()[positions]
        for number, value in zip(use.sources, values, strict=True):
            marks = self._of(threads, lanes, (number,))
            if marks is None or not marks.any():
                continue
            words = np.broadcast_to(np.atleast_1d(value), (threads.n,))[positions]
            for mark in _distinct(marks):
                is_used = (marks == mark) & _are_nonfinite(words, self._origin(mark).kind)
                self._use(threads, lanes, is_used, mark, use.instruction)
        self._write(threads, lanes, use, None, None)

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
        """Report marked NaNs that are compared."""
        self._decides(threads, use, values, guard, FloatFormat.are_nans, of_constants=False)

    def converts(
        self, threads: Threads, use: FloatUse, values: Sequence[Value], guard: Value | None = None
    ) -> None:
        """Report marked values that become integers."""
        self._decides(threads, use, values, guard, FloatFormat.are_nonfinite)

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
        are_wrong: Callable[[FloatFormat, Parts], _Flags],
        *,
        of_constants: bool = True,
    ) -> None:
        depth = len(threads.calls)
        marked = [
            (kind, number, value)
            for (_, kind), number, value in zip(
                use.calculation.sources, use.sources, values, strict=True
            )
            if number is not None and (depth, number) in self
        ]
        if not marked:
            return
        positions = _active(threads, guard)
        lanes = threads.lane_numbers()[positions]
        for kind, number, value in marked:
            wrong = are_wrong(kind, _rows(kind, value, positions))
            flags = wrong[:, 0] if wrong.shape[1] == 1 else wrong.any(axis=1)
            used = self[depth, number][lanes] * flags
            self._use_each(threads, lanes, used, use.instruction, of_constants=of_constants)

    # Origins.

    def _origin(self, mark: int) -> Origin:
        return self._origins[FIRST_MARK - int(mark)]

    def _made(
        self,
        threads: Threads,
        use: FloatUse,
        target: Register,
        is_nan: bool,
        values: tuple[NDArray[Any], ...],
        chosen: _Flags,
    ) -> int:
        """Return the mark of the chosen values, which an instruction makes now.

        `values`: the numbers of the threads, their results, and their operands. Later values may
        share a mark.
        """
        caller = _caller_of(threads, use)
        key = id(use), target.name, is_nan, id(caller)
        mark = self._known.get(key)
        if mark is None or len(self._origins) < _MOST_ORIGINS:
            mark = self._known[key] = FIRST_MARK - len(self._origins)
            self._origins.append(Origin(use, target.name, is_nan, caller))
        lanes, result, *numbers = [each[chosen] for each in values]
        self._origin(mark).times.append(_Time(lanes, result, tuple(numbers)))
        return mark

    def _use_each(
        self,
        threads: Threads,
        lanes: Index,
        marks: Marks,
        instruction: Instruction,
        *,
        of_constants: bool = True,
    ) -> None:
        for mark in _distinct(marks):
            if of_constants or not self._origin(mark).is_constant:
                self._use(threads, lanes, marks == mark, mark, instruction)

    def _use(
        self, threads: Threads, lanes: Index, flags: _Flags, mark: int, instruction: Instruction
    ) -> None:
        """Report a use by the threads that have a flag, of which the first one is named."""
        first = int(np.argmax(flags))
        if flags[first]:
            self._report(threads, self._origin(mark), int(lanes[first]), instruction)


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


def _are_all_nan(value: Value) -> bool:
    return not np.count_nonzero(value == value)  # faster than `all`


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
