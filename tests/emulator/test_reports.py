"""What is found, as records of one form, as SARIF, and without what is suppressed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.cli.finding_formats import as_json, as_sarif
from cudadrv.emulator import Finding, HostChange, KernelFault, Leak, Place
from cudadrv.errors import ArgumentValueError, CheckError, CudaError
from ptx.emulate.check.findings import Access, Found, demangled
from ptx.emulate.model.errors import Where
from tests.patience import SECONDS
from tests.short_cases import few

ROOT = Path(__file__).parents[2]
SOURCE = """
__device__ int counter[32];
extern "C" __global__ void turn(int* o) {
  __shared__ int pad[8]; __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x; pad[threadIdx.x & 7] = 0;
  o[threadIdx.x] = s[63 - threadIdx.x] + pad[0];
}
extern "C" __global__ void count(int* o) { counter[threadIdx.x / 2] += 1; }
extern "C" __global__ void stuck(int* o) { if (threadIdx.x < 32) asm("bar.sync 1, 64;"); }
extern "C" __global__ void beyond(int* o) { o[64 + threadIdx.x] = 1; }
"""
WHERE = Where("k", (1, 0, 0), (2, 0, 0), "st.global.u32", 7, "/tmp/k.cu", 3)
OTHER = Where("k", (0, 0, 0), (0, 0, 0), "ld.global.u32", 9, None, None)
RACE = Finding(
    "race", "k", Access("write", WHERE), Access("read", OTHER), "global", 4096, 4, "a", "", "b", "x"
)
EVERY: tuple[Found, ...] = (
    RACE,
    KernelFault("bounds", "OutOfBounds", "out of bounds", WHERE),
    Leak("device memory", 64, 4096, "train.py:12"),
    HostChange(4096, 8, "a.py:1", "a.py:2", "", True, "again"),
)


def launch(kernel: str) -> None:
    context = cudadrv.cuda_context_for(0)
    options = ptx.CompileOptions(target=context.target, lineinfo=True)
    module = context.load_module(ptx.compile(SOURCE, options, name="turn.cu"))
    stream = context.new_stream()
    o = stream.zeros(64, np.int32)
    module.kernel(kernel).launch(stream, cudadrv.LaunchConfig(1, 64), o)
    stream.synchronize()


def suppressed(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "known.txt"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("kernel", "check", "kind"),
    [("stuck", "sync", "BarrierDivergence"), ("beyond", "bounds", "OutOfBounds")],
)
def test_a_fault_that_a_check_is_about_is_a_finding_that_was_reported(
    kernel: str, check: emulator.CheckName, kind: str
) -> None:
    with emulator.session(check=(check,)) as machine, pytest.raises(CudaError):
        launch(kernel)
    (found,) = machine.findings
    assert isinstance(found, KernelFault)
    assert (found.check, found.kind, found.kernel, found.is_told) == (check, kind, kernel, True)
    (place,) = found.places
    assert place.file is not None
    assert (Path(place.file).name, place.line) == ("turn.cu", 9 if kernel == "stuck" else 10)


def test_a_fault_that_no_check_is_about_is_none() -> None:
    with emulator.session(check=("race",)) as machine, pytest.raises(CudaError):
        launch("beyond")
    assert machine.findings == ()


@pytest.mark.parametrize(("kernel", "name"), [("turn", "s"), ("count", "counter")])
def test_a_race_names_its_variable(kernel: str, name: str) -> None:
    with emulator.session(check=("race",), raise_findings=False) as machine:
        launch(kernel)
    assert name in {each.variable for each in machine.findings}


@pytest.mark.parametrize(
    "line",
    [
        "race kernel=turn", "* kernel=t*", "race line=turn.cu:6", "race line=*turn.cu:5",
        "race variable=s  # known", "race kernel=turn line=turn.cu:5 variable=s",
    ],
)  # fmt: skip
def test_what_a_suppression_meets_is_not_reported(line: str, tmp_path: Path) -> None:
    file = suppressed(tmp_path, f"# known\n\n{line}\nrace variable=pad\n")
    with emulator.session(check=("race",), suppressions=file) as machine:
        launch("turn")
    assert machine.findings == ()


@pytest.mark.parametrize(
    "line",
    [
        "init kernel=turn", "race kernel=tur", "race line=turn.cu:7", "race line=urn.cu:5",
        "race kernel=turn variable=t",
    ],
)  # fmt: skip
def test_what_it_does_not_meet_is_reported_and_it_is_named_as_unused(
    line: str, tmp_path: Path
) -> None:
    file = suppressed(tmp_path, f"race variable=pad\n{line}\n")
    with (
        pytest.raises(CheckError, match="kernel turn"),
        emulator.session(check=("race",), suppressions=file) as machine,
    ):
        launch("turn")
    assert f"{file}:2: {line}" in machine.unused_suppressions


def test_the_environment_names_a_file_of_suppressions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDADRV_CHECK_SUPPRESSIONS", str(suppressed(tmp_path, "race kernel=turn")))
    with emulator.session(check=("race",)):
        launch("turn")


@pytest.mark.parametrize(
    "line",
    [
        "race", "kernel=turn", "race turn", "race file=a.cu", "race kernel=",
        "race kernel=a kernel=b",
    ],
)  # fmt: skip
def test_a_line_that_is_no_suppression_is_rejected_with_its_place(
    line: str, tmp_path: Path
) -> None:
    file = suppressed(tmp_path, f"race kernel=k\n{line}\n")
    with pytest.raises(ArgumentValueError, match=f"known.txt:2: '{line}' is no suppression"):
        emulator.Emulator(suppressions=file)
    with pytest.raises(ArgumentValueError, match="cannot be read"):
        emulator.Emulator(suppressions=tmp_path / "none")


@pytest.mark.parametrize("found", EVERY, ids=lambda each: each.check)
def test_every_finding_has_one_form_as_json(found: Found) -> None:
    told = json.loads(json.dumps(as_json(found)))
    assert set(told) >= {"check", "kernel", "variable", "benign", "is_told", "text", "places"}
    assert [each["line"] for each in told["places"]] == [each.line for each in found.places]
    assert told["text"] == str(found)
    assert all(len(line) < 240 for line in told["text"].splitlines())


def _check_sarif(log: dict[str, Any]) -> None:  # JSON
    """What SARIF 2.1.0 asks of a log (its sections 3.13, 3.14, 3.27 and 3.29)."""
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert set(driver) == {"name", "version", "rules"}
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(set(rules)) == len(rules)
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    assert all(type(each["executionSuccessful"]) is bool for each in run["invocations"])
    for result in run["results"]:
        assert set(result) <= {
            "ruleId", "ruleIndex", "level", "message", "locations", "relatedLocations"
        }  # fmt: skip
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        assert len(result["locations"]) == 1
        for location in (*result["locations"], *result.get("relatedLocations", ())):
            assert set(location) <= {"id", "message", "physicalLocation", "logicalLocations"}
            assert location["message"]["text"]
            physical = location.get("physicalLocation")
            if physical is not None:
                assert " " not in physical["artifactLocation"]["uri"]
                assert physical.get("region", {"startLine": 1})["startLine"] >= 1
            for logical in location.get("logicalLocations", ()):
                assert logical == {"name": logical["name"], "kind": "function"}


def test_findings_of_every_check_are_valid_sarif() -> None:
    log = as_sarif(EVERY, version="1.0", succeeded=True)
    _check_sarif(json.loads(json.dumps(log)))
    results = json.loads(json.dumps(log))["runs"][0]["results"]
    assert [each["ruleId"] for each in results] == ["race", "bounds", "leak", "order"]
    (first,) = results[0]["locations"]
    assert first["physicalLocation"] == {
        "artifactLocation": {"uri": "file:///tmp/k.cu"},
        "region": {"startLine": 3},
    }
    assert results[2]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "train.py"


SCRIPT = f"""
import _thread, sys, threading
import numpy as np
import cudadrv, ptx
def launch(kernel):
    context = cudadrv.cuda_context_for(0)
    options = ptx.CompileOptions(target=context.target, lineinfo=True)
    module = context.load_module(ptx.compile({SOURCE!r}, options, name="turn.cu"))
    stream = context.new_stream()
    o = stream.zeros(64, np.int32)
    module.kernel(kernel).launch(stream, cudadrv.LaunchConfig(1, 64), o)
    stream.synchronize()
    return o
