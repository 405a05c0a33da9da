"""The errors and warnings in NVRTC's log, and its warnings as warnings of Python."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ptx.visible_text import visible, visible_line

__all__ = ["CompileWarning", "Diagnostic"]

_HEAD = re.compile(
    r"^(?P<file>.+?)\((?P<line>\d+)\): "
    r"(?P<severity>(?:catastrophic |internal )?error|warning|remark)"
    r"(?: #(?P<code>[\w-]+))?: (?P<message>.*)$"
)
_MISSING = re.compile(r'could not open source file "(.+?)"|cannot open source file "(.+?)"')


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message of the compiler.

    `line` and `column` count from 1; `column` is None and `source` "" where the log has no excerpt.
    """

    file: str
    line: int
    column: int | None
    severity: str
    code: str | None
    message: str
    source: str

    @property
    def is_error(self) -> bool:
        """True if the message stops the compilation."""
        return self.severity.endswith("error")

    @property
    def is_of_host_code(self) -> bool:
        """True if NVRTC rejects code that is not marked as the device's."""
        return self.is_error and "in JIT mode" in self.message

    @property
    def missing_header(self) -> str | None:
        """The header that cannot be opened by this message, or None."""
        match = _MISSING.search(self.message)
        return (match[1] or match[2]) if match else None

    def heading(self) -> str:
        """The place and the message, without NVRTC's advice on its options."""
        message = self.message.partition(". Consider using -")[0]
        return f"{self.file}({self.line}): {self.severity}: {message}"

    def pointer(self) -> str:
        """The message, the source line and a caret under the offending place."""
        text = self.heading()
        if not self.source:
            return text
        text += f"\n    {self.source}"
        if self.column is None:
            return text
        # A tab stays a tab, so that the caret stands under its character at any tab width.
        lead = "".join("\t" if c == "\t" else " " for c in self.source[: self.column - 1])
        return f"{text}\n    {lead}^"


def parse_log(log: str, *, name: str = "", source: str = "") -> tuple[Diagnostic, ...]:
    """The diagnostics of NVRTC's log, in its order.

    If the log has no excerpt of the line (an older NVRTC), the line comes from `source`, the text
    that was compiled under `name`.
    """
    if "\n" in name:
        log, name = log.replace(name, visible_line(name)), visible_line(name)
    lines = log.split("\n")
    source_lines = source.split("\n")
    diagnostics = []
    for index, text in enumerate(lines):
        match = _HEAD.match(text)
        if match is None:
            continue
        number = int(match["line"])
        excerpt, column = _excerpt(lines, index + 1)
        if not excerpt and match["file"] == name and 1 <= number <= len(source_lines):
            excerpt = source_lines[number - 1].rstrip("\r")
        diagnostics.append(
            Diagnostic(
                match["file"],
                number,
                column,
                match["severity"],
                match["code"],
                match["message"],
                excerpt,
            )
        )
    return tuple(diagnostics)


def _excerpt(lines: list[str], start: int) -> tuple[str, int | None]:
    """The source line and caret column that follow a message.

    Between the two stand further lines of the message where it is long; NVRTC indents the source
    line by two, and the caret line is blank but for its caret.
    """
    for index in range(start, min(start + 12, len(lines))):
        if _HEAD.match(lines[index]):
            break
        if lines[index].strip() == "^" and index > start:
            return lines[index - 1][2:], len(lines[index]) - 2
    return "", None


_SHOWN: Final = 4
_PACKAGES: Final = ("ptx", "cudadrv")
"""Frames of these packages are not the caller's code."""
_MOST_WARNED: Final = 4096

_warned: Final[dict[int, None]] = {}
"""Hashes of sources with their warnings that were raised; cleared at `_MOST_WARNED`."""
_collectors: Final[dict[object, list[CompileWarning]]] = {}
"""Lists that all warnings are added to, each by a key of its block; changed in atomic steps."""


class CompileWarning(UserWarning):
    """NVRTC compiled a source and warned of it, such as of a comparison that is always true.

    Each process is warned once of the warnings of a source, whether NVRTC or the cache gave the
    image. `diagnostics` has every warning, `name` is the name of the source.
    """

    def __init__(
        self, message: str, *, name: str = "", diagnostics: Sequence[Diagnostic] = ()
    ) -> None:
        super().__init__(message)
        self.name = name
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)


def warn_of(log: str, *, name: str, source: str) -> None:
    """Raise a `CompileWarning` in the caller's code for the warnings in NVRTC's log."""
    all_found = parse_log(log, name=name, source=source)
    shown_warnings = tuple(
        diagnostic for diagnostic in all_found if diagnostic.severity == "warning"
    )
    if not shown_warnings:
        return
    warning = CompileWarning(visible(_text(shown_warnings)), name=name, diagnostics=shown_warnings)
    for collected in list(_collectors.values()):
        collected.append(warning)
    key = hash(
        (source, tuple((diagnostic.line, diagnostic.message) for diagnostic in shown_warnings))
    )
    if key in _warned:
        return
    warnings.warn(warning, stacklevel=_frames_to_caller())
    # After it: a filter that makes it an error does so every time.
    if len(_warned) >= _MOST_WARNED:
        _warned.clear()
    _warned[key] = None


@contextmanager
def collected() -> Iterator[list[CompileWarning]]:
    """Yield a list of all warnings of this block in every thread, repeated ones included."""
    key, caught = object(), list[CompileWarning]()
    _collectors[key] = caught
    try:
        yield caught
    finally:
        _collectors.pop(key, None)


def _text(diagnostics: Sequence[Diagnostic]) -> str:
    """The first warnings with their lines, and how to silence them."""
    texts = [diagnostic.pointer() for diagnostic in diagnostics[:_SHOWN]]
    if len(diagnostics) > _SHOWN:
        texts.append(f"and {len(diagnostics) - _SHOWN} more: see Image.log")
    codes = dict.fromkeys(
        diagnostic.code.partition("-")[0] for diagnostic in diagnostics if diagnostic.code
    )
    if codes:
        option = f"--diag-suppress={','.join(codes)}"
        texts.append(f"  correct the source, or compile it with extra=({option!r},)")
    return "\n".join(texts)


def _frames_to_caller() -> int:
    """Return the stack level, for the caller, of the first frame outside of the packages."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None:
        name: object = frame.f_globals.get("__name__", "")
        if str(name).partition(".")[0] not in _PACKAGES:
            return level
        frame, level = frame.f_back, level + 1
    return level
