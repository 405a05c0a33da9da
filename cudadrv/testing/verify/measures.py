"""What `verify` does beside drawn examples: each measure is a line of the report."""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from ptx.isa.compared import Compared, compared_constants
from ptx.isa.effects import OTHER, Effects, effects_of
from ptx.isa.model import Instruction
from ptx.isa.module import PtxModule, parse

from ...errors import CudadrvError
from ..strategies import ArrayInput, DrawnArray, Size
from .approximations import approximations
from .builds import other_builds
from .chosen_sizes import FROM, chosen_sizes, long_pairs, near_constants
from .comparison import Host, bits_differ
from .conditions import VECTOR, ConditionSearch
from .contents import (
    FEW_OTHERS,
    MOST_CONSTANT,
    PRECISION,
    Contents,
    allowed_differences,
    coarse_differences,
    has_other_floats,
    other_contents,
)
from .example_run import VALUES, CompiledCase, Fault, RunResult
from .generated import generated_example
from .ignored import ignored_arguments
from .kept_conditions import KeptConditions
from .kernel_case import KernelCase
from .limits import wrong_beyond
from .ptx_edit import EditablePtx
from .rounding import Allowed, with_roundings
from .search import FailedExampleError, Search, error_of
from .unmet import unmet_comparisons
from .variations import (
    HARDWARE,
    PLACE,
    STATE,
    across,
    barely_aligned,
    counted,
    elsewhere,
    fewest_blocks,
    moved,
    nbytes_of,
    repeated,
    several_warps,
    smaller,
    spread,
    spread_configs,
)
from .verdict import CannotVerifyError, Example, Measure

_Found = tuple[FailedExampleError, str]
_MOST_SECONDS: Final = 5.0  # of the processor, for the sizes
_SIZES_OF_EXAMPLES: Final = 4
_MORE_HARDWARE: Final = (20, 100)  # if the kernel reads clocks and the like; of the largest example
_FEW: Final = 5
_MOST_OTHER_CONTENTS: Final = 40
_CHAINED: Final = 256  # launches of one module, each with another example
_FEW_VALUES: Final = 2  # one value may be what memory is filled with
_CLOSE: Final = 1e-5
_ARGUMENT: Final = "argument "  # the names of arrays in effects begin so
_MOST_ELEMENTS: Final = 1 << 16  # of the largest example
_MOST_OF_SHORT: Final = 1 << 18  # of one whose index 16 bits do not hold
_MOST_QUICK_ELEMENTS: Final = 1 << 18  # of an example without checks
_BITS: Final = ("add.f", "exch", "cas", "min.f", "max.f")
APPROXIMATE: Final = "approximate instructions can be so far off on a GPU: give their tolerance"
OTHER_LAUNCHES: Final = "the drawn examples have other blocks and grids"
CONDITION: Final = "the values are right, but not where a condition of the hardware alone is other"
SAME_BITS: Final = "the same inputs give other bits where blocks run in another order"


