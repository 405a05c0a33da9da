"""A sample of the ground truth; `python -m tests.ptx.emulate.check.truth` runs all of it."""

from __future__ import annotations

import random

import pytest

from .graph_inputs import DTYPES, SHAPES, graph
from .judging import judge, programs
from .program import RIGHT, Program

pytestmark = pytest.mark.slow

PROGRAMS = programs()
SAMPLE = 64


def _sample(seed: int) -> list[Program]:
    """Right programs and faulty ones, as many of each class as there are among all."""
    chosen = random.Random(seed).sample(PROGRAMS, SAMPLE)
    return sorted(chosen, key=lambda each: each.name)


def test_there_are_many_programs_with_names_of_their_own() -> None:
    names = {each.name for each in PROGRAMS}
    assert len(names) == len(PROGRAMS) > 1000
    assert sum(each.fault == RIGHT for each in PROGRAMS) > 200


def test_each_fault_changes_one_right_program() -> None:
    right = {
        (each.pattern, each.over, each.kind, each.block): each.text
        for each in PROGRAMS
        if each.is_right
    }
    for each in PROGRAMS:
        other = right[each.pattern, each.over, each.kind, each.block]
        same_body = each.text.split("\n")[1:] == other.split("\n")[1:]
        assert same_body == each.is_right, each.name


@pytest.mark.parametrize("shape", SHAPES)
def test_a_graph_is_undirected_and_without_loops(shape: str) -> None:
    for kind in DTYPES:
        n, m, row, start, end = graph(shape, "small", 64, kind, "edge").values[:5]
        assert not isinstance(row, int)
        assert not isinstance(start, int)
        assert not isinstance(end, int)
        assert len(row) == n + 1 if isinstance(n, int) else False
        assert (int(row[0]), int(row[-1])) == (0, m)
        edges = set(zip(start.tolist(), end.tolist(), strict=True))
        assert all(one != two and (two, one) in edges for one, two in edges)


def test_a_sample_of_the_faults_is_found_and_no_right_program_accused() -> None:
    wrong = [
        f"{each.program.name}: {each.reports[:1]}"
        for each in judge(_sample(seed=1), ["small"])
        if not each.holds
    ]
    assert wrong == []
