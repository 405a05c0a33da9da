"""Findings that a user knows and does not want to hear of, from a file.

A line is a check, or `*`, and what the finding must be about, all of it: `kernel=`, `line=` and
`variable=`, each with a pattern as of the shell. `line=scan.cu:42` names a place by the end of its
path. What follows a `#` is a remark.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .. import border
from ..errors import ArgumentValueError

if TYPE_CHECKING:
    from ptx.emulate.check.findings import Found

VARIABLE: Final = "CUDADRV_CHECK_SUPPRESSIONS"
_KEYS: Final = ("kernel", "line", "variable")


@dataclass(slots=True)
class Suppression:
    """One line of a file.

    Attributes:
        place: the file and the line, for messages.
        text: what stands there.
        check: a pattern of the check's name.
        patterns: by key.
        is_used: whether it has met a finding.
    """

    place: str
    text: str
    check: str
    patterns: dict[str, str]
    is_used: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"

    def meets(self, found: Found) -> bool:
        """Whether it is about this finding."""
        return fnmatchcase(found.check, self.check) and all(
            any(fnmatchcase(each, pattern) for each in _texts(found, key))
            for key, pattern in self.patterns.items()
        )


def _texts(found: Found, key: str) -> list[str]:
    """What a pattern of a key may meet in a finding."""
    if key == "kernel":
        return [found.kernel]
    if key == "variable":
        return [found.variable]
    parts = [(*Path(e.file).parts[:-1], f"{Path(e.file).name}:{e.line}") for e in found.places
             if e.file is not None]  # fmt: skip
    return ["/".join(each[start:]) for each in parts for start in range(len(each))]


@dataclass(slots=True)
class Suppressions:
    """Those of a file, in its order.

    Attributes:
        each: the suppressions.
        hidden: how many findings the last `visible` left out.
    """

    each: list[Suppression] = field(default_factory=list)
    hidden: int = 0

    def visible(self, every: Sequence[Found]) -> tuple[Found, ...]:
        """The findings that no suppression meets; those that meet one are used."""
        left = tuple(each for each in every if not self._hides(each))
        self.hidden = len(every) - len(left)
        return left

    def _hides(self, found: Found) -> bool:
        meeting = [each for each in self.each if each.meets(found)]
        for each in meeting:
            each.is_used = True
        return bool(meeting)

    @property
    def unused(self) -> tuple[str, ...]:
        """Those that no finding has met yet."""
        return tuple(str(each) for each in self.each if not each.is_used)


def suppressions_of(file: str | os.PathLike[str] | None) -> Suppressions:
    """The suppressions of a file, else of what CUDADRV_CHECK_SUPPRESSIONS names, else none.

    Raises:
        ArgumentValueError: the file cannot be read, or a line says something else.
    """
    named = (
        os.environ.get(VARIABLE, "").strip() if file is None else border.path("suppressions", file)
    )
    if not named:
        return Suppressions()
    try:
        lines = Path(named).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise ArgumentValueError(f"the suppressions of {named} cannot be read: {error}") from None
    found = Suppressions()
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text:
            found.each.append(_suppression(f"{named}:{number}", text))
    return found


def _suppression(place: str, text: str) -> Suppression:
    check, *rest = text.split()
    patterns = dict(each.partition("=")[::2] for each in rest)
    if not rest or "=" in check or not all(patterns.get(key) for key in patterns) or (
        not set(patterns) <= set(_KEYS) or len(patterns) != len(rest)
    ):  # fmt: skip
        raise ArgumentValueError(
            f"{place}: {text!r} is no suppression: give a check or *, and one or more of "
            "kernel=NAME, line=FILE:LINE, variable=NAME"
        )
    return Suppression(place, text, check, patterns)
