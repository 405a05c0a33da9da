"""The check "assemble": modules that NVIDIA's assembler rejects."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import cudadrv
from cudadrv import emulator
from cudadrv.emulator import AssemblySkippedWarning, RejectedModule, module_assembly
from cudadrv.errors import ArgumentValueError, CheckError
from ptx.assembler import Assembly, default_assembler
from ptx.shown_path import shown_path
from tests.patience import SECONDS

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
RIGHT = HEADER + ".visible .entry k() { ret; }\n"
# The emulator does not check the operands of instructions that it does not execute.
ALLOCATION = ".entry z() { .reg .b64 %a;\nalloca.f32 %a, 8;\nret; }\n"
WRONG = HEADER + ".visible .entry k() { ret; }\n" + ALLOCATION
SCRIPT = f"""
import cudadrv
cudadrv.cuda_context_for(0).load_module({WRONG!r})
"""


@pytest.fixture(autouse=True)
def _told_anew() -> None:
    module_assembly._warn.cache_clear()


def load(text: str) -> None:
    cudadrv.cuda_context_for(0).load_module(text.encode()).kernel("k")


def test_a_module_that_no_gpu_loads_is_reported_with_ptxas_words() -> None:
    with (
        pytest.raises(CheckError, match="GPUs of sm_90 do not load this module") as caught,
        emulator.session(check=["assemble"]) as machine,
    ):
        load(RIGHT)
        load(WRONG)
        load(WRONG)
    (found,) = machine.findings
    assert isinstance(found, RejectedModule)
    assert found.arch == "sm_90"
    first, second, third, *_, last = str(caught.value).splitlines()
    assert re.fullmatch(r"assemble: .*: nvJitLink \d+\.\d+ rejects it", first)
    assert second.startswith("  PTX line 6: ")
    assert third == "    alloca.f32 %a, 8;"
    assert last.startswith(f"  loaded at {shown_path(__file__)}:")
    assert max(map(len, (first, second, third))) <= 100


def test_a_variable_without_a_definition_is_no_finding() -> None:
    """Driver 580 loads it on an H200."""
    text = HEADER + ".extern .global .b32 missing;\n.visible .entry k() {\n"
    text += ".reg .b32 %r;\nld.global.b32 %r, [missing];\nret;\n}\n"
    with emulator.session(check="assemble") as machine:
        with pytest.warns(RuntimeWarning, match="declares the variable missing"):
            cudadrv.cuda_context_for(0).load_module(text)
        assert not machine.findings


def test_a_module_for_one_architecture_or_a_family_is_assembled_for_it() -> None:
    for capability, target, expected in (
        ((9, 0), "sm_90a", "sm_90a"),
        ((10, 3), "sm_100f", "sm_103f"),
        ((12, 0), "sm_80", "sm_120"),
    ):
        text = WRONG.replace("8.0", "8.8").replace("sm_80", target)
        with emulator.session(
            check=["assemble"], compute_capability=capability, raise_findings=False
        ) as machine:
            load(text)
            load(text.replace(ALLOCATION, ""))
        assert [getattr(each, "arch", "") for each in machine.findings] == [expected]


def test_a_rejected_module_can_be_suppressed(tmp_path: Path) -> None:
    known = tmp_path / "known.txt"
    known.write_text(f"assemble line={Path(__file__).name}:*\n")
    with emulator.session(check=["assemble"], suppressions=known) as machine:
        load(WRONG)
    assert machine.findings == ()
    assert machine.unused_suppressions == ()


@pytest.mark.parametrize(
    ("arch", "version", "reason"),
    [("sm_20", "8.0", "does not know sm_20"), ("sm_90", "9.9", "does not know PTX 9.9")],
)
def test_what_nvjitlink_does_not_know_is_skipped_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, arch: str, version: str, reason: str
) -> None:
    monkeypatch.setattr(module_assembly, "_arch_of", lambda *_: arch)
    with emulator.session(check=["assemble"], driver_version=(13, 9)) as machine:
        with pytest.warns(AssemblySkippedWarning, match=reason):
            load(WRONG.replace("8.0", version))
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it is told once
            load(RIGHT.replace("8.0", version))
    assert machine.findings == ()


def test_without_nvjitlink_it_is_rejected_by_name_and_left_out_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDADRV_CACHE_DIR", str(tmp_path))  # which has no note of one
    monkeypatch.setattr(sys, "executable", os.devnull)
    with pytest.raises(ArgumentValueError, match='"assemble" needs nvJitLink: pip install'):
        emulator.Emulator(check=["assemble"])
    assert emulator.checks.Checks.default() == ("race", "init", "sync", "bounds", "divide", "leak")


@pytest.mark.slow
def test_the_command_assembles_by_default(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CUDADRV_")}
    environment |= {
        "PYTHONPATH": str(Path(cudadrv.__file__).parents[1]),
        "CUDADRV_CACHE_DIR": str(tmp_path / "cache"),
    }
    sarif = tmp_path / "found.sarif"
    command = [sys.executable, "-m", "cudadrv", "check", "--json", "--sarif", str(sarif)]
    done = subprocess.run(
        [*command, str(script)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode, done.stderr
    (found,) = json.loads(done.stdout)
    assert (found["check"], found["places"][0]["file"]) == ("assemble", str(script))
    (result,) = json.loads(sarif.read_text())["runs"][0]["results"]
    assert result["ruleId"] == "assemble"


def test_nothing_is_assembled_unless_that_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(default_assembler(), "assemble", None)
    with emulator.session(check=["race", "init", "sync", "bounds", "leak"]):
        cudadrv.cuda_context_for(0).load_module(WRONG.encode()).close()


def test_a_module_that_crashes_the_assembler_is_named_and_the_next_is_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assembler, assemble = default_assembler(), default_assembler().assemble
    crash = Assembly(skipped="nvJitLink 13.5 crashed", is_of_text=True)
    with emulator.session(check=["assemble"], raise_findings=False) as machine:
        with monkeypatch.context() as patch:
            patch.setattr(assembler, "assemble", lambda *_: crash)
            for kernel in "kj":
                text = RIGHT.replace("k()", f"{kernel}()")
                with pytest.warns(AssemblySkippedWarning) as warned:
                    cudadrv.cuda_context_for(0).load_module(text).kernel(kernel)
                (message,) = (str(each.message) for each in warned)
                place = rf"loaded at {re.escape(__file__)}:\d+"
                assert re.search(f"13.5 crashed on the module of {kernel}, {place}$", message)
        assert assembler.assemble == assemble
        load(WRONG)
    assert len(machine.findings) == 1
