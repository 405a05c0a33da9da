"""Checks consumers and the public types against the installed wheel, nothing else.

The checks run in a folder of their own, without this repository's configuration and stubs, as they
do for a package that depends on cudadrv. mypy and pyright, both strict, pyrefly and ty check
tests/pure/typing/consumer.py and the package of the tutorial with its tests. They report an error
in each marked line of tests/pure/typing/rejected.py. Then pyright checks that the types of both
packages are complete.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.documents.blocks import blocks_of

ROOT = Path(__file__).parents[3]
MYPY = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "."]
PYRIGHT = [sys.executable, "-m", "pyright"]
PYREFLY = [sys.executable, "-m", "pyrefly", "check"]
TY = [sys.executable, "-m", "ty", "check", "--output-format", "concise"]
PACKAGES = ("cudadrv", "ptx")


def main() -> int:
    """Answer the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("consumer.py", "rejected.py"):
            shutil.copy(Path(__file__).with_name(name), folder)
        for block in blocks_of(ROOT / "docs" / "tutorial.md"):
            block.write_to(Path(folder))
        settings = {
            "typeCheckingMode": "strict",
            "enableTypeIgnoreComments": True,
            "reportUnnecessaryTypeIgnoreComment": "error",
        }
        Path(folder, "pyrightconfig.json").write_text(json.dumps(settings))
        failed = _run(MYPY, folder) | _run(PYREFLY, folder) | _run_ty(folder)
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


def _run_ty(folder: str) -> int:
    """Return 1 if ty reports another line than the marked ones, or does not report one of them.

    ty reports lines with a comment of mypy that names an error.
    """
    done = _finished(TY, folder)
    print("$", " ".join(["python", *TY[1:]]))
    reported = set(re.findall(r"^(\S+\.py):(\d+):", done.stdout, re.MULTILINE))
    lines = Path(folder, "rejected.py").read_text().splitlines()
    marked = {
        ("rejected.py", str(number))
        for number, line in enumerate(lines, 1)
        if "type: ignore" in line
    }
    if reported == marked:
        print(f"{len(marked)} errors, all in marked lines of rejected.py")
        return 0
    print(done.stdout, done.stderr, f"not reported: {sorted(marked - reported)}", sep="\n")
    return 1


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
