"""What goes into pipes and onto full disks, `top`, the version and the shell's completion."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import cudadrv
from cudadrv.__main__ import main
from tests.patience import SECONDS
from tests.short_cases import few

COMMAND = [sys.executable, "-m", "cudadrv"]


@pytest.mark.slow
def test_a_pipe_gets_plain_text() -> None:
    done = subprocess.run(
        [*COMMAND, "info"], capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert done.stdout.startswith("versions\n")
    assert done.stdout.isascii() or not any(sign in done.stdout for sign in "┃│━")


def test_a_pipe_without_a_reader_ends_a_command_without_a_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*COMMAND, "info"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_reported_in_a_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "info"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "python -m cudadrv: No space left on device\n")


SCRIPT = """import cudadrv, sys
context = cudadrv.cuda_context_for(0)
source = 'extern "C" __global__ void k() { printf("hello\\\\n"); assert(threadIdx.x); }'
try:
    context.compile(source).kernel("k").launch(context.default_stream, cudadrv.LaunchConfig(1, 1))
    context.default_stream.synchronize()
except cudadrv.CudaError:
    print("stopped")
sys.exit(5)
"""


def status_of(command: tuple[str, ...]) -> object:
    try:
        return main(command)
    except SystemExit as end:
        return end.code


@pytest.mark.slow
@pytest.mark.parametrize("missing", few([["stdout", "stderr"], ["stdout"], ["stderr"], []], 1))
def test_a_command_has_its_status_without_standard_streams(
    missing: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Python's streams are None in a process that was started with closed ones.
    script, source = tmp_path / "script.py", tmp_path / "k.cu"
    script.write_text(SCRIPT)
    source.write_text('extern "C" __global__ void k(int* x) { *x = 1; }')
    statuses = {
        ("info",): 0, ("info", "--json"): 0, ("doctor", "--json"): 0, ("top", "--once"): 0,
        ("--version",): 0, ("--help",): 0, ("nonsense",): 2, ("check", "absent.py"): 2,
        ("check", str(script)): 5, ("ptx", str(source)): 0, ("completion", "bash"): 0,
        ("sass", str(tmp_path / "absent.cu")): 1,
    }  # fmt: skip
    with monkeypatch.context() as patch:
        for name in ("stdout", "stderr"):
            patch.setattr(sys, name, None if name in missing else io.StringIO())
        found = {command: status_of(command) for command in statuses}
    assert found == statuses


@pytest.mark.slow
def test_a_command_runs_with_a_closed_standard_output(tmp_path: Path) -> None:
    command = [*COMMAND, "emulate", sys.executable, "-c", "open('ran', 'x')"]
    done = subprocess.run(
        ["/bin/sh", "-c", f"{shlex.join(command)} >&- && {shlex.join([*COMMAND, 'info'])} >&-"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "ran").exists()


def test_top_reports_each_devices_memory(capsys: pytest.CaptureFixture[str]) -> None:
    context = cudadrv.cuda_context_for(0)
    stream = context.new_stream()
    held = stream.zeros(8 << 20, "u1")
    stream.synchronize()
    assert main(["top", "--json"]) == 0
    devices = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in devices] == [d.name for d in cudadrv.list_devices()]
    assert devices[0]["total_bytes"] > devices[0]["used_bytes"] >= held.nbytes
    assert main(["top", "--once"]) == 0
    assert devices[0]["name"] in capsys.readouterr().out


def test_the_version_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"cudadrv {cudadrv.__version__}\n"


def test_a_shell_completes_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    assert main(["completion", "bash"]) == 0
    told = capsys.readouterr().out
    assert "cudadrv" in told
    for command in ("selftest", "doctor", "explore", "prewarm"):
        assert command in told
