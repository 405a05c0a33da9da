"""That the benchmark runs on the null driver and prints sane figures; nothing here is timed."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as harness, bars, report
from benchmarks.driver import NoCompilerError, build_null_driver
from benchmarks.timing import Case, Row, measure
from tests.patience import SECONDS

pytestmark = pytest.mark.slow  # they share a run of the benchmark

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """What a quick run on the null driver printed, and its JSON."""
    try:
        build_null_driver()
    except NoCompilerError:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("benchmark")
    command = [sys.executable, "-m", "benchmarks", "--driver", "null", "--effort", "0.02"]
    command += [
        "--only",
        "launch,operations,threads,graph,allocation,copies,batches,tracing,exchange",
        "--json",
        str(folder / "out.json"),
    ]
    command += ["--plot", str(folder / "out.png")]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads((folder / "out.json").read_text())


def test_every_case_has_figures(run: tuple[str, dict[str, Any]]) -> None:
    rows = [Row(**row) for row in run[1]["rows"]]
    assert run[1]["device"] == "Null device 0"
    assert [row for row in rows if row.error] == []
    assert all(0 < row.best <= row.median for row in rows)
    groups = {"launch", "operations", "threads", "graph", "allocation", "copies", "batches"}
    groups |= {"tracing"}
    assert {row.group for row in rows} - {"exchange"} == groups  # which needs another library
    assert {row.case for row in rows} >= {"0 parameters", "1 parameter", "5 parameters"}


def test_ratios_are_to_the_first_row_of_their_case(run: tuple[str, dict[str, Any]]) -> None:
    base: dict[tuple[str, str], Row] = {}
    for row in (Row(**row) for row in run[1]["rows"]):
        first = base.setdefault((row.group, row.case), row)
        assert math.isclose(row.ratio, row.best / first.best)
    # Bare calls come first wherever there are any.
    assert base["launch", "5 parameters"].who == "cuda.bindings"


def test_the_scaling_of_threads_is_to_one_thread_of_the_same_library(
    run: tuple[str, dict[str, Any]],
) -> None:
    rows = {(row["case"], row["who"]): row for row in run[1]["rows"] if row["group"] == "threads"}
    one = rows["1 thread", "cudadrv Launcher"]
    many = rows["16 threads", "cudadrv Launcher"]
    assert one["scaling"] == 1
    assert math.isclose(many["scaling"], one["median"] / many["median"])
    assert f"{many['scaling']:.2f} × one thread" in run[0]


def test_a_launch_is_of_the_order_of_the_bare_call(run: tuple[str, dict[str, Any]]) -> None:
    rows = {(row["case"], row["who"]): row["ratio"] for row in run[1]["rows"]}
    assert 0.5 < rows["5 parameters", "cudadrv PreparedLaunch"] < 20
    assert 0.5 < rows["5 parameters", "cudadrv Launcher"] < 20


def test_the_tables_and_bars_are_printed(run: tuple[str, dict[str, Any]]) -> None:
    assert "launch: 5 parameters" in run[0]
    assert "cudadrv Launcher at most 1.35 × struct and cuLaunchKernel by hand" in run[0]


def test_what_fails_is_a_line_and_the_rest_is_measured() -> None:
    def fail() -> None:
        raise OSError("no such peer")

    cases = [Case("ours", "f()", {"f": int}), Case("theirs", "f()", {"f": fail})]
    rows = measure("group", "case", cases, repeats=2, rounds=3)
    assert [row.error for row in rows] == ["", "OSError: no such peer"]
    assert "not measured: OSError: no such peer" in report.table(rows)


def test_a_case_of_several_operations_counts_them() -> None:
    calls: list[None] = []
    case = Case("ours", "f(None); f(None)", {"f": calls.append}, repeats=5, per=2)
    (row,) = measure("group", "case", [case], repeats=1, rounds=3)
    assert len(calls) == 2 * (5 + 3 * 5)
    assert row.ratio == 1


def rows_of(**best: float) -> list[Row]:
    return [
        Row("launch", "5 parameters", who.replace("_", " "), value, value, value)
        for who, value in best.items()
    ]


def test_a_bar_that_is_missed_is_named() -> None:
    rows = rows_of(cudadrv_Launcher=1.3, cudadrv_PreparedLaunch=1.01)
    rows.append(Row("launch", "5 parameters", "cuda.bindings", 1.0, 1.0, 1.0))
    judged = {verdict.bar: verdict for verdict in bars.judge(rows, null=False)}
    launcher = judged["launch: 5 parameters: cudadrv Launcher at most 1.15 × cuda.bindings"]
    assert (launcher.holds, launcher.value) == (False, 1.3)
    prepared = judged["launch: 5 parameters: cudadrv PreparedLaunch at most 1.05 × cuda.bindings"]
    assert prepared.holds is True
    peer = judged["launch: 5 parameters: cudadrv Launcher at most 1 × CuPy RawKernel"]
    assert peer.holds is None


def test_bars_of_groups_that_did_not_run_are_left_out() -> None:
    assert bars.judge(rows_of(cudadrv_Launcher=1.0), null=True)
    assert not [v for v in bars.judge(rows_of(a=1.0), null=False) if "copies" in v.bar]


def test_stored_figures_name_what_got_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bars, "_KEPT", tmp_path)
    kept = rows_of(cudadrv_Launcher=1.1, cudadrv_PreparedLaunch=1.05, CuPy_RawKernel=2.0)
    machine = bars.Machine("Null device 3", "3.12", "13.5")
    bars.keep(machine, {"rows": [row.to_json() for row in kept]})
    assert (tmp_path / "null-device-python-3.12-bindings-13.5.json").exists()
    now = rows_of(cudadrv_Launcher=1.5, cudadrv_PreparedLaunch=1.06, CuPy_RawKernel=9.0)
    compared = {verdict.bar: verdict.holds for verdict in bars.compare(now, machine)}
    assert compared == {
        "launch: 5 parameters: cudadrv Launcher against 1.100 kept": False,
        "launch: 5 parameters: cudadrv PreparedLaunch against 1.050 kept": True,
    }
    for other in (
        replace(machine, device="NVIDIA H200"),
        replace(machine, python="3.13"),
        replace(machine, bindings="13.3"),
    ):
        assert bars.compare(now, other) == []


@pytest.mark.parametrize(("before", "stays"), [("P 1, x 2", True), ("P 1, x 3", False)])
def test_figures_of_other_groups_stay_if_the_software_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, stays: bool
) -> None:
    monkeypatch.setattr(bars, "_KEPT", tmp_path)
    machine = bars.Machine("NVIDIA H200", "3.12", "13.5")
    old = [{"group": group, "median": 1} for group in ("launch", "copies")]
    bars.keep(machine, {"where": before, "rows": old})
    path = bars.keep(
        machine, {"where": "P 1, x 2, y 3", "rows": [{"group": "copies", "median": 5}]}
    )
    kept = json.loads(path.read_text())
    assert kept["where"] == "P 1, x 2, y 3"
    assert kept["rows"] == [*old[:stays], {"group": "copies", "median": 5}]


@pytest.mark.parametrize("only", [["launch", "copies"], ["launch,copies"], ["launch,", "copies"]])
def test_groups_are_chosen_with_spaces_or_commas(only: list[str]) -> None:
    assert harness.chosen_groups(only) == ["launch", "copies"]


def test_a_group_that_there_is_not_is_rejected_with_those_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--only", "launch", "copy"])
    with pytest.raises(SystemExit):
        harness.main()
    assert (
        "no group is called 'copy'; there are launch, operations, threads, "
        in capsys.readouterr().err
    )
