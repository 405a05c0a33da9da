"""Every kind of value for every type of parameter, by every way, against an independent oracle."""

from __future__ import annotations

import random
import struct
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final, TypeAlias

import pytest

import cudadrv

from . import values, ways
from .facts import Memory, Number, Parameter
from .oracle import NAN, REJECTED, Verdict, is_nan, verdict
from .parameters import HIDDEN, Case, declared, instantiated
from .values import Arrays, Value
from .ways import Outcome

Way: TypeAlias = Callable[[cudadrv.Stream, Case, Sequence[Value]], ways.Results]
_SHOWN: Final = 40
_TYPICAL: Final = ("", "float", "float4", "void")
_CODES: Final = {
    ("float", 4): "f", ("float", 8): "d", ("integer", 1): "bB", ("integer", 2): "hH",
    ("integer", 4): "iI", ("integer", 8): "qQ", ("word", 8): "qQ", ("bool", 1): "?",
}  # fmt: skip
_SHARE: Final = 96
"""One of so many cells runs by each way in the short tests, another one by the next way."""


@pytest.fixture(scope="module")
def of_declarations(context: cudadrv.Context) -> list[Case]:
    return declared(context)


@pytest.fixture(scope="module")
def of_templates(context: cudadrv.Context) -> list[Case]:
    return instantiated(context)


@pytest.fixture(scope="module")
def parameters(of_declarations: list[Case], of_templates: list[Case]) -> list[Case]:
    return [*of_declarations, *of_templates]


@pytest.fixture(scope="module")
def given(context: cudadrv.Context) -> list[Value]:
    """All values; memory is that of another stream than the launches'."""
    stream = context.new_stream()
    arrays = Arrays(stream)
    found = [
        *values.numbers(),
        *values.views_of_memory(stream),
        *arrays.own(),
        *arrays.foreign(),
        *arrays.versions(),
        *arrays.elements_of_dlpack(),
        *values.host_arrays(stream),
    ]
    if len(cudadrv.list_devices()) > 1:
        elsewhere = Arrays(cudadrv.cuda_context_for(1).new_stream(), is_reachable=False)
        found += [*elsewhere.own(), *elsewhere.foreign()]
    return found


class Report:
    """What was compared, and what differs."""

    def __init__(self) -> None:
        self.cells = 0
        self.differences: list[str] = []

    def compare(self, way: str, case: Case, results: ways.Results) -> None:
        """Compare each launch with the oracle; a cell without a row raises there."""
        for value, outcomes in results:
            expected = verdict(case.parameter, value.facts)
            for outcome in outcomes:
                self.cells += 1
                if not _agrees(case.parameter, expected, outcome):
                    self.differences.append(
                        f"{way}: {value.name} into {case.name}: {_shown(outcome)}, expected "
                        f"{_shown(expected)}"
                    )

    def check(self, least_cells: int) -> None:
        """Raise the differences of all cells at once."""
        count, shown = len(self.differences), "\n".join(self.differences[:_SHOWN])
        assert not self.differences, f"{count} of {self.cells} cells differ:\n{shown}"
        assert self.cells >= least_cells


def _agrees(parameter: Parameter, expected: Verdict, outcome: Outcome) -> bool:
    if expected == NAN:
        form = parameter.of if parameter.kind == "float" else f"float{8 * parameter.nbytes}"
        return isinstance(outcome, bytes) and is_nan(form, outcome)
    return outcome == expected


def _shown(outcome: Outcome) -> str:
    return outcome.hex() if isinstance(outcome, bytes) else outcome


def test_declarations_report_each_type_that_they_do_not_hide(of_declarations: list[Case]) -> None:
    untold = {case.name for case in of_declarations if not _cpp_type(case)}
    structures = {f"{name} declared" for name in ("One", "Two", "Four", "Pair", "Line", "Three")}
    of_ptx = {case.name for case in of_declarations if case.name.endswith("of PTX")}
    assert untold == structures | of_ptx | {f"{name} declared" for name in HIDDEN}


def test_names_of_instances_report_each_type_but_structures(of_templates: list[Case]) -> None:
    untold = {case.name for case in of_templates if not _cpp_type(case)}
    structures = {f"put<{name}>" for name in ("One", "Two", "Four", "Pair", "Line", "Three")}
    assert untold == structures | {"put<Kind>", "put<Byte>"}


def _cpp_type(case: Case) -> str:
    return case.kernel.signature.params[0 if case.is_first else 2].cpp_type


@pytest.mark.parametrize("way", ways.WAYS, ids=lambda way: way.__name__)
def test_a_part_of_all_cells_agrees_with_the_oracle(
    stream: cudadrv.Stream, parameters: list[Case], given: list[Value], way: Way
) -> None:
    report, turn = Report(), ways.WAYS.index(way)
    for number, case in enumerate(parameters):
        part = given[(number * 5 + turn * 3) % _SHARE :: _SHARE]
        report.compare(way.__name__, case, way(stream, case, part))
    report.check(1_500)


