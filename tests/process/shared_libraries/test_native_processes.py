"""Processes without Python under `emulate --native`."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.emulator.kernels import OWN_ELEMENT

from .native import HERE
from .process import HEADER, run

IS_SHARED = ".so" in (sysconfig.get_config_var("INSTSONAME") or "")
shared = pytest.mark.skipif(not IS_SHARED, reason="needs a Python with a shared library")
pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="needs the code of the files that starts an emulator"
)

RACES = """
.visible .entry races(.param .u64 p) {
  .reg .b64 %rd<3>; .reg .b32 %r<3>;
  ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x; st.global.u32 [%rd1], %r1;
  ret;
}"""
PTX = HEADER + OWN_ELEMENT + RACES
EMULATE = ("-m", "cudadrv", "emulate", "--native", "--devices", "3")


@pytest.fixture
def program(tmp_path: Path) -> str:
    """The path of a compiled program."""
    if not IS_SHARED:
        pytest.skip("needs a Python with a shared library")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a compiler of C")
    path = tmp_path / "native_program"
    source = HERE / "native_program.c"
    subprocess.run([compiler, str(source), "-o", str(path), "-ldl", "-lpthread"], check=True)
    return str(path)


BEGIN = "init 0 devices 3 locale C home - own -\nload 0\nlaunch 0\n"
END = "child 4\nfreed 0\n"


@pytest.mark.slow
def test_a_program_of_c_runs_on_the_emulator_and_has_its_own_status(program: str) -> None:
    ended = run(*EMULATE, "--require-kernels", program, PTX, "own_element", "7")
    assert (ended.status, ended.err) == (7, "")
    assert ended.out == f"{BEGIN}values 0 1 2 3\n{END}"


@pytest.mark.slow
def test_a_child_of_a_shell_reports_findings_and_queued_work_at_its_end(program: str) -> None:
    shell = f"'{program}' \"$PTX\" races 0; echo $?"
    options = ("--checks", "race", "--order", "late")
    ended = run(*EMULATE, *options, "sh", "-c", shell, names={"PTX": PTX})
    assert ended.status == 0, ended.err
    first, _, last = ended.out.partition("values ")
    assert first == BEGIN
    assert last.partition("\n")[2] == f"{END}66\n"
    assert ended.err.startswith("race: kernel races, 4 bytes of global memory")
    assert ended.err.endswith("cudadrv: 1 found by race\n")


@pytest.mark.slow
@shared
def test_processes_of_python_are_as_without_the_option() -> None:
    count = "from cuda.bindings import driver as d; d.cuInit(0); print(d.cuDeviceGetCount()[1])"
    isolated = f"import subprocess, sys; subprocess.run([sys.executable, '-E', '-c', {count!r}])"
    for text in (count, isolated):
        ended = run(*EMULATE, "python", "-c", text)
        assert (ended.status, ended.out, ended.err) == (0, "3\n", "")


@shared
def test_without_a_compiler_the_command_reports_it_and_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    names = {"CUDADRV_CACHE_DIR": str(tmp_path / "cache"), "PATH": str(tmp_path)}
    names["PYTHONPATH"] = os.environ.get("PYTHONPATH", "")
    ended = run(*EMULATE, "python", "-c", "print('ran')", names=names)
    assert (ended.status, ended.out) == (2, "")
    assert "--native needs a compiler of C: one of cc, gcc, clang" in ended.err


@pytest.mark.skipif(IS_SHARED, reason="needs a Python without a shared library")
def test_without_a_shared_library_of_python_the_command_reports_it_and_runs_nothing() -> None:
    ended = run(*EMULATE, "python", "-c", "print('ran')")
    assert (ended.status, ended.out) == (2, "")
    assert "--native needs a Python with a shared library" in ended.err
