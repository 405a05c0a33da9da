"""The command line as a whole: help, exit statuses, misspelt commands, and no driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cudadrv.cli.command_line import COMMANDS
from cudadrv.cli.compile import default_target
from cudadrv.cli.output import print_table
from cudadrv.errors import DriverNotFoundError
from tests.patience import SECONDS

from .in_process import Command, command

CACHE_ACTIONS = ("info", "clear", "verify", "prewarm")
FILL = 'extern "C" __global__ void fill(float* x) { x[threadIdx.x] = 2; }\n'


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return command(capsys)


@pytest.mark.parametrize(
    "words",
    [*([name] for name in (*COMMANDS, "completion")), *(["cache", a] for a in CACHE_ACTIONS)],
)
def test_help_of_a_command_has_a_description_an_example_and_the_exit_statuses(
    words: list[str], run: Command
) -> None:
    done = run(*words, "--help")
    assert done.returncode == 0
    usage, description, *_ = done.stdout.split("\n\n")
    assert usage.startswith(f"usage: cudadrv {' '.join(words)} ")
    assert description.endswith(".")
    assert len(description) > 20
    assert f"example:\n  cudadrv {' '.join(words)}" in done.stdout
    assert "exit status:\n  0  " in done.stdout


def test_without_a_command_the_help_is_printed(run: Command) -> None:
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run("--help").stdout
    for name in (*COMMANDS, "completion"):
        assert f"\n    {name}" in done.stdout


@pytest.mark.parametrize(("word", "meant"), [("chek", "check"), ("docter", "doctor")])
def test_a_misspelt_command_is_reported_with_the_nearest(
    word: str, meant: str, run: Command
) -> None:
    done = run(word, "--json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"cudadrv: there is no command {word!r}: did you mean {meant}?\n"
        "  cudadrv --help lists the commands\n"
    )


def test_an_unknown_command_without_a_near_one_names_the_help(run: Command) -> None:
    done = run("xyzzy")
    assert done.returncode == 2
    assert done.stderr == (
        "cudadrv: there is no command 'xyzzy'\n  cudadrv --help lists the commands\n"
    )


@pytest.mark.parametrize(
    ("path", "name"),
    [("bin/cudadrv", "cudadrv"), ("site-packages/cudadrv/__main__.py", "python -m cudadrv")],
)
def test_messages_have_the_program_name_that_was_typed(
    path: str, name: str, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [path])
    assert run("info", "--help").stdout.startswith(f"usage: {name} info ")
    assert run("nope").stderr.startswith(f"{name}: there is no command")
    assert run("check", "absent.py").stderr.startswith(f"{name} check: absent.py")
    assert run("emulate").stderr.startswith(f"usage: {name} emulate ")


def test_a_table_without_rows_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("devices", ("device", "name"), [])
    assert capsys.readouterr().out == "devices: none\n"


@pytest.mark.slow
def test_count_reports_that_a_script_launched_no_kernel(tmp_path: Path) -> None:
    script = tmp_path / "idle.py"
    script.write_text("")
    done = _without_driver_choice("count", str(script))
    assert (done.returncode, done.stdout) == (0, "the script launched no kernel\n")


def _without_driver_choice(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command as on a machine without CUDA: its devices are hidden."""
    environment = {k: v for k, v in os.environ.items() if k != "CUDADRV_DRIVER"}
    return subprocess.run(
        [sys.executable, "-m", "cudadrv", *words],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**environment, "CUDA_VISIBLE_DEVICES": ""},
    )


@pytest.mark.slow
def test_run_without_a_device_uses_the_emulator_and_reports_it(tmp_path: Path) -> None:
    (tmp_path / "fill.cu").write_text(FILL)
    out = tmp_path / "out.npy"
    done = _without_driver_choice(
        "run", str(tmp_path / "fill.cu"), "--block", "4", "--arg", f"{out}=float32[4]"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{out}: float32[4]\n"
    assert done.stderr.startswith("python -m cudadrv run: on the emulator: ")


@pytest.mark.slow
def test_top_without_a_device_shows_the_emulated_one(tmp_path: Path) -> None:
    done = _without_driver_choice("top", "--json")
    assert done.returncode == 0, done.stderr
    assert [each["ordinal"] for each in json.loads(done.stdout)] == [0]
    assert done.stderr.startswith("python -m cudadrv top: on the emulator: ")


def test_a_target_that_no_device_gives_is_reported_apart_from_the_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> list[object]:
        raise DriverNotFoundError("no CUDA driver was found\n  install one")

    monkeypatch.setattr("cudadrv.cli.compile.list_devices", none)
    default_target()
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "no CUDA driver was found: compiling to ptx for compute_75; --target chooses another\n"
    )


def test_counts_of_the_cache_are_integers(run: Command, tmp_path: Path) -> None:
    source = tmp_path / "fill.cu"
    source.write_text(FILL)
    assert run("compile", str(source), "--target", "compute_80").returncode == 0
    life = json.loads(run("cache", "info", "--json").stdout)["lifetime"]
    assert all(isinstance(life[name], int) for name in life if not name.endswith("_ms"))
    rows = dict(line.split(None, 1) for line in run("cache", "info").stdout.splitlines() if line)
    assert rows["entries"].strip().isdecimal()
    assert ".0" not in rows["hits"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh", "fish"])
def test_each_shell_completes_the_commands(shell: str, run: Command) -> None:
    shtab = pytest.importorskip("shtab")
    if shell not in shtab.SUPPORTED_SHELLS:
        pytest.skip(f"this shtab does not know {shell}")
    done = run("completion", shell)
    assert done.returncode == 0
    for name in ("selftest", "explore", "prewarm"):
        assert name in done.stdout