def test_no_cell_depends_on_the_value_before(
    stream: cudadrv.Stream, parameters: list[Case], given: list[Value]
) -> None:
    report, seen = Report(), set[Parameter]()
    for number, case in enumerate(parameters):
        is_pointer = case.parameter.kind == "pointer"
        if case.parameter in seen or (is_pointer and case.parameter.of not in _TYPICAL):
            continue
        seen.add(case.parameter)
        near = [one for one in given if isinstance(one.facts, Memory) is is_pointer]
        firsts = of_each_type(case, near)
        # Generated code packs by struct: these are the values that it must hand on or reject.
        hard = [
            one
            for one in near
            if struct_packs_otherwise(case.parameter, one) or is_on_an_edge(case.parameter, one)
        ]
        easy = [one for one in near if one not in hard]
        for turn, first in enumerate(firsts[:: max(len(firsts) // 3, 1)]):
            part = [*hard, *easy[(number + turn) % 16 :: 16]]
            report.compare("after another", case, ways.after_another(stream, case, part, first))
            results = ways.prepared_after_another(stream, case, part[turn::12], first)
            report.compare("prepared after another", case, results)
        for first, others in equal_values(case.parameter, near):
            report.compare("after an equal", case, ways.after_an_equal(stream, case, others, first))
    report.check(8_000)


def test_no_array_is_accepted_by_the_code_for_another_type(
    stream: cudadrv.Stream, parameters: list[Case], given: list[Value]
) -> None:
    """Arrays of bfloat16 have the array interface of two bytes, which any pointer accepts."""
    (case,) = [case for case in parameters if case.name == "float* declared"]
    arrays = {
        (type(one.value), one.facts.dtype): one
        for one in given
        if isinstance(one.facts, Memory) and one.facts.is_reachable and one.facts.itemsize != 4
    }
    report = Report()
    for first in of_each_type(case, given):
        results = ways.after_another(stream, case, [*arrays.values()], first)
        report.compare("after another", case, results)
    report.check(200)


def struct_packs_otherwise(parameter: Parameter, one: Value) -> bool:
    """Whether struct packs a number into other bytes than a launch must, or where it must raise."""
    expected, codes = verdict(parameter, one.facts), _CODES.get((parameter.kind, parameter.nbytes))
    if codes is None or expected == NAN:
        return False
    packed: set[Outcome] = set()
    for code in codes:
        try:
            with warnings.catch_warnings(action="ignore"):
                packed.add(struct.pack(code, one.value))
        except Exception:  # whatever the value's own methods raise
            packed.add(REJECTED)
    return expected not in packed


def equal_values(
    parameter: Parameter, given: Sequence[Value]
) -> Iterator[tuple[Value, list[Value]]]:
    """Accepted numbers, each with equal ones that must lead to something else: 0.0 and -0.0."""
    by_number: dict[Fraction | float, dict[Verdict, Value]] = {}
    for one in given:
        if isinstance(one.facts, Number):
            of_number = by_number.setdefault(one.facts.value, {})
            of_number.setdefault(verdict(parameter, one.facts), one)
    for of_number in by_number.values():
        for expected, first in of_number.items():
            others = [one for one in of_number.values() if one is not first]
            if expected != REJECTED and others:
                yield first, others


def is_on_an_edge(parameter: Parameter, one: Value) -> bool:
    """Whether a number is halfway between two floats of the parameter, or the end of its range."""
    number = one.facts
    if parameter.kind != "float" or not isinstance(number, Number):
        return False
    if not isinstance(number.value, Fraction):
        return False
    step = Fraction(1, 2**200)
    below, above = (
        replace(number, value=number.value * (1 + by), bits=b"") for by in (-step, step)
    )
    return verdict(parameter, below) != verdict(parameter, above)


@pytest.mark.slow
@pytest.mark.parametrize("way", ways.WAYS, ids=lambda way: way.__name__)
def test_every_cell_agrees_with_the_oracle(
    stream: cudadrv.Stream, parameters: list[Case], given: list[Value], way: Way
) -> None:
    report = Report()
    for case in parameters:
        report.compare(way.__name__, case, way(stream, case, given))
    report.check(140_000)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_no_cell_depends_on_any_value_before(
    stream: cudadrv.Stream, parameters: list[Case], given: list[Value], part: int
) -> None:
    report = Report()
    for case in parameters[part::4]:
        for number, first in enumerate(of_each_type(case, given)):
            some = given[number % 3 :: 3]
            report.compare("after another", case, ways.after_another(stream, case, some, first))
            results = ways.prepared_after_another(stream, case, some, first)
            report.compare("prepared after another", case, results)
    report.check(100_000)


def of_each_type(case: Case, given: Sequence[Value]) -> list[Value]:
    """A value of each type that a parameter accepts."""
    accepted = (one for one in given if verdict(case.parameter, one.facts) != REJECTED)
    return list({type(one.value): one for one in accepted}.values())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_no_cell_depends_on_long_histories(
    stream: cudadrv.Stream, parameters: list[Case], given: list[Value], seed: int
) -> None:
    report, choose = Report(), random.Random(seed + 2)
    for case in parameters:
        steps = history(case, given, choose, 600)
        report.compare("history", case, ways.one_launcher(stream, case, steps))
    report.check(100_000)


def history(case: Case, given: Sequence[Value], choose: random.Random, count: int) -> list[Value]:
    """Values in random order; half of them are accepted, and most are repeated some times.

    A launcher packs a value again that is the same object as before, and makes code for the kinds
    of values that it has seen.
    """
    accepted = [one for one in given if verdict(case.parameter, one.facts) != REJECTED]
    few = choose.sample(accepted, min(4, len(accepted)))
    steps: list[Value] = []
    while len(steps) < count:
        chosen = choose.choice(choose.choice((accepted, few, given)))
        steps += [chosen] * choose.choice((1, 1, 2, 3, 5))
    return steps[:count]