@dataclass
class Measures:
    """The measures of one verification.

    Attributes:
        search: its examples.
        seed: of the generated examples.
        examples: how many runs a measure of many runs has, about.
        done: those that ran.
        suspicions: what a reader should look at.
        left_out: the names of the measures that the deadline ended, or left out.
        unreached: outcomes of comparisons that no launch had, and that give wrong values.
    """

    search: Search
    seed: int
    examples: int
    done: list[Measure] = field(default_factory=list)
    suspicions: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    unreached: list[str] = field(default_factory=list)
    _launched: list[Example] = field(default_factory=list)
    _other_contents: list[Example] = field(default_factory=list)
    _runs: int = 0
    _was_late: bool = False

    def run(self) -> list[_Found]:
        """Run all measures until one finds a fault; return its faults, with their causes."""
        self._list_effects()
        self._observed()
        for name, text, measure in (
            ("inputs", "unchanged where the reference leaves them", self._inputs),
            (
                "program",
                "with kernels that return at once: values must be wrong",
                self._program,
            ),
            ("launches", "after others of the same module, counters advanced", self._launches),
            ("same bits", "on other hardware and in another order", self._same_bits),
            ("addresses", "moved arrays, between intact guard zones", self._addresses),
            ("contents", self._contents_text(), self._contents),
            ("sizes", self._sizes_text(), self._sizes),
            ("geometry", "other blocks and grids", self._geometry),
            (
                "approximations",
                "approximate instructions as far off as PTX allows",
                self._approximations,
            ),
            ("builds", "without the macros that the source names", self._builds),
            ("kept", "comparisons with kept variables, with both outcomes", self._kept),
            ("equalities", "of elements and constants, if no run has them", self._equalities),
        ):
            self._runs, self._was_late = 0, False
            found = list(measure())
            if self._was_late and not found:
                self.left_out.append(name)
            if found or self._runs or name == "inputs":
                self.done.append(Measure(name, text, self._runs))
            if found:
                return found
        if self.search.leaves_all_open:
            self.suspicions.append("no value was compared: the reference leaves each array open")
        return []

    # What the PTX says.

    @cached_property
    def _module(self) -> PtxModule:
        return parse(self._compiled.image.data.decode())

    @cached_property
    def _effects(self) -> Effects:
        return effects_of(self._module, self._compiled.kernel)

    @cached_property
    def _compared(self) -> Compared:
        return compared_constants(self._module, self._compiled.kernel)

    @cached_property
    def _conditions(self) -> ConditionSearch:
        return ConditionSearch(self._compiled, self.seed)

    @property
    def _compiled(self) -> CompiledCase:
        return self.search.compiled

    @property
    def _case(self) -> KernelCase:
        return self._compiled.case

    def _named(self, name: str) -> str:
        """Return an argument's name for its number in effects."""
        words = name.split()
        names = list(self._case.arguments)
        is_argument = len(words) == 2 and words[0] == "argument" and self._case.program is None
        return names[int(words[1])] if is_argument and int(words[1]) < len(names) else name

    def _list_effects(self) -> None:
        effects = self._effects
        for name, touched in (
            ("may read", effects.reads), ("may write", effects.writes),
            ("may update", effects.updates), ("keeps between launches", effects.kept),
            ("reads of the hardware", effects.hardware), ("atomics", effects.atomics),
            ("calls", effects.calls),
        ):  # fmt: skip
            if touched:
                self.done.append(Measure(name, ", ".join(map(self._named, touched))))
        for register in effects.hardware:
            self.suspicions.append(f"the kernel reads {register}, which differs from run to run")
        self.suspicions += self._suspicious_sizes()

    def _suspicious_sizes(self) -> Iterator[str]:
        names = list(self._case.arguments)
        for number, constant in self._compared.equal_arguments:
            if constant < FROM or number >= len(names) or self._case.program is not None:
                continue
            source = self._case.arguments[names[number]]
            if isinstance(source, Size):
                yield f"the kernel compares {names[number]} with {constant} for equality"

    # Each measure yields faults, each with its cause.

    def _inputs(self) -> Iterator[_Found]:
        """Arrays that the reference never changes must keep their bits."""
        yield from self._touched()
        yield from self._unread()
        yield from self._ignored()

    def _touched(self) -> Iterator[_Found]:
        for name, (example, text) in self.search.touched.items():
            if name not in self.search.outputs:
                fault = Fault(VALUES, text, (), name)
                yield error_of(fault, example), "the reference never changes this array"

    def _unread(self) -> Iterator[_Found]:
        """An array on which the reference's result depends must be read."""
        effects, chosen = self._effects, spread(self.search.passed)
        if self._case.program is not None or OTHER in effects.reads or not chosen:
            return
        touched = {self._named(name) for name in (*effects.reads, *effects.updates)}
        for name in chosen[-1].arguments:
            if name not in touched and name in self._case.reference_arguments:
                for contents in other_contents(self._case, chosen[-1], (), (), self.seed):
                    if self._depends_on(name, contents.example):
                        text = f"values: the kernel never reads {name}"
                        fault = Fault(VALUES, text, (), name)
                        note = "the reference's result depends on this array"
                        yield error_of(fault, contents.example), note
                        return

    def _ignored(self) -> Iterator[_Found]:
        """An argument on which the reference's result depends must change the kernel's."""
        for example in [] if self._is_late else spread(self.search.passed)[-1:]:
            quick = replace(self._compiled, checks=())
            for each in ignored_arguments(quick, example):
                text = f"values: {each.output} is the same for other values of {each.name}"
                note = "the reference's result depends on this argument, within the tolerance"
                yield error_of(Fault(VALUES, text, (), each.output), each.example), note
                return

    def _depends_on(self, name: str, example: Example) -> bool:
        """Return whether the reference gives other arrays after one argument changes."""
        value = example.arguments[name]
        if not isinstance(value, DrawnArray) or not value.is_written:
            return False
        changed = DrawnArray(np.zeros_like(value.contents))
        other = replace(example, arguments={**example.arguments, name: changed})
        try:
            before, after = self._case.expected(example), self._case.expected(other)
        except CannotVerifyError:
            return False
        return any(
            bool(np.any(bits_differ(before[each], after[each]))) for each in before if each != name
        )

    def _program(self) -> Iterator[_Found]:
        """What a program leaves must come from its kernels, and not from the host."""
        if self._case.program is None:
            return
        for example in spread(self.search.passed)[-1:]:
            others = other_contents(self._case, example, (), (), self.seed)
            chosen = next((contents.example for contents in others), example)
            text = self._of_host(chosen)
            if text:
                text = f"values: {text} without the kernels: the host computes them"
                yield error_of(Fault(VALUES, text), chosen), "program= must launch kernels"

    def _of_host(self, example: Example) -> str:
        """Return which values are right where kernels return at once; "" are none."""
        idle = replace(_without_work(self._compiled), checks=())
        if self._is_late or not self._case.is_allowed(example):
            return ""
        try:
            expected = self._case.expected(example)
            result = idle.result(example, expected)
        except CannotVerifyError:
            return ""
        self._runs += 1
        counts = {
            name: _computed(reference, result.arrays[name], name, example)
            for name, reference in expected.items()
        }
        if not result.faults and any(each.changed for each in counts.values()):
            return "they are right"
        for name, each in counts.items():
            if each.values >= _FEW_VALUES:
                return f"{each.right} of {result.arrays[name].size} elements of {name} are right"
        return ""

    def _launches(self) -> Iterator[_Found]:
        chosen = spread(self.search.passed)
        for number, example in enumerate(chosen):
            others = chosen[number + 1 :] + chosen[:number]
            for each in repeated(example, others, self._compiled):
                found = self._first(each)
                if found is not None:
                    yield found, STATE
                    return
        if not chosen or not (self._effects.kept or self._case.program):
            return
        # A variable may change with certain contents alone: all examples, in one module.
        passed = tuple(each for each in self.search.passed if each is not chosen[-1])
        rounds = max(1, _CHAINED // max(1, len(passed)))
        chain = replace(chosen[-1], earlier=passed * rounds)
        launched = [chain]
        # The smallest example may be zeros, which hide what a kernel leaves out.
        for example in (*chosen[::-1], *self._changing(chosen)):
            for config in dict.fromkeys((example.config, fewest_blocks(example))):
                each_config = replace(example, config=config)
                is_first = example is chosen[-1] and config is example.config
                constants = self._compared.integers
                launched += counted(each_config, self._compiled, constants, is_first)
        for each in launched:
            found = self._first(each)
            if found is not None:
                yield found, STATE
                return
        self._launched = launched

    def _kept(self) -> Iterator[_Found]:
        """Force outcomes of comparisons with kept variables; those of no launch must be right."""
        if self._effects.kept and "malloc" in self._effects.calls:
            self.unreached.append(
                "a variable may keep the address of memory from malloc, which is not observed"
            )
        if not self._launched or self._case.program is not None or self._is_late:
            return
        chosen = spread(self.search.passed)[::-1]
        kept = KeptConditions(self._compiled, {*self._effects.kept}, self.search.passed)
        examples = [*chosen, *self._other_contents[-_MOST_OTHER_CONTENTS:]]
        self.unreached += kept.unreached(examples, self._launched, lambda: self._is_late)
        self._runs = kept.runs
        yield from ()

    def _equalities(self) -> Iterator[_Found]:
        """Where a comparison with a constant holds, a kernel can be wrong."""
        if self._case.program is not None or self._is_late:
            return
        effects, quick = self._effects, replace(self._compiled, checks=())
        arrays = {each for each in (*effects.reads, *effects.updates) if each.startswith(_ARGUMENT)}
        passed, others = sorted(self.search.passed, key=nbytes_of), self._other_contents
        for each in unmet_comparisons(quick, passed, others, arrays, lambda: self._is_late):
            self._runs += each.is_wrong
            place = f"PTX line {each.line.ptx_line}"
            if each.line.file is not None:
                place = f"{Path(each.line.file).name}:{each.line.line}"
            where = f"{place}: {each.line.text}"
            if each.is_wrong:
                text = "a comparison of elements is equal in no run, and its values are wrong there"
                self.unreached.append(f"{text}: {where}")
            else:
                self.suspicions.append(f"a comparison is equal in no drawn example: {where}")
        self.suspicions += self._wrong_beyond_sizes()
        yield from ()

    def _wrong_beyond_sizes(self) -> Iterator[str]:
        for forced in self._conditions.beyond_sizes():
            for example in spread(self.search.passed)[-1:]:
                error = self._only_quickly(forced.compiled, example)
                if error is not None and error.fault.check == VALUES:
                    yield f"beyond the sizes of the case values are wrong, where {forced.text}"

    def _changing(self, known: Sequence[Example]) -> Sequence[Example]:
        """Return an example that changes a variable; none if known ones do."""
        others = [each for each in self.search.passed if not any(each is one for one in known)]
        if any(self._compiled.kept_after((each,)).changes for each in known):
            return ()
        return [each for each in others if self._compiled.kept_after((each,)).changes][:1]

    def _first(self, example: Example) -> FailedExampleError | None:
        """Return the failure of an example, with as few earlier launches as fail."""
        result = self._result(example)
        if result is None:
            return None
        if not result.faults and result.wrong_before is not None:
            # A later launch was right again.
            return self._failure(replace(example, earlier=example.earlier[: result.wrong_before]))
        if not result.faults:
            return None
        fewer = map(self._failure, smaller(example))
        return next(
            (each for each in fewer if each is not None), error_of(result.faults[0], example)
        )

    def _same_bits(self) -> Iterator[_Found]:
        explained = any(each.startswith(_BITS) for each in self._effects.atomics)
        chosen = spread(self.search.passed)
        for number, example in enumerate(chosen):
            few, many = _MORE_HARDWARE if self._effects.hardware else (0, 0)
            more = many if example is chosen[-1] else few
            base: RunResult | None = None
            for each in elsewhere(example, number, more):
                result = self._result(each)
                if result is None:
                    continue
                if result.faults:
                    yield error_of(result.faults[0], each), HARDWARE
                    return
                base = base or self._result(example)
                name = "" if base is None else self._other_bits(base, result, example)
                if name and not explained:
                    text = f"values: the same inputs give other bits in {name}"
                    yield error_of(Fault(VALUES, text, (), name), each), SAME_BITS
                    return
        yield from self._on_other_hardware()

    def _on_other_hardware(self) -> Iterator[_Found]:
        """Values must stay where a condition of clocks or of the stack has its other outcome."""
        for example in spread(self.search.passed)[-1:]:
            for forced in self._conditions.forced():
                error = self._only_quickly(forced.compiled, example)
                if error is not None and error.fault.check == VALUES:
                    yield error, f"{CONDITION}: {forced.text}"
                    return

    def _other_bits(self, first: RunResult, second: RunResult, example: Example) -> str:
        """Return the first array with other bits, but for elements that the reference leaves open.

        "" is none.
        """
        expected = self._case.expected(example)
        for name in expected:
            differs = bits_differ(first.arrays[name], second.arrays[name])
            if np.any(differs & ~expected.open_elements(name)):
                return name
        return ""

    def _addresses(self) -> Iterator[_Found]:
        chosen = spread(self.search.passed)
        for number, example in enumerate(chosen):
            error = self._failure(moved(example, number))
            if error is not None:
                yield error, PLACE
                return
        for example in chosen[-1:]:
            other = across(example)
            # Checks would record all of the addresses between the arrays.
            quick = replace(self._compiled, checks=())
            error = None if other is None else self._only_quickly(quick, other)
            if error is not None:
                yield error, PLACE
                return
            each = barely_aligned(example)
            error = None if each is None else self._failure(each)
            # Vectors of several elements need a larger alignment.
            if error is not None and error.fault.check == VALUES:
                yield error, PLACE
                return
            for shift in self._conditions.shifts(example):
                error = self._failure(replace(example, shift=shift))
                is_aligned = shift % VECTOR == 0
                if error is not None and (is_aligned or error.fault.check == VALUES):
                    yield error, PLACE
                    return

    def _contents_text(self) -> str:
        floats = [number for number in self._compared.floats if number]
        constants = f", and {len(floats)} constants of comparisons" if floats else ""
        return f"other contents that its values allow{constants}"

    def _constants(self) -> list[float]:
        """The numbers that the kernel compares floats with, also by their bits."""
        bits = (struct.pack("<I", each & 0xFFFFFFFF) for each in self._compared.integers)
        floats = (float(struct.unpack("<f", each)[0]) for each in bits)
        limits = (each for each in self._compared.floats if abs(each) <= MOST_CONSTANT)
        bits_of = (each for each in floats if 1e-20 < abs(each) < 1e20)
        return [*self._compared.equal_floats, *limits, *bits_of]

    def _large_integers(self) -> list[int]:
        """The integers that the kernel compares with, and that are drawn for no array."""
        return [each for each in self._compared.integers if abs(each) > FROM]

    def _largest(self) -> list[Example]:
        """Return an example of the largest sizes, unless it takes long."""
        numbers = {root: root.bounds[1] for root in self._case.roots if root.bounds is not None}
        signature = self._compiled.image.signatures[self._compiled.kernel]
        example = generated_example(self._case, signature, numbers, self.seed, _MOST_ELEMENTS)
        return [] if example is None else [example]

    def _contents(self) -> Iterator[_Found]:
        chosen = [*spread(self.search.passed), *self._largest()]
        for seed, example in enumerate(chosen):
            few = example is not chosen[-1] or self.examples < _FEW
            constants, integers = self._constants(), self._large_integers()
            for contents in other_contents(self._case, example, constants, integers, seed):
                if few and contents.name != "fractions":
                    continue
                for each in _of_several_warps(contents):
                    found = self._of_contents(each)
                    if found is not None:
                        yield found
                        return
        for example in chosen[-1:]:
            for solved in self._conditions.contents(example):
                name = "elements for which a condition of the kernel holds"
                floats = has_other_floats(example, solved)
                found = self._of_contents(Contents(name, solved, True, floats))
                if found is not None:
                    yield found
                    return
            quick = replace(self._compiled, checks=())
            limits = self._compared.limits
            self.suspicions += wrong_beyond(quick, example, limits, lambda: self._is_late)

    def _of_contents(self, contents: Contents) -> _Found | None:
        """Run an example with other contents; return its fault."""
        example = contents.example
        if self._is_late or not self._case.is_allowed(example):
            return None
        try:
            expected = self._case.expected(example)
            is_exact = self._case.is_exact or not contents.has_fractions
            allowed: Allowed = (
                {}
                if is_exact
                else allowed_differences(self._case, example, expected, is_wide=contents.is_wide)
            )
            result = self._compiled.result(
                example, expected, allowed, is_strict=not contents.is_wide
            )
            if [each.check for each in result.faults] == [VALUES] and not contents.is_wide:
                allowed = with_roundings(self._compiled, example, expected, result, allowed)
                result = self._compiled.result(example, expected, allowed, is_strict=True)
        except CannotVerifyError:
            return None
        self._runs += 1
        if not result.faults:
            self._other_contents.append(example)
            self.search.compare_inputs(example, expected, result.arrays)
            return next(self._touched(), None)
        if contents.is_wide and _overflows(result, expected):
            return None
        note = contents.note
        if contents.name == "fractions" and not self._case.is_exact:
            coarse = self._compiled.result(example, expected, coarse_differences(expected))
            note = note if coarse.faults else PRECISION
        return error_of(result.faults[0], example), "" if self._case.is_exact else note

    def _sizes_text(self) -> str:
        roots = self._case.roots
        bounds = [root.bounds for root in roots if root.bounds is not None]
        shown = ", ".join(f"{low} to {high}" for low, high in bounds)
        return f"1, primes, powers of two, unequal ones and those of comparisons, of {shown}"

    def _sizes(self) -> Iterator[_Found]:
        until = time.process_time() + _MOST_SECONDS
        quick = replace(self._compiled, checks=())
        bounds = {root: root.bounds for root in self._case.roots if root.bounds is not None}
        if self._compared.is_short:
            yield from self._long_sizes(quick, bounds)
        seen = [example.arguments for example in self.search.passed]
        rare = self._conditions.sizes(seen) if bounds else ()
        for numbers in itertools.chain(rare, chosen_sizes(bounds, self._compared.integers)):
            if time.process_time() > until or self._runs > _SIZES_OF_EXAMPLES * self.examples:
                return
            for example in self._of_size(numbers):
                found = self._quickly(quick, example)
                if found is not None:
                    yield found, "no drawn example has these sizes"
                    return

    def _long_sizes(
        self, quick: CompiledCase, bounds: Mapping[Size, tuple[int, int]]
    ) -> Iterator[_Found]:
        """Take sizes for which an index in an integer of 16 bits overflows."""
        signature = self._compiled.image.signatures[self._compiled.kernel]
        for numbers in long_pairs(bounds, _MOST_OF_SHORT):
            each = generated_example(self._case, signature, numbers, self.seed, _MOST_OF_SHORT)
            if each is not None and self._case.is_allowed(each):
                error = self._only_quickly(quick, each)
                if error is not None:
                    yield error, "no drawn example has these sizes"
                    return

    @property
    def _most_elements(self) -> int:
        """The largest product of sizes: one size has all of its numbers."""
        bounds = [root.bounds[1] for root in self._case.roots if root.bounds is not None]
        return max([_MOST_QUICK_ELEMENTS, *bounds])

    def _of_size(self, numbers: Mapping[Size, int]) -> Sequence[Example]:
        """Return examples of given sizes; all launches of one that the kernel compares with."""
        number = max(numbers.values())
        signature = self._compiled.image.signatures[self._compiled.kernel]
        try:
            example = generated_example(
                self._case, signature, numbers, self.seed + number, self._most_elements
            )
        except CudadrvError:  # such as a launch that no device has
            return ()
        if example is None or not self._case.is_allowed(example):
            return ()
        if len(numbers) > 1 or number not in self._near_constants:
            return (example,)
        configs = example.alternatives if len(self._case.roots) == 1 else spread_configs(example)
        return [replace(example, config=config) for config in configs]

    @cached_property
    def _near_constants(self) -> frozenset[int]:
        return frozenset(near_constants(self._compared.integers))

    def _geometry(self) -> Iterator[_Found]:
        quick = replace(self._compiled, checks=())
        rare = list(self._rare_launches(quick))
        yield from rare
        most = self._runs + self.examples
        for example in () if rare else spread(self.search.passed):
            for each in self._with_more_blocks(example):
                found = self._only_quickly(quick, each)
                if found is not None and found.fault.check == VALUES:
                    yield found, OTHER_LAUNCHES
                    return
            for config in example.alternatives:
                if self._runs > most:
                    return
                found = self._quickly(quick, replace(example, config=config))
                if found is not None:
                    yield found, OTHER_LAUNCHES
                    return

    def _with_more_blocks(self, example: Example) -> Sequence[Example]:
        """Return an example with more blocks than its threads need, if the case allows it."""
        launch = self._case.launch
        if not launch.threads or launch.base.cooperative or launch.base.cluster:
            return ()
        x, y, z = example.config.grid
        return (replace(example, config=replace(example.config, grid=(x + 1, y, z))),)

    def _rare_launches(self, quick: CompiledCase) -> Iterator[_Found]:
        """Take sizes with a launch for which conditions of both have rare outcomes."""
        signature = self._compiled.image.signatures[self._compiled.kernel]
        for numbers, config in self._conditions.launches(signature):
            each = generated_example(self._case, signature, numbers, self.seed, self._most_elements)
            if each is not None and self._case.is_allowed(each):
                found = self._quickly(quick, replace(each, config=config))
                if found is not None:
                    yield found, OTHER_LAUNCHES
                    return

    def _approximations(self) -> Iterator[_Found]:
        if self._case.is_exact:
            return
        for build in approximations(self._compiled):
            for example in spread(self.search.passed):
                error = self._only_quickly(build, example)
                if error is not None:
                    yield error, APPROXIMATE
                    return

    def _builds(self) -> Iterator[_Found]:
        for build in other_builds(self._compiled):
            for example in spread(self.search.passed):
                error = self._only_quickly(build.compiled, example)
                if error is not None and not build.is_older and error.fault.check != VALUES:
                    break  # a target that lacks what the kernel uses
                if error is not None and build.is_older:
                    self.suspicions.append(f"for {build.macro} it gives other values")
                    break
                if error is not None:
                    yield error, f"its results depend on {build.macro}"
                    return

    def _observed(self) -> None:
        """Compare what one run accesses with what the PTX tells."""
        chosen = spread(self.search.passed)
        if self._case.program is not None or not chosen:
            return
        accessed = self._compiled.accessed(chosen[len(chosen) // 2])
        effects = self._effects
        written = {self._named(name) for name in (*effects.writes, *effects.updates)}
        read = {self._named(name) for name in (*effects.reads, *effects.updates)}
        for kind, names, known in (
            ("reads", accessed.read, read),
            ("writes", accessed.written, written),
        ):
            self.done.append(Measure(f"observed {kind}", ", ".join(sorted(names)) or "none"))
            self.suspicions += [
                f"the kernel {kind} {name} by an address that the PTX does not tell"
                for name in sorted(names - known)
            ]
        arrays = {
            name for name, value in self._case.arguments.items() if isinstance(value, ArrayInput)
        }
        self.suspicions += [
            f"the kernel may write {name}, and no run did"
            for name in sorted((written & arrays) - accessed.written - self.search.outputs)
        ]

    # Running.

    @property
    def _is_late(self) -> bool:
        is_late = time.monotonic() > self.search.deadline
        self._was_late |= is_late
        return is_late

    def _result(self, example: Example) -> RunResult | None:
        """Run an example; None after the deadline, or if it cannot be run."""
        if self._is_late:
            return None
        try:
            result = self._compiled.result(example, self._case.expected(example))
        except CannotVerifyError:
            return None
        self._runs += 1
        return result

    def _failure(self, example: Example) -> FailedExampleError | None:
        result = self._result(example)
        return error_of(result.faults[0], example) if result and result.faults else None

    def _quickly(self, quick: CompiledCase, example: Example) -> FailedExampleError | None:
        """Run an example without checks of its accesses, and again with them if it fails."""
        error = self._only_quickly(quick, example)
        return None if error is None else self._failure(example) or error

    def _only_quickly(self, quick: CompiledCase, example: Example) -> FailedExampleError | None:
        if self._is_late:
            return None
        try:
            faults = quick.faults(example, self._case.expected(example))
        except CannotVerifyError:
            return None
        self._runs += 1
        return error_of(faults[0], example) if faults else None


def _of_several_warps(contents: Contents) -> Sequence[Contents]:
    """Return contents with a few launches, if a part of a block may have none of their numbers."""
    if FEW_OTHERS not in contents.name:
        return (contents,)
    configs = several_warps(contents.example)
    return [
        replace(contents, example=replace(contents.example, config=config)) for config in configs
    ]


class _Computed(NamedTuple):
    """Elements of an array that a program has made without its kernels.

    Attributes:
        changed: how many elements the reference changes.
        right: how many elements were changed, and are right.
        values: how many values these have, but for those that the arguments have anywhere.
    """

    changed: int
    right: int
    values: int


def _computed(reference: Host, array: Host, name: str, example: Example) -> _Computed:
    given = [each for each in example.arguments.values() if isinstance(each, DrawnArray)]
    before = example.arguments[name]
    assert isinstance(before, DrawnArray)
    changed = bits_differ(reference.astype(array.dtype), before.contents)
    if array.dtype.kind not in "iufc":
        return _Computed(int(changed.sum()), 0, 0)
    wide = array.astype(np.complex128)
    is_right = np.isclose(wide, reference, _CLOSE, 0) & bits_differ(array, before.contents)
    # A program may fill in a value, or copy arguments.
    known = [each.contents.ravel() for each in given if each.contents.dtype.kind in "iufc"]
    values = np.setdiff1d(wide[is_right], np.concatenate(known))
    return _Computed(int(changed.sum()), int(is_right.sum()), len(values))


def _without_work(compiled: CompiledCase) -> CompiledCase:
    """Return a case whose kernels return at once."""
    editable = EditablePtx(compiled)
    lines: dict[int, str] = {}
    for name in editable.functions:
        if editable.module.functions[name].is_entry:
            statements = editable.module.body(name).statements
            first = next(each for each in statements if isinstance(each, Instruction))
            lines[first.line] = f"ret; {editable.lines[first.line - 1]}"
    return editable.with_lines(lines)


def _overflows(result: RunResult, expected: Mapping[str, Host]) -> bool:
    """Return whether a kernel fails, or only one of both has a finite number."""
    if any(fault.check != VALUES for fault in result.faults):
        return True
    with np.errstate(all="ignore"):
        return any(_exceeds(reference, result.arrays[name]) for name, reference in expected.items())


def _exceeds(reference: Host, array: Host) -> bool:
    """Return whether an array cannot hold a reference, or is finite where that is not."""
    if array.dtype.kind == "f":
        return bool(np.any(np.isfinite(reference.astype(array.dtype)) != np.isfinite(array)))
    if array.dtype.kind not in "iu" or not reference.size:
        return False
    limits = np.iinfo(array.dtype.name)
    least, most = np.argmin(reference), np.argmax(reference)
    return bool(reference.item(least) < limits.min or reference.item(most) > limits.max)
