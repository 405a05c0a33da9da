"""A copy of the repository, in which mutants meet their tests."""

from __future__ import annotations

import enum
import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final, Self

from .mutant import Mutant
from .subjects import SUBJECTS

_COPIED: Final = (
    "benchmarks",
    "campaigns",
    "cudadrv",
    "ptx",
    "tests",
    "stubs",
    "tools",
    "docs",
    "examples",
    "pyproject.toml",
    "README.md",
)
_LEFT_OUT: Final = shutil.ignore_patterns("__pycache__", "pages", "images")
_MOST_CPU_SECONDS: Final = 60.0
_MOST_SLOW_CPU_SECONDS: Final = 300.0
_PASSED: Final = (0, 5 << 8)  # of a process; pytest's 5 is no test selected
_RUNNER: Final = Path(__file__).with_name("runner.py")


class Outcome(enum.Enum):
    """What the tests made of a mutant."""

    KILLED = "killed"
    KILLED_BY_SLOW = "killed by slow tests"
    SURVIVED = "survived"
    TIMED_OUT = "timed out"


class Testbed:
    """A copy of the repository in a temporary folder, and a process that runs tests in it.

    The repository itself never changes.

    Args:
        repository: the folder to copy.

    Attributes:
        root: the copy.
    """

    __test__ = False  # not a class of tests

    def __init__(self, repository: Path) -> None:
        self._exits = ExitStack()
        folder = self._exits.enter_context(tempfile.TemporaryDirectory(prefix="cudadrv-mutants-"))
        self.root = Path(folder, "repository")
        self._images = Path(folder, "images")
        self.root.mkdir()
        for name in _COPIED:
            source = repository / name
            if source.is_dir():
                shutil.copytree(source, self.root / name, ignore=_LEFT_OUT)
            elif source.exists():
                shutil.copy(source, self.root / name)
        self._cpu_seconds: dict[str, float] = {}
        self._runner: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_runner()
        self._exits.close()

    def prepare(self, subject: str, *, slow: bool = False) -> str | None:
        """Run the tests of a subject without a change; return the output if they fail.

        Args:
            slow: run the tests with the mark slow too.
        """
        self._end_runner()
        answer = self._run(subject, _MOST_CPU_SECONDS, writes_bytecode=True)
        self._cpu_seconds[subject] = answer["cpu_seconds"]
        if slow and answer["status"] == 0:
            further = self._run(subject, _MOST_SLOW_CPU_SECONDS, marked="slow")
            if further["status"] not in _PASSED:
                answer = further
        self._end_runner()
        # A mutant may have the size and the time of the file that it replaces.
        for file in SUBJECTS[subject].files:
            path = self.root / file
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
                compiled.unlink()
        return answer["output"] if answer["status"] != 0 else None

    def test(self, subject: str, mutant: Mutant, *, slow: bool = False) -> Outcome:
        """Run the tests of a subject with one changed file.

        Args:
            slow: run the tests with the mark slow too, if the others pass.
        """
        path = self.root / mutant.file
        original = path.read_text("utf-8")
        path.write_text(mutant.code, "utf-8")
        try:
            answer = self._run(subject, 10.0 + 4.0 * self._cpu_seconds[subject])
            if slow and answer["status"] == 0:
                further = self._run(subject, _MOST_SLOW_CPU_SECONDS, marked="slow")
                if further["status"] not in _PASSED:
                    return Outcome.KILLED_BY_SLOW
        finally:
            path.write_text(original, "utf-8")
        if answer["status"] is None:
            return Outcome.TIMED_OUT
        return Outcome.SURVIVED if answer["status"] == 0 else Outcome.KILLED

    def _run(
        self,
        subject: str,
        cpu_seconds: float,
        *,
        writes_bytecode: bool = False,
        marked: str = "not slow",
    ) -> dict[str, Any]:
        if self._runner is None:
            self._runner = self._start_runner(writes_bytecode)
        of = SUBJECTS[subject]
        # A changed cache of images must not spoil what later mutants find in it.
        cache = None if of.own_cache else str(self._images)
        # On a busy machine a process gets a small part of a core.
        job = {
            "tests": of.tests,
            "selection": of.selection,
            "marked": marked,
            "cache": cache,
            "cpu_seconds": cpu_seconds,
            "seconds": 60.0 + 20.0 * cpu_seconds,
        }
        _pipe(self._runner.stdin).write(json.dumps(job) + "\n")
        _pipe(self._runner.stdin).flush()
        answer: dict[str, Any] = json.loads(_pipe(self._runner.stdout).readline())
        return answer

    def _start_runner(self, writes_bytecode: bool) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(self.root), *_others()])}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        if not writes_bytecode:
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        return subprocess.Popen(
            [sys.executable, "-P", str(_RUNNER)],
            cwd=self.root,
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def _end_runner(self) -> None:
        if self._runner is not None:
            with self._runner:
                _pipe(self._runner.stdin).close()
            self._runner = None


def _others() -> list[str]:
    """Return the folders of PYTHONPATH, but for the repository that was copied."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [folder for folder in given if folder and not Path(folder, "cudadrv").exists()]


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
