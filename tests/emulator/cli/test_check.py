"""The command `check`: its options, and the status that says how it ended."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cudadrv.__main__ import main

RACY = """
import sys
import cudadrv
from cudadrv import LaunchConfig

SOURCE = '''
extern "C" __global__ void racy(int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void stops(int* out) { out[1 << 28] = 1; }
'''
context = cudadrv.cuda_context_for(0)
with context.new_stream() as stream:
    x = stream.zeros(64, "i4")
    kernel = context.compile(SOURCE).kernel(sys.argv[1])
    kernel.launch(stream, LaunchConfig(1, 64), x)
    stream.synchronize()
    x.close()
raise SystemExit(int(sys.argv[2]))
"""
ORDER = """
from cudadrv.driver.driver_selection import current

print(current().api.order)
"""

WRONG = """
import numpy as np
import cudadrv
stream = cudadrv.cuda_context_for(0).default_stream
x = stream.to_device(np.arange(4.0))
here = cudadrv.pinned_empty(4, "f8")
stream.to_host(x, out=here, wait=False)
assert here.tolist() == [0, 1, 2, 3]
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script that prints what it is given."""
    path = tmp_path / "script.py"
    path.write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    return path


@pytest.fixture
def racy(tmp_path: Path) -> str:
    """A script that launches the kernel that is named, and has the status that is given."""
    path = tmp_path / "racy.py"
    path.write_text(RACY)
    return str(path)


def written(folder: Path, text: str) -> str:
    path = folder / "program.py"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--checks", "foo", "{}"], "'foo' is no check of kernels: one of race, init"),
        (["--checks", "race,,foo", "{}"], "'foo' is no check of kernels"),
        (["--checks", ",", "{}"], "names no check: one of race, init"),
        (["--order", "foo", "{}"], "'foo' is no order of operations"),
        (["--order", "held:0.1", "{}"], "'held:0.1' is not an order: use one of immediate, late"),
        (["--order", "late", "--seed", "3", "{}"], 'order="late" takes no seed'),
        (["--seed", "3", "{}"], 'a seed goes with order="random"'),
        (["--order", "random:1", "--seed", "3", "{}"], "--seed 3: random:1 has a seed already"),
        (["--suppressions", "none.txt", "{}"], "the suppressions of none.txt cannot be read"),
        (["--sarif", "none/found.sarif", "{}"], "none/found.sarif: there is no such folder"),
        (["{}none"], "none: there is no such file"),
        (["x" * 300], "xx: there is no such file"),
        ([""], "'': there is no such file"),
        (["\udce9.py"], "there is no such file"),
        (["{0.parent}"], "the folder has no __main__.py"),
        (["-m", "no_such_module"], "no module named no_such_module"),
        (["-m", "no_such_package.module"], "No module named 'no_such_package'"),
        (["-m", "email"], "no module named email.__main__"),
        (["-m"], "name a script, or a module with -m"),
        ([], "name a script, or a module with -m"),
    ],
)
def test_a_wrong_command_line_is_one_line_and_status_2(
    script: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(["check", *(each.format(script) for each in arguments)]) == 2
    told = capsys.readouterr()
    assert not told.out
    assert told.err.count("\n") == 1
    assert told.err.startswith("cudadrv check: ")
    assert said in told.err


@pytest.mark.parametrize("option", ["--seed=x", "--devices=0", "--no-such-option"])
def test_a_wrong_option_has_status_2(script: Path, option: str) -> None:
    with pytest.raises(SystemExit) as left:
        main(["check", option, str(script)])
    assert left.value.code == 2


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("", 0, ""),
        ("raise SystemExit(0)", 0, ""),
        ("raise SystemExit(66)", 66, ""),
        ("raise SystemExit(5)", 5, ""),
        ("raise SystemExit('it failed')", 1, "it failed\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero"),
        ("1 +", 1, "SyntaxError"),
    ],
)
def test_a_script_has_the_status_that_python_gives_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, status: int, said: str
) -> None:
    assert main(["check", written(tmp_path, text)]) == status
    told = capsys.readouterr().err
    assert said in told
    assert "cudadrv/cli" not in told


@pytest.mark.parametrize(
    ("kernel", "own", "status"), [("racy", 0, 66), ("racy", 7, 7), ("stops", 0, 66)]
)
def test_findings_have_a_status_of_their_own(
    racy: str, capsys: pytest.CaptureFixture[str], kernel: str, own: int, status: int
) -> None:
    assert main(["check", "--checks", "race,bounds", racy, kernel, str(own)]) == status
    assert "1 found by race, bounds" in capsys.readouterr().err


def test_a_script_that_fails_reports_what_had_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = written(tmp_path, WRONG)
    assert main(["check", "--order=late", "--checks=init", program]) == 1
    told = capsys.readouterr().err
    assert "When the script failed, this work was queued and had not run." in told
    assert f"queued at {program}:7\n    its destination, 32 bytes of host memory at " in told
    assert "-4.135911e+85 as float64" in told
    assert main(["check", "--order=immediate", "--checks=init", program]) == 0


def test_help_names_the_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["check", "--help"])
    told = capsys.readouterr().out
    assert "66     there are findings" in told
    assert "2      the command line is wrong" in told


@pytest.mark.parametrize(
    ("options", "order"),
    [
        ([], "immediate"),
        (["--order", "late"], "late"),
        (["--order", "random"], "random:0"),
        (["--order", "random", "--seed", "7"], "random:7"),
        (["--order=random:8"], "random:8"),
    ],
)
def test_the_script_runs_in_the_order_that_is_requested(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    order: str,
) -> None:
    monkeypatch.delenv("CUDADRV_EMULATOR_ORDER", raising=False)
    assert main(["check", *options, written(tmp_path, ORDER)]) == 0
    assert capsys.readouterr().out == f"{order}\n"


def test_a_script_gets_all_that_follows_it(
    script: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--order=late", str(script), "-m", "x", "--checks"]) == 0
    assert capsys.readouterr().out == "__main__ ['-m', 'x', '--checks']\n"


def test_a_module_runs_as_python_runs_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "checked_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "beside.py").write_text("value = 3\n")
    (package / "__main__.py").write_text(
        "import sys\nfrom .beside import value\nprint(__name__, sys.argv, value)\nsys.exit(4)\n"
    )
    monkeypatch.chdir(tmp_path)
    argv, path = sys.argv, list(sys.path)
    assert main(["check", "--order", "late", "-m", "checked_package", "a", "--json"]) == 4
    assert (
        capsys.readouterr().out == f"__main__ [{str(package / '__main__.py')!r}, 'a', '--json'] 3\n"
    )
    assert (sys.argv, sys.path) == (argv, path)
    monkeypatch.delitem(sys.modules, "checked_package")
    monkeypatch.delitem(sys.modules, "checked_package.beside")


GUARD = """
import numpy as np, cudadrv
SOURCE = 'extern "C" __global__ void twice(float* y) { y[blockIdx.x * 256 + threadIdx.x] = 2; }'
def main():
    stream = cudadrv.cuda_context_for(0).default_stream
    kernel = stream.context.compile(SOURCE, name="twice.cu").kernel("twice")
    kernel.launch(stream, cudadrv.LaunchConfig(4, 256), stream.empty(1000, "f4"))
