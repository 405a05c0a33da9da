"""The CUDA sources of a process, and the Python files that have them as texts."""

from __future__ import annotations

import contextlib
import os
import re
import runpy
import traceback
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import ptx
from ptx.emulate.check.findings import demangled

_NOT_USERS: Final = (
    f"{Path(__file__).parents[1]}{os.sep}",
    f"{Path(ptx.__file__).parent}{os.sep}",
    "<",
    contextlib.__file__,
    runpy.__file__,
)
_DEEPEST: Final = 40


@dataclass(frozen=True, slots=True)
class Source:
    """A source that was compiled.

    Attributes:
        name: its absolute path, as the compiler writes it; text: its text.
        file: the Python file that has the text, or ""; offset: the lines before it there.
    """

    name: str
    text: str
    file: str = ""
    offset: int = 0

    @property
    def path(self) -> str:
        """The file that has it; "" if none has."""
        return self.file or (self.name if Path(self.name).is_file() else "")


def user_frames() -> list[tuple[str, int, str]]:
    """Return file, line and function of the user's frames, the innermost first."""
    calls = ((frame.f_code, line) for frame, line in traceback.walk_stack(None))
    found = (
        (code.co_filename, line, code.co_name)
        for code, line in calls
        if not code.co_filename.startswith(_NOT_USERS)
    )
    return list(islice(found, _DEEPEST))


class Sources:
    """Those that this process has compiled. Names in PTX alone open no file."""

    def __init__(self) -> None:
        self._sources: dict[tuple[str, str], Source] = {}

    def add(self, name: str, text: str) -> None:
        """Record a source, and look for it in the files of the calls that compile it."""
        path = os.path.abspath(name)
        if (path, text) in self._sources:
            return
        self._sources[path, text] = Source(path, text)
        for file in dict.fromkeys(frame[0] for frame in user_frames()):
            python = Path(file).read_text(errors="replace") if Path(file).is_file() else ""
            position = python.find(text)
            if position >= 0 and text.strip():
                offset = python.count("\n", 0, position)
                self._sources[path, text] = Source(path, text, os.path.abspath(file), offset)
                return

    def find(self, function: str, file: str) -> Source | None:
        """Return the source of a function; `file` is its name in the line information."""
        every, path = list(self._sources.values()), os.path.abspath(file)
        named = [each for each in every if each.name == path]
        named = named or [each for each in every if Path(each.name).name == Path(path).name]
        with_function = [
            each
            for each in named
            if re.search(rf"\b{re.escape(demangled(function))}\s*\(", each.text)
        ]
        return next(iter([*reversed(with_function), *reversed(named)]), None)
