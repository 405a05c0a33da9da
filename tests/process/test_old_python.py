"""An interpreter that is too old is told so at the import, before any syntax or name it lacks."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def old_python() -> str:
    installed = map(str, Path.home().glob(".pyenv/versions/3.10.*/bin/python"))
    for found in (shutil.which("python3.10"), *installed):
        # What is found may be a switch to interpreters, without one of this version.
        if found and subprocess.run([found, "-c", ""], capture_output=True).returncode == 0:
            return found
    pytest.skip("needs an interpreter of Python 3.10")


@pytest.mark.slow
@pytest.mark.parametrize("package", ["cudadrv", "ptx"])
def test_python_3_10_gets_an_error_with_the_required_version(package: str) -> None:
    command = [old_python(), "-c", f"import {package}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: {package} needs Python 3.11 or newer, and this is 3.10.")
    assert last.endswith("make the environment with a newer one")
