"""Sizes, contents and hardware for which conditions of a kernel hold, and for which they do not.

A kernel can be wrong where a condition holds that random inputs never meet, such as a hash of its
sizes. So the conditions of its PTX are evaluated for many values, and examples get those that no
earlier one had.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ptx.isa.compared import float_of
from ptx.isa.conditions import Comparison, Conditions, Leaf, Source
from ptx.isa.model import FloatImmediate, Immediate, Instruction
from ptx.isa.module import parse
from ptx.signature import KernelSignature

from ...errors import CudadrvError
from ...launch.config import LaunchConfig
from ..strategies import ArrayInput, DrawnArray, NumberInput, Size, configs_of
from .condition_run import Table, evaluated, width_of
from .example_run import CompiledCase
from .ptx_edit import EditablePtx, written_name
from .verdict import Example

_MOST_ROWS: Final = 1 << 17
_MOST_HARDWARE: Final = 1 << 20
_MOST_SIZES: Final = 24  # combinations of conditions of sizes
_MOST_CONDITIONS: Final = 8
_SPREAD: Final = 64
_SMALL: Final = 16
_MOST_POOL: Final = 360  # values of two elements, of which all pairs are tried
_LARGEST_FLOAT: Final = 1e6
_SPANS: Final = {"%smid": 256, "%nsmid": 256, "%warpid": 64, "%nwarpid": 64, "%clock_hi": 1 << 20}
_MOST_LAUNCHES: Final = 160  # sizes, each with all of its launches
_GEOMETRY: Final = ("%ntid", "%nctaid")
_MOST_SHIFTS: Final = 48
VECTOR: Final = 16  # bytes
_LARGEST_SHIFT: Final = 4096
_STACK: Final = 1 << 24  # addresses of local and shared memory begin at multiples of 16 below
_THREADS: Final = (0, 1, 2, 37)
_EQUALITY: Final = ("eq", "ne", "equ", "neu")
_RARE: Final = 2**-10  # of the values of an element
_DRAWN: Final = 8.5  # the largest number of most contents
_MOST_VALUES: Final = 1 << 18
_MOST_BEYOND: Final = 1 << 12
_LARGEST_SIZE: Final = 20  # as a power of two
_WARPS: Final = range(32, 1025, 32)
_LOOPS: Final = (0, 1, 2)  # values of what a loop counts

Numbers = dict[Size, int]


@dataclass(frozen=True, slots=True)
class Forced:
    """A build of which one condition has another outcome, as on other hardware.

    Attributes:
        compiled: the build.
        text: the condition with its outcome, in words.
    """

    compiled: CompiledCase
    text: str


class ConditionSearch:
    """The conditions of a case's kernel; none if `program=` launches."""

    def __init__(self, compiled: CompiledCase, seed: int) -> None:
        self._compiled = compiled
        self._case = compiled.case
        self._random = np.random.default_rng(seed)

    @cached_property
    def _conditions(self) -> Conditions:
        return Conditions(parse(self._compiled.image.data.decode()), self._compiled.kernel)

    @cached_property
    def _known(self) -> Sequence[Comparison]:
        if self._case.program is not None:
            return ()
        return [
            each
            for each in self._conditions
            if all(width_of(leaf.register) for leaf in each.leaves)
        ]

    # Sizes.

    def sizes(self, passed: Sequence[Mapping[str, object]]) -> Iterator[Numbers]:
        """Yield sizes for which conditions of sizes have outcomes that none had together.

        The rarest ones come first. `passed` has the arguments of earlier examples.
        """
        names = list(self._case.arguments)
        chosen = [each for each in self._known if self._is_of_sizes(each, names)]
        roots = [root for root in self._case.roots if root.bounds is not None]
        if not chosen or len(roots) < len(self._case.roots):
            return
        table = self._table_of_sizes(roots)
        columns: dict[str, Table] = {}
        for name in names:
            size = self._case.arguments[name]
            if isinstance(size, Size):
                columns[name] = _column(size, roots, table)
        seen = [np.array([_integer(each[name]) for each in passed]) for name in columns]
        rows = {
            name: np.concatenate([column, before.astype(np.int64)])
            for (name, column), before in zip(columns.items(), seen, strict=True)
        }
        outcomes = self._outcomes(chosen, lambda leaf: rows[names[int(leaf.name)]])
        for place in _rarest(outcomes, len(table))[:_MOST_SIZES]:
            yield {root: int(number) for root, number in zip(roots, table[place], strict=True)}

    def beyond_sizes(self) -> Iterator[Forced]:
        """Yield builds with outcomes that conditions of sizes have above the largest ones alone.

        Such are those of kernels that are right for tested sizes.
        """
        names = list(self._case.arguments)
        chosen = [each for each in self._known if self._is_of_sizes(each, names)]
        roots = [root for root in self._case.roots if root.bounds is not None]
        if not chosen or len(roots) < len(self._case.roots):
            return
        inside = self._table_of_sizes(roots)[:_MOST_BEYOND]
        beyond = inside.copy()
        for column, root in enumerate(roots):
            assert root.bounds is not None
            lowest = math.log2(root.bounds[1] + 1)
            powers = self._random.uniform(lowest, max(lowest, _LARGEST_SIZE), len(inside))
            is_beyond = self._random.random(len(inside)) < 1 / len(roots)
            beyond[is_beyond, column] = np.ceil(2 ** powers[is_beyond])
        table = np.concatenate([inside, beyond])
        columns = {
            name: _column(size, roots, table)
            for name, size in self._case.arguments.items()
            if isinstance(size, Size)
        }
        outcomes = self._outcomes(chosen, lambda leaf: columns[names[int(leaf.name)]])
        known, new = outcomes[: len(inside)], outcomes[len(inside) :]
        for condition, is_known, is_new in zip(chosen, known.T, new.T, strict=True):
            if is_known.all() or not is_known.any():
                usual = bool(is_known[0])
                if np.any(is_new != usual):
                    yield from self._with_outcome(condition, not usual)

    def launches(self, signature: KernelSignature) -> Iterator[tuple[Numbers, LaunchConfig]]:
        """Yield sizes with a launch for which conditions of both have rare outcomes together."""
        names = list(self._case.arguments)
        chosen = [
            each
            for each in self._known
            if each.sources <= {Source.ARGUMENT, Source.THREAD}
            and any(leaf.source is Source.THREAD for leaf in each.leaves)
            and all(
                leaf.name.startswith(_GEOMETRY)
                if leaf.source is Source.THREAD
                else isinstance(self._case.arguments[names[int(leaf.name)]], Size)
                for leaf in each.leaves
            )
        ]
        roots = [root for root in self._case.roots if root.bounds is not None]
        if not chosen or len(roots) < len(self._case.roots):
            return
        rows: list[tuple[Numbers, Mapping[str, object], LaunchConfig]] = []
        for row in self._table_of_sizes(roots)[:_MOST_LAUNCHES].tolist():
            numbers = dict(zip(roots, row, strict=True))
            sized = self._case.with_sizes(numbers)
            with suppress(CudadrvError):  # such as a launch that no device has
                configs = configs_of(sized.launch, signature, further=_WARPS)
                rows += [(numbers, sized.arguments, config) for config in configs]

        def of_leaf(leaf: Leaf) -> Table:
            if leaf.source is Source.THREAD:
                return np.array([_extent(leaf.name, config) for _, _, config in rows], np.uint64)
            name = names[int(leaf.name)]
            return np.array([_integer(arguments[name]) for _, arguments, _ in rows], np.uint64)

        if rows:
            for place in _rarest(self._outcomes(chosen, of_leaf), 0)[:_MOST_SIZES]:
                yield rows[place][0], rows[place][2]

    def _is_of_sizes(self, condition: Comparison, names: Sequence[str]) -> bool:
        return condition.sources == {Source.ARGUMENT} and all(
            isinstance(self._case.arguments[names[int(leaf.name)]], Size)
            for leaf in condition.leaves
        )

    def _table_of_sizes(self, roots: Sequence[Size]) -> npt.NDArray[np.int64]:
        """Return all combinations of sizes in random order, or many of them; one of no sizes."""
        if not roots:
            return np.zeros((1, 0), np.int64)
        bounds = [root.bounds for root in roots if root.bounds is not None]
        spans = [high - low + 1 for low, high in bounds]
        if math.prod(spans) <= _MOST_ROWS:
            grids = np.indices(spans).reshape(len(spans), -1)
            rows = np.stack([grid + low for grid, (low, _) in zip(grids, bounds, strict=True)], 1)
            self._random.shuffle(rows)
            return rows.astype(np.int64)
        return np.stack(
            [self._random.integers(low, high, _MOST_ROWS, endpoint=True) for low, high in bounds], 1
        )

    def _outcomes(self, chosen: Sequence[Comparison], values: Any) -> npt.NDArray[np.bool_]:
        """Return for each row which conditions hold; `values` gives those of a leaf."""
        steps: dict[int, Instruction] = {}
        leaves: dict[str, Leaf] = {}
        for condition in chosen:
            every = (*condition.steps, condition.instruction)
            steps |= {step.line: step for step in every}
            leaves |= {leaf.register.name: leaf for leaf in condition.leaves}
        results = [condition.predicate for condition in chosen]
        tables = {name: values(leaf) for name, leaf in leaves.items()}
        found = evaluated(
            self._compiled,
            [steps[line] for line in sorted(steps)],
            [leaf.register for leaf in leaves.values()],
            tables,
            results,
        )
        return np.stack([found[each.name] != 0 for each in results], 1)

    # Hardware.

    def forced(self) -> Iterator[Forced]:
        """Yield builds in which a condition of the hardware alone has another outcome.

        Such are conditions of clocks, multiprocessors and addresses, if both outcomes are possible.
        """
        chosen = [
            each for each in self._known if each.leaves and all(map(self._is_hardware, each.leaves))
        ]
        for condition in chosen[:_MOST_CONDITIONS]:
            tables = self._hardware(condition)
            outcomes = self._outcomes([condition], lambda leaf, t=tables: t[leaf.register.name])
            if outcomes.any() and not outcomes.all():
                for outcome in (True, False):
                    yield from self._with_outcome(condition, outcome)

    @cached_property
    def _editable(self) -> EditablePtx:
        return EditablePtx(self._compiled)

    def _with_outcome(self, condition: Comparison, outcome: bool) -> Iterator[Forced]:
        """Yield the build in which a condition has an outcome, if its instruction can change."""
        instruction, line = condition.instruction, self._editable.line(condition.instruction)
        if line.count(";") == 1:
            word = "eq" if outcome else "ne"
            force = f"setp.{word}.u32 {written_name(condition.predicate)}, 0, 0;"
            build = self._editable.with_lines({instruction.line: f"{line} {force}"})
            place = self._editable.source(instruction, "").text or instruction.text
            text = f"{place} is {'true' if outcome else 'false'}"
            yield Forced(replace(build, checks=()), text)

    def _is_hardware(self, leaf: Leaf) -> bool:
        if leaf.source is Source.ARGUMENT:
            return isinstance([*self._case.arguments.values()][int(leaf.name)], ArrayInput)
        return leaf.source in (Source.HARDWARE, Source.ADDRESS)

    def _hardware(self, condition: Comparison) -> dict[str, Table]:
        """Return values that the hardware may have: later clocks are larger."""
        tables: dict[str, Table] = {}
        constants = [each.value for each in condition.constants if isinstance(each, Immediate)]
        time = np.zeros(_MOST_HARDWARE, np.uint64)
        for leaf in condition.leaves:
            if leaf.source is Source.ADDRESS:
                # Variables of one function are near to each other.
                start = self._random.integers(1, _STACK >> 4, _MOST_HARDWARE) << 4
                values = tables.setdefault("", start.astype(np.uint64))
            elif leaf.source is Source.ARGUMENT:
                # A GPU has addresses of 47 bits, and the emulator those above.
                most = 1 << self._random.choice([32, 39, 44], _MOST_HARDWARE)
                values = (self._random.integers(most >> 4, most) << 8).astype(np.uint64)
            elif leaf.name in _SPANS:
                values = self._random.integers(0, _SPANS[leaf.name], _MOST_HARDWARE, np.uint64)
            else:
                time = values = time + self._spans(constants, 20 if time.any() else 62)
            tables[leaf.register.name] = values
        return tables

    def _spans(self, constants: Sequence[int], bits: int) -> Table:
        """Return times of all magnitudes, among which are constants."""
        most = np.uint64(1) << self._random.integers(1, bits, _MOST_HARDWARE, np.uint64)
        spans = self._random.integers(1, most, dtype=np.uint64, endpoint=True)
        positive = [each for each in constants if 0 < each < 1 << 62]
        if positive:
            is_constant = self._random.random(_MOST_HARDWARE) < 1 / 8
            spans[is_constant] = self._random.choice(positive, int(is_constant.sum()))
        return spans

    # Addresses.

    def shifts(self, example: Example) -> Iterator[int]:
        """Yield shifts of the arrays for which conditions of their addresses have new outcomes.

        They keep vectors of 16 bytes aligned, or elements alone.
        """
        values = list(example.arguments.values())
        chosen = [
            each
            for each in self._known
            if each.sources == {Source.ARGUMENT}
            and any(isinstance(values[int(leaf.name)], DrawnArray) for leaf in each.leaves)
        ]
        if not chosen:
            return
        sizes = [each.contents.itemsize for each in values if isinstance(each, DrawnArray)]
        shifts = [0]
        for step in (VECTOR, min(math.lcm(*sizes), VECTOR)):
            of_step = self._random.choice(_LARGEST_SHIFT // step, _MOST_SHIFTS // 2, replace=False)
            shifts += (of_step * step).tolist()
        rows = [self._compiled.addresses(replace(example, shift=shift)) for shift in shifts]
        names = list(example.arguments)

        def of_leaf(leaf: Leaf) -> Table:
            name = names[int(leaf.name)]
            if isinstance(example.arguments[name], DrawnArray):
                return np.array([row[name] for row in rows], np.uint64)
            return np.full(len(rows), _integer(example.arguments[name]), np.uint64)

        outcomes = self._outcomes(chosen, of_leaf)
        _, first = np.unique(outcomes, axis=0, return_index=True)
        yield from (shifts[row] for row in sorted(first.tolist()) if row)

    # Contents.

    def contents(self, example: Example) -> Iterator[Example]:
        """Yield an example whose arrays have elements that a condition holds for, or does not.

        Only outcomes that are rare, as of equality and of a hash below a limit.
        """
        chosen = [
            each
            for each in self._known
            if Source.ELEMENT in each.sources
            and each.sources <= {Source.ELEMENT, Source.ARGUMENT, Source.THREAD}
        ]
        equal = [each for each in chosen if each.instruction.modifiers[0] in _EQUALITY]
        others = [each for each in chosen if each not in equal]
        for condition in (*equal[:_MOST_CONDITIONS], *others[:_MOST_CONDITIONS]):
            changed = self._with_elements(condition, example)
            if changed is not None:
                yield changed

    def _with_elements(self, condition: Comparison, example: Example) -> Example | None:
        elements = [leaf for leaf in condition.leaves if leaf.source is Source.ELEMENT]
        tried: list[dict[str, tuple[str, int]]] = []
        for thread, loop in itertools.product(_THREADS, _LOOPS):
            places = self._places(elements, example, thread, loop)
            if places is None or places in tried:
                continue
            tried.append(places)
            pools = self._pools(condition, places)
            tables = self._rows(pools, condition, places, example, thread)
            outcomes = self._outcomes([condition], lambda leaf, t=tables: t[leaf.register.name])
            relation = condition.instruction.modifiers[0]
            if relation in _EQUALITY:
                rows = np.flatnonzero(outcomes[:, 0] == (relation in ("eq", "equ")))
            else:
                is_rare = outcomes[:, 0] == (np.mean(outcomes[:, 0]) < 1 / 2)
                rows = np.flatnonzero(is_rare)
                if np.mean(is_rare) > _RARE:
                    return None
            if len(rows):
                return self._filled(example, places, tables, int(rows[0]))
        return None

    def _places(
        self, elements: Sequence[Leaf], example: Example, thread: int, loop: int
    ) -> dict[str, tuple[str, int]] | None:
        """Return by the register of an element its array and its index; None if one has none."""
        places: dict[str, tuple[str, int]] = {}
        for leaf in elements:
            assert leaf.address is not None
            found = self._conditions.behind([leaf.address])
            if found is None or not all(width_of(each.register) for each in found[1]):
                return None
            steps, leaves = found
            known = {Source.ARGUMENT, Source.THREAD, Source.UNKNOWN}
            if not leaves or not {each.source for each in leaves} <= known:
                return None
            tables = {
                each.register.name: np.array([self._value(each, example, thread, loop)], np.uint64)
                for each in leaves
            }
            registers = [each.register for each in leaves]
            if leaf.address.name in tables:
                address = int(tables[leaf.address.name][0])
            else:
                result = evaluated(self._compiled, steps, registers, tables, [leaf.address])
                address = int(result[leaf.address.name][0])
            place = self._element(example, address + leaf.offset, leaf)
            if place is None:
                return None
            places[leaf.register.name] = place
        return places

    def _value(self, leaf: Leaf, example: Example, thread: int, loop: int) -> int:
        if leaf.source is Source.UNKNOWN:
            return loop
        if leaf.source is Source.THREAD:
            return _of_thread(leaf.name, example, thread)
        number = int(leaf.name)
        value = list(example.arguments.values())[number]
        return (number + 1) << 40 if isinstance(value, DrawnArray) else _integer(value)

    def _element(self, example: Example, address: int, leaf: Leaf) -> tuple[str, int] | None:
        number, offset = (address >> 40) - 1, address & ((1 << 40) - 1)
        names = list(example.arguments)
        if not 0 <= number < len(names):
            return None
        value, source = example.arguments[names[number]], self._case.arguments[names[number]]
        if not isinstance(value, DrawnArray) or not isinstance(source, ArrayInput):
            return None
        size = value.contents.itemsize
        is_known = value.is_written and isinstance(source.values, (str, tuple))
        if not is_known or offset % size or size * 8 != width_of(leaf.register):
            return None
        return (names[number], offset // size) if offset // size < value.contents.size else None

    def _pools(
        self, condition: Comparison, places: Mapping[str, tuple[str, int]]
    ) -> dict[tuple[str, int], npt.NDArray[Any]]:
        """Return by element the values to try, in its type."""
        pools: dict[tuple[str, int], npt.NDArray[Any]] = {}
        for name, index in places.values():
            each = self._case.arguments[name]
            assert isinstance(each, ArrayInput)
            numbers = _numbers(condition.constants, each.dtype)
            low, high = _limits(each)
            allowed = numbers[(numbers >= low) & (numbers <= high)]
            if not isinstance(each.values, tuple):
                low, high = -_DRAWN, _DRAWN
            further = self._random.uniform(low, high, _MOST_VALUES * (each.dtype.kind == "f"))
            every = [allowed.astype(each.dtype), _spread(each), further.astype(each.dtype)]
            pools[name, index] = np.concatenate(every)
        return pools

    def _rows(
        self,
        pools: Mapping[tuple[str, int], npt.NDArray[Any]],
        condition: Comparison,
        places: Mapping[str, tuple[str, int]],
        example: Example,
        thread: int,
    ) -> dict[str, Table]:
        """Return tables: each value of one element, all pairs of two, some of more."""
        if len(pools) == 2:
            first, second = (pool[:_MOST_POOL] for pool in pools.values())
            grid = np.meshgrid(first, second, indexing="ij")
            chosen = dict(zip(pools, (each.reshape(-1) for each in grid), strict=True))
        elif len(pools) == 1:
            chosen = dict(pools)
        else:
            chosen = {key: self._random.choice(pool, _MOST_ROWS) for key, pool in pools.items()}
        count = len(next(iter(chosen.values())))
        tables: dict[str, Table] = {}
        for leaf in condition.leaves:
            name = leaf.register.name
            if leaf.source is Source.ELEMENT:
                values = np.ascontiguousarray(chosen[places[name]])
                tables[name] = values.view(f"u{values.itemsize}")
            else:
                value = self._value(leaf, example, thread, 0)
                tables[name] = np.full(count, value, np.uint64)
        return tables

    def _filled(
        self,
        example: Example,
        places: Mapping[str, tuple[str, int]],
        tables: Mapping[str, Table],
        row: int,
    ) -> Example:
        arguments = dict(example.arguments)
        for register, (name, index) in places.items():
            value = arguments[name]
            assert isinstance(value, DrawnArray)
            contents = np.array(value.contents)
            bits = contents.reshape(-1).view(f"u{contents.itemsize}")
            bits[index] = tables[register][row]
            arguments[name] = DrawnArray(contents)
        return replace(example, arguments=arguments)


def _rarest(outcomes: npt.NDArray[np.bool_], known: int) -> list[int]:
    """Return a row of each combination of outcomes, the rarest first.

    Combinations are left out that a row from `known` on has, unless that is zero.
    """
    _, first, groups, sizes = np.unique(
        outcomes, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    seen = set(groups.reshape(-1)[known:].tolist()) if known else set()
    order = np.argsort(sizes, kind="stable").tolist()
    return [int(first[group]) for group in order if group not in seen]


def _extent(name: str, config: LaunchConfig) -> int:
    """Return the extent of a block or a grid that a special register has."""
    kind, _, axis = name.partition(".")
    extents = config.block if kind == "%ntid" else config.grid
    return int(extents["xyz".index(axis)])


def _column(
    size: Size, roots: Sequence[Size], table: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the numbers of a size, which its roots give, in each row."""
    places = [roots.index(root) for root in size.roots]
    known = [roots[place] for place in places]
    rows, inverse = np.unique(table[:, places], axis=0, return_inverse=True)
    numbers = [size.at(dict(zip(known, row, strict=True))) for row in rows.tolist()]
    return np.array(numbers, np.int64)[inverse.reshape(-1)]


def _integer(value: object) -> int:
    """Return the bits of a number as an integer that a register may have."""
    if isinstance(value, (float, np.floating)):
        bits = np.asarray(value if isinstance(value, np.floating) else np.float64(value))
        return int(bits.view(f"u{bits.itemsize}"))
    return int(value) & ((1 << 64) - 1) if isinstance(value, (int, np.integer, np.bool_)) else 0


def _of_thread(name: str, example: Example, thread: int) -> int:
    """Return a special register of a thread of the first block; only its x is not zero."""
    kind, _, axis = name.partition(".")
    number = "xyz".find(axis or "x")
    config = example.config
    if kind in _GEOMETRY:
        return _extent(name, config)
    if kind == "%laneid":
        return thread % 32
    return thread % int(config.block[0]) if (kind, number) == ("%tid", 0) else 0


def _limits(each: ArrayInput | NumberInput) -> tuple[float, float]:
    if isinstance(each.values, tuple):
        return each.values
    if each.dtype.kind == "f":
        return -_LARGEST_FLOAT, _LARGEST_FLOAT
    limits = np.iinfo(each.dtype.name)
    return float(limits.min), float(limits.max)


def _spread(each: ArrayInput) -> npt.NDArray[Any]:
    """Return numbers of the range of an array from end to end; none if it gives no range."""
    if not isinstance(each.values, tuple):
        return np.empty(0, each.dtype)
    low, high = each.values
    if each.dtype.kind == "f":
        share = np.linspace(0, 1, _SPREAD + 1)
        return np.clip(low * (1 - share) + high * share, low, high).astype(each.dtype)
    least, most = int(low), int(high)
    steps = [least + (most - least) * step // _SPREAD for step in range(_SPREAD + 1)]
    return np.array(steps, each.dtype)


def _numbers(
    constants: Sequence[Immediate | FloatImmediate], dtype: np.dtype[Any]
) -> npt.NDArray[np.float64]:
    """Return numbers that may solve a condition, those of its constants first."""
    if dtype.kind == "f":
        known = [float_of(each) for each in constants if isinstance(each, FloatImmediate)]
        known = [each for each in known if math.isfinite(each)]
        pairs = list(itertools.product([*known, 1.0, 2.0], repeat=2))
        numbers = [*known, *(a + b for a, b in pairs), *(a - b for a, b in pairs)]
        numbers += [*(a * b for a, b in pairs), *(a / b for a, b in pairs if b)]
        numbers += [math.sqrt(each) for each in known if each > 0]
        small = [0.0, 1.0, -1.0, 0.5, 2.0, *map(float, range(3, _SMALL))]
        fine = np.arange(-(1 << 15), 1 << 15) / 64.0
    else:
        integers = [each.value for each in constants if isinstance(each, Immediate)]
        numbers = [float(each + step) for each in integers for step in (0, 1, -1)]
        numbers += [float(factor) for each in integers for factor in _factors(abs(each))]
        pairs = list(itertools.product(integers, repeat=2))
        numbers += [*map(float, (a + b for a, b in pairs)), *map(float, (a - b for a, b in pairs))]
        small = [0.0, 1.0, -1.0, *map(float, range(-_SMALL, _SMALL))]
        fine = np.arange(-(1 << 16), 1 << 16).astype(np.float64)
        fine = fine[np.argsort(np.abs(fine), kind="stable")]
    every = np.concatenate([np.array([*small, *numbers], np.float64), fine])
    _, first = np.unique(every, return_index=True)
    unique: npt.NDArray[np.float64] = every[np.sort(first)]
    return unique


def _factors(number: int) -> Iterator[int]:
    for factor in range(2, min(number, 1 << 12)):
        if number % factor == 0:
            yield from (factor, number // factor)
