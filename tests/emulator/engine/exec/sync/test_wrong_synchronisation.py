"""Synchronisation that is wrong is a fault, told in seconds; its right twin runs."""

from __future__ import annotations

import functools
import pathlib

import numpy as np
import pytest

import ptx
from ptx.emulate.model.errors import (
    BarrierDivergence,
    Deadlock,
    EmulationFault,
    EndlessLoop,
    SynchronisationFault,
)
from ptx.emulate.threads.limits import DEFAULT_LIMITS, Limits
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.rows import all_rows
from tests.short_cases import few

SOURCE = pathlib.Path(__file__).with_name("patterns.cu")
WRONG: dict[str, tuple[type[EmulationFault], str]] = {
    "barrier_of_two_branches": (SynchronisationFault, "different barriers"),
    "barrier_and_another": (BarrierDivergence, "48 at barrier 1 .*48 at barrier 0"),
    "barrier_in_a_loop": (BarrierDivergence, "32 at barrier 0 .*64 at barrier 1"),
    "early_return": (BarrierDivergence, "40 at barrier 1 .*56 exited"),
    "too_many_at_a_barrier": (BarrierDivergence, "32 at barrier 1 .*64 exited"),
    "too_few_at_a_barrier": (BarrierDivergence, "64 threads wait at barrier 1"),
    "two_counts": (SynchronisationFault, "barrier 1 with .* threads, where others"),
    "no_whole_warps": (SynchronisationFault, "a multiple of 32"),
    "no_such_barrier": (SynchronisationFault, "only 16"),
    "producers_and_consumers": (SynchronisationFault, "barrier 1 with .* threads, where others"),
    "not_in_its_mask": (SynchronisationFault, "lane 16 .* does not name it"),
    "two_masks": (SynchronisationFault, "with another membermask"),
    "mask_of_lanes_elsewhere": (Deadlock, "wait at"),
    "mask_in_a_loop": (Deadlock, "wait"),
    "wait_for_a_flag": (EndlessLoop, "go round for ever"),
    "lock_that_nobody_gives_back": (EndlessLoop, "95 threads go round for ever"),
    "lock_with_naps": (EndlessLoop, "95 threads go round for ever"),
    "wait_for_another_block": (EndlessLoop, "3 threads go round for ever"),
    "wait_for_a_phase": (Deadlock, "a phase that is never completed"),
}


# What a GPU lets pass once threads have exited.
AROUND = {
    "barrier_under_a_condition": "64 threads of the block, .32, 0, 0. the first",
    "barrier_before_another": "64 threads of the block, .32, 0, 0. .* wait at another one",
    "barrier_deep_under_a_condition": "41 threads of the block, .0, 0, 0. the first",
    "count_under_a_condition": "1 threads of the block, .5, 0, 0. the first",
    "shuffle_under_a_condition": "16 lanes that went around",
    "shuffle_behind_a_return": "lanes that went around",
    "returns_in_a_loop": "1 threads of the block, .7, 0, 0. the first",
}


@functools.cache
def text(target: str) -> str:
    options = ptx.CompileOptions(target=ptx.Target.ptx(target), lineinfo=True)
    found = ptx.compile(SOURCE.read_text(), options, name=SOURCE.name).ptx
    assert found is not None
    return found


def run(target: str, name: str, wrong: int, limits: Limits = DEFAULT_LIMITS) -> None:
    runner = KernelRunner(text(target))
    runner.launch(
        name,
        3 if "another_block" in name else 1,
        96,
        runner.put(np.zeros(96, np.int32)),
        wrong,
        limits=limits,
    )


@all_rows
@pytest.mark.parametrize("target", few(["compute_90", "compute_100"], 1))
@pytest.mark.parametrize("name", few(WRONG, len(WRONG) // 3))
def test_wrong_synchronisation_is_a_fault_and_its_correct_version_runs(
    name: str, target: str
) -> None:
    run(target, name, 0)
    kind, words = WRONG[name]
    with pytest.raises(kind, match=words) as caught:
        run(target, name, 1)
    assert caught.value.where.source_file is not None
    assert caught.value.where.source_file.endswith("patterns.cu")


@all_rows
@pytest.mark.parametrize("target", ["compute_90", "compute_100"])
@pytest.mark.parametrize("name", AROUND)
def test_threads_that_bypass_a_barrier_are_reported_where_that_is_checked(
    name: str, target: str
) -> None:
    checked = Limits(check_synchronisation=True)
    run(target, name, 0, checked)
    run(target, name, 1)
    with pytest.raises(SynchronisationFault, match=AROUND[name]):
        run(target, name, 1, checked)


@all_rows
@pytest.mark.parametrize("name", WRONG)
def test_right_synchronisation_is_not_reported(name: str) -> None:
    run("compute_90", name, 0, Limits(check_synchronisation=True))


def test_each_pattern_is_tested() -> None:
    kernels = [
        line.split("(")[0].split()[-1]
        for line in SOURCE.read_text().splitlines()
        if line.startswith("KERNEL ")
    ]
    assert kernels == [*WRONG, *AROUND]