"""


def test_a_fault_that_ends_the_script_is_printed_once_with_the_frames_of_the_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--checks", "bounds", written(tmp_path, f"{GUARD}main()\n")]) == 66
    lines = capsys.readouterr().err.split("\n")
    assert sum("out-of-bounds write of 4 bytes" in line for line in lines) == 1
    frames = [line.split(", ")[-1] for line in lines if line.startswith("  File ")]
    assert frames == ["in <module>", "in main"]
    assert len(lines) <= 16
    assert lines[-2] == "1 found by bounds"


def test_a_fault_that_the_script_catches_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{GUARD}try: main()\nexcept cudadrv.CudaError: pass\nelse: 1 / 0\n"
    assert main(["check", "--checks", "bounds", written(tmp_path, text)]) == 66
    lines = capsys.readouterr().err.split("\n")
    assert lines[0].startswith("bounds: OutOfBounds in kernel twice, block (3, 0, 0)")
    assert len(lines) == 7


def test_another_error_after_a_fault_has_both_and_all_frames(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = f"{GUARD}try: main()\nexcept cudadrv.CudaError: np.zeros(-1)\n"
    assert main(["check", "--checks", "bounds", written(tmp_path, text)]) == 66
    text = capsys.readouterr().err
    assert "ValueError: negative dimensions" in text
    assert "\nbounds: OutOfBounds in kernel twice" in text
