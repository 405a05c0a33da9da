"""The plugin with pytest-xdist: a device for each worker, and one seed for all."""

from __future__ import annotations

import re

import pytest

from cudadrv.testing.gpus import rotated

from .runs import Runs

pytest.importorskip("xdist")
SHOW = """
import os
import pytest
@pytest.mark.gpu
@pytest.mark.parametrize("n", range(12))
def test_it(n):
    with open(os.environ["PYTEST_XDIST_WORKER"], "w") as file:
        file.write(os.environ.get("CUDA_VISIBLE_DEVICES", "not set") + " ")
        file.write(os.environ["CUDADRV_DRIVER"] + " ")
        file.write(os.environ.get("CUDADRV_EMULATOR_ORDER", ""))
"""


def found(runs: Runs) -> list[list[str]]:
    files = sorted(runs.pytester.path.glob("gw*"))
    return [file.read_text().split() for file in files]


@pytest.mark.slow
def test_each_worker_has_a_first_device_of_its_own(
    runs: Runs, with_gpus: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,GPU-five,7")
    result = runs.apart(SHOW, "-n2", "--cuda=gpu")
    result.assert_outcomes(passed=12)
    assert found(runs) == [["2,GPU-five,7", "cuda"], ["GPU-five,7,2", "cuda"]]
    result.stdout.fnmatch_lines(["cudadrv *, --cuda=gpu, order immediate, checks default"])


def test_all_devices_have_a_turn() -> None:
    assert [rotated("abc", number)[0] for number in range(7)] == list("abcabca")
    assert all(sorted(rotated("abc", number)) == list("abc") for number in range(7))


@pytest.mark.slow
def test_a_new_seed_is_one_for_all_workers(runs: Runs) -> None:
    result = runs.apart(SHOW, "-n2", "--cuda=emulator", "--cuda-order=random", "--cuda-seed=new")
    result.assert_outcomes(passed=12)
    (seed,) = re.findall(r"checks default, seed (\d+)$", str(result.stdout), re.MULTILINE)
    assert found(runs) == [["not", "set", "emulator:1", f"random:{seed}"]] * 2


@pytest.mark.slow
def test_workers_report_what_was_found(runs: Runs) -> None:
    result = runs.apart(
        """
from kernels import run
kept = []
def test_bad(cuda_stream):
    run(cuda_stream, "bad")
def test_good(cuda_stream):
    assert run(cuda_stream, "good")[5] == 5
def test_racy(cuda_stream):
    run(cuda_stream, "racy")
def test_left(cuda_stream):
    kept.append(cuda_stream.zeros(8, "f4"))
""",
        "-n1",
        "--cuda=emulator",
        "--cuda-check=race",
    )
    result.assert_outcomes(failed=2, passed=2, errors=1)
    result.stdout.fnmatch_lines_random(
        ["*kernel bad*", "race: kernel racy*", "leak: 32 bytes of *"]
    )
