"""Checks consumers and the public types against the installed wheel, nothing else.

The checks run in a folder of their own, without this repository's configuration and stubs, as they
do for a package that depends on cudadrv: mypy and pyright, both strict, on
tests/pure/typing/consumer.py and on the package of the tutorial with its tests; then pyright on the
completeness of the types of both packages.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.documents.blocks import blocks_of

ROOT = Path(__file__).parents[3]
MYPY = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "."]
PYRIGHT = [sys.executable, "-m", "pyright"]
PACKAGES = ("cudadrv", "ptx")


def main() -> int:
    """Answer the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(Path(__file__).with_name("consumer.py"), folder)
        for block in blocks_of(ROOT / "docs" / "tutorial.md"):
            block.write_to(Path(folder))
        settings = {"typeCheckingMode": "strict"}
        Path(folder, "pyrightconfig.json").write_text(json.dumps(settings))
        failed = _run(MYPY, folder)
        missing = _missing_pyright(folder)
        if missing:
            print(f"SKIPPED pyright, strict and --verifytypes: {missing}")
            return failed
        failed |= _run(PYRIGHT, folder)
        for package in PACKAGES:
            verify = [*PYRIGHT, "--ignoreexternal", "--verifytypes", package]
            failed |= _run(verify, folder, last_lines=20)
        return failed


def _missing_pyright(folder: str) -> str:
    """What pyright lacks here, which brings neither Node.js nor, before its first run, itself."""
    found = _finished([*PYRIGHT, "--version"], folder)
    if found.returncode == 0:
        return ""
    said = (found.stdout + found.stderr).strip().splitlines()
    return f"it needs Node.js and npm's registry ({said[-1] if said else 'it does not start'})"


def _run(command: list[str], folder: str, last_lines: int = 0) -> int:
    """The exit status; prints what was said, of a long success only the end."""
    done = _finished(command, folder)
    lines = (done.stdout + done.stderr).splitlines()
    print("$", " ".join(["python", *command[1:]]))
    print("\n".join(lines[-last_lines:] if done.returncode == 0 else lines))
    return done.returncode


def _finished(command: list[str], folder: str) -> subprocess.CompletedProcess[str]:
    left_out = ("MYPYPATH", "PYTHONPATH")
    environment = {key: value for key, value in os.environ.items() if key not in left_out}
    return subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True
    )


if __name__ == "__main__":
    raise SystemExit(main())
