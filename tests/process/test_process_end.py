"""Errors of releases while the process ends: who reports them, and the exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.patience import SECONDS

SCRIPT: Final = """
import atexit, os, sys
when, act = sys.argv[1:]
held = {}
def handler():
    if act == "close":
        held["x"].close()
    elif act == "drop":
        del held["x"]
    else:
        print(held["stream"].to_host(held["x"]).sum())
    print("closed", "x" in held and held["x"].closed)
class Finalizer:
    x, write = None, staticmethod(os.write)  # sys.stdout is gone
    def __del__(self):
        self.x.close()
        self.write(1, b"closed True\\n" if self.x.closed else b"open\\n")
def hook(unraisable):
    print("hook", type(unraisable.exc_value).__name__)
if when != "finalizer":  # the hook would keep the finalizer's object
    sys.unraisablehook = hook
if when == "before the import":
    atexit.register(handler)
import cudadrv
machine = cudadrv.emulator.use()
stream = cudadrv.cuda_context_for(0).new_stream()
held["stream"], held["x"] = stream, stream.zeros(4, "f4")
if when == "after the import":
    atexit.register(handler)
machine.fail("cuMemFreeAsync", times=None)
if when == "finalizer":
    last = Finalizer()
    last.x = held.pop("x")
"""
# Of the error: an explicit close raises, and atexit passes it to the hook, as any error of a
# handler; the hook has that of a dropped object, too.
CASES: Final = (
    ("after the import", "close", ["hook UnknownError"]),
    ("after the import", "drop", ["hook UnknownError", "closed False"]),
    ("after the import", "use", ["0.0", "closed False"]),
    ("before the import", "close", ["closed True"]),
    ("before the import", "drop", ["closed False"]),
    ("before the import", "use", ["0.0", "closed False"]),
    ("finalizer", "close", ["closed True"]),
)


@pytest.mark.slow
@pytest.mark.parametrize(("when", "act", "expected"), CASES)
def test_an_error_of_a_release_is_reported_up_to_the_last_handler_and_not_later(
    when: str, act: str, expected: list[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, when, act],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.stdout.splitlines() == expected
    assert (done.returncode, done.stderr) == (0, "")
