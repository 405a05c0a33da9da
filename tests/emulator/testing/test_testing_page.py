"""The examples of docs/testing.md run, and its tables have what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from cudadrv.testing.plan import MARKERS

from .runs import Runs

PAGE: Final = (Path(__file__).parents[3] / "docs" / "testing.md").read_text()


@pytest.mark.slow
def test_every_example_passes(runs: Runs) -> None:
    blocks = re.findall(r"`(test_\w+)\.py`\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == PAGE.count("```python") == 6
    runs.pytester.makepyfile(**dict(blocks))
    options = ("--cuda=emulator", "--cuda-check=race", "--cuda-order=random", "--cuda-seed=new")
    runs.here("", *options, "--strict-markers", "-Werror").assert_outcomes(passed=10)


def test_the_example_of_a_kernel_is_of_ten_lines() -> None:
    (block,) = re.findall(r"`test_scale\.py`\n```python\n(.*?)```", PAGE, re.DOTALL)
    assert len([line for line in block.splitlines() if line.strip()]) <= 10


@pytest.mark.slow
def test_every_option_marker_and_fixture_is_described(runs: Runs) -> None:
    said = str(runs.here("", "--help").stdout)
    options = set(re.findall(r"--cuda[\w-]*", said))
    assert len(options) == 9
    assert options <= set(re.findall(r"--cuda[\w-]*", PAGE))
    fixtures = re.findall(
        r"^(\w+) -- .*cudadrv/testing", str(runs.here("", "--fixtures").stdout), re.M
    )
    assert set(fixtures) == {"cuda_context", "cuda_stream", "emulator", "fault_injection"}
    names = [*fixtures, *(re.split(r"\W", marker)[0] for marker in MARKERS)]
    assert [name for name in names if f"| `{name}" not in PAGE] == []
