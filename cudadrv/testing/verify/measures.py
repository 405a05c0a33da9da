"""What `verify` does beside drawn examples: each measure is a line of the report."""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np

from ptx.isa.compared import Compared, compared_constants
from ptx.isa.effects import OTHER, Effects, effects_of
from ptx.isa.model import Instruction
from ptx.isa.module import PtxModule, parse

from ...errors import CudadrvError
from ..strategies import ArrayInput, DrawnArray, Size
from .builds import other_builds
from .comparison import Host, bits_differ
from .contents import (
    LARGEST,
    PRECISION,
    Contents,
    allowed_differences,
    coarse_differences,
    other_contents,
)
from .example_run import VALUES, CompiledCase, Fault, RunResult, open_elements
from .generated import generated_example
from .kernel_case import KernelCase
from .ptx_edit import EditablePtx
from .search import FailedExampleError, Search, error_of
from .variations import (
    HARDWARE,
    PLACE,
    STATE,
    barely_aligned,
    counted,
    elsewhere,
    moved,
    repeated,
    smaller,
    spread,
)
from .verdict import CannotVerifyError, Example, Measure

_Found = tuple[FailedExampleError, str]
_MOST_SECONDS: Final = 5.0  # of the processor, for the sizes
_MOST_CONSTANTS: Final = 8  # around which all launches are tried
_SIZES_OF_EXAMPLES: Final = 4
_FEW: Final = 5
_MOST_ELEMENTS: Final = 1 << 16  # of the largest example
_EVERY_SIZE: Final = 400  # sizes that are all tried
_PRIMES: Final = (2, 3, 5, 7, 11, 13, 17, 31, 61, 127, 251, 509, 1021)
_FROM: Final = 2  # a comparison with 0 or 1 is common
_BITS: Final = ("add.f", "exch", "cas", "min.f", "max.f")
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
    """

    search: Search
    seed: int
    examples: int
    done: list[Measure] = field(default_factory=list)
    suspicions: list[str] = field(default_factory=list)
    _runs: int = 0

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
            ("builds", "without the macros that the source names", self._builds),
        ):
            self._runs = 0
            found = list(measure())
            if found or self._runs or name == "inputs":
                self.done.append(Measure(name, text, self._runs))
            if found:
                return found
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
            if constant < _FROM or number >= len(names) or self._case.program is not None:
                continue
            source = self._case.arguments[names[number]]
            if isinstance(source, Size):
                yield f"the kernel compares {names[number]} with {constant} for equality"

    # Each measure yields faults, each with its cause.

    def _inputs(self) -> Iterator[_Found]:
        """Arrays that the reference never changes must keep their bits."""
        for name, (example, text) in self.search.touched.items():
            if name not in self.search.outputs:
                fault = Fault(VALUES, text, (), name)
                yield error_of(fault, example), "the reference never changes this array"
        yield from self._unread()

    def _unread(self) -> Iterator[_Found]:
        """An array on which the reference's result depends must be read."""
        effects, chosen = self._effects, spread(self.search.passed)
        if self._case.program is not None or OTHER in effects.reads or not chosen:
            return
        touched = {self._named(name) for name in (*effects.reads, *effects.updates)}
        for name in chosen[-1].arguments:
            if name not in touched and name in self._case.reference_arguments:
                for contents in other_contents(self._case, chosen[-1], (), self.seed):
                    if self._depends_on(name, contents.example):
                        text = f"values: the kernel never reads {name}"
                        fault = Fault(VALUES, text, (), name)
                        note = "the reference's result depends on this array"
                        yield error_of(fault, contents.example), note
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
        idle = replace(_without_work(self._compiled), checks=())
        for example in spread(self.search.passed)[-1:]:
            changes = any(
                bool(np.any(bits_differ(reference.astype(value.contents.dtype), value.contents)))
                for name, reference in self._case.expected(example).items()
                if isinstance(value := example.arguments[name], DrawnArray)
            )
            if changes and self._only_quickly(idle, example) is None and self._runs:
                text = "values: they are right without the kernels: the host computes them"
                yield error_of(Fault(VALUES, text), example), "program= must launch kernels"

    def _launches(self) -> Iterator[_Found]:
        chosen = spread(self.search.passed)
        for number, example in enumerate(chosen):
            others = chosen[number + 1 :] + chosen[:number]
            for each in repeated(example, others, self._compiled):
                found = self._first(each)
                if found is not None:
                    yield found, STATE
                    return
        # The smallest example may be zeros, which hide what a kernel leaves out.
        for example in chosen[::-1] if self._effects.kept or self._case.program else ():
            for each in counted(example, self._compiled, self._compared.integers):
                found = self._first(each)
                if found is not None:
                    yield found, STATE
                    return

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
        for number, example in enumerate(spread(self.search.passed)):
            base: RunResult | None = None
            for each in elsewhere(example, number):
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

    def _other_bits(self, first: RunResult, second: RunResult, example: Example) -> str:
        """Return the first array with other bits, but for elements that the reference leaves open.

        "" is none.
        """
        for name, reference in self._case.expected(example).items():
            differs = bits_differ(first.arrays[name], second.arrays[name])
            if np.any(differs & ~open_elements(reference, example.arguments[name])):
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
            each = barely_aligned(example)
            error = None if each is None else self._failure(each)
            # Vectors of several elements need a larger alignment.
            if error is not None and error.fault.check == VALUES:
                yield error, PLACE

    def _contents_text(self) -> str:
        floats = [number for number in self._compared.floats if number]
        constants = f", and {len(floats)} constants of comparisons" if floats else ""
        return f"other contents that its values allow{constants}"

    def _constants(self) -> list[float]:
        """The numbers that the kernel compares floats with, also by their bits."""
        bits = (struct.pack("<I", each & 0xFFFFFFFF) for each in self._compared.integers)
        floats = (float(struct.unpack("<f", each)[0]) for each in bits)
        limits = (each for each in self._compared.floats if abs(each) <= LARGEST)
        bits_of = (each for each in floats if 1e-20 < abs(each) < 1e20)
        return [*self._compared.equal_floats, *limits, *bits_of]

    def _largest(self) -> list[Example]:
        """Return an example of the largest sizes, unless it takes long."""
        numbers = {root: root.bounds[1] for root in self._case.roots if root.bounds is not None}
        signature = self._compiled.image.signatures[self._compiled.kernel]
        if math.prod(numbers.values()) > _MOST_ELEMENTS:
            return []
        example = generated_example(self._case, signature, numbers, self.seed)
        return [] if example is None else [example]

    def _contents(self) -> Iterator[_Found]:
        chosen = [*spread(self.search.passed), *self._largest()]
        for seed, example in enumerate(chosen):
            few = example is not chosen[-1] or self.examples < _FEW
            for contents in other_contents(self._case, example, self._constants(), seed):
                if few and contents.name != "fractions":
                    continue
                found = self._of_contents(contents)
                if found is not None:
                    yield found
                    return

    def _of_contents(self, contents: Contents) -> _Found | None:
        """Run an example with other contents; return its fault."""
        example = contents.example
        if self._is_late or not self._case.is_allowed(example):
            return None
        try:
            expected = self._case.expected(example)
            is_exact = self._case.is_exact or contents.has_integers
            allowed = {} if is_exact else allowed_differences(self._case, example, expected)
            result = self._compiled.result(
                example, expected, allowed, is_strict=not contents.is_wide
            )
        except CannotVerifyError:
            return None
        self._runs += 1
        if not result.faults or (contents.is_wide and _overflows(result, expected)):
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
        return f"1, primes, powers of two and those of comparisons, of {shown}"

    def _sizes(self) -> Iterator[_Found]:
        until = time.process_time() + _MOST_SECONDS
        quick = replace(self._compiled, checks=())
        for numbers in self._chosen_sizes():
            if time.process_time() > until or self._runs > _SIZES_OF_EXAMPLES * self.examples:
                return
            for example in self._of_size(numbers):
                found = self._quickly(quick, example)
                if found is not None:
                    yield found, "no drawn example has these sizes"
                    return

    def _chosen_sizes(self) -> Iterator[dict[Size, int]]:
        """Yield numbers for one size, or one number for all of them; those of comparisons first."""
        bounds = {root: root.bounds for root in self._case.roots if root.bounds is not None}
        numbers = {root: _numbers(*each, self._compared.integers) for root, each in bounds.items()}
        every = dict.fromkeys(number for each in numbers.values() for number in each)
        for number in sorted(every, key=lambda number: number not in self._near_constants):
            roots = [root for root in bounds if number in numbers[root]]
            yield from ({root: number} for root in roots)
            if len(roots) == len(bounds) > 1:
                yield dict.fromkeys(roots, number)

    def _of_size(self, numbers: Mapping[Size, int]) -> Sequence[Example]:
        """Return examples of given sizes; all launches of those that the kernel compares with."""
        number = max(numbers.values())
        signature = self._compiled.image.signatures[self._compiled.kernel]
        try:
            example = generated_example(self._case, signature, numbers, self.seed + number)
        except CudadrvError:  # such as a launch that no device has
            return ()
        if example is None or not self._case.is_allowed(example):
            return ()
        if number not in self._near_constants:
            return (example,)
        return [replace(example, config=config) for config in example.alternatives]

    @cached_property
    def _near_constants(self) -> Set[int]:
        integers = [each for each in self._compared.integers if each >= _FROM]
        return {each + step for each in integers[:_MOST_CONSTANTS] for step in (-1, 0, 1)}

    def _geometry(self) -> Iterator[_Found]:
        quick = replace(self._compiled, checks=())
        for example in spread(self.search.passed):
            for config in example.alternatives:
                if self._runs > self.examples:
                    return
                found = self._quickly(quick, replace(example, config=config))
                if found is not None:
                    yield found, "the drawn examples have other blocks and grids"
                    return

    def _builds(self) -> Iterator[_Found]:
        for build in other_builds(self._compiled):
            for example in spread(self.search.passed):
                error = self._only_quickly(build.compiled, example)
                if error is not None and build.is_target:
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
            ("reads", accessed.read, read), ("writes", accessed.written, written),
        ):  # fmt: skip
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
        if time.monotonic() > self.search.deadline:
            self.search.is_late = True
        return self.search.is_late

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


