"""Each acceleration of the race check can be left out, and the findings stay the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cache, partial
from unittest import mock

import numpy as np
import pytest

from campaigns.happens_before.operations import Kernel, random_kernel
from campaigns.race_truth import judging
from ptx.emulate.check import race_check
from ptx.emulate.check.accelerations import ALL, Accelerations
from ptx.emulate.check.findings import Finding, Findings
from ptx.emulate.check.race_check import RaceCheck
from ptx.emulate.threads.limits import Limits
from tests.emulator.engine.check import test_races, test_sequentially_consistent
from tests.emulator.engine.kernel_runner import KernelRunner
from tests.rows import all_rows

NAMES = [each.name for each in fields(Accelerations)]
NONE = Accelerations(**dict.fromkeys(NAMES, False))
ONE_OFF = {name: Accelerations(**{name: False}) for name in NAMES}
KERNELS = (*test_races.RIGHT, *test_races.FAULTY, *test_races.MEANT_SO)
Verdicts = dict[str, list[str]]


@contextmanager
def _with(accelerations: Accelerations) -> Iterator[None]:
    changed = partial(RaceCheck, accelerations=accelerations)
    with mock.patch.object(race_check, "RaceCheck", changed):
        yield


def _verdict(found: list[Finding]) -> list[str]:
    """Which instructions race and why, without the threads, of which any may be named."""
    return sorted(
        f"{each.kind} {each.space} {each.benign}"
        f" {[(at.what, at.where and at.where.ptx_line) for at in each.places]}"
        for each in found
    )


@cache
def _of_kernels(accelerations: Accelerations, start: int, step: int) -> Verdicts:
    with _with(accelerations):
        return {name: _verdict(test_races.found_in(name, 2, 256)) for name in KERNELS[start::step]}


@cache
def _of_random_kernels(accelerations: Accelerations, count: int) -> Verdicts:
    with _with(accelerations):
        return {
            str(number): _verdict(_found_in(random_kernel(random.Random(f"{number}"))))
            for number in range(count)
        }


def _found_in(kernel: Kernel) -> list[Finding]:
    runner, findings = KernelRunner(kernel.ptx, 1 << 20), Findings()
    geometry = kernel.geometry
    limits = Limits(
        checks={"race"},
        findings=findings,
        chunk_threads=geometry.chunk_blocks * geometry.threads,
        share_from=1,
    )
    memory = runner.put(np.zeros(kernel.words, np.uint32))
    runner.launch(
        "k",
        geometry.blocks,
        geometry.threads,
        memory,
        limits=limits,
        cluster=(geometry.cluster, 1, 1),
    )
    return findings.found


@cache
def _of_ground_truth(accelerations: Accelerations) -> dict[str, bool]:
    chosen = random.Random(7).sample(judging.programs(), 40)
    with _with(accelerations):
        return {each.program.name: each.holds for each in judging.judge(chosen, ["small"])}


def _of_flags_and_locks(accelerations: Accelerations) -> Verdicts:
    names = ("right", *test_sequentially_consistent.FAULTY)
    with _with(accelerations):
        found = {name: test_sequentially_consistent.found_in(name, 2, 32) for name in names}
        for name in ("locks", "locks_of_others", "locks_without_fence"):
            found[name] = test_sequentially_consistent.found_in_locks(name, 2, 32)
    return {name: _verdict(each) for name, each in found.items()}


def test_all_switches_are_on_by_default() -> None:
    assert Accelerations(**dict.fromkeys(NAMES, True)) == ALL


@pytest.mark.slow
@pytest.mark.parametrize("start", range(3))
def test_the_check_finds_the_same_without_any_acceleration(start: int) -> None:
    assert _of_kernels(NONE, start, 12) == _of_kernels(ALL, start, 12)


@pytest.mark.slow
def test_the_check_finds_the_same_in_random_kernels_without_any_acceleration() -> None:
    assert _of_random_kernels(NONE, 8) == _of_random_kernels(ALL, 8)


@all_rows
@pytest.mark.slow
@pytest.mark.parametrize("left_out", ["all", *NAMES])
def test_the_check_finds_the_same_without_each_acceleration(left_out: str) -> None:
    accelerations = NONE if left_out == "all" else ONE_OFF[left_out]
    assert _of_kernels(accelerations, 0, 2) == _of_kernels(ALL, 0, 2)
    assert _of_random_kernels(accelerations, 30) == _of_random_kernels(ALL, 30)
    assert _of_flags_and_locks(accelerations) == _of_flags_and_locks(ALL)
    holds = _of_ground_truth(accelerations)
    assert holds == _of_ground_truth(ALL)
    assert all(holds.values())
