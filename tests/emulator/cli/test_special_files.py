"""Commands with a FIFO or an endless device in place of a file: an error at once, no endless wait.

Each command runs in a thread, as a command that waits for a FIFO never ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from cudadrv import LaunchConfig
from cudadrv.__main__ import main
from cudadrv.emulator import Emulator
from cudadrv.errors import ArgumentValueError
from cudadrv.launch.images import as_loadable
from cudadrv.testing.verify import CannotVerifyError, KernelCase
from cudadrv.testing.verify.submitted_source import submitted_source
from ptx import Fatbin, LinkInput

CASES: Final = """
import numpy as np
from cudadrv.testing import strategies as st
from cudadrv.testing.verify import KernelCase
n = st.sizes(1, 8)
case = KernelCase('extern "C" __global__ void k(int n, int* x) { x[threadIdx.x] = 1; }',
                  arguments={"n": n, "x": st.arrays(np.int32, n)},
                  launch=st.launch_configs(threads=n),
                  reference=lambda x: {"x": np.ones_like(x)})
"""
# Words of a command, in which FIFO and DEVICE stand for the path; and its status.
READING: Final[Sequence[tuple[int, Sequence[str]]]] = (
    (1, ("compile", "FIFO")),
    (1, ("compile", "DEVICE", "--out", "x.ptx")),
    (1, ("ptx", "FIFO")),
    (1, ("ptx", "FIFO.ptx")),
    (1, ("ptx", "DEVICE", "--source")),
    (1, ("sass", "FIFO")),
    (1, ("sass", "FIFO.ptx")),
    (1, ("sass", "FIFO.cubin")),
    (1, ("sass", "FIFO.fatbin")),
    (1, ("run", "FIFO")),
    (1, ("run", "k.cu", "--arg", "FIFO.npy")),
    (1, ("cache", "prewarm", "FIFO")),
    (1, ("cache", "prewarm", "list-of-fifo")),
    (2, ("check", "FIFO")),
    (2, ("check", "DEVICE")),
    (2, ("check", "--suppressions", "FIFO", "script.py")),
    (2, ("count", "FIFO")),
    (2, ("count", "DEVICE")),
    (2, ("profile", "FIFO")),
    (2, ("profile", "DEVICE")),
    (2, ("explore", "FIFO")),
    (2, ("explore", "FIFO.py")),
    (2, ("explore", "DEVICE")),
    (2, ("verify", "FIFO")),
    (2, ("verify", "cases.py", "--against", "FIFO")),
    (3, ("verify", "cases.py", "--source", "FIFO")),
    (3, ("verify", "cases.py", "--source", "DEVICE")),
    (2, ("debug", "FIFO")),
    (2, ("debug", "FIFO.json")),
    (2, ("debug", "--commands", "FIFO", "script.py")),
    (2, ("emulate", "--suppressions", "FIFO", "true")),
    (3, ("replay", "FIFO")),
)
# A FIFO without a reader, too, is waited for by what writes to it.
WRITING: Final[Sequence[tuple[int, Sequence[str]]]] = (
    (1, ("compile", "k.cu", "--out", "FIFO")),
    (1, ("run", "k.cu", "--arg", "FIFO.npy=float32[4]")),
    (2, ("check", "--sarif", "FIFO", "script.py")),
    (2, ("check", "--junit", "FIFO", "script.py")),
    (3, ("verify", "cases.py", "--examples", "1", "--no-explain", "--html", "FIFO")),
    (2, ("emulate", "--junit", "FIFO", "true")),
)
LIMIT_S: Final = 60.0


def case_of(source: Path) -> KernelCase:
    return KernelCase(
        source, arguments={}, launch=LaunchConfig(1, 1), reference=lambda: {"x": np.ones(1)}
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUDADRV_DRIVER", "emulator")
    for suffix in ("", ".ptx", ".cubin", ".fatbin", ".npy", ".json", ".py"):
        os.mkfifo(tmp_path / f"FIFO{suffix}")
    (tmp_path / "DEVICE").symlink_to("/dev/zero")
    (tmp_path / "k.cu").write_text('extern "C" __global__ void k(float* x) { x[0] = 1; }')
    (tmp_path / "script.py").write_text("")
    (tmp_path / "cases.py").write_text(CASES)
    (tmp_path / "list-of-fifo").write_text("FIFO --target compute_80\n")
    return tmp_path


def ended(function: Callable[[], object]) -> object:
    """Return the result of a function, or its error's type; it must end."""
    results: list[object] = []

    def run() -> None:
        try:
            results.append(function())
        except (Exception, SystemExit) as error:
            results.append(error.code if isinstance(error, SystemExit) else type(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(LIMIT_S)
    assert results, "it waits"
    return results[0]


@pytest.mark.parametrize(
    ("status", "words"),
    [pytest.param(*case, id=" ".join(case[1])) for case in (*READING, *WRITING)],
)
def test_a_command_reports_a_path_that_is_no_ordinary_file(
    status: int, words: Sequence[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(lambda: main(words)) == status
    assert "not an ordinary file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("expected", "read"),
    [
        (OSError, lambda: Fatbin.read(Path("FIFO.fatbin"))),
        (OSError, lambda: LinkInput.of(Path("FIFO.ptx"))),
        (OSError, lambda: as_loadable(Path("FIFO.ptx"))),
        (CannotVerifyError, lambda: submitted_source(Path("FIFO"))),
        (CannotVerifyError, lambda: case_of(Path("FIFO")).read_source()),
        (ArgumentValueError, lambda: Emulator(suppressions="FIFO")),
    ],
)
def test_a_call_raises_for_a_fifo(
    expected: type[Exception], read: Callable[[], object], folder: Path
) -> None:
    assert ended(read) is expected


@pytest.mark.slow
def test_a_pipe_of_the_shell_is_no_script_but_may_be_a_source(folder: Path) -> None:
    line = (
        f"{sys.executable} -m cudadrv count <(echo 'print(6 * 7)'); echo $?; "
        f"{sys.executable} -m cudadrv compile <(cat k.cu) --target sm_80 --out k.cubin"
    )
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    # The interpreter opens a script twice: the second time a pipe is empty.
    assert done.stdout.startswith("2\nk.cubin: ")
    assert "not an ordinary file" in done.stderr


@pytest.mark.slow
def test_a_file_of_findings_may_be_a_pipe_of_the_shell(folder: Path) -> None:
    line = f"{sys.executable} -m cudadrv check --sarif >(cat > found) script.py; wait $!"
    subprocess.run(["bash", "-c", line], check=True)
    assert '"runs"' in (folder / "found").read_text()


@pytest.mark.slow
def test_a_file_of_findings_that_is_not_written_has_status_3(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--sarif", "/dev/full", "script.py"]) == 3
    assert "/dev/full: cannot be written: No space left on device" in capsys.readouterr().err
