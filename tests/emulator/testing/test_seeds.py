"""Tests that run with several seeds of the order "random"."""

from __future__ import annotations

import re
import shlex

import pytest

from .runs import Runs

SHOW = """
import os
import pytest
def test_it(emulator):
    print("ran", emulator.order, os.environ["CUDADRV_EMULATOR_ORDER"])
@pytest.mark.emulated(order="late")
def test_late(emulator):
    assert emulator.order == "late"
@pytest.mark.emulated(seeds=2, check=["race"])
@pytest.mark.parametrize("value", [1, 2])
def test_by_marker(emulator, value):
    assert "race" in emulator.limits.checks
    print("marked", value, emulator.order)
def test_of_no_device():
    print("no device")
"""
# The write without the lock is ordered behind the reads of the blocks that had the lock before.
LOCK = '''
import numpy as np
import cudadrv
SOURCE = r"""
__device__ int lock = 0, sink = 0;
__device__ void look(int* data) {
  while (atomicCAS(&lock, 0, 1) != 0) {}
  __threadfence();
  sink = data[0];
  __threadfence();
  atomicExch(&lock, 0);
}
extern "C" __global__ void locked(int* data) {
  if (blockIdx.x == 0) { look(data); data[0] = 1; } else { look(data); }
}
"""
def test_locked(cuda_stream):
    data = cuda_stream.zeros(1, np.int32)
    kernel = cuda_stream.context.compile(SOURCE).kernel("locked")
    kernel.launch(cuda_stream, cudadrv.LaunchConfig(4, 1), data)
'''


def lines_with(result: pytest.RunResult, word: str) -> list[str]:
    return [line.partition(word)[2] for line in result.outlines if word in line]


@pytest.mark.slow
def test_a_test_runs_once_a_seed(runs: Runs) -> None:
    result = runs.here(SHOW, "-s", "--cuda=emulator", "--cuda-seeds=3")
    result.assert_outcomes(passed=3 + 1 + 4 + 1)
    assert lines_with(result, "ran ") == [f"random:{seed} random:{seed}" for seed in range(3)]
    assert sorted(lines_with(result, "marked ")) == [
        f"{value} random:{seed}" for value in (1, 2) for seed in range(2)
    ]
    result.stdout.fnmatch_lines(["cudadrv *, order random, checks *, seeds 0 to 2"])


@pytest.mark.slow
def test_the_marker_alone_repeats_its_test(runs: Runs) -> None:
    runs.pytester.makeini("[pytest]\ncuda_order = immediate\n")
    result = runs.here(SHOW, "-s", "--cuda=emulator")
    result.assert_outcomes(passed=1 + 1 + 4 + 1)
    assert lines_with(result, "ran ") == ["immediate immediate"]


@pytest.mark.slow
def test_an_ini_file_requests_seeds(runs: Runs) -> None:
    runs.pytester.makeini("[pytest]\ncuda = emulator\ncuda_seeds = 2\n")
    runs.here(SHOW).assert_outcomes(passed=2 + 1 + 4 + 1)
    runs.here(SHOW, "--cuda-seeds=1").assert_outcomes(passed=1 + 1 + 4 + 1)


@pytest.mark.slow
def test_a_race_that_the_order_of_a_lock_hides_fails_with_some_seeds(runs: Runs) -> None:
    runs.here(LOCK, "--cuda=emulator", "--cuda-check=race").assert_outcomes(passed=1)
    result = runs.here(LOCK, "--cuda=emulator", "--cuda-check=race", "--cuda-seeds=6")
    counts = result.parseoutcomes()
    assert counts["passed"] + counts["failed"] == 6
    said = [line for line in result.outlines if line.startswith("python -m pytest")]
    assert len(said) == counts["failed"]
    words = shlex.split(said[0])
    found = re.fullmatch(r"test_user\.py::test_locked\[random:(\d)\]", words[3])
    assert found
    assert words[4:] == ["--cuda=emulator", "--cuda-seeds=6", "--cuda-check=race"]
    runs.here(LOCK, *words[4:], f"-k[random:{found[1]}]").assert_outcomes(failed=1, deselected=5)


@pytest.mark.slow
def test_a_test_that_its_marker_repeats_needs_no_option_again(runs: Runs) -> None:
    test = LOCK.replace(
        "def test_locked",
        'import pytest\n@pytest.mark.emulated(check=["race"], seeds=6)\ndef test_locked',
    )
    result = runs.here(test)
    assert result.parseoutcomes()["failed"] >= 1
    said = [line for line in result.outlines if line.startswith("python -m pytest")]
    assert re.fullmatch(
        r"python -m pytest 'test_user.py::test_locked\[random:\d\]' --cuda=emulator", said[0]
    )


@pytest.mark.slow
def test_with_both_places_the_emulator_has_the_seeds(runs: Runs, with_no_gpu: None) -> None:
    test = "def test_it(cuda_context):\n    pass\n"
    result = runs.apart(test, "-v", "--cuda=both", "--cuda-seeds=2")
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["*::test_it[[]gpu] SKIPPED*", "*::test_it[[]random:1] PASSED*"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--cuda-seeds=0"], "ERROR: --cuda-seeds=0: give how many seeds, from 1"),
        (["--cuda-seeds=x"], "ERROR: --cuda-seeds=x: give how many seeds, from 1"),
        (
            ["--cuda-seeds=2", "--cuda-seed=1", "--cuda-order=random"],
            "ERROR: --cuda-seeds=2: give it without --cuda-seed",
        ),
        (
            ["--cuda-seeds=2", "--cuda-order=late"],
            "ERROR: --cuda-seeds goes with --cuda-order=random, not late",
        ),
    ],
)
def test_a_wrong_count_is_a_clear_error_of_usage(runs: Runs, options: list[str], said: str) -> None:
    result = runs.here("def test_it():\n    pass\n", *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("seeds=0", "*emulated: seeds is 0: give how many seeds, from 1"),
        ('seeds=2, order="late"', "*emulated: seeds goes without order and seed"),
        ("seeds=2, seed=1", "*emulated: seeds goes without order and seed"),
    ],
)
def test_a_wrong_marker_fails_its_test(runs: Runs, arguments: str, said: str) -> None:
    test = f"import pytest\n@pytest.mark.emulated({arguments})\ndef test_it():\n    pass\n"
    result = runs.here(test)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([said])


def test_a_test_of_unittest_reports_that_it_cannot_be_repeated(runs: Runs) -> None:
    result = runs.here(
        """
import unittest
import pytest
@pytest.mark.emulated(seeds=2)
class TestIt(unittest.TestCase):
    def test_it(self):
        pass
"""
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*emulated: pytest cannot repeat a unittest.TestCase for seeds*"])