def _numbers(low: int, high: int, constants: Sequence[int]) -> list[int]:
    """Return the sizes to try: those of comparisons first, then others of a range."""
    near = [constant + step for constant in constants for step in (0, 1, -1)]
    powers = [(1 << power) + step for power in range(high.bit_length()) for step in (0, 1, -1)]
    chosen = [*near, low, high, high - 1, *powers, *_PRIMES, (low + high) // 2]
    if high - low < _EVERY_SIZE:
        # In an order in which a limit of time leaves out none of a part.
        span = high - low + 1
        chosen += [low + number * 61 % span for number in range(span)]
        chosen += range(low, high + 1)
    return [number for number in dict.fromkeys(chosen) if low <= number <= high]


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
    """Return whether a kernel fails, or has no finite number where the reference has one."""
    if any(fault.check != VALUES for fault in result.faults):
        return True
    with np.errstate(all="ignore"):
        return any(_exceeds(reference, result.arrays[name]) for name, reference in expected.items())


def _exceeds(reference: Host, array: Host) -> bool:
    """Return whether an array cannot hold a reference, or is not finite where that is."""
    if array.dtype.kind == "f":
        return bool(np.any(np.isfinite(reference) & ~np.isfinite(array)))
    if array.dtype.kind not in "iu" or not reference.size:
        return False
    limits = np.iinfo(array.dtype.name)
    least, most = np.argmin(reference), np.argmax(reference)
    return bool(reference.item(least) < limits.min or reference.item(most) > limits.max)