for name in sys.argv[1:]:
    if name == "leak":
        _thread.start_new_thread(lambda held: threading.Event().wait(), (launch("count"),))
    else:
        o = launch(name)
"""


@pytest.mark.parametrize(
    ("arguments", "status", "checks"),
    few(
        [
            ((), 0, []),
            (("turn",), 66, ["race", "race"]),
            (("stuck",), 66, ["sync"]),
            (("leak",), 66, ["race", "race", "leak", "leak"]),  # an array and its stream
            (("none",), 1, []),
        ],
        1,
    ),
)
def test_the_command_writes_sarif_and_accepts_suppressions(
    tmp_path: Path, arguments: tuple[str, ...], status: int, checks: list[str]
) -> None:
    script, sarif = tmp_path / "script.py", tmp_path / "found.sarif"
    script.write_text(SCRIPT)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CUDADRV_")}
    environment |= {"PYTHONPATH": str(ROOT), "CUDADRV_CACHE_DIR": str(tmp_path / "cache")}
    known = suppressed(tmp_path, "* kernel=none\n")
    options = ["--sarif", str(sarif), "--suppressions", str(known)]
    done = subprocess.run(
        [sys.executable, "-m", "cudadrv", "check", *options, str(script), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == status, done.stderr
    log = json.loads(sarif.read_text())
    _check_sarif(log)
    assert [each["ruleId"] for each in log["runs"][0]["results"]] == checks, done.stderr
    assert f"unused suppression: {known}:1: * kernel=none" in done.stderr
    assert "found by race, init, sync, bounds, divide, assemble, leak" in done.stderr


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZZ4turnE1s", "s"), ("_ZZ4turnPiE1s_0", "s"), ("_ZZN3foo3barEiE6buffer", "buffer"),
        ("_ZN3foo7counterE", "counter"), ("_ZL7counter", "counter"), ("counter", "counter"),
        ("_Z", "_Z"), ("_ZZ", "_ZZ"), ("", ""), ("_ZZ4turnE9s", "_ZZ4turnE9s"),
    ],
)  # fmt: skip
def test_a_variable_is_named_as_in_the_source(symbol: str, name: str) -> None:
    assert demangled(symbol) == name


def test_a_place_of_the_host_has_no_thread() -> None:
    assert EVERY[2].places == (Place("made", "train.py", 12),)
