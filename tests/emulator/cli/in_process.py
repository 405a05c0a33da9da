"""Run a command in the process of the tests, which costs a hundredth of a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import pytest

from cudadrv.__main__ import main


@dataclass(frozen=True, slots=True)
class Done:
    """The status and the output of a command."""

    returncode: int
    stdout: str
    stderr: str


Command: TypeAlias = Callable[..., Done]


def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs a command."""

    def run(*words: str) -> Done:
        try:
            status = main(words)
        except SystemExit as end:  # argparse rejects a word, or a script ends itself
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        said = capsys.readouterr()
        return Done(status, said.out, said.err)

    return run
