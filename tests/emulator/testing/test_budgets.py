"""Budgets of tests: the counts of their kernels in budget.json, checked and updated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cudadrv.errors import ArgumentValueError
from cudadrv.testing.budget import KernelBudget, differences, read_budgets, write_budgets

from .runs import Runs

COPY = '''
import numpy as np
import pytest
import cudadrv
import ptx

SOURCE = r"""
extern "C" __global__ void copy(const int* from, int* to)
{
    int i = threadIdx.x;
    to[i] = from[i];
}
"""
@pytest.mark.cuda_budget
def test_copy():
    stream = cudadrv.cuda_context_for(0).default_stream
    context = stream.context
    options = ptx.CompileOptions(target=context.target, lineinfo=True)
    module = context.load_module(ptx.compile(SOURCE, options, name="copy.cu"))
    given, out = stream.zeros(64, np.int32), stream.zeros(64, np.int32)
    module.kernel("copy").launch(stream, cudadrv.LaunchConfig(1, 32), given, out)
def test_without_kernels():
    pass
'''
ON_EMULATOR = ("--cuda=emulator",)
CHECK = ("--cuda-budget=check", *ON_EMULATOR)
UPDATE = ("--cuda-budget=update", *ON_EMULATOR)


@pytest.fixture
def stored(runs: Runs) -> Callable[[], Any]:  # JSON
    """What the file of the folder has."""
    return lambda: json.loads((runs.pytester.path / "budget.json").read_text())


def test_update_stores_the_counts_and_check_accepts_them(
    runs: Runs, stored: Callable[[], Any]
) -> None:
    runs.here(COPY, *UPDATE).assert_outcomes(passed=2)
    found = stored()
    assert found["format"] == 1
    (copy,) = found["tests"]["test_user.py::test_copy"].values()
    numbers = copy["numbers"]
    assert numbers["launches"] == 1
    assert (numbers["load_sectors"], numbers["store_sectors"]) == (4, 4)
    assert numbers["bytes_moved"] == 8 * 32
    assert numbers["bank_conflicts"] == numbers["divergent_branches"] == 0
    assert numbers["occupancy_warps"] == 32
    assert copy["lines"]["copy.cu:5"]["load_sectors"] == 4
    assert copy["compiler"].count(".") >= 2
    runs.here(COPY, *CHECK).assert_outcomes(passed=2)


def test_control_characters_of_a_foreign_budget_are_escaped(runs: Runs) -> None:
    runs.here(COPY, *UPDATE).assert_outcomes(passed=2)
    file = runs.pytester.path / "budget.json"
    given = json.loads(file.read_text())
    (copied,) = given["tests"]["test_user.py::test_copy"].values()
    copied["numbers"]["launches"] = 9
    copied["lines"] = {"\x1b[2J\u202e.cu:5": {"instructions": 1}}
    file.write_text(json.dumps(given))
    text = runs.here(COPY, *CHECK).stdout.str()
    assert "\\x1b[2J\\u202e.cu:5" in text
    assert not {"\x1b", "\u202e"} & {*text}


@pytest.mark.slow
def test_a_change_of_one_sector_fails_with_its_line(runs: Runs) -> None:
    runs.here(COPY, *UPDATE).assert_outcomes(passed=2)
    result = runs.here(COPY.replace("from[i];", "from[i + 1];"), *CHECK)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "budget: the counts of test_user.py::test_copy differ from budget.json",
            "  kernel copy: load_sectors 4 before, 5 now (+1), bytes_moved 256 before, 288 now (*)",
            "    copy.cu:5: load_sectors 4 before, 5 now (+1)",
            "    the PTX changed *",
            "  accept the new counts: pytest --cuda-budget=update",
        ]
    )


@pytest.mark.slow
def test_no_option_checks_nothing_and_writes_nothing(runs: Runs) -> None:
    runs.here(COPY, *ON_EMULATOR).assert_outcomes(passed=2)
    assert not (runs.pytester.path / "budget.json").exists()


def test_a_test_without_a_budget_fails_the_check(runs: Runs) -> None:
    result = runs.here(COPY, *CHECK)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["budget: budget.json has none of test_user.py::test_copy"])


def test_a_marked_test_without_kernels_fails(runs: Runs) -> None:
    test = "import pytest\n@pytest.mark.cuda_budget\ndef test_it():\n    pass\n"
    runs.here(test, *ON_EMULATOR).assert_outcomes(passed=1)
    result = runs.here(test, *UPDATE)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["budget: test_user.py::test_it launches no kernel*"])


@pytest.mark.slow
def test_a_failing_test_changes_no_budget(runs: Runs) -> None:
    runs.here(COPY.replace("def test_without", "    assert 0\ndef test_without"), *UPDATE)
    assert not (runs.pytester.path / "budget.json").exists()


@pytest.mark.slow
def test_an_update_keeps_the_budgets_of_tests_that_did_not_run(
    runs: Runs, stored: Callable[[], Any]
) -> None:
    both = COPY + COPY[COPY.index("@pytest") :].replace("test_copy", "test_other")
    runs.here(both, *UPDATE)
    former = stored()
    runs.here(both.replace("from[i];", "from[i + 1];"), *UPDATE, "-ktest_other")
    now = stored()
    name = "test_user.py::test_copy"
    assert now["tests"][name] == former["tests"][name]
    assert set(now["tests"]) == {name, "test_user.py::test_other"}
    assert now["tests"]["test_user.py::test_other"]["copy"]["numbers"]["load_sectors"] == 5


@pytest.mark.slow
def test_orders_seeds_profiles_and_devices_do_not_change_the_file(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = runs.pytester.path / "budget.json"
    texts = set()
    for options in (
        ("--cuda=both",),
        ("--cuda-order=random", "--cuda-seed=3", "--cuda-profile=A100"),
        ("--cuda-seeds=2", "--cuda-check=race"),
    ):
        runs.here(COPY, "--cuda-budget=update", *options).assert_outcomes(passed=2)
        texts.add(file.read_bytes())
        file.unlink()
    assert len(texts) == 1
    folder = runs.pytester.mkdir("elsewhere")
    monkeypatch.chdir(folder)
    runs.here(COPY, "--cuda-budget=update", str(runs.pytester.path)).assert_outcomes(passed=2)
    texts.add(file.read_bytes())
    assert len(texts) == 1


@pytest.mark.slow
def test_workers_lose_no_budgets(runs: Runs, stored: Callable[[], Any]) -> None:
    pytest.importorskip("xdist")
    twelve = '@pytest.mark.parametrize("n", range(12))\ndef test_copy(n)'
    many = COPY.replace("def test_copy()", twelve)
    runs.apart(many, *UPDATE, "-n3").assert_outcomes(passed=13)
    assert set(stored()["tests"]) == {f"test_user.py::test_copy[{n}]" for n in range(12)}


def test_a_file_of_another_format_is_rejected(tmp_path: Path) -> None:
    file = tmp_path / "budget.json"
    file.write_text('{"format": 7}')
    with pytest.raises(ArgumentValueError, match="has format 7: this cudadrv reads 1"):
        read_budgets(file)
    file.write_text("[1")
    with pytest.raises(ArgumentValueError, match="is not a file of budgets"):
        read_budgets(file)


def budget(ptx: str = "a", compiler: str = "13.5.37", **lines: int) -> KernelBudget:
    """A kernel with a line for each number."""
    numbers = {"launches": 1, "load_sectors": sum(lines.values())}
    shown = {line.replace("_", ".cu:"): {"load_sectors": n} for line, n in lines.items()}
    return KernelBudget(compiler, ptx, numbers, shown)


def test_a_written_file_is_read_again_and_does_not_depend_on_the_order(tmp_path: Path) -> None:
    file = tmp_path / "budget.json"
    tests = {"b": {"k": budget(f_10=1, f_9=2)}, "a": {"y": budget(f_1=1), "x": budget()}}
    write_budgets(file, tests)
    text = file.read_text()
    assert read_budgets(file) == tests
    write_budgets(file, dict(reversed(tests.items())))
    assert file.read_text() == text
    assert [each.name for each in tmp_path.iterdir()] == ["budget.json"]


def test_lines_that_only_moved_are_not_shown() -> None:
    before, now = budget(f_1=8, f_2=4, f_9=6), budget(f_4=8, f_5=5, f_12=6, ptx="b")
    assert differences({"k": before}, {"k": now}) == [
        "kernel k: load_sectors 18 before, 19 now (+1)",
        "  f.cu:5 (before f.cu:2): load_sectors 4 before, 5 now (+1)",
        "  the PTX changed (NVRTC 13.5.37, as before)",
    ]


def test_another_compiler_is_named() -> None:
    found = differences({"k": budget(f_1=8)}, {"k": budget(f_1=9, compiler="13.6.1", ptx="b")})
    assert found[-1] == ("  NVRTC 13.5.37 before, 13.6.1 now: it can generate other instructions")
    assert "PTX is the same" in differences({"k": budget(f_1=8)}, {"k": budget(f_1=9)})[-1]


def test_kernels_that_came_or_went_are_named() -> None:
    assert differences({"old": budget()}, {"new": budget()}) == [
        "kernel new: launches 0 before, 1 now",
        "kernel old: launches 1 before, 0 now",
    ]
