"""Each exported function of the stand-ins, with any arguments, in every way to call it.

The process goes on: no function crashes it, hangs, or raises.
"""

from __future__ import annotations

import platform
import struct
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

import pytest

from tests.patience import SECONDS

from .native import HERE, compiled, compiled_program
from .process import environment

WAYS: Final = ("plain", "thread", "locked", "hosted", "exit", "finalizer", "fork")
"""In the main thread; in a native one, also with the interpreter lock held elsewhere; in a host
function of a stream; by a handler and a destructor of C; by an object's finalizer at Python's end;
in a forked child."""
NATIVE_WAYS: Final = ("plain", "thread", "hosted", "exit", "fork")
"""Those of a program without Python."""


def _outcome(folder: Path, way: str, seed: int, *command: str) -> str:
    """What is wrong; empty if all calls have returned."""
    (folder / "place").write_bytes(bytes(4096))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cudadrv", "emulate", *command],
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        status, errors = str(done.returncode), done.stderr
    except subprocess.TimeoutExpired:
        status, errors = "hang", ""
    calls = (folder / "calls").read_text().splitlines()
    places = struct.unpack("2q", (folder / "place").read_bytes()[:16])
    wanted = (len(calls), len(calls) if way == "exit" else 0)
    if (status, places) == ("0", wanted) and "Traceback" not in errors and len(calls) > 10_000:
        return ""
    place = places[way == "exit" and places[1] > 0]
    running = calls[place] if place < len(calls) else "none"
    return f"{way} {seed}: {status} at {running}\n{errors[-2000:]}"


def _python(folder: Path, way: str, seed: int, library: str) -> str:
    folder.mkdir()
    program = [str(HERE / "any_arguments.py"), library, str(folder), way, str(seed)]
    return _outcome(folder, way, seed, "python", *program)


def _native(folder: Path, way: str, seed: int, program: str) -> str:
    folder.mkdir()
    writer = [sys.executable, str(HERE / "any_arguments.py"), "none", str(folder), way, str(seed)]
    subprocess.run(writer, env=environment(), check=True)
    return _outcome(folder, way, seed, "--native", program, str(folder), way)


@pytest.mark.slow
def test_each_function_returns_whatever_its_arguments_are(tmp_path: Path) -> None:
    library = str(compiled(tmp_path, HERE / "any_calls.c"))
    wrong = [_python(tmp_path / way, way, seed, library) for seed, way in enumerate(WAYS, 101)]
    assert not any(wrong), "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.skipif(
    platform.machine() != "x86_64" or not sysconfig.get_config_var("Py_ENABLE_SHARED"),
    reason="needs x86-64 and a Python with a shared library",
)
def test_each_function_returns_in_programs_without_python(tmp_path: Path) -> None:
    program = str(compiled_program(tmp_path, HERE / "any_program.c"))
    wrong = [_native(tmp_path / way, way, at, program) for at, way in enumerate(NATIVE_WAYS, 201)]
    assert not any(wrong), "\n".join(wrong)
