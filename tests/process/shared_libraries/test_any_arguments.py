"""Each exported function of the stand-ins, with any arguments, in every way to call it.

The process goes on: no function crashes it, hangs, or raises.
"""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.patience import SECONDS

from .native import HERE, compiled
from .process import environment

WAYS: Final = ("plain", "thread", "locked", "exit", "finalizer", "fork")
"""In the main thread; in a native one, also with the interpreter lock held elsewhere; by a handler
and a destructor of C; by an object's finalizer at Python's end; in a forked child."""


def _outcome(folder: Path, library: Path, way: str, seed: int) -> str:
    """What is wrong; empty if all calls have returned."""
    folder.mkdir()
    (folder / "place").write_bytes(bytes(4096))
    program = [str(HERE / "any_arguments.py"), str(library), str(folder), way, str(seed)]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cudadrv", "emulate", "python", *program],
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
    running = next((calls[at] for at in places[::-1] if 0 <= at < len(calls)), "none")
    return f"{way} {seed}: {status} at {running}\n{errors[-2000:]}"


@pytest.mark.slow
def test_each_function_returns_whatever_its_arguments_are(tmp_path: Path) -> None:
    library = compiled(tmp_path, HERE / "any_calls.c")
    wrong = [_outcome(tmp_path / way, library, way, seed) for seed, way in enumerate(WAYS, 101)]
    assert not any(wrong), "\n".join(wrong)
