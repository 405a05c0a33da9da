"""Checks of kernels in a session, of a process, and by the command."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cudadrv
import ptx
from cudadrv import emulator
from cudadrv.errors import ArgumentValueError, CheckError, CudadrvError, CudaError
from ptx.emulate.check.findings import Finding
from ptx.emulate.model.errors import UninitialisedRead
from tests.patience import SECONDS
from tests.short_cases import few

ROOT = Path(__file__).parents[2]
SOURCE = """
extern "C" __global__ void turn(int* o, int with_barrier) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  if (with_barrier) __syncthreads();
  o[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void flag(int* o) { o[0] = 1; }
extern "C" __global__ void unset(int* o) {
  __shared__ int s[64];
  s[o[0] & 1] = 1;
  o[1] = s[o[2] + 5];
}
"""
SCRIPT = f"""
import sys
import numpy as np
import cudadrv, ptx
context = cudadrv.cuda_context_for(0)
image = ptx.compile({SOURCE!r}, ptx.CompileOptions(target=context.target, lineinfo=True))
stream = context.new_stream()
o = stream.zeros(64, np.int32)
kernel = context.load_module(image).kernel("turn")
kernel.launch(stream, cudadrv.LaunchConfig(1, 64), o, int(sys.argv[1]))
print(stream.to_host(o).sum())
sys.exit(int(sys.argv[2]))
"""


def launch(kernel: str, *arguments: int) -> None:
    context = cudadrv.cuda_context_for(0)
    options = ptx.CompileOptions(target=context.target, lineinfo=True)
    module = context.load_module(ptx.compile(SOURCE, options, name="turn.cu"))
    stream = context.new_stream()
    o = stream.zeros(64, np.int32)
    module.kernel(kernel).launch(stream, cudadrv.LaunchConfig(1, 64), o, *arguments)
    stream.synchronize()


def test_a_session_raises_what_its_checks_found() -> None:
    said = r"race: kernel turn.*\n.*turn.cu:4.*\n.*turn.cu:6"
    with pytest.raises(CheckError, match=said) as caught, emulator.session(check=("race",)):
        launch("turn", 0)
    (finding,) = caught.value.findings
    assert isinstance(finding, Finding)
    assert (finding.check, finding.space) == ("race", "shared")
    assert pickle.loads(pickle.dumps(caught.value)).findings == (finding,)


def test_a_session_collects_findings_where_it_is_not_to_raise() -> None:
    with emulator.session(check=("race",), raise_findings=False) as machine:
        launch("turn", 0)
    assert [str(each).split(":")[0] for each in machine.findings] == ["race"]


def test_an_error_of_the_block_is_not_replaced_by_findings() -> None:
    with pytest.raises(ZeroDivisionError), emulator.session(check=("race",)):
        launch("turn", 0)
        raise ZeroDivisionError


@pytest.mark.parametrize("check", [(), ("race",), ("race", "init")])
def test_a_right_kernel_passes_every_check(check: tuple[emulator.CheckName, ...]) -> None:
    with emulator.session(check=check) as machine:
        launch("turn", 1)
    assert machine.findings == ()


def test_what_may_be_meant_so_raises_nothing() -> None:
    with emulator.session(check=("race",)) as machine:
        launch("flag")
    assert len(machine.findings) == 1


def test_a_read_of_what_nothing_wrote_is_a_fault_of_the_kernel() -> None:
    with emulator.session(check=("init",)) as machine:
        with pytest.raises(CudaError, match="which nothing has written"):
            launch("unset")
        assert isinstance(machine.last_fault, UninitialisedRead)


def test_without_a_check_nothing_is_looked_for() -> None:
    with emulator.session(check=()) as machine:
        launch("turn", 0)
    assert machine.findings == ()


def test_a_check_that_there_is_not_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ArgumentValueError, match="'races' is no check of kernels: one of race, init"
    ):
        emulator.Emulator(check=["races"])  # type: ignore[list-item]  # the mistake
    for text, match in (
        ("race, memory", "'memory' is no check"),
        (" , ", "names no check: one of"),
    ):
        monkeypatch.setenv("CUDADRV_CHECK", text)
        with pytest.raises(CudadrvError, match=match) as caught:
            emulator.Emulator()
        assert "CUDADRV_CHECK" in str(caught.value)


@pytest.mark.parametrize("check", ["race", "race,init", " init , race,", ["race"], {"race"}, ""])
def test_checks_are_named_by_several_texts_or_by_one(check: emulator.CheckName) -> None:
    names = {"race", "init"} & set("".join(check).replace(",", " ").split())
    assert emulator.Emulator(check=check).checks.names == names
    with emulator.session(check=check) as machine:
        assert machine.checks.names == names


def test_a_text_that_is_no_check_is_rejected() -> None:
    with pytest.raises(ArgumentValueError, match="'races' is no check of kernels"):
        emulator.Emulator(check="races")  # type: ignore[arg-type]  # the mistake


def test_the_environment_chooses_the_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDADRV_CHECK", "race,init")
    with pytest.raises(CheckError), emulator.session():
        launch("turn", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("barrier", "own", "status", "said"),
    few(
        [(1, 0, 0, "0 found"), (0, 0, 66, "1 found"), (0, 7, 7, "1 found"), (1, 7, 7, "0 found")], 2
    ),
)
def test_the_command_reports_a_script(
    tmp_path: Path, barrier: int, own: int, status: int, said: str
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CUDADRV_")}
    environment |= {"PYTHONPATH": str(ROOT), "CUDADRV_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "cudadrv", "check"]
    done = subprocess.run(
        [*command, str(script), str(barrier), str(own)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert done.stdout.split() == ["2016"]
    assert said in done.stderr
    if own:
        return
    done = subprocess.run(
        [*command, "--json", str(script), str(barrier), str(own)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    told = json.loads(done.stdout.splitlines()[1])
    assert [each["check"] for each in told] == ["race"] * (1 - barrier)
