"""The errors and warnings in NVRTC's log, with their places in the source."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Diagnostic"]

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
        """Whether the message stops the compilation."""
        return self.severity.endswith("error")

    @property
    def is_of_host_code(self) -> bool:
        """Whether NVRTC refuses what is not marked as the device's."""
        return self.is_error and "in JIT mode" in self.message

    @property
    def missing_header(self) -> str | None:
        """The header that the message says cannot be opened, or None."""
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

    Where the log has no excerpt of the line (an older NVRTC), the line comes from `source`, the
    text that was compiled under `name`.
    """
    lines = log.split("\n")
    own = source.split("\n")
    found = []
    for index, text in enumerate(lines):
        match = _HEAD.match(text)
        if match is None:
            continue
        number = int(match["line"])
        excerpt, column = _excerpt(lines, index + 1)
        if not excerpt and match["file"] == name and 1 <= number <= len(own):
            excerpt = own[number - 1].rstrip("\r")
        found.append(
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
    return tuple(found)


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
