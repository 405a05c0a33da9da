"""A sample of the ground truth; `python -m campaigns race_truth` runs all of it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from campaigns.race_truth import bulk_programs, cluster_programs
from campaigns.race_truth.graph_inputs import DTYPES, SHAPES, graph
from campaigns.race_truth.judging import compiled, judge, programs
from campaigns.race_truth.program import RIGHT, Program
from ptx.emulate.check.findings import Findings
from ptx.emulate.model.order import LaunchOrder
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.kernel_runner import KernelRunner

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


def test_a_sample_of_the_faults_is_found_and_no_right_program_reported() -> None:
    wrong = [
        f"{each.program.name}: {each.reports[:1]}"
        for each in judge(_sample(seed=1), ["small"])
        if not each.holds
    ]
    assert wrong == []


ASYNCHRONOUS = {each.name for room in (bulk_programs, cluster_programs) for each in room.PATTERNS}


@pytest.mark.parametrize("kind", ["immediate", "late"])
def test_faults_of_clusters_and_of_copies_are_found_in_every_order(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = [
        each
        for each in PROGRAMS
        if each.pattern in ASYNCHRONOUS and (each.kind, each.block) == ("int", 64)
    ]
    assert len(chosen) > 100
    if kind == "late":
        chosen = chosen[::3]
        launch = KernelRunner.launch

        def in_order(runner: KernelRunner, *given: Any, **options: Any) -> int:
            return launch(runner, *given, **{**options, "order": LaunchOrder("late")})

        monkeypatch.setattr(KernelRunner, "launch", in_order)
    wrong = [
        f"{each.program.name}: {each.reports[:1]}"
        for each in judge(chosen, ["small"])
        if not each.holds
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "bulk-copy.int.element.64.wait-for-a-copy-left-out",
            "a wait for the phase of the mbarrier object",
        ),
        (
            "bulk-copy-back.int.element.64.wait-for-a-copy-left-out",
            "a wait for the asynchronous copy",
        ),
        (
            "neighbours-in-a-cluster.int.element.64.barrier-left-out.first",
            "a barrier of the cluster, such as cluster.sync()",
        ),
    ],
)
def test_a_race_beside_the_threads_reports_what_to_wait_for(name: str, words: str) -> None:
    program = next(each for each in PROGRAMS if each.name == name)
    runner = KernelRunner(compiled([program]), 1 << 24)
    a = runner.put(np.zeros(253, np.int32))
    flags = runner.put(np.zeros(2048, np.int32))
    found = Findings()
    runner.launch(
        program.symbol,
        4,
        64,
        253,
        a,
        a,
        flags,
        cluster=(program.cluster, 1, 1),
        limits=Limits(checks={"race"}, findings=found),
    )
    told = [each for each in found.found if not each.benign]
    assert any(words in each.missing for each in told)
    for each in told:  # the threads are those that issued the copies
        assert all(place.where is not None and place.where.block for place in each.places)
        assert all(place.line is not None for place in each.places)
    if program.cluster > 1:
        places = {each.memory.removeprefix("shared memory ") for each in told}
        assert places <= {f"of block {(k, 0, 0)}" for k in range(4)}
