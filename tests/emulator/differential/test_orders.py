"""The recorded bits of the corpus under other orders inside a launch."""

from __future__ import annotations

from typing import Any

import pytest

import ptx
from ptx.emulate import LaunchOrder
from ptx.emulate.program import EmulatedKernel
from tests.emulator.differential.comparison import compare
from tests.emulator.differential.corpus import sources
from tests.emulator.differential.execution import machine, run
from tests.emulator.differential.recording import Recording, path_of
from tests.short_cases import few

ORDERS = {
    "late": LaunchOrder("late"),
    "seed 1": LaunchOrder("random", 1),
    "seed 2": LaunchOrder("random", 2),
}
# Sources whose kernels share something between threads.
SOURCES = ("async_copy", "barrier", "cooperative", "transaction", "warp")
# What these kernels give depends on the order. `active_masks` and `groups` ask which lanes happen
# to run together; `barrier_in_branch` writes `s[t] += s[t ^ 1]` without a barrier in between.
OPEN = {"active_masks", "groups", "barrier_in_branch"}


@pytest.fixture
def order(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All launches have this order."""
    launch = EmulatedKernel.launch
    given = ORDERS[request.param]

    def in_order(kernel: EmulatedKernel, *arguments: Any, **options: Any) -> int:
        return launch(kernel, *arguments, **{**options, "order": given})

    monkeypatch.setattr(EmulatedKernel, "launch", in_order)
    name: str = request.param
    return name


@pytest.mark.slow
@pytest.mark.parametrize("order", few(ORDERS, 1), indirect=True)
@pytest.mark.parametrize("name", SOURCES)
def test_results_are_those_of_the_gpu_in_every_order(name: str, order: str) -> None:
    source = next(each for each in sources() if each.name == name)
    recording = Recording.load(path_of(source))
    assert ptx.Target.cubin(recording.target).compute_capability == (9, 0)
    wrong = []
    with (
        machine() as context,
        context.new_stream() as stream,
        context.load_module(recording.ptx) as module,
    ):
        for case in source.cases:
            if case.name not in OPEN:
                found = compare(case, recording.results[case.name], run(module, stream, case))
                wrong += [(case.name, problem) for problem in found.problems]
    assert wrong == []
